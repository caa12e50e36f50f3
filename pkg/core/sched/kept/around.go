package kept

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// mayKeep reports whether a backfill may stand where it is, and sets when it is served at the
// earliest. A move has to be served as soon as its victims are gone.
func (kp *Backfills) mayKeep(b *Backfill) bool {
	if kp.Reservations == nil {
		return true
	}
	if b.IsMove() {
		shut := kp.Reservations.ClosedTo(b.Taker, kp.End(b.Taker))
		return !slices.ContainsFunc(b.Grants, func(g fit.Grant) bool { return shut[g.At] })
	}
	at, ok := kp.MayHave(b.Taker, b.Grants, b.At)
	if ok {
		b.At = at
	}
	return ok
}

// nodeEvent is a moment at which a node may become another: something on it ends, or a
// reservation opens or shuts it.
type nodeEvent struct {
	ending
	shuts bool
}

// earliestAround is [kept.earliest] where there are reservations: what is free later may
// be shut then.
func (kp *Backfills) earliestAround(c *order.Candidate, sh *fit.AskClass, avoid []string) ([]cluster.Slot, time.Time) {
	d, l, top, length := sh.Need, fit.LayoutOf(sh.Need), kp.TopView(), given.Span(c, c.TimeLimit)
	changed, room := make(map[int]*cluster.Node), make(map[int]int)
	node := func(at int) *cluster.Node { return cmp.Or(changed[at], top.Node(at)) }
	open := func(at int, t time.Time) bool {
		n := node(at)
		return n.Ready && !slices.Contains(avoid, n.Name) && kp.Reservations.OpensAt(c, at, t, length).Equal(t)
	}
	var t fit.Tally
	count := func(at int, when time.Time) {
		is := 0
		if open(at, when) {
			// A gang with roles is looked at whole, below.
			if is = 1; !d.Packed() {
				if is = 0; d.Admits(node(at)) {
					is = d.Ranks(node(at))
				}
			}
		}
		if was := room[at]; was != is {
			if was > 0 {
				t.AddAll(was, -1)
			}
			if is > 0 {
				t.Add(is)
			}
			room[at] = is
		}
	}
	for at := range top.Size {
		count(at, kp.Now)
	}
	turns := kp.ends.nodeEvents(length)
	for i, looks := 0, 0; i < len(turns); {
		when := turns[i].t
		for ; i < len(turns) && turns[i].t.Equal(when); i++ {
			e := &turns[i]
			if !e.shuts {
				changed[e.at] = node(e.at).Release(e.key)
			}
			count(e.at, when)
		}
		if d.Packed() {
			if looks++; looks > maxMixedLooks {
				break
			}
			var list []int32
			nodes := top.All()
			for at := range nodes {
				if nodes[at] = node(at); room[at] > 0 {
					list = append(list, int32(at))
				}
			}
			if slots := fit.Mixed(d, nodes, list, nil); slots != nil {
				return slots, when
			}
		} else if m := l.Members(&t); m > 0 {
			return kp.settleAround(sh, m, node, func(at int) bool { return open(at, when) }), when
		}
	}
	if len(avoid) > 0 {
		return kp.earliestAround(c, sh, nil)
	}
	return nil, time.Time{}
}

// settleAround chooses the places of a gang on the nodes as they will be, of those that are
// open then.
func (kp *Backfills) settleAround(sh *fit.AskClass, m int, node func(at int) *cluster.Node, open func(at int) bool) []cluster.Slot {
	d, l := sh.Need, fit.LayoutOf(sh.Need)
	var choices []fit.Choice
	for at := range kp.View.Nodes {
		if !open(at) || !d.Admits(node(at)) {
			continue
		}
		if k := d.Ranks(node(at)); k > 0 {
			choices = append(choices, fit.Choice{At: at, Ranks: k})
		}
	}
	var slots []cluster.Slot
	for _, m := range l.Choose(choices, kp.fit.TallyOf(choices), m, func(s fit.Choice, ranks int) cluster.Waste {
		return d.WasteOf(node(s.At),
			ranks)
	}) {
		slots = append(slots, d.Pick(node(m.At), m.Ranks)...)
	}
	return slots
}

// maxMixedLooks bounds how often a gang with roles is packed for one backfill.
const maxMixedLooks = 64

// nodeEvents is everything that ends, and every moment of the next days at which a reservation
// opens a node, or shuts it to gangs of this span.
func (hz *horizon) nodeEvents(span time.Duration) []nodeEvent {
	const days = 14
	var out []nodeEvent
	ends := hz.byEnd()
	for e, more := ends.next(); more; e, more = ends.next() {
		out = append(out, nodeEvent{ending: e})
	}
	for i := range hz.Reservations.List {
		x := &hz.Reservations.List[i]
		for n := range time.Duration(days) {
			if n > 0 && x.Every == 0 {
				break
			}
			for at := range hz.Reservations.On[i] {
				out = append(out, nodeEvent{ending{at: at, t: x.End.Add(n * x.Every)}, true})
				if t := x.ClearBy.Add(n*x.Every - span + 1); span > 0 && t.After(hz.Now) {
					out = append(out, nodeEvent{ending{at: at, t: t}, true})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b nodeEvent) int {
		return cmp.Or(a.t.Compare(b.t), cmp.Compare(a.at, b.at), cmp.Compare(a.key.Job, b.key.Job), cmp.Compare(a.key.Epoch, b.key.Epoch))
	})
	return out
}

// ReservationTurns is the moments of the next days at which reservations open nodes.
func (kp *Backfills) ReservationTurns() (out []time.Time) {
	for _, e := range kp.ends.nodeEvents(0) {
		if e.shuts {
			out = append(out, e.t)
		}
	}
	return out
}
