package fit

import (
	"slices"

	"gangd/pkg/core/cluster"
)

// Fits reports whether the gang has room on these nodes.
func (f *Finder) Fits(sh *AskClass, l *NodeView) bool {
	if sh.Alternatives != nil {
		return slices.ContainsFunc(sh.Alternatives, func(way *AskClass) bool { return f.Fits(way, l) })
	}
	if sh.Need.Counts != nil {
		return NewCounted(sh.Need, f.Look(sh, l, nil), func(at int) *cluster.Node { return l.Node(at) }).Members() > 0
	}
	t := f.TallyOf(f.Look(sh, l, nil))
	return t.Ranks >= sh.Need.Size && LayoutOf(sh.Need).Members(t) > 0
}

// FitsEmpty reports whether the ready nodes would hold the gang with nothing on them.
// Most asks fit on the first few nodes looked at, so the sum is tried whenever the number
// of nodes counted has doubled; and the answer stays while no node's capacity changes.
func (f *Finder) FitsEmpty(sh *AskClass) bool {
	if !f.KnowsEmpty(sh) {
		sh.emptyAt, sh.empty = f.capacity, AnyAlternative(sh.Need, f.countEmpty)
	}
	return sh.empty
}

// KnowsEmpty reports whether the answer of fitsEmpty is known.
func (f *Finder) KnowsEmpty(sh *AskClass) bool { return sh.emptyAt == f.capacity }

func (f *Finder) countEmpty(d *cluster.Need) bool {
	if d.Counts != nil {
		return HoldsEver(d, slices.DeleteFunc(slices.Clone(f.nodes), func(n *cluster.Node) bool { return !n.Ready }))
	}
	l := LayoutOf(d)
	f.tally.Reset()
	try, k := 1, 0
	var of *NodeClass // that k is of
	for at, n := range f.nodes {
		if !n.Ready {
			continue
		}
		if class := f.Emptied(at, n); class != of {
			k, of = d.RanksEmpty(n), class
		}
		if k == 0 || !d.Admits(n) {
			continue
		}
		f.tally.Add(k)
		if f.tally.Nodes == try {
			if l.Members(&f.tally) > 0 {
				return true
			}
			try *= 2
		}
	}
	return l.Members(&f.tally) > 0
}

// HoldsEver reports whether the nodes would hold the ask with no gang on them.
func HoldsEver(d *cluster.Need, nodes []*cluster.Node) bool {
	if d.Alternatives != nil {
		return AnyAlternative(d, func(way *cluster.Need) bool { return HoldsEver(way, nodes) })
	}
	if d.Packed() {
		empty := make([]*cluster.Node, len(nodes))
		for i, n := range nodes {
			empty[i] = n.Emptied()
		}
		return Mixed(d, empty, allOf(empty), nil) != nil
	}
	l, t, try := LayoutOf(d), Tally{}, 1
	for _, n := range nodes {
		k := d.RanksEmpty(n)
		if k == 0 || !d.Admits(n) {
			continue
		}
		t.Add(k)
		if t.Nodes == try {
			if l.Members(&t) > 0 {
				return true
			}
			try *= 2
		}
	}
	return l.Members(&t) > 0
}

// RoomIn reports whether ready nodes have room for an ask now.
func RoomIn(d *cluster.Need, nodes []*cluster.Node) bool {
	var t Tally
	var list []int32
	for at, n := range nodes {
		if n.Ready {
			if k := d.Ranks(n); k > 0 && d.Admits(n) {
				t.Add(k)
				list = append(list, int32(at))
			}
		}
	}
	return LayoutOf(d).Members(&t) > 0 && (d.Counts == nil || placePart(d, nodes, list, nil) != nil)
}
