package sched

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"gangd/pkg/cluster"
)

// keepClaims takes the claims of the plan before in. Each is booked when the plan reaches
// its tier: higher ones are not bound by it, and whoever came to its own tier since is.
func (pl *planner) keepClaims() {
	for _, k := range pl.view.Claims {
		if c := pl.view.Queue.Get(k.Job); c != nil {
			pl.waiting = append(pl.waiting, booking{Claim: k, c: c})
		}
	}
	slices.SortStableFunc(pl.waiting, func(a, b booking) int {
		switch {
		case pl.policy.below(b.c, a.c):
			return -1
		case pl.policy.below(a.c, b.c):
			return 1
		// Somebody was stopped for a move already: nothing of its tier may cross it.
		case a.isMove() && !b.isMove():
			return -1
		case b.isMove() && !a.isMove():
			return 1
		}
		return compare(a.c, b.c)
	})
}

// reach books the claims that c does not go before, and starts the gangs of those that fit.
// Behind them come the gangs of these tiers that waited too long.
func (pl *planner) reach(c *Candidate) {
	var kept []*Candidate
	n := 0 // of those that wait on
	for i := range pl.waiting {
		if b := &pl.waiting[i]; !pl.policy.before(c, b) {
			if pl.keep(*b) {
				kept = append(kept, b.c)
			}
		} else {
			if n < i {
				pl.waiting[n] = *b
			}
			n++
		}
	}
	pl.waiting = pl.waiting[:n]
	for _, c := range kept {
		if pl.full() {
			return
		}
		pl.visited[c.Job] = true
		pl.visitClaimant(c)
	}
	for len(pl.guarded) > 0 && !pl.full() && !pl.policy.below(pl.guarded[0], c) {
		c := pl.guarded[0]
		pl.guarded = pl.guarded[1:]
		if !pl.visited[c.Job] {
			pl.visited[c.Job] = true
			pl.visitGuarded(c)
		}
	}
}

// visitGuarded visits a gang that waited too long, at the claim that it may have: left for
// later, that claim would start the gang a second time.
func (pl *planner) visitGuarded(c *Candidate) {
	if at := slices.IndexFunc(pl.waiting, func(b booking) bool { return b.Job == c.Job }); at >= 0 {
		b := pl.waiting[at]
		pl.waiting = slices.Delete(pl.waiting, at, at+1)
		if pl.keep(b) {
			pl.visitClaimant(c)
			return
		}
	}
	pl.visit(c, pl.view.Queue.Class(c.Job))
}

// visitClaimant starts a gang that holds a claim, or looks again for victims for it.
func (pl *planner) visitClaimant(c *Candidate) {
	sh, cl, at := pl.shape(c.Ask), pl.view.Queue.Class(c.Job), pl.bookingOf(c.Job)
	if v := pl.capped(c); v != nil {
		v.first = c.Job
		pl.why.set(cl, cmp.Or(pl.why.of(cl), v))
		pl.unbook(at)
		return
	}
	if b := &pl.booked[at]; b.isMove() && len(b.Victims) == 0 && !b.away {
		// Its victims are gone, so that its places are free: looked for again, they could be
		// others, of which a part was never cleared.
		slots := b.Slots
		pl.unbook(at)
		pl.startAt(c, slots, pl.end(c))
		return
	}
	end := pl.end(c)
	if (sh.need.Parts != nil || sh.ways != nil || pl.windows != nil || pl.fitsWithout(at, end, sh, c.Avoid)) && pl.start(c, sh, pl.seen(c, pl.levelWithout(c, at, end), end), end) {
		pl.unbook(at)
		return
	}
	pl.note(c, cl, sh)
	b := &pl.booked[at]
	if len(b.Victims) > 0 {
		pl.tell(b)
	} else if own := *b; pl.mayPreempt() {
		pl.unbook(at)
		if !pl.preempt(c, sh) {
			pl.book(own)
		}
	}
}

// full: the plan has as many starts as it may.
func (pl *planner) full() bool {
	return pl.policy.MaxStarts > 0 && len(pl.starts) >= pl.policy.MaxStarts
}

// before reports whether a gang may delay the claimant of b: one of a higher tier may, and
// one that is ahead in the order, but not one that is ahead only for being shorter. Those
// come without end, and whoever has a start would never have it.
func (p *Policy) before(c *Candidate, b *booking) bool {
	if p.below(b.c, c) {
		return true
	}
	if b.isMove() || compare(c, b.c) >= 0 {
		return false
	}
	return !p.byService() || c.rank[bucketAt] == b.c.rank[bucketAt] && !p.below(c, b.c)
}

// displace takes the claims off that c goes before and that were booked for the sake of
// others ahead of it.
func (pl *planner) displace(c *Candidate) (off []booking) {
	for at := len(pl.booked) - 1; at >= 0; at-- {
		if b := &pl.booked[at]; pl.policy.before(c, b) {
			off = append(off, *b)
			pl.unbook(at)
		}
	}
	return off
}

// keepAll books claims again that still hold.
func (pl *planner) keepAll(off []booking) {
	for i := range off {
		pl.keep(off[i])
	}
}

// below reports whether a is of a lower tier than b, where the order has tiers at all.
func (p *Policy) below(a, b *Candidate) bool {
	return p.Order != OrderLargest && cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Priority, b.Priority)) < 0
}

func (pl *planner) bookingOf(job int64) int {
	for i := range pl.booked {
		if pl.booked[i].Job == job {
			return i
		}
	}
	return -1
}

// lookAgain is how long a claim stays unquestioned for each hundred nodes: looking for an
// earlier place goes through everything that runs.
const lookAgain = 10 * time.Second

// keep books a claim that still holds, where it is or where it is served earlier.
func (pl *planner) keep(b booking) bool {
	sh := pl.shape(b.c.Ask)
	if sh.bad != nil || !pl.stands(&b) && !pl.holds(sh.need, b.Slots) {
		return false
	}
	b.grants = pl.claimGrants(&b)
	pl.mem.claims[b.Job].heldAt = pl.mem.capacity
	away := false
	for _, g := range b.grants {
		if n := pl.levels[0].node(g.at); !n.Ready && n.Away {
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
		pl.book(b)
		return true
	}
	if b.isMove() && len(b.Victims) == 0 && !pl.vacant(b.grants) {
		// A victim was refused, or something else came between: a plain claim.
		b.Until = time.Time{}
		b.grants = pl.claimGrants(&b)
	}
	if !b.isMove() {
		b.At = pl.freeAt(b.grants)
	}
	if !pl.mayKeep(&b) {
		return false
	}
	if pause := time.Duration(len(pl.view.Nodes)/100) * lookAgain; !b.isMove() && pl.now.Sub(b.Looked) >= pause {
		b.Looked = pl.now
		// Only for a time that is known and earlier: what a claimant was promised never
		// gets later by a move.
		if slots, at := pl.earliest(b.c, sh, b.c.Avoid, b.At); slots != nil && (b.At.IsZero() || at.Before(b.At)) {
			b.Slots, b.At = slots, at
			b.grants = pl.claimGrants(&b)
		}
	}
	pl.book(b)
	return true
}

// holds reports whether the places of a claim are still in service and allowed.
func (pl *planner) holds(d *cluster.Need, slots []cluster.Slot) bool {
	if len(slots) != d.Size {
		return false
	}
	if d.Parts != nil || d.Ways != nil {
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

// claim keeps lower gangs off the places that c waits for. It reports false when no
// ready nodes, however empty, would hold it: waiting for those would hold others up for
// nothing.
func (pl *planner) claim(c *Candidate, sh *shape) bool {
	if sh.unclaimable {
		return false
	}
	b := booking{Claim: Claim{Job: c.Job, Looked: pl.now}, c: c}
	if b.Slots, b.At = pl.earliest(c, sh, c.Avoid, time.Time{}); b.Slots == nil {
		b.Slots = pl.findClaim(sh, pl.around(c))
	}
	if b.Slots == nil {
		sh.unclaimable = true // claims only add up within a plan
		return false
	}
	b.grants = pl.claimGrants(&b)
	if b.At.IsZero() {
		at, ok := pl.mayHave(c, b.grants, pl.freeAt(b.grants))
		if !ok {
			return false
		}
		b.At = at
	}
	pl.book(b)
	return true
}

// book keeps a claim off the levels of those that would be in its way.
func (pl *planner) book(b booking) {
	from := b.from()
	at := sort.Search(len(pl.booked), func(i int) bool { return pl.booked[i].from().After(from) })
	pl.booked = slices.Insert(pl.booked, at, b)
	if pl.hard != nil && pl.isHard(&b) {
		pl.hard.putAll(b.grants)
	}
	pl.levels = slices.Insert(pl.levels, at+1, nil)
	for _, l := range pl.levels[at+1:] {
		if l != nil {
			l.putAll(b.grants)
		}
	}
}

// level is the nodes with the first n claims on them, made when first asked for: most gangs
// have no time limit or a long one, and see only the last.
func (pl *planner) level(n int) *level {
	below := n
	for pl.levels[below] == nil {
		below--
	}
	if below < n {
		pl.levels[n] = pl.mem.pool.clone(pl.levels[below])
		for i := below; i < n; i++ {
			pl.levels[n].putAll(pl.booked[i].grants)
		}
	}
	return pl.levels[n]
}

// yields reports whether a gang may use places that are kept for others of its tier: it
// would hand them over to whoever needs much less, and lose nothing by that.
func (pl *planner) yields(c *Candidate) bool {
	return pl.hard != nil && c.KeepsWork && c.TimeLimit > 0 && pl.front[c.Job] == atItsPlace
}

// isHard: not even those who would make room may use its places. Without a limit nobody
// makes room for a gang of the same tier.
func (pl *planner) isHard(b *booking) bool {
	return b.isMove() || b.c.TimeLimit <= 0 || pl.front[b.Job] != atItsPlace
}

func (pl *planner) unbook(at int) {
	b := pl.booked[at]
	if pl.hard != nil && pl.isHard(&b) {
		for _, g := range b.grants {
			pl.hard.set(g.at, pl.hard.node(g.at).Release(g.MemberKey))
		}
	}
	pl.booked = slices.Delete(pl.booked, at, at+1)
	pl.levels = slices.Delete(pl.levels, at+1, at+2)
	for _, l := range pl.levels[at+1:] {
		if l == nil {
			continue
		}
		for _, g := range b.grants {
			l.set(g.at, l.node(g.at).Release(g.MemberKey))
		}
	}
}

// fitsWithout reports whether a gang fits on the nodes of levelWithout, and leaves the count
// of room there for its reason. Mostly it does not, and a level of its own costs more.
func (pl *planner) fitsWithout(own int, end time.Time, sh *shape, avoid []string) bool {
	d, l0, rs := sh.need, pl.levels[0], &pl.mem.rooms
	t := pl.tallyOf(pl.look(sh, l0, avoid))
	rs.begin(l0.size)
	pl.touched = pl.touched[:0]
	for i := range pl.booked {
		if b := &pl.booked[i]; i != own && b.inWayOf(end) {
			for j := range b.grants {
				g := &b.grants[j]
				if rs.at(g.at) == nil {
					pl.touched = append(pl.touched, g.at)
				}
				rs.open(g.at, l0.node(g.at)).Restore(&g.Grant)
			}
		}
	}
	for _, at := range pl.touched {
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

// levelWithout is the nodes as the claimant of a booking sees them, when it would run until
// end: its own claim is not in its way.
func (pl *planner) levelWithout(c *Candidate, own int, end time.Time) *level {
	if pl.windows != nil && ownOf(c) != "" {
		return pl.ownLevel(c, end, own)
	}
	if len(pl.booked) == 1 {
		return pl.levels[0]
	}
	l := pl.mem.pool.clone(pl.levels[0])
	for i := range pl.booked {
		if b := &pl.booked[i]; i != own && b.inWayOf(end) {
			l.putAll(b.grants)
		}
	}
	return l
}

// top is the nodes with every claim made so far.
func (pl *planner) top() *level { return pl.level(len(pl.levels) - 1) }

// clearedFor is a node with nothing on it but the claims that b must leave alone: a move
// and a claim may have the same places, when the one is over before the other.
func (pl *planner) clearedFor(b *booking, at int) *cluster.Room {
	r := &pl.mem.room
	r.OfEmptied(pl.levels[0].node(at))
	for i := range pl.booked {
		o := &pl.booked[i]
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

// over reports whether the claimant of a move has ended when that of another claim starts.
func (b *booking) over(o *booking) bool { return !o.isMove() && !o.At.IsZero() && !b.Until.After(o.At) }

// vacant reports whether grants fit on the nodes as they are, with the starts planned so far.
func (pl *planner) vacant(grants []nodeGrant) bool {
	for i := range grants {
		if g := &grants[i]; !pl.levels[0].node(g.at).Fits(&g.Grant) {
			return false
		}
	}
	return true
}

// cleared is a node with nothing on it but the claims made so far.
func (pl *planner) cleared(at int) *cluster.Node {
	n := pl.levels[0].node(at).Emptied()
	for i := range pl.booked {
		for _, g := range pl.booked[i].grants {
			if g.at == at {
				n = n.Restore(g.Grant)
			}
		}
	}
	return n
}
