package cluster

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestNearIsGrownFromEachCard: what is found class by class is what is found when each card is told apart and grown from,
// however the cards are linked.
func TestNearIsGrownFromEachCard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawLinked(t)
		var must, pool []int
		for _, i := range rapid.Permutation(indexes(len(n.Cards))).Draw(t, "order") {
			if rapid.IntRange(0, 4).Draw(t, "must") == 0 {
				must = append(must, i)
			} else {
				pool = append(pool, i)
			}
		}
		if len(pool) == 0 {
			return
		}
		want := len(must) + rapid.IntRange(1, len(pool)).Draw(t, "more")
		if got, each := near(n, must, pool, want), nearByCard(n, must, pool, want); !slices.Equal(got, each) {
			t.Fatalf("%d of %v, of which %v must be: %v, grown from each card %v", want, pool, must, got, each)
		}
	})
}

// TestNearWhereTheFirstCardMatters: of two cards with the same links, which one is grown from decides ties of the others.
func TestNearWhereTheFirstCardMatters(t *testing.T) {
	for _, tt := range []struct {
		numa       []int
		peers      [][]int
		must, want int
	}{
		{[]int{0, 1, 2, 0, 1, 1, 0}, make([][]int, 7), 4, 5},
		{[]int{1, 0, 1, 0, 1, 0, 0, 1}, [][]int{{4, 2}, nil, {7, 4}, {6, 1, 5}, nil, {1}, nil, nil}, 0, 6},
	} {
		n := &Node{Cards: make([]Card, len(tt.numa))}
		for i := range n.Cards {
			n.Cards[i].Index, n.Cards[i].NUMA, n.Cards[i].Peers = i, tt.numa[i], tt.peers[i]
		}
		must := []int{tt.must}
		pool := slices.DeleteFunc(indexes(len(n.Cards)), func(i int) bool { return i == tt.must })
		if got, each := near(n, must, pool, tt.want), nearByCard(n, must, pool, tt.want); !slices.Equal(got, each) {
			t.Errorf("%v %v: %v, grown from each card %v", tt.numa, tt.peers, got, each)
		}
	}
}

// TestGroupsAreGrownFromEachCard: the same of the cards that ranks share a node with.
func TestGroupsAreGrownFromEachCard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawLinked(t)
		size := rapid.IntRange(1, min(5, len(n.Cards))).Draw(t, "cards of a rank")
		left := indexes(len(n.Cards) / size * size)
		got := groups(n, slices.Clone(left), size)
		var each [][]int
		for len(left) > 0 {
			g := nearByCard(n, nil, left, size)
			each = append(each, g)
			left = slices.DeleteFunc(left, func(c int) bool { return slices.Contains(g, c) })
		}
		slices.SortFunc(each, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
		if !slices.EqualFunc(got, each, slices.Equal) {
			t.Fatalf("%v, grown from each card %v", got, each)
		}
	})
}

func indexes(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// drawLinked is a node whose cards are islands of NVLink, with some links more or less, or are linked at random; a card
// stands at any place.
func drawLinked(t *rapid.T) *Node {
	size := rapid.OneOf(rapid.IntRange(2, 12), rapid.IntRange(13, 40)).Draw(t, "cards")
	island := rapid.IntRange(1, 8).Draw(t, "cards of an island")
	odd := rapid.SampledFrom([]int{0, 0, 1, 3, 100}).Draw(t, "odd links of a hundred")
	numa := rapid.SampledFrom([]int{0, 1, 4, 8}).Draw(t, "cards of a NUMA node")
	at := indexes(size)
	if rapid.Bool().Draw(t, "mixed") {
		at = rapid.Permutation(at).Draw(t, "places")
	}
	n := &Node{Cards: make([]Card, size)}
	for i, p := range at {
		c := &n.Cards[p]
		c.Index = p
		switch {
		case numa > 0:
			c.NUMA = i / numa
		default:
			c.NUMA = rapid.IntRange(-1, 2).Draw(t, "NUMA node")
		}
		for j, q := range at[:i] {
			linked := i/island == j/island
			if odd > 0 && rapid.IntRange(0, 99).Draw(t, "odd") < odd {
				linked = rapid.Bool().Draw(t, "linked")
			}
			if linked {
				c.Peers = append(c.Peers, q)
			}
		}
	}
	return n
}

// nearByCard is near by all pairs of cards, grown from each of them.
func nearByCard(n *Node, must, pool []int, want int) []int {
	all := slices.Concat(must, pool)
	slices.Sort(all)
	if want == len(all) {
		return all
	}
	link := func(a, b int) (w int) {
		x, y := &n.Cards[a], &n.Cards[b]
		if slices.Contains(x.Peers, y.Index) || slices.Contains(y.Peers, x.Index) {
			w = linkPeer
		}
		if x.NUMA >= 0 && x.NUMA == y.NUMA {
			w += linkNUMA
		}
		return w
	}
	type set struct {
		cards       []int
		inside, cut int
	}
	sums := func(cards []int, c int) (in, rest int) {
		for _, o := range all {
			switch {
			case o == c:
			case slices.Contains(cards, o):
				in += link(c, o)
			default:
				rest += link(c, o)
			}
		}
		return in, rest
	}
	var best set
	for _, seed := range all {
		if slices.Contains(must, seed) {
			continue
		}
		s := set{cards: append(slices.Clone(must), seed)}
		for len(s.cards) < want {
			next, most, least := -1, 0, 0
			for _, c := range all {
				if slices.Contains(s.cards, c) {
					continue
				}
				if in, rest := sums(s.cards, c); next < 0 || in > most || in == most && rest < least {
					next, most, least = c, in, rest
				}
			}
			s.cards = append(s.cards, next)
		}
		for _, c := range s.cards {
			in, rest := sums(s.cards, c)
			s.inside, s.cut = s.inside+in, s.cut+rest
		}
		slices.Sort(s.cards)
		if best.cards == nil || cmp.Or(cmp.Compare(best.inside, s.inside), cmp.Compare(s.cut, best.cut), slices.Compare(s.cards, best.cards)) < 0 {
			best = s
		}
	}
	return best.cards
}
