package sched

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// restoreMemo remembers what nodes became by a grant: one of each view that it was put on, in
// this plan or an earlier one. Nodes are immutable, so that the same pointer is the same
// question.
type restoreMemo struct {
	last [8]struct {
		on, is *cluster.Node
		class  *nodeClass
	}
	next int
}

// remembered is grants that are put on nodes in more plans than one.
func remembered(grants []nodeGrant) []nodeGrant {
	for i := range grants {
		grants[i].put = &restoreMemo{}
	}
	return grants
}

// putAll adds grants whatever is free.
func (l *nodeView) putAll(grants []nodeGrant) {
next:
	for i := range grants {
		g := &grants[i]
		on := l.node(g.at)
		if g.put == nil {
			l.set(g.at, on.Restore(g.Grant))
			continue
		}
		for j := range g.put.last {
			if p := &g.put.last[j]; p.on == on {
				l.place(g.at, p.is, p.class)
				continue next
			}
		}
		l.set(g.at, on.Restore(g.Grant))
		p := &g.put.last[g.put.next]
		p.on, p.is, p.class = on, l.node(g.at), l.class(g.at)
		g.put.next = (g.put.next + 1) % len(g.put.last)
	}
}

// nodeGrant is a grant with the index of its node.
type nodeGrant struct {
	at int
	cluster.Grant
	put *restoreMemo // of a backfill
}

// grants is what slots take, node by node. The slots of a node follow each other, except
// in a gang with roles.
func (f *finder) grants(c *order.Candidate, slots []cluster.Slot, epoch int, until time.Time) []nodeGrant {
	key := api.MemberKey{Job: c.Job, Epoch: epoch}
	if c.Ask.Parts != nil {
		return f.mixedGrants(c, slots, key, until)
	}
	var out []nodeGrant
	for len(slots) > 0 {
		n := 1
		for n < len(slots) && slots[n].Node == slots[0].Node {
			n++
		}
		out = append(out, nodeGrant{at: f.find(slots[0].Node), Grant: cluster.GrantFor(c.Ask, key, slots[:n], until)})
		slots = slots[n:]
	}
	return out
}

func (f *finder) mixedGrants(c *order.Candidate, slots []cluster.Slot, key api.MemberKey, until time.Time) []nodeGrant {
	ranks := make(map[string][]int)
	var order []string
	for r, s := range slots {
		if ranks[s.Node] == nil {
			order = append(order, s.Node)
		}
		ranks[s.Node] = append(ranks[s.Node], r)
	}
	out := make([]nodeGrant, len(order))
	for i, name := range order {
		out[i] = nodeGrant{at: f.find(name), Grant: cluster.GrantOf(c.Ask, key, ranks[name], func(r int) cluster.Slot { return slots[r] }, until)}
	}
	return out
}

func (f *finder) find(name string) int {
	at, found := slices.BinarySearchFunc(f.nodes, name, func(n *cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return -1
	}
	return at
}
