package kept

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// earliestOfAlternatives is [kept.earliest] by the alternative that is served first.
func (kp *Backfills) earliestOfAlternatives(c *order.Candidate, sh *fit.AskClass, avoid []string, before time.Time) (best []cluster.Slot,
	first time.Time) {
	for _, way := range sh.Alternatives {
		slots, at := kp.earliest(c, way, avoid, before)
		if slots != nil && (best == nil || at.Before(first)) {
			best, first, before = slots, at, at
		}
	}
	return best, first
}

// findOfAlternatives is [kept.find] by the alternative of whose places most are free now.
func (kp *Backfills) findOfAlternatives(sh *fit.AskClass, avoid []string) (best []cluster.Slot) {
	most := -1
	for _, way := range sh.Alternatives {
		if slots := kp.find(way, avoid); slots != nil {
			if free := kp.freeOf(way.Need, slots); free > most {
				best, most = slots, free
			}
		}
	}
	return best
}

// freeOf is how many of some places need not be waited for.
func (kp *Backfills) freeOf(d *cluster.Need, slots []cluster.Slot) (free int) {
	for len(slots) > 0 {
		n := 1
		for n < len(slots) && slots[n].Node == slots[0].Node {
			n++
		}
		g := cluster.GrantFor(d.Ask, api.MemberKey{Epoch: given.EpochBackfill}, slots[:n], time.Time{})
		if kp.TopView().Node(kp.fit.Find(slots[0].Node)).Fits(&g) {
			free += n
		}
		slots = slots[n:]
	}
	return free
}
