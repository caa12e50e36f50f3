package guard

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// TestWideGangsInTurn: who is wide and waited long, by tier and then by the longest wait, where half of the cards are free; the
// turn of another is told.
func TestWideGangsInTurn(t *testing.T) {
	wide := func(job int64, cards, hours int, change func(c *order.Candidate)) *order.Candidate {
		c := plantest.Candidate(job, api.Spec{Size: cards, GPUsPerRank: 1})
		c.TimeLimit, c.Submit = time.Hour, plantest.Epoch0.Add(-time.Duration(hours)*time.Hour)
		if change != nil {
			change(c)
		}
		return c
	}
	lower := func(c *order.Candidate) { c.Priority = -1 }
	for _, tt := range []struct {
		name string
		free int // of 8 cards
		p    order.Policy
		wait []*order.Candidate
		want string
		next time.Duration
	}{
		{"the longest wait", 8, order.Policy{}, []*order.Candidate{wide(1, 4, 5, nil), wide(2, 5, 6, nil), wide(3, 8, 4, nil)}, "[2 1 3]", 0},
		{"by tier", 8, order.Policy{}, []*order.Candidate{wide(1, 4, 9, lower), wide(2, 5, 6, nil), wide(3, 8, 7, nil)}, "[3 2 1]", 0},
		{"less than half", 8, order.Policy{}, []*order.Candidate{wide(1, 3, 9, nil)}, "[]", 0},
		{"without a limit", 8, order.Policy{}, []*order.Candidate{wide(1, 8, 9, func(c *order.Candidate) { c.TimeLimit = 0 })}, "[]", 0},
		{"soon", 8, order.Policy{}, []*order.Candidate{wide(1, 4, 3, nil), wide(2, 5, 2, nil)}, "[]", time.Hour},
		{"since it could have started", 8, order.Policy{}, []*order.Candidate{wide(1, 4, 9, func(c *order.Candidate) { c.Eligible = plantest.Epoch0.Add(-time.Hour) })}, "[]", 3 * time.Hour},
		{"half is free", 4, order.Policy{}, []*order.Candidate{wide(1, 4, 4, nil)}, "[1]", 0},
		{"in another order", 8, order.Policy{Order: order.OrderFair}, []*order.Candidate{wide(1, 4, 5, nil)}, "[]", 0},
		{"with preemption", 8, order.Policy{Preempt: order.PreemptTier}, []*order.Candidate{wide(1, 4, 5, nil), wide(2, 5, 2, nil)}, "[]", 0},
		{"without turns", 8, order.Policy{GuardAfter: -1}, []*order.Candidate{wide(1, 4, 5, nil)}, "[]", 0},
		{"less is free", 3, order.Policy{}, []*order.Candidate{wide(1, 4, 4, nil), wide(2, 5, 2, nil)}, "[]", 0},
	} {
		p := &tt.p
		p.GuardAfter = max(0, cmp.Or(p.GuardAfter, 1000*time.Hour))
		q := order.NewQueue(p, order.NewLedger(0))
		for _, c := range tt.wait {
			q.Insert(c)
		}
		n := plantest.Node("n1", 64, 8, 80)
		for i := tt.free; i < 8; i++ {
			n = plantest.Run(n, int64(90+i), 0, i)
		}
		g := &given.Facts{Now: plantest.Epoch0, View: &given.View{Nodes: []*cluster.Node{n}, Queue: q}, Policy: p}
		f := new(fit.Finder)
		f.Begin(g.View.Nodes, nil, nil, nil)
		kp := kept.New(g, f, new(kept.Memory))
		gd := &Guard{Facts: g, kept: &kp}
		gd.listWide()
		got := []int64{}
		for _, c := range gd.WaitingWide {
			got = append(got, c.Job)
		}
		next := time.Duration(0)
		if !g.Next.IsZero() {
			next = g.Next.Sub(plantest.Epoch0)
		}
		if fmt.Sprint(got) != tt.want || next != tt.next {
			t.Errorf("%s: %v, next %v, want %s and %v", tt.name, got, next, tt.want, tt.next)
		}
	}
}
