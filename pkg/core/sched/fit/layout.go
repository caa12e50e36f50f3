package fit

import (
	"cmp"
	"math"
	"slices"

	"gangd/pkg/core/cluster"
)

// Choice is a node with room for some ranks of the gang in question, or several that are
// alike.
type Choice struct {
	At    int        // index of the node; nodes are sorted by name, so ties by at are ties by name
	like  nodeList   // all nodes of the choice, at first; empty: at alone
	class *NodeClass // of a choice of several
	Ranks int        // how many fit on each, at most the gang's size
	now   int        // of a backfill: how many of them fit without waiting for anything
	free  int        // of a backfill: cards (without cards: CPUs) that need not be waited for
	waste cluster.Waste
}

// listed is how many of them are at hand: of those of a backfill only the first.
func (s *Choice) listed() int {
	n := 0
	for _, run := range s.like.runs {
		n += len(run)
	}
	return max(1, n)
}

// Count is how many nodes it is.
func (s *Choice) Count() int { return max(1, s.like.count) }

// Member is how many ranks go to a node.
type Member struct{ At, Ranks int }

// Layout is how a gang may be cut into members.
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
type Layout struct {
	size, perNode int
	lo, hi        int  // members
	even          bool // spread evenly instead of filling node by node
}

// LayoutOf is that of an ask without roles.
func LayoutOf(d *cluster.Need) Layout {
	s := d.Ask.Spec
	l := Layout{size: d.Size, perNode: min(s.RanksPerNode, d.Size), lo: max(1, s.MinNodes), hi: d.Size}
	if s.MaxNodes > 0 {
		l.hi = min(l.hi, s.MaxNodes)
	}
	// A member's cards or a number of nodes asked for outright: people who write
	// --nodes=2 with 8 ranks expect 4 and 4.
	l.even = s.MinNodes > 0 || d.NodeCards > 0
	return l
}

// Tally counts nodes by how many ranks fit on them.
type Tally struct {
	by    []int // by[k] nodes hold k ranks
	Nodes int
	Ranks int
}

// Reset empties it.
func (t *Tally) Reset() {
	clear(t.by)
	t.by, t.Nodes, t.Ranks = t.by[:0], 0, 0
}

// Add counts one node that holds so many ranks.
func (t *Tally) Add(ranks int) { t.AddAll(ranks, 1) }

// AddAll adds n nodes, or takes them out again when n is negative.
func (t *Tally) AddAll(ranks, n int) {
	for len(t.by) <= ranks {
		t.by = append(t.by, 0)
	}
	t.by[ranks] += n
	t.Nodes += n
	t.Ranks += ranks * n
}

// atLeast is how many nodes hold at least k ranks.
func (t *Tally) atLeast(k int) int {
	n := 0
	for i := k; i < len(t.by); i++ {
		n += t.by[i]
	}
	return n
}

// sorted lists the capacities, largest first.
func (t *Tally) sorted() []int {
	out := make([]int, 0, t.Nodes)
	for k := len(t.by) - 1; k > 0; k-- {
		for range t.by[k] {
			out = append(out, k)
		}
	}
	return out
}

// Members is the least number of members that the gang can have on the nodes counted,
// 0 when it does not fit: see the proof at layout.
func (l Layout) Members(t *Tally) int {
	if t.Ranks < l.size {
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
	if sum < l.size || m > min(l.hi, t.Nodes) {
		return 0
	}
	return m
}

// byRanks puts most room first, then the least waste, then the name.
func byRanks(a, b Choice) int {
	return cmp.Or(cmp.Compare(b.Ranks, a.Ranks), a.waste.Compare(b.waste), cmp.Compare(a.At, b.At))
}

func byWaste(a, b Choice) int {
	return cmp.Or(a.waste.Compare(b.waste), cmp.Compare(a.At, b.At))
}

// wasteFunc is what placing so many ranks on a choice costs.
type wasteFunc func(s Choice, ranks int) cluster.Waste

// Choose takes m members out of choices that hold the gang; t is their tally.
func (l Layout) Choose(choices []Choice, t *Tally, m int, wasteOf wasteFunc) []Member {
	switch {
	case l.perNode > 0:
		return l.chooseFixed(choices, wasteOf)
	case l.even:
		return l.chooseEven(choices, m, wasteOf)
	}
	return l.chooseFill(choices, t, m, wasteOf)
}

func (l Layout) chooseFixed(choices []Choice, wasteOf wasteFunc) []Member {
	full, rest := l.size/l.perNode, l.size%l.perNode
	out := byName(best(choices, full, l.perNode, wasteOf, nil, func(s *Choice) bool { return s.Ranks >= l.perNode }))
	if rest == 0 {
		return out
	}
	// The short member is the last one.
	return append(out, best(choices, 1, rest, wasteOf, out, func(s *Choice) bool { return s.Ranks >= rest })...)
}

// best is the n allowed nodes that waste least with k ranks, none of those taken already.
func best(choices []Choice, n, k int, wasteOf wasteFunc, taken []Member, allowed func(*Choice) bool) []Member {
	fit := make([]*Choice, 0, len(choices))
	for i := range choices {
		if s := &choices[i]; allowed(s) {
			s.waste = wasteOf(*s, k)
			fit = append(fit, s)
		}
	}
	slices.SortFunc(fit, func(a, b *Choice) int { return byWaste(*a, *b) })
	out := make([]Member, 0, n)
	for _, s := range fit {
		if s.like.count == 0 {
			if !holds(taken, s.At) {
				out = append(out, Member{s.At, k})
			}
		}
		for at := range s.like.each() {
			if len(out) == n {
				break
			}
			if !holds(taken, at) {
				out = append(out, Member{at, k})
			}
		}
		if len(out) == n {
			break
		}
	}
	return out
}

func (l Layout) chooseEven(choices []Choice, m int, wasteOf wasteFunc) []Member {
	share := (l.size + m - 1) / m
	if count(choices, share) >= m {
		out := best(choices, m, share, wasteOf, nil, func(s *Choice) bool { return s.Ranks >= share })
		even := make([]Choice, m)
		for i := range out {
			even[i] = Choice{At: out[i].At, Ranks: share}
		}
		return l.level(even)
	}
	for i := range choices {
		choices[i].waste = wasteOf(choices[i], min(share, choices[i].Ranks))
	}
	slices.SortFunc(choices, byRanks)
	return l.level(apart(choices, m))
}

// apart is the first n nodes of choices, each a choice of its own.
func apart(choices []Choice, n int) []Choice {
	all := 0
	for i := range choices {
		all += choices[i].listed()
	}
	out := make([]Choice, 0, min(n, all))
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
		for one.At = range s.like.each() {
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
func (l Layout) level(choices []Choice) []Member {
	slices.SortFunc(choices, func(a, b Choice) int { return cmp.Or(cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.At, b.At)) })
	left := l.size
	out := make([]Member, len(choices))
	for i, s := range choices {
		n := len(choices) - i
		k := min(s.Ranks, (left+n-1)/n)
		out[i] = Member{s.At, k}
		left -= k
	}
	return byName(out)
}

// chooseFill fills m nodes, the fewest that hold the gang, leaving as little room over as
// it can: of the runs of m neighbours in the order of room the last one that holds the
// gang has the least; its largest m-1 are filled, and the rest of the ranks goes to the
// node anywhere that they fit best.
func (l Layout) chooseFill(choices []Choice, t *Tally, m int, wasteOf wasteFunc) []Member {
	out := make([]Member, 0, m)
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
		out = append(out, best(choices, n, k, wasteOf, nil, func(s *Choice) bool { return s.Ranks == k })...)
		left -= n * k
	}
	last := best(choices, 1, left, wasteOf, out, func(s *Choice) bool { return s.Ranks >= left })
	return byName(append(out, last...))
}

// lastRun is the last run of m capacities, of all in falling order, that holds the gang.
func (l Layout) lastRun(caps []int, m int) []int {
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

func count(choices []Choice, ranks int) int {
	n := 0
	for _, s := range choices {
		if s.Ranks >= ranks {
			n += s.Count()
		}
	}
	return n
}

func holds(ms []Member, at int) bool {
	return slices.ContainsFunc(ms, func(m Member) bool { return m.At == at })
}

func byName(ms []Member) []Member {
	slices.SortFunc(ms, func(a, b Member) int { return cmp.Compare(a.At, b.At) })
	return ms
}

// ChooseBackfill takes the choices with most room free already until they hold the gang. When
// that is more members than allowed, the ones with least room in all are exchanged for
// the largest others.
func (l Layout) ChooseBackfill(choices []Choice) []Member {
	if l.perNode > 0 {
		return l.backfillFixed(choices)
	}
	slices.SortFunc(choices, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(b.now, a.now), cmp.Compare(b.free, a.free), cmp.Compare(b.Ranks, a.Ranks), cmp.Compare(a.At, b.At))
	})
	var chosen []Choice
	sum := 0
	for _, s := range apart(choices, l.hi) {
		if sum >= l.size && len(chosen) >= l.lo {
			break
		}
		chosen = append(chosen, s)
		sum += s.Ranks
	}
	slices.SortStableFunc(chosen, byRanks)
	if sum < l.size {
		rest := apart(choices, math.MaxInt)[len(chosen):]
		slices.SortStableFunc(rest, byRanks)
		for i := len(chosen) - 1; sum < l.size; i-- {
			next := rest[len(chosen)-1-i]
			sum += next.Ranks - chosen[i].Ranks
			chosen[i] = next
		}
	}
	return l.dealBackfill(chosen)
}

// dealBackfill gives each choice a rank, then what is free there, then the rest.
func (l Layout) dealBackfill(choices []Choice) []Member {
	out := make([]Member, len(choices))
	left := l.size
	for pass := range 3 {
		for i, s := range choices {
			limit := [...]int{1, s.now, s.Ranks}[pass]
			k := min(left, max(0, limit-out[i].Ranks))
			out[i] = Member{s.At, out[i].Ranks + k}
			left -= k
		}
	}
	return byName(out)
}

func (l Layout) backfillFixed(choices []Choice) []Member {
	freeFirst := func(k int) func(a, b Choice) int {
		return func(a, b Choice) int {
			return cmp.Or(cmp.Compare(min(k, b.now), min(k, a.now)), cmp.Compare(b.free, a.free), cmp.Compare(a.Ranks, b.Ranks),
				cmp.Compare(a.At, b.At))
		}
	}
	var out []Member
	choices = apart(choices, math.MaxInt)
	for left := l.size; left > 0; {
		k := min(l.perNode, left)
		fit := slices.DeleteFunc(slices.Clone(choices), func(s Choice) bool { return s.Ranks < k || holds(out, s.At) })
		slices.SortFunc(fit, freeFirst(k))
		n := max(1, left/l.perNode)
		for _, s := range fit[:n] {
			out = append(out, Member{s.At, k})
			left -= k
		}
	}
	return out
}

// Most is the most members that the gang may have.
func (l Layout) Most() int { return l.hi }
