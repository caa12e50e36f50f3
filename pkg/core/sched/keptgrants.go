package sched

import (
	"slices"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
)

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

// grantsOf is what a backfill takes, node by node.
func (kp *kept) grantsOf(b *backfill) []fit.Grant {
	k := kp.mem.backfillGrants[b.Job]
	if k.are(b) && k.until.Equal(b.Until) {
		return k.grants
	}
	k = &grantsMemo{slots: &b.Slots[0], n: len(b.Slots), askKey: b.c.Ask.Key, until: b.Until,
		grants: fit.Remembered(kp.fit.Grants(b.c, b.Slots, epochBackfill, b.Until))}
	kp.mem.backfillGrants[b.Job] = k
	return k.grants
}

// are reports whether grants are those of the places of a backfill.
func (k *grantsMemo) are(b *backfill) bool {
	return k != nil && k.n == len(b.Slots) && k.slots == &b.Slots[0] && k.askKey == b.c.Ask.Key
}

// stands reports whether a backfill is known to hold: see holds.
func (kp *kept) stands(b *backfill) bool {
	k := kp.mem.backfillGrants[b.Job]
	return k.are(b) && k.heldAt == kp.fit.AtCapacity()
}

// forget forgets those of backfills that are gone.
func (km *keptMemory) forget(backfills []Backfill) {
	if len(km.backfillGrants) <= 2*len(backfills) {
		return
	}
	for job := range km.backfillGrants {
		if !slices.ContainsFunc(backfills, func(c Backfill) bool { return c.Job == job }) {
			delete(km.backfillGrants, job)
		}
	}
}
