package sched

import (
	"container/heap"
	"fmt"
	"time"

	"gangd/pkg/cluster"
	"gangd/pkg/hostlist"
)

// ExpectedStart is when a waiting gang is expected to start.
type ExpectedStart struct {
	At   time.Time // zero: not known, for something without a time limit must end first
	Sure bool      // at the latest then, by the time limits of what runs: none that needs less may come before
}

// Forecast says of every waiting gang when it is expected to start. Those with a backfill have
// a promise, in order of service but for gangs that need less. For the others the queue is
// gone through once, as if cards were one heap that what ends adds to and what starts takes
// from, each gang for its whole limit: no sooner than those ahead of it, on whichever nodes.
// That errs late where what runs ends early, and early where cards are free but in too small
// pieces.
func Forecast(now time.Time, v *View, p *Policy) map[int64]ExpectedStart {
	pl := new(Planner).planner(now, v, p)
	pl.policy = unbounded(p)
	pl.run(-1)
	out := make(map[int64]ExpectedStart, v.Queue.Len())
	for _, s := range pl.starts {
		out[s.Job] = ExpectedStart{At: now}
	}
	for i := range pl.backfills {
		b := &pl.backfills[i]
		out[b.Job] = ExpectedStart{At: pl.promised(b), Sure: pl.promises(b)}
	}
	c := pl.heapOfCards(out)
	for _, w := range v.Queue.Slice() {
		if _, known := out[w.Job]; known {
			continue
		}
		// What would not fit on empty nodes waits for a node, or for a stranger's process,
		// and takes nothing from those behind it.
		if pl.fitsEmpty(pl.askClass(w.Ask)) {
			out[w.Job] = ExpectedStart{At: c.start(w)}
		}
	}
	return out
}

func unbounded(p *Policy) *Policy {
	q := *p
	q.MaxStarts = 0
	return &q
}

// promised is when the places of a backfill are free at the latest.
func (pl *planner) promised(b *backfill) time.Time {
	if len(b.Victims) == 0 {
		return b.At
	}
	latest := pl.now
	for _, v := range b.Victims {
		for _, r := range pl.view.Running {
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

// cardHeap is what will be given back, the first first, and what is free by then.
type cardHeap struct {
	pl      *planner
	returns cardReturns
	free    int
	now     time.Time
	// began is the time of the plan.
	began time.Time
	stop  bool // what comes next has no known end
}

type cardReturn struct {
	at    time.Time
	cards int
}

type cardReturns []cardReturn

func (h cardReturns) Len() int { return len(h) }
func (h cardReturns) Less(i, j int) bool {
	if c := h[i].at.Compare(h[j].at); c != 0 {
		return c < 0
	}
	return h[i].cards < h[j].cards // what is promised then is taken first
}
func (h cardReturns) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *cardReturns) Push(x any)   { *h = append(*h, x.(cardReturn)) }
func (h *cardReturns) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (pl *planner) heapOfCards(out map[int64]ExpectedStart) *cardHeap {
	h := &cardHeap{pl: pl, now: pl.now, began: pl.now}
	for _, n := range pl.views[0].every() {
		if n.Ready {
			h.free += max(n.OpenCards(), 0)
			for i := range n.Grants {
				if t := pl.endOf(&n.Grants[i]); !t.IsZero() {
					h.returns = append(h.returns, cardReturn{t, len(n.Grants[i].Cards)})
				}
			}
		}
	}
	if pl.reservations != nil {
		for _, t := range pl.nodeEvents(0) {
			if t.shuts {
				h.returns = append(h.returns, cardReturn{t.t, 0})
			}
		}
	}
	heap.Init(&h.returns)
	for i := range pl.backfills {
		b := &pl.backfills[i]
		if at := out[b.Job].At; !at.IsZero() && b.c.TimeLimit > 0 {
			// Its cards are given back twice otherwise: by what runs there, and by it.
			heap.Push(&h.returns, cardReturn{at, -weight(b.c.Ask)})
			heap.Push(&h.returns, cardReturn{at.Add(b.c.TimeLimit), weight(b.c.Ask)})
		} else {
			h.free -= weight(b.c.Ask)
		}
	}
	return h
}

func (h *cardHeap) start(c *Candidate) time.Time {
	if h.stop {
		return time.Time{}
	}
	// The plan found no place for it now, whatever the sum of what is free says.
	for h.free-h.pl.reservedCards(c, h.now) < weight(c.Ask) || !h.now.After(h.began) {
		if len(h.returns) == 0 {
			h.stop = true
			return time.Time{}
		}
		b := heap.Pop(&h.returns).(cardReturn)
		h.free += b.cards
		if b.at.After(h.now) {
			h.now = b.at
		}
	}
	h.free -= weight(c.Ask)
	if c.TimeLimit > 0 {
		heap.Push(&h.returns, cardReturn{h.now.Add(c.TimeLimit), weight(c.Ask)})
	}
	return h.now
}

// clock writes a time for people: without the date when that is today's.
func clock(now, t time.Time) string {
	t = t.In(now.Location())
	if y, m, d := t.Date(); y == now.Year() && m == now.Month() && d == now.Day() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

// promiseText is what a gang with a backfill is told of it.
func (pl *planner) promiseText(b *backfill) string {
	on := hostlist.Compress(cluster.NodesOf(b.Slots))
	at := pl.promised(b)
	if len(b.Victims) > 0 {
		ids := make([]int64, len(b.Victims))
		for i, v := range b.Victims {
			ids[i] = v.Job
		}
		return fmt.Sprintf("%s is preempted for it; starts on %s when that has stopped, at the latest at %s", pl.view.Names.list(ids), on, clock(pl.now, at))
	}
	if at.IsZero() {
		return fmt.Sprintf("%s is kept for it; when that is free is not known, for what runs there has no time limit", on)
	}
	by := "by the time limits of what runs there"
	if pl.reservations != nil {
		by += " and the reservations"
	}
	text := fmt.Sprintf("%s is kept for it; starts there at the latest at %s, %s", on, clock(pl.now, at), by)
	if !pl.promises(b) {
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
