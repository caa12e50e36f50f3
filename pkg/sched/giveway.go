package sched

import "time"

// giveWay is for how long a claim gives way to shorter gangs, in times of what its own gang is
// expected to run: so long a wait for these may be beside the run. See docs/decisions/0115.
const giveWay = 4

// way is whether a claim gives way, worked out when first asked for.
type way struct {
	known, gives bool
	left         time.Duration // that its gang is expected to run
}

// givesWay reports whether shorter gangs may start on the places of a claim: while its gang
// has not waited long beside what it is expected to run. Where they take the place of running
// ones, what a claim keeps them off matters little: see [planner.yields].
func (pl *planner) givesWay(b *booking) bool {
	if pl.promises(b) || b.c.TimeLimit <= 0 {
		return false
	}
	if w := &b.way; !w.known {
		w.known, w.left = true, pl.expects(b.c)
		w.gives = pl.now.Sub(b.c.since())/giveWay < w.left
	}
	return b.way.gives
}

// promises reports whether a claim is kept whoever comes later in its tier. In order of service
// it is not: gangs that need less may pass it, and those with a claim of their own may move it
// to its places. With preemption see [planner.isHard].
func (pl *planner) promises(b *booking) bool {
	return pl.ranksLeft() || !pl.policy.byService() || b.isMove() || pl.front[b.Job] != atItsPlace
}

// expects is how much longer a gang that waits is expected to run, on average.
func (pl *planner) expects(c *Candidate) time.Duration {
	if pl.asked != c {
		pl.asked, pl.left = c, pl.view.Queue.ledger.Average(c.TimeLimit, c.Attained)
	}
	return pl.left
}

// passes reports whether a gang may start on the places of a claim though its claimant can
// then start later: it is ahead in the order, and it is expected to run shorter.
//
// To need less of the cards is not enough: gangs half as large as the claimant need half as
// much in runs as long as its own, and such come without end.
func (pl *planner) passes(c *Candidate, b *booking) bool {
	return compare(c, b.c) < 0 && pl.givesWay(b) && pl.expects(c) < b.way.left
}

// stepAside takes the claims off that a gang may pass, when it could start without any. They
// are for starts only: what it must wait for itself it claims beside them, so that no claim is
// lost to shorter gangs that wait.
func (pl *planner) stepAside(c *Candidate, sh *shape) (off []booking) {
	if sh.full || sh.bad != nil {
		return nil
	}
	for at := len(pl.booked) - 1; at >= 0; at-- {
		b := &pl.booked[at]
		if !pl.passes(c, b) {
			continue
		}
		// Taking claims off and on costs more than this look.
		if off == nil && sh.need.Parts == nil && !pl.fits(sh, pl.levels[0]) {
			sh.full = true // within a plan room only shrinks
			return nil
		}
		off = append(off, *b)
		pl.unbook(at)
	}
	return off
}
