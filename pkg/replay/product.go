package replay

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/cluster"
	"gangd/pkg/sched"
)

// Product is the production scheduler, called as the engine calls it.
type Product struct {
	policy  sched.Policy
	planner sched.Planner
	ledger  *sched.Ledger
	view    sched.View
}

// NewProduct plans with a site's policy.
func NewProduct(policy sched.Policy) *Product {
	p := &Product{policy: policy, ledger: sched.NewLedger(policy.HalfLife)}
	p.view.Queue = sched.NewQueue(&p.policy, p.ledger)
	return p
}

// Begin is part of [Planner].
func (p *Product) Begin(nodes []*cluster.Node) { p.view.Nodes = nodes }

// Waits is part of [Planner].
func (p *Product) Waits(c *sched.Candidate) { p.view.Queue.Insert(c) }

// Leaves is part of [Planner].
func (p *Product) Leaves(job int64) { p.view.Queue.Remove(job) }

func (p *Product) find(job int64) (int, bool) {
	return slices.BinarySearchFunc(p.view.Running, job, func(r *sched.Running, job int64) int { return cmp.Compare(r.Job, job) })
}

// Runs is part of [Planner].
func (p *Product) Runs(r *sched.Running) {
	at, _ := p.find(r.Job)
	p.view.Running = slices.Insert(p.view.Running, at, r)
}

// Stops is part of [Planner].
func (p *Product) Stops(job int64, u *sched.Used) {
	if at, found := p.find(job); found {
		p.view.Running = slices.Delete(p.view.Running, at, at+1)
	}
	p.ledger.Add(*u)
}

// Next is part of [Planner].
func (p *Product) Next() time.Time { return time.Time{} }

// Plan is part of [Planner].
func (p *Product) Plan(now time.Time) Decision {
	p.view.Queue.Refresh(now)
	plan := p.planner.Make(now, &p.view, &p.policy)
	p.view.Claims = plan.Claims
	d := Decision{Starts: plan.Starts, Again: p.policy.MaxStarts > 0 && len(plan.Starts) >= p.policy.MaxStarts}
	for _, s := range plan.Stops {
		d.Preempt = append(d.Preempt, Preempt{Job: s.Job, For: s.For})
		d.Again = true // the places are free at once
	}
	return d
}
