package sched

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"gangd/pkg/api"
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
	sees     *level         // of the gang that is explained
	own      *booking       // its claim
	prey     []*prey        // who may be preempted, made when first asked for
	moved    map[int64]bool // victims of moves
	tries    int            // moves looked for
	guarded  []*Candidate   // who waited too long and is let to the front, longest first
	front    map[int64]bool // these
	patient  time.Duration  // how long that is; 0: not worked out yet
	all      int            // cards of the view; 0: not counted yet
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
	pl := &planner{mem: m, now: now, view: v, policy: p, limit: max(1, p.Claims), levels: []*level{m.pool.clone(m.base)},
		mix: v.Queue.ledger.typical(), visited: map[int64]bool{}, moved: map[int64]bool{}, front: map[int64]bool{}, why: make(whys, v.Queue.slots)}
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
	defer func() {
		for _, b := range off {
			pl.keep(b)
		}
	}()
	end, least := pl.end(c), pl.leastEnd(c)
	stays := sh.bad != nil || !sh.blocked.IsZero() && !least.Before(sh.blocked)
	if !stays && (pl.start(c, sh, pl.levelFor(c, end), end) || pl.startCut(c, sh, least, end)) {
		return true
	}
	if !stays {
		sh.blocked = least
	}
	if pl.yields(c) && sh.bad == nil && !sh.hard {
		if pl.start(c, sh, pl.seen(c, pl.hard, end), end) {
			return true
		}
		sh.hard = pl.windows == nil // else it depends on when the gang ends
	}
	pl.note(c, cl, sh)
	if pl.why.of(cl).nearer {
		// Kept for it, what is free now would stand idle until its wait is over.
		return false
	}
	if sh.bad == nil && !pl.preempt(c, sh) && pl.mayClaim(c) {
		pl.claim(c, sh)
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
		sh.turn, sh.blocked, sh.hard, sh.unclaimable, sh.why = pl.mem.turn, time.Time{}, false, false, nil
	}
}

// mayClaim reports whether one more gang may be given a claim. Moves do not count: they end
// as soon as their victims have.
func (pl *planner) mayClaim(c *Candidate) bool {
	guarded, n := pl.front[c.Job], 0
	for i := range pl.booked {
		if b := &pl.booked[i]; !b.isMove() && pl.front[b.Job] == guarded {
			n++
		}
	}
	// Who waited too long has one claim beside the others'.
	return n < pl.limit && !guarded || n == 0
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

// startCut starts a gang that would be in the way of a claim with a time limit after which
// it is not: the longest with which it fits.
func (pl *planner) startCut(c *Candidate, sh *shape, least, end time.Time) bool {
	for _, by := range pl.cuts(c, least, end) {
		if !pl.start(c, sh, pl.levelFor(c, by), by) {
			continue
		}
		// Limits are shown and kept in whole seconds.
		limit := by.Sub(pl.now) - c.Stop
		pl.starts[len(pl.starts)-1].Limit = max(limit.Truncate(time.Second), c.TimeMin)
		return true
	}
	return false
}

// cuts are the times before end by which a gang could have ended so as not to be in the way
// of somebody, the latest first.
func (pl *planner) cuts(c *Candidate, least, end time.Time) []time.Time {
	if !least.Before(end) {
		return nil
	}
	var out []time.Time
	for n := pl.inWay(end) - 1; n >= pl.inWay(least); n-- {
		out = append(out, pl.booked[n].from())
	}
	if pl.windows == nil {
		return out
	}
	for i := range pl.windows.list {
		if by := pl.windows.list[i].Free.Add(-max(0, c.Ask.Spec.GraceMax-c.Stop)); by.Before(end) && !by.Before(least) {
			out = append(out, by)
		}
	}
	slices.SortFunc(out, func(a, b time.Time) int { return b.Compare(a) })
	return out
}

// start books a gang that has ended by then where it fits, and reports whether it does.
func (pl *planner) start(c *Candidate, sh *shape, l *level, end time.Time) bool {
	slots := pl.slots(c, sh, l)
	if slots == nil {
		return false
	}
	pl.startAt(c, slots, end)
	return true
}

// startAt books a gang that has ended by then at places that are free.
func (pl *planner) startAt(c *Candidate, slots []cluster.Slot, end time.Time) {
	until := end
	if end.Equal(never) {
		until = time.Time{}
	}
	for _, g := range pl.grants(c, slots, epochStart, until) {
		for _, l := range pl.levels {
			if l != nil {
				l.set(g.at, l.node(g.at).Restore(g.Grant))
			}
		}
		if pl.hard != nil {
			pl.hard.set(g.at, pl.hard.node(g.at).Restore(g.Grant))
		}
		pl.started = append(pl.started, g)
	}
	pl.starts = append(pl.starts, Start{Job: c.Job, Slots: slots})
	if pl.use != nil {
		pl.use.add(c.User, c.Account, CardsOf(c.Ask))
	}
}

// slots is where a gang can start now, by rank; nil: it does not fit.
func (pl *planner) slots(c *Candidate, sh *shape, l *level) []cluster.Slot {
	if sh.need.Parts != nil {
		return pl.placeMixed(c, sh.need, l)
	}
	if sh.ways != nil {
		return pl.slotsOfWays(c, sh, l)
	}
	members := pl.place(sh, l, c.Avoid, pl.switchLimit(c))
	if members == nil {
		return nil
	}
	return pick(sh.need, l, members)
}

func pick(d *cluster.Need, on *level, members []member) []cluster.Slot {
	slots := make([]cluster.Slot, 0, d.Size)
	for _, m := range members {
		slots = append(slots, d.Pick(on.node(m.at), m.ranks)...)
	}
	return slots
}

// nodeGrant is a grant with the index of its node.
type nodeGrant struct {
	at int
	cluster.Grant
	put *puts // of a claim
}

// grants is what slots take, node by node. The slots of a node follow each other, except
// in a gang with roles.
func (pl *planner) grants(c *Candidate, slots []cluster.Slot, epoch int, until time.Time) []nodeGrant {
	key := api.MemberKey{Job: c.Job, Epoch: epoch}
	if c.Ask.Parts != nil {
		return pl.mixedGrants(c, slots, key, until)
	}
	var out []nodeGrant
	for len(slots) > 0 {
		n := 1
		for n < len(slots) && slots[n].Node == slots[0].Node {
			n++
		}
		out = append(out, nodeGrant{at: pl.find(slots[0].Node), Grant: cluster.GrantFor(c.Ask, key, slots[:n], until)})
		slots = slots[n:]
	}
	return out
}

func (pl *planner) mixedGrants(c *Candidate, slots []cluster.Slot, key api.MemberKey, until time.Time) []nodeGrant {
	ranks := make(map[string][]int)
	var order []string
	for r, s := range slots {
		if ranks[s.Node] == nil {
			order = append(order, s.Node)
		}
		ranks[s.Node] = append(ranks[s.Node], r)
	}
	out := make([]nodeGrant, len(order))
	for i, name := range order {
		out[i] = nodeGrant{at: pl.find(name), Grant: cluster.GrantOf(c.Ask, key, ranks[name], func(r int) cluster.Slot { return slots[r] }, until)}
	}
	return out
}

func (pl *planner) find(name string) int {
	at, found := slices.BinarySearchFunc(pl.view.Nodes, name, func(n *cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return -1
	}
	return at
}

// place finds members for a gang, nil when it does not fit. Nodes that just failed it
// are used only when nothing else does.
// switches is below how many it has to be, 0: any number.
func (pl *planner) place(sh *shape, on *level, avoid []string, switches int) []member {
	spots := pl.look(sh, on, avoid)
	l := layoutOf(sh.need)
	t := pl.tallyOf(spots)
	m := l.members(t)
	var c *counted
	if m > 0 && sh.need.Counts != nil {
		c = newCounted(sh.need, spots, func(at int) *cluster.Node { return on.node(at) })
		m = c.members()
	}
	if m == 0 {
		if len(avoid) > 0 {
			return pl.place(sh, on, nil, switches)
		}
		return nil
	}
	if sh.mix != pl.mix.turn {
		sh.mix = pl.mix.turn
		clear(sh.wastes)
	}
	wasteOf := func(s spot, ranks int) cluster.Waste {
		if s.kind == nil {
			return sh.need.WasteOf(on.node(s.at), ranks)
		}
		key := wasteKey{s.kind.id, ranks}
		w, known := sh.wastes[key]
		if !known {
			w = sh.need.WasteOf(s.kind.node, ranks)
			w.Price = pl.mix.price(sh.need, s.kind, ranks)
			sh.wastes[key] = w
		}
		if len(pl.mix.asks) > 0 && len(s.kind.node.Grants) == 0 {
			w.Price += scarcity(on.members(s.kind).count)
		}
		return w
	}
	if c != nil {
		return pl.chooseCounted(c, m, switches, wasteOf)
	}
	if tree := pl.topology(); tree != nil {
		spots = slices.Clone(spots)
		return pl.near(tree, l, spots, l.choose(slices.Clone(spots), t, m, wasteOf), switches, wasteOf)
	}
	return l.choose(spots, t, m, wasteOf)
}

// look lists where ranks fit: kind by kind, or node by node when names matter. A node that
// was taken apart from its kind is a spot of its own.
func (pl *planner) look(sh *shape, l *level, avoid []string) []spot {
	pl.spots = pl.spots[:0]
	for _, k := range l.live {
		if k.closed || !k.carded && sh.need.WantsCards() {
			continue
		}
		list := l.members(k)
		if list.count == 0 {
			continue
		}
		ranks := sh.ranksOn(k)
		if ranks == 0 {
			continue
		}
		like := *list
		if sh.named || len(avoid) > 0 || l.shut != nil {
			like = pl.without(sh, l, list, avoid)
		}
		if like.count > 0 {
			pl.spots = append(pl.spots, spot{at: like.first(), like: like, kind: k, ranks: ranks})
		}
	}
	return pl.spots
}

func (pl *planner) without(sh *shape, l *level, list *nodeList, avoid []string) nodeList {
	var out []int32
	for at := range list.each() {
		if name := l.node(at).Name; sh.need.Named(name) && !slices.Contains(avoid, name) && (l.shut == nil || !l.shut[at]) {
			out = append(out, int32(at))
		}
	}
	return listOf(out)
}

// ranksOn is how many ranks fit on a node of a kind, wherever the ask's lists of names
// allow it.
func (sh *shape) ranksOn(k *kind) int {
	sh.ranks = reach(sh.ranks, k.id)
	if known := sh.ranks[k.id]; known > 0 {
		return int(known) - 1
	}
	ranks := sh.need.Ranks(k.node)
	if ranks > 0 && !(sh.need.InPartition(k.node) && sh.need.HasFeatures(k.node)) {
		ranks = 0
	}
	if ranks < math.MaxInt16 {
		sh.ranks[k.id] = int16(ranks + 1)
	}
	return ranks
}

// freeOn is what is free for the ask on a node of a kind: see [cluster.Need.Free].
func (sh *shape) freeOn(k *kind) int {
	sh.frees = reach(sh.frees, k.id)
	if sh.frees[k.id] == 0 {
		sh.frees[k.id] = int32(min(math.MaxInt32-1, sh.need.Free(k.node))) + 1
	}
	return int(sh.frees[k.id]) - 1
}

// reach makes a list of figures by kind long enough for one.
func reach[T any](list []T, id int) []T {
	if id >= len(list) {
		list = append(list, make([]T, id+1-len(list)+len(list)/4)...)
	}
	return list
}

func (pl *planner) tallyOf(spots []spot) *tally {
	pl.tally.reset()
	for i := range spots {
		pl.tally.addAll(spots[i].ranks, spots[i].count())
	}
	return &pl.tally
}
