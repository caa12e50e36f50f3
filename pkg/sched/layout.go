package sched

import (
	"cmp"
	"slices"

	"gangd/pkg/cluster"
)

// spot is a node with room for some ranks of the gang in question.
type spot struct {
	at    int // index of the node; nodes are sorted by name, so ties by at are ties by name
	ranks int // how many fit, at most the gang's size
	now   int // of a claim: how many of them fit without waiting for anything
	waste cluster.Waste
}

// member is how many ranks go to a node.
type member struct{ at, ranks int }

// layout is how a gang may be cut into members.
//
// Whether a gang fits is decided exactly by the capacities c1 >= c2 >= ... of the nodes
// alone, because its ranks are identical: any rank may go anywhere, so a placement is
// just a number of ranks k_i <= c_i for each node, and if k ranks fit on a node, so does
// any smaller number.
//
// For a given number m of members, k_i >= 1 with sum Size exists if and only if m <= Size
// and the m largest capacities are all >= 1 and sum to at least Size: no other m nodes
// hold more, and from k_i = c_i ranks can be taken away one at a time, down to one each.
// The least such m is the shortest prefix with that sum; every larger m up to the number
// of nodes with room and Size does as well, since adding a node only adds room. So the
// gang fits if and only if that range meets MinNodes..MaxNodes.
//
// With RanksPerNode = R the members are given: Size/R full ones and perhaps one with the
// remainder r < R. Nodes with room for R also hold r, so counting the nodes with c >= R
// and with c >= r decides.
type layout struct {
	size, perNode int
	lo, hi        int  // members
	even          bool // spread evenly instead of filling node by node
}

func layoutOf(d *cluster.Need) layout {
	s := d.Ask.Spec
	l := layout{size: d.Size, perNode: min(s.RanksPerNode, d.Size), lo: max(1, s.MinNodes), hi: d.Size}
	if s.MaxNodes > 0 {
		l.hi = min(l.hi, s.MaxNodes)
	}
	// A member's cards or a number of nodes asked for outright: people who write
	// --nodes=2 with 8 ranks expect 4 and 4.
	l.even = s.MinNodes > 0 || d.NodeCards > 0
	return l
}

// tally counts nodes by how many ranks fit on them.
type tally struct {
	by    []int // by[k] nodes hold k ranks
	nodes int
	ranks int
}

func (t *tally) reset() {
	clear(t.by)
	t.by, t.nodes, t.ranks = t.by[:0], 0, 0
}

func (t *tally) add(ranks int) {
	for len(t.by) <= ranks {
		t.by = append(t.by, 0)
	}
	t.by[ranks]++
	t.nodes++
	t.ranks += ranks
}

// atLeast is how many nodes hold at least k ranks.
func (t *tally) atLeast(k int) int {
	n := 0
	for i := k; i < len(t.by); i++ {
		n += t.by[i]
	}
	return n
}

// members is the least number of members that the gang can have on the nodes counted,
// 0 when it does not fit: see the proof at layout.
func (l layout) members(t *tally) int {
	if t.ranks < l.size {
		return 0
	}
	if l.perNode > 0 {
		full, rest := l.size/l.perNode, l.size%l.perNode
		m := full + min(1, rest)
		if m < l.lo || m > l.hi || t.atLeast(l.perNode) < full || rest > 0 && t.atLeast(rest) < m {
			return 0
		}
		return m
	}
	m, sum := 0, 0
	for k := len(t.by) - 1; k > 0 && sum < l.size; k-- {
		if n := t.by[k]; n > 0 {
			take := min(n, (l.size-sum+k-1)/k)
			m += take
			sum += take * k
		}
	}
	m = max(m, l.lo)
	if sum < l.size || m > min(l.hi, t.nodes) {
		return 0
	}
	return m
}

// byRanks puts most room first, then the least waste, then the name.
func byRanks(a, b spot) int {
	return cmp.Or(cmp.Compare(b.ranks, a.ranks), a.waste.Compare(b.waste), cmp.Compare(a.at, b.at))
}

func byWaste(a, b spot) int {
	return cmp.Or(a.waste.Compare(b.waste), cmp.Compare(a.at, b.at))
}

// choose takes m members out of spots that hold the gang. wasteOf judges a spot for so
// many ranks.
func (l layout) choose(spots []spot, m int, wasteOf func(s spot, ranks int) cluster.Waste) []member {
	switch {
	case l.perNode > 0:
		return l.chooseFixed(spots, wasteOf)
	case l.even:
		return l.chooseEven(spots, m, wasteOf)
	}
	return l.chooseFill(spots, m, wasteOf)
}

func (l layout) chooseFixed(spots []spot, wasteOf func(spot, int) cluster.Waste) []member {
	full, rest := l.size/l.perNode, l.size%l.perNode
	out := best(spots, full, l.perNode, wasteOf)
	slices.SortFunc(out, func(a, b member) int { return cmp.Compare(a.at, b.at) })
	if rest == 0 {
		return out
	}
	left := slices.DeleteFunc(slices.Clone(spots), func(s spot) bool { return holds(out, s.at) })
	return append(out, best(left, 1, rest, wasteOf)...) // the short member is the last one
}

// best is the n spots with room for k ranks that waste least.
func best(spots []spot, n, k int, wasteOf func(spot, int) cluster.Waste) []member {
	fit := make([]spot, 0, len(spots))
	for _, s := range spots {
		if s.ranks >= k {
			s.waste = wasteOf(s, k)
			fit = append(fit, s)
		}
	}
	out := make([]member, 0, n)
	if n == 1 {
		return append(out, member{slices.MinFunc(fit, byWaste).at, k})
	}
	slices.SortFunc(fit, byWaste)
	for _, s := range fit[:n] {
		out = append(out, member{s.at, k})
	}
	return out
}

func (l layout) chooseEven(spots []spot, m int, wasteOf func(spot, int) cluster.Waste) []member {
	share := (l.size + m - 1) / m
	if enough := count(spots, share); enough >= m {
		out := best(spots, m, share, wasteOf)
		for i := range out {
			spots[i] = spot{at: out[i].at, ranks: share}
		}
		return l.level(spots[:m])
	}
	for i := range spots {
		spots[i].waste = wasteOf(spots[i], min(share, spots[i].ranks))
	}
	slices.SortFunc(spots, byRanks)
	return l.level(spots[:m])
}

// level deals the ranks as evenly as the spots' room allows. Taking the tightest first, a
// spot gets its share of what is left or all it holds; the spots after it hold at least
// as much, so what is left always fits.
func (l layout) level(spots []spot) []member {
	slices.SortFunc(spots, func(a, b spot) int { return cmp.Or(cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.at, b.at)) })
	left := l.size
	out := make([]member, len(spots))
	for i, s := range spots {
		n := len(spots) - i
		k := min(s.ranks, (left+n-1)/n)
		out[i] = member{s.at, k}
		left -= k
	}
	return byName(out)
}

// chooseFill fills m nodes, the fewest that hold the gang, leaving as little room over as
// it can: of the runs of m neighbours in the order of room the last one that holds the
// gang has the least; its largest m-1 are filled, and the rest of the ranks goes to the
// node anywhere that they fit best.
func (l layout) chooseFill(spots []spot, m int, wasteOf func(spot, int) cluster.Waste) []member {
	if m == 1 {
		return best(spots, 1, l.size, wasteOf)
	}
	for i := range spots {
		spots[i].waste = wasteOf(spots[i], spots[i].ranks)
	}
	slices.SortFunc(spots, byRanks)
	from := l.lastRun(spots, m)
	out := make([]member, 0, m)
	left, next := l.size, 0
	for i := from; i < from+m-1; i++ {
		// Of spots with the same room the run ends with the wasteful ones: take as many,
		// but from the good end.
		if i == from || spots[i].ranks != spots[i-1].ranks {
			next, _ = slices.BinarySearchFunc(spots, spots[i].ranks, func(s spot, k int) int { return cmp.Compare(k, s.ranks) })
		}
		out = append(out, member{spots[next].at, spots[next].ranks})
		left -= spots[next].ranks
		next++
	}
	others := slices.DeleteFunc(slices.Clone(spots), func(s spot) bool { return s.ranks < left || holds(out, s.at) })
	return byName(append(out, best(others, 1, left, wasteOf)...))
}

// lastRun is where the last run of m spots begins that holds the gang.
func (l layout) lastRun(spots []spot, m int) int {
	sum := 0
	for _, s := range spots[:m] {
		sum += s.ranks
	}
	from := 0
	for i := m; i < len(spots); i++ {
		if sum += spots[i].ranks - spots[i-m].ranks; sum < l.size {
			break
		}
		from = i - m + 1
	}
	return from
}

func count(spots []spot, ranks int) int {
	n := 0
	for _, s := range spots {
		if s.ranks >= ranks {
			n++
		}
	}
	return n
}

func holds(ms []member, at int) bool {
	return slices.ContainsFunc(ms, func(m member) bool { return m.at == at })
}

func byName(ms []member) []member {
	slices.SortFunc(ms, func(a, b member) int { return cmp.Compare(a.at, b.at) })
	return ms
}
