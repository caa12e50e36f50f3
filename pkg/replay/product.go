package replay

import (
	"time"

	"gangd/pkg/cluster"
	"gangd/pkg/sched"
)

// Product is the production scheduler.
type Product struct {
	policy sched.Policy
	queue  sched.Queue
	view   sched.View
}

// NewProduct plans with a site's policy.
func NewProduct(p sched.Policy) *Product { return &Product{policy: p} }

// Begin is part of [Planner].
func (p *Product) Begin(nodes []*cluster.Node) { p.view.Nodes = nodes }

// Waits is part of [Planner].
func (p *Product) Waits(c *sched.Candidate) { p.queue.Insert(c) }

// Leaves is part of [Planner].
func (p *Product) Leaves(job int64) { p.queue.Remove(job) }

// Next is part of [Planner].
func (p *Product) Next() time.Time { return time.Time{} }

// Plan is part of [Planner].
func (p *Product) Plan(now time.Time) Decision {
	p.view.Queue = p.queue.Slice()
	plan := sched.Make(now, &p.view, &p.policy)
	p.view.Claims = plan.Claims
	return Decision{Starts: plan.Starts}
}
