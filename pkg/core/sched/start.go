package sched

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// startCut starts a gang that would be in the way of a backfill with a time limit after which
// it is not: the longest with which it fits.
func (pl *planner) startCut(c *Candidate, sh *askClass, least, end time.Time) bool {
	for _, by := range pl.kept.cuts(c, least, end) {
		if !pl.start(c, sh, pl.kept.viewFor(c, by), by) {
			continue
		}
		// Limits are shown and kept in whole seconds.
		limit := by.Sub(pl.now) - c.Stop
		pl.starts[len(pl.starts)-1].TimeLimit = max(limit.Truncate(time.Second), c.TimeMin)
		return true
	}
	return false
}

// cuts are the times before end by which a gang could have ended so as not to be in the way
// of somebody, the latest first.
func (kp *kept) cuts(c *Candidate, least, end time.Time) []time.Time {
	if !least.Before(end) {
		return nil
	}
	var out []time.Time
	for n := kp.inWay(end) - 1; n >= kp.inWay(least); n-- {
		if b := &kp.list[n]; !b.isOpen() {
			out = append(out, b.from())
		}
	}
	if kp.reservations == nil {
		return out
	}
	for i := range kp.reservations.list {
		if by := kp.reservations.list[i].ClearBy.Add(-max(0, c.Ask.Spec.GraceMax-c.Stop)); by.Before(end) && !by.Before(least) {
			out = append(out, by)
		}
	}
	slices.SortFunc(out, func(a, b time.Time) int { return b.Compare(a) })
	return out
}

// start books a gang that has ended by then where it fits, and reports whether it does.
func (pl *planner) start(c *Candidate, sh *askClass, l *nodeView, end time.Time) bool {
	slots := pl.slots(c, sh, l)
	if slots == nil {
		return false
	}
	pl.startAt(c, slots, end)
	return true
}

// startAt books a gang that has ended by then at places that are free.
func (pl *planner) startAt(c *Candidate, slots []cluster.Slot, end time.Time) {
	pl.kept.book(c, slots, end)
	pl.starts = append(pl.starts, Start{Job: c.Job, Slots: slots, Turn: pl.front[c.Job]})
	if pl.bounds.holdings != nil {
		pl.bounds.holdings.add(c.User, c.Account, CardsOf(c.Ask), c.Ask.Spec.Pools)
	}
}

// book puts what a start takes on all views.
func (kp *kept) book(c *Candidate, slots []cluster.Slot, end time.Time) {
	until := end
	if end.Equal(never) {
		until = time.Time{}
	}
	for _, g := range kp.fit.grants(c, slots, epochStart, until) {
		for _, l := range kp.views {
			if l != nil {
				l.set(g.at, l.node(g.at).Restore(g.Grant))
			}
		}
		if kp.strictView != nil {
			kp.strictView.set(g.at, kp.strictView.node(g.at).Restore(g.Grant))
		}
		kp.ends.started = append(kp.ends.started, g)
	}
}

// slots is where a gang can start now, by rank; nil: it does not fit.
func (pl *planner) slots(c *Candidate, sh *askClass, l *nodeView) []cluster.Slot {
	if sh.need.Parts != nil {
		return pl.kept.placeMixed(c, sh.need, l)
	}
	return pl.fit.slotsBelow(sh, l, c.Avoid, pl.switchLimit(c))
}

// slotsBelow is where a gang without roles fits below so many switches, 0: any number; nil: nowhere.
func (f *finder) slotsBelow(sh *askClass, l *nodeView, avoid []string, switches int) []cluster.Slot {
	if sh.alternatives != nil {
		return f.slotsOfAlternatives(sh, l, avoid, switches)
	}
	members := f.place(sh, l, avoid, switches)
	if members == nil {
		return nil
	}
	return pick(sh.need, l, members)
}

func pick(d *cluster.Need, on *nodeView, members []member) []cluster.Slot {
	slots := make([]cluster.Slot, 0, d.Size)
	for _, m := range members {
		slots = append(slots, d.Pick(on.node(m.at), m.ranks)...)
	}
	return slots
}

// nodeGrant is a grant with the index of its node.
type nodeGrant struct {
	at int
	cluster.Grant
	put *restoreMemo // of a backfill
}

// grants is what slots take, node by node. The slots of a node follow each other, except
// in a gang with roles.
func (f *finder) grants(c *Candidate, slots []cluster.Slot, epoch int, until time.Time) []nodeGrant {
	key := api.MemberKey{Job: c.Job, Epoch: epoch}
	if c.Ask.Parts != nil {
		return f.mixedGrants(c, slots, key, until)
	}
	var out []nodeGrant
	for len(slots) > 0 {
		n := 1
		for n < len(slots) && slots[n].Node == slots[0].Node {
			n++
		}
		out = append(out, nodeGrant{at: f.find(slots[0].Node), Grant: cluster.GrantFor(c.Ask, key, slots[:n], until)})
		slots = slots[n:]
	}
	return out
}

func (f *finder) mixedGrants(c *Candidate, slots []cluster.Slot, key api.MemberKey, until time.Time) []nodeGrant {
	ranks := make(map[string][]int)
	var order []string
	for r, s := range slots {
		if ranks[s.Node] == nil {
			order = append(order, s.Node)
		}
		ranks[s.Node] = append(ranks[s.Node], r)
	}
	out := make([]nodeGrant, len(order))
	for i, name := range order {
		out[i] = nodeGrant{at: f.find(name), Grant: cluster.GrantOf(c.Ask, key, ranks[name], func(r int) cluster.Slot { return slots[r] }, until)}
	}
	return out
}

func (f *finder) find(name string) int {
	at, found := slices.BinarySearchFunc(f.nodes, name, func(n *cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return -1
	}
	return at
}
