package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// History gives fn each job that a query selects with its attempts, by id: those in memory
// as they are now, others as the store has them.
func (e *Engine) History(ctx context.Context, q *api.HistoryQuery, who Caller, fn func(*api.JobDetail) error) error {
	jobs, err := e.recorded(ctx, q, who)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d, err := e.Detail(ctx, j)
		if err != nil {
			return err
		}
		d.Job.Ranks = []api.Rank{}
		if err := fn(d); err != nil {
			return err
		}
	}
	return nil
}

// recorded are the jobs of a history query, each once, by id. A reference that names none is no error.
func (e *Engine) recorded(ctx context.Context, q *api.HistoryQuery, who Caller) ([]*gang.Job, error) {
	var jobs []*gang.Job
	var err error
	if len(q.Refs) == 0 {
		jobs, err = e.recordedBetween(ctx, q)
	} else {
		var found []named
		found, err = e.lookUp(ctx, q.Refs, who, true)
		for _, n := range found {
			jobs = append(jobs, n.jobs...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	of := selectionOf(&api.JobQuery{Users: q.Users})
	jobs = slices.DeleteFunc(jobs, func(j *gang.Job) bool { return !of.user(j) || !within(q, j) })
	// Stable, and memory came first: a job that ended meanwhile is in both, and newest there.
	slices.SortStableFunc(jobs, func(a, b *gang.Job) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(jobs, func(a, b *gang.Job) bool { return a.ID == b.ID }), nil
}

// recordedBetween are the jobs in memory, and those of the store that ended late enough.
func (e *Engine) recordedBetween(ctx context.Context, q *api.HistoryQuery) ([]*gang.Job, error) {
	// Memory first: a job that leaves it in between is then in the store.
	jobs := e.view.snapshot(func(*gang.Job) bool { return true })
	f := store.HistoryFilter{EndedAfter: q.Since}
	if !q.Since.IsZero() {
		f.EndedAfter = q.Since.Add(-time.Nanosecond) // the filter excludes the instant
	}
	if len(q.Users) == 1 {
		f.User = q.Users[0]
	}
	old, err := e.store.Jobs(ctx, f)
	return append(jobs, old...), err
}

// within: a job was known in this time.
func within(q *api.HistoryQuery, j *gang.Job) bool {
	if !q.Until.IsZero() && j.Submit.After(q.Until) {
		return false
	}
	ended := j.End
	if ended.IsZero() {
		ended = j.Submit // it never began
	}
	return q.Since.IsZero() || j.Verdict == nil || !ended.Before(q.Since)
}
