package kept

import (
	"time"

	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// GiveWay is for how long a backfill gives way to shorter gangs, in times of what its own gang is
// expected to run: so long a wait for these may be beside the run. See docs/design/backfill.md.
const GiveWay = 4

// givesWay reports whether shorter gangs may start on the places of a backfill: while its gang
// has not waited long beside what it is expected to run. Where they take the place of running
// ones, what a backfill keeps them off matters little: see [kept.Yields].
func (kp *Backfills) givesWay(b *Backfill) bool {
	if kp.Promises(b) || !kp.View.Queue.Ledger().Knows(b.Taker.TimeLimit) {
		return false
	}
	if w := &b.concession; !w.known {
		w.known, w.left = true, kp.expects(b.Taker)
		w.gives = kp.Now.Sub(b.Taker.Since())/GiveWay < w.left
	}
	return b.concession.gives
}

// Promises reports whether a backfill is kept whoever comes later in its tier. In order of service
// it is not: gangs that need less may pass it, and those with a backfill of their own may move it
// to its places. With preemption see [kept.isStrict].
func (kp *Backfills) Promises(b *Backfill) bool {
	return kp.RanksLeft() || !kp.Policy.ByService() || b.IsMove() || kp.Front[b.Job] != order.NoTurn
}

// expects is how much longer a gang that waits is expected to run, on average.
func (kp *Backfills) expects(c *order.Candidate) time.Duration {
	if kp.remainingOf != c {
		kp.remainingOf, kp.remaining = c, kp.View.Queue.Ledger().Average(c.TimeLimit, c.Attained, c.Peer())
	}
	return kp.remaining
}

// passes reports whether a gang may start on the places of a backfill though its taker can
// then start later: it is ahead in the order, and it is expected to run shorter.
//
// To need less of the cards is not enough: gangs half as large as the taker need half as
// much in runs as long as its own, and such come without end.
// Before anything is known of gangs without a time limit any of them may, where nobody knows when the places are free: they would
// idle for as long as what is in the way of the taker, which is bounded by nothing. It comes to the front when it has waited too long.
func (kp *Backfills) passes(c *order.Candidate, b *Backfill) bool {
	if c.TimeLimit <= 0 && b.Taker.TimeLimit <= 0 && b.isOpen() && !kp.View.Queue.Ledger().Knows(0) {
		return kp.Policy.GuardAfter > 0 && !kp.Promises(b) && !kp.Policy.Below(c, b.Taker)
	}
	return order.Compare(c, b.Taker) < 0 && kp.givesWay(b) && kp.expects(c) < b.concession.left
}

// StepAside takes the backfills off that a gang may pass, when it could start without any. They
// are for starts only: what it must wait for itself it is kept beside them, so that no backfill is
// lost to shorter gangs that wait.
func (kp *Backfills) StepAside(c *order.Candidate, sh *fit.AskClass) (off []Backfill) {
	if sh.Full || sh.Bad != nil {
		return nil
	}
	for at := len(kp.List) - 1; at >= 0; at-- {
		b := &kp.List[at]
		if !kp.passes(c, b) {
			continue
		}
		// Taking backfills off and on costs more than this look.
		if off == nil && sh.Need.Parts == nil && !kp.fit.Fits(sh, kp.views[0]) {
			sh.Full = true // within a plan room only shrinks
			return nil
		}
		off = append(off, *b)
		kp.Remove(at)
	}
	return off
}
