package sched

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// Epochs under which a plan books what does not exist yet. Real epochs count from 1.
const (
	epochBackfill = -1
	epochStart    = -2
)

// Make plans without a memory of earlier plans: see [Planner.Make].
func Make(now time.Time, v *View, p *Policy) Plan { return new(Planner).Make(now, v, p) }

// Planner makes plans, and remembers between them what does not change with the plan: classes
// of nodes, and what each ask class finds out about each class. What it decides depends on the
// view alone. It is not safe for concurrent use.
type Planner struct {
	classes         nodeClasses
	base            *nodeView       // the nodes of the last view
	seen            []*cluster.Node // as they came
	ends            timeline        // of the last view
	pool            pool
	tree            *tree // the switches over the nodes of the last view
	rooms           rooms
	cardBound       cardBound
	backfillGrants  map[int64]*grantsMemo
	emptiedClasses  []*nodeClass // of each node with nothing on it; nil: not asked for yet
	groups          choiceGroups
	backfillClasses backfillClasses
	room            cluster.Room // of one node at a time
	packing         cluster.Packing
	askClasses      map[string]*askClass
	askClassOf      []jobAskClass // by slot
	planNumber      int           // counts the plans
	// capacity counts the changes of what nodes have, whoever holds it.
	capacity int
	switches []api.Switch // of the site
	// For tests: all gangs are visited, and all ends; how many gangs were told to be hopeless.
	visitsAll bool
	told      int
}

// forget bounds what is remembered: beyond so many classes, most of them are of the past.
const forget = 20000

// Make plans the starts that the view allows: in queue order, each gang whole or not at
// all, lower ones around what is kept for the first blocked ones.
//
// Candidates of one class are looked at in turn until one of them stays. Within a plan room
// only shrinks (starts take it, backfills keep it off), so the others would stay too: the rest
// of a hundred thousand that wait costs nothing.
func (m *Planner) Make(now time.Time, v *View, p *Policy) Plan {
	pl := m.planner(now, v, p)
	pl.run(-1)
	return pl.plan()
}

// jobAskClass is the ask class of all candidates of a job class, which is cheaper to know than to look
// up by its text.
type jobAskClass struct {
	class    *JobClass
	askClass *askClass
}

// planner is the working state of one plan.
type planner struct {
	mem           *Planner
	now           time.Time
	view          *View
	policy        *Policy
	backfillDepth int
	// views[i] has the first i of backfills on it, nil: nobody asked for it yet; views[0] is the
	// nodes with the starts planned so far.
	views          []*nodeView
	strictView     *nodeView  // with what keeps off even those that would make room; nil: none would
	backfills      []backfill // by the time that they are free at
	laterBackfills []backfill // backfills of the plan before whose tier is not reached yet
	cursors        order.Cursors
	choices        []nodeChoice
	tally          tally
	// others are ends that the timeline does not have as they are, made when first asked
	// for, with as many starts as othersAt says; started is what these take.
	others            []ending
	othersAt          int
	started           []nodeGrant
	touchedNodes      []int // nodes, of one question
	nodeBuffer        []int32
	stopBy            map[int64]time.Time
	starts            []Start
	explainedView     *nodeView          // of the gang that is explained
	explainedBackfill *backfill          // of that gang
	candidates        []*victimCandidate // who may be preempted, made when first asked for
	moved             map[int64]bool     // victims of moves
	moveSearches      int                // moves looked for
	guarded           []*Candidate       // who waited too long and is let to the front, longest first
	front             map[int64]Turn     // these
	waitingWide       []*Candidate       // see wide.go
	patienceMemo      time.Duration      // how long that is; 0: not worked out yet
	remainingOf       *Candidate         // of whom remaining was worked out last
	remaining         time.Duration
	cardCount         int // cards of the view; 0: not counted yet
	stops             []Stop
	next              time.Time
	holdings          *holdings
	packer            packer
	reservations      *reservations  // reservations; nil: none
	visited           map[int64]bool // takers that were looked at before their turn
	verdicts          verdictList
	takers            []int64 // who holds backfills
	behind            bool    // see [planner.isBehind]
	visitedBehind     bool    // some that were visited may come yet
	most              most    // that a node has free
}

// backfill is a [Backfill] as a plan works with it.
type backfill struct {
	Backfill
	c          *Candidate
	grants     []nodeGrant
	away       bool // one of its nodes is
	concession concession
}

// askClass is what is known about all asks that are equal.
type askClass struct {
	need        *cluster.Need
	planNumber  int
	lastVerdict *verdict // of the last plan that had one. Verdicts are not changed, so that one which says the same is used again
	emptyAt     int      // the capacity for which empty holds
	rank        amount   // of one rank
	empty       bool     // it fits on the nodes if these were empty
	plain       bool     // it fits on a node that has as much free as its ranks need, and nowhere else
	inPlan
	// Ten thousand asks are looked at in a plan, and what is above of them.

	bad          error       // the ask can't be read
	alternatives []*askClass // those of its need, as ask classes; nil: it has none
	preferred    []*askClass
	named        bool    // the ask names nodes: classes do not tell them apart
	ranks        []int16 // by class: what fits on a node of it, less one; 0 is not known yet
	frees        []int32 // by class: what is free on it for a backfill, less one; 0 is not known yet
	wastes       map[wasteKey]cluster.Waste
	mix          int // of the wastes
}

// inPlan is what an ask class was found to be in the plan of one turn.
type inPlan struct {
	verdict       *verdict
	full          bool      // it does not fit with no backfills on the nodes either
	counted       bool      // that was found by a look of which the tally is still there, for the verdict
	blockedStrict bool      // nor where only those keep off whom nobody may delay
	noBackfill    bool      // it is given none
	blocked       time.Time // what runs until then or longer does not fit; zero: not known
}

type wasteKey struct{ class, ranks int }

func (m *Planner) planner(now time.Time, v *View, p *Policy) *planner {
	if m.askClasses == nil || len(m.classes.list) > forget {
		*m = Planner{askClasses: map[string]*askClass{}, visitsAll: m.visitsAll}
	}
	m.planNumber++
	m.pool.reset()
	m.look(v.Nodes)
	m.switches = p.Switches
	m.keepGrants(v.Backfills)
	pl := &planner{mem: m, now: now, view: v, policy: p, backfillDepth: max(1, p.BackfillDepth), views: []*nodeView{m.pool.clone(m.base)},
		packer: packer{v.Queue.Ledger().Typical(), &m.packing}, visited: map[int64]bool{}, moved: map[int64]bool{}, front: map[int64]Turn{}, verdicts: make(verdictList, v.Queue.Slots())}
	pl.reservations = newReservations(v, now)
	if pl.ranksLeft() {
		pl.strictView = m.pool.clone(m.base)
	}
	pl.restoreBackfills()
	pl.guard()
	pl.listWide()
	return pl
}

// look takes in what changed on the nodes. They are immutable, so that what is the same
// pointer is the same state.
func (m *Planner) look(nodes []*cluster.Node) {
	if m.base == nil || m.base.size != len(nodes) {
		m.base = newNodeView(&m.classes, nodes)
		m.seen = slices.Clone(nodes)
		m.ends.reset(nodes)
		m.backfillGrants = map[int64]*grantsMemo{}
		m.backfillClasses = backfillClasses{}
		m.emptiedClasses = make([]*nodeClass, len(nodes))
		m.capacity++
		return
	}
	for at, n := range nodes {
		if m.seen[at] != n {
			if !sameCapacity(m.seen[at], n) {
				m.capacity++
				m.emptiedClasses[at] = nil
			}
			if n.Name != m.seen[at].Name {
				clear(m.backfillGrants) // they go by index
			}
			m.ends.node(at, m.seen[at], n)
			m.seen[at] = n
			m.base.set(at, n)
			m.backfillClasses.changed(at)
		}
	}
	m.base.tidy()
}

func sameCapacity(a, b *cluster.Node) bool {
	return a.Ready == b.Ready && a.Has == b.Has && a.Each == b.Each && a.Shape == b.Shape && len(a.Cards) == len(b.Cards) &&
		(len(a.Cards) == 0 || &a.Cards[0] == &b.Cards[0]) && slices.Equal(a.Partitions, b.Partitions) && slices.Equal(a.Features, b.Features)
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
		if pl.visited[c.Job] || pl.visit(c, head.Class) || pl.mayBackfill(c) && !pl.askClassOf(head.Class, c).barred() && pl.capped(c) == nil {
			pl.cursors.Pass()
		} else {
			pl.cursors.Drop()
		}
	}
	if stop < 0 && !more {
		for len(pl.laterBackfills) > 0 {
			pl.reach(pl.laterBackfills[len(pl.laterBackfills)-1].c)
		}
	}
}

func (pl *planner) plan() Plan {
	out := Plan{Starts: pl.starts, Stops: pl.stops, Next: pl.next, verdicts: pl.verdicts, names: pl.view.Names}
	for _, b := range pl.backfills {
		for _, v := range b.Victims {
			if !v.Notified {
				pl.by(&out.Next, v.At)
			}
		}
		out.Backfills = append(out.Backfills, b.Backfill)
	}
	// A plan that was cut short leaves the backfills that it did not come to where they are:
	// made anew in the next one they could stand elsewhere.
	for _, b := range pl.laterBackfills {
		out.Backfills = append(out.Backfills, b.Backfill)
	}
	return out
}

// by makes t no later than at, which is in the future.
func (pl *planner) by(t *time.Time, at time.Time) {
	if at.After(pl.now) && (t.IsZero() || at.Before(*t)) {
		*t = at
	}
}

// never is later than any end.
var never = time.Unix(math.MaxInt32*100, 0)

// beyondLimits is later than whatever has a time limit ends, and sooner than all else does.
var beyondLimits = never.Add(-1)

// end is when a gang that starts now has ended at the latest.
func (pl *planner) end(c *Candidate) time.Time {
	end := never
	if c.TimeLimit > 0 {
		end = pl.now.Add(c.TimeLimit + c.Stop)
	}
	if by := c.Deadline.Add(c.Stop); !c.Deadline.IsZero() && by.Before(end) {
		end = by
	}
	return end
}

// leastEnd is end with its time limit cut as far as it allows.
func (pl *planner) leastEnd(c *Candidate) time.Time {
	end := pl.end(c)
	if by := pl.now.Add(c.TimeMin + c.Stop); c.TimeMin > 0 && by.Before(end) {
		end = by
	}
	return end
}

// visit starts a gang, or notes why it and all others of its class stay.
func (pl *planner) visit(c *Candidate, cl *JobClass) bool {
	sh := pl.askClassOf(cl, c)
	if v := pl.capped(c); v != nil {
		pl.keepPools(c, v)
		v.first = c.Job
		pl.verdicts.set(cl, cmp.Or(pl.verdicts.of(cl), v))
		return false
	}
	off := pl.displaceBackfills(c)
	defer func() { pl.keepBackfills(off) }()
	passed := pl.stepAside(c, sh)
	if pl.startNow(c, sh, len(passed) > 0) {
		pl.keepBackfills(passed)
		return true
	}
	pl.note(c, cl, sh)
	for _, b := range slices.Backward(passed) {
		pl.addBackfill(b)
	}
	if pl.verdicts.of(cl).nearer {
		// Kept for it, what is free now would stand idle until its wait is over.
		return false
	}
	if sh.bad == nil && !pl.preempt(c, sh) && pl.mayBackfill(c) {
		pl.makeBackfill(c, sh)
	}
	return false
}

// startNow starts a gang where it fits with the backfills that are made, and reports whether it
// does. Beside fewer backfills it may fit where others of its ask class did not: what is known of these
// is not asked then.
func (pl *planner) startNow(c *Candidate, sh *askClass, fewer bool) bool {
	end, least := pl.end(c), pl.leastEnd(c)
	stays := sh.bad != nil || !fewer && !sh.blocked.IsZero() && !least.Before(sh.blocked)
	if !stays && (pl.start(c, sh, pl.viewFor(c, end), end) || pl.startCut(c, sh, least, end)) {
		return true
	}
	// One that waits for fewer switches tells nothing of its like whose wait is over.
	waits := pl.switchLimit(c) > 0
	if !waits && (sh.blocked.IsZero() || least.Before(sh.blocked)) {
		sh.blocked = least
	}
	if pl.yields(c) && sh.bad == nil && !sh.blockedStrict {
		if pl.start(c, sh, pl.openTo(c, pl.strictView, end), end) {
			return true
		}
		sh.blockedStrict = pl.reservations == nil && !waits // with reservations it depends on when the gang ends
	}
	return false
}

func (pl *planner) askClass(ask *cluster.Ask) *askClass {
	sh := pl.mem.askClasses[ask.Key]
	if sh == nil {
		sh = &askClass{wastes: map[wasteKey]cluster.Waste{}}
		sh.need, sh.bad = cluster.NewNeed(ask)
		sh.named = len(ask.Spec.NodeList)+len(ask.Spec.Exclude) > 0
		if sh.bad == nil && sh.need.Alternatives != nil {
			sh.alternatives, sh.preferred = askClassesOf(sh.need.Alternatives, sh.named), askClassesOf(sh.need.Preferred, sh.named)
		}
		if d := sh.need; sh.bad == nil && !d.Packed() && sh.alternatives == nil {
			sh.plain, sh.rank = true, amount{d.CardsFor(1), d.One()}
		}
		pl.mem.askClasses[ask.Key] = sh
	}
	pl.begin(sh)
	return sh
}

// askClassOf is the ask class of the candidates of a job class, of which c is one.
func (pl *planner) askClassOf(cl *JobClass, c *Candidate) *askClass {
	pl.mem.askClassOf = reach(pl.mem.askClassOf, cl.Slot())
	k := &pl.mem.askClassOf[cl.Slot()]
	if k.class != cl {
		k.class, k.askClass = cl, pl.askClass(c.Ask)
	}
	pl.begin(k.askClass)
	return k.askClass
}

// begin forgets what an ask class was found to be in an earlier plan.
func (pl *planner) begin(sh *askClass) {
	if sh.planNumber != pl.mem.planNumber {
		sh.planNumber, sh.inPlan = pl.mem.planNumber, inPlan{}
	}
}

// mayBackfill reports whether one more gang may be given a backfill. Moves do not count: they end
// as soon as their victims have. Nor do backfills of longer gangs that it may pass, or these would
// keep all there are from the gangs ahead of them; but no more than twice as many are made.
func (pl *planner) mayBackfill(c *Candidate) bool {
	at, n, passed := pl.front[c.Job], 0, 0
	for i := range pl.backfills {
		b := &pl.backfills[i]
		switch its := pl.front[b.Job]; {
		case b.isMove() || its < at || at == NoTurn && its != NoTurn:
		case pl.passes(c, b):
			passed++
		default:
			n++
		}
	}
	// Who waited too long for any has one backfill beside the others', and who did for its own time
	// limit one when there is no such.
	return at == NoTurn && n < pl.backfillDepth && n+passed < 2*pl.backfillDepth || n+passed == 0
}

// barred: nothing of this ask class will start or be given a backfill in this plan.
func (sh *askClass) barred() bool { return sh.bad != nil || sh.noBackfill }

// viewFor is the nodes as a gang sees them that starts now and has ended by then.
func (pl *planner) viewFor(c *Candidate, end time.Time) *nodeView {
	if pl.reservations != nil && ownOf(c) != "" {
		return pl.openTo(c, pl.ownView(c, end, -1), end)
	}
	return pl.openTo(c, pl.viewWith(pl.inWay(end)), end)
}

// inWay is how many backfills, the first ones, a gang would be in the way of that ends then.
func (pl *planner) inWay(end time.Time) int {
	return sort.Search(len(pl.backfills), func(i int) bool { return !pl.backfills[i].inWayOf(end) })
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
