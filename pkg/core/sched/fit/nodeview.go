package fit

import (
	"iter"
	"slices"

	"gangd/pkg/core/cluster"
)

// NodeView is the nodes as some gangs see them: with what has started on them, and with the
// backfills that these gangs would be in the way of. Views share what is the same in them: a
// plan has one more of them than backfills, which differ in a few nodes.
type NodeView struct {
	classes *nodeClasses
	pool    *pool  // of a clone
	lists   *lists // that of the pool
	id      int    // of its pages: those of another are not written to
	Size    int
	nodes   []*nodePage
	of      []*classPage // by class: its nodes
	closed  []bool       // nodes that who looks may not use, by place in nodes; nil: none
	live    []*NodeClass // classes that have had a node, in no order that may matter
}

// Pages are small, since the nodes of a backfill lie anywhere: each is copied for one of them.
const (
	pageBits = 4
	pageSize = 1 << pageBits
)

type nodePage struct {
	owner   int
	nodes   [pageSize]*cluster.Node
	classes [pageSize]*NodeClass
}

type classPage struct {
	owner int
	lists [pageSize]nodeList
	own   [pageSize]int // whose each list is
}

// baseView is the id of the view that lasts from plan to plan.
const baseView = 1

func newNodeView(ks *nodeClasses, nodes []*cluster.Node) *NodeView {
	l := &NodeView{classes: ks, id: baseView, Size: len(nodes)}
	for range (len(nodes) + pageSize - 1) / pageSize {
		l.nodes = append(l.nodes, &nodePage{owner: l.id})
	}
	of := make(map[*NodeClass][]int32)
	for at, n := range nodes {
		if n.Ready {
			n = n.Counted()
		}
		p, k := l.nodePage(at), ks.of(n)
		p.nodes[at&(pageSize-1)], p.classes[at&(pageSize-1)] = n, k
		if k != nil {
			if of[k] == nil {
				l.live = append(l.live, k)
			}
			of[k] = append(of[k], int32(at))
		}
	}
	for _, k := range l.live {
		*l.list(k) = listOf(of[k])
	}
	return l
}

// Node is the one at an index.
func (l *NodeView) Node(at int) *cluster.Node { return l.nodes[at>>pageBits].nodes[at&(pageSize-1)] }

// Class is that of the node at an index; nil: it takes no new work.
func (l *NodeView) Class(at int) *NodeClass { return l.nodes[at>>pageBits].classes[at&(pageSize-1)] }

// members is the nodes of a class.
func (l *NodeView) members(k *NodeClass) *nodeList {
	if k.id>>pageBits >= len(l.of) {
		return &nodeList{}
	}
	return &l.of[k.id>>pageBits].lists[k.id&(pageSize-1)]
}

// Every goes through all nodes.
func (l *NodeView) Every() iter.Seq2[int, *cluster.Node] {
	return func(yield func(int, *cluster.Node) bool) {
		for at := range l.Size {
			if !yield(at, l.Node(at)) {
				return
			}
		}
	}
}

// All is every node, in a list of the caller's own.
func (l *NodeView) All() []*cluster.Node {
	out := make([]*cluster.Node, 0, len(l.nodes)*pageSize)
	for _, p := range l.nodes {
		out = append(out, p.nodes[:]...)
	}
	return out[:l.Size]
}

// Set puts another state of a node in.
func (l *NodeView) Set(at int, n *cluster.Node) {
	if n.Ready {
		n = n.Counted()
	}
	l.place(at, n, l.classes.of(n))
}

// place is set where the class is known.
func (l *NodeView) place(at int, n *cluster.Node, k *NodeClass) {
	p := l.nodePage(at)
	i := at & (pageSize - 1)
	old := p.classes[i]
	p.nodes[i], p.classes[i] = n, k
	if old == k {
		return
	}
	if old != nil {
		l.list(old).remove(int32(at), l.lists)
	}
	if k != nil {
		list := l.list(k)
		if list.count == 0 && !slices.Contains(l.live, k) {
			l.live = append(l.live, k)
		}
		list.insert(int32(at), l.lists)
	}
}

// nodePage is the page of a node, to be changed.
func (l *NodeView) nodePage(at int) *nodePage {
	p := l.nodes[at>>pageBits]
	if p.owner != l.id {
		own := l.pool.nodes.next()
		*own = *p
		own.owner = l.id
		p, l.nodes[at>>pageBits] = own, own
	}
	return p
}

// list is the nodes of a class, to be changed.
func (l *NodeView) list(k *NodeClass) *nodeList {
	l.know(k.id)
	p := l.of[k.id>>pageBits]
	if p.owner != l.id {
		own := l.pool.classes.next()
		*own = *p
		own.owner = l.id
		p, l.of[k.id>>pageBits] = own, own
	}
	i := k.id & (pageSize - 1)
	if p.own[i] != l.id {
		p.own[i], p.lists[i] = l.id, l.lists.own(p.lists[i])
	}
	return &p.lists[i]
}

// know makes place for the classes up to an id.
func (l *NodeView) know(id int) {
	for len(l.of) <= id>>pageBits {
		l.of = append(l.of, &classPage{owner: l.id})
	}
}

// Open lists the nodes that something may go to.
func (l *NodeView) Open() []int32 {
	var out []int32
	for _, k := range l.live {
		if !k.closed {
			out = l.members(k).appendTo(out)
		}
	}
	if l.closed != nil {
		out = slices.DeleteFunc(out, func(at int32) bool { return l.closed[at] })
	}
	slices.Sort(out)
	return out
}

// Shut is the view as somebody sees it who may not use some nodes, by place.
func (l *NodeView) Shut(closed []bool) *NodeView {
	view := *l
	view.closed = closed
	return &view
}

// Shuts reports whether who looks may not use a node.
func (l *NodeView) Shuts(at int) bool { return l.closed != nil && l.closed[at] }

// tidy drops classes that have no node any more. All others are made place for, so that clones
// need not.
func (l *NodeView) tidy() {
	l.know(len(l.classes.list) - 1)
	l.live = slices.DeleteFunc(l.live, func(k *NodeClass) bool { return l.members(k).count == 0 })
}

// pool is the views of the nodes of one plan beside the base, and their memory, which the next plan uses
// again: on a large cluster making them anew would cost more than the plan.
type pool struct {
	all     []*NodeView
	used    int
	ids     int
	nodes   pages[nodePage]
	classes pages[classPage]
	lists   lists
}

// clone is a view that can be changed without changing l, until the pool is reset; what
// both hold is shared from now on.
func (p *pool) clone(l *NodeView) *NodeView {
	if p.used == len(p.all) {
		p.all = append(p.all, &NodeView{})
	}
	c := p.all[p.used]
	p.used++
	c.classes, c.pool, c.lists, c.Size = l.classes, p, &p.lists, l.Size
	c.nodes, c.of, c.live = append(c.nodes[:0], l.nodes...), append(c.of[:0], l.of...), append(c.live[:0], l.live...)
	// Neither writes to what it had so far. The base is not written to while it has clones.
	p.ids++
	if c.id = baseView + p.ids; l.id != baseView {
		l.id = c.id
	}
	return c
}

func (p *pool) reset() {
	p.used, p.ids, p.nodes.used, p.classes.used = 0, 0, 0, 0
	p.lists.reset()
}

// pages is memory for those of all clones of one plan.
type pages[T any] struct {
	all  []*T
	used int
}

// next is a page with anything in it, good until the plan is over.
func (a *pages[T]) next() *T {
	if a.used == len(a.all) {
		a.all = append(a.all, new(T))
	}
	a.used++
	return a.all[a.used-1]
}

// MostFree is no less than any one node has free.
func (l *NodeView) MostFree() (most Amount) {
	for _, k := range l.live {
		if l.members(k).count == 0 {
			continue
		}
		most.cards = max(most.cards, k.node.OpenCards())
		for r := range most.of {
			most.of[r] = max(most.of[r], k.node.Free(cluster.Resource(r)))
		}
	}
	return most
}

// OpenCards is how many cards of ready nodes nobody has.
func (l *NodeView) OpenCards() (n int) {
	for _, k := range l.live {
		n += l.members(k).count * k.node.OpenCards()
	}
	return n
}

// OpenCardsOn is how many of one node nobody has, 0 where it takes no new work.
func (l *NodeView) OpenCardsOn(at int) int {
	switch k := l.Class(at); {
	case k == nil:
		return 0
	case k.whole:
		return l.Node(at).OpenCards()
	default:
		return k.node.OpenCards()
	}
}

// Kinds is how many classes its nodes may be of.
func (l *NodeView) Kinds() int { return len(l.live) }
