package sched

import "gangd/pkg/cluster"

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
