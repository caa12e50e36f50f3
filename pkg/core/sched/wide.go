package sched

import (
	"slices"

	"gangd/pkg/core/sched/order"
)

// A gang of half of all cards finds room all at once, when one as large ends, or hardly ever: what is free for it is taken within the
// same plan by kept places of gangs that need less, and it waits until as much has been drained for it once more. So one that has
// waited for four times its own time limit starts where it fits now, before them: see docs/decisions/0209.

// wide reports whether a gang asks for half of all cards or more.
func (gv *given) wide(c *order.Candidate) bool { return 2*order.Weight(c.Ask) >= gv.cards() }

// listWide lists wide gangs that have waited so long, by tier, the longest wait first.
func (gd *guard) listWide() {
	if !gd.policy.ByService() || gd.policy.Preempts() || gd.policy.GuardAfter <= 0 || 2*gd.kept.views[0].OpenCards() < gd.cards() {
		return
	}
	for _, cl := range gd.view.Queue.Classes() {
		c := cl.First() // of those that are alike the one that waits longest
		if c.TimeLimit <= 0 || !gd.wide(c) {
			continue
		}
		if due := c.OwnTurn(); due.After(gd.now) {
			gd.by(&gd.next, due)
		} else {
			gd.waitingWide = append(gd.waitingWide, c)
		}
	}
	slices.SortFunc(gd.waitingWide, func(a, b *order.Candidate) int {
		switch {
		case gd.policy.Below(b, a):
			return -1
		case gd.policy.Below(a, b):
			return 1
		}
		return order.CompareAge(a, b)
	})
}

// startWide starts those of them that fit now, as soon as the plan comes to their tier.
func (pl *planner) startWide(head *order.Candidate) {
	for len(pl.guard.waitingWide) > 0 && !pl.full() && !pl.policy.Below(pl.guard.waitingWide[0], head) {
		c := pl.guard.waitingWide[0]
		pl.guard.waitingWide = pl.guard.waitingWide[1:]
		sh := pl.fit.ClassOf(c.Ask)
		if sh.Bad != nil || sh.Need.Parts != nil || pl.bounds.capped(c) != nil || !pl.fit.Fits(sh, pl.kept.views[0]) ||
			!pl.startNow(c, sh, true) {
			continue
		}
		pl.starts[len(pl.starts)-1].Turn = order.TurnLong
		pl.visited[c.Job] = true
		pl.kept.later = slices.DeleteFunc(pl.kept.later, func(b backfill) bool { return b.Job == c.Job })
	}
}
