package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/gang"
)

// Jobs are looked up here, whoever asks: what is in memory as it is now, and what has left it as the history has it. Reads of the history
// are the store's readers' work, beside the engine's rounds, one for each job or array that is not in memory.

// named is what one reference means.
type named struct {
	ref  api.JobRef  // with the id of what @ means, where that is known
	jobs []*gang.Job // by id; none: there is no such job
	// lacks: the job is there, and has no such element.
	lacks bool
	// component is which one of a heterogeneous job was named by its id, -1 or 0: the job itself was.
	component int
}

// lookUp finds what references mean, each once, in their order: a job, an element, or of the id of an array all its elements, whether they
// are in memory or, with past, in the history. who is whose jobs @ means; it means the same with and without past.
func (e *Engine) lookUp(ctx context.Context, refs []api.JobRef, who Caller, past bool) ([]named, error) {
	refs, err := e.numbered(ctx, unique(refs), who)
	if err != nil {
		return nil, err
	}
	out := make([]named, len(refs))
	for i, jobs := range e.byRefs(refs) {
		out[i] = named{ref: refs[i], jobs: jobs}
	}
	if !past {
		return out, e.ofComponents(ctx, out, false)
	}
	arrays := map[int64][]*gang.Job{} // that were read, whole
	next := e.view.next()
	for i := range out {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if n := &out[i]; n.ref.Last == 0 && n.ref.ID < next {
			if err := e.withPast(ctx, n, arrays); err != nil {
				return nil, err
			}
		}
	}
	return out, e.ofComponents(ctx, out, true)
}

// maxPastComponents is for how many references of one call it is looked whether they name a component of a job of the history: each may be
// some reads of the store.
const maxPastComponents = 100

// ofComponents finds the jobs of those references that name none but a component of one.
func (e *Engine) ofComponents(ctx context.Context, found []named, past bool) error {
	next, looked := e.view.next(), 0
	for i := range found {
		n := &found[i]
		if len(n.jobs) > 0 || n.ref.Last > 0 || n.ref.Index >= 0 || n.ref.ID >= next {
			continue
		}
		looked++
		j, component, err := e.componentOf(ctx, n.ref.ID, past && looked <= maxPastComponents)
		if err != nil {
			return err
		}
		if j != nil {
			n.jobs, n.component = []*gang.Job{j}, component
		}
	}
	return nil
}

// componentOf is the heterogeneous job of which a component has this id, which no job has: the one before it, as nothing lies between
// the ids of one job. nil: there is none.
func (e *Engine) componentOf(ctx context.Context, id int64, past bool) (j *gang.Job, component int, err error) {
	for back := int64(1); back < min(api.MaxRoles, id); back++ {
		if past {
			j, err = e.anyJob(ctx, id-back)
		} else {
			j = e.view.job(id - back)
		}
		switch {
		case err != nil:
			return nil, 0, err
		case j == nil:
		case back < j.Spec.IDs():
			return j, int(back), nil
		default:
			return nil, 0, nil
		}
	}
	return nil, 0, nil
}

// onWholeJobs is a dependency in which ids of components are those of their jobs: one job ends as a whole.
func (e *Engine) onWholeJobs(ctx context.Context, d *api.Dependency) (*api.Dependency, error) {
	if d == nil {
		return nil, nil
	}
	whole := *d
	whole.On = slices.Clone(d.On)
	for i := range whole.On {
		c := &whole.On[i]
		if c.Kind == api.AfterSingle || e.view.job(c.Job) != nil {
			continue
		}
		j, _, err := e.componentOf(ctx, c.Job, false)
		if err != nil {
			return nil, err
		}
		if j != nil {
			c.Job = j.ID
		}
	}
	return &whole, nil
}

// withPast adds to what memory has of a reference what the history has of it. Memory was asked first: a job that leaves it in
// between is then in the store. arrays are those that were read for other references.
func (e *Engine) withPast(ctx context.Context, n *named, arrays map[int64][]*gang.Job) error {
	id := n.ref.ID
	if _, read := arrays[id]; !read {
		if len(n.jobs) > 0 {
			first := n.jobs[0]
			if n.ref.Index >= 0 || first.ArrayID != id || first.Array == nil || len(n.jobs) == first.Array.Count {
				return nil
			}
		} else if n.ref.Index < 0 {
			j, err := e.anyJob(ctx, id)
			switch {
			case err != nil || j == nil:
				return err
			case j.ArrayID != id:
				n.jobs = []*gang.Job{j}
				return nil
			}
		}
		if n.ref.Index >= 0 {
			j, sure, err := e.pastElement(ctx, n.ref)
			if err != nil {
				return err
			}
			if sure {
				if n.lacks = j == nil; j != nil {
					n.jobs = []*gang.Job{j}
				}
				return nil
			}
		}
		whole, err := e.elements(ctx, id)
		if err != nil {
			return err
		}
		arrays[id] = whole
	}
	n.jobs = arrays[id]
	if n.ref.Index >= 0 {
		i := slices.IndexFunc(n.jobs, func(j *gang.Job) bool { return j.ArrayIndex == n.ref.Index })
		if n.lacks = i < 0 && (len(n.jobs) > 0 || e.view.job(id) != nil); i < 0 {
			n.jobs = nil
		} else {
			n.jobs = n.jobs[i : i+1]
		}
	}
	return nil
}

// anyJob is a job of memory or of the store, nil where there is none.
func (e *Engine) anyJob(ctx context.Context, id int64) (*gang.Job, error) {
	if j := e.view.job(id); j != nil {
		return j, nil
	}
	j, err := e.store.Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return j, err
}

// pastElement finds one element of an array without reading all of it: their ids follow each other in the order of their indices.
// sure: what it says is so; a part of the array may be forgotten already.
func (e *Engine) pastElement(ctx context.Context, ref api.JobRef) (j *gang.Job, sure bool, err error) {
	first, err := e.anyJob(ctx, ref.ID)
	switch {
	case err != nil || first == nil || first.ArrayID != ref.ID || first.Array == nil: // it may have been forgotten before others
		return nil, false, err
	case ref.Index < first.Array.Min || ref.Index > first.Array.Max:
		return nil, true, nil
	}
	// Where it is when none is left out between the first and the last.
	mid := min((ref.Index-first.Array.Min)/max(first.Array.Step, 1), first.Array.Count-1)
	for low, high := 0, first.Array.Count-1; low <= high; mid = (low + high) / 2 {
		j, err := e.anyJob(ctx, ref.ID+int64(mid))
		switch {
		case err != nil || j == nil || j.ArrayID != ref.ID:
			return nil, false, err
		case j.ArrayIndex == ref.Index:
			return j, true, nil
		case j.ArrayIndex < ref.Index:
			low = mid + 1
		default:
			high = mid - 1
		}
	}
	return nil, true, nil
}

// elements are those of an array, in memory and in the history, by id.
func (e *Engine) elements(ctx context.Context, array int64) ([]*gang.Job, error) {
	out := slices.DeleteFunc(e.byRef(api.JobRef{ID: array, Index: -1}), func(j *gang.Job) bool { return j.ArrayID != array })
	have := make(map[int64]bool, len(out))
	for _, j := range out {
		have[j.ID] = true
	}
	old, err := e.store.Jobs(ctx, store.HistoryFilter{ArrayID: array})
	if err != nil {
		return nil, fmt.Errorf("read array %d: %w", array, err)
	}
	for _, j := range old {
		if !have[j.ID] {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *gang.Job) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// One finds the single job that a reference names; of an array its first.
func (e *Engine) One(ctx context.Context, ref api.JobRef, who Caller) (*gang.Job, error) {
	found, err := e.lookUp(ctx, []api.JobRef{ref}, who, true)
	if err != nil {
		return nil, err
	}
	if n := &found[0]; len(n.jobs) == 0 {
		return nil, e.noJob(n, true)
	}
	return found[0].jobs[0], nil
}

// numbered puts the id of what @ means in its place, where there is such a job. Somebody's last job is what he submitted last, whether it
// is in memory still or not: what @ shows and what @ cancels is the same.
func (e *Engine) numbered(ctx context.Context, refs []api.JobRef, who Caller) ([]api.JobRef, error) {
	last := 0
	for _, r := range refs {
		last = max(last, r.Last)
	}
	if last == 0 {
		return refs, nil
	}
	e.view.mu.RLock()
	ids := e.view.newest(last, who.UID)
	e.view.mu.RUnlock()
	if who.User != "" {
		old, err := e.store.Newest(ctx, who.User, last)
		if err != nil {
			return nil, err
		}
		ids = append(ids, old...)
		slices.SortFunc(ids, func(a, b int64) int { return cmp.Compare(b, a) })
		ids = slices.Compact(ids)
	}
	refs = slices.Clone(refs)
	for i, r := range refs {
		if r.Last > 0 && r.Last <= len(ids) {
			refs[i] = api.JobRef{ID: ids[r.Last-1], Index: -1}
		}
	}
	return unique(refs), nil
}

// byRef resolves one reference among the jobs in memory: an array's id means all of it.
func (e *Engine) byRef(ref api.JobRef) []*gang.Job { return e.byRefs([]api.JobRef{ref})[0] }

// byRefs resolves references, each at its place in the answer. Many may be of one array, which is walked once for all of them.
func (e *Engine) byRefs(refs []api.JobRef) [][]*gang.Job {
	out := make([][]*gang.Job, len(refs))
	v := &e.view
	v.mu.RLock()
	defer v.mu.RUnlock()
	found := map[int64][]*gang.Job{}          // by the id that was named
	elements := map[int64]map[int]*gang.Job{} // of arrays, by index
	of := func(id int64) []*gang.Job {
		jobs, there := found[id]
		if !there {
			jobs = v.whole(id)
			found[id] = jobs
		}
		return jobs
	}
	for i, ref := range refs {
		switch {
		case ref.Last > 0: // there are not so many
		case ref.Index < 0:
			out[i] = of(ref.ID)
		default:
			if elements[ref.ID] == nil {
				elements[ref.ID] = map[int]*gang.Job{}
				for _, j := range of(ref.ID) {
					if j.ArrayID == ref.ID {
						elements[ref.ID][j.ArrayIndex] = j
					}
				}
			}
			if j := elements[ref.ID][ref.Index]; j != nil {
				out[i] = []*gang.Job{j}
			}
		}
	}
	return out
}

// newest are the ids of a user's newest n submissions, the newest first; an array counts once.
func (v *view) newest(n int, uid uint32) (ids []int64) {
	for i := len(v.jobs) - 1; i >= 0 && len(ids) < n; i-- {
		if j := v.jobs[i].job; j != nil && j.UID == uid && (j.ArrayID == 0 || j.ArrayID == j.ID) {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// whole gives all of an array by its id, or the job of that number.
func (v *view) whole(id int64) []*gang.Job {
	j := v.get(id).job
	if j != nil && j.ArrayID != id {
		return []*gang.Job{j}
	}
	// The elements of an array have consecutive ids from the array's own on; some may
	// have left memory.
	var out []*gang.Job
	for j := range v.from(id) {
		if j.ArrayID != id {
			break
		}
		out = append(out, j)
	}
	return out
}

// noJob is the answer for a reference that names no job in memory and, with past, none in the history either.
func (e *Engine) noJob(n *named, past bool) *api.Error {
	ref, set := n.ref, &e.conf().Settings
	err := &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("no job %s", ref), Hint: "list jobs with gqueue, ended ones with gacct"}
	limits := ""
	if set.HistoryKeep > 0 {
		limits = fmt.Sprintf("jobs are kept for %s after their end", when.Words(set.HistoryKeep))
	}
	if set.HistoryJobs > 0 {
		if limits != "" {
			limits += ", and of all "
		}
		limits += fmt.Sprintf("the %d jobs that ended last are kept", set.HistoryJobs)
	}
	switch {
	case ref.Last == 1:
		err.Message, err.Hint = "no job @: none that you have submitted is known here", "list everybody's with gqueue"
	case ref.Last > 0:
		err.Message, err.Hint = fmt.Sprintf("no job %s: not so many that you have submitted are known here",
			ref), "list yours with gqueue --me, ended ones with gacct"
	case !past || limits == "" || ref.ID <= 0 || ref.ID >= e.view.next() || n.lacks:
	default:
		err.Message, err.Hint = fmt.Sprintf("no job %s any more: %s", ref, limits), ""
		if e.conf().Archive != nil {
			err.Hint = "its line may be in the archive of the site"
		}
	}
	return err
}
