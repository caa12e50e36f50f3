package engine

import (
	"fmt"
	"slices"
	"testing"

	"gangd/pkg/gang"
)

// A node is named once, in the order of its first rank, wherever its other ranks are.
func TestNodesOf(t *testing.T) {
	j := &gang.Job{Past: &gang.Past{Members: make([]gang.Member, 3)}}
	for _, n := range []string{"b", "b", "a", "", "b", "c", "a"} {
		r := gang.Rank{}
		r.Slot.Node = n
		j.Ranks = append(j.Ranks, r)
	}
	if got := nodesOf(j); !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("%v", got)
	}
}

func BenchmarkNodesOf(b *testing.B) {
	j := &gang.Job{Past: &gang.Past{Members: make([]gang.Member, 2048)}, Ranks: make([]gang.Rank, 8*2048)}
	for i := range j.Ranks {
		j.Ranks[i].Slot.Node = fmt.Sprintf("n%05d", i/8)
	}
	for b.Loop() {
		nodesOf(j)
	}
}
