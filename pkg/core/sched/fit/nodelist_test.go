package fit

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNodeListIsASortedSet: a list of many runs, which are cut and joined, is what a sorted slice is, whatever came and went; and
// the list that it was made from stays as it was.
func TestNodeListIsASortedSet(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	all := make([]int32, 4*runNodes)
	for at := range all {
		all[at] = int32(at)
	}
	first, want := listOf(slices.Clone(all)), slices.Clone(all)
	mem := new(lists)
	l := mem.own(first)
	for step := range 100 {
		from := draw.IntN(len(all))
		adds := draw.IntN(2) == 0
		for _, at := range all[from:min(from+draw.IntN(2*runNodes), len(all))] {
			switch i, in := slices.BinarySearch(want, at); {
			case adds && !in:
				want = slices.Insert(want, i, at)
				l.insert(at, mem)
			case !adds && in:
				want = slices.Delete(want, i, i+1)
				l.remove(at, mem)
			}
		}
		if got := l.appendTo(nil); !slices.Equal(got, want) || l.count != len(want) {
			t.Fatalf("step %d, %d nodes: %v\nwant %v", step, l.count, got, want)
		}
	}
	if !slices.Equal(first.appendTo(nil), all) {
		t.Fatal("the list that it was made from is another now")
	}
}
