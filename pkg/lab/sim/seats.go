package sim

import "time"

// What holds of several controllers.

// seated is a take-over.
type seated struct {
	at time.Duration
	by *gangd
}

// wrote: a controller has committed. None may that was replaced by one.
func (t *truth) wrote(g *gangd) {
	if g.term < t.wroteIn {
		t.r.fail("I21", "%s commits in term %d, and term %d has committed before", g.host.name, g.term, t.wroteIn)
	}
	t.wroteIn = g.term
}

// renewed: leases of a node run from at on, by the echo of a controller or (nil) by words. Whoever
// leads then, and lives, must have given it. A node that was off or cut off for so long that a controller
// which it does not know (knows) was let lead, runs nothing any more, and may go by the words of the others.
func (t *truth) renewed(m *machine, at time.Duration, by *gangd, knows func(*host) bool) {
	for i := len(t.seats) - 1; i >= 0; i-- {
		s := t.seats[i]
		if s.at > at {
			continue
		}
		if s.by != by && !s.by.dead && (len(m.procs) > 0 || knows(s.by.host)) {
			t.r.fail("I22", "leases on %s run from %s, which %s did not give, who leads since %s", m.name, at, s.by.host.name, s.at)
		}
		return
	}
}

// led is what is left of the time that a controller is to have led for without a break: where there
// are several, and none leads, nobody can end the rest of a gang.
func (t *truth) led(d time.Duration) time.Duration {
	if t.r.db == nil {
		return 0
	}
	if t.r.gangd == nil {
		return d
	}
	return t.seats[len(t.seats)-1].at + d - t.r.now
}
