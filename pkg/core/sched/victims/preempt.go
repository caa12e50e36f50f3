package victims

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/bounds"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/guard"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
)

// maxMoves bounds the gangs for which a plan looks for victims, and the moves under way.
const maxMoves = 16

// Victims are the gangs that make room for others.
type Victims struct {
	*given.Facts
	fit          *fit.Finder
	kept         *kept.Backfills
	bounds       *bounds.Bounds
	guard        *guard.Guard
	candidates   []*candidate // who may be preempted, made when first asked for
	moveSearches int          // moves looked for
	Stops        []Stop
}

// Stop is one gang to be preempted.
type Stop struct {
	Job   int64
	Epoch int
	For   int64 // the gang that takes its place
}

// New is who may make room in a view, with the places that are kept.
func New(f *given.Facts, finder *fit.Finder, k *kept.Backfills, b *bounds.Bounds, g *guard.Guard) Victims {
	return Victims{Facts: f, fit: finder, kept: k, bounds: b, guard: g}
}

// candidate is a running gang that might be preempted, with what that would cost.
type candidate struct {
	*order.Running
	lost time.Duration // work done since the last checkpoint
	left float64       // the cards' time, in seconds, that it is expected to need yet
	at   []int         // its nodes
}

// list is who may be preempted at all: not who is being stopped or protected. The cheapest
// come first; of those that lose as much, in the same tier and priority, who may run again
// before who would end, and then the one that needs most yet.
func (vs *Victims) list() []*candidate {
	if vs.candidates != nil {
		return vs.candidates
	}
	vs.candidates = []*candidate{}
	byJob := make(map[api.MemberKey]*candidate)
	for _, r := range vs.View.Running {
		if r.Stopping {
			continue
		}
		if by, until := vs.Policy.Protects(r, vs.Now); by != "" {
			if !until.IsZero() {
				vs.By(&vs.Next, until)
			}
			continue
		}
		v := &candidate{Running: r, left: vs.serviceLeft(r), lost: vs.lost(r)}
		vs.candidates = append(vs.candidates, v)
		byJob[api.MemberKey{Job: r.Job, Epoch: r.Epoch}] = v
	}
	if len(byJob) > 0 {
		for at, n := range vs.kept.Bare().Every() {
			for i := range n.Grants {
				if v := byJob[n.Grants[i].MemberKey]; v != nil {
					v.at = append(v.at, at)
				}
			}
		}
	}
	slices.SortFunc(vs.candidates, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.lost, b.lost), cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Priority, b.Priority),
			compareFinal(a, b), cmp.Compare(b.left, a.left), b.Start.Compare(a.Start), cmp.Compare(a.Job, b.Job))
	})
	return vs.candidates
}

// lost is the work that a gang loses when it is preempted: what it did since its last
// checkpoint. What a gang saved that does not run again nobody goes on from.
func (vs *Victims) lost(r *order.Running) time.Duration {
	since := r.Start
	switch {
	case since.IsZero() || r.KeepsWork && !r.Final:
		return 0
	case r.Final:
		return r.Attained + vs.Now.Sub(since)
	case r.Saved.After(since):
		since = r.Saved
	}
	return vs.Now.Sub(since)
}

// compareFinal puts who would end behind who may run again.
func compareFinal(a, b *candidate) int {
	switch {
	case a.Final == b.Final:
		return 0
	case a.Final:
		return 1
	}
	return -1
}

// serviceLeft is the cards' time that a running gang is expected to need yet.
func (vs *Victims) serviceLeft(r *order.Running) float64 {
	if !vs.View.Queue.Ledger().Knows(r.TimeLimit) {
		return order.Unknown
	}
	ran := r.Attained
	if !r.Start.IsZero() {
		ran += vs.Now.Sub(r.Start)
	}
	cards := max(1, r.Cards)
	return vs.Policy.Remaining(vs.View.Queue.Ledger(), r.TimeLimit, ran, order.Peer{User: r.User, Name: r.Name, Cards: cards,
		Job: r.Job}).Seconds() * float64(cards)
}

// mayTake reports whether a gang may take the place of another.
func (vs *Victims) mayTake(c *order.Candidate, service float64, r *candidate) bool {
	if vs.bounds.Reclaims(c) && vs.bounds.Borrows(r.Running) {
		return true
	}
	if vs.Policy.Preempt != order.PreemptTier && vs.Policy.Preempt != order.PreemptService {
		return false
	}
	// What --nice took off orders, but makes nobody a victim.
	higher := cmp.Or(cmp.Compare(c.Tier, r.Tier), cmp.Compare(c.Priority+c.Nice, r.Priority+r.Nice))
	if higher != 0 {
		return higher > 0
	}
	hysteresis := vs.Policy.Hysteresis
	if hysteresis <= 0 {
		hysteresis = 1.2
	}
	return vs.Policy.Preempt == order.PreemptService && r.KeepsWork && !r.Final && r.Turn == order.NoTurn &&
		!vs.guard.Waited(r.Running) && service > 0 &&
		r.left >= hysteresis*service
}

// WouldTake reports whether a gang may take the place of one that runs, as long as nothing protects that one.
func (vs *Victims) WouldTake(c *order.Candidate, r *order.Running) bool {
	service := vs.Policy.Service(vs.View.Queue.Ledger(), c).Seconds()
	return vs.mayTake(c, service, &candidate{Running: r, left: vs.serviceLeft(r)})
}

// Preempt looks for gangs whose end would let c start, and books the move when there are
// any. The whole move is gone through before anybody is told: free places count first, and
// nothing is taken that does not let the whole gang start.
func (vs *Victims) Preempt(c *order.Candidate, sh *fit.AskClass) bool {
	// Who has room, but below too many switches, waits a while; nobody is stopped for that.
	if !vs.MayPreempt() || vs.moveSearches >= maxMoves || vs.SwitchLimit(c) > 0 {
		return false
	}
	service := vs.Policy.Service(vs.View.Queue.Ledger(), c).Seconds()
	var victims []*candidate
	for _, v := range vs.list() {
		if !vs.kept.Moved[v.Job] && vs.mayTake(c, service, v) {
			victims = append(victims, v)
		}
	}
	if len(victims) == 0 {
		return false
	}
	vs.moveSearches++
	// The taker starts when the last of them has ended, and must be through by the time of
	// the backfills that it shares places with.
	wait := time.Duration(0)
	for _, v := range victims {
		wait = max(wait, v.Stop)
	}
	end := vs.End(c)
	if end != given.Never {
		end = end.Add(wait)
	}
	slots, chosen := vs.move(c, sh, victims, end)
	if slots == nil {
		return false
	}
	b := kept.Backfill{Backfill: given.Backfill{Job: c.Job, Slots: slots, SearchedAt: vs.Now, Victims: vs.timed(chosen), Until: end}, Taker: c}
	b.Grants = vs.kept.GrantsOf(&b)
	vs.Tell(&b)
	vs.kept.Add(b)
	return true
}

// timed says when each victim is to be told, so that those with a short notice work until
// those with the longest are through with theirs.
func (vs *Victims) timed(chosen []*candidate) []given.Victim {
	var longest time.Duration
	for _, v := range chosen {
		longest = max(longest, v.Lead)
	}
	out := make([]given.Victim, len(chosen))
	for i, v := range chosen {
		out[i] = given.Victim{Job: v.Job, Epoch: v.Epoch, At: vs.Now.Add(longest - v.Lead)}
		vs.kept.Moved[v.Job] = true
	}
	return out
}

// Tell stops the victims whose time has come.
func (vs *Victims) Tell(b *kept.Backfill) {
	for i := range b.Victims {
		if v := &b.Victims[i]; !v.Notified && !v.At.After(vs.Now) {
			v.Notified = true
			vs.Stops = append(vs.Stops, Stop{Job: v.Job, Epoch: v.Epoch, For: b.Job})
		}
	}
}

// move finds places for a gang on its view without some of the victims, and which of them
// have to go for it: first how far down the list one must go for it to fit at all, then the
// nodes that cost least, then no more on each than is needed.
func (vs *Victims) move(c *order.Candidate, sh *fit.AskClass, victims []*candidate, end time.Time) ([]cluster.Slot,
	[]*candidate) {
	if sh.Alternatives != nil {
		return vs.moveOfAlternatives(c, sh, victims, end)
	}
	d, l := sh.Need, fit.LayoutOf(sh.Need)
	base := vs.kept.ViewFor(c, end)
	if d.Packed() {
		return vs.moveMixed(c, d, base, victims)
	}
	mv := &mover{d: d, base: base, nodes: make(map[int]*cluster.Node), on: make(map[int][]*candidate)}
	t := vs.fit.TallyOf(vs.fit.Look(sh, base, c.Avoid))
	m, n := 0, 0
	for m == 0 && n < len(victims) {
		for _, at := range victims[n].at {
			mv.release(t, at, victims[n], c.Avoid)
		}
		n++
		m = l.Members(t)
	}
	if m == 0 {
		return nil, nil
	}
	choices := mv.choices(c.Avoid)
	members := l.Choose(choices, vs.fit.TallyOf(choices), m, func(s fit.Choice, ranks int) cluster.Waste {
		w := d.WasteOf(mv.node(s.At), ranks)
		w.Price = mv.price(s.At, ranks)
		return w
	})
	chosen := mv.needed(members)
	chosen = mv.dropUnneeded(chosen, members)
	var slots []cluster.Slot
	for _, m := range members {
		slots = append(slots, d.Pick(mv.without(m.At, chosen), m.Ranks)...)
	}
	return slots, chosen
}

// moveMixed is move for a gang with roles: how far down the list one must go is looked for
// by halves, and whoever is not in the way of the places found then stays.
func (vs *Victims) moveMixed(c *order.Candidate, d *cluster.Need, base *fit.NodeView, victims []*candidate) ([]cluster.Slot,
	[]*candidate) {
	without := func(gone []*candidate) []*cluster.Node {
		nodes := base.All()
		for _, v := range gone {
			for _, at := range v.at {
				nodes[at] = nodes[at].Release(api.MemberKey{Job: v.Job, Epoch: v.Epoch})
			}
		}
		return nodes
	}
	place := func(n int) []cluster.Slot {
		nodes := without(victims[:n])
		var ready []int32
		for at, n := range nodes {
			if n.Ready && !base.Shuts(at) {
				ready = append(ready, int32(at))
			}
		}
		return fit.Mixed(d, nodes, ready, c.Avoid)
	}
	n, slots := len(victims), place(len(victims))
	if slots == nil {
		return nil, nil
	}
	for low := 0; low < n; {
		mid := (low + n) / 2
		if found := place(mid); found != nil {
			n, slots = mid, found
		} else {
			low = mid + 1
		}
	}
	chosen := slices.Clone(victims[:n])
	grants := vs.fit.Grants(c, slots, given.EpochBackfill, time.Time{})
	for i := len(chosen) - 1; i >= 0; i-- {
		rest := slices.Delete(slices.Clone(chosen), i, i+1)
		nodes := without(rest)
		if !slices.ContainsFunc(grants, func(g fit.Grant) bool { _, err := nodes[g.At].Take(g.Grant); return err != nil }) {
			chosen = rest
		}
	}
	return slots, chosen
}

// mover is a move being worked out.
type mover struct {
	d     *cluster.Need
	base  *fit.NodeView
	nodes map[int]*cluster.Node // without the victims looked at so far
	on    map[int][]*candidate  // these, by node
}

func (mv *mover) node(at int) *cluster.Node {
	if n := mv.nodes[at]; n != nil {
		return n
	}
	return mv.base.Node(at)
}

// release takes a victim off a node and corrects the count of room.
func (mv *mover) release(t *fit.Tally, at int, v *candidate, avoid []string) {
	n := mv.node(at)
	next := n.Release(api.MemberKey{Job: v.Job, Epoch: v.Epoch})
	mv.nodes[at] = next
	mv.on[at] = append(mv.on[at], v)
	if !next.Ready || mv.base.Shuts(at) || !mv.d.Admits(next) || slices.Contains(avoid, next.Name) {
		return
	}
	was, is := mv.d.Ranks(n), mv.d.Ranks(next)
	if was == is {
		return
	}
	if was > 0 {
		t.AddAll(was, -1)
	}
	t.Add(is)
}

func (mv *mover) choices(avoid []string) []fit.Choice {
	var out []fit.Choice
	for at := range mv.base.Size {
		n := mv.node(at)
		if !n.Ready || mv.base.Shuts(at) || slices.Contains(avoid, n.Name) {
			continue
		}
		if k := mv.d.Ranks(n); k > 0 && mv.d.Admits(n) {
			out = append(out, fit.Choice{At: at, Ranks: k})
		}
	}
	return out
}

// price is what so many ranks on a node cost: the work lost by those that must go, and a
// little for each of them, so that of equal ones the fewest go.
func (mv *mover) price(at, ranks int) int64 {
	n, sum := mv.base.Node(at), int64(0)
	for _, v := range mv.on[at] {
		if mv.d.Ranks(n) >= ranks {
			break
		}
		n = n.Release(api.MemberKey{Job: v.Job, Epoch: v.Epoch})
		sum += int64(v.lost.Seconds())*int64(max(1, v.Cards))/int64(len(v.at)) + 60
		if v.Final {
			sum += 60
		}
	}
	return sum
}

// without is a node without the chosen victims.
func (mv *mover) without(at int, chosen []*candidate) *cluster.Node {
	n := mv.base.Node(at)
	for _, v := range mv.on[at] {
		if slices.Contains(chosen, v) {
			n = n.Release(api.MemberKey{Job: v.Job, Epoch: v.Epoch})
		}
	}
	return n
}

// needed goes through the places and adds victims on each until the ranks fit there.
func (mv *mover) needed(members []fit.Member) []*candidate {
	var chosen []*candidate
	in := make(map[*candidate]bool)
	for _, m := range members {
		n := mv.base.Node(m.At)
		for _, v := range mv.on[m.At] {
			if in[v] {
				n = n.Release(api.MemberKey{Job: v.Job, Epoch: v.Epoch})
			}
		}
		for _, v := range mv.on[m.At] {
			if mv.d.Ranks(n) >= m.Ranks {
				break
			}
			if !in[v] {
				in[v] = true
				chosen = append(chosen, v)
				n = n.Release(api.MemberKey{Job: v.Job, Epoch: v.Epoch})
			}
		}
	}
	return chosen
}

// dropUnneeded lets go of whom the move does not need after all, the dearest first.
func (mv *mover) dropUnneeded(chosen []*candidate, members []fit.Member) []*candidate {
	ranks := make(map[int]int, len(members))
	for _, m := range members {
		ranks[m.At] = m.Ranks
	}
	nodes := make(map[int]*cluster.Node, len(members))
	in := make(map[*candidate]bool, len(chosen))
	for _, v := range chosen {
		in[v] = true
	}
	for _, m := range members {
		n := mv.base.Node(m.At)
		for _, v := range mv.on[m.At] {
			if in[v] {
				n = n.Release(api.MemberKey{Job: v.Job, Epoch: v.Epoch})
			}
		}
		nodes[m.At] = n
	}
	out := slices.Clone(chosen)
	slices.SortStableFunc(chosen, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.lost, a.lost), compareFinal(b, a), cmp.Compare(b.Cards, a.Cards), cmp.Compare(a.Job, b.Job))
	})
	for _, v := range chosen {
		back := make(map[int]*cluster.Node)
		ok := true
		for _, at := range v.at {
			n := nodes[at]
			if n == nil {
				continue // none of the places is there
			}
			g, _ := mv.base.Node(at).Grant(api.MemberKey{Job: v.Job, Epoch: v.Epoch})
			back[at] = n.Restore(g)
			if mv.d.Ranks(back[at]) < ranks[at] {
				ok = false
				break
			}
		}
		if ok {
			for at, n := range back {
				nodes[at] = n
			}
			out = slices.DeleteFunc(out, func(o *candidate) bool { return o == v })
		}
	}
	return out
}
