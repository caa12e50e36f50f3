package sched

import (
	"gangd/pkg/core/sched/order"
	"slices"
)

// A gang of half of all cards finds room all at once, when one as large ends, or hardly ever: what is free for it is taken within the
// same plan by kept places of gangs that need less, and it waits until as much has been drained for it once more. So one that has
// waited for four times its own time limit starts where it fits now, before them: see docs/decisions/0209.

// wide reports whether a gang asks for half of all cards or more.
func (pl *planner) wide(c *Candidate) bool { return 2*order.Weight(c.Ask) >= pl.cards() }

// listWide lists wide gangs that have waited so long, by tier, the longest wait first.
func (pl *planner) listWide() {
	if !pl.policy.ByService() || pl.policy.Preempts() || pl.policy.GuardAfter <= 0 || 2*pl.openCards() < pl.cards() {
		return
	}
	for _, cl := range pl.view.Queue.Classes() {
		c := cl.First() // of those that are alike the one that waits longest
		if c.TimeLimit <= 0 || !pl.wide(c) {
			continue
		}
		if due := c.OwnTurn(); due.After(pl.now) {
			pl.by(&pl.next, due)
		} else {
			pl.waitingWide = append(pl.waitingWide, c)
		}
	}
	slices.SortFunc(pl.waitingWide, func(a, b *Candidate) int {
		switch {
		case pl.policy.Below(b, a):
			return -1
		case pl.policy.Below(a, b):
			return 1
		}
		return order.CompareAge(a, b)
	})
}

// startWide starts those of them that fit now, as soon as the plan comes to their tier.
func (pl *planner) startWide(head *Candidate) {
	for len(pl.waitingWide) > 0 && !pl.full() && !pl.policy.Below(pl.waitingWide[0], head) {
		c := pl.waitingWide[0]
		pl.waitingWide = pl.waitingWide[1:]
		sh := pl.askClass(c.Ask)
		if sh.bad != nil || sh.need.Parts != nil || pl.capped(c) != nil || !pl.fits(sh, pl.views[0]) || !pl.startNow(c, sh, true) {
			continue
		}
		pl.starts[len(pl.starts)-1].Turn = TurnLong
		pl.visited[c.Job] = true
		pl.laterBackfills = slices.DeleteFunc(pl.laterBackfills, func(b backfill) bool { return b.Job == c.Job })
	}
}

// openCards is how many cards of ready nodes nobody has.
func (pl *planner) openCards() (n int) {
	for _, k := range pl.views[0].live {
		n += pl.views[0].members(k).count * k.node.OpenCards()
	}
	return n
}
