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
	for _, by := range pl.cuts(c, least, end) {
		if !pl.start(c, sh, pl.viewFor(c, by), by) {
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
func (pl *planner) cuts(c *Candidate, least, end time.Time) []time.Time {
	if !least.Before(end) {
		return nil
	}
	var out []time.Time
	for n := pl.inWay(end) - 1; n >= pl.inWay(least); n-- {
		if b := &pl.backfills[n]; !b.isOpen() {
			out = append(out, b.from())
		}
	}
	if pl.reservations == nil {
		return out
	}
	for i := range pl.reservations.list {
		if by := pl.reservations.list[i].ClearBy.Add(-max(0, c.Ask.Spec.GraceMax-c.Stop)); by.Before(end) && !by.Before(least) {
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
	pl.book(c, slots, end)
	pl.starts = append(pl.starts, Start{Job: c.Job, Slots: slots, Turn: pl.front[c.Job]})
	if pl.holdings != nil {
		pl.holdings.add(c.User, c.Account, CardsOf(c.Ask), c.Ask.Spec.Pools)
	}
}

// book puts what a start takes on all views.
func (pl *planner) book(c *Candidate, slots []cluster.Slot, end time.Time) {
	until := end
	if end.Equal(never) {
		until = time.Time{}
	}
	for _, g := range pl.grants(c, slots, epochStart, until) {
		for _, l := range pl.views {
			if l != nil {
				l.set(g.at, l.node(g.at).Restore(g.Grant))
			}
		}
		if pl.strictView != nil {
			pl.strictView.set(g.at, pl.strictView.node(g.at).Restore(g.Grant))
		}
		pl.started = append(pl.started, g)
	}
}

// slots is where a gang can start now, by rank; nil: it does not fit.
func (pl *planner) slots(c *Candidate, sh *askClass, l *nodeView) []cluster.Slot {
	if sh.need.Parts != nil {
		return pl.placeMixed(c, sh.need, l)
	}
	return pl.slotsBelow(sh, l, c.Avoid, pl.switchLimit(c))
}

// slotsBelow is where a gang without roles fits below so many switches, 0: any number; nil: nowhere.
func (pl *planner) slotsBelow(sh *askClass, l *nodeView, avoid []string, switches int) []cluster.Slot {
	if sh.alternatives != nil {
		return pl.slotsOfAlternatives(sh, l, avoid, switches)
	}
	members := pl.place(sh, l, avoid, switches)
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
func (pl *planner) grants(c *Candidate, slots []cluster.Slot, epoch int, until time.Time) []nodeGrant {
	key := api.MemberKey{Job: c.Job, Epoch: epoch}
	if c.Ask.Parts != nil {
		return pl.mixedGrants(c, slots, key, until)
	}
	var out []nodeGrant
	for len(slots) > 0 {
		n := 1
		for n < len(slots) && slots[n].Node == slots[0].Node {
			n++
		}
		out = append(out, nodeGrant{at: pl.find(slots[0].Node), Grant: cluster.GrantFor(c.Ask, key, slots[:n], until)})
		slots = slots[n:]
	}
	return out
}

func (pl *planner) mixedGrants(c *Candidate, slots []cluster.Slot, key api.MemberKey, until time.Time) []nodeGrant {
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
		out[i] = nodeGrant{at: pl.find(name), Grant: cluster.GrantOf(c.Ask, key, ranks[name], func(r int) cluster.Slot { return slots[r] }, until)}
	}
	return out
}

func (pl *planner) find(name string) int {
	at, found := slices.BinarySearchFunc(pl.mem.seen, name, func(n *cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return -1
	}
	return at
}
