package sched

// Most of ten thousand different asks can't start on a full cluster, whoever makes room for whom: no node has so much free
// as one rank needs. These are told at a look each, without what a visit asks of the backfills.

// most is no less than any one node has free.
type most struct {
	known       bool
	starts      int // with so many it was worked out
	cards, cpus int
	memory      int64
}

// fewClasses of nodes are looked at again after each start.
const fewClasses = 64

func (pl *planner) mostFree() *most {
	if m := &pl.most; !m.known || m.starts != len(pl.starts) && len(pl.views[0].live) <= fewClasses {
		*m = most{known: true, starts: len(pl.starts)}
		for _, k := range pl.views[0].live {
			if pl.views[0].members(k).count == 0 {
				continue
			}
			m.cards, m.cpus, m.memory = max(m.cards, k.node.OpenCards()), max(m.cpus, k.node.FreeCPUs()), max(m.memory, k.node.FreeMemory())
		}
	}
	return &pl.most
}

// hopeless is the ask class of a gang that a visit would do nothing for but note why it stays, and all others of its class;
// nil: it has to be visited.
func (pl *planner) hopeless(c *Candidate, cl *JobClass) *askClass {
	if pl.mem.visitsAll || !pl.isBehind(c) || pl.visited[c.Job] {
		return nil
	}
	sh := pl.askClassOf(cl, c)
	switch {
	case sh.full:
		return sh
	case sh.bad != nil || sh.need.Packed() || sh.alternatives != nil:
		return nil
	}
	d, m := sh.need, pl.mostFree()
	if d.CardsFor(1) > m.cards || d.CPUs > m.cpus || d.Memory+d.NodeMemory > m.memory {
		pl.tally.reset()
	} else if pl.fits(sh, pl.views[0]) {
		return nil
	} else if len(pl.backfills) > 0 {
		pl.fits(sh, pl.viewFor(c, pl.leastEnd(c))) // the room that is told is that beside backfills
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
	if len(pl.laterBackfills)+len(pl.guarded)+len(pl.front)+len(pl.waitingWide) > 0 || pl.reservations != nil || pl.mayPreempt() ||
		pl.policy.UserCards > 0 || len(pl.policy.Accounts) > 0 || len(pl.policy.Switches) > 0 {
		return false
	}
	for i := range pl.backfills {
		if compare(pl.backfills[i].c, c) >= 0 {
			return false
		}
	}
	pl.behind = !pl.mayBackfill(c)
	return pl.behind
}
