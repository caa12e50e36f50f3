package kept

import (
	"slices"

	"gangd/pkg/core/sched/fit"
)

// backfillClass is the ready nodes that are alike in what they are and in what each would be without
// its gangs: a backfill is told the same of all of them.
type backfillClass struct {
	class, emptiedClass *fit.NodeClass
	nodes               []int32 // ascending
	apart               int     // how many of them are looked at one by one in this question
}

// backfillClasses are those of the nodes of the last view, a few hundred for ten thousand nodes. They
// are brought up to date when a backfill is asked for, not at each change.
type backfillClasses struct {
	list  []*backfillClass
	by    map[[2]*fit.NodeClass]*backfillClass
	of    []*backfillClass // of each node, nil: it is not ready
	known bool             // of all nodes but the dirty ones
	dirty []int32          // nodes that changed since
}

// changed notes that a node may be of another class now.
func (ps *backfillClasses) changed(at int) {
	if !ps.known {
		return
	}
	if ps.dirty = append(ps.dirty, int32(at)); len(ps.dirty) > 2*len(ps.of) {
		*ps = backfillClasses{} // nobody asks: it is made anew when somebody does
	}
}

// classes is the backfill classes of the nodes as they are.
func (km *Memory) classes(f *fit.Finder) []*backfillClass {
	ps := &km.backfillClasses
	if !ps.known {
		*ps = backfillClasses{by: map[[2]*fit.NodeClass]*backfillClass{}, of: make([]*backfillClass, f.AsGiven().Size), known: true}
		for at := range ps.of {
			ps.dirty = append(ps.dirty, int32(at))
		}
	}
	left := false
	for _, at := range ps.dirty {
		var is *backfillClass
		if k := f.AsGiven().Class(int(at)); k != nil {
			is = ps.class(k, f.Emptied(int(at), f.AsGiven().Node(int(at))))
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
		ps.list = slices.DeleteFunc(ps.list, func(p *backfillClass) bool {
			if len(p.nodes) == 0 {
				delete(ps.by, [2]*fit.NodeClass{p.class, p.emptiedClass})
			}
			return len(p.nodes) == 0
		})
	}
	return ps.list
}

func (ps *backfillClasses) class(k, empty *fit.NodeClass) *backfillClass {
	key := [2]*fit.NodeClass{k, empty}
	p := ps.by[key]
	if p == nil {
		p = &backfillClass{class: k, emptiedClass: empty}
		ps.by[key] = p
		ps.list = append(ps.list, p)
	}
	return p
}
