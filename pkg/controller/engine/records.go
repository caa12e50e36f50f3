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

// recorded are the jobs of a history query, each once, by id.
func (e *Engine) recorded(ctx context.Context, q *api.HistoryQuery, uid uint32) ([]*gang.Job, error) {
	var jobs []*gang.Job
	var err error
	if len(q.Refs) == 0 {
		jobs, err = e.recordedBetween(ctx, q)
	} else {
		jobs, err = e.recordedAs(ctx, q.Refs, uid)
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

// recordedAs are the jobs that references name; one that names none is no error. What is asked for of one
// array is read with it, once.
func (e *Engine) recordedAs(ctx context.Context, refs []api.JobRef, uid uint32) (jobs []*gang.Job, err error) {
	refs = unique(refs)
	elements := map[int64]map[int]bool{} // by the id of their array
	for _, ref := range refs {
		if ref.Last == 0 && ref.Index >= 0 {
			if elements[ref.ID] == nil {
				elements[ref.ID] = map[int]bool{}
			}
			elements[ref.ID][ref.Index] = true
		}
	}
	next := e.view.next()
	for i, found := range e.byRefs(refs, uid) {
		ref := refs[i]
		if i%lookEvery == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if ref.Last > 0 {
			jobs = append(jobs, found...)
			continue
		}
		if ref.ID >= next {
			continue // no job has had the number
		}
		if ref.Index < 0 {
			j, err := e.One(ctx, ref, uid)
			if err != nil && api.CodeOf(err) != api.CodeNotFound {
				return nil, err
			}
			if err == nil && j.ArrayID != ref.ID {
				jobs = append(jobs, j)
				continue
			}
		}
		wanted := elements[ref.ID]
		if ref.Index >= 0 && wanted == nil {
			continue // with an earlier one of the array
		}
		all, err := e.elements(ctx, ref.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if ref.Index >= 0 {
			delete(elements, ref.ID)
			all = slices.DeleteFunc(all, func(j *gang.Job) bool { return !wanted[j.ArrayIndex] })
		}
		jobs = append(jobs, all...)
	}
	return jobs, nil
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
