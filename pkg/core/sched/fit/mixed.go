package fit

import (
	"cmp"
	"slices"

	"gangd/pkg/core/cluster"
)

// A gang with roles is placed part by part, each part as a gang without roles would be, on
// nodes that are smaller by what the parts before it took, or, where parts are to be apart,
// that none of them has. For one part the look is exact
// (see layout). For several it is packing of unlike things, for which no quick exact way is
// known, so the order of the parts is varied: the most demanding first, then each of the
// others first once. Where none of these fits, though each part would by itself, the parts are
// dealt out in every way, for so many steps (see search). Without it a gang could be accepted
// and wait for ever on an empty cluster: an order that fits on the nodes as they were bought may
// fail on the same nodes with a card out of service, as other nodes then waste least.

// Mixed places the parts of d over list, the indexes of the nodes to look at, and gives the
// slots by rank; nil when no order of the parts fits, by whichever of their alternatives.
func Mixed(d *cluster.Need, nodes []*cluster.Node, list []int32, avoid []string) []cluster.Slot {
	return mixedBy(d, readings(d, false), nodes, list, avoid)
}

// mixedBy leaves out places on more or fewer nodes than the partitions allow.
func mixedBy(d *cluster.Need, choices [][]*cluster.Need, nodes []*cluster.Node, list []int32, avoid []string) []cluster.Slot {
	for _, parts := range choices {
		if slots := mixedParts(parts, nodes, list, avoid); slots != nil && d.Ask.HoldsNodes(slots) {
			return slots
		}
	}
	steps := searchSteps
	for _, parts := range choices {
		if slots := searchParts(parts, nodes, list, avoid, &steps, d.Ask.HoldsNodes); slots != nil {
			return slots
		}
	}
	return nil
}

func mixedParts(parts []*cluster.Need, nodes []*cluster.Node, list []int32, avoid []string) []cluster.Slot {
	shrunk := slices.Clone(nodes)
	for _, order := range orders(parts) {
		var touched []int
		slots, ok := make([]cluster.Slot, firstRank(parts)), true
		for _, i := range order {
			part := parts[i]
			ms := placePart(part, shrunk, list, avoid)
			if ok = ms != nil; !ok {
				break
			}
			rank := firstRank(parts[:i])
			for _, m := range ms {
				got := part.Pick(shrunk[m.At], m.Ranks)
				rank += copy(slots[rank:], got)
				shrunk[m.At] = part.Ask.Beside(shrunk[m.At], got)
				touched = append(touched, m.At)
			}
		}
		if ok {
			return slots
		}
		for _, at := range touched {
			shrunk[at] = nodes[at]
		}
	}
	return nil
}

// firstRank is the rank after those of some parts.
func firstRank(parts []*cluster.Need) int {
	first := 0
	for _, p := range parts {
		first += p.Size
	}
	return first
}

// orders are the orders of the parts that are tried. Most demanding is what fewest nodes
// can give: cards before none, then VRAM, then all of a rank's other figures.
func orders(parts []*cluster.Need) [][]int {
	hardest := make([]int, len(parts))
	for i := range hardest {
		hardest[i] = i
	}
	slices.SortStableFunc(hardest, func(a, b int) int {
		x, y := parts[a], parts[b]
		return cmp.Or(cmp.Compare(y.Cards, x.Cards), cmp.Compare(y.VRAM, x.VRAM), slices.Compare(y.PerRank[:], x.PerRank[:]),
			cmp.Compare(y.Size, x.Size))
	})
	var out [][]int
	if len(parts) > 0 && parts[0].Ask.Apart { // the first has the first nodes, as people expect it
		order := make([]int, len(parts))
		for i := range order {
			order[i] = i
		}
		out = append(out, order)
	}
	out = append(out, hardest)
	for _, first := range hardest[1:] {
		rest := slices.DeleteFunc(slices.Clone(hardest), func(i int) bool { return i == first })
		out = append(out, append([]int{first}, rest...))
	}
	return out
}

// placePart is place for one part.
func placePart(d *cluster.Need, nodes []*cluster.Node, list []int32, avoid []string) []Member {
	var choices []Choice
	var t Tally
	for _, at := range list {
		n := nodes[at]
		if k := d.Ranks(n); k > 0 && d.Admits(n) && !slices.Contains(avoid, n.Name) {
			choices = append(choices, Choice{At: int(at), Ranks: k})
			t.Add(k)
		}
	}
	l := LayoutOf(d)
	m := l.Members(&t)
	if m == 0 {
		return nil
	}
	wasteOf := func(s Choice, ranks int) cluster.Waste { return d.WasteOf(nodes[s.At], ranks) }
	if d.Counts == nil {
		return l.Choose(choices, &t, m, wasteOf)
	}
	c := NewCounted(d, choices, func(at int) *cluster.Node { return nodes[at] })
	if m = c.Members(); m == 0 {
		return nil
	}
	return c.Choose(m, wasteOf)
}

// Preferred is mixed with what --prefer asks for, nil where it asks for nothing.
func Preferred(d *cluster.Need, nodes []*cluster.Node, list []int32, avoid []string) []cluster.Slot {
	if !slices.ContainsFunc(d.Parts, func(p *cluster.Need) bool { return p.Preferred != nil }) {
		return nil
	}
	return mixedBy(d, readings(d, true), nodes, list, avoid)
}

// allOf lists every index.
func allOf(nodes []*cluster.Node) []int32 {
	list := make([]int32, len(nodes))
	for i := range list {
		list[i] = int32(i)
	}
	return list
}
