package kept

import (
	"time"

	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// plans is what is remembered from plan to plan.
type plans struct {
	fit fit.Finder
	mem Memory
}

// plan is what is kept at the beginning of a plan.
func (ps *plans) plan(now time.Time, v *given.View, p *order.Policy) *Backfills {
	if !ps.fit.Begin(v.Nodes, p.Switches, v.Queue.Ledger().Typical(), ps.mem.Changed) {
		ps.mem.Reset(v.Nodes)
	}
	ps.mem.Forget(v.Backfills)
	g := &given.Facts{Now: now, View: v, Policy: p, Depth: max(1, p.BackfillDepth), Reservations: given.NewWindows(v, now), Front: map[int64]order.Turn{}}
	kp := New(g, &ps.fit, &ps.mem)
	kp.Restore()
	return &kp
}

// reservation reserves nodes of [testNodes] from so long after plantest.Epoch0, for so long.
func window(name string, from, length time.Duration, nodes ...string) given.Reservation {
	return given.Reservation{Name: name, Nodes: nodes, Start: plantest.Epoch0.Add(from), End: plantest.Epoch0.Add(from + length), ClearBy: plantest.Epoch0.Add(from - 30*time.Second)}
}
