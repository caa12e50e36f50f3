package fit

import (
	"fmt"
	"testing"
)

// TestChoiceGroups: nodes that are alike are one choice, in their order, as often as it is asked.
func TestChoiceGroups(t *testing.T) {
	var gs Groups
	for range 2 {
		gs.Reset()
		gs.Add([]int32{5}, 1, 4, 2, 1)
		gs.Add([]int32{7, 9}, 20, 4, 2, 2)
		gs.Add([]int32{1, 3}, 6, 4, 2, 1)
		gs.Add([]int32{8}, 1, 4, 1, 2)
		gs.Add([]int32{0}, 1, 3, 2, 2)
		text := ""
		for _, c := range gs.Made() {
			text += fmt.Sprintf("%d %v of %d: %d %d %d; ", c.At, c.like.runs, c.like.count, c.Ranks, c.now, c.free)
		}
		if want := "1 [[1 3 5]] of 7: 4 2 1; 7 [[7 9]] of 20: 4 2 2; 8 [[8]] of 1: 4 1 2; 0 [[0]] of 1: 3 2 2; "; text != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
}
