package order

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// unlimited tells a ledger of gangs without a time limit that came to their end.
func unlimited(l *Ledger, of Peer, n int, ran time.Duration) {
	for i := range int64(n) {
		l.Add(Usage{Peer: Peer{of.User, of.Name, of.Cards, of.Job + i}, Ended: epoch0, Ran: ran, Whole: ran})
	}
}

// TestGangsWithoutLimitsAreTold apart by what such gangs ran: as large ones, of the same user, with
// the same name, with preemption and without.
func TestGangsWithoutLimitsAreToldApart(t *testing.T) {
	l := NewLedger(0)
	unlimited(l, Peer{"lea", "train", 1, 100}, 40, 5*time.Minute)
	unlimited(l, Peer{"max", "train", 1, 200}, 40, 5*time.Hour)
	unlimited(l, Peer{"kim", "train", 1, 400}, 40, 5*time.Hour)
	unlimited(l, Peer{"kim", "test", 1, 440}, 40, time.Minute)
	unlimited(l, Peer{"eva", "train", 32, 300}, 40, 5*24*time.Hour)
	for _, p := range []*Policy{{}, {Preempt: PreemptService}} {
		expects := func(of Peer) time.Duration { return p.Remaining(l, 0, 0, of) }
		for _, tt := range []struct {
			name        string
			short, long Peer
			only        Preempt // "": both
		}{
			{"users", Peer{"lea", "x", 1, 500}, Peer{"max", "x", 1, 500}, ""},
			{"names of one user", Peer{"kim", "test", 1, 500}, Peer{"kim", "train", 1, 500}, ""},
			{"sizes, of nobody who is known", Peer{"new", "x", 1, 500}, Peer{"new", "x", 32, 500}, PreemptService},
		} {
			if tt.only != "" && tt.only != p.Preempt {
				continue
			}
			if short, long := expects(tt.short), expects(tt.long); short*11/10 > long {
				t.Errorf("preempt %q: %s: %v expected of the short, %v of the long", p.Preempt, tt.name, short, long)
			}
		}
	}
}

// TestAttainedServiceIsTheFloor: where next to nothing was learnt who ran least is first.
func TestAttainedServiceIsTheFloor(t *testing.T) {
	for _, p := range []*Policy{{}, {Preempt: PreemptService}} {
		l := NewLedger(0)
		unlimited(l, Peer{"max", "y", 1, 1}, 1, time.Second)
		last := time.Duration(0)
		for ran := time.Duration(0); ran < openSpan/8; ran = ran*2 + 10*time.Second {
			d := p.Remaining(l, 0, ran, Peer{"lea", "x", 1, 1})
			if d <= last {
				t.Fatalf("preempt %q: who ran %v is expected to run %v more, who ran less %v", p.Preempt, ran, d, last)
			}
			last = d
		}
	}
}

// TestALimitIsNeverALoss: whatever was learnt, who says a limit is not expected to run longer than
// if it had said none.
func TestALimitIsNeverALoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger(0)
		open := false
		for i := range rapid.IntRange(1, 60).Draw(t, "seen") {
			ran := time.Duration(rapid.IntRange(1, 100000).Draw(t, "ran")) * time.Second
			u := Usage{Peer: Peer{rapid.SampledFrom([]string{"lea", "max"}).Draw(t, "user"), "x", rapid.IntRange(1, 9).Draw(t, "cards"), int64(i + 1)},
				Ended: epoch0, Ran: ran, Limit: time.Duration(rapid.IntRange(0, 2).Draw(t, "limit")) * 30 * time.Hour}
			if rapid.Bool().Draw(t, "ended") {
				u.Whole = ran
				open = open || u.Limit == 0
			} else {
				u.Alive = ran
			}
			l.Add(u)
		}
		p := &Policy{Preempt: rapid.SampledFrom([]Preempt{PreemptOff, PreemptService}).Draw(t, "preempt")}
		of := Peer{"lea", "x", rapid.IntRange(1, 9).Draw(t, "of"), 100}
		attained := time.Duration(rapid.IntRange(0, 50).Draw(t, "attained")) * time.Minute
		limit := time.Duration(rapid.IntRange(1, 10000).Draw(t, "says")) * time.Minute
		bucket := func(limit time.Duration) int64 {
			return p.bucketOf(l, &Candidate{Job: of.Job, Name: of.Name, Terms: &Terms{User: of.User, Ask: cluster.AskOf(&api.Spec{Size: of.Cards, GPUsPerRank: 1}, []string{"gpu"}), TimeLimit: limit, Attained: attained}})
		}
		if said, unsaid := bucket(limit), bucket(0); said > unsaid || open != l.Knows(0) {
			t.Fatalf("with a limit of %v bucket %d, without %d", limit, said, unsaid)
		}
	})
}
