package cluster

import (
	"cmp"
	"slices"
)

// Weights of a pair of cards. A node has fewer than 100 cards, so that no number of
// pairs on one NUMA node outweighs an NVLink.
const (
	linkPeer = 10000
	linkNUMA = 1
)

// growFromAll is how many cards are each grown from. Of more, which only slices of cards (MIG) are, one of
// those with the same links is: 512 of them took hundreds of milliseconds. Where links are irregular
// that can miss the best set, so that nodes of whole cards, of 16 at most, do without.
const growFromAll = 32

// near chooses want cards: all of must, the rest from the pool, grown greedily from each
// possible first card; the set with most links inside wins,
// then the one that cuts the fewest links to what stays, then the smallest indexes.
func near(n *Node, must, pool []int, want int) []int {
	all := slices.Concat(must, pool)
	slices.Sort(all)
	if want == len(all) {
		return all
	}
	m := links(n, all)
	first := growth{m: m, taken: make([]bool, len(all)), in: make([]int, len(all)), rest: make([]int, len(all))}
	for i, row := range m {
		for _, w := range row {
			first.rest[i] += w
		}
	}
	for i, c := range all {
		if slices.Contains(must, c) {
			first.take(i)
		}
	}
	var best cardSet
	var tried []int
	for seed := range all {
		if first.taken[seed] || len(all) > growFromAll && slices.ContainsFunc(tried, func(t int) bool { return m.twins(t, seed) }) {
			continue
		}
		tried = append(tried, seed)
		s := first.grow(all, seed, want)
		if best.cards == nil || s.compare(best) < 0 {
			best = s
		}
	}
	return best.cards
}

type cardSet struct {
	cards       []int // sorted
	inside, cut int
}

func (s cardSet) compare(o cardSet) int {
	return cmp.Or(cmp.Compare(o.inside, s.inside), cmp.Compare(s.cut, o.cut), slices.Compare(s.cards, o.cards))
}

// linkMatrix holds the weight of each pair of the cards in question.
type linkMatrix [][]int

func links(n *Node, cards []int) linkMatrix {
	m := make(linkMatrix, len(cards))
	flat := make([]int, len(cards)*len(cards))
	for i := range cards {
		m[i] = flat[i*len(cards) : (i+1)*len(cards)]
		for j := range cards[:i] {
			m[i][j] = link(&n.Cards[cards[i]], &n.Cards[cards[j]])
			m[j][i] = m[i][j]
		}
	}
	return m
}

func link(x, y *Card) int {
	w := 0
	if slices.Contains(x.Peers, y.Index) || slices.Contains(y.Peers, x.Index) {
		w = linkPeer
	}
	if x.NUMA >= 0 && x.NUMA == y.NUMA {
		w += linkNUMA
	}
	return w
}

// twins reports whether two cards have the same links to each third one, as all have that are on one NUMA
// node without NVLink: growing from either gives sets that are as good.
func (m linkMatrix) twins(a, b int) bool {
	x, y := m[a], m[b]
	for i := range x {
		if x[i] != y[i] && i != a && i != b {
			return false
		}
	}
	return true
}

// grow adds to what is taken and the seed, one at a time, the card with most links into the set,
// of equals the one with fewest to the rest. The sums are kept up, not made again.
func (f *growth) grow(all []int, seed, want int) cardSet {
	g := growth{m: f.m, taken: slices.Clone(f.taken), in: slices.Clone(f.in), rest: slices.Clone(f.rest), size: f.size, inside: f.inside}
	g.take(seed)
	for g.size < want {
		g.take(g.next())
	}
	s := cardSet{inside: g.inside}
	for i, c := range all {
		if g.taken[i] {
			s.cards = append(s.cards, c)
			s.cut += g.rest[i]
		}
	}
	return s
}

// growth is a set of cards being grown.
type growth struct {
	m        linkMatrix
	taken    []bool
	in, rest []int // links of each card into the set, and to the cards outside of it
	size     int
	inside   int
}

func (g *growth) take(c int) {
	g.taken[c] = true
	g.size++
	g.inside += g.in[c]
	for i, w := range g.m[c] {
		g.in[i] += w
		g.rest[i] -= w
	}
}

func (g *growth) next() int {
	best := -1
	for i := range g.taken {
		if g.taken[i] {
			continue
		}
		if best < 0 || g.in[i] > g.in[best] || g.in[i] == g.in[best] && g.rest[i] < g.rest[best] {
			best = i
		}
	}
	return best
}
