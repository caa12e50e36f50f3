package sched

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// TestStranding: where a share of a card goes when people here ask for certain others. Cards
// have 100 GiB.
func TestStranding(t *testing.T) {
	node := func(name string, cpus, cards int, used ...int64) *cluster.Node {
		n := plantest.Node(name, cpus, cards, 100)
		for c, vram := range used {
			if vram > 0 {
				n = plantest.Hold(n, int64(900+c), vram*plantest.GiB, false, c)
			}
		}
		return n
	}
	for _, tt := range []struct {
		name  string
		asks  []plantest.Asks
		nodes []*cluster.Node
		spec  api.Spec
		want  string
	}{
		// 53 GiB beside a 47 are for the other 47: 32 in them leave 21 to nobody, three of
		// them on a card of their own leave 4.
		{"not the tightest hole but the one that is lost least", []plantest.Asks{{N: 60, Spec: plantest.Part(47, 1)}, {N: 40, Spec: plantest.Part(32, 1)}},
			[]*cluster.Node{node("n1", 64, 1, 47), node("n2", 64, 1, 32)}, plantest.Part(32, 1), "n2"},
		{"the tightest hole when nobody asks for what fits it", []plantest.Asks{{N: 60, Spec: plantest.Part(60, 1)}, {N: 40, Spec: plantest.Part(32, 1)}},
			[]*cluster.Node{node("n1", 64, 1, 47), node("n2", 64, 1, 32)}, plantest.Part(32, 1), "n1"},
		// Most asks can't use the first node at all, which does not make it cheap: small ones
		// come by too, and fill it.
		{"not the last CPUs beside a card", []plantest.Asks{{N: 80, Spec: plantest.Part(100, 12)}, {N: 20, Spec: plantest.Part(100, 4)}, {N: 20, Spec: plantest.Part(50, 4)}},
			[]*cluster.Node{node("n1", 8, 1), node("n2", 24, 2)}, plantest.Part(50, 8), "n2"},
		{"CPUs where they strand no card", []plantest.Asks{{N: 50, Spec: plantest.Part(100, 12)}},
			[]*cluster.Node{node("n1", 32, 2, 100), node("n2", 24, 2)}, api.Spec{Size: 1, CPUsPerRank: 12}, "n1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, job := plantest.LedgerOf(tt.asks...)
			c := plantest.Candidate(job+1, tt.spec)
			q := order.NewQueue(&order.Policy{}, l)
			q.Insert(c)
			plan := planned(t, plantest.Epoch0, &given.View{Nodes: tt.nodes, Queue: q}, &order.Policy{})
			if len(plan.Starts) != 1 || plan.Starts[0].Slots[0].Node != tt.want {
				t.Errorf("started %+v, want it on %s", plan.Starts, tt.want)
			}
		})
	}
}
