package cluster

import (
	"cmp"
	"math"
	"slices"
)

// Weights of a pair of cards. A node has fewer than 1,000 cards, so that no number of
// pairs on one NUMA node outweighs an NVLink.
const (
	linkPeer = 1 << 20
	linkNUMA = 1
)

// near chooses want cards: all of must, the rest from the pool, grown greedily from each
// possible first card; the set with most links inside wins,
// then the one that cuts the fewest links to what stays, then the smallest indexes.
func near(n *Node, must, pool []int, want int) []int {
	if want == len(must)+len(pool) {
		all := slices.Concat(must, pool)
		slices.Sort(all)
		return all
	}
	l := newLinks(n, must, pool)
	chosen := append(l.cards(l.nearest(len(must), want)), must...)
	slices.Sort(chosen)
	return chosen
}

// links are some cards of a node, put together where they can't be told apart by their links: of a server with one
// kind of link that is a class or two, however many cards it has. Cards are told apart by their index alone where
// links leave a choice, so that what is grown of classes is what would be grown card by card.
type links struct {
	class  []linkClass
	weight []int32 // of a card of one class with another card of another one or of the same
	// Of the search for the nearest:
	want int
	best *growth
}

// linkClass is cards of one NUMA node with the same links to each third card, and the same with each other.
type linkClass struct {
	free   []int // that may be taken, ascending
	must   int   // how many are taken beforehand
	closer bool  // its cards have more links with each other than with any of another class
}

func newLinks(n *Node, must, pool []int) *links {
	all := slices.Concat(must, pool)
	rows := newLinkRows(n, all)
	l := &links{}
	var first []int // of each class, its index in all; and the second one, or the first again
	var second []int
	for i, c := range all {
		k := slices.IndexFunc(first, func(f int) bool { return n.Cards[all[f]].NUMA == n.Cards[c].NUMA && rows.alike(f, i) })
		if k < 0 {
			k = len(first)
			first, second = append(first, i), append(second, i)
			l.class = append(l.class, linkClass{})
		} else if second[k] == first[k] {
			second[k] = i
		}
		if i < len(must) {
			l.class[k].must++
		} else {
			l.class[k].free = append(l.class[k].free, c)
		}
	}
	l.weight = make([]int32, len(first)*len(first))
	for i, a := range first {
		slices.Sort(l.class[i].free)
		for j, b := range second {
			if i != j {
				b = first[j]
			}
			if a != b {
				l.weight[i*len(first)+j] = rows.weight(n, all, a, b)
			}
		}
	}
	for i := range l.class {
		l.class[i].closer = true
		for j, w := range l.row(i) {
			l.class[i].closer = l.class[i].closer && (i == j || int(w) < l.own(i))
		}
	}
	return l
}

// linkRows has a bit for each pair of cards that are linked.
type linkRows struct {
	words int
	bits  []uint64
}

func newLinkRows(n *Node, all []int) linkRows {
	r := linkRows{words: (len(all) + 63) / 64}
	r.bits = make([]uint64, len(all)*r.words)
	linked := false
	for _, c := range all {
		linked = linked || len(n.Cards[c].Peers) > 0
	}
	if !linked {
		return r
	}
	at := map[int][]int{} // by the card's own index
	for i, c := range all {
		at[n.Cards[c].Index] = append(at[n.Cards[c].Index], i)
	}
	for i, c := range all {
		for _, p := range n.Cards[c].Peers {
			for _, j := range at[p] {
				if i != j {
					r.bits[i*r.words+j/64] |= 1 << (j % 64)
					r.bits[j*r.words+i/64] |= 1 << (i % 64)
				}
			}
		}
	}
	return r
}

func (r linkRows) has(a, b int) bool { return r.bits[a*r.words+b/64]&(1<<(b%64)) != 0 }

// alike reports whether two cards have NVLinks to the same third ones.
func (r linkRows) alike(a, b int) bool {
	for w := range r.words {
		differ := r.bits[a*r.words+w] ^ r.bits[b*r.words+w]
		if a/64 == w {
			differ &^= 1 << (a % 64)
		}
		if b/64 == w {
			differ &^= 1 << (b % 64)
		}
		if differ != 0 {
			return false
		}
	}
	return true
}

func (r linkRows) weight(n *Node, all []int, a, b int) (w int32) {
	if r.has(a, b) {
		w = linkPeer
	}
	if x := n.Cards[all[a]].NUMA; x >= 0 && x == n.Cards[all[b]].NUMA {
		w += linkNUMA
	}
	return w
}

// growth is a set of cards being grown. It stands for those grown from each of the free cards first to last of a class,
// as long as these are the same.
type growth struct {
	of          []grown // by class
	seed        int     // the class
	first, last int
	size        int
	inside, cut int
	lowest      int // its first card, but for the musts
}

// grown is what a growth has of a class.
type grown struct {
	taken    int // of its free ones
	in, rest int // links of each card that is not taken into the set, and to the cards outside of it
}

func (g *growth) copy() *growth {
	c := *g
	c.of = slices.Clone(g.of)
	return &c
}

// nearest is the best set of so many cards, the musts among them.
func (l *links) nearest(musts, want int) *growth {
	l.want, l.best = want, nil
	start := growth{of: make([]grown, len(l.class)), size: musts}
	for i := range start.of {
		s := &start.of[i]
		for j, w := range l.row(i) {
			s.in += int(w) * l.class[j].must
			s.rest += int(w) * len(l.class[j].free)
		}
		s.rest -= l.own(i) // none with itself
	}
	for i := range l.class {
		free := l.class[i].free
		if len(free) == 0 || musts == 0 && l.class[i].closer && want <= len(free) && l.within(&start.of[i], i).compare(l.best) > 0 {
			continue
		}
		g := start.copy()
		g.seed, g.last = i, len(free)-1
		l.grow(g, i)
	}
	return l.best
}

// within is what becomes of a set that needs no card of another class.
func (l *links) within(s *grown, class int) *growth {
	own, n := l.own(class), l.want
	return &growth{inside: own * n * (n - 1) / 2, cut: n * (s.rest - own*(n-1)), lowest: l.class[class].free[0]}
}

// compare is how good two sets are; below 0: g is better.
func (g *growth) compare(o *growth) int {
	if o == nil {
		return -1
	}
	return cmp.Or(cmp.Compare(o.inside, g.inside), cmp.Compare(g.cut, o.cut), cmp.Compare(g.lowest, o.lowest))
}

// row is the weight of a card of a class with one of each class.
func (l *links) row(class int) []int32 {
	return l.weight[class*len(l.class) : (class+1)*len(l.class)]
}

// own is the weight of two cards of a class.
func (l *links) own(class int) int { return int(l.row(class)[class]) }

// grow adds to a set, one at a time, the card with most links into it, of equals the one with fewest to the rest, of these
// the one with the smallest index; one of class k first. Of a class whose cards are closer to each other all are taken
// that are left, or as many as are wanted, at once.
func (l *links) grow(g *growth, k int) {
	for chosen := g.size == 0 || g.of[g.seed].taken > 0; ; chosen = true {
		more := 1
		if l.class[k].closer && chosen {
			more = min(len(l.class[k].free)-g.of[k].taken, l.want-g.size)
		}
		g.inside += more*g.of[k].in + more*(more-1)/2*l.own(k)
		g.of[k].taken += more
		g.size += more
		next, at := -1, 0
		for i, w := range l.row(k) {
			s := &g.of[i]
			s.in += more * int(w)
			s.rest -= more * int(w)
			free := l.class[i].free
			if i == g.seed || s.taken == len(free) {
				continue
			}
			if next >= 0 {
				if c := s.compare(&g.of[next]); c > 0 || c == 0 && free[s.taken] > at {
					continue
				}
			}
			next, at = i, free[s.taken]
		}
		if g.size == l.want {
			break
		}
		if k = next; l.seedIsNext(g, next, at) {
			k = g.seed
		}
	}
	g.lowest = math.MaxInt
	for i := range g.of {
		s, c := &g.of[i], &l.class[i]
		g.cut += (s.taken + c.must) * (s.rest + l.own(i))
		if s.taken > 1 || s.taken == 1 && i != g.seed {
			g.lowest = min(g.lowest, c.free[0])
		} else if s.taken == 1 {
			g.lowest = min(g.lowest, c.free[g.first])
		}
	}
	if c := g.compare(l.best); c < 0 || c == 0 && slices.Compare(l.cards(g), l.cards(l.best)) < 0 {
		l.best = g
	}
}

// compare orders cards by which is taken first.
func (s *grown) compare(o *grown) int {
	return cmp.Or(cmp.Compare(o.in, s.in), cmp.Compare(s.rest, o.rest))
}

// seedIsNext reports whether a card of the seed's class is taken before the one at, the first free of class next, -1: none.
func (l *links) seedIsNext(g *growth, next, at int) bool {
	s, free := &g.of[g.seed], l.class[g.seed].free
	if s.taken == len(free) {
		return false
	}
	if next < 0 {
		return true
	}
	if c := s.compare(&g.of[next]); c != 0 {
		return c < 0
	}
	// The first one left is the one behind all that were taken, unless the seed is further behind.
	all := s.taken - 1 // but the seed
	switch farther, nearer := free[all] < at, free[all+1] < at; {
	case farther == nearer || g.last <= all:
		return nearer
	case g.first <= all:
		far := g.copy()
		far.first, g.last = all+1, all
		l.grow(far, g.seed)
		return false
	}
	return true
}

// cards is the best set that a growth stands for, but for the musts, ascending.
func (l *links) cards(g *growth) (out []int) {
	for i := range g.of {
		free, taken := l.class[i].free, g.of[i].taken
		if i == g.seed && g.first >= taken {
			taken--
			out = append(out, free[g.first])
		}
		out = append(out, free[:taken]...)
	}
	slices.Sort(out)
	return out
}

// remove takes the cards of a set away.
func (l *links) remove(g *growth) {
	for i := range g.of {
		c, taken := &l.class[i], g.of[i].taken
		if i == g.seed && g.first >= taken {
			taken--
			c.free = slices.Delete(c.free, g.first, g.first+1)
		}
		c.free = c.free[taken:]
	}
}

// groups deals cards, ascending, to ranks, each rank's near each other.
func groups(n *Node, chosen []int, size int) [][]int {
	if size == 1 || size >= len(chosen) {
		return slices.Collect(slices.Chunk(chosen, size))
	}
	l := newLinks(n, nil, chosen)
	var out [][]int
	for left := len(chosen); left > size; left -= size {
		g := l.nearest(0, size)
		out = append(out, l.cards(g))
		l.remove(g)
	}
	var last []int
	for i := range l.class {
		last = append(last, l.class[i].free...)
	}
	slices.Sort(last)
	out = append(out, last)
	slices.SortFunc(out, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return out
}
