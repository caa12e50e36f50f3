package fit

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/lab/plantest"
	"gangd/pkg/lab/transcript"
)

// deals reports whether ranks can be dealt to so many nodes of these capacities, one at least to each; with members given
// all are full but for one with the rest.
func deals(caps []int, l Layout, members, left int) bool {
	if members == 0 || len(caps) == 0 {
		return members == 0 && left == 0
	}
	for k := 1; k <= min(caps[0], left); k++ {
		if (l.perNode == 0 || k == l.perNode || k == l.size%l.perNode) && deals(caps[1:], l, members-1, left-k) {
			return true
		}
	}
	return deals(caps[1:], l, members, left)
}

// fewestMembers tries every number of members.
func fewestMembers(caps []int, l Layout) int {
	for m := l.lo; m <= l.hi; m++ {
		if (l.perNode == 0 || m == (l.size+l.perNode-1)/l.perNode) && deals(caps, l, m, l.size) {
			return m
		}
	}
	return 0
}

// eachLayout goes through all small layouts on all small clusters, the roomiest node first.
func eachLayout(f func(caps []int, l Layout)) {
	for at := range 4 * 4 * 4 * 4 {
		caps := []int{at / 64, at / 16 % 4, at / 4 % 4, at % 4}
		if !slices.IsSortedFunc(caps, func(a, b int) int { return b - a }) {
			continue
		}
		caps = slices.DeleteFunc(caps, func(k int) bool { return k == 0 })
		for size := 1; size <= 7; size++ {
			for perNode := range min(size, 3) + 1 {
				for lo := 1; lo <= 3; lo++ {
					for hi := 1; hi <= min(size, 4); hi++ {
						f(caps, Layout{size: size, perNode: perNode, lo: lo, hi: hi, even: lo > 1 || hi%2 == 0})
					}
				}
			}
		}
	}
}

// TestMembersAreTheFewest: as many as trying every deal of the ranks finds; those that are chosen hold the gang.
func TestMembersAreTheFewest(t *testing.T) {
	eachLayout(func(caps []int, l Layout) {
		choices, sum := make([]Choice, len(caps)), new(Tally)
		for i, k := range caps {
			choices[i] = Choice{At: i, Ranks: k}
			sum.Add(k)
		}
		m := l.Members(sum)
		if want := fewestMembers(caps, l); m != want {
			t.Fatalf("%+v on %v: %d members, want %d", l, caps, m, want)
		}
		if m == 0 {
			return
		}
		wasteOf := func(s Choice, ranks int) cluster.Waste { return cluster.Waste{Price: int64(s.Ranks - ranks)} }
		got := l.Choose(slices.Clone(choices), sum, m, wasteOf)
		checkMembers(t, l, caps, m, got)
		kept := l.ChooseBackfill(slices.Clone(choices))
		checkMembers(t, l, caps, len(kept), kept)
	})
}

func checkMembers(t *testing.T, l Layout, caps []int, m int, got []Member) {
	t.Helper()
	left, full, on := l.size, 0, map[int]bool{}
	for _, x := range got {
		if x.Ranks < 1 || x.Ranks > caps[x.At] || on[x.At] {
			t.Fatalf("%+v on %v: %+v", l, caps, got)
		}
		on[x.At] = true
		left -= x.Ranks
		if x.Ranks == l.perNode {
			full++
		}
	}
	if left != 0 || len(got) != m || len(got) < l.lo || len(got) > l.hi || l.perNode > 0 && full != l.size/l.perNode {
		t.Fatalf("%+v on %v: %+v, want %d", l, caps, got, m)
	}
}

// TestChosenMembers: which nodes are taken, of such as are alike to a gang and cost unlike much, for a start and for kept places.
func TestChosenMembers(t *testing.T) {
	part := transcript.Of(t, *update).Part()
	for i := range 75 {
		rapid.Custom(func(t *rapid.T) int {
			var choices []Choice
			sum, price, text := new(Tally), map[int]int64{}, ""
			next := int32(0)
			for range rapid.IntRange(1, 5).Draw(t, "choices") {
				c := Choice{Ranks: rapid.IntRange(1, 5).Draw(t, "ranks")}
				c.now = rapid.IntRange(0, c.Ranks).Draw(t, "now")
				c.free = c.now + rapid.IntRange(0, 2).Draw(t, "free")
				var at []int32
				for range rapid.IntRange(1, 3).Draw(t, "alike") {
					at = append(at, next)
					next++
				}
				c.At, c.like = int(at[0]), listOf(at)
				price[c.At] = int64(rapid.IntRange(0, 3).Draw(t, "price"))
				sum.AddAll(c.Ranks, len(at))
				text += fmt.Sprintf(" %dx%d:%d+%d$%d", len(at), c.Ranks, c.now, c.free, price[c.At])
				choices = append(choices, c)
			}
			size := rapid.IntRange(1, min(12, sum.Ranks)).Draw(t, "size")
			l := Layout{size: size, lo: rapid.IntRange(1, 2).Draw(t, "lo"), hi: min(size, rapid.IntRange(1, 9).Draw(t, "hi")), even: rapid.Bool().Draw(t, "even")}
			if rapid.IntRange(0, 2).Draw(t, "given") == 0 {
				l.perNode = rapid.IntRange(1, size).Draw(t, "per node")
			}
			m := l.Members(sum)
			if m == 0 {
				return 0
			}
			wasteOf := func(s Choice, ranks int) cluster.Waste { return cluster.Waste{Price: price[s.At] + int64(ranks)} }
			part.Printf("%+v on%s: %v kept %v", l, text, l.Choose(slices.Clone(choices), sum, m, wasteOf), l.ChooseBackfill(slices.Clone(choices)))
			return 0
		}).Example(i)
	}
}

// TestLayoutOfAnAsk: the bounds of the members and whether they are level.
func TestLayoutOfAnAsk(t *testing.T) {
	for _, tt := range []struct {
		spec api.Spec
		want Layout
	}{
		{api.Spec{Size: 4}, Layout{size: 4, lo: 1, hi: 4}},
		{api.Spec{Size: 4, MinNodes: 1}, Layout{size: 4, lo: 1, hi: 4, even: true}},
		{api.Spec{Size: 4, MinNodes: 2, MaxNodes: 3}, Layout{size: 4, lo: 2, hi: 3, even: true}},
		{api.Spec{Size: 4, MaxNodes: 5}, Layout{size: 4, lo: 1, hi: 4}},
		{api.Spec{Size: 4, RanksPerNode: 3}, Layout{size: 4, perNode: 3, lo: 1, hi: 4}},
		{api.Spec{Size: 4, RanksPerNode: 5}, Layout{size: 4, perNode: 4, lo: 1, hi: 4}},
		{api.Spec{Size: 4, GPUsPerNode: 1}, Layout{size: 4, lo: 1, hi: 4, even: true}},
		{api.Spec{Size: 4, GPUsPerRank: 1}, Layout{size: 4, lo: 1, hi: 4}},
	} {
		if got := LayoutOf(plantest.NeedOf(t, tt.spec)); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.spec, got, tt.want)
		}
	}
}
