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
	if pl.mem.kept.VisitsAll || len(c.Ask.Spec.Pools) > 0 || !pl.isBehind(c) || pl.visitedBehind && pl.visited[c.Job] {
		return nil
	}
	sh := pl.fit.ClassOfAll(cl, c)
	switch {
	case sh.Full:
		return sh
	case !sh.Plain:
		return nil
	}
	if pl.kept.NobodyHas(sh) {
		pl.fit.Found().Reset()
	} else if pl.fit.Fits(sh, pl.kept.Bare()) {
		return nil
	} else if len(pl.kept.List) > 0 {
		pl.fit.Fits(sh, pl.kept.ViewFor(c, pl.LeastEnd(c))) // the room that is told is that beside backfills
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
	if len(pl.kept.Later)+len(pl.guard.Guarded)+len(pl.Front)+len(pl.guard.WaitingWide) > 0 || pl.Reservations != nil || pl.MayPreempt() ||
		pl.Policy.UserCards > 0 || len(pl.Policy.Accounts) > 0 || len(pl.Policy.Switches) > 0 {
		return false
	}
	for i := range pl.kept.List {
		if order.Compare(pl.kept.List[i].Taker, c) >= 0 {
			return false
		}
	}
	if pl.behind = !pl.kept.MayBackfill(c); pl.behind {
		pl.visitedBehind = false
		for job := range pl.visited {
			if o := pl.View.Queue.Get(job); o != nil && order.Compare(o, c) >= 0 {
				pl.visitedBehind = true
			}
		}
	}
	return pl.behind
}
