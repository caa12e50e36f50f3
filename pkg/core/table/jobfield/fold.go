package jobfield

import (
	"cmp"
	"slices"

	"gangd/pkg/api"
)

// Fold makes one row of the pending elements of an array that are as they were submitted, as
// squeue does: 12_[0-15%4]. An element that has run before stands alone, because its place and
// its count of restarts are its own, and so does one that was changed by itself. One that is
// held does not, but in Records.
type Fold struct {
	Expand bool // one row for each element
	// ByReason keeps elements apart that wait for different reasons, and shows a single one
	// by its own id. squeue does neither: it knows one reason for all of them.
	ByReason bool
	// Records keeps what is held apart from what is not, as in Slurm's own records, which
	// scontrol and sacct show.
	Records bool
	View    *View
}

// alike is what elements have in common that share a row.
type alike struct {
	array                                                    int64
	priority, nice, limit, deadline                          int64
	name, partition, comment, constraint, dependency, reason string
	held                                                     bool
}

func (f Fold) alike(j *api.Job) alike {
	k := alike{array: j.ArrayJobID, priority: j.Priority, nice: j.Nice, limit: j.TimeLimitSeconds, deadline: j.Deadline.Unix(),
		name: j.Name, partition: j.Partition, comment: j.Comment, constraint: j.Constraint, dependency: j.Dependency}
	if f.ByReason {
		k.reason = j.Reason
	}
	k.held = f.Records && j.Held != ""
	return k
}

// folds: the element has no row of its own by what it is.
func (f Fold) folds(j *api.Job) bool {
	return !f.Expand && j.ArrayIndex != nil && j.State == api.JobPending && j.Epoch == 0
}

// kept is for each array what most of its elements have in common, the first of several: the
// others were split off it, and squeue shows each of them by itself.
func (f Fold) kept(jobs []api.Job) map[int64]alike {
	count := map[alike]int{}
	var order []alike
	for i := range jobs {
		if j := &jobs[i]; f.folds(j) {
			k := f.alike(j)
			if count[k]++; count[k] == 1 {
				order = append(order, k)
			}
		}
	}
	out := map[int64]alike{}
	for _, k := range order {
		if has, ok := out[k.array]; !ok || count[k] > count[has] {
			out[k.array] = k
		}
	}
	return out
}

// Rows makes the rows of jobs, which they point into.
func (f Fold) Rows(jobs []api.Job) []Row {
	kept := f.kept(jobs)
	rows := make([]Row, 0, len(jobs))
	at := map[alike]int{}
	for i := range jobs {
		j := &jobs[i]
		if !f.folds(j) {
			rows = append(rows, Row{Job: j, View: f.View})
			continue
		}
		k := f.alike(j)
		if !f.ByReason && k != kept[k.array] {
			rows = append(rows, Row{Job: j, View: f.View})
			continue
		}
		n, seen := at[k]
		if !seen {
			at[k] = len(rows)
			rows = append(rows, Row{Job: j, Folded: []int{*j.ArrayIndex}, Reasons: []string{cmp.Or(j.Reason, "None")}, View: f.View})
			continue
		}
		r := &rows[n]
		r.Folded = append(r.Folded, *j.ArrayIndex)
		if why := cmp.Or(j.Reason, "None"); !slices.Contains(r.Reasons, why) {
			r.Reasons = append(r.Reasons, why)
		}
		if *j.ArrayIndex < *r.ArrayIndex {
			r.Job = j
		}
	}
	for i := range rows {
		switch {
		case f.ByReason && len(rows[i].Folded) == 1:
			rows[i].Folded = nil
		case rows[i].Folded != nil:
			slices.Sort(rows[i].Folded)
		}
	}
	return rows
}
