package order

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sweep tells a ledger of gangs of a user that ran alike, submitted one after another.
func sweep(l *Ledger, user string, cards int, first int64, n int, ran time.Duration) {
	for i := range int64(n) {
		l.Add(Usage{Peer: Peer{user, "", cards, first + i}, Ended: epoch0, Ran: ran, Whole: ran, Limit: 10 * time.Hour})
	}
}

func TestNeighboursRunAlike(t *testing.T) {
	const limit = 10 * time.Hour
	l := NewLedger(0)
	sweep(l, "lea", 1, 100, 30, 6*time.Minute)
	sweep(l, "max", 1, 200, 30, 5*time.Hour)
	sweep(l, "max", 1, 1000, 30, 6*time.Minute)
	sweep(l, "max", 8, 1100, 30, 5*time.Hour)
	mean := func(of Peer) time.Duration { return l.Mean(limit, 0, of).Round(time.Minute) }
	usual := mean(Peer{"ann", "", 1, 300})
	for _, tt := range []struct {
		name   string
		of     Peer
		longer int // than usual: -1, 0 or 1
	}{
		{"nobody's", Peer{}, 0},
		{"of one who is new", Peer{"ann", "", 1, 300}, 0},
		{"of one whose runs are short", Peer{"lea", "", 1, 130}, -1},
		{"of one whose runs were long then", Peer{"max", "", 1, 230}, 1},
		{"within the long ones", Peer{"max", "", 1, 215}, 1},
		{"of the same one, just before they were short", Peer{"max", "", 1, 995}, -1},
		{"of the same one, when they were short", Peer{"max", "", 1, 1030}, -1},
		{"of his large ones", Peer{"max", "", 8, 1130}, 1},
	} {
		got := mean(tt.of)
		if tt.longer == 0 && got != usual || tt.longer < 0 && got > usual*3/4 || tt.longer > 0 && got < usual*5/4 {
			t.Errorf("a gang %s: %v expected, usual is %v", tt.name, got, usual)
		}
	}
	// Large ones among small ones count less for these than as many small ones would.
	if small, large := mean(Peer{"max", "", 1, 1080}), mean(Peer{"max", "", 8, 1080}); small >= large {
		t.Errorf("between short runs on one card and long ones on eight: %v on one, %v on eight", small, large)
	}
}

// TestNobodyAskedBefore: what is expected of a gang does not depend on who else was asked about
// before it: plans are the same whatever order things are looked at in.
func TestNobodyAskedBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := NewLedger(0), NewLedger(0)
		for i := range rapid.IntRange(leastRunTimes, 60).Draw(t, "ended") {
			ran := time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute
			u := Usage{Peer: Peer{"u", "", rapid.IntRange(1, 2).Draw(t, "cards"), int64(i*rapid.IntRange(2, 9).Draw(t, "apart")) + 10}, Ended: epoch0, Ran: ran, Whole: ran, Limit: 10 * time.Hour}
			first.Add(u)
			second.Add(u)
		}
		a, b := Peer{"u", "", 1, rapid.Int64Range(1, 300).Draw(t, "one")}, Peer{"u", "", 1, rapid.Int64Range(1, 300).Draw(t, "other")}
		first.Mean(10*time.Hour, 0, a)
		if was, is := second.Mean(10*time.Hour, 0, b), first.Mean(10*time.Hour, 0, b); was != is {
			t.Fatalf("job %d: %v, and %v after job %d", b.Job, was, is, a.Job)
		}
	})
}

// TestPeersInAnyOrder: what neighbours say depends on who ended, not on when that was told, so
// that a ledger made anew at start decides as the one before did. Whoever waits since before
// all that are kept has no neighbours.
func TestPeersInAnyOrder(t *testing.T) {
	var all []Usage
	for i := range int64(peersKept + 500) {
		ran := time.Duration(i%7+1) * time.Minute << (i % 5)
		all = append(all, Usage{Peer: Peer{"lea", "", int(i%2) + 1, 1000 + i}, Ended: epoch0, Ran: ran, Whole: ran, Limit: 10 * time.Hour})
	}
	tell := func(all []Usage) (out []time.Duration) {
		l := NewLedger(0)
		for _, u := range all {
			l.Add(u)
		}
		for _, job := range []int64{1, 1200, 1700, 3000, 9000} {
			out = append(out, l.Mean(10*time.Hour, 0, Peer{"lea", "", 1, job}))
		}
		out = append(out, l.Mean(10*time.Hour, 0, Peer{}))
		if n := len(l.peers["lea"]); n != peersKept {
			t.Errorf("%d are kept", n)
		}
		return out
	}
	one := tell(all)
	if one[0] != one[5] || one[1] != one[5] || one[3] == one[5] {
		t.Errorf("before those kept, within them, without neighbours: %v", one)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if other := tell(all); !slices.Equal(one, other) {
		t.Errorf("told in another order: %v, was %v", other, one)
	}
}

// TestRunAgain: of a job that came to its end twice the last time counts, which is all that a
// ledger made anew is told.
func TestRunAgain(t *testing.T) {
	once, twice := NewLedger(0), NewLedger(0)
	sweep(twice, "lea", 1, 110, 5, time.Hour)
	for _, l := range []*Ledger{once, twice} {
		sweep(l, "lea", 1, 100, 30, time.Minute)
	}
	of := Peer{"lea", "", 1, 130}
	if a, b := once.neighbourLikelihoods(of), twice.neighbourLikelihoods(of); a == nil || *a != *b {
		t.Errorf("%v, and %v after other runs of five of them", a, b)
	}
}

// TestSnapshotsStay: a ledger and its snapshot share lists of neighbours, and what either is told
// of afterwards is not seen by the other.
func TestSnapshotsStay(t *testing.T) {
	for name, first := range map[string]int64{"before the others": 90, "behind them": 150, "one of them again": 120} {
		l := NewLedger(0)
		sweep(l, "lea", 1, 100, 50, time.Minute)
		c, was := l.snapshot(), slices.Clone(l.peers["lea"])
		sweep(l, "lea", 1, first, 1, time.Hour)
		if !slices.Equal(c.peers["lea"], was) || slices.Equal(l.peers["lea"], was) {
			t.Errorf("%s: told to the ledger %v, to its snapshot %v, was %v", name, l.peers["lea"], c.peers["lea"], was)
		}
		was = slices.Clone(l.peers["lea"])
		sweep(l.snapshot(), "lea", 1, first, 2, 5*time.Hour)
		if !slices.Equal(l.peers["lea"], was) {
			t.Errorf("%s: told to a snapshot: %v, was %v", name, l.peers["lea"], was)
		}
	}
}

// TestLeaningKeepsTheLimit: whatever neighbours did, chances stay chances, and a gang is
// expected to end by its limit.
func TestLeaningKeepsTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger(0)
		limits := rapid.SliceOfN(rapid.Int64Range(1, 1e7), 1, 4).Draw(t, "limits")
		for i := range rapid.Int64Range(0, 60).Draw(t, "ended") {
			limit := time.Duration(rapid.SampledFrom(limits).Draw(t, "limit")) * time.Second
			ran := time.Duration(rapid.Float64Range(0.00001, 1).Draw(t, "ran") * float64(limit))
			l.Add(Usage{Peer: Peer{"u", "", rapid.IntRange(1, 2).Draw(t, "cards"), i + 1}, Ended: epoch0, Ran: ran, Whole: ran, Limit: limit})
		}
		limit := time.Duration(rapid.Int64Range(1, 1e7).Draw(t, "asked")) * time.Second
		of := Peer{"u", "", 1, rapid.Int64Range(0, 100).Draw(t, "job")}
		c := l.chances(limit, true).weigh(l.neighbourLikelihoods(of), limit)
		for i, p := range c.p[:c.bins] {
			if !(p >= 0 && p <= 1+1e-9) {
				t.Fatalf("chance %v in bin %d", p, i)
			}
		}
		ran := time.Duration(rapid.Float64Range(0, 0.999).Draw(t, "behind") * float64(limit))
		if d := l.Mean(limit, ran, of); d <= 0 || d > limit-ran+time.Millisecond {
			t.Fatalf("%v of %v behind it: %v expected", ran, limit, d)
		}
	})
}
