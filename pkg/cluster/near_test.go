package cluster

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What is chosen is as good as what is grown from the best of all cards: of few cards however they are linked, of
// many where they are the slices of equal cards.
func TestNearIsAsGoodAsFromAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &Node{Cards: make([]Card, rapid.OneOf(rapid.IntRange(2, 12), rapid.IntRange(growFromAll+10, growFromAll+16)).Draw(t, "cards"))}
		regular := len(n.Cards) > growFromAll
		group := rapid.IntRange(1, 6).Draw(t, "cards that are linked with each other")
		for i := range n.Cards {
			c := &n.Cards[i]
			c.Index, c.NUMA = i, rapid.IntRange(-1, 2).Draw(t, "NUMA node")
			if regular {
				c.NUMA = i / 4 / group
			}
			for j := range i {
				if i/group == j/group || !regular && rapid.IntRange(0, 7).Draw(t, "linked") == 0 {
					c.Peers = append(c.Peers, j)
				}
			}
		}
		var must, pool []int
		for i := range n.Cards {
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

		all := slices.Sorted(slices.Values(append(slices.Clone(must), pool...)))
		f := growth{m: links(n, all), taken: make([]bool, len(all)), in: make([]int, len(all)), rest: make([]int, len(all))}
		for i, row := range f.m {
			for _, w := range row {
				f.rest[i] += w
			}
		}
		for _, c := range must {
			f.take(c)
		}
		measure := func(cards []int) (s cardSet) {
			for i := range f.m {
				for j, w := range f.m[i] {
					switch a, b := slices.Contains(cards, i), slices.Contains(cards, j); {
					case a && b && j < i:
						s.inside += w
					case a && !b:
						s.cut += w
					}
				}
			}
			return s
		}
		best := measure(all)
		if want < len(all) {
			best = cardSet{inside: -1}
			for _, c := range pool {
				if s := f.grow(all, c, want); best.inside < 0 || s.compare(best) < 0 {
					best = s
				}
			}
		}
		got := near(n, must, pool, want)
		if m := measure(got); len(got) != want || m.inside != best.inside || m.cut != best.cut {
			t.Fatalf("%v: %d links inside, %d cut; from every card %v: %d, %d", got, m.inside, m.cut, best.cards, best.inside, best.cut)
		}
	})
}
