package sched

import (
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// running is a gang of the simulated cluster.
type running struct {
	key      api.MemberKey
	original bool // ran when the large gang came
	ends     int  // tick
}

// TestLargeGangIsNotStarved: behind an endless stream of small gangs a large one starts
// at the latest when what ran at its submission has ended, however the small ones come
// and go meanwhile.
func TestLargeGangIsNotStarved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := plantest.DrawNodes(t)
		large := plantest.DrawCandidate(t, 500)
		large.Priority = 5
		large.Avoid = nil
		// Nodes are kept for what it must have; what it would rather have it takes when that is free.
		must := *large.Ask.Spec
		must.Prefer = ""
		if len(Make(plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(candidateIn(large, &must))}, &order.Policy{}).Starts) == 0 {
			return // would not start on the empty cluster either
		}
		s := starve{t: t, nodes: nodes, byJob: make(map[int64]*order.Candidate)}
		for range 6 {
			s.queue.Insert(s.small())
		}
		s.plan(true)
		s.queue.Insert(large)
		s.byJob[large.Job] = large
		for range 30 {
			s.tick++
			s.end()
			s.queue.Insert(s.small())
			s.queue.Insert(s.small())
			s.plan(false)
			if s.queue.Get(large.Job) == nil {
				return
			}
			if s.originals() == 0 {
				t.Fatalf("tick %d: what ran at its submission has ended, and job %d %+v still waits: backfills %+v",
					s.tick, large.Job, *large.Ask.Spec, s.backfills)
			}
		}
	})
}

// candidateIn is a candidate with another ask.
func candidateIn(c *order.Candidate, s *api.Spec) *order.Candidate {
	out := c.Apart()
	out.Ask = cluster.AskOf(s, c.Ask.Partitions)
	return out
}

type starve struct {
	t         *rapid.T
	nodes     []*cluster.Node
	queue     order.Queue
	byJob     map[int64]*order.Candidate
	runs      []running
	backfills []given.Backfill
	tick      int
	next      int64
}

func (s *starve) small() *order.Candidate {
	s.next++
	c := plantest.DrawCandidate(s.t, 1000+s.next)
	c.Priority, c.Avoid = 0, nil
	s.byJob[c.Job] = c
	return c
}

func (s *starve) plan(original bool) {
	plan := Make(plantest.Epoch0, &given.View{Nodes: s.nodes, Queue: &s.queue, Backfills: s.backfills}, &order.Policy{})
	s.backfills = plan.Backfills
	for _, start := range plan.Starts {
		s.nodes = plantest.Apply(s.t, s.nodes, s.byJob[start.Job], 1, start.Slots)
		s.queue.Remove(start.Job)
		s.runs = append(s.runs, running{api.MemberKey{Job: start.Job, Epoch: 1}, original,
			s.tick + rapid.IntRange(1, 12).Draw(s.t, "runs")})
	}
}

func (s *starve) end() {
	var left []running
	for _, r := range s.runs {
		if r.ends > s.tick {
			left = append(left, r)
			continue
		}
		for i, n := range s.nodes {
			s.nodes[i] = n.Release(r.key)
		}
	}
	s.runs = left
}

func (s *starve) originals() int {
	n := 0
	for _, r := range s.runs {
		if r.original {
			n++
		}
	}
	return n
}

// TestBackfillStaysWhereItIs is the history that made backfills part of the view: chosen anew
// each time, the backfill moves to n2 when b ends, n1 is filled behind its back, and the
// large gang waits for gangs that came after it.
func TestBackfillStaysWhereItIs(t *testing.T) {
	nodes := plantest.Nodes(2, 8, 3, 80)
	run := func(job int64, gpus int) *order.Candidate {
		return plantest.Candidate(job, api.Spec{Size: 1, GPUsPerRank: gpus})
	}
	place := func(at int, job int64, cards ...string) {
		n, err := nodes[at].Take(cluster.GrantFor(run(job, len(cards)).Ask, api.MemberKey{Job: job, Epoch: 1},
			[]cluster.Slot{{Node: nodes[at].Name, Cards: cards}}, plantest.Epoch0))
		if err != nil {
			t.Fatal(err)
		}
		nodes[at] = n
	}
	place(0, 1, "n00001-0", "n00001-1")
	place(1, 2, "n00002-0", "n00002-1")
	v := &given.View{Nodes: nodes}
	large := run(10, 3)
	step := func(ended int64, small *order.Candidate) []Start {
		for i, n := range v.Nodes {
			v.Nodes[i] = n.Release(api.MemberKey{Job: ended, Epoch: 1})
		}
		v.Queue = plantest.QueueOf(large, small)
		plan := planned(t, plantest.Epoch0, v, &order.Policy{})
		v.Backfills = plan.Backfills
		for _, s := range plan.Starts {
			if s.Job != large.Job {
				v.Nodes = plantest.Apply(t, v.Nodes, small, 1, s.Slots)
			}
		}
		return plan.Starts
	}
	if s := step(0, run(11, 1)); len(s) != 1 || s[0].Slots[0].Node != "n00002" {
		t.Fatalf("with a claim on n1 the small gang starts on n2, not %v", s)
	}
	if s := step(2, run(12, 1)); len(s) != 1 || s[0].Slots[0].Node != "n00002" {
		t.Fatalf("job 2 has ended, the claim stays on n1: the small gang starts on n2, not %v", s)
	}
	if s := step(1, run(13, 1)); len(s) == 0 || s[0].Job != large.Job {
		t.Fatalf("all that ran before has ended: the large gang starts, not %v", s)
	}
}

// TestBoundedPlanKeepsBackfills: a plan that ends before the taker's turn hands its backfill on.
func TestBoundedPlanKeepsBackfills(t *testing.T) {
	nodes := plantest.Nodes(2, 8, 2, 80)
	nodes[0], nodes[1] = plantest.Hold(nodes[0], 900, 0, true, 0), plantest.Hold(nodes[1], 901, 0, true, 0)
	large := plantest.Candidate(10, api.Spec{Size: 1, GPUsPerRank: 2})
	v := &given.View{Nodes: nodes, Queue: plantest.QueueOf(large)}
	v.Backfills = planned(t, plantest.Epoch0, v, &order.Policy{}).Backfills
	urgent := plantest.Candidate(11, api.Spec{Size: 1, GPUsPerRank: 1})
	urgent.Priority = 5
	v.Queue = plantest.QueueOf(urgent, large)
	plan := planned(t, plantest.Epoch0, v, &order.Policy{MaxStarts: 1})
	if len(plan.Starts) != 1 || len(plan.Backfills) != 1 || plan.Backfills[0].Job != large.Job {
		t.Fatalf("%+v", plan)
	}
	v.Queue = plantest.QueueOf(urgent)
	if plan = planned(t, plantest.Epoch0, v, &order.Policy{MaxStarts: 1}); len(plan.Backfills) != 0 {
		t.Fatalf("the claimant is gone, its claim stays: %+v", plan.Backfills)
	}
}
