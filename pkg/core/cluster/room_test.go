package cluster

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

// TestRoomIsTheNodes: what a room says is what the node without the released grants says.
func TestRoomIsTheNodes(t *testing.T) {
	var r Room // one for all, as a plan uses it
	rapid.Check(t, func(t *rapid.T) {
		n := testNode(rapid.IntRange(0, 3).Draw(t, "cards"))
		n.Ready = rapid.IntRange(0, 9).Draw(t, "ready") > 0
		for i := range rapid.IntRange(0, 6).Draw(t, "grants") {
			n = n.Restore(genGrant(t, n, int64(i+1)))
		}
		d, err := NewNeed(AskOf(&api.Spec{Size: 4, GPUsPerRank: rapid.IntRange(0, 2).Draw(t, "per rank"), CPUsPerRank: 2,
			Exclusive: rapid.IntRange(0, 4).Draw(t, "exclusive") == 0}, nil))
		if err != nil {
			t.Fatal(err)
		}
		left := n
		r.Of(n)
		if rapid.Bool().Draw(t, "emptied") {
			r.OfEmptied(n)
			left = n.Emptied()
		} else {
			for i := range n.Grants {
				if k := n.Grants[i].MemberKey; rapid.Bool().Draw(t, "release") {
					r.Release(k)
					left = left.Release(k)
				}
			}
			if got := r.Node(); !reflect.DeepEqual(got, left) {
				t.Fatalf("%+v, want %+v", got, left)
			}
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "added") {
			g := genGrant(t, n, int64(10+i))
			r.Restore(&g)
			left = left.Restore(g)
		}
		if got, want := r.Ranks(d), d.Ranks(left); got != want {
			t.Fatalf("%d ranks, the node holds %d", got, want)
		}
		g := genGrant(t, n, 20)
		_, err = left.Take(g)
		if r.Fits(&g) != (err == nil) || left.Fits(&g) != (err == nil) {
			t.Fatalf("room fits: %t, node fits: %t, take: %v", r.Fits(&g), left.Fits(&g), err)
		}
	})
}
