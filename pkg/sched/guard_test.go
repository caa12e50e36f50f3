package sched

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestPatienceByCards: on eight nodes of eight cards a tenth of the cards is 6.4. Whoever is
// larger is let in the later, with preemption among equals; never later than 50 times.
func TestPatienceByCards(t *testing.T) {
	for _, tt := range []struct {
		preempt Preempt
		share   float64
		cards   int
		want    string
	}{
		{PreemptService, 0, 1, "48h0m0s"},
		{PreemptService, 0, 6, "48h0m0s"},
		{PreemptService, 0, 8, "75h0m0s"},
		{PreemptService, 0, 32, "1200h0m0s"},
		{PreemptService, 0, 64, "2400h0m0s"},
		{PreemptService, 0.5, 32, "48h0m0s"},
		{PreemptTier, 0, 64, "48h0m0s"},
		{PreemptOff, 0, 64, "48h0m0s"},
	} {
		p := &Policy{Preempt: tt.preempt, GuardAfter: 48 * time.Hour, GuardShare: tt.share}
		v := &View{Nodes: testNodes(8, 64, 8, 80), Queue: NewQueue(p, nil)}
		pl := new(Planner).planner(epoch0, v, p)
		if got := pl.patienceFor(tt.cards).Round(time.Second).String(); got != tt.want {
			t.Errorf("%s, part %v, %d cards: %s, want %s", tt.preempt, tt.share, tt.cards, got, tt.want)
		}
	}
}

// TestLargeGangsWaitBehindTheFront: a gang of all cards has waited for four days, one of a
// card for three: the small one is at the front, and the plan is made again when the large
// one will be.
func TestLargeGangsWaitBehindTheFront(t *testing.T) {
	p := &Policy{Preempt: PreemptService, GuardAfter: 48 * time.Hour}
	large := candidate(1, api.Spec{Size: 8, GPUsPerRank: 8})
	small := candidate(2, api.Spec{Size: 1, GPUsPerRank: 1})
	for _, c := range []*Candidate{large, small} {
		c.TimeLimit, c.KeepsWork = time.Hour, true
		c.Submit = epoch0.Add(-time.Duration(5-c.Job) * 24 * time.Hour)
	}
	front := func(at time.Time) string {
		q := NewQueue(p, nil)
		q.Insert(large)
		q.Insert(small)
		pl := new(Planner).planner(at, &View{Nodes: testNodes(8, 64, 8, 80), Queue: q}, p)
		text := ""
		for _, c := range pl.guarded {
			text += fmt.Sprintf("%d ", c.Job)
		}
		return text + pl.next.Sub(epoch0).String()
	}
	if got, want := front(epoch0), "2 2304h0m0s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := front(epoch0.Add(2304*time.Hour)), "1 "; got[:2] != want {
		t.Errorf("100 days after its submission: %s, want the large gang at the front", got)
	}
}
