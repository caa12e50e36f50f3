package sched

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"gangd/pkg/cluster"
)

// Epochs under which a plan books what does not exist yet. Real epochs count from 1.
const (
	epochClaim = -1
	epochStart = -2
)

// Make plans without a memory of earlier plans: see [Planner.Make].
func Make(now time.Time, v *View, p *Policy) Plan { return new(Planner).Make(now, v, p) }

// Planner makes plans, and remembers between them what does not change with the plan: kinds
// of nodes, and what each shape finds out about each kind. What it decides depends on the
// view alone. It is not safe for concurrent use.
type Planner struct {
	kinds  kinds
	base   *level          // the nodes of the last view
	seen   []*cluster.Node // as they came
	ends   timeline        // of the last view
	pool   pool
	tree   *tree // the switches over the nodes of the last view
	rooms  rooms
	claims map[int64]*grantsKept
	empty  []*kind // of each node with nothing on it; nil: not asked for yet
	groups groups
	pairs  pairs
	room   cluster.Room // of one node at a time
	shapes map[string]*shape
	of     []classShape // by slot
	turn   int          // counts the plans
	// capacity counts the changes of what nodes have, whoever holds it.
	capacity int
}

// forget bounds what is remembered: beyond so many kinds, most of them are of the past.
const forget = 20000

// Make plans the starts that the view allows: in queue order, each gang whole or not at
// all, lower ones around what the first blocked ones claim.
//
// Candidates of one class are looked at in turn until one of them stays. Within a plan room
// only shrinks (starts take it, claims keep it off), so the others would stay too: the rest
// of a hundred thousand that wait costs nothing.
func (m *Planner) Make(now time.Time, v *View, p *Policy) Plan {
	pl := m.planner(now, v, p)
	pl.run(-1)
	return pl.plan()
}

// classShape is the shape of all candidates of a class, which is cheaper to know than to look
// up by its text.
type classShape struct {
	class *Class
	shape *shape
}

// planner is the working state of one plan.
type planner struct {
	mem    *Planner
	now    time.Time
	view   *View
	policy *Policy
	limit  int // claims
	// levels[i] has the first i of booked on it, nil: nobody asked for it yet; levels[0] is the
	// nodes with the starts planned so far.
	levels  []*level
	hard    *level    // with what keeps off even those that would make room; nil: none would
	booked  []booking // by the time that they are free at
	waiting []booking // claims of the plan before whose tier is not reached yet
	heads   heads
	spots   []spot
	tally   tally
	// others are ends that the timeline does not have as they are, made when first asked
	// for, with as many starts as othersAt says; started is what these take.
	others   []ending
	othersAt int
	started  []nodeGrant
	touched  []int // nodes, of one question
	some     []int32
	stopBy   map[int64]time.Time
	starts   []Start
	sees     *level             // of the gang that is explained
	own      *booking           // its claim
	prey     []*prey            // who may be preempted, made when first asked for
	moved    map[int64]bool     // victims of moves
	tries    int                // moves looked for
	guarded  []*Candidate       // who waited too long and is let to the front, longest first
	front    map[int64]standing // these
	patient  time.Duration      // how long that is; 0: not worked out yet
	asked    *Candidate         // of whom left was worked out last
	left     time.Duration
	all      int // cards of the view; 0: not counted yet
	stops    []Stop
	next     time.Time
	use      *held
	mix      *mix
	windows  *windows       // reservations; nil: none
	visited  map[int64]bool // claimants that were looked at before their turn
	why      whys
	claimed  []int64 // those of claimants
}

// booking is a claim as it is kept off the nodes.
type booking struct {
	Claim
	c      *Candidate
	grants []nodeGrant
	away   bool // one of its nodes is
	way    way
}

// shape is what is known about all asks that are equal.
type shape struct {
	need   *cluster.Need
	bad    error    // the ask can't be read
	ways   []*shape // those of its need, as shapes; nil: it has none
	soft   []*shape
	named  bool    // the ask names nodes: kinds do not tell them apart
	ranks  []int16 // by kind: what fits on a node of it, less one; 0 is not known yet
	frees  []int32 // by kind: what is free on it for a claim, less one; 0 is not known yet
	wastes map[wasteKey]cluster.Waste
	mix    int // of the wastes
	// Of the plan of that turn:
	turn        int
	blocked     time.Time // what runs until then or longer does not fit; zero: not known
	hard        bool      // nor where only those keep off whom nobody may delay
	unclaimable bool
	full        bool // it does not fit with no claims on the nodes either
	why         *verdict
	// said is the verdict of the last plan that had one. Verdicts are not changed, so that
	// one which says the same is used again.
	said *verdict
	// Whether it fits on the nodes if these were empty, and for which capacity that holds.
	empty   bool
	emptyAt int
}

type wasteKey struct{ kind, ranks int }

func (m *Planner) planner(now time.Time, v *View, p *Policy) *planner {
	if m.shapes == nil || len(m.kinds.list) > forget {
		*m = Planner{shapes: map[string]*shape{}}
	}
	m.turn++
	m.pool.reset()
	m.look(v.Nodes)
	m.keepGrants(v.Claims)
	pl := &planner{mem: m, now: now, view: v, policy: p, limit: max(1, p.BackfillDepth), levels: []*level{m.pool.clone(m.base)},
		mix: v.Queue.ledger.typical(), visited: map[int64]bool{}, moved: map[int64]bool{}, front: map[int64]standing{}, why: make(whys, v.Queue.slots)}
	pl.windows = newWindows(v, now)
	if pl.ranksLeft() {
		pl.hard = m.pool.clone(m.base)
	}
	pl.keepClaims()
	pl.guard()
	return pl
}

// look takes in what changed on the nodes. They are immutable, so that what is the same
// pointer is the same state.
func (m *Planner) look(nodes []*cluster.Node) {
	if m.base == nil || m.base.size != len(nodes) {
		m.base = newLevel(&m.kinds, nodes)
		m.seen = slices.Clone(nodes)
		m.ends.reset(nodes)
		m.claims = map[int64]*grantsKept{}
		m.pairs = pairs{}
		m.empty = make([]*kind, len(nodes))
		m.capacity++
		return
	}
	for at, n := range nodes {
		if m.seen[at] != n {
			if !sameCapacity(m.seen[at], n) {
				m.capacity++
				m.empty[at] = nil
			}
			if n.Name != m.seen[at].Name {
				clear(m.claims) // they go by index
			}
			m.ends.node(at, m.seen[at], n)
			m.seen[at] = n
			m.base.set(at, n)
			m.pairs.changed(at)
		}
	}
	m.base.tidy()
}

func sameCapacity(a, b *cluster.Node) bool {
	return a.Ready == b.Ready && a.CPUs == b.CPUs && a.MemoryBytes == b.MemoryBytes && len(a.Cards) == len(b.Cards) &&
		(len(a.Cards) == 0 || &a.Cards[0] == &b.Cards[0]) && slices.Equal(a.Partitions, b.Partitions) && slices.Equal(a.Features, b.Features)
}

// run visits what waits, in order, up to the candidate at stop (-1: all).
func (pl *planner) run(stop int) {
	pl.heads.fill(pl.view.Queue)
	head, more := pl.heads.first()
	for ; more && !pl.full(); head, more = pl.heads.first() {
		c := head.c
		if stop >= 0 && compare(c, pl.view.Queue.order[stop]) >= 0 {
			return
		}
		pl.reach(c)
		// A class of which one stays is done with, unless the next of it gets a claim.
		if pl.visited[c.Job] || pl.visit(c, head.class) || pl.mayClaim(c) && !pl.shapeOf(head.class, c).barred() && pl.capped(c) == nil {
			pl.heads.pass()
		} else {
			pl.heads.drop()
		}
	}
	if stop < 0 && !more {
		for len(pl.waiting) > 0 {
			pl.reach(pl.waiting[len(pl.waiting)-1].c)
		}
	}
}

func (pl *planner) plan() Plan {
	out := Plan{Starts: pl.starts, Stops: pl.stops, Next: pl.next, why: pl.why}
	for _, b := range pl.booked {
		for _, v := range b.Victims {
			if !v.Told {
				pl.by(&out.Next, v.At)
			}
		}
		out.Claims = append(out.Claims, b.Claim)
	}
	// A plan that was cut short leaves the claims that it did not come to where they are:
	// made anew in the next one they could stand elsewhere.
	for _, b := range pl.waiting {
		out.Claims = append(out.Claims, b.Claim)
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
func (pl *planner) visit(c *Candidate, cl *Class) bool {
	sh := pl.shapeOf(cl, c)
	if v := pl.capped(c); v != nil {
		v.first = c.Job
		pl.why.set(cl, cmp.Or(pl.why.of(cl), v))
		return false
	}
	off := pl.displace(c)
	defer func() { pl.keepAll(off) }()
	passed := pl.stepAside(c, sh)
	if pl.startNow(c, sh, len(passed) > 0) {
		pl.keepAll(passed)
		return true
	}
	pl.note(c, cl, sh)
	for _, b := range slices.Backward(passed) {
		pl.book(b)
	}
	if pl.why.of(cl).nearer {
		// Kept for it, what is free now would stand idle until its wait is over.
		return false
	}
	if sh.bad == nil && !pl.preempt(c, sh) && pl.mayClaim(c) {
		pl.claim(c, sh)
	}
	return false
}

// startNow starts a gang where it fits with the claims that are booked, and reports whether it
// does. Beside fewer claims it may fit where others of its shape did not: what is known of these
// is not asked then.
func (pl *planner) startNow(c *Candidate, sh *shape, fewer bool) bool {
	end, least := pl.end(c), pl.leastEnd(c)
	stays := sh.bad != nil || !fewer && !sh.blocked.IsZero() && !least.Before(sh.blocked)
	if !stays && (pl.start(c, sh, pl.levelFor(c, end), end) || pl.startCut(c, sh, least, end)) {
		return true
	}
	if !stays && (sh.blocked.IsZero() || least.Before(sh.blocked)) {
		sh.blocked = least
	}
	if pl.yields(c) && sh.bad == nil && !sh.hard {
		if pl.start(c, sh, pl.seen(c, pl.hard, end), end) {
			return true
		}
		sh.hard = pl.windows == nil // else it depends on when the gang ends
	}
	return false
}

func (pl *planner) shape(ask *cluster.Ask) *shape {
	sh := pl.mem.shapes[ask.Shape]
	if sh == nil {
		sh = &shape{wastes: map[wasteKey]cluster.Waste{}}
		sh.need, sh.bad = cluster.NewNeed(ask)
		sh.named = len(ask.Spec.NodeList)+len(ask.Spec.Exclude) > 0
		if sh.bad == nil && sh.need.Ways != nil {
			sh.ways, sh.soft = waysOf(sh.need.Ways, sh.named), waysOf(sh.need.Soft, sh.named)
		}
		pl.mem.shapes[ask.Shape] = sh
	}
	pl.begin(sh)
	return sh
}

// shapeOf is the shape of the candidates of a class, of which c is one.
func (pl *planner) shapeOf(cl *Class, c *Candidate) *shape {
	pl.mem.of = reach(pl.mem.of, cl.slot)
	k := &pl.mem.of[cl.slot]
	if k.class != cl {
		k.class, k.shape = cl, pl.shape(c.Ask)
	}
	pl.begin(k.shape)
	return k.shape
}

// begin forgets what a shape was found to be in an earlier plan.
func (pl *planner) begin(sh *shape) {
	if sh.turn != pl.mem.turn {
		sh.turn, sh.blocked, sh.hard, sh.unclaimable, sh.full, sh.why = pl.mem.turn, time.Time{}, false, false, false, nil
	}
}

// mayClaim reports whether one more gang may be given a claim. Moves do not count: they end
// as soon as their victims have. Nor do claims of longer gangs that it may pass, or these would
// keep all there are from the gangs ahead of them; but no more than twice as many are made.
func (pl *planner) mayClaim(c *Candidate) bool {
	at, n, passed := pl.front[c.Job], 0, 0
	for i := range pl.booked {
		b := &pl.booked[i]
		switch its := pl.front[b.Job]; {
		case b.isMove() || its < at || at == atItsPlace && its != atItsPlace:
		case pl.passes(c, b):
			passed++
		default:
			n++
		}
	}
	// Who waited too long for any has one claim beside the others', and who did for its own time
	// limit one when there is no such.
	return at == atItsPlace && n < pl.limit && n+passed < 2*pl.limit || n+passed == 0
}

// barred: nothing of this shape will start or be given a claim in this plan.
func (sh *shape) barred() bool { return sh.bad != nil || sh.unclaimable }

// levelFor is the nodes as a gang sees them that starts now and has ended by then.
func (pl *planner) levelFor(c *Candidate, end time.Time) *level {
	if pl.windows != nil && ownOf(c) != "" {
		return pl.seen(c, pl.ownLevel(c, end, -1), end)
	}
	return pl.seen(c, pl.level(pl.inWay(end)), end)
}

// inWay is how many claims, the first ones, a gang would be in the way of that ends then.
func (pl *planner) inWay(end time.Time) int {
	return sort.Search(len(pl.booked), func(i int) bool { return !pl.booked[i].inWayOf(end) })
}

// inWayOf reports whether a gang that ends then would still be there when the claimant is
// to start.
func (b *booking) inWayOf(end time.Time) bool { return b.from().Before(end) }

// from is when the places are to be free: zero, before everything, when that is not known
// or they are kept for the claimant alone.
func (b *booking) from() time.Time {
	if b.isMove() {
		return time.Time{}
	}
	return b.At
}

// isMove reports whether gangs are preempted for it, or were: until its claimant starts.
func (b *booking) isMove() bool { return !b.Until.IsZero() }
