package guard

import (
	"slices"

	"gangd/pkg/core/sched/order"
)

// A gang of half of all cards finds room all at once, when one as large ends, or hardly ever: what is free for it is taken within the
// same plan by kept places of gangs that need less, and it waits until as much has been drained for it once more. So one that has
// waited for four times its own time limit starts where it fits now, before them: see docs/design/placement.md.

// listWide lists wide gangs that have waited so long, by tier, the longest wait first.
func (gd *Guard) listWide() {
	if !gd.Policy.ByService() || gd.Policy.Preempts() || gd.Policy.GuardAfter <= 0 || 2*gd.kept.Bare().OpenCards() < gd.Cards() {
		return
	}
	for _, cl := range gd.View.Queue.Classes() {
		c := cl.First() // of those that are alike the one that waits longest
		if c.TimeLimit <= 0 || !gd.Wide(c) {
			continue
		}
		if due := c.OwnTurn(); due.After(gd.Now) {
			gd.By(&gd.Next, due)
		} else {
			gd.WaitingWide = append(gd.WaitingWide, c)
		}
	}
	slices.SortFunc(gd.WaitingWide, func(a, b *order.Candidate) int {
		switch {
		case gd.Policy.Below(b, a):
			return -1
		case gd.Policy.Below(a, b):
			return 1
		}
		return order.CompareAge(a, b)
	})
}
