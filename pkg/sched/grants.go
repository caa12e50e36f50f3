package sched

import (
	"slices"
	"time"

	"gangd/pkg/cluster"
)

// grantsKept is what a claim takes, kept as long as the claim is: the next plan books the same
// grants on mostly the same nodes.
type grantsKept struct {
	slots  *cluster.Slot // the first; slots are never changed
	n      int
	shape  string
	until  time.Time
	grants []nodeGrant
	// heldAt is with which capacity of the cluster its places were in service and allowed.
	heldAt int
}

// claimGrants is what a claim takes, node by node.
func (pl *planner) claimGrants(b *booking) []nodeGrant {
	k := pl.mem.claims[b.Job]
	if k.are(b) && k.until.Equal(b.Until) {
		return k.grants
	}
	k = &grantsKept{slots: &b.Slots[0], n: len(b.Slots), shape: b.c.Ask.Shape, until: b.Until,
		grants: pl.grants(b.c, b.Slots, epochClaim, b.Until)}
	for i := range k.grants {
		k.grants[i].put = &puts{}
	}
	pl.mem.claims[b.Job] = k
	return k.grants
}

// are reports whether grants are those of the places of a claim.
func (k *grantsKept) are(b *booking) bool {
	return k != nil && k.n == len(b.Slots) && k.slots == &b.Slots[0] && k.shape == b.c.Ask.Shape
}

// stands reports whether a claim is known to hold: see holds.
func (pl *planner) stands(b *booking) bool {
	k := pl.mem.claims[b.Job]
	return k.are(b) && k.heldAt == pl.mem.capacity
}

// keepGrants forgets those of claims that are gone.
func (m *Planner) keepGrants(claims []Claim) {
	if len(m.claims) <= 2*len(claims) {
		return
	}
	for job := range m.claims {
		if !slices.ContainsFunc(claims, func(c Claim) bool { return c.Job == job }) {
			delete(m.claims, job)
		}
	}
}

// puts remembers what nodes became by a grant: one of each level that it was booked on, in
// this plan or an earlier one. Nodes are immutable, so that the same pointer is the same
// question.
type puts struct {
	last [8]struct {
		on, is *cluster.Node
		kind   *kind
	}
	next int
}

// putAll adds grants whatever is free.
func (l *level) putAll(grants []nodeGrant) {
next:
	for i := range grants {
		g := &grants[i]
		on := l.node(g.at)
		if g.put == nil {
			l.set(g.at, on.Restore(g.Grant))
			continue
		}
		for j := range g.put.last {
			if p := &g.put.last[j]; p.on == on {
				l.place(g.at, p.is, p.kind)
				continue next
			}
		}
		l.set(g.at, on.Restore(g.Grant))
		p := &g.put.last[g.put.next]
		p.on, p.is, p.kind = on, l.node(g.at), l.kind(g.at)
		g.put.next = (g.put.next + 1) % len(g.put.last)
	}
}
