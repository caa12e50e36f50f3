package sched

import (
	"time"

	"gangd/pkg/core/sched/bounds"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/guard"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/victims"
	"gangd/pkg/core/sched/why"
)

// Make plans without a memory of earlier plans: see [Planner.Make].
func Make(now time.Time, v *given.View, p *order.Policy) Plan { return new(Planner).Make(now, v, p) }

// Planner makes plans, and remembers between them what does not change with the plan: classes
// of nodes, and what each ask class finds out about each class. What it decides depends on the
// view alone. It is not safe for concurrent use.
type Planner struct {
	fit  fit.Finder
	kept kept.Memory
	why  why.Memory
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
func (m *Planner) Make(now time.Time, v *given.View, p *order.Policy) Plan {
	pl := m.planner(now, v, p)
	pl.run(-1)
	return pl.plan()
}

// planner is the working state of one plan. What it is made of has owners: each knows those before it, and none that comes after.
type planner struct {
	given.Facts
	mem     *Planner
	fit     *fit.Finder
	kept    kept.Backfills
	bounds  bounds.Bounds
	guard   guard.Guard
	victims victims.Victims
	why     why.Why

	cursors       order.Cursors
	starts        []Start
	visited       map[int64]bool // takers that were looked at before their turn
	behind        bool           // see [planner.isBehind]
	visitedBehind bool           // some that were visited may come yet
}

func (m *Planner) planner(now time.Time, v *given.View, p *order.Policy) *planner {
	if m.fit.Remembers() > forget {
		*m = Planner{kept: m.kept.Anew()}
	}
	f := &m.fit
	if !f.Begin(v.Nodes, p.Switches, v.Queue.Ledger().Typical(), m.kept.Changed) {
		m.kept.Reset(v.Nodes)
	}
	m.kept.Forget(v.Backfills)
	pl := &planner{mem: m, fit: f, visited: map[int64]bool{},
		Facts: given.Facts{Now: now, View: v, Policy: p, Depth: max(1, p.BackfillDepth), Reservations: given.NewWindows(v, now),
			Front: map[int64]order.Turn{}}}
	g := &pl.Facts
	pl.kept = kept.New(g, f, &m.kept)
	pl.kept.Restore()
	pl.bounds = bounds.New(g, &pl.kept)
	pl.guard = guard.New(g, f, &pl.kept, &pl.bounds)
	pl.victims = victims.New(g, f, &pl.kept, &pl.bounds, &pl.guard)
	pl.why = why.New(g, f, &pl.kept, &pl.bounds, &pl.guard, &pl.victims, &m.why)
	return pl
}

// run visits what waits, in order, up to the candidate at stop (-1: all).
func (pl *planner) run(stop int) {
	pl.cursors.Fill(pl.View.Queue)
	head, more := pl.cursors.First()
	for ; more && !pl.full(); head, more = pl.cursors.First() {
		c := head.Candidate
		if stop >= 0 && order.Compare(c, pl.View.Queue.Slice()[stop]) >= 0 {
			return
		}
		if sh := pl.hopeless(c, head.Class); sh != nil {
			pl.mem.told++
			pl.why.Roomless(c, head.Class, sh)
			pl.cursors.Drop()
			continue
		}
		pl.behind = false
		pl.reach(c)
		// A class of which one stays is done with, unless the next of it gets a backfill.
		if pl.visited[c.Job] || pl.visit(c, head.Class) || pl.kept.MayBackfill(c) && !pl.fit.ClassOfAll(head.Class, c).Barred() &&
			pl.bounds.Capped(c) == nil {
			pl.cursors.Pass()
		} else {
			pl.cursors.Drop()
		}
	}
	if stop < 0 && !more {
		for len(pl.kept.Later) > 0 {
			pl.reach(pl.kept.Later[len(pl.kept.Later)-1].Taker)
		}
	}
}

func (pl *planner) plan() Plan {
	out := Plan{Starts: pl.starts, Stops: pl.victims.Stops, Next: pl.Next, verdicts: pl.why.Verdicts(), names: pl.View.Names}
	for _, b := range pl.kept.List {
		for _, v := range b.Victims {
			if !v.Notified {
				pl.By(&out.Next, v.At)
			}
		}
		out.Backfills = append(out.Backfills, b.Backfill)
	}
	// A plan that was cut short leaves the backfills that it did not come to where they are:
	// made anew in the next one they could stand elsewhere.
	for _, b := range pl.kept.Later {
		out.Backfills = append(out.Backfills, b.Backfill)
	}
	return out
}
