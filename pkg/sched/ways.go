package sched

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// A constraint with alternatives for the whole gang ("[rack1|rack2]") is several asks, one of
// which is enough: its ways. Each is placed as any other ask, and the best place is taken:
// the fewest nodes, then the least price, then the alternative written first. What --prefer
// asks for is ways too, which come before the others for a gang that can start now; nobody is
// stopped, and nothing is kept free, for a preference.

// waysOf makes shapes of ways. They are of one shape that is remembered, and so are they.
func waysOf(needs []*cluster.Need, named bool) []*shape {
	var out []*shape
	for _, d := range needs {
		out = append(out, &shape{need: d, named: named, wastes: map[wasteKey]cluster.Waste{}})
	}
	return out
}

// anyWay reports whether something holds for a need, or for one of its ways.
func anyWay(d *cluster.Need, holds func(*cluster.Need) bool) bool {
	if d.Ways == nil {
		return holds(d)
	}
	return slices.ContainsFunc(d.Ways, holds)
}

// waysCost compares the places that ways have; less is better.
type waysCost struct {
	avoided int // nodes that just failed the gang
	members int
	unasked int // nodes without what is preferred
	price   int64
}

func (a waysCost) compare(b waysCost) int {
	return cmp.Or(cmp.Compare(a.avoided, b.avoided), cmp.Compare(a.members, b.members), cmp.Compare(a.unasked, b.unasked), cmp.Compare(a.price, b.price))
}

// slotsOfWays is where a gang can start now by one of its ways; nil: by none.
func (pl *planner) slotsOfWays(c *Candidate, sh *shape, l *level) []cluster.Slot {
	soft, cost := pl.bestWay(c, sh.soft, l)
	if soft != nil && cost.avoided == 0 {
		return soft
	}
	if hard, cost := pl.bestWay(c, sh.ways, l); hard != nil && (soft == nil || cost.avoided == 0) {
		return hard
	}
	return soft
}

func (pl *planner) bestWay(c *Candidate, ways []*shape, l *level) (best []cluster.Slot, least waysCost) {
	for _, way := range ways {
		members := pl.place(way, l, c.Avoid, pl.switchLimit(c))
		if members == nil {
			continue
		}
		if cost := pl.waysCost(way.need, l, members, c.Avoid); best == nil || cost.compare(least) < 0 {
			best, least = pick(way.need, l, members), cost
		}
	}
	return best, least
}

func (pl *planner) waysCost(d *cluster.Need, l *level, members []member, avoid []string) waysCost {
	cost := waysCost{members: len(members)}
	for _, m := range members {
		n := l.node(m.at)
		if slices.Contains(avoid, n.Name) {
			cost.avoided++
		}
		if !d.Prefers(n) {
			cost.unasked++
		}
		cost.price += pl.mix.price(d, l.kind(m.at), m.ranks)
		if len(pl.mix.asks) > 0 && len(n.Grants) == 0 {
			cost.price += scarcity(l.members(l.kind(m.at)).count)
		}
	}
	return cost
}

// earliestOfWays is [planner.earliest] by the way that is served first.
func (pl *planner) earliestOfWays(c *Candidate, sh *shape, avoid []string, before time.Time) (best []cluster.Slot, first time.Time) {
	for _, way := range sh.ways {
		slots, at := pl.earliest(c, way, avoid, before)
		if slots != nil && (best == nil || at.Before(first)) {
			best, first, before = slots, at, at
		}
	}
	return best, first
}

// findClaimOfWays is [planner.findClaim] by the way of whose places most are free now.
func (pl *planner) findClaimOfWays(sh *shape, avoid []string) (best []cluster.Slot) {
	most := -1
	for _, way := range sh.ways {
		if slots := pl.findClaim(way, avoid); slots != nil {
			if free := pl.freeOf(way.need, slots); free > most {
				best, most = slots, free
			}
		}
	}
	return best
}

// freeOf is how many of some places need not be waited for.
func (pl *planner) freeOf(d *cluster.Need, slots []cluster.Slot) (free int) {
	for len(slots) > 0 {
		n := 1
		for n < len(slots) && slots[n].Node == slots[0].Node {
			n++
		}
		g := cluster.GrantFor(d.Ask, api.MemberKey{Epoch: epochClaim}, slots[:n], time.Time{})
		if pl.top().node(pl.find(slots[0].Node)).Fits(&g) {
			free += n
		}
		slots = slots[n:]
	}
	return free
}

// moveOfWays is [planner.move] by the way that costs least work, then the fewest gangs.
func (pl *planner) moveOfWays(c *Candidate, sh *shape, victims []*prey, end time.Time) (best []cluster.Slot, chosen []*prey) {
	var least float64
	for _, way := range sh.ways {
		slots, gone := pl.move(c, way, victims, end)
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

// choices are the ways to read an ask: for each of its parts, or for itself, one of the ways.
// Parts that say the same together have the same. Beyond maxChoices no more are tried.
func choices(d *cluster.Need, soft bool) [][]*cluster.Need {
	parts := d.Parts
	if parts == nil {
		parts = []*cluster.Need{d}
	}
	waysOf := func(p *cluster.Need) []*cluster.Need {
		if soft && p.Soft != nil {
			return p.Soft
		}
		return p.Ways
	}
	key := func(p *cluster.Need) string {
		if soft && p.Soft != nil {
			return "rather " + p.Ask.Spec.Prefer
		}
		return p.Ask.Spec.Constraint
	}
	var texts []string // each is decided by itself
	var sizes []int
	for _, p := range parts {
		if ways := waysOf(p); ways != nil && !slices.Contains(texts, key(p)) {
			texts, sizes = append(texts, key(p)), append(sizes, len(ways))
		}
	}
	if texts == nil {
		return [][]*cluster.Need{parts}
	}
	var out [][]*cluster.Need
	for at := make([]int, len(texts)); len(out) < maxChoices; {
		one := slices.Clone(parts)
		for i, p := range parts {
			if ways := waysOf(p); ways != nil {
				one[i] = ways[at[slices.Index(texts, key(p))]]
			}
		}
		out = append(out, one)
		i := len(at) - 1
		for ; i >= 0 && at[i] == sizes[i]-1; i-- {
			at[i] = 0
		}
		if i < 0 {
			break
		}
		at[i]++
	}
	return out
}

const maxChoices = 64

// admitsAll reports whether the slots are on nodes that the ranks may use, by one of the ways
// for all of them.
func (pl *planner) admitsAll(d *cluster.Need, slots []cluster.Slot) bool {
	return slices.ContainsFunc(choices(d, false), func(parts []*cluster.Need) bool { return pl.admits(parts, slots) })
}

func (pl *planner) admits(parts []*cluster.Need, slots []cluster.Slot) bool {
	for _, p := range parts {
		var on []int
		for _, s := range slots[:p.Size] {
			at := pl.find(s.Node)
			if at < 0 || !p.Admits(pl.view.Nodes[at]) {
				return false
			}
			if !slices.Contains(on, at) {
				on = append(on, at)
			}
		}
		slots = slots[p.Size:]
		if p.Counts == nil {
			continue
		}
		deal := newDeal(p.Counts, len(on))
		for _, at := range on {
			one := alike{marks: p.Marks(pl.view.Nodes[at]), nodes: 1}
			if deal.any < 0 || deal.spare(one.marks) < 1 {
				return false
			}
			deal.take(&one, 1, 0)
		}
	}
	return true
}

// chooseCounted takes the members of a gang that counts its nodes. Below how many switches
// they are is a condition only: nothing brings them nearer than that.
func (pl *planner) chooseCounted(c *counted, m, limit int, wasteOf judge) []member {
	tree := pl.topology()
	if tree == nil || limit == 0 {
		return c.choose(m, wasteOf)
	}
	leaves, tries := tree.leaves(c.spots), 0
	var found []member
	var below func(chosen []*leaf, from int) bool
	below = func(chosen []*leaf, from int) bool {
		if len(chosen) == limit || from == len(leaves) {
			if tries++; tries > maxCountedAreas {
				return true
			}
			in := newCounted(c.need, tree.within(c.spots, chosen), func(at int) *cluster.Node { return pl.view.Nodes[at] })
			if m := in.members(); m > 0 {
				found = in.choose(m, wasteOf)
			}
			return found != nil
		}
		for i := from; i < len(leaves); i++ {
			if below(append(slices.Clone(chosen), leaves[i]), i+1) {
				return true
			}
		}
		return false
	}
	below(nil, 0)
	return found
}

// maxCountedAreas bounds the sets of switches that are tried for one gang.
const maxCountedAreas = 2000
