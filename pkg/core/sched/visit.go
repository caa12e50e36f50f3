package sched

import (
	"slices"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
)

// reach books the backfills that c does not go before, and starts the gangs of those that fit.
// Behind them come the gangs of these tiers that waited too long.
func (pl *planner) reach(c *order.Candidate) {
	pl.startWide(c)
	var kept []*order.Candidate
	n := 0 // of those that wait on
	for i := range pl.kept.Later {
		if b := &pl.kept.Later[i]; !pl.Policy.MayDelay(c, b.Taker, b.IsMove()) {
			if pl.kept.Keep(*b) {
				kept = append(kept, b.Taker)
			}
		} else {
			if n < i {
				pl.kept.Later[n] = *b
			}
			n++
		}
	}
	pl.kept.Later = pl.kept.Later[:n]
	for _, c := range kept {
		if pl.full() {
			return
		}
		pl.visited[c.Job] = true
		pl.visitTaker(c)
	}
	for len(pl.guard.Guarded) > 0 && !pl.full() && !pl.Policy.Below(pl.guard.Guarded[0], c) {
		c := pl.guard.Guarded[0]
		pl.guard.Guarded = pl.guard.Guarded[1:]
		if !pl.visited[c.Job] {
			pl.visited[c.Job] = true
			pl.visitGuarded(c)
		}
	}
}

// visitGuarded visits a gang that waited too long, at the backfill that it may have: left for
// later, that backfill would start the gang a second time.
func (pl *planner) visitGuarded(c *order.Candidate) {
	if at := slices.IndexFunc(pl.kept.Later, func(b kept.Backfill) bool { return b.Job == c.Job }); at >= 0 {
		b := pl.kept.Later[at]
		pl.kept.Later = slices.Delete(pl.kept.Later, at, at+1)
		if pl.kept.Keep(b) {
			pl.visitTaker(c)
			return
		}
	}
	pl.visit(c, pl.View.Queue.JobClass(c.Job))
}

// visitTaker starts a gang that holds a backfill, or looks again for victims for it.
func (pl *planner) visitTaker(c *order.Candidate) {
	sh, cl, at := pl.fit.ClassOf(c.Ask), pl.View.Queue.JobClass(c.Job), pl.kept.Of(c.Job)
	if v := pl.bounds.Capped(c); v != nil {
		pl.bounds.KeepPools(c, v)
		pl.why.Exceeds(c, cl, v)
		pl.kept.Remove(at)
		return
	}
	if b := &pl.kept.List[at]; b.IsMove() && len(b.Victims) == 0 && !b.Away {
		// Its victims are gone, so that its places are free: looked for again, they could be
		// others, of which a part was never cleared.
		slots := b.Slots
		pl.kept.Remove(at)
		pl.startAt(c, slots, pl.End(c))
		return
	}
	end := pl.End(c)
	if (sh.Need.Parts != nil || sh.Alternatives != nil || pl.Reservations != nil || pl.kept.FitsWithout(at, end, sh, c.Avoid)) &&
		pl.start(c, sh, pl.OpenTo(c, pl.kept.ViewWithout(c, at, end), end), end) {
		pl.kept.Remove(at)
		return
	}
	pl.why.Note(c, cl, sh)
	b := &pl.kept.List[at]
	if len(b.Victims) > 0 {
		pl.victims.Tell(b)
	} else if own := *b; pl.MayPreempt() {
		pl.kept.Remove(at)
		if !pl.victims.Preempt(c, sh) {
			pl.kept.Add(own)
		}
	}
}

// full: the plan has as many starts as it may.
func (pl *planner) full() bool {
	return pl.Policy.MaxStarts > 0 && len(pl.starts) >= pl.Policy.MaxStarts
}

// visit starts a gang, or notes why it and all others of its class stay.
func (pl *planner) visit(c *order.Candidate, cl *order.JobClass) bool {
	sh := pl.fit.ClassOfAll(cl, c)
	if v := pl.bounds.Capped(c); v != nil {
		pl.bounds.KeepPools(c, v)
		pl.why.Exceeds(c, cl, v)
		return false
	}
	off := pl.kept.Displace(c)
	defer func() { pl.kept.KeepAll(off) }()
	passed := pl.kept.StepAside(c, sh)
	if pl.startNow(c, sh, len(passed) > 0) {
		pl.kept.KeepAll(passed)
		return true
	}
	pl.why.Note(c, cl, sh)
	for _, b := range slices.Backward(passed) {
		pl.kept.Add(b)
	}
	if pl.why.Nearer(cl) {
		// Kept for it, what is free now would stand idle until its wait is over.
		return false
	}
	if sh.Bad == nil && !pl.victims.Preempt(c, sh) && pl.kept.MayBackfill(c) {
		pl.kept.Make(c, sh)
	}
	return false
}

// startNow starts a gang where it fits with the backfills that are made, and reports whether it
// does. Beside fewer backfills it may fit where others of its ask class did not: what is known of these
// is not asked then.
func (pl *planner) startNow(c *order.Candidate, sh *fit.AskClass, fewer bool) bool {
	end, least := pl.End(c), pl.LeastEnd(c)
	stays := sh.Bad != nil || !fewer && !sh.Blocked.IsZero() && !least.Before(sh.Blocked)
	if !stays && (pl.start(c, sh, pl.kept.ViewFor(c, end), end) || pl.startCut(c, sh, least, end)) {
		return true
	}
	// One that waits for fewer switches tells nothing of its like whose wait is over.
	waits := pl.SwitchLimit(c) > 0
	if !waits && (sh.Blocked.IsZero() || least.Before(sh.Blocked)) {
		sh.Blocked = least
	}
	if pl.kept.Yields(c) && sh.Bad == nil && !sh.BlockedStrict {
		if pl.start(c, sh, pl.OpenTo(c, pl.kept.Strict, end), end) {
			return true
		}
		sh.BlockedStrict = pl.Reservations == nil && !waits // with reservations it depends on when the gang ends
	}
	return false
}

// startWide starts those of them that fit now, as soon as the plan comes to their tier.
func (pl *planner) startWide(head *order.Candidate) {
	for len(pl.guard.WaitingWide) > 0 && !pl.full() && !pl.Policy.Below(pl.guard.WaitingWide[0], head) {
		c := pl.guard.WaitingWide[0]
		pl.guard.WaitingWide = pl.guard.WaitingWide[1:]
		sh := pl.fit.ClassOf(c.Ask)
		if sh.Bad != nil || sh.Need.Parts != nil || pl.bounds.Capped(c) != nil || !pl.fit.Fits(sh, pl.kept.Bare()) ||
			!pl.startNow(c, sh, true) {
			continue
		}
		pl.starts[len(pl.starts)-1].Turn = order.TurnLong
		pl.visited[c.Job] = true
		pl.kept.Later = slices.DeleteFunc(pl.kept.Later, func(b kept.Backfill) bool { return b.Job == c.Job })
	}
}

// start books a gang that has ended by then where it fits, and reports whether it does.
func (pl *planner) start(c *order.Candidate, sh *fit.AskClass, l *fit.NodeView, end time.Time) bool {
	slots := pl.slots(c, sh, l)
	if slots == nil {
		return false
	}
	pl.startAt(c, slots, end)
	return true
}

// startAt books a gang that has ended by then at places that are free.
func (pl *planner) startAt(c *order.Candidate, slots []cluster.Slot, end time.Time) {
	pl.kept.Book(c, slots, end)
	pl.starts = append(pl.starts, Start{Job: c.Job, Slots: slots, Turn: pl.Front[c.Job]})
	pl.bounds.Book(c)
}

// slots is where a gang can start now, by rank; nil: it does not fit.
func (pl *planner) slots(c *order.Candidate, sh *fit.AskClass, l *fit.NodeView) []cluster.Slot {
	if sh.Need.Parts != nil {
		return pl.kept.PlaceMixed(c, sh.Need, l)
	}
	return pl.fit.SlotsBelow(sh, l, c.Avoid, pl.SwitchLimit(c))
}

// startCut starts a gang that would be in the way of a backfill with a time limit after which
// it is not: the longest with which it fits.
func (pl *planner) startCut(c *order.Candidate, sh *fit.AskClass, least, end time.Time) bool {
	for _, by := range pl.kept.Cuts(c, least, end) {
		if !pl.start(c, sh, pl.kept.ViewFor(c, by), by) {
			continue
		}
		// Limits are shown and kept in whole seconds.
		limit := by.Sub(pl.Now) - c.Stop
		pl.starts[len(pl.starts)-1].TimeLimit = max(limit.Truncate(time.Second), c.TimeMin)
		return true
	}
	return false
}
