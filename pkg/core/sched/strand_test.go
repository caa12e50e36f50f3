package sched

import (
	"fmt"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// ledgerOf has seen so many asks of each spec; job is the last.
func ledgerOf(asks ...asksOf) (*order.Ledger, int64) {
	l, job := order.NewLedger(0), int64(0)
	q := order.NewQueue(&order.Policy{}, l)
	for _, a := range asks {
		for range a.n {
			job++
			q.Insert(candidate(job, a.spec)) // which counts it
		}
	}
	return l, job
}

type asksOf struct {
	n    int
	spec api.Spec
}

// part is an ask for a share of one card.
func part(vram int64, cpus int) api.Spec {
	return api.Spec{Size: 1, GPUsPerRank: 1, VRAMBytes: vram * gib, Share: true, CPUsPerRank: cpus}
}

// TestStranding: where a share of a card goes when people here ask for certain others. Cards
// have 100 GiB.
func TestStranding(t *testing.T) {
	node := func(name string, cpus, cards int, used ...int64) *cluster.Node {
		n := testNode(name, cpus, cards, 100)
		for c, vram := range used {
			if vram > 0 {
				n = hold(n, int64(900+c), vram*gib, false, c)
			}
		}
		return n
	}
	for _, tt := range []struct {
		name  string
		asks  []asksOf
		nodes []*cluster.Node
		spec  api.Spec
		want  string
	}{
		// 53 GiB beside a 47 are for the other 47: 32 in them leave 21 to nobody, three of
		// them on a card of their own leave 4.
		{"not the tightest hole but the one that is lost least", []asksOf{{60, part(47, 1)}, {40, part(32, 1)}},
			[]*cluster.Node{node("n1", 64, 1, 47), node("n2", 64, 1, 32)}, part(32, 1), "n2"},
		{"the tightest hole when nobody asks for what fits it", []asksOf{{60, part(60, 1)}, {40, part(32, 1)}},
			[]*cluster.Node{node("n1", 64, 1, 47), node("n2", 64, 1, 32)}, part(32, 1), "n1"},
		// Most asks can't use the first node at all, which does not make it cheap: small ones
		// come by too, and fill it.
		{"not the last CPUs beside a card", []asksOf{{80, part(100, 12)}, {20, part(100, 4)}, {20, part(50, 4)}},
			[]*cluster.Node{node("n1", 8, 1), node("n2", 24, 2)}, part(50, 8), "n2"},
		{"CPUs where they strand no card", []asksOf{{50, part(100, 12)}},
			[]*cluster.Node{node("n1", 32, 2, 100), node("n2", 24, 2)}, api.Spec{Size: 1, CPUsPerRank: 12}, "n1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, job := ledgerOf(tt.asks...)
			c := candidate(job+1, tt.spec)
			q := order.NewQueue(&order.Policy{}, l)
			q.Insert(c)
			plan := planned(t, epoch0, &View{Nodes: tt.nodes, Queue: q}, &order.Policy{})
			if len(plan.Starts) != 1 || plan.Starts[0].Slots[0].Node != tt.want {
				t.Errorf("started %+v, want it on %s", plan.Starts, tt.want)
			}
		})
	}
}

func BenchmarkPrice(b *testing.B) {
	var asks []asksOf
	for i := range 60 {
		asks = append(asks, asksOf{100 - i, part(int64(80-i), 1+i%12)})
	}
	l, _ := ledgerOf(asks...)
	p := packer{l.Typical(), new(cluster.Packing)}
	s := part(20, 2)
	d, _ := cluster.NewNeed(cluster.AskOf(&s, []string{"gpu"}))
	for _, used := range []int64{0, 30, 60} {
		n := testNode("n1", 96, 8, 80)
		if used > 0 {
			for c := range 8 {
				n = hold(n, int64(c+1), used*gib, false, c)
			}
		}
		k := new(nodeClasses).of(n)
		b.Run(fmt.Sprintf("%d of 80 used", used), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.price(d, k, 1)
			}
		})
	}
}
