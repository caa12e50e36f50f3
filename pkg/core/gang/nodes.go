package gang

import (
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/nearest"
)

// nodes are all that are known, and what changed of them since the last Take.
type nodes struct {
	set *api.Settings

	byName map[string]*host
	sorted []*host           // the same, ascending: each plan asks for all of them
	paths  map[string]string // the switches above each, for the environment of ranks
	away   int               // those without a session

	dirty  []*host
	forgot []string
	woken  []string // whose desired set changed; with repeats: a map that was once large stays slow to walk
	room   bool     // one offers something else than at the last TakeQueue
}

// host is a node with what is derived from it.
type host struct {
	node        *Node
	owned       bool // cloned since the last Take
	stored      bool // something that the store keeps changed since the last Take
	members     map[api.MemberKey]place
	clock       api.NodeClock              // of the machine, against this one's; zero: not known
	contact     time.Duration              // last time it was heard of, when it has no session now
	since       time.Duration              // when its newest session began
	staleLogged map[api.MemberKey]struct{} // stale claims already put on record in this session
	expired     map[api.MemberKey]struct{} // leases that ran out while most nodes were away
	strays      map[api.MemberKey]struct{} // what lives there and has no grant any more, by the node's own word in this session
	found       map[api.MemberKey]struct{} // members whose records are not whole there, already put on record
}

// place is where a live member is kept.
type place struct {
	e *entry
	i int
}

// preparing: it has not said yet that it is prepared.
func (p place) preparing() bool {
	_, prepared := p.e.prepared[p.i]
	return p.e.job.Members[p.i].State == MemberPreparing && !prepared
}

// edit gives the node to write to.
func (ns *nodes) edit(h *host) *Node {
	h.stored = true
	return ns.show(h)
}

// show is edit for what is shown but not stored.
func (ns *nodes) show(h *host) *Node {
	if !h.owned {
		c := *h.node
		c.Left = slices.Clone(c.Left)
		h.node = &c
		h.owned = true
		ns.dirty = append(ns.dirty, h)
	}
	return h.node
}

// find is the newest form of a node, nil when it is not known.
func (ns *nodes) find(name string) *Node {
	if h := ns.byName[name]; h != nil {
		return h.node
	}
	return nil
}

// all are all known nodes by name.
func (ns *nodes) all() []*Node {
	out := make([]*Node, len(ns.sorted))
	for i, h := range ns.sorted {
		out[i] = h.node
	}
	return out
}

// at is where the node of a name is among all, or belongs.
func (ns *nodes) at(name string) int {
	i, _ := slices.BinarySearchFunc(ns.sorted, name, func(h *host, name string) int { return strings.Compare(h.node.Name, name) })
	return i
}

// add makes a node known, of which nothing was heard yet.
func (ns *nodes) add(name string) *host {
	h := &host{node: &Node{Name: name, State: api.NodeUnknown, Res: &cluster.Node{Name: name}}, members: map[api.MemberKey]place{}}
	ns.byName[name] = h
	ns.sorted = slices.Insert(ns.sorted, ns.at(name), h)
	ns.away++
	return h
}

func (ns *nodes) unknown(name string) *api.Error {
	return NoNode(name, slices.Sorted(maps.Keys(ns.byName)))
}

// NoNode says that there is none of a name, and which there are.
func NoNode(name string, known []string) *api.Error {
	e := api.Errorf(api.CodeNotFound, "no node %q", name).About(api.ReasonNode, name)
	if e.Hint = nearest.Hint(name, known, "nodes are "+hostlist.Compress(known)); len(known) == 0 {
		e.Hint = "there are none"
	}
	return e
}

// clockOf is what is known of the clock of a node.
func (ns *nodes) clockOf(node string) api.NodeClock {
	if h := ns.byName[node]; h != nil && h.clock.Within > 0 {
		return h.clock
	}
	return api.NodeClock{Within: unknownClock}
}

// unknownClock is how far the clocks of a site may be apart when nothing was measured: they are set by the network.
const unknownClock = time.Second

// cutOff: more than half of the known nodes, and at least two, are away.
func (ns *nodes) cutOff() bool {
	return ns.away >= 2 && 2*ns.away > len(ns.byName)
}

// isAway: the node of a member has no session.
func (ns *nodes) isAway(m Member) bool { return !ns.byName[m.Node].node.Connected }

func (ns *nodes) cardType(node, uuid string) string {
	if h := ns.byName[node]; h != nil {
		if i := slices.IndexFunc(h.node.Res.Cards, func(c cluster.Card) bool { return c.UUID == uuid }); i >= 0 {
			return h.node.Res.Cards[i].Model
		}
	}
	return "unknown"
}

// wake has nodes look at what is desired of them.
func (ns *nodes) wake(names ...string) { ns.woken = append(ns.woken, names...) }

// take gives what changed, each node once, by name.
func (ns *nodes) take(ch *Changes) {
	slices.SortFunc(ns.dirty, func(a, b *host) int { return strings.Compare(a.node.Name, b.node.Name) })
	for _, h := range ns.dirty {
		if h.stored {
			ch.Nodes = append(ch.Nodes, h.node)
		} else {
			ch.Seen = append(ch.Seen, h.node)
		}
		h.owned, h.stored = false, false
	}
	ch.Forgot, ch.Dirty = unique(ns.forgot), unique(ns.woken)
	ns.dirty, ns.forgot, ns.woken = nil, nil, nil
}

// granted: a grant has the card.
func granted(n *cluster.Node, uuid string) bool {
	return slices.ContainsFunc(n.Grants, func(g cluster.Grant) bool {
		return slices.ContainsFunc(g.Cards, func(c cluster.CardGrant) bool { return c.UUID == uuid })
	})
}

func cardAt(n *cluster.Node, uuid string) int {
	return slices.IndexFunc(n.Cards, func(c cluster.Card) bool { return c.UUID == uuid })
}
