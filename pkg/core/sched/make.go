package sched

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// Epochs under which a plan books what does not exist yet. Real epochs count from 1.
const (
	epochBackfill = -1
	epochStart    = -2
)

// Make plans without a memory of earlier plans: see [Planner.Make].
func Make(now time.Time, v *View, p *order.Policy) Plan { return new(Planner).Make(now, v, p) }

// Planner makes plans, and remembers between them what does not change with the plan: classes
// of nodes, and what each ask class finds out about each class. What it decides depends on the
// view alone. It is not safe for concurrent use.
type Planner struct {
	fit  fit.Finder
	kept keptMemory
	why  whyMemory
	told int // for tests: how many gangs were told to be hopeless
}

// forget bounds what is remembered: beyond so many classes, most of them are of the past.
const forget = 20000

// Make plans the starts that the view allows: in queue order, each gang whole or not at
// all, lower ones around what is kept for the first blocked ones.
//
// Candidates of one class are looked at in turn until one of them stays. Within a plan room
// only shrinks (starts take it, backfills keep it off), so the others would stay too: the rest
// of a hundred thousand that wait costs nothing.
func (m *Planner) Make(now time.Time, v *View, p *order.Policy) Plan {
	pl := m.planner(now, v, p)
	pl.run(-1)
	return pl.plan()
}

// planner is the working state of one plan. What it is made of has owners: each knows those before it, and none that comes after.
type planner struct {
	given
	mem     *Planner
	fit     *fit.Finder
	kept    kept
	bounds  bounds
	guard   guard
	victims victims
	why     why

	cursors       order.Cursors
	starts        []Start
	visited       map[int64]bool // takers that were looked at before their turn
	behind        bool           // see [planner.isBehind]
	visitedBehind bool           // some that were visited may come yet
}

// backfill is a [Backfill] as a plan works with it.
type backfill struct {
	Backfill
	c          *order.Candidate
	grants     []fit.Grant
	away       bool // one of its nodes is
	concession concession
}

func (m *Planner) planner(now time.Time, v *View, p *order.Policy) *planner {
	if m.fit.Remembers() > forget {
		*m = Planner{kept: keptMemory{visitsAll: m.kept.visitsAll}}
	}
	f := &m.fit
	if !f.Begin(v.Nodes, p.Switches, v.Queue.Ledger().Typical(), m.kept.changed) {
		m.kept.reset(v.Nodes)
	}
	m.kept.forget(v.Backfills)
	pl := &planner{mem: m, fit: f, visited: map[int64]bool{},
		given: given{now: now, view: v, policy: p, depth: max(1, p.BackfillDepth), reservations: newReservations(v, now),
			front: map[int64]order.Turn{}}}
	g := &pl.given
	pl.kept = kept{given: g, fit: f, mem: &m.kept, ends: horizon{given: g, mem: &m.kept}, views: []*fit.NodeView{f.Clone(f.AsGiven())},
		moved: map[int64]bool{}}
	pl.bounds = bounds{given: g, kept: &pl.kept}
	pl.guard = guard{given: g, fit: f, kept: &pl.kept, bounds: &pl.bounds}
	pl.victims = victims{given: g, fit: f, kept: &pl.kept, bounds: &pl.bounds, guard: &pl.guard}
	pl.why = why{given: g, fit: f, kept: &pl.kept, bounds: &pl.bounds, guard: &pl.guard, victims: &pl.victims, mem: &m.why,
		verdicts: make(verdictList, v.Queue.Slots())}
	if g.ranksLeft() {
		pl.kept.strictView = f.Clone(f.AsGiven())
	}
	pl.kept.restore()
	pl.guard.fill()
	pl.guard.listWide()
	return pl
}

// run visits what waits, in order, up to the candidate at stop (-1: all).
func (pl *planner) run(stop int) {
	pl.cursors.Fill(pl.view.Queue)
	head, more := pl.cursors.First()
	for ; more && !pl.full(); head, more = pl.cursors.First() {
		c := head.Candidate
		if stop >= 0 && order.Compare(c, pl.view.Queue.Slice()[stop]) >= 0 {
			return
		}
		if sh := pl.hopeless(c, head.Class); sh != nil {
			pl.mem.told++
			pl.tellHopeless(c, head.Class, sh)
			pl.cursors.Drop()
			continue
		}
		pl.behind = false
		pl.reach(c)
		// A class of which one stays is done with, unless the next of it gets a backfill.
		if pl.visited[c.Job] || pl.visit(c, head.Class) || pl.kept.mayBackfill(c) && !pl.fit.ClassOfAll(head.Class, c).Barred() &&
			pl.bounds.capped(c) == nil {
			pl.cursors.Pass()
		} else {
			pl.cursors.Drop()
		}
	}
	if stop < 0 && !more {
		for len(pl.kept.later) > 0 {
			pl.reach(pl.kept.later[len(pl.kept.later)-1].c)
		}
	}
}

func (pl *planner) plan() Plan {
	out := Plan{Starts: pl.starts, Stops: pl.victims.stops, Next: pl.next, verdicts: pl.why.verdicts, names: pl.view.Names}
	for _, b := range pl.kept.list {
		for _, v := range b.Victims {
			if !v.Notified {
				pl.by(&out.Next, v.At)
			}
		}
		out.Backfills = append(out.Backfills, b.Backfill)
	}
	// A plan that was cut short leaves the backfills that it did not come to where they are:
	// made anew in the next one they could stand elsewhere.
	for _, b := range pl.kept.later {
		out.Backfills = append(out.Backfills, b.Backfill)
	}
	return out
}

// by makes t no later than at, which is in the future.
func (gv *given) by(t *time.Time, at time.Time) {
	if at.After(gv.now) && (t.IsZero() || at.Before(*t)) {
		*t = at
	}
}

// never is later than any end.
var never = time.Unix(math.MaxInt32*100, 0)

// beyondLimits is later than whatever has a time limit ends, and sooner than all else does.
var beyondLimits = never.Add(-1)

// end is when a gang that starts now has ended at the latest.
func (gv *given) end(c *order.Candidate) time.Time {
	end := never
	if c.TimeLimit > 0 {
		end = gv.now.Add(c.TimeLimit + c.Stop)
	}
	if by := c.Deadline.Add(c.Stop); !c.Deadline.IsZero() && by.Before(end) {
		end = by
	}
	return end
}

// leastEnd is end with its time limit cut as far as it allows.
func (gv *given) leastEnd(c *order.Candidate) time.Time {
	end := gv.end(c)
	if by := gv.now.Add(c.TimeMin + c.Stop); c.TimeMin > 0 && by.Before(end) {
		end = by
	}
	return end
}

// visit starts a gang, or notes why it and all others of its class stay.
func (pl *planner) visit(c *order.Candidate, cl *order.JobClass) bool {
	sh := pl.fit.ClassOfAll(cl, c)
	if v := pl.bounds.capped(c); v != nil {
		pl.bounds.keepPools(c, v)
		v.first = c.Job
		pl.why.verdicts.set(cl, cmp.Or(pl.why.verdicts.of(cl), v))
		return false
	}
	off := pl.kept.displace(c)
	defer func() { pl.kept.keepAll(off) }()
	passed := pl.kept.stepAside(c, sh)
	if pl.startNow(c, sh, len(passed) > 0) {
		pl.kept.keepAll(passed)
		return true
	}
	pl.why.note(c, cl, sh)
	for _, b := range slices.Backward(passed) {
		pl.kept.add(b)
	}
	if pl.why.verdicts.of(cl).nearer {
		// Kept for it, what is free now would stand idle until its wait is over.
		return false
	}
	if sh.Bad == nil && !pl.victims.preempt(c, sh) && pl.kept.mayBackfill(c) {
		pl.kept.make(c, sh)
	}
	return false
}

// startNow starts a gang where it fits with the backfills that are made, and reports whether it
// does. Beside fewer backfills it may fit where others of its ask class did not: what is known of these
// is not asked then.
func (pl *planner) startNow(c *order.Candidate, sh *fit.AskClass, fewer bool) bool {
	end, least := pl.end(c), pl.leastEnd(c)
	stays := sh.Bad != nil || !fewer && !sh.Blocked.IsZero() && !least.Before(sh.Blocked)
	if !stays && (pl.start(c, sh, pl.kept.viewFor(c, end), end) || pl.startCut(c, sh, least, end)) {
		return true
	}
	// One that waits for fewer switches tells nothing of its like whose wait is over.
	waits := pl.switchLimit(c) > 0
	if !waits && (sh.Blocked.IsZero() || least.Before(sh.Blocked)) {
		sh.Blocked = least
	}
	if pl.kept.yields(c) && sh.Bad == nil && !sh.BlockedStrict {
		if pl.start(c, sh, pl.openTo(c, pl.kept.strictView, end), end) {
			return true
		}
		sh.BlockedStrict = pl.reservations == nil && !waits // with reservations it depends on when the gang ends
	}
	return false
}

// mayBackfill reports whether one more gang may be given a backfill. Moves do not count: they end
// as soon as their victims have. Nor do backfills of longer gangs that it may pass, or these would
// keep all there are from the gangs ahead of them; but no more than twice as many are made.
func (kp *kept) mayBackfill(c *order.Candidate) bool {
	at, n, passed := kp.front[c.Job], 0, 0
	for i := range kp.list {
		b := &kp.list[i]
		switch its := kp.front[b.Job]; {
		case b.isMove() || its < at || at == order.NoTurn && its != order.NoTurn:
		case kp.passes(c, b):
			passed++
		default:
			n++
		}
	}
	// Who waited too long for any has one backfill beside the others', and who did for its own time
	// limit one when there is no such.
	return at == order.NoTurn && n < kp.depth && n+passed < 2*kp.depth || n+passed == 0
}

// viewFor is the nodes as a gang sees them that starts now and has ended by then.
func (kp *kept) viewFor(c *order.Candidate, end time.Time) *fit.NodeView {
	if kp.reservations != nil && ownOf(c) != "" {
		return kp.openTo(c, kp.ownView(c, end, -1), end)
	}
	return kp.openTo(c, kp.viewWith(kp.inWay(end)), end)
}

// inWay is how many backfills, the first ones, a gang would be in the way of that ends then.
func (kp *kept) inWay(end time.Time) int {
	return sort.Search(len(kp.list), func(i int) bool { return !kp.list[i].inWayOf(end) })
}

// inWayOf reports whether a gang that ends then would still be there when the taker is
// to start.
func (b *backfill) inWayOf(end time.Time) bool { return b.from().Before(end) }

// from is when the places are to be free: zero, before everything, when they are kept for the taker alone. Where nobody knows
// it is later than any time limit: see docs/decisions/0205.
func (b *backfill) from() time.Time {
	switch {
	case b.isMove() || b.away:
		return time.Time{}
	case b.At.IsZero():
		return beyondLimits
	}
	return b.At
}

// isOpen reports whether nobody knows when the places are free, and not for a node that is away for a while.
func (b *backfill) isOpen() bool { return b.from().Equal(beyondLimits) }

// isMove reports whether gangs are preempted for it, or were: until its taker starts.
func (b *backfill) isMove() bool { return !b.Until.IsZero() }
