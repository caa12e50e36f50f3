package victims

import (
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// moveOfAlternatives is [victims.move] by the alternative that costs least work, then the fewest gangs.
func (vs *Victims) moveOfAlternatives(c *order.Candidate, sh *fit.AskClass, victims []*candidate, end time.Time) (best []cluster.Slot,
	chosen []*candidate) {
	var least float64
	for _, way := range sh.Alternatives {
		slots, gone := vs.move(c, way, victims, end)
		if slots == nil {
			continue
		}
		cost := 0.0
		for _, v := range gone {
			cost += v.lost.Seconds()*float64(max(1, v.Cards)) + 60
		}
		if best == nil || cost < least {
			best, chosen, least = slots, gone, cost
		}
	}
	return best, chosen
}
