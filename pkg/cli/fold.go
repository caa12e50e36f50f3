package cli

import (
	"slices"

	"gangd/pkg/api"
)

// foldRows makes one row of the pending elements of an array that wait for the same
// reason, as squeue does: 12_[0-15%4]. An element that has run before stands alone,
// because its place and its count of restarts are its own.
func foldRows(jobs []api.Job, expand bool) []row {
	type key struct {
		id     int64
		reason string
		prio   int64
	}
	rows := make([]row, 0, len(jobs))
	at := map[key]int{}
	for i := range jobs {
		j := &jobs[i]
		if expand || j.ArrayIndex == nil || j.State != api.JobPending || j.Epoch > 0 {
			rows = append(rows, row{Job: j})
			continue
		}
		k := key{j.ArrayJobID, j.Reason, j.Priority}
		n, seen := at[k]
		if !seen {
			at[k] = len(rows)
			rows = append(rows, row{Job: j, folded: []int{*j.ArrayIndex}})
			continue
		}
		r := &rows[n]
		r.folded = append(r.folded, *j.ArrayIndex)
		if *j.ArrayIndex < *r.ArrayIndex {
			r.Job = j
		}
	}
	for i := range rows {
		switch {
		case len(rows[i].folded) == 1:
			rows[i].folded = nil
		case rows[i].folded != nil:
			slices.Sort(rows[i].folded)
		}
	}
	return rows
}
