package fit

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
		class  *NodeClass
	}
	next int
}

// Remembered is grants that are put on nodes in more plans than one.
func Remembered(grants []Grant) []Grant {
	for i := range grants {
		grants[i].put = &restoreMemo{}
	}
	return grants
}

// PutAll adds grants whatever is free.
func (l *NodeView) PutAll(grants []Grant) {
next:
	for i := range grants {
		g := &grants[i]
		on := l.Node(g.At)
		if g.put == nil {
			l.Set(g.At, on.Restore(g.Grant))
			continue
		}
		for j := range g.put.last {
			if p := &g.put.last[j]; p.on == on {
				l.place(g.At, p.is, p.class)
				continue next
			}
		}
		l.Set(g.At, on.Restore(g.Grant))
		p := &g.put.last[g.put.next]
		p.on, p.is, p.class = on, l.Node(g.At), l.Class(g.At)
		g.put.next = (g.put.next + 1) % len(g.put.last)
	}
}

// Grant is a grant with the index of its node.
type Grant struct {
	At int
	cluster.Grant
	put *restoreMemo // of a backfill
}

// Grants is what slots take, node by node. The slots of a node follow each other, except
// in a gang with roles.
func (f *Finder) Grants(c *order.Candidate, slots []cluster.Slot, epoch int, until time.Time) []Grant {
	key := api.MemberKey{Job: c.Job, Epoch: epoch}
	if c.Ask.Parts != nil {
		return f.mixedGrants(c, slots, key, until)
	}
	var out []Grant
	for len(slots) > 0 {
		n := 1
		for n < len(slots) && slots[n].Node == slots[0].Node {
			n++
		}
		out = append(out, Grant{At: f.Find(slots[0].Node), Grant: cluster.GrantFor(c.Ask, key, slots[:n], until)})
		slots = slots[n:]
	}
	return out
}

func (f *Finder) mixedGrants(c *order.Candidate, slots []cluster.Slot, key api.MemberKey, until time.Time) []Grant {
	ranks := make(map[string][]int)
	var order []string
	for r, s := range slots {
		if ranks[s.Node] == nil {
			order = append(order, s.Node)
		}
		ranks[s.Node] = append(ranks[s.Node], r)
	}
	out := make([]Grant, len(order))
	for i, name := range order {
		out[i] = Grant{At: f.Find(name), Grant: cluster.GrantOf(c.Ask, key, ranks[name], func(r int) cluster.Slot { return slots[r] }, until)}
	}
	return out
}

// Find is the index of a node by its name; -1: there is none.
func (f *Finder) Find(name string) int {
	at, found := slices.BinarySearchFunc(f.nodes, name, func(n *cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return -1
	}
	return at
}
