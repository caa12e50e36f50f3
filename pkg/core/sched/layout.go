package sched

import (
	"cmp"
	"math"
	"slices"

	"gangd/pkg/core/cluster"
)

// choice is a node with room for some ranks of the gang in question, or several that are
// alike.
type nodeChoice struct {
	at    int        // index of the node; nodes are sorted by name, so ties by at are ties by name
	like  nodeList   // all nodes of the choice, at first; empty: at alone
	class *nodeClass // of a choice of several
	ranks int        // how many fit on each, at most the gang's size
	now   int        // of a backfill: how many of them fit without waiting for anything
	free  int        // of a backfill: cards (without cards: CPUs) that need not be waited for
	waste cluster.Waste
}

// listed is how many of them are at hand: of those of a backfill only the first.
func (s *nodeChoice) listed() int {
	n := 0
	for _, run := range s.like.runs {
		n += len(run)
	}
	return max(1, n)
}

func (s *nodeChoice) count() int { return max(1, s.like.count) }

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

func (t *tally) add(ranks int) { t.addAll(ranks, 1) }

// addAll adds n nodes, or takes them out again when n is negative.
func (t *tally) addAll(ranks, n int) {
	for len(t.by) <= ranks {
		t.by = append(t.by, 0)
	}
	t.by[ranks] += n
	t.nodes += n
	t.ranks += ranks * n
}

// atLeast is how many nodes hold at least k ranks.
func (t *tally) atLeast(k int) int {
	n := 0
	for i := k; i < len(t.by); i++ {
		n += t.by[i]
	}
	return n
}

// sorted lists the capacities, largest first.
func (t *tally) sorted() []int {
	out := make([]int, 0, t.nodes)
	for k := len(t.by) - 1; k > 0; k-- {
		for range t.by[k] {
			out = append(out, k)
		}
	}
	return out
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
		if m < l.lo || m > l.hi || t.atLeast(l.perNode) < full || t.atLeast(rest) < m {
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
func byRanks(a, b nodeChoice) int {
	return cmp.Or(cmp.Compare(b.ranks, a.ranks), a.waste.Compare(b.waste), cmp.Compare(a.at, b.at))
}

func byWaste(a, b nodeChoice) int {
	return cmp.Or(a.waste.Compare(b.waste), cmp.Compare(a.at, b.at))
}

// wasteFunc is what placing so many ranks on a choice costs.
type wasteFunc func(s nodeChoice, ranks int) cluster.Waste

// choose takes m members out of choices that hold the gang; t is their tally.
func (l layout) choose(choices []nodeChoice, t *tally, m int, wasteOf wasteFunc) []member {
	switch {
	case l.perNode > 0:
		return l.chooseFixed(choices, wasteOf)
	case l.even:
		return l.chooseEven(choices, m, wasteOf)
	}
	return l.chooseFill(choices, t, m, wasteOf)
}

func (l layout) chooseFixed(choices []nodeChoice, wasteOf wasteFunc) []member {
	full, rest := l.size/l.perNode, l.size%l.perNode
	out := byName(best(choices, full, l.perNode, wasteOf, nil, func(s *nodeChoice) bool { return s.ranks >= l.perNode }))
	if rest == 0 {
		return out
	}
	// The short member is the last one.
	return append(out, best(choices, 1, rest, wasteOf, out, func(s *nodeChoice) bool { return s.ranks >= rest })...)
}

// best is the n allowed nodes that waste least with k ranks, none of those taken already.
func best(choices []nodeChoice, n, k int, wasteOf wasteFunc, taken []member, allowed func(*nodeChoice) bool) []member {
	fit := make([]*nodeChoice, 0, len(choices))
	for i := range choices {
		if s := &choices[i]; allowed(s) {
			s.waste = wasteOf(*s, k)
			fit = append(fit, s)
		}
	}
	slices.SortFunc(fit, func(a, b *nodeChoice) int { return byWaste(*a, *b) })
	out := make([]member, 0, n)
	for _, s := range fit {
		if s.like.count == 0 {
			if !holds(taken, s.at) {
				out = append(out, member{s.at, k})
			}
		}
		for at := range s.like.each() {
			if len(out) == n {
				break
			}
			if !holds(taken, at) {
				out = append(out, member{at, k})
			}
		}
		if len(out) == n {
			break
		}
	}
	return out
}

func (l layout) chooseEven(choices []nodeChoice, m int, wasteOf wasteFunc) []member {
	share := (l.size + m - 1) / m
	if count(choices, share) >= m {
		out := best(choices, m, share, wasteOf, nil, func(s *nodeChoice) bool { return s.ranks >= share })
		even := make([]nodeChoice, m)
		for i := range out {
			even[i] = nodeChoice{at: out[i].at, ranks: share}
		}
		return l.level(even)
	}
	for i := range choices {
		choices[i].waste = wasteOf(choices[i], min(share, choices[i].ranks))
	}
	slices.SortFunc(choices, byRanks)
	return l.level(apart(choices, m))
}

// apart is the first n nodes of choices, each a choice of its own.
func apart(choices []nodeChoice, n int) []nodeChoice {
	all := 0
	for i := range choices {
		all += choices[i].listed()
	}
	out := make([]nodeChoice, 0, min(n, all))
	for _, s := range choices {
		if len(out) == n {
			break
		}
		if s.like.count == 0 {
			out = append(out, s)
			continue
		}
		one := s
		one.like = nodeList{}
		for one.at = range s.like.each() {
			if len(out) == n {
				break
			}
			out = append(out, one)
		}
	}
	return out
}

// level deals the ranks as evenly as the choices' room allows. Taking the tightest first, a
// choice gets its share of what is left or all it holds; the choices after it hold at least
// as much, so what is left always fits.
func (l layout) level(choices []nodeChoice) []member {
	slices.SortFunc(choices, func(a, b nodeChoice) int { return cmp.Or(cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.at, b.at)) })
	left := l.size
	out := make([]member, len(choices))
	for i, s := range choices {
		n := len(choices) - i
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
func (l layout) chooseFill(choices []nodeChoice, t *tally, m int, wasteOf wasteFunc) []member {
	out := make([]member, 0, m)
	left := l.size
	var run []int
	if m > 1 {
		run = l.lastRun(t.sorted(), m)
	}
	for i := 0; i < m-1; {
		k, n := run[i], 0
		for ; i < m-1 && run[i] == k; i++ {
			n++
		}
		out = append(out, best(choices, n, k, wasteOf, nil, func(s *nodeChoice) bool { return s.ranks == k })...)
		left -= n * k
	}
	last := best(choices, 1, left, wasteOf, out, func(s *nodeChoice) bool { return s.ranks >= left })
	return byName(append(out, last...))
}

// lastRun is the last run of m capacities, of all in falling order, that holds the gang.
func (l layout) lastRun(caps []int, m int) []int {
	sum := 0
	for _, k := range caps[:m] {
		sum += k
	}
	from := 0
	for i := m; i < len(caps); i++ {
		if sum += caps[i] - caps[i-m]; sum < l.size {
			break
		}
		from = i - m + 1
	}
	return caps[from : from+m]
}

func count(choices []nodeChoice, ranks int) int {
	n := 0
	for _, s := range choices {
		if s.ranks >= ranks {
			n += s.count()
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

// chooseBackfill takes the choices with most room free already until they hold the gang. When
// that is more members than allowed, the ones with least room in all are exchanged for
// the largest others.
func (l layout) chooseBackfill(choices []nodeChoice) []member {
	if l.perNode > 0 {
		return l.backfillFixed(choices)
	}
	slices.SortFunc(choices, func(a, b nodeChoice) int {
		return cmp.Or(cmp.Compare(b.now, a.now), cmp.Compare(b.free, a.free), cmp.Compare(b.ranks, a.ranks), cmp.Compare(a.at, b.at))
	})
	var chosen []nodeChoice
	sum := 0
	for _, s := range apart(choices, l.hi) {
		if sum >= l.size && len(chosen) >= l.lo {
			break
		}
		chosen = append(chosen, s)
		sum += s.ranks
	}
	slices.SortStableFunc(chosen, byRanks)
	if sum < l.size {
		rest := apart(choices, math.MaxInt)[len(chosen):]
		slices.SortStableFunc(rest, byRanks)
		for i := len(chosen) - 1; sum < l.size; i-- {
			next := rest[len(chosen)-1-i]
			sum += next.ranks - chosen[i].ranks
			chosen[i] = next
		}
	}
	return l.dealBackfill(chosen)
}

// dealBackfill gives each choice a rank, then what is free there, then the rest.
func (l layout) dealBackfill(choices []nodeChoice) []member {
	out := make([]member, len(choices))
	left := l.size
	for pass := range 3 {
		for i, s := range choices {
			limit := [...]int{1, s.now, s.ranks}[pass]
			k := min(left, max(0, limit-out[i].ranks))
			out[i] = member{s.at, out[i].ranks + k}
			left -= k
		}
	}
	return byName(out)
}

func (l layout) backfillFixed(choices []nodeChoice) []member {
	freeFirst := func(k int) func(a, b nodeChoice) int {
		return func(a, b nodeChoice) int {
			return cmp.Or(cmp.Compare(min(k, b.now), min(k, a.now)), cmp.Compare(b.free, a.free), cmp.Compare(a.ranks, b.ranks),
				cmp.Compare(a.at, b.at))
		}
	}
	var out []member
	choices = apart(choices, math.MaxInt)
	for left := l.size; left > 0; {
		k := min(l.perNode, left)
		fit := slices.DeleteFunc(slices.Clone(choices), func(s nodeChoice) bool { return s.ranks < k || holds(out, s.at) })
		slices.SortFunc(fit, freeFirst(k))
		n := max(1, left/l.perNode)
		for _, s := range fit[:n] {
			out = append(out, member{s.at, k})
			left -= k
		}
	}
	return out
}

// most is the most members that the gang may have.
func (l layout) most() int { return l.hi }
