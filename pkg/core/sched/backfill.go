package sched

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// restore takes the backfills of the plan before in. Each is added when the plan reaches
// its tier: higher ones are not bound by it, and whoever came to its own tier since is.
func (kp *kept) restore() {
	for _, k := range kp.view.Backfills {
		if c := kp.view.Queue.Get(k.Job); c != nil {
			kp.later = append(kp.later, backfill{Backfill: k, c: c})
		}
	}
	slices.SortStableFunc(kp.later, func(a, b backfill) int {
		switch {
		case kp.policy.Below(b.c, a.c):
			return -1
		case kp.policy.Below(a.c, b.c):
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
func (pl *planner) reach(c *order.Candidate) {
	pl.startWide(c)
	var kept []*order.Candidate
	n := 0 // of those that wait on
	for i := range pl.kept.later {
		if b := &pl.kept.later[i]; !pl.policy.MayDelay(c, b.c, b.isMove()) {
			if pl.kept.keep(*b) {
				kept = append(kept, b.c)
			}
		} else {
			if n < i {
				pl.kept.later[n] = *b
			}
			n++
		}
	}
	pl.kept.later = pl.kept.later[:n]
	for _, c := range kept {
		if pl.full() {
			return
		}
		pl.visited[c.Job] = true
		pl.visitTaker(c)
	}
	for len(pl.guard.guarded) > 0 && !pl.full() && !pl.policy.Below(pl.guard.guarded[0], c) {
		c := pl.guard.guarded[0]
		pl.guard.guarded = pl.guard.guarded[1:]
		if !pl.visited[c.Job] {
			pl.visited[c.Job] = true
			pl.visitGuarded(c)
		}
	}
}

// visitGuarded visits a gang that waited too long, at the backfill that it may have: left for
// later, that backfill would start the gang a second time.
func (pl *planner) visitGuarded(c *order.Candidate) {
	if at := slices.IndexFunc(pl.kept.later, func(b backfill) bool { return b.Job == c.Job }); at >= 0 {
		b := pl.kept.later[at]
		pl.kept.later = slices.Delete(pl.kept.later, at, at+1)
		if pl.kept.keep(b) {
			pl.visitTaker(c)
			return
		}
	}
	pl.visit(c, pl.view.Queue.JobClass(c.Job))
}

// visitTaker starts a gang that holds a backfill, or looks again for victims for it.
func (pl *planner) visitTaker(c *order.Candidate) {
	sh, cl, at := pl.fit.ClassOf(c.Ask), pl.view.Queue.JobClass(c.Job), pl.kept.of(c.Job)
	if v := pl.bounds.capped(c); v != nil {
		pl.bounds.keepPools(c, v)
		v.first = c.Job
		pl.why.verdicts.set(cl, cmp.Or(pl.why.verdicts.of(cl), v))
		pl.kept.remove(at)
		return
	}
	if b := &pl.kept.list[at]; b.isMove() && len(b.Victims) == 0 && !b.away {
		// Its victims are gone, so that its places are free: looked for again, they could be
		// others, of which a part was never cleared.
		slots := b.Slots
		pl.kept.remove(at)
		pl.startAt(c, slots, pl.end(c))
		return
	}
	end := pl.end(c)
	if (sh.Need.Parts != nil || sh.Alternatives != nil || pl.reservations != nil || pl.kept.fitsWithout(at, end, sh, c.Avoid)) &&
		pl.start(c, sh, pl.openTo(c, pl.kept.viewWithout(c, at, end), end), end) {
		pl.kept.remove(at)
		return
	}
	pl.why.note(c, cl, sh)
	b := &pl.kept.list[at]
	if len(b.Victims) > 0 {
		pl.victims.tell(b)
	} else if own := *b; pl.mayPreempt() {
		pl.kept.remove(at)
		if !pl.victims.preempt(c, sh) {
			pl.kept.add(own)
		}
	}
}

// full: the plan has as many starts as it may.
func (pl *planner) full() bool {
	return pl.policy.MaxStarts > 0 && len(pl.starts) >= pl.policy.MaxStarts
}

// displace takes the backfills off that c goes before and that were made for the sake of
// others ahead of it.
func (kp *kept) displace(c *order.Candidate) (off []backfill) {
	for at := len(kp.list) - 1; at >= 0; at-- {
		if b := &kp.list[at]; kp.policy.MayDelay(c, b.c, b.isMove()) {
			off = append(off, *b)
			kp.remove(at)
		}
	}
	return off
}

// keepAll books backfills again that still hold.
func (kp *kept) keepAll(off []backfill) {
	for i := range off {
		kp.keep(off[i])
	}
}

func (kp *kept) of(job int64) int {
	for i := range kp.list {
		if kp.list[i].Job == job {
			return i
		}
	}
	return -1
}

// lookAgain is how long a backfill stays unquestioned for each hundred nodes: looking for an
// earlier place goes through everything that runs.
const lookAgain = 10 * time.Second

// keep books a backfill that still holds, where it is or where it is served earlier.
func (kp *kept) keep(b backfill) bool {
	sh := kp.fit.ClassOf(b.c.Ask)
	if sh.Bad != nil || !kp.stands(&b) && !kp.holds(sh.Need, b.Slots) {
		return false
	}
	b.grants = kp.grantsOf(&b)
	kp.mem.backfillGrants[b.Job].heldAt = kp.fit.AtCapacity()
	away := false
	for _, g := range b.grants {
		if n := kp.views[0].Node(g.At); !n.Ready && n.Away {
			away = true
		} else if !kp.clearedFor(&b, g.At).Fits(&g.Grant) {
			return false
		}
	}
	b.Victims = kp.victimsLeft(b.Victims)
	if away {
		// Until the node is back, or is lost, nobody knows when the places are free.
		b.away = true
		b.At = time.Time{}
		kp.add(b)
		return true
	}
	if b.isMove() && len(b.Victims) == 0 && !kp.vacant(b.grants) {
		// A victim was refused, or something else came between: a plain backfill.
		b.Until = time.Time{}
		b.grants = kp.grantsOf(&b)
	}
	if !b.isMove() {
		b.At = kp.freeAt(b.grants)
	}
	if !kp.mayKeep(&b) {
		return false
	}
	if pause := time.Duration(len(kp.view.Nodes)/100) * lookAgain; !b.isMove() && kp.now.Sub(b.SearchedAt) >= pause {
		if b.At.IsZero() && !kp.promises(&b) && kp.view.Queue.Ledger().Knows(0) {
			// Nobody knows whether these places are ever free before others are: it is made
			// anew where the least is missing, in its turn.
			return false
		}
		b.SearchedAt = kp.now
		// Only for a time that is known and earlier: what a taker was promised never
		// gets later by a move.
		if slots, at := kp.earliest(b.c, sh, b.c.Avoid, b.At); slots != nil && (b.At.IsZero() || at.Before(b.At)) {
			b.Slots, b.At = slots, at
			b.grants = kp.grantsOf(&b)
		}
	}
	kp.add(b)
	return true
}

// holds reports whether the places of a backfill are still in service and allowed.
func (kp *kept) holds(d *cluster.Need, slots []cluster.Slot) bool {
	if len(slots) != d.Size {
		return false
	}
	if d.Parts != nil || d.Alternatives != nil {
		return kp.fit.AdmitsAll(d, slots)
	}
	for i, s := range slots {
		if i > 0 && s.Node == slots[i-1].Node {
			continue
		}
		if at := kp.fit.Find(s.Node); at < 0 || !d.Admits(kp.view.Nodes[at]) {
			return false
		}
	}
	return true
}

// make keeps lower gangs off the places that c waits for. It reports false when no
// ready nodes, however empty, would hold it: waiting for those would hold others up for
// nothing.
func (kp *kept) make(c *order.Candidate, sh *fit.AskClass) bool {
	if sh.NoBackfill {
		return false
	}
	b := backfill{Backfill: Backfill{Job: c.Job, SearchedAt: kp.now}, c: c}
	if b.Slots, b.At = kp.earliest(c, sh, c.Avoid, time.Time{}); b.Slots == nil {
		b.Slots = kp.find(sh, kp.around(c))
	}
	if b.Slots == nil {
		sh.NoBackfill = true // backfills only add up within a plan
		return false
	}
	b.grants = kp.grantsOf(&b)
	if b.At.IsZero() {
		at, ok := kp.mayHave(c, b.grants, kp.freeAt(b.grants))
		if !ok {
			return false
		}
		b.At = at
	}
	kp.add(b)
	return true
}

// add keeps a backfill off the views of the nodes of those that would be in its way.
func (kp *kept) add(b backfill) {
	from := b.from()
	at := sort.Search(len(kp.list), func(i int) bool { return kp.list[i].from().After(from) })
	kp.list = slices.Insert(kp.list, at, b)
	if kp.strictView != nil && kp.isStrict(&b) {
		kp.strictView.PutAll(b.grants)
	}
	kp.views = slices.Insert(kp.views, at+1, nil)
	for _, l := range kp.views[at+1:] {
		if l != nil {
			l.PutAll(b.grants)
		}
	}
}

// viewWith is the nodes with the first n backfills on them, made when first asked for: most gangs
// have no time limit or a long one, and see only the last.
func (kp *kept) viewWith(n int) *fit.NodeView {
	below := n
	for kp.views[below] == nil {
		below--
	}
	if below < n {
		kp.views[n] = kp.fit.Clone(kp.views[below])
		for i := below; i < n; i++ {
			kp.views[n].PutAll(kp.list[i].grants)
		}
	}
	return kp.views[n]
}

// yields reports whether a gang may use places that are kept for others of its tier: it
// would hand them over to whoever needs much less, and lose nothing by that.
func (kp *kept) yields(c *order.Candidate) bool {
	return kp.strictView != nil && c.KeepsWork && kp.view.Queue.Ledger().Knows(c.TimeLimit) && kp.front[c.Job] == order.NoTurn
}

// isStrict: not even those who would make room may use its places. Without a limit nobody
// makes room for a gang of the same tier.
func (kp *kept) isStrict(b *backfill) bool {
	return b.isMove() || !kp.view.Queue.Ledger().Knows(b.c.TimeLimit) || kp.front[b.Job] != order.NoTurn
}

func (kp *kept) remove(at int) {
	b := kp.list[at]
	if kp.strictView != nil && kp.isStrict(&b) {
		for _, g := range b.grants {
			kp.strictView.Set(g.At, kp.strictView.Node(g.At).Release(g.MemberKey))
		}
	}
	kp.list = slices.Delete(kp.list, at, at+1)
	kp.views = slices.Delete(kp.views, at+1, at+2)
	for _, l := range kp.views[at+1:] {
		if l == nil {
			continue
		}
		for _, g := range b.grants {
			l.Set(g.At, l.Node(g.At).Release(g.MemberKey))
		}
	}
}

// fitsWithout reports whether a gang fits on the nodes of viewWithout, and leaves the count
// of room there for its reason. Mostly it does not, and a view of its own costs more.
func (kp *kept) fitsWithout(own int, end time.Time, sh *fit.AskClass, avoid []string) bool {
	d, l0, rs := sh.Need, kp.views[0], &kp.mem.rooms
	t := kp.fit.TallyOf(kp.fit.Look(sh, l0, avoid))
	rs.begin(l0.Size)
	kp.touchedNodes = kp.touchedNodes[:0]
	for i := range kp.list {
		if b := &kp.list[i]; i != own && b.inWayOf(end) {
			for j := range b.grants {
				g := &b.grants[j]
				if rs.at(g.At) == nil {
					kp.touchedNodes = append(kp.touchedNodes, g.At)
				}
				rs.open(g.At, l0.Node(g.At)).Restore(&g.Grant)
			}
		}
	}
	for _, at := range kp.touchedNodes {
		n := l0.Node(at)
		was := d.Ranks(n)
		if was == 0 || !n.Ready || !d.Admits(n) || slices.Contains(avoid, n.Name) {
			continue
		}
		t.AddAll(was, -1)
		if is := rs.at(at).Ranks(d); is > 0 {
			t.Add(is)
		}
	}
	if fit.LayoutOf(d).Members(t) > 0 {
		return true
	}
	return len(avoid) > 0 && kp.fitsWithout(own, end, sh, nil)
}

// viewWithout is the nodes as the taker of a backfill sees them, when it would run until
// end: its own backfill is not in its way.
func (kp *kept) viewWithout(c *order.Candidate, own int, end time.Time) *fit.NodeView {
	if kp.reservations != nil && ownOf(c) != "" {
		return kp.ownView(c, end, own)
	}
	if len(kp.list) == 1 {
		return kp.views[0]
	}
	l := kp.fit.Clone(kp.views[0])
	for i := range kp.list {
		if b := &kp.list[i]; i != own && b.inWayOf(end) {
			l.PutAll(b.grants)
		}
	}
	return l
}

// topView is the nodes with every backfill made so far.
func (kp *kept) topView() *fit.NodeView { return kp.viewWith(len(kp.views) - 1) }

// clearedFor is a node with nothing on it but the backfills that b must leave alone: a move
// and a backfill may have the same places, when the one is over before the other.
func (kp *kept) clearedFor(b *backfill, at int) *cluster.Room {
	r := &kp.mem.room
	r.OfEmptied(kp.views[0].Node(at))
	for i := range kp.list {
		o := &kp.list[i]
		if o.isMove() && o.over(b) || b.isMove() && b.over(o) {
			continue
		}
		for i := range o.grants {
			if g := &o.grants[i]; g.At == at {
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
func (kp *kept) vacant(grants []fit.Grant) bool {
	for i := range grants {
		if g := &grants[i]; !kp.views[0].Node(g.At).Fits(&g.Grant) {
			return false
		}
	}
	return true
}

// cleared is a node with nothing on it but the backfills made so far.
func (kp *kept) cleared(at int) *cluster.Node {
	n := kp.views[0].Node(at).Emptied()
	for i := range kp.list {
		for _, g := range kp.list[i].grants {
			if g.At == at {
				n = n.Restore(g.Grant)
			}
		}
	}
	return n
}
