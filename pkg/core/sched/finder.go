package sched

import (
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// finder finds where gangs fit. It remembers between plans what does not change with them: classes of nodes, and what each ask
// class finds out about each class.
type finder struct {
	classes        nodeClasses
	base           *nodeView       // the nodes of the last view
	nodes          []*cluster.Node // as they came
	pool           pool
	tree           *tree // the switches over these nodes
	switches       []api.Switch
	emptiedClasses []*nodeClass // of each node with nothing on it; nil: not asked for yet
	askClasses     map[string]*askClass
	askClassOf     []jobAskClass // by slot
	planNumber     int           // counts the plans
	capacity       int           // counts the changes of what nodes have, whoever holds it
	packer         packer        // of the plan
	packing        cluster.Packing

	// Of the last look:
	choices []nodeChoice
	tally   tally
}

func sameCapacity(a, b *cluster.Node) bool {
	return a.Ready == b.Ready && a.Has == b.Has && a.Each == b.Each && a.Shape == b.Shape && len(a.Cards) == len(b.Cards) &&
		(len(a.Cards) == 0 || &a.Cards[0] == &b.Cards[0]) && slices.Equal(a.Partitions, b.Partitions) && slices.Equal(a.Features, b.Features)
}

// emptied is the class of a ready node with nothing on it.
func (f *finder) emptied(at int, n *cluster.Node) *nodeClass {
	if f.emptiedClasses[at] == nil {
		f.emptiedClasses[at] = f.classes.emptied(n)
	}
	return f.emptiedClasses[at]
}

// begin begins a plan over nodes, which are by name; mix is what people ask for. They are immutable, so that what is the same
// pointer is the same state: changed is told of the others. It reports whether there are as many nodes as before; else all are new,
// and changed is not asked.
func (f *finder) begin(nodes []*cluster.Node, switches []api.Switch, mix *order.Mix, changed func(at int, was, is *cluster.Node)) (same bool) {
	if f.askClasses == nil {
		f.askClasses = map[string]*askClass{}
	}
	f.planNumber++
	f.pool.reset()
	f.switches, f.packer = switches, packer{mix, &f.packing}
	f.choices = f.choices[:0]
	f.tally.reset()
	if f.base == nil || f.base.size != len(nodes) {
		f.base = newNodeView(&f.classes, nodes)
		f.nodes = slices.Clone(nodes)
		f.emptiedClasses = make([]*nodeClass, len(nodes))
		f.capacity++
		return false
	}
	for at, n := range nodes {
		was := f.nodes[at]
		if was == n {
			continue
		}
		if !sameCapacity(was, n) {
			f.capacity++
			f.emptiedClasses[at] = nil
		}
		changed(at, was, n)
		f.nodes[at] = n
		f.base.set(at, n)
	}
	f.base.tidy()
	return true
}

// remembers is how many classes of nodes it does.
func (f *finder) remembers() int { return len(f.classes.list) }

// plan counts the plans that were begun.
func (f *finder) plan() int { return f.planNumber }

// atCapacity counts the changes of what nodes have, whoever holds it: as long as it is the same, what fits on empty nodes is.
func (f *finder) atCapacity() int { return f.capacity }

// asGiven is the nodes of the plan, with nothing that it decided. It is not to be changed.
func (f *finder) asGiven() *nodeView { return f.base }

// clone is a view that can be changed without changing l, until the next plan.
func (f *finder) clone(l *nodeView) *nodeView { return f.pool.clone(l) }

// found is how many nodes of the last look hold how many ranks.
func (f *finder) found() *tally { return &f.tally }
