package order

import (
	"fmt"
	"slices"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

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

// TestAskedOnce: an ask counts once for each job, however often its gang waits again, and a copy of the ledger has counted the same.
func TestAskedOnce(t *testing.T) {
	l, last := ledgerThatSaw(asksSeen{3, sharing(47, 1)}, asksSeen{2, sharing(32, 1)})
	spec := sharing(32, 1)
	l.asked(&Candidate{Job: last, Terms: &Terms{Ask: cluster.AskOf(&spec, []string{"gpu"})}})
	if l.askedFor != 5 {
		t.Errorf("%d asks of 5 jobs", l.askedFor)
	}
	copied, own := l.snapshot().Typical(), l.Typical()
	if !slices.Equal(copied.Shares, own.Shares) || !slices.Equal(own.Shares, []float64{0.6, 0.4}) {
		t.Errorf("shares %v, of the copy %v", own.Shares, copied.Shares)
	}
}

// TestTypicalAsks: those for cards that come most often, each as often as it fits on a node; made again when a tenth more was asked for.
func TestTypicalAsks(t *testing.T) {
	asks := []asksSeen{{9, api.Spec{Size: 4}}, {7, api.Spec{Size: 2, CPUsPerRank: 1, Roles: []api.Role{{Name: "a", Count: 2, CPUsPerRank: 1, GPUsPerRank: 1}}}},
		{3, api.Spec{Size: 8, GPUsPerRank: 2, RanksPerNode: 3, MinNodes: 3, MaxNodes: 3, Exclusive: true, NodeList: []string{"n1"}, Exclude: []string{"n2"}}},
		{4, api.Spec{Size: 2, GPUsPerNode: 1, RanksPerNode: 5}}, {1, api.Spec{Size: 1, GPUsPerRank: 1}}}
	l, last := ledgerThatSaw(asks...)
	m := l.Typical()
	text := ""
	for i, a := range m.Asks {
		s := a.Need.Ask.Spec
		text += fmt.Sprintf("%dx%d+%d at %.3f; ", a.Most, s.GPUsPerRank, s.GPUsPerNode, m.Shares[i])
		if s.Size != 1<<10 || s.RanksPerNode+s.MinNodes+s.MaxNodes > 0 || s.Exclusive || s.NodeList != nil || s.Exclude != nil {
			t.Errorf("%s is not any part of it", printer.Value(s))
		}
	}
	if want := "2x0+1 at 0.500; 3x2+0 at 0.375; 1x1+0 at 0.125; "; text != want || len(m.Orders) == 0 {
		t.Errorf("%s, want %s", text, want)
	}
	for more := range 4 {
		spec := api.Spec{Size: 1, GPUsPerRank: 1}
		if again := l.Typical(); (again == m) != (more < 3) || again != m && again.Turn != m.Turn+1 {
			t.Errorf("after %d more asks: the same %t", more, again == m)
		}
		last++
		l.asked(&Candidate{Job: last, Terms: &Terms{Ask: cluster.AskOf(&spec, []string{"gpu"})}})
	}
	var many []asksSeen
	for i := range typicalAsks + 5 {
		many = append(many, asksSeen{1 + i/50, sharing(int64(i+1), 1)})
	}
	l, _ = ledgerThatSaw(many...)
	if got := l.Typical(); len(got.Asks) != typicalAsks || got.Asks[0].Need.VRAM <= 50*gib || got.Asks[5].Need.VRAM > 50*gib {
		t.Errorf("%d of %d asks", len(got.Asks), len(many))
	}
}

// ledgerThatSaw has seen so many asks of each spec; job is the last.
func ledgerThatSaw(asks ...asksSeen) (*Ledger, int64) {
	l, job := NewLedger(0), int64(0)
	for _, a := range asks {
		for range a.n {
			job++
			l.asked(&Candidate{Job: job, Terms: &Terms{Ask: cluster.AskOf(&a.spec, []string{"gpu"})}})
		}
	}
	return l, job
}

type asksSeen struct {
	n    int
	spec api.Spec
}

// sharing is an ask for a share of one card.
func sharing(vram int64, cpus int) api.Spec {
	return api.Spec{Size: 1, GPUsPerRank: 1, VRAMBytes: vram * gib, Share: true, CPUsPerRank: cpus}
}
