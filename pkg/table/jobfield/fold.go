package jobfield

import (
	"slices"

	"gangd/pkg/api"
)

// Fold makes one row of the pending elements of an array, as squeue does: 12_[0-15%4]. An
// element that has run before stands alone, because its place and its count of restarts are
// its own.
type Fold struct {
	Expand bool // one row for each element
	// ByReason keeps elements apart that wait for different reasons, and shows a single one
	// by its own id. squeue does neither: it knows one reason for all of them.
	ByReason bool
	View     *View
}

// Rows makes the rows of jobs, which they point into.
func (f Fold) Rows(jobs []api.Job) []Row {
	type key struct {
		id     int64
		reason string
		prio   int64
	}
	rows := make([]Row, 0, len(jobs))
	at := map[key]int{}
	for i := range jobs {
		j := &jobs[i]
		if f.Expand || j.ArrayIndex == nil || j.State != api.JobPending || j.Epoch > 0 {
			rows = append(rows, Row{Job: j, View: f.View})
			continue
		}
		k := key{id: j.ArrayJobID}
		if f.ByReason {
			k.reason, k.prio = j.Reason, j.Priority
		}
		n, seen := at[k]
		if !seen {
			at[k] = len(rows)
			rows = append(rows, Row{Job: j, Folded: []int{*j.ArrayIndex}, View: f.View})
			continue
		}
		r := &rows[n]
		r.Folded = append(r.Folded, *j.ArrayIndex)
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
