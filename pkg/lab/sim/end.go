package sim

import (
	"time"
)

// budget is how long after the faults everything has to be over: what all jobs would take
// one after the other, each with all its runs, and once every time-out there is.
func (r *run) budget() time.Duration {
	set := &r.set
	d := 2 * (set.Lease + set.NodeTimeout + set.Grace + set.DrainSlack + set.StartTimeout + set.RetryBackoffMax)
	for i := range r.sc.Jobs {
		j := &r.sc.Jobs[i]
		b := &j.Runs
		once := max(b.For, 5*time.Second) + time.Duration(max(j.Ranks, 1))*b.Skew + max(j.Grace, set.Grace) + j.Lead + set.StartTimeout + j.Import
		for k := range j.Steps {
			once += j.Steps[k].After + max(j.Steps[k].Runs.For, 5*time.Second) + time.Duration(max(j.Steps[k].Tasks, 1))*j.Steps[k].Runs.Skew +
				launchFor
		}
		if j.StallTimeout > 0 {
			once += j.StallTimeout + silentFor
		}
		for k := range r.sc.Nodes {
			once += 2 * r.sc.Nodes[k].Epilog // again where its daemon died in it
		}
		runs := j.MaxRetries + set.LaunchRetries + set.NodeLostRetries + set.StallRetries + 2
		if j.TotalTime > 0 && j.TimeLimit > 0 {
			runs += int(j.TotalTime/j.TimeLimit) + 1
		}
		d += time.Duration(max(j.Array, 1)*runs) * (once + set.RetryBackoffMax)
	}
	return d
}

// end closes what the run had open.
func (r *run) end() {
	g := r.gangd
	if g == nil {
		return
	}
	if r.failed == nil && r.sc.History != (History{}) && !r.sc.Lean {
		r.truth.remembered(g)
		r.truth.forgotten(g)
	}
	if r.failed == nil {
		if bad, err := g.store.Verify(r.ctx); err != nil || len(bad) > 0 {
			r.fail("store", "%q, %v", bad, err)
		}
	}
	g.dead = true
	_ = g.store.Close()
}
