package kept

import (
	"slices"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
)

// Memory is what is remembered of backfills, and of what ends, from plan to plan.
type Memory struct {
	ends            timeline // of the last view
	backfillGrants  map[int64]*grantsMemo
	backfillClasses backfillClasses
	rooms           rooms
	cardBound       cardBound
	groups          fit.Groups
	room            cluster.Room // of one node at a time
	VisitsAll       bool         // for tests: all gangs are visited, and all ends
}

// Remembers is of how many backfills it knows the grants.
func (km *Memory) Remembers() int { return len(km.backfillGrants) }

// Anew is a memory with nothing in it.
func (km *Memory) Anew() Memory { return Memory{VisitsAll: km.VisitsAll} }

// Changed takes in that a node is another than in the plan before.
func (km *Memory) Changed(at int, was, is *cluster.Node) {
	if is.Name != was.Name {
		clear(km.backfillGrants) // they go by index
	}
	km.ends.node(at, was, is)
	km.backfillClasses.changed(at)
}

// Reset forgets all of nodes that are others now.
func (km *Memory) Reset(nodes []*cluster.Node) {
	km.ends.reset(nodes)
	km.backfillGrants = map[int64]*grantsMemo{}
	km.backfillClasses = backfillClasses{}
}

// Forget forgets those of backfills that are gone.
func (km *Memory) Forget(backfills []given.Backfill) {
	if len(km.backfillGrants) <= 2*len(backfills) {
		return
	}
	for job := range km.backfillGrants {
		if !slices.ContainsFunc(backfills, func(c given.Backfill) bool { return c.Job == job }) {
			delete(km.backfillGrants, job)
		}
	}
}

// grantsMemo is what a backfill takes, kept as long as the backfill is: the next plan books the same
// grants on mostly the same nodes.
type grantsMemo struct {
	slots  *cluster.Slot // the first; slots are never changed
	n      int
	askKey string
	until  time.Time
	grants []fit.Grant
	// heldAt is with which capacity of the cluster its places were in service and allowed.
	heldAt int
}

// GrantsOf is what a backfill takes, node by node.
func (kp *Backfills) GrantsOf(b *Backfill) []fit.Grant {
	k := kp.mem.backfillGrants[b.Job]
	if k.are(b) && k.until.Equal(b.Until) {
		return k.grants
	}
	k = &grantsMemo{slots: &b.Slots[0], n: len(b.Slots), askKey: b.Taker.Ask.Key, until: b.Until,
		grants: fit.Remembered(kp.fit.Grants(b.Taker, b.Slots, given.EpochBackfill, b.Until))}
	kp.mem.backfillGrants[b.Job] = k
	return k.grants
}

// are reports whether grants are those of the places of a backfill.
func (k *grantsMemo) are(b *Backfill) bool {
	return k != nil && k.n == len(b.Slots) && k.slots == &b.Slots[0] && k.askKey == b.Taker.Ask.Key
}

// stands reports whether a backfill is known to hold: see holds.
func (kp *Backfills) stands(b *Backfill) bool {
	k := kp.mem.backfillGrants[b.Job]
	return k.are(b) && k.heldAt == kp.fit.AtCapacity()
}
