package sched

import (
	"fmt"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/order"
)

// switchVerdict is why a gang stays that would fit below more switches; nil: that is not why.
func (wy *why) switchVerdict(c *order.Candidate, sh *askClass) *verdict {
	limit, t := wy.switchLimit(c), wy.fit.topology()
	if limit == 0 || t == nil || sh.need == nil || sh.need.Packed() {
		return nil
	}
	if sh.alternatives != nil {
		return wy.switchVerdictOfAlternatives(c, sh)
	}
	choices := slices.Clone(wy.fit.look(sh, wy.kept.viewFor(c, wy.end(c)), nil))
	l := layoutOf(sh.need)
	if l.members(wy.fit.tallyOf(choices)) == 0 {
		return nil
	}
	leaves := t.leaves(choices)
	need := fewest(l, leaves, 0)
	var parts []string
	const most = 5
	for _, one := range leaves[:min(most, len(leaves))] {
		name := "no switch"
		if one.sw >= 0 {
			name = t.sw[one.sw].Name
		}
		parts = append(parts, fmt.Sprintf("%s has room for %s", name, api.Count(min(one.ranks, sh.need.Size), "rank")))
	}
	if more := len(leaves) - most; more > 0 {
		parts = append(parts, api.Count(more, "more switch")+"es less")
	}
	return &verdict{word: WordResources, nearer: true, sentence: fmt.Sprintf("there is room now, but not below %s: %s; that takes %d; it "+
		"waits for that until %s, then it starts anywhere",
		switches(limit), join(parts), len(need), when.Clock(wy.now, wy.switchUntil(c)))}
}

func switches(n int) string {
	if n == 1 {
		return "1 switch"
	}
	return fmt.Sprintf("%d switches", n)
}

// SwitchPath is the names of the switches from the top down to each node.
func SwitchPath(sw []api.Switch) map[string]string {
	path := map[string]string{}
	out := map[string]string{}
	for i := len(sw) - 1; i >= 0; i-- { // the highest first
		s := &sw[i]
		path[s.Name] = s.Name
		if p := path[s.Parent]; p != "" {
			path[s.Name] = p + "." + s.Name
		}
		if s.Level == 0 {
			for _, n := range s.Nodes {
				out[n] = path[s.Name]
			}
		}
	}
	return out
}
