package sched

import (
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// Most of ten thousand different asks can't start on a full cluster, whoever makes room for whom: no node has so much free
// as one rank needs. These are told at a look each, without what a visit asks of the backfills.

// hopeless is the ask class of a gang that a visit would do nothing for but note why it stays, and all others of its class;
// nil: it has to be visited.
func (pl *planner) hopeless(c *order.Candidate, cl *order.JobClass) *fit.AskClass {
	if pl.kept.mem.visitsAll || len(c.Ask.Spec.Pools) > 0 || !pl.isBehind(c) || pl.visitedBehind && pl.visited[c.Job] {
		return nil
	}
	sh := pl.fit.ClassOfAll(cl, c)
	switch {
	case sh.Full:
		return sh
	case !sh.Plain:
		return nil
	}
	if m := pl.kept.mostFree(); sh.NeedsMore(&m.Amount) {
		pl.fit.Found().Reset()
	} else if m.looks++; pl.fit.Fits(sh, pl.kept.views[0]) {
		return nil
	} else if len(pl.kept.list) > 0 {
		pl.fit.Fits(sh, pl.kept.viewFor(c, pl.leastEnd(c))) // the room that is told is that beside backfills
	}
	sh.Full, sh.Counted = true, true // within a plan room only shrinks
	return sh
}

// isBehind reports whether a gang is behind all takers of backfills, and no more of these are made for its like: it can
// neither take their places nor have its own. What holds for one holds for those after it, until one is visited.
func (pl *planner) isBehind(c *order.Candidate) bool {
	if pl.behind {
		return true
	}
	if len(pl.kept.later)+len(pl.guard.guarded)+len(pl.front)+len(pl.guard.waitingWide) > 0 || pl.reservations != nil || pl.mayPreempt() ||
		pl.policy.UserCards > 0 || len(pl.policy.Accounts) > 0 || len(pl.policy.Switches) > 0 {
		return false
	}
	for i := range pl.kept.list {
		if order.Compare(pl.kept.list[i].c, c) >= 0 {
			return false
		}
	}
	if pl.behind = !pl.kept.mayBackfill(c); pl.behind {
		pl.visitedBehind = false
		for job := range pl.visited {
			if o := pl.view.Queue.Get(job); o != nil && order.Compare(o, c) >= 0 {
				pl.visitedBehind = true
			}
		}
	}
	return pl.behind
}

// tellHopeless notes why the hopeless gangs of a class stay. Mostly that is what the plan before said: as long as the cluster would hold
// the gang, that it has no room depends on nothing else.
func (pl *planner) tellHopeless(c *order.Candidate, cl *order.JobClass, sh *fit.AskClass) {
	n := pl.why.notedOf(sh)
	if o := n.last; n.verdict == nil && pl.fit.Found().Nodes == 0 && pl.fit.KnowsEmpty(sh) && o != nil && o.first == c.Job &&
		o.isRoomless() {
		n.verdict = o
	}
	pl.why.note(c, cl, sh)
}

// isRoomless reports whether a verdict says no more than that there is room for no rank.
func (v *verdict) isRoomless() bool {
	return v.word == WordResources && v.room == 0 && v.bad == nil && v.sentence == "" && !v.nearer
}
