package order

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/lab/transcript"
)

// TestStoppedGangsAreNotForgotten: of a hundred gangs half end after a minute, and half are
// sent back after five of ten hours and wait. Ends alone would say that all are short.
func TestStoppedGangsAreNotForgotten(t *testing.T) {
	const limit = 10 * time.Hour
	l := NewLedger(0)
	for range 50 {
		l.Add(Usage{Ended: epoch0, Ran: time.Minute, Whole: time.Minute, Limit: limit})
	}
	ends := l.Mean(limit, 0, Peer{})
	for range 50 {
		l.Add(Usage{Ended: epoch0, Ran: 5 * time.Hour, Alive: 5 * time.Hour, Limit: limit})
	}
	if ends > 45*time.Minute {
		t.Errorf("fifty ends after a minute: %v expected", ends)
	}
	if all := l.Mean(limit, 0, Peer{}); all < 2*time.Hour || all > 4*time.Hour {
		t.Errorf("half of them ran for five hours and more: %v expected", all)
	}
	if on := l.Mean(limit, time.Hour, Peer{}); on < 4*time.Hour {
		t.Errorf("nobody ended between one and five hours: %v more expected", on)
	}
}

// TestAttemptsAddUp: a run in several attempts teaches what the same run in one does, so
// that a ledger made anew at start is the one that was told of each attempt.
func TestAttemptsAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := time.Duration(rapid.IntRange(1, 100000).Draw(rt, "limit")) * time.Minute
		ended := rapid.Bool().Draw(rt, "ended")
		var one, many spans
		var at time.Duration
		n := rapid.IntRange(1, 6).Draw(rt, "attempts")
		for i := range n {
			to := at + time.Duration(rapid.Float64Range(0.001, 0.3).Draw(rt, "part")*float64(limit))
			many.add(at, to, limit, spanBins, ended && i == n-1)
			at = to
		}
		one.add(0, at, limit, spanBins, ended)
		for i := range one.seen {
			if math.Abs(one.seen[i]-many.seen[i]) > 1e-9 || one.ends[i] != many.ends[i] {
				rt.Fatalf("bin %d: seen %v and ended %v in one run, %v and %v in %d", i, one.seen[i], one.ends[i], many.seen[i], many.ends[i], n)
			}
			if one.seen[i] < 0 || one.seen[i] > 1+1e-9 || one.ends[i] > one.seen[i]+1e-9 {
				rt.Fatalf("bin %d: %v seen, %v ended", i, one.seen[i], one.ends[i])
			}
		}
	})
}

// TestExpectationsAreWithinTheLimit: whatever was seen, a gang is expected to end by its
// limit, and the index is no more than the mean.
func TestExpectationsAreWithinTheLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := time.Duration(rapid.IntRange(1, 10000).Draw(rt, "limit")) * time.Minute
		l := NewLedger(0)
		for range rapid.IntRange(0, 40).Draw(rt, "seen") {
			ran := time.Duration(rapid.Float64Range(0.0001, 1).Draw(rt, "ran") * float64(limit))
			u := Usage{Ended: epoch0, Ran: ran, Limit: limit}
			if rapid.Bool().Draw(rt, "alive") {
				u.Alive = ran
			} else {
				u.Whole = ran
			}
			l.Add(u)
		}
		ran := time.Duration(rapid.Float64Range(0, 0.999).Draw(rt, "behind") * float64(limit))
		for _, steady := range []bool{false, true} {
			c := l.chances(limit, steady)
			mean, index := c.mean(limit, ran), c.index(limit, ran)
			if mean <= 0 || mean > limit-ran+time.Millisecond || index <= 0 || index > mean+time.Millisecond {
				rt.Fatalf("%v of %v behind it, steady %v: mean %v, index %v", ran, limit, steady, mean, index)
			}
		}
	})
}

// TestExpectations: what is expected of gangs with limits and without, of one user and of others, fresh ones and such as have run.
func TestExpectations(t *testing.T) {
	hours := func(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }
	empty, some := NewLedger(0), NewLedger(time.Hour)
	for i := range 60 {
		u := Usage{Peer: Peer{User: []string{"lea", "max", ""}[i%3], Name: []string{"a", "b"}[i%2], Cards: i % 9, Job: int64(max(0, 2*i-8))}, Account: "lab", Ended: epoch0.Add(hours(float64(i)))}
		u.Ran = hours(float64(i%7)/2 + 0.01)
		if u.Limit = hours([]float64{0, 1, 8, 30}[i%4]); u.Limit > 0 {
			u.Ran = min(u.Ran, u.Limit)
		}
		if i%5 == 0 {
			u.Alive = u.Ran
		} else if i%11 != 0 {
			u.Whole = u.Ran
		}
		if i%10 == 1 {
			u.Before, u.Whole = u.Ran/3, u.Ran
		}
		some.Add(u)
	}
	tr := transcript.Of(t, *update)
	for name, l := range map[string]*Ledger{"none": nil, "empty": empty, "sixty ends": some, "and a copy": some.snapshot()} {
		for _, of := range []Peer{{}, {User: "lea", Name: "a", Cards: 4, Job: 61}, {User: "max", Name: "a", Cards: 1, Job: 1000}, {User: "max", Name: "b", Cards: 64, Job: 1}, {User: "eva", Cards: 2, Job: 7}} {
			part := tr.Part()
			part.Printf("# %s: of %s", name, printer.Value(of))
			for _, limit := range []float64{0, 0.01, 1, 8, 30, 2000} {
				for _, ran := range []float64{0, 0.001, 0.6, 1, 7, 40} {
					r := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
					part.Printf("limit %v ran %v: %v, mean %v, on average %v", hours(limit), hours(ran), r(l.Remaining(hours(limit), hours(ran), of)),
						r(l.Mean(hours(limit), hours(ran), of)), r(l.Average(hours(limit), hours(ran), of)))
				}
			}
		}
	}
	part := tr.Part()
	for _, user := range []string{"lea", "max", ""} {
		part.Printf("%q used %.3f of %.3f", user, some.users[user], some.accounts["lab"])
	}
}
