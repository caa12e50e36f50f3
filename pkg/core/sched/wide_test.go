package sched

import (
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// A gang of half of all cards that has waited for four times its time limit starts where it fits, before kept places.
func TestWideGangStartsWhereItFits(t *testing.T) {
	limit := 10 * time.Hour
	for name, c := range map[string]struct {
		waited  time.Duration
		ranks   int
		limit   time.Duration
		preempt order.Preempt
		noTurns bool
		wide    bool
	}{
		"long enough":             {waited: 4 * limit, ranks: 2, limit: limit, wide: true},
		"not long enough":         {waited: 4*limit - time.Minute, ranks: 2, limit: limit},
		"without a limit":         {waited: 4 * limit, ranks: 2},
		"less than half":          {waited: 4 * limit, ranks: 1, limit: limit},
		"in a site without turns": {waited: 4 * limit, ranks: 2, limit: limit, noTurns: true},
		"where others give way":   {waited: 4 * limit, ranks: 2, limit: limit, preempt: order.PreemptService},
	} {
		t.Run(name, func(t *testing.T) {
			p := &order.Policy{Order: order.OrderService, GuardAfter: 48 * time.Hour, BackfillDepth: 8, Preempt: c.preempt}
			if c.noTurns {
				p.GuardAfter = 0
			}
			nodes := plantest.Nodes(3, 16, 4, 80)
			if c.ranks == 2 {
				nodes = nodes[:2]
			} else {
				fill(nodes, func(n, _ int) bool { return n == 0 })
			}
			q := order.NewQueue(p, order.NewLedger(0))
			small := plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 2})
			small.TimeLimit, small.Submit = time.Hour, plantest.Epoch0
			big := plantest.Candidate(2, api.Spec{Size: c.ranks, GPUsPerRank: 4})
			big.TimeLimit, big.Submit = c.limit, plantest.Epoch0.Add(-c.waited)
			q.Insert(small)
			q.Insert(big)
			kept := given.Backfill{Job: 1, SearchedAt: plantest.Epoch0, Slots: []cluster.Slot{{Node: "n00001", Cards: []string{"n00001-0", "n00001-1"}}}}
			plan := planned(t, plantest.Epoch0, &given.View{Nodes: nodes, Queue: q, Backfills: []given.Backfill{kept}}, p)
			want := int64(1)
			if c.wide {
				want = 2
			}
			if len(plan.Starts) != 1 || plan.Starts[0].Job != want {
				t.Fatalf("%+v, want job %d", plan.Starts, want)
			}
		})
	}
}

// It is started in its time, and keeps no places then.
func TestWideGangIsLookedAtInTime(t *testing.T) {
	p := &order.Policy{Order: order.OrderService, GuardAfter: 48 * time.Hour, BackfillDepth: 8}
	q := order.NewQueue(p, order.NewLedger(0))
	big := plantest.Candidate(2, api.Spec{Size: 2, GPUsPerRank: 4})
	big.TimeLimit, big.Submit = 13*time.Hour, plantest.Epoch0.Add(-51*time.Hour) // the guard's time is over
	q.Insert(big)
	nodes := plantest.Nodes(3, 16, 4, 80)
	slots := []cluster.Slot{{Node: "n00002", Cards: []string{"n00002-0", "n00002-1", "n00002-2", "n00002-3"}}, {Node: "n00003", Cards: []string{"n00003-0", "n00003-1", "n00003-2", "n00003-3"}}}
	v := &given.View{Nodes: nodes, Queue: q, Backfills: []given.Backfill{{Job: 2, Slots: slots, SearchedAt: plantest.Epoch0}}}
	plan := planned(t, plantest.Epoch0.Add(2*time.Hour), v, p)
	if len(plan.Starts) != 1 || len(plan.Backfills) != 0 || plan.Starts[0].Turn != order.TurnLong {
		t.Fatalf("%+v, %+v", plan.Starts, plan.Backfills)
	}
}
