package kept

import (
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// earliest finds where a gang can start soonest by the known ends of what is there, beside
// the backfills made so far; nil when only the end of something unknown would make room, or
// when that is not sooner than before. Zero: whenever.
func (kp *Backfills) earliest(c *order.Candidate, sh *fit.AskClass, avoid []string, before time.Time) ([]cluster.Slot, time.Time) {
	if sh.Alternatives != nil {
		return kp.earliestOfAlternatives(c, sh, avoid, before)
	}
	if kp.Reservations != nil {
		return kp.earliestAround(c, sh, avoid)
	}
	d, l := sh.Need, fit.LayoutOf(sh.Need)
	if len(avoid) > 0 {
		before = time.Time{} // it is not known yet whether the others would do at all
	}
	if d.Parts != nil {
		return kp.earliestMixed(d, avoid, before)
	}
	top, rs := kp.TopView(), &kp.mem.rooms
	choices := kp.fit.Look(sh, top, avoid)
	t := kp.fit.TallyOf(choices)
	var by fit.Marked
	if d.Counts != nil {
		by = fit.Marked{}
		for i := range choices {
			by.Add(d.Marks(top.Node(choices[i].At)), choices[i].Ranks, choices[i].Count())
		}
	}
	rs.begin(top.Size)
	ends, from := kp.endsFrom(d, l)
	if ends == nil || !before.IsZero() && !from.Before(before) {
		return nil, time.Time{}
	}
	// release gives the room back that a grant has on a node, and counts what fits there then. The room of a node is made when
	// it is first looked at, without what has ended by then.
	release := func(at int, k api.MemberKey) {
		n := top.Node(at)
		if !rs.allowed(at, func() bool { return d.Admits(n) && !slices.Contains(avoid, n.Name) }) {
			return
		}
		r := rs.at(at)
		if r == nil {
			r, rs.ranks[at] = rs.open(at, n), sh.RanksOn(top.Class(at))
			kp.ends.releaseBefore(r, n, from)
		}
		r.Release(k)
		was, is := rs.ranks[at], r.Ranks(d)
		if was == is {
			return
		}
		rs.ranks[at] = is
		if was > 0 {
			t.AddAll(was, -1)
		}
		t.Add(is)
		if by != nil {
			by.Add(d.Marks(n), was, -1)
			by.Add(d.Marks(n), is, 1)
		}
	}
	for _, at := range kp.touchedNodes {
		release(at, api.MemberKey{})
	}
	for e, more := ends.next(); more; {
		at := e.t
		if !before.IsZero() && !at.Before(before) {
			return nil, time.Time{}
		}
		for ; more && e.t.Equal(at); e, more = ends.next() {
			release(e.at, e.key)
		}
		if m := l.Members(t); m > 0 && (by == nil || by.Holds(d, l)) {
			return kp.settle(sh, avoid, m), at
		}
	}
	if len(avoid) > 0 {
		return kp.earliest(c, sh, nil, time.Time{})
	}
	return nil, time.Time{}
}

// releaseBefore gives back what ends on a node before a time, so far as it is not a backfill.
func (hz *horizon) releaseBefore(r *cluster.Room, n *cluster.Node, before time.Time) {
	if before.IsZero() {
		return
	}
	for i := range n.Grants {
		if g := &n.Grants[i]; g.Epoch != given.EpochBackfill {
			if t := hz.endOf(g); !t.IsZero() && t.Before(before) {
				r.ReleaseAt(i)
			}
		}
	}
}

// cardBound is no less than how many cards of each node are free, as the ends go by.
type cardBound struct {
	cards   []int32
	touched []bool
	tally   fit.Tally
}

func (b *cardBound) reset(nodes int) {
	if len(b.cards) != nodes {
		b.cards, b.touched = make([]int32, nodes), make([]bool, nodes)
	}
	clear(b.touched)
	b.tally.Reset()
}

// endsFrom is the ends from the first one on after which a gang may fit, and when that is; nil: it never does. Before, there
// are too few cards, whatever else it needs. The nodes that have enough for a rank by then because something ends sooner are
// kp.touchedNodes. This goes through a list; looking up node by node what really becomes free was most of a first plan on ten thousand full
// nodes.
func (kp *Backfills) endsFrom(d *cluster.Need, l fit.Layout) (*ends, time.Time) {
	s := kp.ends.byEnd()
	kp.touchedNodes = kp.touchedNodes[:0]
	if kp.mem.VisitsAll || d.Share || !d.WantsCards() {
		return s, time.Time{}
	}
	top, b := kp.TopView(), &kp.mem.cardBound
	b.reset(top.Size)
	fits := func(cards int32) int {
		switch {
		case d.Cards > 0:
			return min(d.Size, int(cards)/d.Cards)
		case int(cards) >= d.NodeCards:
			return d.Size
		}
		return 0
	}
	for at := range b.cards {
		b.cards[at] = int32(top.OpenCardsOn(at))
		if n := fits(b.cards[at]); n > 0 {
			b.tally.Add(n)
		}
	}
	var at time.Time
	from := *s // what ends at that time
	for found := l.Members(&b.tally) > 0; !found; {
		before := *s
		e, more := s.next()
		if !more {
			return nil, time.Time{}
		}
		if !e.t.Equal(at) {
			at, from = e.t, before
		}
		if !b.touched[e.at] {
			b.touched[e.at] = true
			kp.touchedNodes = append(kp.touchedNodes, e.at)
		}
		was := fits(b.cards[e.at])
		b.cards[e.at] += e.cards
		if is := fits(b.cards[e.at]); is != was {
			if was > 0 {
				b.tally.AddAll(was, -1)
			}
			b.tally.Add(is)
			found = l.Members(&b.tally) > 0
		}
	}
	kp.touchedNodes = slices.DeleteFunc(kp.touchedNodes, func(at int) bool { return fits(b.cards[at]) == 0 })
	return &from, at
}

// earliestMixed is earliest for a gang with roles: the end after which it fits is looked
// for by halves, since each look packs all of its parts.
func (kp *Backfills) earliestMixed(d *cluster.Need, avoid []string, before time.Time) ([]cluster.Slot, time.Time) {
	var ends []ending
	top, all := kp.TopView(), kp.ends.byEnd()
	for e, more := all.next(); more && (before.IsZero() || e.t.Before(before)); e, more = all.next() {
		ends = append(ends, e)
	}
	after := func(n int) []cluster.Slot {
		nodes := top.All()
		for _, e := range ends[:n] {
			nodes[e.at] = nodes[e.at].Release(e.key)
		}
		var ready []int32
		for at, n := range nodes {
			if n.Ready {
				ready = append(ready, int32(at))
			}
		}
		return fit.Mixed(d, nodes, ready, avoid)
	}
	n, found := len(ends), after(len(ends))
	if found == nil {
		if len(avoid) > 0 {
			return kp.earliestMixed(d, nil, time.Time{})
		}
		return nil, time.Time{}
	}
	for low := 0; low < n; {
		mid := (low + n) / 2
		if slots := after(mid); slots != nil {
			n, found = mid, slots
		} else {
			low = mid + 1
		}
	}
	if n == 0 {
		return found, kp.Now
	}
	return found, ends[n-1].t
}

// settle chooses the places of a gang on the nodes as they will be: those with a room
// without what is released there.
func (kp *Backfills) settle(sh *fit.AskClass, avoid []string, m int) []cluster.Slot {
	d, l, top, rs := sh.Need, fit.LayoutOf(sh.Need), kp.TopView(), &kp.mem.rooms
	var choices []fit.Choice
	for at, n := range top.Every() {
		if !n.Ready {
			continue
		}
		k := 0
		if r := rs.at(at); r != nil {
			k = r.Ranks(d)
		} else {
			k = sh.RanksOn(top.Class(at))
		}
		if k > 0 && rs.allowed(at, func() bool { return d.Admits(n) && !slices.Contains(avoid, n.Name) }) {
			choices = append(choices, fit.Choice{At: at, Ranks: k})
		}
	}
	nodes := make(map[int]*cluster.Node)
	node := func(at int) *cluster.Node {
		if rs.at(at) == nil {
			return top.Node(at)
		}
		if nodes[at] == nil {
			nodes[at] = rs.at(at).Node()
		}
		return nodes[at]
	}
	wasteOf := func(s fit.Choice, ranks int) cluster.Waste { return d.WasteOf(node(s.At), ranks) }
	var members []fit.Member
	if d.Counts == nil {
		members = l.Choose(choices, kp.fit.TallyOf(choices), m, wasteOf)
	} else {
		c := fit.NewCounted(d, choices, node)
		members = c.Choose(c.Members(), wasteOf)
	}
	var slots []cluster.Slot
	for _, m := range members {
		slots = append(slots, d.Pick(node(m.At), m.Ranks)...)
	}
	return slots
}

// freeAt is when the places of a backfill are free at the latest; zero: not known.
func (kp *Backfills) freeAt(grants []fit.Grant) time.Time {
	latest, r := kp.Now, &kp.mem.room
	var ends []ending
	for i := range grants {
		g := &grants[i]
		n := kp.TopView().Node(g.At)
		if r.Of(n); r.Fits(&g.Grant) {
			continue
		}
		ends = ends[:0]
		for i := range n.Grants {
			if n.Grants[i].Epoch == given.EpochBackfill && n.Grants[i].Until.IsZero() {
				continue
			}
			if t := kp.ends.endOf(&n.Grants[i]); !t.IsZero() {
				ends = append(ends, endingOf(g.At, t, &n.Grants[i]))
			}
		}
		slices.SortFunc(ends, func(a, b ending) int { return a.t.Compare(b.t) })
		for next := 0; !r.Fits(&g.Grant); next++ {
			if next == len(ends) {
				return time.Time{}
			}
			r.Release(ends[next].key)
			if t := ends[next].t; t.After(latest) {
				latest = t
			}
		}
	}
	return latest
}
