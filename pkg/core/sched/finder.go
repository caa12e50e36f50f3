package sched

import (
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
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
