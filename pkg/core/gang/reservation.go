package gang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/nearest"
	"gangd/pkg/core/sched/given"
)

// A reservation keeps gangs that are not of it off its nodes from its start to its end. Who
// would still be there at its start is not admitted; who was there before it was made is
// refused with it, let stay, or stopped in time, as its flags say. What runs at its end runs
// on. When it has ended the next day's (or week's) takes its place, or it is gone.

// PutReservation makes a reservation, or (with Old) changes one to be like R.
type PutReservation struct {
	R     api.Reservation
	Old   bool // one of this name exists
	Count int  // so many nodes are chosen, out of those of R, or of all where it has none; 0: those of R
	By    string
}

// DropReservation takes one away.
type DropReservation struct{ Name, By string }

func (PutReservation) event()  {}
func (DropReservation) event() {}

// reservation is a reservation with what is derived from it.
type reservation struct {
	r      *api.Reservation // immutable; its Active is not looked at
	active bool             // it has begun; its end is an armed timer
}

// reservations are all there are.
type reservations struct {
	set   *api.Settings
	clock *clock
	jobs  *jobs
	nodes *nodes

	byName map[string]*reservation
	seen   []given.Reservation         // what the scheduler sees of them; nil: to be made
	dirty  map[string]*api.Reservation // those that changed, nil for one that is gone
}

func reservationTimer(name string) timer { return timer{kind: timerReservation, node: name} }

// list are all there are, by name.
func (rs *reservations) list() []*api.Reservation {
	out := make([]*api.Reservation, 0, len(rs.byName))
	for _, name := range slices.Sorted(maps.Keys(rs.byName)) {
		out = append(out, rs.byName[name].r)
	}
	return out
}

// put keeps one, and the moment at which something becomes of it.
func (rs *reservations) put(b *reservation) {
	rs.byName[b.r.Name] = b
	rs.dirty[b.r.Name] = b.r
	next := b.r.Start
	if b.active {
		next = b.r.End
	}
	rs.clock.in(next.Sub(rs.clock.now.Wall), reservationTimer(b.r.Name))
}

// chooseNodes gives a reservation so many nodes that no other one has at its times and that jobs will have left:
// those that it has first, then those in service, each in the order of their names.
func (rs *reservations) chooseNodes(r *api.Reservation, old *reservation, count int) ([]string, *api.Error) {
	pool := r.Nodes
	if len(pool) == 0 {
		pool = slices.Collect(maps.Keys(rs.nodes.byName))
	}
	var free []string
	for _, n := range pool {
		one := *r
		if one.Nodes = []string{n}; rs.nodes.byName[n] != nil && rs.overlaps(&one) == nil && rs.inTheWay(&one) == nil {
			free = append(free, n)
		}
	}
	if len(free) < count {
		e := conflict("take fewer, or another time; flags=ignore_jobs and flags=drain take nodes with jobs, too",
			"%s asked for, and of %d there %s free for all of that time", api.Count(count, "node"), len(pool), isAre(len(free)))
		return nil, e.About(api.ReasonNodeCount, r.Name)
	}
	last := func(n string) int {
		switch {
		case old != nil && old.r.Holds(n):
			return 0
		case rs.nodes.byName[n].node.Res.Ready:
			return 1
		}
		return 2
	}
	slices.SortFunc(free, func(a, b string) int {
		if last(a) == 0 && last(b) == 0 {
			return hostlist.Compare(b, a) // one that shrinks gives up its first nodes, as in Slurm
		}
		return cmp.Or(cmp.Compare(last(a), last(b)), hostlist.Compare(a, b))
	})
	return slices.Sorted(slices.Values(free[:count])), nil
}

func isAre(n int) string {
	if n == 1 {
		return "is 1"
	}
	return fmt.Sprintf("are %d", n)
}

func sameReservation(a, b *api.Reservation) bool {
	return a.Start.Equal(b.Start) && a.End.Equal(b.End) && slices.Equal(a.Nodes, b.Nodes) && slices.Equal(a.Users, b.Users) &&
		slices.Equal(a.Accounts, b.Accounts) && a.Picked == b.Picked && slices.Equal(a.Flags, b.Flags)
}

// reservationText says a reservation in one line.
func reservationText(r *api.Reservation) string {
	text := fmt.Sprintf("%s from %s to %s", hostlist.Compress(r.Nodes), timeText(r.Start), timeText(r.End))
	var who []string
	if len(r.Users) > 0 {
		who = append(who, "users "+strings.Join(r.Users, ","))
	}
	if len(r.Accounts) > 0 {
		who = append(who, "accounts "+strings.Join(r.Accounts, ","))
	}
	if who != nil {
		text += " for " + strings.Join(who, " under ")
	}
	for _, f := range r.Flags {
		text += " " + string(f)
	}
	return text
}

// bookable refuses a reservation that can not be.
func (rs *reservations) bookable(r *api.Reservation, old *reservation, ev *PutReservation) *api.Error {
	bad := func(hint, format string, args ...any) *api.Error {
		e := api.Errorf(api.CodeInvalid, format, args...)
		e.Hint = hint
		return e
	}
	length := r.End.Sub(r.Start)
	switch {
	case old == nil && ev.Old:
		return rs.unknown(r.Name)
	case old != nil && !ev.Old:
		return conflict("gctl show reservation "+r.Name+" shows it, gctl update reservationname="+r.Name+" changes it",
			"there is a reservation %s already", r.Name).About(api.ReasonReserved, r.Name)
	case length <= 0:
		return bad("give a later endtime, or a duration", "reservation %s would end at %s, which is not after its start at %s", r.Name,
			timeText(r.End), timeText(r.Start))
	case !r.End.After(rs.clock.now.Wall):
		return bad("give a later time", "reservation %s would be over already: it ends at %s", r.Name, timeText(r.End))
	case len(r.Nodes) == 0:
		return bad("name some: nodes=n[1-4], or nodes=ALL", "reservation %s has no nodes", r.Name)
	case len(r.Users)+len(r.Accounts) == 0 && !r.Has(api.FlagMaint):
		return bad("say who: users=ada,bob or accounts=vision; or flags=maint for nobody", "reservation %s is for nobody", r.Name)
	case r.Has(api.FlagDaily) && r.Has(api.FlagWeekly):
		return bad("keep one of them", "flags daily and weekly exclude each other")
	case r.Days() > 0 && length > r.Every():
		return bad("make it shorter", "reservation %s lasts %s, longer than the %s until its next one", r.Name, when.Words(length),
			when.Words(r.Every()))
	}
	for _, n := range r.Nodes {
		if rs.nodes.byName[n] == nil {
			return rs.nodes.unknown(n)
		}
	}
	if err := rs.overlaps(r); err != nil {
		return err
	}
	return rs.inTheWay(r)
}

func (rs *reservations) unknown(name string) *api.Error {
	return NoReservation(name, slices.Sorted(maps.Keys(rs.byName)))
}

// NoReservation says that there is none of a name, and which there are.
func NoReservation(name string, known []string) *api.Error {
	e := api.Errorf(api.CodeNotFound, "no reservation %q", name)
	if e.Hint = nearest.Hint(name, known, "reservations are "+strings.Join(known, ", ")); len(known) == 0 {
		e.Hint = "there are none"
	}
	return e
}

// overlaps refuses two reservations on one node at a time, but for maintenance: nodes that
// are worked on are nobody's.
func (rs *reservations) overlaps(r *api.Reservation) *api.Error {
	if r.Has(api.FlagMaint) {
		return nil
	}
	for _, o := range rs.list() {
		if o.Name == r.Name || o.Has(api.FlagMaint) || !coincide(o, r) {
			continue
		}
		var both []string
		for _, n := range r.Nodes {
			if o.Holds(n) {
				both = append(both, n)
			}
		}
		if both != nil {
			return conflict("take other nodes or another time; flags=maint may overlap", "reservation %s has %s from %s to %s already",
				o.Name, hostlist.Compress(both), timeText(o.Start), timeText(o.End)).About(api.ReasonReserved, o.Name)
		}
	}
	return nil
}

// coincide reports whether two reservations go on at a time, ever.
func coincide(a, b *api.Reservation) bool {
	if a.Days() == 0 {
		a, b = b, a
	}
	if a.Days() == 0 {
		return a.Start.Before(b.End) && b.Start.Before(a.End)
	}
	// The occurrences of a that could meet one of b; of two that come again a week shows all.
	for i := range 8 {
		start, end := b.Start.AddDate(0, 0, i*b.Days()), b.End.AddDate(0, 0, i*b.Days())
		if n := int(start.Sub(a.End)/a.Every()) - 1; true {
			for k := max(0, n); k <= max(0, n)+int(end.Sub(start)/a.Every())+3; k++ {
				if a.Start.AddDate(0, 0, k*a.Days()).Before(end) && start.Before(a.End.AddDate(0, 0, k*a.Days())) {
					return true
				}
			}
		}
		if b.Days() == 0 {
			break
		}
	}
	return false
}

// inTheWay refuses a reservation that gangs on its nodes would outlast the start of.
func (rs *reservations) inTheWay(r *api.Reservation) *api.Error {
	if r.Has(api.FlagIgnoreJobs) || r.Has(api.FlagDrain) {
		return nil
	}
	var ids []int64
	var last time.Time
	unlimited := false
	for _, name := range r.Nodes {
		for _, g := range rs.nodes.byName[name].node.Res.Grants {
			if e := rs.jobs.byID[g.Job]; e != nil && e.job.Spec.Reservation == r.Name || !g.Until.IsZero() && !g.Until.After(r.Start) {
				continue
			}
			ids = append(ids, g.Job)
			unlimited = unlimited || g.Until.IsZero()
			if g.Until.After(last) {
				last = g.Until
			}
		}
	}
	ids = unique(ids)
	if len(ids) == 0 {
		return nil
	}
	names := make([]string, 0, 5)
	for _, id := range ids[:min(len(ids), 5)] {
		names = append(names, fmt.Sprint(id))
	}
	more, until := "", "until "+timeText(last)
	if len(ids) > 5 {
		more = fmt.Sprintf(" and %d more", len(ids)-5)
	}
	if unlimited {
		until = "without a limit"
	}
	who := "jobs " + strings.Join(names, ", ") + more + " are"
	if len(ids) == 1 {
		who = "job " + names[0] + " is"
	}
	return conflict("start it later, or say what becomes of them: flags=drain stops them in time, with their notice; flags=ignore_jobs "+
		"lets them run on",
		"%s on these nodes and may run %s", who, until)
}

func (rs *reservations) remove(b *reservation) {
	delete(rs.byName, b.r.Name)
	rs.dirty[b.r.Name] = nil
	rs.clock.timers.cancel(reservationTimer(b.r.Name))
}

// nextOccurrence is the first one that is not over, at the same hour of its day; nil: none.
func nextOccurrence(r *api.Reservation, now time.Time) *api.Reservation {
	if r.Days() == 0 {
		return nil
	}
	next, length := *r, r.End.Sub(r.Start)
	for n := max(0, int(now.Sub(r.End)/r.Every())-1); !next.End.After(now); n++ {
		next.Start = r.Start.In(now.Location()).AddDate(0, 0, n*r.Days())
		next.End = next.Start.Add(length)
	}
	return &next
}

// lets: a gang that asked for a reservation waits until that has begun.
func (rs *reservations) lets(j *Job) bool {
	if j.Spec.Reservation == "" {
		return true
	}
	b := rs.byName[j.Spec.Reservation]
	return b != nil && b.active && b.r.Admits(j.User, j.Spec.Account)
}

// bars reports whether a reservation keeps gangs off its nodes that are of another one, or of none: who is of
// maintenance is kept off by nothing, as in Slurm.
func (rs *reservations) bars(r *api.Reservation, own string) bool {
	if r.Name == own {
		return false
	}
	b := rs.byName[own]
	return own == "" || b == nil || !b.r.Has(api.FlagMaint)
}

// barred is why a gang that would have ended by then (zero: nobody knows) may not be
// admitted to a node, nil when it may.
func (rs *reservations) barred(j *Job, node string, until time.Time) *api.Error {
	own := j.Spec.Reservation
	if b := rs.byName[own]; own != "" && (b == nil || !b.r.Holds(node)) {
		return api.Errorf(api.CodeConflict, "node %s is not in reservation %s", node, own)
	}
	if !until.IsZero() {
		until = until.Add(rs.set.StartTimeout + max(0, j.Spec.GraceMax-graceOf(rs.set, j)))
	}
	for _, r := range rs.list() {
		if rs.bars(r, own) && r.Holds(node) && (until.IsZero() || until.After(r.Start)) {
			return api.Errorf(api.CodeConflict, "node %s is reserved: %s from %s to %s", node, r.Name, timeText(r.Start), timeText(r.End))
		}
	}
	return nil
}

// longerIntoReservation refuses a longer limit for a gang on nodes that it would then not
// have left when they are others'. A gang that is in the way already stays as it is.
func (rs *reservations) longerIntoReservation(e *entry, limit time.Duration, by time.Time) *api.Error {
	j := e.job
	if len(rs.byName) == 0 || !admitted(j) {
		return nil
	}
	as := j.Copy()
	as.Deadline = by
	until := endsBy(rs.set, as, limit, j.ReservedAt)
	for i := range j.Members {
		name := j.Members[i].Node
		g, ok := rs.nodes.byName[name].node.Res.Grant(j.key())
		if !ok || g.Until.IsZero() || !until.IsZero() && !until.After(g.Until) {
			continue
		}
		for _, r := range rs.list() {
			if rs.bars(r, j.Spec.Reservation) && r.Holds(name) && !g.Until.After(r.Start) && (until.IsZero() || until.After(r.Start)) {
				return conflict(fmt.Sprintf("at most --time=%d (minutes)", int(r.Start.Sub(j.ReservedAt)-graceOf(rs.set,
					j)-rs.set.StartTimeout)/int(time.Minute)),
					"job %d is on %s, which is reserved from %s on: %s", j.ID, name, timeText(r.Start), r.Name)
			}
		}
	}
	return nil
}

// clearing is a reservation that empties its nodes.
func (rs *reservations) clearing(h *host, j *Job, g *cluster.Grant) (by time.Time, text string) {
	for _, r := range rs.list() {
		if !r.Has(api.FlagDrain) || !rs.bars(r, j.Spec.Reservation) || !r.Holds(h.node.Name) {
			continue
		}
		// Who ends by himself before it is not in its way.
		if !g.Until.IsZero() && !g.Until.After(r.Start) || !by.IsZero() && !r.Start.Before(by) {
			continue
		}
		by, text = r.Start, fmt.Sprintf("node %s is to be empty by %s for reservation %s", h.node.Name, timeText(r.Start), r.Name)
	}
	return by, text
}

// forSched are the reservations as the scheduler sees them; not to be written to.
func (rs *reservations) forSched() []given.Reservation {
	if rs.seen == nil {
		for _, r := range rs.list() {
			rs.seen = append(rs.seen, given.Reservation{Name: r.Name, Nodes: r.Nodes, Start: r.Start, End: r.End, Every: r.Every(),
				Maint:   r.Has(api.FlagMaint),
				ClearBy: r.Start.Add(-rs.set.StartTimeout)})
		}
	}
	return rs.seen
}
