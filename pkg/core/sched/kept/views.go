package kept

import (
	"slices"
	"sort"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// viewWith is the nodes with the first n backfills on them, made when first asked for: most gangs
// have no time limit or a long one, and see only the last.
func (kp *Backfills) viewWith(n int) *fit.NodeView {
	below := n
	for kp.views[below] == nil {
		below--
	}
	if below < n {
		kp.views[n] = kp.fit.Clone(kp.views[below])
		for i := below; i < n; i++ {
			kp.views[n].PutAll(kp.List[i].Grants)
		}
	}
	return kp.views[n]
}

// ViewFor is the nodes as a gang sees them that starts now and has ended by then.
func (kp *Backfills) ViewFor(c *order.Candidate, end time.Time) *fit.NodeView {
	if kp.Reservations != nil && given.ReservationOf(c) != "" {
		return kp.OpenTo(c, kp.ownView(c, end, -1), end)
	}
	return kp.OpenTo(c, kp.viewWith(kp.inWay(end)), end)
}

// inWay is how many backfills, the first ones, a gang would be in the way of that ends then.
func (kp *Backfills) inWay(end time.Time) int {
	return sort.Search(len(kp.List), func(i int) bool { return !kp.List[i].inWayOf(end) })
}

// FitsWithout reports whether a gang fits on the nodes of viewWithout, and leaves the count
// of room there for its reason. Mostly it does not, and a view of its own costs more.
func (kp *Backfills) FitsWithout(own int, end time.Time, sh *fit.AskClass, avoid []string) bool {
	d, l0, rs := sh.Need, kp.views[0], &kp.mem.rooms
	t := kp.fit.TallyOf(kp.fit.Look(sh, l0, avoid))
	rs.begin(l0.Size)
	kp.touchedNodes = kp.touchedNodes[:0]
	for i := range kp.List {
		if b := &kp.List[i]; i != own && b.inWayOf(end) {
			for j := range b.Grants {
				g := &b.Grants[j]
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
	return len(avoid) > 0 && kp.FitsWithout(own, end, sh, nil)
}

// ViewWithout is the nodes as the taker of a backfill sees them, when it would run until
// end: its own backfill is not in its way.
func (kp *Backfills) ViewWithout(c *order.Candidate, own int, end time.Time) *fit.NodeView {
	if kp.Reservations != nil && given.ReservationOf(c) != "" {
		return kp.ownView(c, end, own)
	}
	if len(kp.List) == 1 {
		return kp.views[0]
	}
	l := kp.fit.Clone(kp.views[0])
	for i := range kp.List {
		if b := &kp.List[i]; i != own && b.inWayOf(end) {
			l.PutAll(b.Grants)
		}
	}
	return l
}

// TopView is the nodes with every backfill made so far.
func (kp *Backfills) TopView() *fit.NodeView { return kp.viewWith(len(kp.views) - 1) }

// ownView is the nodes as a gang sees them that has a reservation: in its time others' backfills
// on its nodes do not keep it off, for it is what these wait for. Its own backfill, at a place in backfills, is not in its way either.
func (kp *Backfills) ownView(c *order.Candidate, end time.Time, own int) *fit.NodeView {
	l := kp.fit.Clone(kp.views[0])
	for i := range kp.List {
		if b := &kp.List[i]; i != own && b.inWayOf(end) && (given.ReservationOf(b.Taker) == given.ReservationOf(c) || b.IsMove()) {
			for _, g := range b.Grants {
				l.Set(g.At, l.Node(g.At).Restore(g.Grant))
			}
		}
	}
	return l
}

// Yields reports whether a gang may use places that are kept for others of its tier: it
// would hand them over to whoever needs much less, and lose nothing by that.
func (kp *Backfills) Yields(c *order.Candidate) bool {
	return kp.Strict != nil && c.KeepsWork && kp.View.Queue.Ledger().Knows(c.TimeLimit) && kp.Front[c.Job] == order.NoTurn
}

// isStrict: not even those who would make room may use its places. Without a limit nobody
// makes room for a gang of the same tier.
func (kp *Backfills) isStrict(b *Backfill) bool {
	return b.IsMove() || !kp.View.Queue.Ledger().Knows(b.Taker.TimeLimit) || kp.Front[b.Job] != order.NoTurn
}

// Cuts are the times before end by which a gang could have ended so as not to be in the way
// of somebody, the latest first.
func (kp *Backfills) Cuts(c *order.Candidate, least, end time.Time) []time.Time {
	if !least.Before(end) {
		return nil
	}
	var out []time.Time
	for n := kp.inWay(end) - 1; n >= kp.inWay(least); n-- {
		if b := &kp.List[n]; !b.isOpen() {
			out = append(out, b.From())
		}
	}
	if kp.Reservations == nil {
		return out
	}
	for i := range kp.Reservations.List {
		if by := kp.Reservations.List[i].ClearBy.Add(-max(0, c.Ask.Spec.GraceMax-c.Stop)); by.Before(end) && !by.Before(least) {
			out = append(out, by)
		}
	}
	slices.SortFunc(out, func(a, b time.Time) int { return b.Compare(a) })
	return out
}

// Book puts what a start takes on all views.
func (kp *Backfills) Book(c *order.Candidate, slots []cluster.Slot, end time.Time) {
	until := end
	if end.Equal(given.Never) {
		until = time.Time{}
	}
	for _, g := range kp.fit.Grants(c, slots, given.EpochStart, until) {
		for _, l := range kp.views {
			if l != nil {
				l.Set(g.At, l.Node(g.At).Restore(g.Grant))
			}
		}
		if kp.Strict != nil {
			kp.Strict.Set(g.At, kp.Strict.Node(g.At).Restore(g.Grant))
		}
		kp.ends.started = append(kp.ends.started, g)
	}
}
