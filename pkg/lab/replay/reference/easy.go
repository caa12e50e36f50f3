package reference

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/replay"
)

// Easy is FIFO with EASY backfill: the first job that does not fit is promised the moment
// at which, by the time limits, enough will have ended; a later one may start now if that
// promise stands all the same.
type Easy struct{ Queue }

// EASY needs no truth but that of the queue: it goes by time limits.
func EASY(truth func() replay.Truth) replay.Planner {
	return &Easy{Queue{truth: truth, compare: firstIn}}
}

// Plan is part of [replay.Planner].
func (q *Easy) Plan(now time.Time) replay.Decision {
	d := q.Queue.Plan(now)
	if len(d.Starts) > 0 || len(q.queue) == 0 {
		d.Again = len(d.Starts) > 0 // the head is looked at with these in their places
		return d
	}
	head := q.queue[0]
	at, later := q.promise(head)
	if later == nil {
		return d
	}
	r := roomOf(q.nodes)
	failed := map[string]bool{}
	nodes := slices.Clone(q.nodes)
	for _, c := range q.queue[1:] {
		if failed[c.Ask.Key] {
			continue
		}
		shares := r.place(c)
		if shares == nil {
			failed[c.Ask.Key] = true
			continue
		}
		per := c.Ask.Spec.GPUsPerRank
		if ends := now.Add(c.TimeLimit); c.TimeLimit == 0 || ends.After(at) {
			if !later.spare(shares, per, head) {
				r.giveBack(shares, per)
				continue
			}
		}
		st := sched.Start{Job: c.Job, Slots: slots(nodes, c, shares)}
		book(nodes, c, st.Slots, shares)
		d.Starts = append(d.Starts, st)
	}
	return d
}

// promise is when the head can start by the limits of what runs, and the room there is
// then, before it does.
func (q *Easy) promise(head *order.Candidate) (time.Time, room) {
	type release struct {
		at    time.Time
		node  int
		cards int
	}
	var list []release
	for i, n := range q.nodes {
		for k := range n.Grants {
			if g := &n.Grants[k]; !g.Until.IsZero() {
				list = append(list, release{g.Until, i, len(g.Cards)})
			}
		}
	}
	slices.SortFunc(list, func(a, b release) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.node, b.node)) })
	r := roomOf(q.nodes)
	for i, x := range list {
		r[x.node] += x.cards
		if i+1 < len(list) && list[i+1].at.Equal(x.at) {
			continue
		}
		if shares := r.place(head); shares != nil {
			r.giveBack(shares, head.Ask.Spec.GPUsPerRank)
			return x.at, r
		}
	}
	return time.Time{}, nil
}

// spare takes cards from the room at the promised moment if the head fits all the same.
func (r room) spare(shares []share, per int, head *order.Candidate) bool {
	for _, s := range shares {
		r[s.at] -= s.ranks * per
	}
	if got := r.place(head); got != nil {
		r.giveBack(got, head.Ask.Spec.GPUsPerRank)
		return true
	}
	r.giveBack(shares, per)
	return false
}
