package fit

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/lab/plantest"
)

// TestSearchTriesEveryWay: parts are found places wherever there are some, within the bounds of their members.
func TestSearchTriesEveryWay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var nodes []*cluster.Node
		var list []int32
		free := make([]int, rapid.IntRange(1, 3).Draw(rt, "nodes"))
		for i := range free {
			free[i] = rapid.IntRange(1, 5).Draw(rt, "cpus")
			nodes, list = append(nodes, plantest.Node(fmt.Sprint("n", i), free[i], 0, 0)), append(list, int32(i))
		}
		var parts []*cluster.Need
		for range rapid.IntRange(2, 3).Draw(rt, "parts") {
			s := api.Spec{Size: rapid.IntRange(1, 4).Draw(rt, "size"), CPUsPerRank: rapid.IntRange(1, 2).Draw(rt, "each")}
			switch rapid.IntRange(0, 3).Draw(rt, "layout") {
			case 0:
				s.MinNodes = rapid.IntRange(1, 3).Draw(rt, "min")
			case 1:
				s.MaxNodes = rapid.IntRange(1, 3).Draw(rt, "max")
			case 2: // with a rest the short member is the last by name
				for s.RanksPerNode = rapid.IntRange(1, s.Size).Draw(rt, "per node"); s.Size%s.RanksPerNode > 0; s.RanksPerNode-- {
				}
			}
			parts = append(parts, plantest.NeedOf(t, s))
		}
		steps := searchSteps
		slots := searchParts(parts, nodes, list, nil, &steps, anyhow)
		if want := dealsParts(parts, free); (slots != nil) != want {
			rt.Fatalf("%v, want places: %t", slots, want)
		}
		for _, p := range parts {
			if slots == nil {
				return
			}
			on := map[string]int{}
			for _, s := range slots[:p.Size] {
				on[s.Node]++
			}
			l := LayoutOf(p)
			if len(on) < l.lo || len(on) > l.hi {
				rt.Fatalf("%v is not within %+v", on, l)
			}
			for name, k := range on {
				if at := int(name[1] - '0'); l.perNode > 0 && k != l.perNode {
					rt.Fatalf("%v is not within %+v", on, l)
				} else if free[at] -= k * int(p.PerRank[cluster.CPUs]); free[at] < 0 {
					rt.Fatalf("%s is given away twice", name)
				}
			}
			slots = slots[p.Size:]
		}
	})
}

// dealsParts tries every number of ranks on each node.
func dealsParts(parts []*cluster.Need, free []int) bool {
	if len(parts) == 0 {
		return true
	}
	p, l := parts[0], LayoutOf(parts[0])
	var on func(at, members, left int) bool
	on = func(at, members, left int) bool {
		if at == len(free) {
			return left == 0 && members >= l.lo && members <= l.hi && dealsParts(parts[1:], free)
		}
		for k := range min(left, free[at]/int(p.PerRank[cluster.CPUs])) + 1 {
			if k > 0 && l.perNode > 0 && k != l.perNode {
				continue
			}
			free[at] -= k * int(p.PerRank[cluster.CPUs])
			found := on(at+1, members+min(k, 1), left-k)
			free[at] += k * int(p.PerRank[cluster.CPUs])
			if found {
				return true
			}
		}
		return false
	}
	return on(0, 0, p.Size)
}

// TestSearchIsBounded: beyond so many looks it finds nothing, and with as many it does.
func TestSearchIsBounded(t *testing.T) {
	nodes := []*cluster.Node{plantest.Node("n1", 1, 0, 0), plantest.Node("n2", 1, 0, 0)}
	parts := []*cluster.Need{plantest.NeedOf(t, api.Spec{Size: 1, CPUsPerRank: 1}), plantest.NeedOf(t, api.Spec{Size: 1, CPUsPerRank: 1})}
	for steps, want := range []bool{false, false, false, true, true} {
		if slots := searchParts(parts, nodes, []int32{0, 1}, nil, &steps, anyhow); (slots != nil) != want {
			t.Errorf("%d steps: %v", steps, slots)
		}
	}
	steps := searchSteps
	if slots := searchParts(parts[:1], nodes, []int32{0, 1}, nil, &steps, anyhow); slots != nil {
		t.Error("one part is not searched for")
	}
	if slots := searchParts(parts, nodes, []int32{0, 1}, []string{"n1"}, &steps, anyhow); slots != nil {
		t.Error("on a node that is avoided")
	}
}

// anyhow holds of all places.
func anyhow([]cluster.Slot) bool { return true }
