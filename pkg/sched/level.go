package sched

import (
	"slices"

	"gangd/pkg/cluster"
)

// kind is nodes that are alike: see [cluster.Node.AppendKind]. What an ask finds out about
// one of them holds for all, in this plan and in later ones.
type kind struct {
	id     int
	node   *cluster.Node // any of them
	closed bool          // nothing can go there
	carded bool          // a card is open

	strands    stranding // what of its cards is of no use,
	strandedBy *mix      // to these asks
}

// kinds names them. Ids depend on the history of the planner, so nothing that a plan
// decides may depend on their order.
type kinds struct {
	byKey map[string]*kind
	list  []*kind
	buf   []byte
}

// of is the kind of a node, nil for one that takes no new work.
func (ks *kinds) of(n *cluster.Node) *kind {
	if !n.Ready {
		return nil
	}
	ks.buf = n.AppendKind(ks.buf[:0])
	if k := ks.byKey[string(ks.buf)]; k != nil {
		return k
	}
	return ks.add(n)
}

// emptied is the kind of a ready node with nothing on it.
func (ks *kinds) emptied(n *cluster.Node) *kind {
	ks.buf = n.AppendEmptiedKind(ks.buf[:0])
	if k := ks.byKey[string(ks.buf)]; k != nil {
		return k
	}
	return ks.add(n.Emptied())
}

// add makes the kind that is in buf.
func (ks *kinds) add(n *cluster.Node) *kind {
	k := &kind{id: len(ks.list), node: n, closed: n.FreeCPUs() <= 0, carded: n.OpenCards() > 0}
	if ks.byKey == nil {
		ks.byKey = map[string]*kind{}
	}
	ks.byKey[string(ks.buf)] = k
	ks.list = append(ks.list, k)
	return k
}

// level is the nodes as some gangs see them: with what has started on them, and with the
// claims that these gangs would be in the way of.
type level struct {
	kinds *kinds
	nodes []*cluster.Node
	kind  []*kind   // of each node
	of    [][]int32 // by kind: its nodes, ascending
	own   []bool    // by kind: of may be written to
	shut  []bool    // nodes that who looks may not use, by place in nodes; nil: none
	live  []*kind   // kinds that have had a node, in no order that may matter
	lists *lists    // where the lists of a clone are; nil: anywhere
}

// lists is memory for the lists of all clones of one plan.
type lists struct {
	blocks [][]int32
	block  int // in use
	from   int // of it
}

// Blocks grow from the first to the last size: most clusters are small.
const (
	firstListBlock = 1 << 9
	listBlock      = 1 << 14
)

// copy is a copy with room for some more, good until the plan is over.
func (a *lists) copy(list []int32) []int32 {
	n := len(list) + 8
	for a.block < len(a.blocks) && len(a.blocks[a.block])-a.from < n {
		a.block, a.from = a.block+1, 0
	}
	if a.block == len(a.blocks) {
		a.blocks = append(a.blocks, make([]int32, max(n, min(listBlock, firstListBlock<<len(a.blocks)))))
	}
	out := a.blocks[a.block][a.from : a.from+len(list) : a.from+n]
	a.from += n
	copy(out, list)
	return out
}

// owned takes all lists for the level's own again: no clone of it is in use any more.
func (l *level) owned() {
	for i := range l.own {
		l.own[i] = true
	}
}

func newLevel(ks *kinds, nodes []*cluster.Node) *level {
	l := &level{kinds: ks, nodes: make([]*cluster.Node, len(nodes)), kind: make([]*kind, len(nodes))}
	for at, n := range nodes {
		l.set(at, n)
	}
	return l
}

// pool is the levels of one planner: those of a plan are used again in the next, since on a
// large cluster making them anew would cost more than the plan.
type pool struct {
	all   []*level
	used  int
	lists lists
}

// clone is a level that can be changed without changing l, until the pool is reset; what
// both hold is shared from now on.
func (p *pool) clone(l *level) *level {
	if p.used == len(p.all) {
		p.all = append(p.all, &level{})
	}
	c := p.all[p.used]
	p.used++
	clear(l.own)
	c.lists = &p.lists
	c.kinds, c.nodes, c.kind = l.kinds, append(c.nodes[:0], l.nodes...), append(c.kind[:0], l.kind...)
	c.of, c.live = append(c.of[:0], l.of...), append(c.live[:0], l.live...)
	c.own = append(c.own[:0], l.own...)
	return c
}

func (p *pool) reset() { p.used, p.lists.block, p.lists.from = 0, 0, 0 }

// set puts another state of a node in.
func (l *level) set(at int, n *cluster.Node) {
	if n.Ready {
		n = n.Counted()
	}
	l.place(at, n, l.kinds.of(n))
}

// place is set where the kind is known.
func (l *level) place(at int, n *cluster.Node, k *kind) {
	l.nodes[at] = n
	old := l.kind[at]
	if old == k {
		return
	}
	l.kind[at] = k
	if old != nil {
		list := l.members(old)
		i, _ := slices.BinarySearch(list, int32(at))
		l.of[old.id] = slices.Delete(list, i, i+1)
	}
	if k != nil {
		if k.id < len(l.of) && len(l.of[k.id]) == 0 && !slices.Contains(l.live, k) || k.id >= len(l.of) {
			l.live = append(l.live, k)
		}
		list := l.members(k)
		i, _ := slices.BinarySearch(list, int32(at))
		l.of[k.id] = slices.Insert(list, i, int32(at))
	}
}

// members is the nodes of a kind, to be changed.
func (l *level) members(k *kind) []int32 {
	for len(l.of) <= k.id {
		l.of, l.own = append(l.of, nil), append(l.own, false)
	}
	if !l.own[k.id] {
		if l.own[k.id] = true; l.lists != nil {
			l.of[k.id] = l.lists.copy(l.of[k.id])
		} else {
			l.of[k.id] = slices.Clone(l.of[k.id])
		}
	}
	return l.of[k.id]
}

// open lists the nodes that something may go to.
func (l *level) open() []int32 {
	var out []int32
	for _, k := range l.live {
		if !k.closed {
			out = append(out, l.of[k.id]...)
		}
	}
	if l.shut != nil {
		out = slices.DeleteFunc(out, func(at int32) bool { return l.shut[at] })
	}
	slices.Sort(out)
	return out
}

// shuts reports whether who looks may not use a node.
func (l *level) shuts(at int) bool { return l.shut != nil && l.shut[at] }

// tidy drops kinds that have no node any more.
func (l *level) tidy() {
	l.live = slices.DeleteFunc(l.live, func(k *kind) bool { return len(l.of[k.id]) == 0 })
}
