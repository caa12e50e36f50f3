package fit

import (
	"cmp"
	"slices"

	"gangd/pkg/core/cluster"
)

// A constraint with alternatives for the whole gang ("[rack1|rack2]") is several asks, one of
// which is enough: its alternatives. Each is placed as any other ask, and the best place is taken:
// the fewest nodes, then the least price, then the alternative written first. What --prefer
// asks for is alternatives too, which come before the others for a gang that can start now; nobody is
// stopped, and nothing is kept free, for a preference.

// AnyAlternative reports whether something holds for a need, or for one of its alternatives.
func AnyAlternative(d *cluster.Need, holds func(*cluster.Need) bool) bool {
	if d.Alternatives == nil {
		return holds(d)
	}
	return slices.ContainsFunc(d.Alternatives, holds)
}

// alternativeCost compares the places that alternatives have; less is better.
type alternativeCost struct {
	avoided int // nodes that just failed the gang
	members int
	unasked int // nodes without what is preferred
	price   int64
}

func (a alternativeCost) compare(b alternativeCost) int {
	return cmp.Or(cmp.Compare(a.avoided, b.avoided), cmp.Compare(a.members, b.members), cmp.Compare(a.unasked, b.unasked),
		cmp.Compare(a.price, b.price))
}

// slotsOfAlternatives is where a gang can start now by one of its alternatives; nil: by none.
func (f *Finder) slotsOfAlternatives(sh *AskClass, l *NodeView, avoid []string, switches int) []cluster.Slot {
	soft, cost := f.bestAlternative(sh.preferred, l, avoid, switches)
	if soft != nil && cost.avoided == 0 {
		return soft
	}
	if hard, cost := f.bestAlternative(sh.Alternatives, l, avoid, switches); hard != nil && (soft == nil || cost.avoided == 0) {
		return hard
	}
	return soft
}

func (f *Finder) bestAlternative(ways []*AskClass, l *NodeView, avoid []string, switches int) (best []cluster.Slot, least alternativeCost) {
	for _, way := range ways {
		members := f.place(way, l, avoid, switches)
		if members == nil {
			continue
		}
		if cost := f.costOfAlternative(way.Need, l, members, avoid); best == nil || cost.compare(least) < 0 {
			best, least = pick(way.Need, l, members), cost
		}
	}
	return best, least
}

func (f *Finder) costOfAlternative(d *cluster.Need, l *NodeView, members []Member, avoid []string) alternativeCost {
	cost := alternativeCost{members: len(members)}
	for _, m := range members {
		n := l.Node(m.At)
		if slices.Contains(avoid, n.Name) {
			cost.avoided++
		}
		if !d.Prefers(n) {
			cost.unasked++
		}
		cost.price += f.packer.price(d, l.Class(m.At), m.Ranks)
		if len(f.packer.Asks) > 0 && len(n.Grants) == 0 {
			cost.price += scarcity(l.members(l.Class(m.At)).count)
		}
	}
	return cost
}

// readings are the readings of an ask: for each of its parts, or for itself, one of the alternatives.
// Parts that say the same together have the same. Beyond maxChoices no more are tried.
func readings(d *cluster.Need, soft bool) [][]*cluster.Need {
	parts := d.Parts
	if parts == nil {
		parts = []*cluster.Need{d}
	}
	waysOf := func(p *cluster.Need) []*cluster.Need {
		if soft && p.Preferred != nil {
			return p.Preferred
		}
		return p.Alternatives
	}
	key := func(p *cluster.Need) string {
		if soft && p.Preferred != nil {
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
	for at := make([]int, len(texts)); len(out) < maxReadings; {
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

const maxReadings = 64

// AdmitsAll reports whether the slots are on nodes that the ranks may use, by one of the alternatives
// for all of them.
func (f *Finder) AdmitsAll(d *cluster.Need, slots []cluster.Slot) bool {
	return slices.ContainsFunc(readings(d, false), func(parts []*cluster.Need) bool { return f.admits(parts, slots) })
}

func (f *Finder) admits(parts []*cluster.Need, slots []cluster.Slot) bool {
	for _, p := range parts {
		var on []int
		for _, s := range slots[:p.Size] {
			at := f.Find(s.Node)
			if at < 0 || !p.Admits(f.nodes[at]) {
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
			one := alike{marks: p.Marks(f.nodes[at]), nodes: 1}
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
func (f *Finder) chooseCounted(c *Counted, m, limit int, wasteOf wasteFunc) []Member {
	tree := f.topology()
	if tree == nil || limit == 0 {
		return c.Choose(m, wasteOf)
	}
	leaves, tries := tree.leaves(c.choices), 0
	var found []Member
	var below func(chosen []*leaf, from int) bool
	below = func(chosen []*leaf, from int) bool {
		if len(chosen) == limit || from == len(leaves) {
			if tries++; tries > maxCountedAreas {
				return true
			}
			in := NewCounted(c.need, tree.within(c.choices, chosen), func(at int) *cluster.Node { return f.nodes[at] })
			if m := in.Members(); m > 0 {
				found = in.Choose(m, wasteOf)
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
