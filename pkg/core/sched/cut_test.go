package sched

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// Job 1 waits for all four cards of n1, which are free in 60 minutes; job 2 wants one of
// those that are free now.
func TestALimitIsCutToEndBeforeAClaim(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		limit, least, ending int // minutes; ending: its deadline, 0: none
		want                 string
	}{
		{"too long", 90, 0, 0, "[]"},
		{"cut", 90, 30, 0, "[2 for 1h0m0s]"},
		{"without a limit", 0, 30, 0, "[2 for 1h0m0s]"},
		{"can't be cut so far", 90, 61, 0, "[]"},
		{"short enough", 50, 30, 0, "[2 for 0s]"},
		{"its deadline ends it", 0, 0, 55, "[2 for 0s]"},
		{"its deadline does not", 0, 0, 65, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := plantest.Run(plantest.Node("n1", 32, 4, 80), 9, 60, 0, 1)
			c := plantest.Lasting(2, 1, tt.limit)
			c.TimeMin = time.Duration(tt.least) * time.Minute
			if tt.ending > 0 {
				c.Deadline = plantest.Epoch0.Add(time.Duration(tt.ending) * time.Minute)
			}
			p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 1}
			q := order.NewQueue(p, order.NewLedger(0))
			q.Insert(plantest.Lasting(1, 4, 10))
			q.Insert(c)
			plan := planned(t, plantest.Epoch0, &given.View{Nodes: []*cluster.Node{n}, Queue: q}, p)
			got := []string{}
			for _, s := range plan.Starts {
				got = append(got, fmt.Sprintf("%d for %s", s.Job, s.TimeLimit))
			}
			if fmt.Sprint(got) != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

// Whatever was cut, the backfill of the plan is free when it says so, and no limit is cut below
// what its gang takes.
func TestACutLimitDelaysNoClaim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := func(name string, from, to int) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(t, name)) * time.Minute
		}
		var nodes []*cluster.Node
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			n := plantest.Node(fmt.Sprintf("n%d", i+1), 32, 4, 80)
			for card := range 4 {
				if rapid.Bool().Draw(t, "busy") {
					n = plantest.Run(n, int64(100+10*i+card), rapid.IntRange(1, 60).Draw(t, "ends"), card)
				}
			}
			nodes = append(nodes, n)
		}
		p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 1}
		q := order.NewQueue(p, order.NewLedger(0))
		for i := range rapid.IntRange(1, 8).Draw(t, "waiting") {
			c := plantest.Lasting(int64(i+1), rapid.IntRange(1, 4).Draw(t, "cards"), rapid.IntRange(0, 90).Draw(t, "limit"))
			c.TimeMin, c.Stop = minutes("least", 0, 60), minutes("stop", 0, 2)
			if rapid.IntRange(0, 2).Draw(t, "deadline") == 0 {
				c.Deadline = plantest.Epoch0.Add(minutes("due", 1, 90))
			}
			q.Insert(c)
		}
		plan := Make(plantest.Epoch0, &given.View{Nodes: nodes, Queue: q}, p)
		type end struct {
			key api.MemberKey
			at  time.Time
		}
		var ends []end
		for _, s := range plan.Starts {
			c := q.Get(s.Job)
			if s.TimeLimit != 0 && (s.TimeLimit < c.TimeMin || c.TimeMin == 0 || c.TimeLimit > 0 && s.TimeLimit >= c.TimeLimit) {
				t.Fatalf("job %d: %s cut to %s, takes %s", c.Job, c.TimeLimit, s.TimeLimit, c.TimeMin)
			}
			nodes = plantest.Apply(t, nodes, c, 1, s.Slots)
			at := given.Never
			for _, limit := range []time.Duration{c.TimeLimit, s.TimeLimit} {
				if by := plantest.Epoch0.Add(limit + c.Stop); limit > 0 && by.Before(at) {
					at = by
				}
			}
			if by := c.Deadline.Add(c.Stop); !c.Deadline.IsZero() && by.Before(at) {
				at = by
			}
			ends = append(ends, end{api.MemberKey{Job: c.Job, Epoch: 1}, at})
		}
		for _, claim := range plan.Backfills {
			if claim.At.IsZero() {
				continue
			}
			then := slices.Clone(nodes)
			for i, n := range then {
				for _, g := range n.Grants {
					if !g.Until.IsZero() && !g.Until.After(claim.At) {
						then[i] = then[i].Release(g.MemberKey)
					}
				}
				for _, e := range ends {
					if !e.at.After(claim.At) {
						then[i] = then[i].Release(e.key)
					}
				}
			}
			plantest.Apply(t, then, q.Get(claim.Job), 2, claim.Slots)
		}
	})
}
