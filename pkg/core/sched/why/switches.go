package why

import (
	"cmp"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// switchVerdict is why a gang stays that would fit below more switches; nil: that is not why.
func (wy *Why) switchVerdict(c *order.Candidate, sh *fit.AskClass) *verdict {
	limit := wy.SwitchLimit(c)
	if limit == 0 || sh.Need == nil || sh.Need.Packed() {
		return nil
	}
	if sh.Alternatives != nil {
		return wy.switchVerdictOfAlternatives(c, sh)
	}
	rooms, need := wy.fit.SwitchRooms(sh, wy.kept.ViewFor(c, wy.End(c)))
	if need == 0 {
		return nil
	}
	var parts []string
	const most = 5
	for _, one := range rooms[:min(most, len(rooms))] {
		parts = append(parts, fmt.Sprintf("%s has room for %s", cmp.Or(one.Name, "no switch"), api.Count(min(one.Ranks, sh.Need.Size), "rank")))
	}
	if more := len(rooms) - most; more > 0 {
		parts = append(parts, api.Count(more, "more switch")+"es less")
	}
	return &verdict{word: given.WordResources, nearer: true, sentence: fmt.Sprintf("there is room now, but not below %s: %s; that takes %d; "+
		"it waits for that until %s, then it starts anywhere",
		switches(limit), given.And(parts), need, when.Clock(wy.Now, wy.SwitchUntil(c)))}
}
