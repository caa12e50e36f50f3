package sacct

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/table/jobfield"
)

// choose gives the lines that a call shows, of all records of the jobs that were asked for.
func (a *ask) choose(details []*api.JobDetail, now time.Time) []*record {
	for i := range a.jobs {
		switch a.wholeHet {
		case "yes":
			a.jobs[i].component = -1
		case "no":
			a.jobs[i].component = max(0, a.jobs[i].component)
		}
	}
	var out []*record
	for _, d := range details {
		if !a.wantsJob(&d.Job) {
			continue
		}
		for _, r := range recordsOf(d, now) {
			r.view = view{units: a.units, plain: a.plain, truncate: a.truncated, from: a.from, end: a.to}
			if a.wants(r) {
				out = append(out, r)
			}
		}
	}
	return fold(out)
}

// wantsJob looks at what is the same on all lines of a job.
func (a *ask) wantsJob(j *api.Job) bool {
	in := func(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }
	return !a.nothing && in(a.accounts, j.Account) && in(a.users, j.User) &&
		(len(a.groups) == 0 || slices.Contains(a.groups, j.GID)) &&
		j.InPartition(a.partitions) &&
		(len(a.features) == 0 || slices.ContainsFunc(a.features, func(f string) bool { return strings.Contains(j.Constraint, f) })) &&
		a.limit.holds((j.TimeLimitSeconds+59)/60)
}

// wants looks at the line.
func (a *ask) wants(r *record) bool {
	whole := &record{job: r.job, attempt: r.attempt, last: r.last, now: r.now}
	switch {
	case len(a.names) > 0 && !slices.Contains(a.names, r.job.Name): // each component of a heterogeneous job has its own
		return false
	case r.step != nil && a.allocations && !a.namesStep(r.job):
		return false
	case !r.last && !a.duplicates:
		return false
	case !a.cpus.holds(whole.cpus()), !a.nodeCount.holds(whole.nodes()):
		return false
	case len(a.nodes) > 0 && (r.attempt == nil || !slices.ContainsFunc(r.attempt.Nodes,
		func(n string) bool { return slices.Contains(a.nodes, n) })):
		return false
	case len(a.jobs) > 0 && !slices.ContainsFunc(a.jobs, func(ref jobRef) bool { return ref.means(r) }):
		return false
	}
	return a.inWindow(whole)
}

func (a *ask) namesStep(j *api.Job) bool {
	return slices.ContainsFunc(a.jobs, func(ref jobRef) bool { return ref.step != "" && ref.names(j) })
}

func (ref jobRef) names(j *api.Job) bool {
	switch {
	case ref.component > 0 && j.Component == nil, ref.component >= 0 && j.Component != nil && *j.Component != ref.component:
		return false
	case ref.Index >= 0:
		return j.ArrayJobID == ref.ID && j.ArrayIndex != nil && *j.ArrayIndex == ref.Index
	default:
		return j.JobID == ref.ID || j.ArrayJobID == ref.ID || j.ComponentID == ref.ID
	}
}

func (ref jobRef) means(r *record) bool {
	if !ref.names(r.job) {
		return false
	}
	return ref.step == "" || r.step != nil && r.step.StepID == ref.step
}

// inWindow: the job was there in the window, in one of the states if some were asked for.
func (a *ask) inWindow(r *record) bool {
	began, ended := r.start(), r.endTime()
	if len(a.states) == 0 {
		return !r.job.SubmitTime.After(a.to) && (ended.IsZero() || !ended.Before(a.from))
	}
	for _, s := range a.states {
		switch s {
		case string(api.JobPending):
			until := cmp.Or(began, ended)
			if !r.job.SubmitTime.After(a.to) && (until.IsZero() || !until.Before(a.from)) {
				return true
			}
		case string(api.JobRunning):
			if !began.IsZero() && !began.After(a.to) && (ended.IsZero() || !ended.Before(a.from)) {
				return true
			}
		default:
			if r.plainState() == s && !ended.IsZero() && !ended.Before(a.from) && !ended.After(a.to) {
				return true
			}
		}
	}
	return false
}

// fold makes one line of the elements of an array that have not begun and are as they were submitted, as
// squeue does.
func fold(all []*record) []*record {
	var jobs []api.Job
	var whose []*record
	for _, r := range all {
		if r.waits() && r.job.ArrayIndex != nil && r.job.Epoch == 0 {
			jobs, whose = append(jobs, *r.job), append(whose, r)
		}
	}
	in := map[*api.Job][]int{}
	for _, row := range (jobfield.Fold{Records: true}).Rows(jobs) {
		in[row.Job] = row.Folded
	}
	gone := map[*record]bool{}
	for i, r := range whose {
		folded, shown := in[&jobs[i]]
		gone[r] = !shown
		if len(folded) > 1 {
			r.folded = slices.Sorted(slices.Values(folded))
		}
	}
	return slices.DeleteFunc(all, func(r *record) bool { return gone[r] })
}
