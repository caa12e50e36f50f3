package sched

import (
	"testing"

	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// TestPlansForgetBackfills: the last of many plans of one view remembers the grants of no more backfills than the second.
func TestPlansForgetBackfills(t *testing.T) {
	nodes := plantest.Nodes(40, 8, 4, 80)
	fill(nodes, func(n, card int) bool { return n%4 == 0 && card == 0 })
	q := order.NewQueue(&order.Policy{}, nil)
	for job := range 12 {
		c := plantest.Lasting(int64(job+1), 1+job%4, 0)
		c.Submit = plantest.Epoch0.Add(-1)
		q.Insert(c)
	}
	var m Planner
	v, second := &given.View{Nodes: nodes, Queue: q}, 0
	for plan := range 50 {
		v.Backfills = m.Make(plantest.Epoch0, v, &order.Policy{BackfillDepth: 8}).Backfills
		if plan == 1 {
			second = m.kept.Remembers()
		}
	}
	if got := m.kept.Remembers(); got != second || len(v.Backfills) == 0 {
		t.Errorf("%v, after the second plan %v; %d kept", got, second, len(v.Backfills))
	}
}
