package why

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
)

// TestManyAlternativesAreShortened: a table has a line for a gang, however many alternatives it names.
func TestManyAlternativesAreShortened(t *testing.T) {
	for n, want := range map[int]string{1: "a", 5: "a; b; c; d; e", 6: "a; b; c; d; e; 1 more alternative", 8: "a; b; c; d; e; 3 more alternatives"} {
		all := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		if got := shortened(all[:n]); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestRoomOfAlternative: what an alternative is short of, ranks, nodes with a feature, or nodes at once.
func TestRoomOfAlternative(t *testing.T) {
	for _, tt := range []struct {
		constraint string
		maxNodes   int
		rooms      []int  // ranks that fit on each node
		marks      []uint // what each node counts for
		want       string
	}{
		{"ib*2", 0, []int{2, 2}, []uint{1, 0}, "room for 4 of 4 ranks, 1 of 2 nodes with ib"},
		{"ib*2", 0, []int{2}, []uint{1}, "room for 2 of 4 ranks, 1 of 2 nodes with ib"},
		{"[ib*1&big*2]", 0, []int{4, 4}, []uint{1, 2}, "room for 4 of 4 ranks, 1 of 1 node with ib and 1 of 2 nodes with big"},
		{"ib*1", 2, []int{2, 1, 1}, []uint{1, 0, 0}, "room for 4 ranks, but not on at most 2 nodes"},
		{"[ib*1&big*1]", 2, []int{2, 2}, []uint{1, 2}, "room for 4 of 4 ranks, 1 of 1 node with ib and 1 of 1 node with big, but not for all of it on as many nodes as it may have"},
	} {
		d, err := cluster.NewNeed(cluster.AskOf(&api.Spec{Size: 4, Constraint: tt.constraint, MaxNodes: tt.maxNodes}, []string{"gpu"}))
		if err != nil {
			t.Fatal(err)
		}
		d = d.Alternatives[0]
		var room fit.Tally
		for _, ranks := range tt.rooms {
			room.Add(ranks)
		}
		if got := roomOfAlternative(d, &room, tt.marks); got != tt.want {
			t.Errorf("%s on %v: %q, want %q", tt.constraint, tt.rooms, got, tt.want)
		}
	}
}
