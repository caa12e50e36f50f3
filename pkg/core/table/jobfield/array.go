package jobfield

import (
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

// arrayTask is 3 for an element, 0-15%4 for folded ones.
func arrayTask(r *Row) string {
	switch {
	case r.Folded != nil && r.ArrayLimit > 0:
		return r.indices() + "%" + strconv.Itoa(r.ArrayLimit)
	case r.Folded != nil:
		return r.indices()
	case r.ArrayIndex != nil:
		return strconv.Itoa(*r.ArrayIndex)
	}
	return "N/A"
}

// indices is the list of folded elements, as long as the view allows: squeue ends a longer
// one in dots.
func (r *Row) indices() string {
	s := IndexRanges(r.Folded)
	if r.View == nil {
		return s
	}
	return CutRanges(s, r.View.BitLen)
}

// CutRanges ends a list of indices that has so many bytes or more in dots; 0: none is too long.
func CutRanges(s string, most int) string {
	if most == 0 || len(s) < most {
		return s
	}
	return s[:max(most-4, 0)] + "..."
}

// IndexRanges writes sorted numbers as 0-3,7, and numbers that are all the same distance apart
// as 0-100:10.
func IndexRanges(v []int) string {
	if step := evenStep(v); step > 1 {
		return strconv.Itoa(v[0]) + "-" + strconv.Itoa(v[len(v)-1]) + ":" + strconv.Itoa(step)
	}
	return hostlist.Ranges(v)
}

// What Slurm writes with a step: 1,3,5 and 0,2,4,6,8,10 it writes as they are, 0-12:2 and
// 0-50:10 not (seen on 22.05).
const (
	stepElements = 6  // at least
	stepSpan     = 10 // more than this between the first and the last
)

func evenStep(v []int) int {
	if len(v) < stepElements || v[len(v)-1]-v[0] <= stepSpan {
		return 0
	}
	step := v[1] - v[0]
	for i := 2; i < len(v); i++ {
		if v[i]-v[i-1] != step {
			return 0
		}
	}
	return step
}

// IDText is a job's id as people write it: 12, 12_3 for an element of an array, or 12+1 for a component of a
// heterogeneous job.
func IDText(j *api.Job) string {
	if j.Component != nil {
		return strconv.FormatInt(j.JobID, 10) + "+" + strconv.Itoa(*j.Component)
	}
	if j.ArrayIndex != nil {
		return strconv.FormatInt(j.ArrayJobID, 10) + "_" + strconv.Itoa(*j.ArrayIndex)
	}
	return strconv.FormatInt(j.JobID, 10)
}
