package fit

import (
	"slices"

	"gangd/pkg/core/cluster"
)

// searchSteps bounds a search: looks at a node for a part, all in all.
const searchSteps = 5000

// search deals the parts of a gang out to nodes in every way: part by part in the order of
// need, each node given as many ranks of it as it holds, then one less, down to none.
type search struct {
	parts []*cluster.Need
	order []int
	cut   []Layout        // by part: how it may be cut into members
	nodes []*cluster.Node // smaller by what is dealt out
	at    [][]int32       // by part: the nodes that have room for a rank of it when nothing is dealt out
	slots []cluster.Slot
	steps *int
	holds func([]cluster.Slot) bool // what has to be of all places together
}

// searchParts is nil where no way fits, or none was found within the steps.
func searchParts(parts []*cluster.Need, nodes []*cluster.Node, list []int32, avoid []string, steps *int,
	holds func([]cluster.Slot) bool) []cluster.Slot {
	if len(parts) < 2 {
		return nil // the look at one part is exact
	}
	s := &search{parts: parts, order: orders(parts)[0], at: make([][]int32, len(parts)), cut: make([]Layout, len(parts)), steps: steps,
		holds: holds}
	for i, p := range parts {
		if s.cut[i] = LayoutOf(p); p.Counts != nil {
			return nil // it has more to keep than room and the number of nodes
		}
		room := 0
		for _, at := range list {
			if k := p.Ranks(nodes[at]); k > 0 && p.Admits(nodes[at]) && !slices.Contains(avoid, nodes[at].Name) {
				s.at[i] = append(s.at[i], at)
				room += k
			}
		}
		if room < p.Size {
			return nil
		}
	}
	s.nodes, s.slots = slices.Clone(nodes), make([]cluster.Slot, firstRank(parts))
	if !s.deal(0, 0, 0, s.parts[s.order[0]].Size) {
		return nil
	}
	return s.slots
}

// deal places the ranks that are left of the n-th part, which has some members by now, on its nodes
// from the i-th on, and all parts after it.
func (s *search) deal(n, members, i, left int) bool {
	which := s.order[n]
	l := &s.cut[which]
	if left == 0 {
		if members < l.lo {
			return false
		}
		if n++; n == len(s.order) {
			return s.holds(s.slots)
		}
		return s.deal(n, 0, 0, s.parts[s.order[n]].Size)
	}
	if *s.steps--; *s.steps < 0 || i == len(s.at[which]) || members == l.hi {
		return false
	}
	part, at := s.parts[which], s.at[which][i]
	before := s.nodes[at]
	first := firstRank(s.parts[:which]) + part.Size - left
	for k := min(left, part.Ranks(before)); k > 0; k-- {
		if l.perNode > 0 && k != min(l.perNode, left) {
			continue
		}
		got := part.Pick(before, k)
		copy(s.slots[first:], got)
		s.nodes[at] = part.Ask.Beside(before, got)
		if s.deal(n, members+1, i+1, left-k) {
			return true
		}
		s.nodes[at] = before
	}
	return s.deal(n, members, i+1, left)
}
