package sched

import (
	"slices"

	"gangd/pkg/core/cluster"
)

// fits reports whether the gang has room on these nodes.
func (f *finder) fits(sh *askClass, l *nodeView) bool {
	if sh.alternatives != nil {
		return slices.ContainsFunc(sh.alternatives, func(way *askClass) bool { return f.fits(way, l) })
	}
	if sh.need.Counts != nil {
		return newCounted(sh.need, f.look(sh, l, nil), func(at int) *cluster.Node { return l.node(at) }).members() > 0
	}
	t := f.tallyOf(f.look(sh, l, nil))
	return t.ranks >= sh.need.Size && layoutOf(sh.need).members(t) > 0
}

// fitsEmpty reports whether the ready nodes would hold the gang with nothing on them.
// Most asks fit on the first few nodes looked at, so the sum is tried whenever the number
// of nodes counted has doubled; and the answer stays while no node's capacity changes.
func (f *finder) fitsEmpty(sh *askClass) bool {
	if !f.knowsEmpty(sh) {
		sh.emptyAt, sh.empty = f.capacity, anyAlternative(sh.need, f.countEmpty)
	}
	return sh.empty
}

// knowsEmpty reports whether the answer of fitsEmpty is known.
func (f *finder) knowsEmpty(sh *askClass) bool { return sh.emptyAt == f.capacity }

func (f *finder) countEmpty(d *cluster.Need) bool {
	if d.Counts != nil {
		return holdsEver(d, slices.DeleteFunc(slices.Clone(f.nodes), func(n *cluster.Node) bool { return !n.Ready }))
	}
	l := layoutOf(d)
	f.tally.reset()
	try, k := 1, 0
	var of *nodeClass // that k is of
	for at, n := range f.nodes {
		if !n.Ready {
			continue
		}
		if class := f.emptied(at, n); class != of {
			k, of = d.RanksEmpty(n), class
		}
		if k == 0 || !d.Admits(n) {
			continue
		}
		f.tally.add(k)
		if f.tally.nodes == try {
			if l.members(&f.tally) > 0 {
				return true
			}
			try *= 2
		}
	}
	return l.members(&f.tally) > 0
}

// holdsEver reports whether the nodes would hold the ask with no gang on them.
func holdsEver(d *cluster.Need, nodes []*cluster.Node) bool {
	if d.Alternatives != nil {
		return anyAlternative(d, func(way *cluster.Need) bool { return holdsEver(way, nodes) })
	}
	if d.Packed() {
		empty := make([]*cluster.Node, len(nodes))
		for i, n := range nodes {
			empty[i] = n.Emptied()
		}
		return mixed(d, empty, allOf(empty), nil) != nil
	}
	l, t, try := layoutOf(d), tally{}, 1
	for _, n := range nodes {
		k := d.RanksEmpty(n)
		if k == 0 || !d.Admits(n) {
			continue
		}
		t.add(k)
		if t.nodes == try {
			if l.members(&t) > 0 {
				return true
			}
			try *= 2
		}
	}
	return l.members(&t) > 0
}

func roomIn(d *cluster.Need, nodes []*cluster.Node) bool {
	var t tally
	var list []int32
	for at, n := range nodes {
		if n.Ready {
			if k := d.Ranks(n); k > 0 && d.Admits(n) {
				t.add(k)
				list = append(list, int32(at))
			}
		}
	}
	return layoutOf(d).members(&t) > 0 && (d.Counts == nil || placePart(d, nodes, list, nil) != nil)
}
