package sched

import (
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// Most of ten thousand different asks can't start on a full cluster, whoever makes room for whom: no node has so much free
// as one rank needs. These are told at a look each, without what a visit asks of the backfills.

// amount is of what most gangs ask for.
type amount struct {
	cards int
	of    cluster.Amounts
}

// above reports whether it is more of anything.
func (a *amount) above(b *amount) bool {
	if a.cards > b.cards {
		return true
	}
	for r := range a.of {
		if a.of[r] > b.of[r] {
			return true
		}
	}
	return false
}

// most is no less than any one node has free.
type most struct {
	amount
	known  bool
	starts int // with so many grants of starts it was worked out
	looks  int // at the nodes since then, for it did not tell
}

// fewClasses of nodes are looked at again after each start, and more when as many looks at all nodes could have been spared.
const fewClasses = 64

func (kp *kept) mostFree() *most {
	if m := &kp.most; !m.known || m.starts != len(kp.ends.started) && len(kp.views[0].live) <= fewClasses*(1+m.looks) {
		*m = most{known: true, starts: len(kp.ends.started)}
		for _, k := range kp.views[0].live {
			if kp.views[0].members(k).count == 0 {
				continue
			}
			m.cards = max(m.cards, k.node.OpenCards())
			for r := range m.of {
				m.of[r] = max(m.of[r], k.node.Free(cluster.Resource(r)))
			}
		}
	}
	return &kp.most
}

// hopeless is the ask class of a gang that a visit would do nothing for but note why it stays, and all others of its class;
// nil: it has to be visited.
func (pl *planner) hopeless(c *Candidate, cl *JobClass) *askClass {
	if pl.kept.mem.visitsAll || len(c.Ask.Spec.Pools) > 0 || !pl.isBehind(c) || pl.visitedBehind && pl.visited[c.Job] {
		return nil
	}
	sh := pl.fit.classOfAll(cl, c)
	switch {
	case sh.full:
		return sh
	case !sh.plain:
		return nil
	}
	if m := pl.kept.mostFree(); sh.rank.above(&m.amount) {
		pl.fit.tally.reset()
	} else if m.looks++; pl.fit.fits(sh, pl.kept.views[0]) {
		return nil
	} else if len(pl.kept.list) > 0 {
		pl.fit.fits(sh, pl.kept.viewFor(c, pl.leastEnd(c))) // the room that is told is that beside backfills
	}
	sh.full, sh.counted = true, true // within a plan room only shrinks
	return sh
}

// isBehind reports whether a gang is behind all takers of backfills, and no more of these are made for its like: it can
// neither take their places nor have its own. What holds for one holds for those after it, until one is visited.
func (pl *planner) isBehind(c *Candidate) bool {
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
func (pl *planner) tellHopeless(c *Candidate, cl *JobClass, sh *askClass) {
	if o := sh.lastVerdict; sh.verdict == nil && pl.fit.tally.nodes == 0 && sh.emptyAt == pl.fit.capacity && o != nil && o.first == c.Job &&
		o.isRoomless() {
		sh.verdict = o
	}
	pl.why.note(c, cl, sh)
}

// isRoomless reports whether a verdict says no more than that there is room for no rank.
func (v *verdict) isRoomless() bool {
	return v.word == WordResources && v.room == 0 && v.bad == nil && v.sentence == "" && !v.nearer
}
