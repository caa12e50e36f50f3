package sched

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
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
	rest := pl.waiting[:0]
	for _, b := range pl.waiting {
		if pl.policy.before(c, &b) {
			rest = append(rest, b)
		} else if pl.keep(b) {
			kept = append(kept, b.c)
		}
	}
	pl.waiting = rest
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
		pl.why[cl] = cmp.Or(pl.why[cl], v)
		pl.unbook(at)
		return
	}
	if b := &pl.booked[at]; b.isMove() && len(b.Victims) == 0 {
		// Its victims are gone, so that its places are free: looked for again, they could be
		// others, of which a part was never cleared.
		slots := b.Slots
		pl.unbook(at)
		pl.startAt(c, slots, pl.end(c))
		return
	}
	if pl.start(c, sh, pl.seen(c, pl.levelWithout(c, at, pl.end(c)), pl.end(c)), pl.end(c)) {
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
	return p.Order != OrderService && p.Order != "" || c.rank[bucketAt] == b.c.rank[bucketAt] && !p.below(c, b.c)
}

// displace takes the claims off that c goes before and that were booked for the sake of
// others ahead of it.
func (pl *planner) displace(c *Candidate) (off []booking) {
	for at := len(pl.booked) - 1; at >= 0; at-- {
		if b := pl.booked[at]; pl.policy.before(c, &b) {
			off = append(off, b)
			pl.unbook(at)
		}
	}
	return off
}

// below reports whether a is of a lower tier than b, where the order has tiers at all.
func (p *Policy) below(a, b *Candidate) bool {
	return p.Order != OrderLargest && cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Priority, b.Priority)) < 0
}

func (pl *planner) bookingOf(job int64) int {
	return slices.IndexFunc(pl.booked, func(b booking) bool { return b.Job == job })
}

// lookAgain is how long a claim stays unquestioned for each hundred nodes: looking for an
// earlier place goes through everything that runs.
const lookAgain = 10 * time.Second

// keep books a claim that still holds, where it is or where it is served earlier.
func (pl *planner) keep(b booking) bool {
	sh := pl.shape(b.c.Ask)
	if sh.bad != nil || !pl.holds(sh.need, b.Slots) {
		return false
	}
	b.grants = pl.grants(b.c, b.Slots, epochClaim, b.Until)
	for _, g := range b.grants {
		if _, err := pl.clearedFor(&b, g.at).Take(g.Grant); err != nil {
			return false
		}
	}
	b.Victims = pl.victimsLeft(b.Victims)
	if b.isMove() && len(b.Victims) == 0 && !pl.vacant(b.grants) {
		// A victim was refused, or something else came between: a plain claim.
		b.Until = time.Time{}
		b.grants = pl.grants(b.c, b.Slots, epochClaim, b.Until)
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
		if slots, at := pl.earliest(b.c, sh, b.c.Avoid); slots != nil && (b.At.IsZero() || at.Before(b.At)) {
			b.Slots, b.At = slots, at
			b.grants = pl.grants(b.c, slots, epochClaim, time.Time{})
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
	if d.Parts != nil {
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
	if b.Slots, b.At = pl.earliest(c, sh, c.Avoid); b.Slots == nil {
		b.Slots = pl.findClaim(sh.need, pl.around(c))
	}
	if b.Slots == nil {
		sh.unclaimable = true // claims only add up within a plan
		return false
	}
	b.grants = pl.grants(c, b.Slots, epochClaim, time.Time{})
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
	at, _ := slices.BinarySearchFunc(pl.booked, b.from(), func(o booking, t time.Time) int {
		if o.from().After(t) {
			return 1
		}
		return -1
	})
	pl.booked = slices.Insert(pl.booked, at, b)
	if pl.hard != nil && pl.isHard(&b) {
		for _, g := range b.grants {
			pl.hard.set(g.at, pl.hard.nodes[g.at].Restore(g.Grant))
		}
	}
	pl.levels = slices.Insert(pl.levels, at+1, pl.mem.pool.clone(pl.levels[at]))
	for _, l := range pl.levels[at+1:] {
		for _, g := range b.grants {
			l.set(g.at, l.nodes[g.at].Restore(g.Grant))
		}
	}
}

// yields reports whether a gang may use places that are kept for others of its tier: it
// would hand them over to whoever needs much less, and lose nothing by that.
func (pl *planner) yields(c *Candidate) bool {
	return pl.hard != nil && c.KeepsWork && c.TimeLimit > 0 && !pl.tooLong(c)
}

// isHard: not even those who would make room may use its places. Without a limit nobody
// makes room for a gang of the same tier.
func (pl *planner) isHard(b *booking) bool {
	return b.isMove() || b.c.TimeLimit <= 0 || pl.tooLong(b.c)
}

func (pl *planner) unbook(at int) {
	b := pl.booked[at]
	if pl.hard != nil && pl.isHard(&b) {
		for _, g := range b.grants {
			pl.hard.set(g.at, pl.hard.nodes[g.at].Release(g.MemberKey))
		}
	}
	pl.booked = slices.Delete(pl.booked, at, at+1)
	pl.levels = slices.Delete(pl.levels, at+1, at+2)
	for _, l := range pl.levels[at+1:] {
		for _, g := range b.grants {
			l.set(g.at, l.nodes[g.at].Release(g.MemberKey))
		}
	}
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
			for _, g := range b.grants {
				l.set(g.at, l.nodes[g.at].Restore(g.Grant))
			}
		}
	}
	return l
}

// top is the nodes with every claim made so far.
func (pl *planner) top() *level { return pl.levels[len(pl.levels)-1] }

// clearedFor is a node with nothing on it but the claims that b must leave alone: a move
// and a claim may have the same places, when the one is over before the other.
func (pl *planner) clearedFor(b *booking, at int) *cluster.Node {
	n := pl.levels[0].nodes[at].Emptied()
	for i := range pl.booked {
		o := &pl.booked[i]
		if o.isMove() && o.over(b) || b.isMove() && b.over(o) {
			continue
		}
		for _, g := range o.grants {
			if g.at == at {
				n = n.Restore(g.Grant)
			}
		}
	}
	return n
}

// over reports whether the claimant of a move has ended when that of another claim starts.
func (b *booking) over(o *booking) bool { return !o.isMove() && !o.At.IsZero() && !b.Until.After(o.At) }

// vacant reports whether grants fit on the nodes as they are, with the starts planned so far.
func (pl *planner) vacant(grants []nodeGrant) bool {
	for _, g := range grants {
		if _, err := pl.levels[0].nodes[g.at].Take(g.Grant); err != nil {
			return false
		}
	}
	return true
}

// cleared is a node with nothing on it but the claims made so far.
func (pl *planner) cleared(at int) *cluster.Node {
	n := pl.levels[0].nodes[at].Emptied()
	for i := range pl.booked {
		for _, g := range pl.booked[i].grants {
			if g.at == at {
				n = n.Restore(g.Grant)
			}
		}
	}
	return n
}

// findClaim chooses places over the whole of the ready nodes, those that need the least
// further freeing: for when it is not known when what runs will end.
func (pl *planner) findClaim(d *cluster.Need, avoid []string) []cluster.Slot {
	if d.Parts != nil {
		return pl.claimMixed(d, avoid)
	}
	spots := pl.spotsEmpty(d, avoid)
	l := layoutOf(d)
	if l.members(pl.tallyOf(spots)) == 0 {
		if len(avoid) > 0 {
			return pl.findClaim(d, nil)
		}
		return nil
	}
	var slots []cluster.Slot
	for _, m := range l.chooseClaim(spots) {
		slots = append(slots, pl.claimOn(d, m)...)
	}
	return slots
}

func (pl *planner) spotsEmpty(d *cluster.Need, avoid []string) []spot {
	var spots []spot
	claimed := make(map[int]bool)
	for i := range pl.booked {
		for _, g := range pl.booked[i].grants {
			claimed[g.at] = true
		}
	}
	top := pl.top()
	for at, n := range pl.levels[0].nodes {
		if !n.Ready || slices.Contains(avoid, n.Name) {
			continue
		}
		total := 0
		if claimed[at] {
			total = d.Ranks(pl.cleared(at))
		} else {
			total = d.RanksEmpty(n)
		}
		if total > 0 && d.Admits(n) {
			spots = append(spots, spot{at: at, ranks: total, now: min(total, d.Ranks(top.nodes[at])), free: d.Free(top.nodes[at])})
		}
	}
	return spots
}

// chooseClaim takes the spots with most room free already until they hold the gang. When
// that is more members than allowed, the ones with least room in all are exchanged for
// the largest others.
func (l layout) chooseClaim(spots []spot) []member {
	if l.perNode > 0 {
		return l.claimFixed(spots)
	}
	slices.SortFunc(spots, func(a, b spot) int {
		return cmp.Or(cmp.Compare(b.now, a.now), cmp.Compare(b.free, a.free), cmp.Compare(b.ranks, a.ranks), cmp.Compare(a.at, b.at))
	})
	n, sum := 0, 0
	for n < len(spots) && n < l.hi && (sum < l.size || n < l.lo) {
		sum += spots[n].ranks
		n++
	}
	chosen, rest := spots[:n], slices.Clone(spots[n:])
	slices.SortStableFunc(chosen, byRanks)
	slices.SortStableFunc(rest, byRanks)
	for i := n - 1; sum < l.size; i-- {
		next := rest[n-1-i]
		sum += next.ranks - chosen[i].ranks
		chosen[i] = next
	}
	return l.dealClaim(chosen)
}

// dealClaim gives each spot a rank, then what is free there, then the rest.
func (l layout) dealClaim(spots []spot) []member {
	out := make([]member, len(spots))
	left := l.size
	for pass := range 3 {
		for i, s := range spots {
			limit := [...]int{1, s.now, s.ranks}[pass]
			k := min(left, max(0, limit-out[i].ranks))
			out[i] = member{s.at, out[i].ranks + k}
			left -= k
		}
	}
	return byName(out)
}

func (l layout) claimFixed(spots []spot) []member {
	freeFirst := func(k int) func(a, b spot) int {
		return func(a, b spot) int {
			return cmp.Or(cmp.Compare(min(k, b.now), min(k, a.now)), cmp.Compare(b.free, a.free), cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.at, b.at))
		}
	}
	var out []member
	for left := l.size; left > 0; {
		k := min(l.perNode, left)
		fit := slices.DeleteFunc(slices.Clone(spots), func(s spot) bool { return s.ranks < k || holds(out, s.at) })
		slices.SortFunc(fit, freeFirst(k))
		n := max(1, left/l.perNode)
		for _, s := range fit[:n] {
			out = append(out, member{s.at, k})
			left -= k
		}
	}
	return out
}

// claimOn picks the cards of one member: those free now first, then such as must be
// waited for.
func (pl *planner) claimOn(d *cluster.Need, m member) []cluster.Slot {
	here, empty := pl.top().nodes[m.at], pl.cleared(m.at)
	now := min(m.ranks, d.Ranks(here))
	if now == m.ranks {
		return d.Pick(here, now)
	}
	if now == 0 || d.NodeCards > 0 {
		return d.Pick(empty, m.ranks)
	}
	slots := d.Pick(here, now)
	taken := cluster.GrantFor(d.Ask, api.MemberKey{Epoch: epochClaim}, slots, time.Time{})
	for i := range taken.Cards {
		taken.Cards[i].Exclusive = true // not twice for the same gang
	}
	return append(slots, d.Pick(empty.Restore(taken), m.ranks-now)...)
}
