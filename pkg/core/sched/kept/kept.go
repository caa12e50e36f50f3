package kept

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// Backfills is the backfills of a plan, and the nodes as each gang sees them beside those that it would be in the way of.
type Backfills struct {
	*given.Facts
	fit  *fit.Finder
	mem  *Memory
	ends horizon

	// views[i] has the first i of backfills on it, nil: nobody asked for it yet; views[0] is the
	// nodes with the starts planned so far.
	views        []*fit.NodeView
	Strict       *fit.NodeView  // with what keeps off even those that would make room; nil: none would
	List         []Backfill     // by the time that they are free at
	Later        []Backfill     // those of the plan before whose tier is not reached yet
	takers       []int64        // who holds one
	Moved        map[int64]bool // victims of moves
	most         most           // that a node has free
	touchedNodes []int          // nodes, of one question
	nodeBuffer   []int32
	remainingOf  *order.Candidate // of whom remaining was worked out last
	remaining    time.Duration
}

// Backfill is a [Backfill] as a plan works with it.
type Backfill struct {
	given.Backfill
	Taker      *order.Candidate
	Grants     []fit.Grant
	Away       bool // one of its nodes is
	concession concession
}

// New is nothing kept yet on the nodes of a plan.
func New(g *given.Facts, f *fit.Finder, mem *Memory) Backfills {
	kp := Backfills{Facts: g, fit: f, mem: mem, ends: horizon{Facts: g, mem: mem}, views: []*fit.NodeView{f.Clone(f.AsGiven())},
		Moved: map[int64]bool{}}
	if g.RanksLeft() {
		kp.Strict = f.Clone(f.AsGiven())
	}
	return kp
}

// Bare is the nodes with the starts planned so far, and nothing kept on them.
func (kp *Backfills) Bare() *fit.NodeView { return kp.views[0] }

// EndOf is when a grant ends at the latest; zero: not known.
func (kp *Backfills) EndOf(g *cluster.Grant) time.Time { return kp.ends.endOf(g) }

// inWayOf reports whether a gang that ends then would still be there when the taker is
// to start.
func (b *Backfill) inWayOf(end time.Time) bool { return b.From().Before(end) }

// From is when the places are to be free: zero, before everything, when they are kept for the taker alone. Where nobody knows
// it is later than any time limit: see docs/design/backfill.md.
func (b *Backfill) From() time.Time {
	switch {
	case b.IsMove() || b.Away:
		return time.Time{}
	case b.At.IsZero():
		return given.BeyondLimits
	}
	return b.At
}

// isOpen reports whether nobody knows when the places are free, and not for a node that is away for a while.
func (b *Backfill) isOpen() bool { return b.From().Equal(given.BeyondLimits) }

// IsMove reports whether gangs are preempted for it, or were: until its taker starts.
func (b *Backfill) IsMove() bool { return !b.Until.IsZero() }

// over reports whether the taker of a move has ended when that of another backfill starts.
func (b *Backfill) over(o *Backfill) bool {
	return !o.IsMove() && !o.At.IsZero() && !b.Until.After(o.At)
}

// concession is whether a backfill gives way, worked out when first asked for.
type concession struct {
	known, gives bool
	left         time.Duration // that its gang is expected to run
}

// Restore takes the backfills of the plan before in. Each is added when the plan reaches
// its tier: higher ones are not bound by it, and whoever came to its own tier since is.
func (kp *Backfills) Restore() {
	for _, k := range kp.View.Backfills {
		if c := kp.View.Queue.Get(k.Job); c != nil {
			kp.Later = append(kp.Later, Backfill{Backfill: k, Taker: c})
		}
	}
	slices.SortStableFunc(kp.Later, func(a, b Backfill) int {
		switch {
		case kp.Policy.Below(b.Taker, a.Taker):
			return -1
		case kp.Policy.Below(a.Taker, b.Taker):
			return 1
		// Somebody was stopped for a move already: nothing of its tier may cross it.
		case a.IsMove() && !b.IsMove():
			return -1
		case b.IsMove() && !a.IsMove():
			return 1
		}
		return order.Compare(a.Taker, b.Taker)
	})
}

// Displace takes the backfills off that c goes before and that were made for the sake of
// others ahead of it.
func (kp *Backfills) Displace(c *order.Candidate) (off []Backfill) {
	for at := len(kp.List) - 1; at >= 0; at-- {
		if b := &kp.List[at]; kp.Policy.MayDelay(c, b.Taker, b.IsMove()) {
			off = append(off, *b)
			kp.Remove(at)
		}
	}
	return off
}

// KeepAll books backfills again that still hold.
func (kp *Backfills) KeepAll(off []Backfill) {
	for i := range off {
		kp.Keep(off[i])
	}
}

// Of is the place in List of the backfill of a gang; -1: it has none.
func (kp *Backfills) Of(job int64) int {
	for i := range kp.List {
		if kp.List[i].Job == job {
			return i
		}
	}
	return -1
}

// lookAgain is how long a backfill stays unquestioned for each hundred nodes: looking for an
// earlier place goes through everything that runs.
const lookAgain = 10 * time.Second

// Keep books a backfill that still holds, where it is or where it is served earlier.
func (kp *Backfills) Keep(b Backfill) bool {
	sh := kp.fit.ClassOf(b.Taker.Ask)
	if sh.Bad != nil || !kp.stands(&b) && !kp.holds(sh.Need, b.Slots) {
		return false
	}
	b.Grants = kp.GrantsOf(&b)
	kp.mem.backfillGrants[b.Job].heldAt = kp.fit.AtCapacity()
	away := false
	for _, g := range b.Grants {
		if n := kp.views[0].Node(g.At); !n.Ready && n.Away {
			away = true
		} else if !kp.clearedFor(&b, g.At).Fits(&g.Grant) {
			return false
		}
	}
	b.Victims = kp.victimsLeft(b.Victims)
	if away {
		// Until the node is back, or is lost, nobody knows when the places are free.
		b.Away = true
		b.At = time.Time{}
		kp.Add(b)
		return true
	}
	if b.IsMove() && len(b.Victims) == 0 && !kp.vacant(b.Grants) {
		// A victim was refused, or something else came between: a plain backfill.
		b.Until = time.Time{}
		b.Grants = kp.GrantsOf(&b)
	}
	if !b.IsMove() {
		b.At = kp.freeAt(b.Grants)
	}
	if !kp.mayKeep(&b) {
		return false
	}
	if pause := time.Duration(len(kp.View.Nodes)/100) * lookAgain; !b.IsMove() && kp.Now.Sub(b.SearchedAt) >= pause {
		if b.At.IsZero() && !kp.Promises(&b) && kp.View.Queue.Ledger().Knows(0) {
			// Nobody knows whether these places are ever free before others are: it is made
			// anew where the least is missing, in its turn.
			return false
		}
		b.SearchedAt = kp.Now
		// Only for a time that is known and earlier: what a taker was promised never
		// gets later by a move.
		if slots, at := kp.earliest(b.Taker, sh, b.Taker.Avoid, b.At); slots != nil && (b.At.IsZero() || at.Before(b.At)) {
			b.Slots, b.At = slots, at
			b.Grants = kp.GrantsOf(&b)
		}
	}
	kp.Add(b)
	return true
}

// holds reports whether the places of a backfill are still in service and allowed.
func (kp *Backfills) holds(d *cluster.Need, slots []cluster.Slot) bool {
	if len(slots) != d.Size {
		return false
	}
	if d.Parts != nil || d.Alternatives != nil {
		return kp.fit.AdmitsAll(d, slots)
	}
	for i, s := range slots {
		if i > 0 && s.Node == slots[i-1].Node {
			continue
		}
		if at := kp.fit.Find(s.Node); at < 0 || !d.Admits(kp.View.Nodes[at]) {
			return false
		}
	}
	return true
}

// Make keeps lower gangs off the places that c waits for. It reports false when no
// ready nodes, however empty, would hold it: waiting for those would hold others up for
// nothing.
func (kp *Backfills) Make(c *order.Candidate, sh *fit.AskClass) bool {
	if sh.NoBackfill {
		return false
	}
	b := Backfill{Backfill: given.Backfill{Job: c.Job, SearchedAt: kp.Now}, Taker: c}
	if b.Slots, b.At = kp.earliest(c, sh, c.Avoid, time.Time{}); b.Slots == nil {
		b.Slots = kp.find(sh, kp.Around(c))
	}
	if b.Slots == nil {
		sh.NoBackfill = true // backfills only add up within a plan
		return false
	}
	b.Grants = kp.GrantsOf(&b)
	if b.At.IsZero() {
		at, ok := kp.MayHave(c, b.Grants, kp.freeAt(b.Grants))
		if !ok {
			return false
		}
		b.At = at
	}
	kp.Add(b)
	return true
}

// Add keeps a backfill off the views of the nodes of those that would be in its way.
func (kp *Backfills) Add(b Backfill) {
	from := b.From()
	at := sort.Search(len(kp.List), func(i int) bool { return kp.List[i].From().After(from) })
	kp.List = slices.Insert(kp.List, at, b)
	if kp.Strict != nil && kp.isStrict(&b) {
		kp.Strict.PutAll(b.Grants)
	}
	kp.views = slices.Insert(kp.views, at+1, nil)
	for _, l := range kp.views[at+1:] {
		if l != nil {
			l.PutAll(b.Grants)
		}
	}
}

// Remove takes the backfill at a place in List off all views.
func (kp *Backfills) Remove(at int) {
	b := kp.List[at]
	if kp.Strict != nil && kp.isStrict(&b) {
		for _, g := range b.Grants {
			kp.Strict.Set(g.At, kp.Strict.Node(g.At).Release(g.MemberKey))
		}
	}
	kp.List = slices.Delete(kp.List, at, at+1)
	kp.views = slices.Delete(kp.views, at+1, at+2)
	for _, l := range kp.views[at+1:] {
		if l == nil {
			continue
		}
		for _, g := range b.Grants {
			l.Set(g.At, l.Node(g.At).Release(g.MemberKey))
		}
	}
}

// MayBackfill reports whether one more gang may be given a backfill. Moves do not count: they end
// as soon as their victims have. Nor do backfills of longer gangs that it may pass, or these would
// keep all there are from the gangs ahead of them; but no more than twice as many are made.
func (kp *Backfills) MayBackfill(c *order.Candidate) bool {
	at, n, passed := kp.Front[c.Job], 0, 0
	for i := range kp.List {
		b := &kp.List[i]
		switch its := kp.Front[b.Job]; {
		case b.IsMove() || its < at || at == order.NoTurn && its != order.NoTurn:
		case kp.passes(c, b):
			passed++
		default:
			n++
		}
	}
	// Who waited too long for any has one backfill beside the others', and who did for its own time
	// limit one when there is no such.
	return at == order.NoTurn && n < kp.Depth && n+passed < 2*kp.Depth || n+passed == 0
}

// clearedFor is a node with nothing on it but the backfills that b must leave alone: a move
// and a backfill may have the same places, when the one is over before the other.
func (kp *Backfills) clearedFor(b *Backfill, at int) *cluster.Room {
	r := &kp.mem.room
	r.OfEmptied(kp.views[0].Node(at))
	for i := range kp.List {
		o := &kp.List[i]
		if o.IsMove() && o.over(b) || b.IsMove() && b.over(o) {
			continue
		}
		for i := range o.Grants {
			if g := &o.Grants[i]; g.At == at {
				r.Restore(&g.Grant)
			}
		}
	}
	return r
}

// vacant reports whether grants fit on the nodes as they are, with the starts planned so far.
func (kp *Backfills) vacant(grants []fit.Grant) bool {
	for i := range grants {
		if g := &grants[i]; !kp.views[0].Node(g.At).Fits(&g.Grant) {
			return false
		}
	}
	return true
}

// cleared is a node with nothing on it but the backfills made so far.
func (kp *Backfills) cleared(at int) *cluster.Node {
	n := kp.views[0].Node(at).Emptied()
	for i := range kp.List {
		for _, g := range kp.List[i].Grants {
			if g.At == at {
				n = n.Restore(g.Grant)
			}
		}
	}
	return n
}

// TakerJobs are the gangs that hold backfills. The list is not to be changed: others have it
// as long as nobody else gets a backfill.
func (kp *Backfills) TakerJobs() []int64 {
	same := len(kp.takers) == len(kp.List)
	for i := 0; same && i < len(kp.List); i++ {
		_, same = slices.BinarySearch(kp.takers, kp.List[i].Job)
	}
	if !same {
		kp.takers = make([]int64, len(kp.List))
		for i := range kp.List {
			kp.takers[i] = kp.List[i].Job
		}
		slices.Sort(kp.takers)
	}
	return kp.takers
}

// victimsLeft are those of a move that are still there and were not refused.
func (kp *Backfills) victimsLeft(victims []given.Victim) []given.Victim {
	if len(victims) == 0 {
		return nil
	}
	var out []given.Victim
	for _, v := range victims {
		i, found := slices.BinarySearchFunc(kp.View.Running, v.Job, func(r *order.Running, job int64) int { return cmp.Compare(r.Job, job) })
		if !found || kp.View.Running[i].Epoch != v.Epoch {
			continue
		}
		r := kp.View.Running[i]
		if by, _ := kp.Policy.Protects(r, kp.Now); v.Notified == r.Stopping && (by == "" || r.Stopping) {
			out = append(out, v)
		} else if r.Stopping {
			v.Notified = true
			out = append(out, v)
		}
		kp.Moved[v.Job] = true
	}
	return out
}

// Promised is when the places of a backfill are free at the latest.
func (kp *Backfills) Promised(b *Backfill) time.Time {
	if len(b.Victims) == 0 {
		return b.At
	}
	latest := kp.Now
	for _, v := range b.Victims {
		for _, r := range kp.View.Running {
			if r.Job != v.Job {
				continue
			}
			t := r.StopBy
			if !r.Stopping {
				t = v.At.Add(r.Stop)
			}
			if t.After(latest) {
				latest = t
			}
		}
	}
	return latest
}
