package given

import (
	"cmp"
	"slices"
	"strings"
	"time"

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

// Windows is the reservations of a view, nil when there are none.
type Windows struct {
	List   []Reservation // by Free
	On     []map[int]bool
	rooms  []Room         // in all, by place in list
	byName map[string]int // by name
	nodes  int
	masks  map[maskKey][]bool
}

type maskKey struct {
	own   string
	first int // so many of the list
}

// NewWindows is nil where a view has none.
func NewWindows(v *View, now time.Time) *Windows {
	if len(v.Reservations) == 0 {
		return nil
	}
	w := &Windows{byName: map[string]int{}, nodes: len(v.Nodes), masks: map[maskKey][]bool{}}
	for _, one := range v.Reservations {
		if one.End.After(now) {
			w.List = append(w.List, one)
		}
	}
	slices.SortFunc(w.List, func(a, b Reservation) int {
		return cmp.Or(a.ClearBy.Compare(b.ClearBy), strings.Compare(a.Name, b.Name))
	})
	for i := range w.List {
		w.byName[w.List[i].Name] = i
		on, all := map[int]bool{}, Room{}
		for at, n := range v.Nodes {
			if _, in := slices.BinarySearch(w.List[i].Nodes, n.Name); in {
				on[at] = true
				all.Add(Room{len(n.Cards), n.CPUs()}, 1)
			}
		}
		w.On, w.rooms = append(w.On, on), append(w.rooms, all)
	}
	return w
}

// Bars reports whether a reservation keeps a gang off its nodes that asked for another, or for none.
func (w *Windows) Bars(x *Reservation, own string) bool {
	i, has := w.byName[own]
	return x.Name != own && !(has && w.List[i].Maint)
}

// ReservationOf is the reservation that a gang asked for.
func ReservationOf(c *order.Candidate) string { return c.Ask.Spec.Reservation }

// Span is how long the nodes of a gang are not free after its start, at the longest; 0:
// nobody knows.
func Span(c *order.Candidate, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return limit + max(c.Stop, c.Ask.Spec.GraceMax)
}

// WithGrace is when a gang has gone that is stopped by end, when it takes all the grace that
// it may.
func WithGrace(c *order.Candidate, end time.Time) time.Time {
	if end == Never {
		return end
	}
	return end.Add(max(0, c.Ask.Spec.GraceMax-c.Stop))
}

// ClosedTo marks the nodes on which a gang that starts now and has ended by then would be, or
// come, into a reservation of others, and those that its own does not have.
func (w *Windows) ClosedTo(c *order.Candidate, end time.Time) []bool {
	end = WithGrace(c, end)
	k := maskKey{own: ReservationOf(c)}
	for k.first < len(w.List) && w.List[k.first].ClearBy.Before(end) {
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
			mask[at] = !has || !w.On[i][at]
		}
	}
	for i := range k.first {
		if w.Bars(&w.List[i], k.own) {
			for at := range w.On[i] {
				mask[at] = true
			}
		}
	}
	w.masks[k] = mask
	return mask
}

// OpensAt is the first time from t on at which a gang of this span may start on a node; zero:
// never.
func (w *Windows) OpensAt(c *order.Candidate, at int, t time.Time, span time.Duration) time.Time {
	own := ReservationOf(c)
	if i, has := w.byName[own]; own != "" && (!has || !w.On[i][at]) {
		return time.Time{}
	}
	// Each round passes one occurrence. Reservations that leave no room between them are
	// given up: nobody waits for years.
	for range 64 {
		moved := false
		for i := range w.List {
			x := &w.List[i]
			if !w.Bars(x, own) || !w.On[i][at] {
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

// OpenTo is a view as a gang sees it that starts now and has ended by then: without the
// nodes that are shut to it.
func (gv *Facts) OpenTo(c *order.Candidate, l *fit.NodeView, end time.Time) *fit.NodeView {
	if gv.Reservations == nil {
		return l
	}
	return l.Shut(gv.Reservations.ClosedTo(c, end))
}

// Around is the names to be avoided, with those of nodes where the gang may not start now.
func (gv *Facts) Around(c *order.Candidate) []string {
	if gv.Reservations == nil {
		return c.Avoid
	}
	out := slices.Clone(c.Avoid)
	for at, shut := range gv.Reservations.ClosedTo(c, gv.End(c)) {
		if shut {
			out = append(out, gv.View.Nodes[at].Name)
		}
	}
	return out
}

// MayHave reports whether a backfill of a gang may stand on these nodes, and from when it could
// start there; zero and true: not known.
func (gv *Facts) MayHave(c *order.Candidate, grants []fit.Grant, at time.Time) (time.Time, bool) {
	if gv.Reservations == nil {
		return at, true
	}
	t := at
	if t.IsZero() {
		t = gv.Now
	}
	for moved := true; moved; {
		moved = false
		for _, g := range grants {
			by := gv.Reservations.OpensAt(c, g.At, t, Span(c, c.TimeLimit))
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

// ReservedRoom is how much is reserved for others in the time of a gang that starts
// then; what two reservations have at once counts twice.
func (gv *Facts) ReservedRoom(c *order.Candidate, t time.Time) (r Room) {
	if gv.Reservations == nil {
		return r
	}
	for i := range gv.Reservations.List {
		if x := &gv.Reservations.List[i]; gv.Reservations.Bars(x, ReservationOf(c)) && !x.passes(t, Span(c, c.TimeLimit)).Equal(t) {
			r.Add(gv.Reservations.rooms[i], 1)
		}
	}
	return r
}

// Room is what gangs take of all nodes together.
type Room struct{ Cards, CPUs int }

// Add counts another room with a sign.
func (r *Room) Add(o Room, sign int) { r.Cards, r.CPUs = r.Cards+sign*o.Cards, r.CPUs+sign*o.CPUs }

// Holds reports whether there is as much of both.
func (r Room) Holds(o Room) bool { return r.Cards >= o.Cards && r.CPUs >= o.CPUs }
