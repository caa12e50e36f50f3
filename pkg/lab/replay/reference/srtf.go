package reference

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/replay"
)

// Dealer deals the whole cluster anew at every change: to the job with the least key
// first, then to the next one that still fits, and so on. What runs stays when its very
// cards are still free at its turn; else it is preempted and waits for the next change.
type Dealer struct {
	truth   func() replay.Truth
	key     func(t replay.Truth, id int64) float64
	nodes   []*cluster.Node
	known   map[int64]*order.Candidate // waiting and running
	waiting map[int64]bool
	now     time.Time
	starts  []sched.Start
}

// table is which cards of each node are still to be dealt, a bit for each.
type table []uint64

// hand is what a gang has of one node.
type hand struct {
	at    int
	cards uint64
}

func remaining(t replay.Truth, id int64) float64 { return t.Remaining(id).Seconds() }
func gpus(t replay.Truth, id int64) float64      { return float64(t.Job(id).GPUs()) }

// SRTF* is shortest remaining time first.
func SRTF(truth func() replay.Truth) replay.Planner {
	return &Dealer{truth: truth, key: remaining}
}

// SRSF* is shortest remaining service (time x cards) first.
func SRSF(truth func() replay.Truth) replay.Planner {
	return &Dealer{truth: truth, key: func(t replay.Truth, id int64) float64 { return remaining(t, id) * gpus(t, id) }}
}

// lasFactor is how much more of the cards' time a gang must have had to be behind another one:
// those within it go by their submission, or equals would take turns at every change.
const lasFactor = 4

// LAS is least attained service first (time x cards so far), which knows nothing of how long
// anybody runs: what Tiresias does where nothing is known.
func LAS(truth func() replay.Truth) replay.Planner {
	return &Dealer{truth: truth, key: func(t replay.Truth, id int64) float64 {
		return math.Floor(math.Log(max(1, t.Attained(id).Seconds()*gpus(t, id))) / math.Log(lasFactor))
	}}
}

// Begin is part of [replay.Planner].
func (q *Dealer) Begin(nodes []*cluster.Node) {
	q.nodes, q.known, q.waiting = nodes, map[int64]*order.Candidate{}, map[int64]bool{}
}

// Waits is part of [replay.Planner].
func (q *Dealer) Waits(c *order.Candidate) { q.known[c.Job], q.waiting[c.Job] = c, true }

// Leaves is part of [replay.Planner].
func (q *Dealer) Leaves(job int64) { delete(q.waiting, job) }

// Runs is part of [replay.Planner].
func (q *Dealer) Runs(int64, *order.Running) {}

// Learns is part of [replay.Planner].
func (q *Dealer) Learns(*order.Usage) {}

// Next is part of [replay.Planner].
func (q *Dealer) Next() time.Time { return time.Time{} }

// Plan is part of [replay.Planner]: one deal an instant, first what must go, then what comes.
func (q *Dealer) Plan(now time.Time) replay.Decision {
	if !now.Equal(q.now) {
		q.now = now
		if d := q.deal(); len(d.Preempt) > 0 {
			d.Again = true
			return d
		}
	}
	d := replay.Decision{Starts: q.starts}
	q.starts = nil
	return d
}

// turn is a job in the order of the deal.
type turn struct {
	key float64
	id  int64
	on  []hand // what it runs on
}

func (q *Dealer) deal() replay.Decision {
	turns := q.turns()
	tab, free := make(table, len(q.nodes)), 0
	for i, n := range q.nodes {
		tab[i] = 1<<len(n.Cards) - 1
		free += len(n.Cards)
	}
	failed := map[string]bool{} // what did not fit once does not fit later in the deal
	var d replay.Decision
	var moved []turn
	for _, t := range turns {
		c := q.known[t.id]
		cards := c.Size * c.Ask.Spec.GPUsPerRank
		if len(t.on) > 0 {
			if free >= cards && tab.keep(t.on) {
				free -= cards
				continue
			}
			d.Preempt = append(d.Preempt, replay.Preempt{Job: t.id, For: turns[0].id})
			moved = append(moved, t)
			continue
		}
		if free < cards || failed[c.Ask.Key] {
			continue
		}
		slots := tab.place(q.nodes, c)
		if slots == nil {
			failed[c.Ask.Key] = true
			continue
		}
		free -= cards
		q.starts = append(q.starts, sched.Start{Job: t.id, Slots: slots})
	}
	for _, t := range moved {
		c := q.known[t.id]
		if free < c.Size*c.Ask.Spec.GPUsPerRank {
			continue
		}
		if slots := tab.place(q.nodes, c); slots != nil {
			free -= c.Size * c.Ask.Spec.GPUsPerRank
			q.starts = append(q.starts, sched.Start{Job: t.id, Slots: slots})
		}
	}
	return d
}

// keep takes the cards that a job has, if they are still there.
func (t table) keep(on []hand) bool {
	for _, h := range on {
		if t[h.at]&h.cards != h.cards {
			return false
		}
	}
	for _, h := range on {
		t[h.at] &^= h.cards
	}
	return true
}

// place gives a gang the first free cards of the nodes that best fit chooses; nil when it
// does not fit.
func (t table) place(nodes []*cluster.Node, c *order.Candidate) []cluster.Slot {
	r := make(room, len(t))
	for i := range t {
		r[i] = bits.OnesCount64(t[i])
	}
	var out []cluster.Slot
	for _, s := range r.place(c) {
		n := nodes[s.at]
		for range s.ranks {
			slot := cluster.Slot{Node: n.Name}
			for range c.Ask.Spec.GPUsPerRank {
				var idle uint64
				for i := range n.Cards {
					if h, _ := n.Holders(i); len(h) == 0 {
						idle |= 1 << i
					}
				}
				pick := t[s.at] & idle
				if pick == 0 {
					pick = t[s.at]
				}
				card := bits.TrailingZeros64(pick)
				t[s.at] &^= 1 << card
				slot.Cards = append(slot.Cards, n.Cards[card].UUID)
			}
			out = append(out, slot)
		}
	}
	return out
}

// turns are all that waits and runs, by key.
func (q *Dealer) turns() []turn {
	on := map[int64][]hand{}
	for i, n := range q.nodes {
		for k := range n.Grants {
			g := &n.Grants[k]
			h := hand{at: i}
			for _, c := range g.Cards {
				h.cards |= 1 << slices.IndexFunc(n.Cards, func(x cluster.Card) bool { return x.UUID == c.UUID })
			}
			on[g.Job] = append(on[g.Job], h)
		}
	}
	t := q.truth()
	out := make([]turn, 0, len(on)+len(q.waiting))
	for id := range on {
		out = append(out, turn{q.key(t, id), id, on[id]})
	}
	for id := range q.waiting {
		out = append(out, turn{q.key(t, id), id, nil})
	}
	slices.SortFunc(out, func(a, b turn) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id)) })
	return out
}
