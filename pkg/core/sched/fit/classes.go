package fit

import (
	"slices"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// NodeClass is nodes that are alike: see [cluster.Node.AppendClass]. What an ask finds out about
// one of them holds for all, in this plan and in later ones.
type NodeClass struct {
	id     int
	node   *cluster.Node // any of them
	closed bool          // nothing can go there
	carded bool          // a card is open
	whole  bool          // one gang has the node, so that nothing is told of its cards: those of the others may differ

	strands    stranding  // what of its cards is of no use,
	strandedBy *order.Mix // to these asks
}

// nodeClasses names them. Ids depend on the history of the planner, so nothing that a plan
// decides may depend on their order.
type nodeClasses struct {
	byKey map[string]*NodeClass
	list  []*NodeClass
	buf   []byte
}

// of is the class of a node, nil for one that takes no new work.
func (ks *nodeClasses) of(n *cluster.Node) *NodeClass {
	if !n.Ready {
		return nil
	}
	ks.buf = n.AppendClass(ks.buf[:0])
	if k := ks.byKey[string(ks.buf)]; k != nil {
		return k
	}
	return ks.add(n)
}

// emptied is the class of a ready node with nothing on it.
func (ks *nodeClasses) emptied(n *cluster.Node) *NodeClass {
	ks.buf = n.AppendEmptiedClass(ks.buf[:0])
	if k := ks.byKey[string(ks.buf)]; k != nil {
		return k
	}
	return ks.add(n.Emptied())
}

// add makes the class that is in buf.
func (ks *nodeClasses) add(n *cluster.Node) *NodeClass {
	k := &NodeClass{id: len(ks.list), node: n, closed: n.FreeCPUs() <= 0, carded: n.OpenCards() > 0,
		whole: slices.ContainsFunc(n.Grants, func(g cluster.Grant) bool { return g.Exclusive })}
	if ks.byKey == nil {
		ks.byKey = map[string]*NodeClass{}
	}
	ks.byKey[string(ks.buf)] = k
	ks.list = append(ks.list, k)
	return k
}
