package fit

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"gangd/pkg/core/cluster"
)

// TestCountedMembersAreTheFewest: as many as trying every set of nodes finds, each with its places of the counts; those that are
// chosen are such a set.
func TestCountedMembersAreTheFewest(t *testing.T) {
	draw, found := rand.New(rand.NewPCG(1, 2)), 0
	for range 4000 {
		size := 1 + draw.IntN(6)
		l := Layout{size: size, perNode: draw.IntN(3) * draw.IntN(2), lo: 1 + draw.IntN(2), hi: 1 + draw.IntN(size), even: draw.IntN(2) == 0}
		l.perNode = min(l.perNode, size)
		counts := []cluster.Count{{Nodes: 1 + draw.IntN(2)}, {Nodes: 1}}[:1+draw.IntN(2)]
		c := &Counted{Layout: l, need: &cluster.Need{Counts: counts}}
		by := Marked{}
		var caps []int
		for at := range 1 + draw.IntN(5) {
			k, marks := 1+draw.IntN(3), uint(draw.IntN(1<<len(counts)))
			c.choices, c.marks, caps = append(c.choices, Choice{At: at, Ranks: k}), append(c.marks, marks), append(caps, k)
			by.Add(marks, k, 1)
		}
		c.pools = by.pools(l)
		// of is what a set of nodes can be: so many members that hold the gang and have the places of the counts.
		of := func(set uint) bool {
			var in []int
			var marks []uint
			for at, k := range caps {
				if set&(1<<at) != 0 {
					in, marks = append(in, k), append(marks, c.marks[at])
				}
			}
			m := len(in)
			if m < l.lo || m > l.hi || l.perNode > 0 && m != (size+l.perNode-1)/l.perNode {
				return false
			}
			return deals(in, l, m, size) && hasPlaces(counts, marks)
		}
		want := 0
		for set := range uint(1 << len(caps)) {
			if n := bits.OnesCount(set); of(set) && (want == 0 || n < want) {
				want = n
			}
		}
		m := c.Members()
		if m != want {
			t.Fatalf("%+v, counts %+v on %v with marks %v: %d members, want %d", l, counts, caps, c.marks, m, want)
		}
		if by.Holds(c.need, l) != (m > 0) {
			t.Fatalf("%+v on %v: by the tally it is not so", l, caps)
		}
		if m == 0 {
			continue
		}
		found++
		price := draw.Perm(len(caps))
		got := c.Choose(m, func(s Choice, ranks int) cluster.Waste { return cluster.Waste{Price: int64(price[s.At])} })
		checkMembers(t, l, caps, m, got)
		set := uint(0)
		for _, x := range got {
			set |= 1 << x.At
		}
		if !of(set) {
			t.Fatalf("%+v, counts %+v on %v with marks %v: %v", l, counts, caps, c.marks, got)
		}
		for at := range caps { // nobody of it could be a cheaper one
			for _, x := range got {
				if other := set&^(1<<x.At) | 1<<at; set&(1<<at) == 0 && price[at] < price[x.At] && of(other) && cheapest(price, other) < cheapest(price, set) {
					t.Fatalf("%+v, counts %+v on %v with marks %v for %v: %v, and %d is cheaper than %d", l, counts, caps, c.marks, price, got, at, x.At)
				}
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d fit", found)
	}
}

// cheapest is a set as a number that is the less, the cheaper its cheapest nodes are.
func cheapest(price []int, set uint) (sum int) {
	for at, p := range price {
		if set&(1<<at) != 0 {
			sum -= 1 << (len(price) - p)
		}
	}
	return sum
}

// hasPlaces tries to give each place of the counts a node of its own.
func hasPlaces(counts []cluster.Count, marks []uint) bool {
	for i, c := range counts {
		if c.Nodes == 0 {
			continue
		}
		less := slices.Clone(counts)
		less[i].Nodes--
		return slices.ContainsFunc(marks, func(m uint) bool {
			at := slices.Index(marks, m)
			return m&(1<<i) != 0 && hasPlaces(less, slices.Delete(slices.Clone(marks), at, at+1))
		})
	}
	return true
}
