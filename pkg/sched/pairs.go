package sched

import "slices"

// pair is the ready nodes that are alike in what they are and in what each would be without
// its gangs: a claim is told the same of all of them.
type pair struct {
	kind, empty *kind
	nodes       []int32 // ascending
	apart       int     // how many of them are looked at one by one in this question
}

// pairs are those of the nodes of the last view, a few hundred for ten thousand nodes. They
// are brought up to date when a claim is asked for, not at each change.
type pairs struct {
	list  []*pair
	by    map[[2]int]*pair // by the ids of the kinds
	of    []*pair          // of each node, nil: it is not ready
	known bool             // of all nodes but the dirty ones
	dirty []int32          // nodes that changed since
}

// changed notes that a node may be of another pair now.
func (ps *pairs) changed(at int) {
	if !ps.known {
		return
	}
	if ps.dirty = append(ps.dirty, int32(at)); len(ps.dirty) > 2*len(ps.of) {
		*ps = pairs{} // nobody asks: it is made anew when somebody does
	}
}

// now is the pairs of the nodes as they are.
func (m *Planner) pairsNow() []*pair {
	ps := &m.pairs
	if !ps.known {
		*ps = pairs{by: map[[2]int]*pair{}, of: make([]*pair, m.base.size), known: true}
		for at := range ps.of {
			ps.dirty = append(ps.dirty, int32(at))
		}
	}
	left := false
	for _, at := range ps.dirty {
		var is *pair
		if k := m.base.kind(int(at)); k != nil {
			is = ps.pair(k, m.emptied(int(at), m.base.node(int(at))))
		}
		was := ps.of[at]
		if was == is {
			continue
		}
		ps.of[at] = is
		if was != nil {
			i, _ := slices.BinarySearch(was.nodes, at)
			was.nodes = slices.Delete(was.nodes, i, i+1)
			left = left || len(was.nodes) == 0
		}
		if is != nil {
			i, _ := slices.BinarySearch(is.nodes, at)
			is.nodes = slices.Insert(is.nodes, i, at)
		}
	}
	ps.dirty = ps.dirty[:0]
	if left {
		ps.list = slices.DeleteFunc(ps.list, func(p *pair) bool {
			if len(p.nodes) == 0 {
				delete(ps.by, [2]int{p.kind.id, p.empty.id})
			}
			return len(p.nodes) == 0
		})
	}
	return ps.list
}

func (ps *pairs) pair(k, empty *kind) *pair {
	key := [2]int{k.id, empty.id}
	p := ps.by[key]
	if p == nil {
		p = &pair{kind: k, empty: empty}
		ps.by[key] = p
		ps.list = append(ps.list, p)
	}
	return p
}
