package kept

import (
	"slices"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// PlaceMixed finds slots for a gang with roles as [finder.place] finds members: around the
// nodes that just failed it where that is possible, and on its backfill at last.
func (kp *Backfills) PlaceMixed(c *order.Candidate, d *cluster.Need, l *fit.NodeView) []cluster.Slot {
	list := l.Open()
	if slots := fit.Preferred(d, l.All(), list, c.Avoid); slots != nil {
		return slots
	}
	if slots := fit.Mixed(d, l.All(), list, c.Avoid); slots != nil {
		return slots
	}
	if len(c.Avoid) > 0 {
		if slots := fit.Mixed(d, l.All(), list, nil); slots != nil {
			return slots
		}
	}
	i := slices.IndexFunc(kp.View.Backfills, func(k given.Backfill) bool { return k.Job == c.Job })
	if i < 0 || !kp.free(c, d, kp.View.Backfills[i].Slots, l) {
		return nil
	}
	return kp.View.Backfills[i].Slots
}

// free reports whether these places can be taken now.
func (kp *Backfills) free(c *order.Candidate, d *cluster.Need, slots []cluster.Slot, l *fit.NodeView) bool {
	if len(slots) != d.Size || !kp.fit.AdmitsAll(d, slots) {
		return false
	}
	for _, g := range kp.fit.Grants(c, slots, given.EpochStart, time.Time{}) {
		if _, err := l.Node(g.At).Take(g.Grant); err != nil || l.Shuts(g.At) {
			return false
		}
	}
	return true
}

// findMixed is findBackfill for a gang with roles: first where most is free already, else
// anywhere on the ready nodes.
func (kp *Backfills) findMixed(d *cluster.Need, avoid []string) []cluster.Slot {
	empty, list := kp.EmptyNodes()
	slots := fit.Mixed(d, empty, list, avoid)
	if slots == nil && len(avoid) > 0 {
		slots = fit.Mixed(d, empty, list, nil)
	}
	return slots
}

// EmptyNodes is the ready nodes with nothing on them but the backfills made so far.
func (kp *Backfills) EmptyNodes() ([]*cluster.Node, []int32) {
	nodes, list := make([]*cluster.Node, len(kp.View.Nodes)), []int32(nil)
	for at, n := range kp.views[0].Every() {
		nodes[at] = n
		if n.Ready {
			nodes[at] = kp.cleared(at)
			list = append(list, int32(at))
		}
	}
	return nodes, list
}
