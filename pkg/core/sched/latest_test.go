package sched

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// standing is a cluster of single cards under a queue that never gets empty.
type standing struct {
	t         *rapid.T
	policy    *order.Policy
	queue     *order.Queue
	planner   Planner
	nodes     []*cluster.Node
	backfills []given.Backfill
	runs      map[int64]*life
	tick      int
	next      int64
	limit     int // the longest, in seconds
}

// life is a gang that runs.
type life struct {
	c    *order.Candidate
	r    *order.Running
	ends int // second
}

func (s *standing) now() time.Time { return plantest.Epoch0.Add(time.Duration(s.tick) * time.Second) }

func (s *standing) submit(size, limit int) int64 {
	s.next++
	c := plantest.Candidate(s.next, api.Spec{Size: size, GPUsPerRank: 1})
	c.TimeLimit, c.Submit, c.KeepsWork = time.Duration(limit)*time.Second, s.now(), rapid.Bool().Draw(s.t, "keeps work")
	s.queue.Insert(c)
	return s.next
}

// fill has so many gangs of a card wait.
func (s *standing) fill(waiting int) {
	for s.queue.Len() < waiting {
		s.submit(1, rapid.IntRange(1, s.limit).Draw(s.t, "limit"))
	}
}

func (s *standing) view() *given.View {
	v := &given.View{Nodes: s.nodes, Queue: s.queue, Backfills: s.backfills}
	for _, l := range s.runs {
		v.Running = order.PutRunning(v.Running, l.r.Job, l.r)
	}
	return v
}

func (s *standing) free(job int64) {
	epoch := s.runs[job].r.Epoch
	for i, n := range s.nodes {
		s.nodes[i] = n.Release(api.MemberKey{Job: job, Epoch: epoch})
	}
	delete(s.runs, job)
}

// step lets a second pass: what is over ends, what may starts, and who is preempted waits again
// with what it worked.
func (s *standing) step() (started []int64) {
	s.tick++
	for job, l := range s.runs {
		if l.ends <= s.tick {
			s.free(job)
		}
	}
	s.queue.Refresh(s.now())
	plan := s.planner.Make(s.now(), s.view(), s.policy)
	s.backfills = plan.Backfills
	for _, st := range plan.Starts {
		c := s.queue.Get(st.Job)
		s.nodes = plantest.ApplyUntil(s.t, s.nodes, c, s.tick, st.Slots, s.now().Add(c.TimeLimit))
		s.queue.Remove(st.Job)
		limit := int(c.TimeLimit / time.Second)
		s.runs[st.Job] = &life{c, &order.Running{Job: st.Job, Epoch: s.tick, Cards: len(st.Slots), Submit: c.Submit, Start: s.now(),
			TimeLimit: c.TimeLimit, Attained: c.Attained, KeepsWork: c.KeepsWork, Turn: st.Turn}, s.tick + rapid.IntRange(1, limit).Draw(s.t, "runs")}
		started = append(started, st.Job)
	}
	for _, st := range plan.Stops {
		l := s.runs[st.Job]
		s.free(st.Job)
		c := *l.c
		if c.KeepsWork {
			c.Attained += s.now().Sub(l.r.Start)
		}
		s.queue.Insert(&c)
	}
	return started
}

// TestStartedAsStated: under a queue of small gangs that never gets empty a large one has started
// by the time that is said when it comes, in each order, with each preemption, whatever part of the
// cards those may have that waited, and whenever these are due.
func TestStartedAsStated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &order.Policy{
			Order:         rapid.SampledFrom(order.Orders).Draw(t, "order"),
			Preempt:       rapid.SampledFrom([]order.Preempt{order.PreemptOff, order.PreemptTier, order.PreemptService}).Draw(t, "preempt"),
			BackfillDepth: rapid.IntRange(1, 3).Draw(t, "depth"),
			GuardAfter:    time.Duration(rapid.SampledFrom([]int{1, 8, 60}).Draw(t, "guard after")) * time.Second,
			GuardShare:    float64(rapid.SampledFrom([]int{1, 10, 50, 100}).Draw(t, "guard percent")) / 100,
		}
		s := &standing{t: t, policy: p, queue: order.NewQueue(p, nil), runs: map[int64]*life{}, limit: rapid.IntRange(1, 6).Draw(t, "longest limit")}
		s.nodes = plantest.Nodes(rapid.IntRange(1, 3).Draw(t, "nodes"), 16, 4, 80)
		waiting := rapid.IntRange(1, 12).Draw(t, "always wait")
		for range rapid.IntRange(0, 20).Draw(t, "seconds before") {
			s.fill(waiting)
			s.step()
		}
		s.fill(waiting)
		ours := s.submit(rapid.IntRange(2, 4*len(s.nodes)).Draw(t, "size"), s.limit)
		by, longest := new(Planner).planner(s.now(), s.view(), p).why.LatestStart(s.queue.Get(ours))
		if by.IsZero() || longest != time.Duration(s.limit)*time.Second {
			t.Fatalf("to start by %s, the longest limit is %s of %d s", by, longest, s.limit)
		}
		came := s.tick
		for !slices.Contains(s.step(), ours) {
			s.fill(waiting)
			if s.now().After(by) {
				t.Fatalf("waits %d s after it came, was to start within %s", s.tick-came, by.Sub(plantest.Epoch0)-time.Duration(came)*time.Second)
			}
		}
	})
}
