package sched

import (
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// keptMemory is what is remembered of backfills, and of what ends, from plan to plan.
type keptMemory struct {
	ends            timeline // of the last view
	backfillGrants  map[int64]*grantsMemo
	backfillClasses backfillClasses
	rooms           rooms
	cardBound       cardBound
	groups          fit.Groups
	room            cluster.Room // of one node at a time
	visitsAll       bool         // for tests: all gangs are visited, and all ends
}

// kept is the backfills of a plan, and the nodes as each gang sees them beside those that it would be in the way of.
type kept struct {
	*given
	fit  *fit.Finder
	mem  *keptMemory
	ends horizon

	// views[i] has the first i of backfills on it, nil: nobody asked for it yet; views[0] is the
	// nodes with the starts planned so far.
	views        []*fit.NodeView
	strictView   *fit.NodeView  // with what keeps off even those that would make room; nil: none would
	list         []backfill     // by the time that they are free at
	later        []backfill     // those of the plan before whose tier is not reached yet
	takers       []int64        // who holds one
	moved        map[int64]bool // victims of moves
	most         most           // that a node has free
	touchedNodes []int          // nodes, of one question
	nodeBuffer   []int32
	remainingOf  *order.Candidate // of whom remaining was worked out last
	remaining    time.Duration
}

// horizon is what ends when: what holds nodes, and the starts planned so far.
type horizon struct {
	*given
	mem *keptMemory
	// others are ends that the timeline does not have as they are, made when first asked
	// for, with as many grants of starts as othersAt says; started is these.
	others   []ending
	othersAt int
	started  []fit.Grant
	stopBy   map[int64]time.Time
}

// changed takes in that a node is another than in the plan before.
func (km *keptMemory) changed(at int, was, is *cluster.Node) {
	if is.Name != was.Name {
		clear(km.backfillGrants) // they go by index
	}
	km.ends.node(at, was, is)
	km.backfillClasses.changed(at)
}

// reset forgets all of nodes that are others now.
func (km *keptMemory) reset(nodes []*cluster.Node) {
	km.ends.reset(nodes)
	km.backfillGrants = map[int64]*grantsMemo{}
	km.backfillClasses = backfillClasses{}
}
