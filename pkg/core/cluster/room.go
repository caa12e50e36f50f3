package cluster

import "gangd/pkg/api"

// Room is what there would be on a node if some of its grants were given back or others were
// made: the sums alone, in memory that is used again. A plan asks this of many nodes and
// goes with few of them. The zero value is of no node.
type Room struct {
	node  *Node
	u     usage
	cards []cardUse
	gone  []api.MemberKey
}

// Of makes it the room of n as it is.
func (r *Room) Of(n *Node) {
	r.node, r.gone, r.u = n, r.gone[:0], *n.use()
	r.cards = append(r.cards[:0], r.u.cards...)
	r.u.cards = r.cards
}

// OfEmptied makes it the room of n without grants; strangers stay.
func (r *Room) OfEmptied(n *Node) {
	r.node, r.gone = n, r.gone[:0]
	r.cards = append(r.cards[:0], make([]cardUse, len(n.Cards))...)
	r.u = usage{counted: n.Cards, cards: r.cards}
	r.u.look(n)
}

// Release gives back what the node grants under k; nothing happens when that is nothing. It
// must not be called twice for one key, nor after OfEmptied.
func (r *Room) Release(k api.MemberKey) {
	if at, found := r.node.find(k); found {
		r.ReleaseAt(at)
	}
}

// ReleaseAt is Release of the grant at an index.
func (r *Room) ReleaseAt(i int) {
	g := &r.node.Grants[i]
	r.u.add(r.node, g, -1)
	r.u.look(r.node)
	r.gone = append(r.gone, g.MemberKey)
}

// Restore adds a grant whatever is free. [Room.Node] does not have it.
func (r *Room) Restore(g *Grant) {
	r.u.add(r.node, g, 1)
	r.u.look(r.node)
}

// Ranks is [Need.Ranks] with this room.
func (r *Room) Ranks(d *Need) int { return d.ranks(r.node, &r.u) }

// Fits reports whether a grant under a key that is not held there could be added.
func (r *Room) Fits(g *Grant) bool {
	what, _ := r.node.lack(&r.u, g)
	return what == lacksNothing
}

// Node is the node without what was released.
func (r *Room) Node() *Node {
	n := r.node
	for _, k := range r.gone {
		n = n.Release(k)
	}
	return n
}

// Fits reports whether [Node.Take] would add a grant.
func (n *Node) Fits(g *Grant) bool {
	if _, held := n.find(g.MemberKey); held {
		return false
	}
	what, _ := n.lack(n.use(), g)
	return what == lacksNothing
}
