package sched

import (
	"slices"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// startCut starts a gang that would be in the way of a backfill with a time limit after which
// it is not: the longest with which it fits.
func (pl *planner) startCut(c *order.Candidate, sh *fit.AskClass, least, end time.Time) bool {
	for _, by := range pl.kept.cuts(c, least, end) {
		if !pl.start(c, sh, pl.kept.viewFor(c, by), by) {
			continue
		}
		// Limits are shown and kept in whole seconds.
		limit := by.Sub(pl.now) - c.Stop
		pl.starts[len(pl.starts)-1].TimeLimit = max(limit.Truncate(time.Second), c.TimeMin)
		return true
	}
	return false
}

// cuts are the times before end by which a gang could have ended so as not to be in the way
// of somebody, the latest first.
func (kp *kept) cuts(c *order.Candidate, least, end time.Time) []time.Time {
	if !least.Before(end) {
		return nil
	}
	var out []time.Time
	for n := kp.inWay(end) - 1; n >= kp.inWay(least); n-- {
		if b := &kp.list[n]; !b.isOpen() {
			out = append(out, b.from())
		}
	}
	if kp.reservations == nil {
		return out
	}
	for i := range kp.reservations.list {
		if by := kp.reservations.list[i].ClearBy.Add(-max(0, c.Ask.Spec.GraceMax-c.Stop)); by.Before(end) && !by.Before(least) {
			out = append(out, by)
		}
	}
	slices.SortFunc(out, func(a, b time.Time) int { return b.Compare(a) })
	return out
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
	pl.kept.book(c, slots, end)
	pl.starts = append(pl.starts, Start{Job: c.Job, Slots: slots, Turn: pl.front[c.Job]})
	if pl.bounds.holdings != nil {
		pl.bounds.holdings.add(c.User, c.Account, order.CardsOf(c.Ask), c.Ask.Spec.Pools)
	}
}

// book puts what a start takes on all views.
func (kp *kept) book(c *order.Candidate, slots []cluster.Slot, end time.Time) {
	until := end
	if end.Equal(never) {
		until = time.Time{}
	}
	for _, g := range kp.fit.Grants(c, slots, epochStart, until) {
		for _, l := range kp.views {
			if l != nil {
				l.Set(g.At, l.Node(g.At).Restore(g.Grant))
			}
		}
		if kp.strictView != nil {
			kp.strictView.Set(g.At, kp.strictView.Node(g.At).Restore(g.Grant))
		}
		kp.ends.started = append(kp.ends.started, g)
	}
}

// slots is where a gang can start now, by rank; nil: it does not fit.
func (pl *planner) slots(c *order.Candidate, sh *fit.AskClass, l *fit.NodeView) []cluster.Slot {
	if sh.Need.Parts != nil {
		return pl.kept.placeMixed(c, sh.Need, l)
	}
	return pl.fit.SlotsBelow(sh, l, c.Avoid, pl.switchLimit(c))
}
