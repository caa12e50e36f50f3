package sched

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// ExpectedStart is when a waiting gang is expected to start.
type ExpectedStart struct {
	At   time.Time // zero: not known, for something without a time limit must end first
	Sure bool      // at the latest then, by the time limits of what runs: none that needs less may come before
}

// Forecast says of every waiting gang when it is expected to start. Those with a backfill have
// a promise, in order of service but for gangs that need less. For the others the queue is
// gone through once, as if cards and CPUs were one heap that what ends adds to and what starts takes
// from, each gang for its whole limit: no sooner than those ahead of it, on whichever nodes.
// That errs late where what runs ends early, and early where cards are free but in too small
// pieces.
func Forecast(now time.Time, v *given.View, p *order.Policy) map[int64]ExpectedStart {
	pl := new(Planner).planner(now, v, p)
	pl.Policy = unbounded(p)
	pl.run(-1)
	out := make(map[int64]ExpectedStart, v.Queue.Len())
	for _, s := range pl.starts {
		out[s.Job] = ExpectedStart{At: now}
	}
	for i := range pl.kept.List {
		b := &pl.kept.List[i]
		out[b.Job] = ExpectedStart{At: pl.kept.Promised(b), Sure: pl.kept.Promises(b)}
	}
	c := pl.heapOfRoom(out)
	for _, w := range v.Queue.Slice() {
		if _, known := out[w.Job]; known {
			continue
		}
		// What would not fit on empty nodes waits for a node, or for a stranger's process,
		// and takes nothing from those behind it. So does an ask that can't be read.
		if sh := pl.fit.ClassOf(w.Ask); sh.Bad == nil && pl.fit.FitsEmpty(sh) {
			out[w.Job] = ExpectedStart{At: c.start(w)}
		}
	}
	return out
}

func unbounded(p *order.Policy) *order.Policy {
	q := *p
	q.MaxStarts = 0
	return &q
}

// roomHeap is what will be given back, the first first, and what is free by then.
type roomHeap struct {
	given   *given.Facts
	returns roomReturns
	free    given.Room
	all     given.Room // of the nodes that are ready
	nodes   int        // so many
	now     time.Time
	// began is the time of the plan.
	began time.Time
	stop  bool // what comes next has no known end
}

type roomReturn struct {
	at   time.Time
	room given.Room
}

type roomReturns []roomReturn

func (h roomReturns) Len() int { return len(h) }
func (h roomReturns) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	// What is promised then is taken first.
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.room.Cards, b.room.Cards), cmp.Compare(a.room.CPUs, b.room.CPUs)) < 0
}
func (h roomReturns) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *roomReturns) Push(x any)   { *h = append(*h, x.(roomReturn)) }
func (h *roomReturns) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (pl *planner) heapOfRoom(out map[int64]ExpectedStart) *roomHeap {
	h := &roomHeap{given: &pl.Facts, now: pl.Now, began: pl.Now}
	for _, n := range pl.kept.Bare().Every() {
		if !n.Ready {
			continue
		}
		h.nodes++
		all := given.Room{Cards: len(n.Cards), CPUs: n.CPUs()}
		h.all.Add(all, 1)
		left := given.Room{Cards: max(n.OpenCards(), 0), CPUs: max(n.FreeCPUs(), 0)}
		if slices.ContainsFunc(n.Grants, func(g cluster.Grant) bool { return g.Exclusive }) {
			left = given.Room{}
		}
		h.free.Add(left, 1)
		for i := range n.Grants {
			g := &n.Grants[i]
			back := given.Room{Cards: len(g.Cards), CPUs: int(g.Takes[cluster.CPUs])}
			if g.Exclusive {
				back = all
			}
			if t := pl.kept.EndOf(g); !t.IsZero() {
				h.returns = append(h.returns, roomReturn{t, back})
			}
		}
	}
	if pl.Reservations != nil {
		for _, t := range pl.kept.ReservationTurns() {
			h.returns = append(h.returns, roomReturn{at: t})
		}
	}
	heap.Init(&h.returns)
	for i := range pl.kept.List {
		b := &pl.kept.List[i]
		need := h.need(b.Taker.Ask)
		if at := out[b.Job].At; !at.IsZero() && b.Taker.TimeLimit > 0 {
			// It is given back twice otherwise: by what runs there, and by it.
			heap.Push(&h.returns, roomReturn{at, given.Room{Cards: -need.Cards, CPUs: -need.CPUs}})
			heap.Push(&h.returns, roomReturn{at.Add(b.Taker.TimeLimit), need})
		} else {
			h.free.Add(need, -1)
		}
	}
	return h
}

// need is what a gang takes: of nodes that it has to itself, all that they have on average.
func (h *roomHeap) need(ask *cluster.Ask) (r given.Room) {
	if ask.Parts != nil {
		for _, p := range ask.Parts {
			r.Add(h.need(p), 1)
		}
		return r
	}
	s := ask.Spec
	r = given.Room{Cards: order.CardsOf(ask), CPUs: s.Size * s.CPUsPerRank}
	if !s.Exclusive || h.nodes == 0 {
		return r
	}
	node := given.Room{Cards: h.all.Cards / h.nodes, CPUs: h.all.CPUs / h.nodes}
	nodes := max(1, s.MinNodes)
	if node.CPUs > 0 {
		nodes = max(nodes, (r.CPUs+node.CPUs-1)/node.CPUs)
	}
	if node.Cards > 0 {
		nodes = max(nodes, (r.Cards+node.Cards-1)/node.Cards)
	}
	// Where nodes are not alike, more of them than there are may come of the average.
	nodes = min(nodes, h.nodes)
	return given.Room{Cards: max(r.Cards, nodes*node.Cards), CPUs: max(r.CPUs, nodes*node.CPUs)}
}

func (h *roomHeap) start(c *order.Candidate) time.Time {
	if h.stop {
		return time.Time{}
	}
	need := h.need(c.Ask)
	// The plan found no place for it now, whatever the sum of what is free says.
	for left := h.free; ; left = h.free {
		left.Add(h.given.ReservedRoom(c, h.now), -1)
		if left.Holds(need) && h.now.After(h.began) {
			break
		}
		if len(h.returns) == 0 {
			h.stop = true
			return time.Time{}
		}
		b := heap.Pop(&h.returns).(roomReturn)
		h.free.Add(b.room, 1)
		if b.at.After(h.now) {
			h.now = b.at
		}
	}
	h.free.Add(need, -1)
	if c.TimeLimit > 0 {
		heap.Push(&h.returns, roomReturn{h.now.Add(c.TimeLimit), need})
	}
	return h.now
}

// WouldPreempt names the gangs whose places a gang would take, by the plan.
func (p *Plan) WouldPreempt(job int64) (victims []int64) {
	for _, k := range p.Backfills {
		if k.Job == job {
			for _, v := range k.Victims {
				victims = append(victims, v.Job)
			}
		}
	}
	return victims
}
