package sched

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
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
func Forecast(now time.Time, v *View, p *order.Policy) map[int64]ExpectedStart {
	pl := new(Planner).planner(now, v, p)
	pl.policy = unbounded(p)
	pl.run(-1)
	out := make(map[int64]ExpectedStart, v.Queue.Len())
	for _, s := range pl.starts {
		out[s.Job] = ExpectedStart{At: now}
	}
	for i := range pl.kept.list {
		b := &pl.kept.list[i]
		out[b.Job] = ExpectedStart{At: pl.kept.promised(b), Sure: pl.kept.promises(b)}
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

// promised is when the places of a backfill are free at the latest.
func (kp *kept) promised(b *backfill) time.Time {
	if len(b.Victims) == 0 {
		return b.At
	}
	latest := kp.now
	for _, v := range b.Victims {
		for _, r := range kp.view.Running {
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

// room is what gangs take of all nodes together.
type room struct{ cards, cpus int }

func (r *room) add(o room, sign int) { r.cards, r.cpus = r.cards+sign*o.cards, r.cpus+sign*o.cpus }

func (r room) holds(o room) bool { return r.cards >= o.cards && r.cpus >= o.cpus }

// roomHeap is what will be given back, the first first, and what is free by then.
type roomHeap struct {
	given   *given
	returns roomReturns
	free    room
	all     room // of the nodes that are ready
	nodes   int  // so many
	now     time.Time
	// began is the time of the plan.
	began time.Time
	stop  bool // what comes next has no known end
}

type roomReturn struct {
	at   time.Time
	room room
}

type roomReturns []roomReturn

func (h roomReturns) Len() int { return len(h) }
func (h roomReturns) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	// What is promised then is taken first.
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.room.cards, b.room.cards), cmp.Compare(a.room.cpus, b.room.cpus)) < 0
}
func (h roomReturns) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *roomReturns) Push(x any)   { *h = append(*h, x.(roomReturn)) }
func (h *roomReturns) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (pl *planner) heapOfRoom(out map[int64]ExpectedStart) *roomHeap {
	h := &roomHeap{given: &pl.given, now: pl.now, began: pl.now}
	for _, n := range pl.kept.views[0].Every() {
		if !n.Ready {
			continue
		}
		h.nodes++
		all := room{len(n.Cards), n.CPUs()}
		h.all.add(all, 1)
		left := room{max(n.OpenCards(), 0), max(n.FreeCPUs(), 0)}
		if slices.ContainsFunc(n.Grants, func(g cluster.Grant) bool { return g.Exclusive }) {
			left = room{}
		}
		h.free.add(left, 1)
		for i := range n.Grants {
			g := &n.Grants[i]
			back := room{len(g.Cards), int(g.Takes[cluster.CPUs])}
			if g.Exclusive {
				back = all
			}
			if t := pl.kept.ends.endOf(g); !t.IsZero() {
				h.returns = append(h.returns, roomReturn{t, back})
			}
		}
	}
	if pl.reservations != nil {
		for _, t := range pl.kept.nodeEvents(0) {
			if t.shuts {
				h.returns = append(h.returns, roomReturn{at: t.t})
			}
		}
	}
	heap.Init(&h.returns)
	for i := range pl.kept.list {
		b := &pl.kept.list[i]
		need := h.need(b.c.Ask)
		if at := out[b.Job].At; !at.IsZero() && b.c.TimeLimit > 0 {
			// It is given back twice otherwise: by what runs there, and by it.
			heap.Push(&h.returns, roomReturn{at, room{-need.cards, -need.cpus}})
			heap.Push(&h.returns, roomReturn{at.Add(b.c.TimeLimit), need})
		} else {
			h.free.add(need, -1)
		}
	}
	return h
}

// need is what a gang takes: of nodes that it has to itself, all that they have on average.
func (h *roomHeap) need(ask *cluster.Ask) (r room) {
	if ask.Parts != nil {
		for _, p := range ask.Parts {
			r.add(h.need(p), 1)
		}
		return r
	}
	s := ask.Spec
	r = room{order.CardsOf(ask), s.Size * s.CPUsPerRank}
	if !s.Exclusive || h.nodes == 0 {
		return r
	}
	node := room{h.all.cards / h.nodes, h.all.cpus / h.nodes}
	nodes := max(1, s.MinNodes)
	if node.cpus > 0 {
		nodes = max(nodes, (r.cpus+node.cpus-1)/node.cpus)
	}
	if node.cards > 0 {
		nodes = max(nodes, (r.cards+node.cards-1)/node.cards)
	}
	// Where nodes are not alike, more of them than there are may come of the average.
	nodes = min(nodes, h.nodes)
	return room{max(r.cards, nodes*node.cards), max(r.cpus, nodes*node.cpus)}
}

func (h *roomHeap) start(c *order.Candidate) time.Time {
	if h.stop {
		return time.Time{}
	}
	need := h.need(c.Ask)
	// The plan found no place for it now, whatever the sum of what is free says.
	for left := h.free; ; left = h.free {
		left.add(h.given.reservedRoom(c, h.now), -1)
		if left.holds(need) && h.now.After(h.began) {
			break
		}
		if len(h.returns) == 0 {
			h.stop = true
			return time.Time{}
		}
		b := heap.Pop(&h.returns).(roomReturn)
		h.free.add(b.room, 1)
		if b.at.After(h.now) {
			h.now = b.at
		}
	}
	h.free.add(need, -1)
	if c.TimeLimit > 0 {
		heap.Push(&h.returns, roomReturn{h.now.Add(c.TimeLimit), need})
	}
	return h.now
}

// promiseText is what a gang with a backfill is told of it.
func (wy *why) promiseText(b *backfill) string {
	on := hostlist.Compress(cluster.NodesOf(b.Slots))
	at := wy.kept.promised(b)
	if len(b.Victims) > 0 {
		ids := make([]int64, len(b.Victims))
		for i, v := range b.Victims {
			ids[i] = v.Job
		}
		return fmt.Sprintf("%s is preempted for it; starts on %s when that has stopped, at the latest at %s", wy.view.Names.list(ids), on,
			when.Clock(wy.now, at))
	}
	if at.IsZero() {
		return fmt.Sprintf("%s is kept for it; when that is free is not known, for what runs there has no time limit", on)
	}
	by := "by the time limits of what runs there"
	if wy.reservations != nil {
		by += " and the reservations"
	}
	text := fmt.Sprintf("%s is kept for it; starts there at the latest at %s, %s", on, when.Clock(wy.now, at), by)
	if !wy.kept.promises(b) {
		text += ", unless gangs that need less come before"
	}
	return text
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
