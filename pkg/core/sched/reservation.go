package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// Reservation is nodes that from Start to End are only for gangs that asked for it
// by name. A gang of others starts there only when it has ended before.
type Reservation struct {
	Name       string
	Nodes      []string // sorted
	Start, End time.Time
	// Every is after which time it comes again, for ever; 0: it does not.
	Every time.Duration
	// Maint: of nodes to be worked on, at the same time as others may be; who is of it is kept off by none of them.
	Maint bool
	// ClearBy is when who is not of it has to have ended at the latest by his time limit: so
	// much before Start as a gang may take to begin.
	ClearBy time.Time
}

// WordReservation is the reason of gangs that asked for a reservation.
const WordReservation = "Reservation"

// reservations is the reservations of a view, nil when there are none.
type reservations struct {
	list   []Reservation // by Free
	on     []map[int]bool
	rooms  []room         // in all, by place in list
	byName map[string]int // by name
	nodes  int
	masks  map[maskKey][]bool
}

type maskKey struct {
	own   string
	first int // so many of the list
}

func newReservations(v *View, now time.Time) *reservations {
	if len(v.Reservations) == 0 {
		return nil
	}
	w := &reservations{byName: map[string]int{}, nodes: len(v.Nodes), masks: map[maskKey][]bool{}}
	for _, one := range v.Reservations {
		if one.End.After(now) {
			w.list = append(w.list, one)
		}
	}
	slices.SortFunc(w.list, func(a, b Reservation) int {
		return cmp.Or(a.ClearBy.Compare(b.ClearBy), strings.Compare(a.Name, b.Name))
	})
	for i := range w.list {
		w.byName[w.list[i].Name] = i
		on, all := map[int]bool{}, room{}
		for at, n := range v.Nodes {
			if _, in := slices.BinarySearch(w.list[i].Nodes, n.Name); in {
				on[at] = true
				all.add(room{len(n.Cards), n.CPUs()}, 1)
			}
		}
		w.on, w.rooms = append(w.on, on), append(w.rooms, all)
	}
	return w
}

// bars reports whether a reservation keeps a gang off its nodes that asked for another, or for none.
func (w *reservations) bars(x *Reservation, own string) bool {
	i, has := w.byName[own]
	return x.Name != own && !(has && w.list[i].Maint)
}

// ownOf is the reservation that a gang asked for.
func ownOf(c *order.Candidate) string { return c.Ask.Spec.Reservation }

// span is how long the nodes of a gang are not free after its start, at the longest; 0:
// nobody knows.
func span(c *order.Candidate, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return limit + max(c.Stop, c.Ask.Spec.GraceMax)
}

// withGrace is when a gang has gone that is stopped by end, when it takes all the grace that
// it may.
func withGrace(c *order.Candidate, end time.Time) time.Time {
	if end == never {
		return end
	}
	return end.Add(max(0, c.Ask.Spec.GraceMax-c.Stop))
}

// closedTo marks the nodes on which a gang that starts now and has ended by then would be, or
// come, into a reservation of others, and those that its own does not have.
func (w *reservations) closedTo(c *order.Candidate, end time.Time) []bool {
	end = withGrace(c, end)
	k := maskKey{own: ownOf(c)}
	for k.first < len(w.list) && w.list[k.first].ClearBy.Before(end) {
		k.first++
	}
	mask, known := w.masks[k]
	if known {
		return mask
	}
	mask = make([]bool, w.nodes)
	if k.own != "" {
		i, has := w.byName[k.own]
		for at := range mask {
			mask[at] = !has || !w.on[i][at]
		}
	}
	for i := range k.first {
		if w.bars(&w.list[i], k.own) {
			for at := range w.on[i] {
				mask[at] = true
			}
		}
	}
	w.masks[k] = mask
	return mask
}

// opensAt is the first time from t on at which a gang of this span may start on a node; zero:
// never.
func (w *reservations) opensAt(c *order.Candidate, at int, t time.Time, span time.Duration) time.Time {
	own := ownOf(c)
	if i, has := w.byName[own]; own != "" && (!has || !w.on[i][at]) {
		return time.Time{}
	}
	// Each round passes one occurrence. Reservations that leave no room between them are
	// given up: nobody waits for years.
	for range 64 {
		moved := false
		for i := range w.list {
			x := &w.list[i]
			if !w.bars(x, own) || !w.on[i][at] {
				continue
			}
			if by := x.passes(t, span); by.IsZero() {
				return by
			} else if by.After(t) {
				t, moved = by, true
			}
		}
		if !moved {
			return t
		}
	}
	return time.Time{}
}

// passes is the first time from t on at which a gang of this span is not in the way of an
// occurrence; zero: never.
func (x *Reservation) passes(t time.Time, span time.Duration) time.Time {
	free, end := x.ClearBy, x.End
	if x.Every > 0 {
		if span == 0 || span > x.Every-end.Sub(free) {
			return time.Time{}
		}
		// To the first occurrence that is not over at t.
		if over := t.Sub(end); over >= 0 {
			n := over/x.Every + 1
			free, end = free.Add(n*x.Every), end.Add(n*x.Every)
		}
	}
	if !end.After(t) || span > 0 && !t.Add(span).After(free) {
		return t
	}
	return end
}

// openTo is a view as a gang sees it that starts now and has ended by then: without the
// nodes that are shut to it.
func (gv *given) openTo(c *order.Candidate, l *fit.NodeView, end time.Time) *fit.NodeView {
	if gv.reservations == nil {
		return l
	}
	return l.Shut(gv.reservations.closedTo(c, end))
}

// ownView is the nodes as a gang sees them that has a reservation: in its time others' backfills
// on its nodes do not keep it off, for it is what these wait for. Its own backfill, at a place in backfills, is not in its way either.
func (kp *kept) ownView(c *order.Candidate, end time.Time, own int) *fit.NodeView {
	l := kp.fit.Clone(kp.views[0])
	for i := range kp.list {
		if b := &kp.list[i]; i != own && b.inWayOf(end) && (ownOf(b.c) == ownOf(c) || b.isMove()) {
			for _, g := range b.grants {
				l.Set(g.At, l.Node(g.At).Restore(g.Grant))
			}
		}
	}
	return l
}

// around is the names to be avoided, with those of nodes where the gang may not start now.
func (gv *given) around(c *order.Candidate) []string {
	if gv.reservations == nil {
		return c.Avoid
	}
	out := slices.Clone(c.Avoid)
	for at, shut := range gv.reservations.closedTo(c, gv.end(c)) {
		if shut {
			out = append(out, gv.view.Nodes[at].Name)
		}
	}
	return out
}

// mayHave reports whether a backfill of a gang may stand on these nodes, and from when it could
// start there; zero and true: not known.
func (gv *given) mayHave(c *order.Candidate, grants []fit.Grant, at time.Time) (time.Time, bool) {
	if gv.reservations == nil {
		return at, true
	}
	t := at
	if t.IsZero() {
		t = gv.now
	}
	for moved := true; moved; {
		moved = false
		for _, g := range grants {
			by := gv.reservations.opensAt(c, g.At, t, span(c, c.TimeLimit))
			if by.IsZero() {
				return by, false
			}
			if by.After(t) {
				t, moved = by, true
			}
		}
	}
	if at.IsZero() {
		return at, true
	}
	return t, true
}

// mayKeep reports whether a backfill may stand where it is, and sets when it is served at the
// earliest. A move has to be served as soon as its victims are gone.
func (kp *kept) mayKeep(b *backfill) bool {
	if kp.reservations == nil {
		return true
	}
	if b.isMove() {
		shut := kp.reservations.closedTo(b.c, kp.end(b.c))
		return !slices.ContainsFunc(b.grants, func(g fit.Grant) bool { return shut[g.At] })
	}
	at, ok := kp.mayHave(b.c, b.grants, b.At)
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
func (kp *kept) earliestAround(c *order.Candidate, sh *fit.AskClass, avoid []string) ([]cluster.Slot, time.Time) {
	d, l, top, length := sh.Need, fit.LayoutOf(sh.Need), kp.topView(), span(c, c.TimeLimit)
	changed, room := make(map[int]*cluster.Node), make(map[int]int)
	node := func(at int) *cluster.Node { return cmp.Or(changed[at], top.Node(at)) }
	open := func(at int, t time.Time) bool {
		n := node(at)
		return n.Ready && !slices.Contains(avoid, n.Name) && kp.reservations.opensAt(c, at, t, length).Equal(t)
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
		count(at, kp.now)
	}
	turns := kp.nodeEvents(length)
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
func (kp *kept) settleAround(sh *fit.AskClass, m int, node func(at int) *cluster.Node, open func(at int) bool) []cluster.Slot {
	d, l := sh.Need, fit.LayoutOf(sh.Need)
	var choices []fit.Choice
	for at := range kp.view.Nodes {
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
func (kp *kept) nodeEvents(span time.Duration) []nodeEvent {
	const days = 14
	var out []nodeEvent
	ends := kp.ends.byEnd()
	for e, more := ends.next(); more; e, more = ends.next() {
		out = append(out, nodeEvent{ending: e})
	}
	for i := range kp.reservations.list {
		x := &kp.reservations.list[i]
		for n := range time.Duration(days) {
			if n > 0 && x.Every == 0 {
				break
			}
			for at := range kp.reservations.on[i] {
				out = append(out, nodeEvent{ending{at: at, t: x.End.Add(n * x.Every)}, true})
				if t := x.ClearBy.Add(n*x.Every - span + 1); span > 0 && t.After(kp.now) {
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

// reservedVerdict is why a gang stays that would fit were there no reservations; nil: it would
// not.
func (wy *why) reservedVerdict(c *order.Candidate, sh *fit.AskClass) *verdict {
	if wy.reservations == nil || sh.Bad != nil {
		return nil
	}
	end := wy.end(c)
	all, seen := wy.kept.views[0], wy.openTo(c, wy.kept.views[0], end)
	if !wy.holdsNow(c, sh, all) || wy.holdsNow(c, sh, seen) {
		return nil
	}
	v := &verdict{word: WordNodes, sentence: "would fit, but " + wy.reservedText(c, sh)}
	if ownOf(c) != "" {
		v.word = WordReservation
		v.sentence = "its nodes are free, but " + wy.reservedText(c, sh)
	}
	return v
}

func (wy *why) holdsNow(c *order.Candidate, sh *fit.AskClass, l *fit.NodeView) bool {
	if sh.Need.Parts != nil {
		return wy.kept.placeMixed(c, sh.Need, l) != nil
	}
	return wy.fit.Fits(sh, l) // also of alternatives: what is preferred keeps nobody
}

// reservedText names the reservations in the way of a gang, the first to begin first, and how
// long it could run before the first of them.
func (wy *why) reservedText(c *order.Candidate, sh *fit.AskClass) string {
	end := withGrace(c, wy.end(c))
	var parts []string
	var longest time.Duration
	for i := range wy.reservations.list {
		x := &wy.reservations.list[i]
		if !wy.reservations.bars(x, ownOf(c)) || !x.ClearBy.Before(end) {
			continue
		}
		var names []string
		for at := range wy.view.Nodes {
			if wy.reservations.on[i][at] && sh.Need.Admits(wy.view.Nodes[at]) {
				names = append(names, wy.view.Nodes[at].Name)
			}
		}
		if names == nil {
			continue
		}
		be := "are"
		if len(names) == 1 {
			be = "is"
		}
		parts = append(parts, fmt.Sprintf("%s %s %s for reservation %s", hosts(names), be, x.when(wy.now), x.Name))
		if left := x.ClearBy.Sub(wy.now) - max(c.Stop, c.Ask.Spec.GraceMax); longest == 0 && left >= time.Minute {
			longest = left
		}
	}
	if parts == nil && ownOf(c) != "" {
		return "not those of its reservation " + ownOf(c)
	}
	const most = 3
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], api.Count(more, "more reservation"))
	}
	text := join(parts)
	if longest > 0 {
		limit := "it has no time limit"
		if c.TimeLimit > 0 {
			limit = "it may run for " + when.Words(c.TimeLimit)
		}
		text += fmt.Sprintf("; %s, and its stop takes up to %s: at most --time=%d would end before", limit,
			when.Words(max(c.Stop, c.Ask.Spec.GraceMax)), int(longest/time.Minute))
	}
	return text
}

// when says from when to when nodes are reserved.
func (x *Reservation) when(now time.Time) string {
	if x.Start.After(now) {
		return fmt.Sprintf("reserved from %s to %s", when.Clock(now, x.Start), when.Clock(now, x.End))
	}
	return fmt.Sprintf("reserved until %s", when.Clock(now, x.End))
}

// reservedNode says by which reservation a node is shut to the gang that is explained.
func (wy *why) reservedNode(at int) string {
	if !wy.explainedView.Shuts(at) {
		return ""
	}
	for i := range wy.reservations.list {
		x := &wy.reservations.list[i]
		if wy.reservations.on[i][at] {
			return x.when(wy.now) + " for reservation " + x.Name + ": "
		}
	}
	return "not of its reservation: "
}

// reservedRoom is how much is reserved for others in the time of a gang that starts
// then; what two reservations have at once counts twice.
func (gv *given) reservedRoom(c *order.Candidate, t time.Time) (r room) {
	if gv.reservations == nil {
		return r
	}
	for i := range gv.reservations.list {
		if x := &gv.reservations.list[i]; gv.reservations.bars(x, ownOf(c)) && !x.passes(t, span(c, c.TimeLimit)).Equal(t) {
			r.add(gv.reservations.rooms[i], 1)
		}
	}
	return r
}
