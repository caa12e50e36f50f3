package fit

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/lab/plantest"
)

// TestViewsAreApart: each view has the nodes that were put into it, and their classes, whatever its clones became.
func TestViewsAreApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// state is the node at an index with so many CPUs taken; out of service with one more than it has.
		state := func(at, taken int) *cluster.Node {
			n := plantest.Node(fmt.Sprintf("n%02d", at), 2, 0, 0)
			if taken > 2 {
				n.Ready = false
				return n
			}
			return n.Restore(cluster.Grant{MemberKey: api.MemberKey{Job: 1, Epoch: 1}, Ranks: taken, Takes: cluster.Amounts{cluster.CPUs: int64(taken)}}).Counted()
		}
		var classes nodeClasses
		var p pool
		nodes := make([]*cluster.Node, rapid.IntRange(1, 40).Draw(t, "nodes"))
		for at := range nodes {
			nodes[at] = state(at, rapid.IntRange(0, 3).Draw(t, "taken"))
		}
		base := newNodeView(&classes, nodes)
		for range 2 { // two plans, the second with the memory of the first
			views, want := []*NodeView{base}, [][]*cluster.Node{nodes}
			for range rapid.IntRange(0, 30).Draw(t, "steps") {
				i := rapid.IntRange(0, len(views)-1).Draw(t, "view")
				if i == 0 && len(views) > 1 || rapid.IntRange(0, 3).Draw(t, "clone") == 0 { // the base is not written to while it has clones
					views, want = append(views, p.clone(views[i])), append(want, slices.Clone(want[i]))
					continue
				}
				at := rapid.IntRange(0, len(nodes)-1).Draw(t, "at")
				want[i][at] = state(at, rapid.IntRange(0, 3).Draw(t, "now"))
				views[i].Set(at, want[i][at])
			}
			for i := range views {
				checkView(t, views[i], want[i], &classes)
			}
			p.reset()
			base.tidy()
			checkView(t, base, nodes, &classes)
			for _, k := range base.live {
				if base.members(k).count == 0 {
					t.Fatal("a class that has no node lives")
				}
			}
		}
	})
}

func checkView(t *rapid.T, l *NodeView, want []*cluster.Node, classes *nodeClasses) {
	of := map[*NodeClass][]int{}
	var open []int32
	for at, n := range want {
		k := classes.of(n)
		if l.Node(at) != n || l.Class(at) != k {
			t.Fatalf("node %d is %+v, want %+v", at, l.Node(at), n)
		}
		if k != nil {
			of[k] = append(of[k], at)
		}
		if k != nil && !k.closed {
			open = append(open, int32(at))
		}
	}
	for _, k := range classes.list {
		if m := l.members(k); !slices.Equal(slices.Collect(m.each()), of[k]) || m.count != len(of[k]) {
			t.Fatalf("class %d has %v, want %v", k.id, m, of[k])
		}
		if len(of[k]) > 0 && !slices.Contains(l.live, k) {
			t.Fatalf("class %d has nodes and does not live", k.id)
		}
	}
	if got := l.All(); !slices.Equal(got, want) {
		t.Fatalf("%d nodes, want %d", len(got), len(want))
	}
	seen := 0
	for at, n := range l.Every() {
		if n != want[at] {
			t.Fatalf("node %d", at)
		}
		seen++
	}
	if got := l.Open(); seen != len(want) || !slices.Equal(got, open) {
		t.Fatalf("open are %v, want %v", got, open)
	}
	shut := *l
	shut.closed = make([]bool, len(want))
	shut.closed[0] = true
	if got := shut.Open(); slices.Contains(got, 0) || !shut.Shuts(0) || l.Shuts(0) || len(want) > 1 && shut.Shuts(1) {
		t.Fatalf("node 0 is shut, open are %v", got)
	}
}

// TestPlansUseTheirMemoryAgain: the last of many plans of the same nodes needs no more memory for its views than the second.
func TestPlansUseTheirMemoryAgain(t *testing.T) {
	nodes := plantest.Nodes(40, 8, 4, 80)
	var f Finder
	size := func() [5]int {
		l := &f.pool.lists
		return [5]int{len(f.pool.all), len(f.pool.nodes.all), len(f.pool.classes.all), len(l.nodes.all), len(l.runs.all)}
	}
	var second [5]int
	for plan := range 50 {
		f.Begin(nodes, nil, nil, nil)
		for i := range 8 {
			l := f.Clone(f.AsGiven())
			for at := i; at < len(nodes); at += 5 {
				n := *l.Node(at)
				n.Has[cluster.CPUs] -= int64(i + 1)
				l.Set(at, &n)
			}
		}
		if plan == 1 {
			second = size()
		}
	}
	if got := size(); got != second || got[0] != 8 {
		t.Errorf("%v, after the second plan %v", got, second)
	}
}
