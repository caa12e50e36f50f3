package fit

import (
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// Finder finds where gangs fit. It remembers between plans what does not change with them: classes of nodes, and what each ask
// class finds out about each class.
type Finder struct {
	classes        nodeClasses
	base           *NodeView       // the nodes of the last view
	nodes          []*cluster.Node // as they came
	pool           pool
	tree           *tree // the switches over these nodes
	switches       []api.Switch
	emptiedClasses []*NodeClass // of each node with nothing on it; nil: not asked for yet
	askClasses     map[string]*AskClass
	askClassOf     []jobAskClass // by slot
	planNumber     int           // counts the plans
	capacity       int           // counts the changes of what nodes have, whoever holds it
	packer         packer        // of the plan
	packing        cluster.Packing

	// Of the last look:
	choices []Choice
	tally   Tally
}

func sameCapacity(a, b *cluster.Node) bool {
	return a.Ready == b.Ready && a.Has == b.Has && a.Each == b.Each && a.Shape == b.Shape && len(a.Cards) == len(b.Cards) &&
		(len(a.Cards) == 0 || &a.Cards[0] == &b.Cards[0]) && slices.Equal(a.Partitions, b.Partitions) && slices.Equal(a.Features, b.Features)
}

// Emptied is the class of a ready node with nothing on it.
func (f *Finder) Emptied(at int, n *cluster.Node) *NodeClass {
	if f.emptiedClasses[at] == nil {
		f.emptiedClasses[at] = f.classes.emptied(n)
	}
	return f.emptiedClasses[at]
}

// Begin begins a plan over nodes, which are by name; mix is what people ask for. They are immutable, so that what is the same
// pointer is the same state: changed is told of the others. It reports whether there are as many nodes as before; else all are new,
// and changed is not asked.
func (f *Finder) Begin(nodes []*cluster.Node, switches []api.Switch, mix *order.Mix, changed func(at int, was,
	is *cluster.Node)) (same bool) {
	if f.askClasses == nil {
		f.askClasses = map[string]*AskClass{}
	}
	f.planNumber++
	f.pool.reset()
	f.switches, f.packer = switches, packer{mix, &f.packing}
	f.choices = f.choices[:0]
	f.tally.Reset()
	if f.base == nil || f.base.Size != len(nodes) {
		f.base = newNodeView(&f.classes, nodes)
		f.nodes = slices.Clone(nodes)
		f.emptiedClasses = make([]*NodeClass, len(nodes))
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
		f.base.Set(at, n)
	}
	f.base.tidy()
	return true
}

// Remembers is how many classes of nodes it does.
func (f *Finder) Remembers() int { return len(f.classes.list) }

// PlanNumber counts the plans that were begun.
func (f *Finder) PlanNumber() int { return f.planNumber }

// AtCapacity counts the changes of what nodes have, whoever holds it: as long as it is the same, what fits on empty nodes is.
func (f *Finder) AtCapacity() int { return f.capacity }

// AsGiven is the nodes of the plan, with nothing that it decided. It is not to be changed.
func (f *Finder) AsGiven() *NodeView { return f.base }

// Clone is a view that can be changed without changing l, until the next plan.
func (f *Finder) Clone(l *NodeView) *NodeView { return f.pool.clone(l) }

// Found is how many nodes of the last look hold how many ranks.
func (f *Finder) Found() *Tally { return &f.tally }
