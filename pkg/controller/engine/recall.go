package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// maxConditions bounds one dependency: a chain over every job of a campaign is a mistake
// that an array or afterany of the last one says better.
const maxConditions = 1000

// maxWaits bounds the conditions of one submission, each counted for each element of its array: the core weighs
// them all in one round, and keeps for each who waits for it.
const maxWaits = 50_000

// checkDependency refuses what can't be weighed; what is said twice counts once. So many jobs are to have it.
func checkDependency(d *api.Dependency, jobs int) error {
	if d == nil {
		return nil
	}
	if n := len(d.On); n == 0 || n > maxConditions {
		return api.Errorf(api.CodeInvalid, "a dependency on %d conditions: want 1 to %d", n, maxConditions).About(api.ReasonDependency, "")
	}
	said := map[string]bool{}
	d.On = slices.DeleteFunc(slices.Clone(d.On), func(c api.Condition) bool {
		text := c.String()
		again := said[text]
		said[text] = true
		return again
	})
	if n := len(d.On); n*jobs > maxWaits {
		return &api.Error{Code: api.CodeInvalid, Reason: api.ReasonDependency, Message: fmt.Sprintf("a dependency on %d conditions for each "+
			"of %d elements: want at most %d in all", n, jobs, maxWaits),
			Hint: "let one small job wait for them, and the array for that job"}
	}
	for i := range d.On {
		c := &d.On[i]
		switch {
		case !slices.Contains(api.DependencyKinds, c.Kind):
			return api.Errorf(api.CodeInvalid, "dependency kind %q is not known", c.Kind).About(api.ReasonDependency, c.String())
		case (c.Kind == api.AfterSingle) != (c.Job == 0), c.Job < 0, c.Index != nil && *c.Index < 0, c.Delay < 0:
			return api.Errorf(api.CodeInvalid, "dependency %s: want a kind and a job, for singleton none", c).About(api.ReasonDependency, c.String())
		}
	}
	return nil
}

// recall reads the jobs that a dependency is judged by and that have left memory: have says
// which are there. Of an array it takes every element. More than so many are too many, 0: none are.
func recall(ctx context.Context, st store.Store, d *api.Dependency, have func(id int64) *gang.Job, most int) ([]*gang.Job, error) {
	if d == nil {
		return nil, nil
	}
	var out []*gang.Job
	asked := map[int64]bool{0: true}
	for i := range d.On {
		id := d.On[i].Job
		if asked[id] {
			continue
		}
		asked[id] = true
		j := have(id)
		if j == nil {
			var err error
			if j, err = st.Job(ctx, id); errors.Is(err, store.ErrNotFound) {
				continue // refused by the core, in its words
			} else if err != nil {
				return nil, fmt.Errorf("read job %d: %w", id, err)
			}
			out = append(out, j)
		}
		if j.Array == nil || j.ArrayID != id {
			continue
		}
		rest, err := recallElements(ctx, st, j, have)
		if err != nil {
			return nil, err
		}
		if out = append(out, rest...); most > 0 && len(out) > most {
			return nil, &api.Error{Code: api.CodeInvalid, Reason: api.ReasonDependency, Message: fmt.Sprintf("a dependency on more than %d "+
				"jobs that have ended, each element of an array counted", most), Hint: "leave out what has ended long ago"}
		}
	}
	return out, nil
}

func recallElements(ctx context.Context, st store.Store, first *gang.Job, have func(id int64) *gang.Job) ([]*gang.Job, error) {
	missing := 0
	for id := first.ID + 1; id < first.ID+int64(first.Array.Count); id++ {
		if have(id) == nil {
			missing++
		}
	}
	if missing == 0 {
		return nil, nil
	}
	all, err := st.Jobs(ctx, store.HistoryFilter{ArrayID: first.ID})
	if err != nil {
		return nil, fmt.Errorf("read array %d: %w", first.ID, err)
	}
	return slices.DeleteFunc(all, func(j *gang.Job) bool { return j.ID == first.ID || have(j.ID) != nil }), nil
}

// recallSaved completes what was loaded at start by the jobs that waiting ones depend on.
func recallSaved(ctx context.Context, st store.Store, saved *gang.Snapshot) error {
	have := make(map[int64]*gang.Job, len(saved.Jobs))
	for _, j := range saved.Jobs {
		have[j.ID] = j
	}
	for _, j := range slices.Clone(saved.Jobs) {
		if j.Waits == "" || j.Verdict != nil {
			continue
		}
		more, err := recall(ctx, st, j.Dependency, func(id int64) *gang.Job { return have[id] }, 0)
		if err != nil {
			return err
		}
		for _, m := range more {
			if have[m.ID] == nil {
				have[m.ID] = m
				saved.Jobs = append(saved.Jobs, m)
			}
		}
	}
	return nil
}

// neverSatisfied is Slurm's word for a dependency that can't be met any more.
const neverSatisfied = "DependencyNeverSatisfied"

// dependencyReason says what a job still waits for.
func dependencyReason(j *gang.Job) (word, text string) {
	if j.Hopeless {
		return neverSatisfied, fmt.Sprintf("its dependency can never be met: %s; gcancel %d ends it", j.Waits, j.ID)
	}
	return "Dependency", "waits for " + strings.ReplaceAll(j.Waits, gang.Unfulfilled, "")
}
