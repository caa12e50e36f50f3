package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// History gives fn each job that a query selects with its attempts, by id: those in memory
// as they are now, others as the store has them.
func (e *Engine) History(ctx context.Context, q *api.HistoryQuery, uid uint32, fn func(*api.JobDetail) error) error {
	jobs, err := e.recorded(ctx, q, uid)
	if err != nil {
		return err
	}
	for _, j := range jobs {
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

// recorded are the jobs of a history query, each once, by id.
func (e *Engine) recorded(ctx context.Context, q *api.HistoryQuery, uid uint32) ([]*gang.Job, error) {
	var jobs []*gang.Job
	var err error
	if len(q.Refs) == 0 {
		jobs, err = e.recordedBetween(ctx, q)
	} else {
		for i := 0; i < len(q.Refs) && err == nil; i++ {
			var some []*gang.Job
			some, err = e.recordedAs(ctx, q.Refs[i], uid)
			jobs = append(jobs, some...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	jobs = slices.DeleteFunc(jobs, func(j *gang.Job) bool { return !within(q, j) })
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

// recordedAs are the jobs that a reference names; none is no error.
func (e *Engine) recordedAs(ctx context.Context, ref api.JobRef, uid uint32) ([]*gang.Job, error) {
	if ref.Last > 0 {
		return e.byRef(ref, uid), nil
	}
	if ref.Index < 0 {
		j, err := e.One(ctx, ref, uid)
		if err != nil && api.CodeOf(err) != api.CodeNotFound {
			return nil, err
		}
		if err == nil && j.ArrayID != ref.ID {
			return []*gang.Job{j}, nil
		}
	}
	all, err := e.elements(ctx, ref.ID)
	if ref.Index >= 0 {
		all = slices.DeleteFunc(all, func(j *gang.Job) bool { return j.ArrayIndex != ref.Index })
	}
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return all, err
}

// within: a job is of these users and was known in this time.
func within(q *api.HistoryQuery, j *gang.Job) bool {
	if !in(q.Users, j.User) || !q.Until.IsZero() && j.Submit.After(q.Until) {
		return false
	}
	ended := j.End
	if ended.IsZero() {
		ended = j.Submit // it never began
	}
	return q.Since.IsZero() || j.Verdict == nil || !ended.Before(q.Since)
}
