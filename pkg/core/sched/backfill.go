package sched

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// restoreBackfills takes the backfills of the plan before in. Each is added when the plan reaches
// its tier: higher ones are not bound by it, and whoever came to its own tier since is.
func (pl *planner) restoreBackfills() {
	for _, k := range pl.view.Backfills {
		if c := pl.view.Queue.Get(k.Job); c != nil {
			pl.laterBackfills = append(pl.laterBackfills, backfill{Backfill: k, c: c})
		}
	}
	slices.SortStableFunc(pl.laterBackfills, func(a, b backfill) int {
		switch {
		case pl.policy.Below(b.c, a.c):
			return -1
		case pl.policy.Below(a.c, b.c):
			return 1
		// Somebody was stopped for a move already: nothing of its tier may cross it.
		case a.isMove() && !b.isMove():
			return -1
		case b.isMove() && !a.isMove():
			return 1
		}
		return order.Compare(a.c, b.c)
	})
}

// reach books the backfills that c does not go before, and starts the gangs of those that fit.
// Behind them come the gangs of these tiers that waited too long.
func (pl *planner) reach(c *Candidate) {
	pl.startWide(c)
	var kept []*Candidate
	n := 0 // of those that wait on
	for i := range pl.laterBackfills {
		if b := &pl.laterBackfills[i]; !pl.policy.MayDelay(c, b.c, b.isMove()) {
			if pl.keepBackfill(*b) {
				kept = append(kept, b.c)
			}
		} else {
			if n < i {
				pl.laterBackfills[n] = *b
			}
			n++
		}
	}
	pl.laterBackfills = pl.laterBackfills[:n]
	for _, c := range kept {
		if pl.full() {
			return
		}
		pl.visited[c.Job] = true
		pl.visitTaker(c)
	}
	for len(pl.guarded) > 0 && !pl.full() && !pl.policy.Below(pl.guarded[0], c) {
		c := pl.guarded[0]
		pl.guarded = pl.guarded[1:]
		if !pl.visited[c.Job] {
			pl.visited[c.Job] = true
			pl.visitGuarded(c)
		}
	}
}

// visitGuarded visits a gang that waited too long, at the backfill that it may have: left for
// later, that backfill would start the gang a second time.
func (pl *planner) visitGuarded(c *Candidate) {
	if at := slices.IndexFunc(pl.laterBackfills, func(b backfill) bool { return b.Job == c.Job }); at >= 0 {
		b := pl.laterBackfills[at]
		pl.laterBackfills = slices.Delete(pl.laterBackfills, at, at+1)
		if pl.keepBackfill(b) {
			pl.visitTaker(c)
			return
		}
	}
	pl.visit(c, pl.view.Queue.JobClass(c.Job))
}

// visitTaker starts a gang that holds a backfill, or looks again for victims for it.
func (pl *planner) visitTaker(c *Candidate) {
	sh, cl, at := pl.askClass(c.Ask), pl.view.Queue.JobClass(c.Job), pl.backfillOf(c.Job)
	if v := pl.capped(c); v != nil {
		pl.keepPools(c, v)
		v.first = c.Job
		pl.verdicts.set(cl, cmp.Or(pl.verdicts.of(cl), v))
		pl.removeBackfill(at)
		return
	}
	if b := &pl.backfills[at]; b.isMove() && len(b.Victims) == 0 && !b.away {
		// Its victims are gone, so that its places are free: looked for again, they could be
		// others, of which a part was never cleared.
		slots := b.Slots
		pl.removeBackfill(at)
		pl.startAt(c, slots, pl.end(c))
		return
	}
	end := pl.end(c)
	if (sh.need.Parts != nil || sh.alternatives != nil || pl.reservations != nil || pl.fitsWithout(at, end, sh, c.Avoid)) && pl.start(c, sh, pl.openTo(c, pl.viewWithout(c, at, end), end), end) {
		pl.removeBackfill(at)
		return
	}
	pl.note(c, cl, sh)
	b := &pl.backfills[at]
	if len(b.Victims) > 0 {
		pl.tell(b)
	} else if own := *b; pl.mayPreempt() {
		pl.removeBackfill(at)
		if !pl.preempt(c, sh) {
			pl.addBackfill(own)
		}
	}
}

// full: the plan has as many starts as it may.
func (pl *planner) full() bool {
	return pl.policy.MaxStarts > 0 && len(pl.starts) >= pl.policy.MaxStarts
}

// displaceBackfills takes the backfills off that c goes before and that were made for the sake of
// others ahead of it.
func (pl *planner) displaceBackfills(c *Candidate) (off []backfill) {
	for at := len(pl.backfills) - 1; at >= 0; at-- {
		if b := &pl.backfills[at]; pl.policy.MayDelay(c, b.c, b.isMove()) {
			off = append(off, *b)
			pl.removeBackfill(at)
		}
	}
	return off
}

// keepBackfills books backfills again that still hold.
func (pl *planner) keepBackfills(off []backfill) {
	for i := range off {
		pl.keepBackfill(off[i])
	}
}

func (pl *planner) backfillOf(job int64) int {
	for i := range pl.backfills {
		if pl.backfills[i].Job == job {
			return i
		}
	}
	return -1
}

// lookAgain is how long a backfill stays unquestioned for each hundred nodes: looking for an
// earlier place goes through everything that runs.
const lookAgain = 10 * time.Second

// keepBackfill books a backfill that still holds, where it is or where it is served earlier.
func (pl *planner) keepBackfill(b backfill) bool {
	sh := pl.askClass(b.c.Ask)
	if sh.bad != nil || !pl.stands(&b) && !pl.holds(sh.need, b.Slots) {
		return false
	}
	b.grants = pl.backfillGrants(&b)
	pl.mem.backfillGrants[b.Job].heldAt = pl.mem.capacity
	away := false
	for _, g := range b.grants {
		if n := pl.views[0].node(g.at); !n.Ready && n.Away {
			away = true
		} else if !pl.clearedFor(&b, g.at).Fits(&g.Grant) {
			return false
		}
	}
	b.Victims = pl.victimsLeft(b.Victims)
	if away {
		// Until the node is back, or is lost, nobody knows when the places are free.
		b.away = true
		b.At = time.Time{}
		pl.addBackfill(b)
		return true
	}
	if b.isMove() && len(b.Victims) == 0 && !pl.vacant(b.grants) {
		// A victim was refused, or something else came between: a plain backfill.
		b.Until = time.Time{}
		b.grants = pl.backfillGrants(&b)
	}
	if !b.isMove() {
		b.At = pl.freeAt(b.grants)
	}
	if !pl.mayKeep(&b) {
		return false
	}
	if pause := time.Duration(len(pl.view.Nodes)/100) * lookAgain; !b.isMove() && pl.now.Sub(b.SearchedAt) >= pause {
		if b.At.IsZero() && !pl.promises(&b) && pl.view.Queue.Ledger().Knows(0) {
			// Nobody knows whether these places are ever free before others are: it is made
			// anew where the least is missing, in its turn.
			return false
		}
		b.SearchedAt = pl.now
		// Only for a time that is known and earlier: what a taker was promised never
		// gets later by a move.
		if slots, at := pl.earliest(b.c, sh, b.c.Avoid, b.At); slots != nil && (b.At.IsZero() || at.Before(b.At)) {
			b.Slots, b.At = slots, at
			b.grants = pl.backfillGrants(&b)
		}
	}
	pl.addBackfill(b)
	return true
}

// holds reports whether the places of a backfill are still in service and allowed.
func (pl *planner) holds(d *cluster.Need, slots []cluster.Slot) bool {
	if len(slots) != d.Size {
		return false
	}
	if d.Parts != nil || d.Alternatives != nil {
		return pl.admitsAll(d, slots)
	}
	for i, s := range slots {
		if i > 0 && s.Node == slots[i-1].Node {
			continue
		}
		if at := pl.find(s.Node); at < 0 || !d.Admits(pl.view.Nodes[at]) {
			return false
		}
	}
	return true
}

// backfill keeps lower gangs off the places that c waits for. It reports false when no
// ready nodes, however empty, would hold it: waiting for those would hold others up for
// nothing.
func (pl *planner) makeBackfill(c *Candidate, sh *askClass) bool {
	if sh.noBackfill {
		return false
	}
	b := backfill{Backfill: Backfill{Job: c.Job, SearchedAt: pl.now}, c: c}
	if b.Slots, b.At = pl.earliest(c, sh, c.Avoid, time.Time{}); b.Slots == nil {
		b.Slots = pl.findBackfill(sh, pl.around(c))
	}
	if b.Slots == nil {
		sh.noBackfill = true // backfills only add up within a plan
		return false
	}
	b.grants = pl.backfillGrants(&b)
	if b.At.IsZero() {
		at, ok := pl.mayHave(c, b.grants, pl.freeAt(b.grants))
		if !ok {
			return false
		}
		b.At = at
	}
	pl.addBackfill(b)
	return true
}

// addBackfill keeps a backfill off the views of the nodes of those that would be in its way.
func (pl *planner) addBackfill(b backfill) {
	from := b.from()
	at := sort.Search(len(pl.backfills), func(i int) bool { return pl.backfills[i].from().After(from) })
	pl.backfills = slices.Insert(pl.backfills, at, b)
	if pl.strictView != nil && pl.isStrict(&b) {
		pl.strictView.putAll(b.grants)
	}
	pl.views = slices.Insert(pl.views, at+1, nil)
	for _, l := range pl.views[at+1:] {
		if l != nil {
			l.putAll(b.grants)
		}
	}
}

// viewWith is the nodes with the first n backfills on them, made when first asked for: most gangs
// have no time limit or a long one, and see only the last.
func (pl *planner) viewWith(n int) *nodeView {
	below := n
	for pl.views[below] == nil {
		below--
	}
	if below < n {
		pl.views[n] = pl.mem.pool.clone(pl.views[below])
		for i := below; i < n; i++ {
			pl.views[n].putAll(pl.backfills[i].grants)
		}
	}
	return pl.views[n]
}

// yields reports whether a gang may use places that are kept for others of its tier: it
// would hand them over to whoever needs much less, and lose nothing by that.
func (pl *planner) yields(c *Candidate) bool {
	return pl.strictView != nil && c.KeepsWork && pl.view.Queue.Ledger().Knows(c.TimeLimit) && pl.front[c.Job] == NoTurn
}

// isStrict: not even those who would make room may use its places. Without a limit nobody
// makes room for a gang of the same tier.
func (pl *planner) isStrict(b *backfill) bool {
	return b.isMove() || !pl.view.Queue.Ledger().Knows(b.c.TimeLimit) || pl.front[b.Job] != NoTurn
}

func (pl *planner) removeBackfill(at int) {
	b := pl.backfills[at]
	if pl.strictView != nil && pl.isStrict(&b) {
		for _, g := range b.grants {
			pl.strictView.set(g.at, pl.strictView.node(g.at).Release(g.MemberKey))
		}
	}
	pl.backfills = slices.Delete(pl.backfills, at, at+1)
	pl.views = slices.Delete(pl.views, at+1, at+2)
	for _, l := range pl.views[at+1:] {
		if l == nil {
			continue
		}
		for _, g := range b.grants {
			l.set(g.at, l.node(g.at).Release(g.MemberKey))
		}
	}
}

// fitsWithout reports whether a gang fits on the nodes of viewWithout, and leaves the count
// of room there for its reason. Mostly it does not, and a view of its own costs more.
func (pl *planner) fitsWithout(own int, end time.Time, sh *askClass, avoid []string) bool {
	d, l0, rs := sh.need, pl.views[0], &pl.mem.rooms
	t := pl.tallyOf(pl.look(sh, l0, avoid))
	rs.begin(l0.size)
	pl.touchedNodes = pl.touchedNodes[:0]
	for i := range pl.backfills {
		if b := &pl.backfills[i]; i != own && b.inWayOf(end) {
			for j := range b.grants {
				g := &b.grants[j]
				if rs.at(g.at) == nil {
					pl.touchedNodes = append(pl.touchedNodes, g.at)
				}
				rs.open(g.at, l0.node(g.at)).Restore(&g.Grant)
			}
		}
	}
	for _, at := range pl.touchedNodes {
		n := l0.node(at)
		was := d.Ranks(n)
		if was == 0 || !n.Ready || !d.Admits(n) || slices.Contains(avoid, n.Name) {
			continue
		}
		t.addAll(was, -1)
		if is := rs.at(at).Ranks(d); is > 0 {
			t.add(is)
		}
	}
	if layoutOf(d).members(t) > 0 {
		return true
	}
	return len(avoid) > 0 && pl.fitsWithout(own, end, sh, nil)
}

// viewWithout is the nodes as the taker of a backfill sees them, when it would run until
// end: its own backfill is not in its way.
func (pl *planner) viewWithout(c *Candidate, own int, end time.Time) *nodeView {
	if pl.reservations != nil && ownOf(c) != "" {
		return pl.ownView(c, end, own)
	}
	if len(pl.backfills) == 1 {
		return pl.views[0]
	}
	l := pl.mem.pool.clone(pl.views[0])
	for i := range pl.backfills {
		if b := &pl.backfills[i]; i != own && b.inWayOf(end) {
			l.putAll(b.grants)
		}
	}
	return l
}

// topView is the nodes with every backfill made so far.
func (pl *planner) topView() *nodeView { return pl.viewWith(len(pl.views) - 1) }

// clearedFor is a node with nothing on it but the backfills that b must leave alone: a move
// and a backfill may have the same places, when the one is over before the other.
func (pl *planner) clearedFor(b *backfill, at int) *cluster.Room {
	r := &pl.mem.room
	r.OfEmptied(pl.views[0].node(at))
	for i := range pl.backfills {
		o := &pl.backfills[i]
		if o.isMove() && o.over(b) || b.isMove() && b.over(o) {
			continue
		}
		for i := range o.grants {
			if g := &o.grants[i]; g.at == at {
				r.Restore(&g.Grant)
			}
		}
	}
	return r
}

// over reports whether the taker of a move has ended when that of another backfill starts.
func (b *backfill) over(o *backfill) bool {
	return !o.isMove() && !o.At.IsZero() && !b.Until.After(o.At)
}

// vacant reports whether grants fit on the nodes as they are, with the starts planned so far.
func (pl *planner) vacant(grants []nodeGrant) bool {
	for i := range grants {
		if g := &grants[i]; !pl.views[0].node(g.at).Fits(&g.Grant) {
			return false
		}
	}
	return true
}

// cleared is a node with nothing on it but the backfills made so far.
func (pl *planner) cleared(at int) *cluster.Node {
	n := pl.views[0].node(at).Emptied()
	for i := range pl.backfills {
		for _, g := range pl.backfills[i].grants {
			if g.at == at {
				n = n.Restore(g.Grant)
			}
		}
	}
	return n
}
