package sched

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// Three nodes of unlike room, and three roles that fit on them in one way alone: r2 has n2 with
// the rest of it for a rank of r0. Out of service the cards are no reason to wait: none is asked for.
func TestRolesThatFitInOneWay(t *testing.T) {
	for name, state := range map[string]api.CardState{"cards in service": api.CardOK, "cards drained": api.CardQuarantined} {
		nodes := []*cluster.Node{testNode("n1", 2, 2, 40), testNode("n2", 5, 1, 40), testNode("n3", 2, 4, 40)}
		for i, n := range nodes {
			n.Has[cluster.Memory] = []int64{gib, gib, gib / 2}[i]
			if i > 0 {
				n.Features = []string{"ib"}
			}
			for k := range n.Cards {
				n.Cards[k].State = state
			}
			nodes[i] = n.Counted()
		}
		spec := api.Spec{Size: 4, Exclusive: true, Roles: []api.Role{
			{Name: "r0", Count: 2, CPUsPerRank: 2, Constraint: "ib"},
			{Name: "r1", Count: 1, CPUsPerRank: 2, MemoryPerRank: gib},
			{Name: "r2", Count: 1, CPUsPerRank: 3},
		}}
		c := candidate(1, spec)
		p := &order.Policy{Partitions: []api.Partition{{Name: "gpu"}}}
		if err := Unsatisfiable(nodes, p, c.Ask); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		plan := planned(t, epoch0, &View{Nodes: nodes, Queue: queueOf(c)}, p)
		if len(plan.Starts) != 1 {
			t.Errorf("%s: accepted, but %d starts on the empty cluster", name, len(plan.Starts))
		}
	}
}

// TestSearchTriesEveryWay: parts are found places wherever there are some, within the bounds of their members.
func TestSearchTriesEveryWay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var nodes []*cluster.Node
		var list []int32
		free := make([]int, rapid.IntRange(1, 3).Draw(rt, "nodes"))
		for i := range free {
			free[i] = rapid.IntRange(1, 5).Draw(rt, "cpus")
			nodes, list = append(nodes, testNode(fmt.Sprint("n", i), free[i], 0, 0)), append(list, int32(i))
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
			parts = append(parts, needOf(t, s))
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
			l := layoutOf(p)
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
	p, l := parts[0], layoutOf(parts[0])
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
	nodes := []*cluster.Node{testNode("n1", 1, 0, 0), testNode("n2", 1, 0, 0)}
	parts := []*cluster.Need{needOf(t, api.Spec{Size: 1, CPUsPerRank: 1}), needOf(t, api.Spec{Size: 1, CPUsPerRank: 1})}
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
