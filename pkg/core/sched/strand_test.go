package sched

import (
	"fmt"
	"slices"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// ledgerOf has seen so many asks of each spec; job is the last.
func ledgerOf(asks ...asksOf) (*Ledger, int64) {
	l, job := NewLedger(0), int64(0)
	for _, a := range asks {
		for range a.n {
			job++
			l.asked(&Candidate{Job: job, Terms: &Terms{Ask: cluster.AskOf(&a.spec, []string{"gpu"})}})
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
			q := NewQueue(&Policy{}, l)
			q.Insert(c)
			plan := planned(t, epoch0, &View{Nodes: tt.nodes, Queue: q}, &Policy{})
			if len(plan.Starts) != 1 || plan.Starts[0].Slots[0].Node != tt.want {
				t.Errorf("started %+v, want it on %s", plan.Starts, tt.want)
			}
		})
	}
}

// TestInTurn: asks come evenly, each as often as it is asked for.
func TestInTurn(t *testing.T) {
	all := slices.Concat(inTurn([]int64{5, 3, 2})...)
	if got := all[:10]; !slices.Equal(got, []uint8{0, 1, 2, 0, 0, 1, 0, 2, 1, 0}) {
		t.Errorf("dealt %v", got)
	}
	n := make([]int, 3)
	for _, i := range all {
		n[i]++
	}
	if !slices.Equal(n, []int{120, 72, 48}) {
		t.Errorf("%v of %d, want 5 : 3 : 2", n, len(all))
	}
}

func BenchmarkPrice(b *testing.B) {
	var asks []asksOf
	for i := range 60 {
		asks = append(asks, asksOf{100 - i, part(int64(80-i), 1+i%12)})
	}
	l, _ := ledgerOf(asks...)
	m := l.typical()
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
				m.price(d, k, 1)
			}
		})
	}
}

// TestAskedOnce: an ask counts once for each job, however often its gang waits again, and a copy of the ledger has counted the same.
func TestAskedOnce(t *testing.T) {
	l, last := ledgerOf(asksOf{3, part(47, 1)}, asksOf{2, part(32, 1)})
	spec := part(32, 1)
	l.asked(&Candidate{Job: last, Terms: &Terms{Ask: cluster.AskOf(&spec, []string{"gpu"})}})
	if l.askedFor != 5 {
		t.Errorf("%d asks of 5 jobs", l.askedFor)
	}
	copied, own := l.snapshot().typical(), l.typical()
	if !slices.Equal(copied.shares, own.shares) || !slices.Equal(own.shares, []float64{0.6, 0.4}) {
		t.Errorf("shares %v, of the copy %v", own.shares, copied.shares)
	}
}

// TestTypicalAsks: those for cards that come most often, each as often as it fits on a node; made again when a tenth more was asked for.
func TestTypicalAsks(t *testing.T) {
	asks := []asksOf{{9, api.Spec{Size: 4}}, {7, api.Spec{Size: 2, CPUsPerRank: 1, Roles: []api.Role{{Name: "a", Count: 2, CPUsPerRank: 1, GPUsPerRank: 1}}}},
		{3, api.Spec{Size: 8, GPUsPerRank: 2, RanksPerNode: 3, MinNodes: 3, MaxNodes: 3, Exclusive: true, NodeList: []string{"n1"}, Exclude: []string{"n2"}}},
		{4, api.Spec{Size: 2, GPUsPerNode: 1, RanksPerNode: 5}}, {1, api.Spec{Size: 1, GPUsPerRank: 1}}}
	l, last := ledgerOf(asks...)
	m := l.typical()
	text := ""
	for i, a := range m.asks {
		s := a.Need.Ask.Spec
		text += fmt.Sprintf("%dx%d+%d at %.3f; ", a.Most, s.GPUsPerRank, s.GPUsPerNode, m.shares[i])
		if s.Size != 1<<10 || s.RanksPerNode+s.MinNodes+s.MaxNodes > 0 || s.Exclusive || s.NodeList != nil || s.Exclude != nil {
			t.Errorf("%s is not any part of it", printer.Value(s))
		}
	}
	if want := "2x0+1 at 0.500; 3x2+0 at 0.375; 1x1+0 at 0.125; "; text != want || len(m.orders) == 0 {
		t.Errorf("%s, want %s", text, want)
	}
	for more := range 4 {
		spec := api.Spec{Size: 1, GPUsPerRank: 1}
		if again := l.typical(); (again == m) != (more < 3) || again != m && again.turn != m.turn+1 {
			t.Errorf("after %d more asks: the same %t", more, again == m)
		}
		last++
		l.asked(&Candidate{Job: last, Terms: &Terms{Ask: cluster.AskOf(&spec, []string{"gpu"})}})
	}
	var many []asksOf
	for i := range typicalAsks + 5 {
		many = append(many, asksOf{1 + i/50, part(int64(i+1), 1)})
	}
	l, _ = ledgerOf(many...)
	if got := l.typical(); len(got.asks) != typicalAsks || got.asks[0].Need.VRAM <= 50*gib || got.asks[5].Need.VRAM > 50*gib {
		t.Errorf("%d of %d asks", len(got.asks), len(many))
	}
}
