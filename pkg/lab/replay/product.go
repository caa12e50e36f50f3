package replay

import (
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// Product is the production scheduler, called as the engine calls it.
type Product struct {
	policy  order.Policy
	planner sched.Planner
	ledger  *order.Ledger
	view    given.View
	next    time.Time
}

// NewProduct plans with a site's policy.
func NewProduct(policy order.Policy) *Product {
	p := &Product{policy: policy, ledger: order.NewLedger(policy.HalfLife)}
	p.view.Queue = order.NewQueue(&p.policy, p.ledger)
	return p
}

// Begin is part of [Planner].
func (p *Product) Begin(nodes []*cluster.Node) { p.view.Nodes = nodes }

// Waits is part of [Planner].
func (p *Product) Waits(c *order.Candidate) { p.view.Queue.Insert(c) }

// Leaves is part of [Planner].
func (p *Product) Leaves(job int64) { p.view.Queue.Remove(job) }

// Runs is part of [Planner].
func (p *Product) Runs(job int64, r *order.Running) {
	p.view.Running = order.PutRunning(p.view.Running, job, r)
}

// Learns is part of [Planner].
func (p *Product) Learns(u *order.Usage) { p.ledger.Add(*u) }

// Next is part of [Planner].
func (p *Product) Next() time.Time { return p.next }

// Plan is part of [Planner].
func (p *Product) Plan(now time.Time) Decision {
	p.view.Queue.Refresh(now)
	plan := p.planner.Make(now, &p.view, &p.policy)
	p.view.Backfills, p.next = plan.Backfills, plan.Next
	d := Decision{Starts: plan.Starts, Again: p.policy.MaxStarts > 0 && len(plan.Starts) >= p.policy.MaxStarts}
	for _, s := range plan.Stops {
		d.Preempt = append(d.Preempt, Preempt{Job: s.Job, For: s.For})
		d.Again = true // the places are free at once
	}
	return d
}
