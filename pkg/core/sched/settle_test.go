package sched

import (
	"cmp"
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

// site is a small cluster under a clock, on which whoever is told to stop is gone and
// waits again in the same instant, with its work kept.
type site struct {
	t       testing.TB
	now     time.Time
	view    given.View
	policy  *order.Policy
	planner Planner
	runs    map[int64]*siteRun
	ends    map[int64]time.Duration // true durations, by job
	stopped int
	keeps   bool // candidates say that they keep their work
}

type siteRun struct {
	c     *order.Candidate
	epoch int
	r     *order.Running
	slots []cluster.Slot
}

func newSite(t testing.TB, p *order.Policy, nodes []*cluster.Node) *site {
	return &site{t: t, now: plantest.Epoch0, policy: p, view: given.View{Nodes: nodes, Queue: order.NewQueue(p, order.NewLedger(0))},
		runs: map[int64]*siteRun{}, ends: map[int64]time.Duration{}}
}

func (s *site) submit(job int64, spec api.Spec, limit, runs time.Duration) {
	c := plantest.Candidate(job, spec)
	c.Submit, c.TimeLimit, c.KeepsWork = s.now, limit, s.keeps
	s.ends[job] = runs
	s.runs[job] = &siteRun{c: c}
	s.view.Queue.Insert(c)
}

// settle plans until an instant has nothing more in it, and checks what holds of each: a
// gang starts once, and one that was stopped is stopped for somebody who starts.
func (s *site) settle() {
	stops := map[int64]int{}
	for rounds := 0; ; rounds++ {
		s.view.Queue.Refresh(s.now)
		plan := s.planner.Make(s.now, &s.view, s.policy)
		s.view.Backfills = plan.Backfills
		for _, st := range plan.Starts {
			s.start(st)
		}
		for _, st := range plan.Stops {
			if stops[st.Job]++; stops[st.Job] > 1 {
				s.t.Fatalf("%v: job %d is stopped twice in one instant, now for %d", s.now.Sub(plantest.Epoch0), st.Job, st.For)
			}
			s.stop(st.Job)
		}
		if len(plan.Stops) == 0 {
			return
		}
		if rounds > 200 {
			s.t.Fatalf("%v: no end of plans", s.now.Sub(plantest.Epoch0))
		}
	}
}

func (s *site) start(st Start) {
	x := s.runs[st.Job]
	if x.r != nil || s.view.Queue.Get(st.Job) == nil {
		s.t.Fatalf("%v: job %d starts, and does not wait", s.now.Sub(plantest.Epoch0), st.Job)
	}
	x.c = s.view.Queue.Get(st.Job)
	x.epoch++
	x.slots = st.Slots
	until := time.Time{}
	if x.c.TimeLimit > 0 {
		until = s.now.Add(x.c.TimeLimit)
	}
	for _, g := range grantsBySlots(x.c, st.Slots, x.epoch, until) {
		at := slices.IndexFunc(s.view.Nodes, func(n *cluster.Node) bool { return n.Name == g.node })
		n, err := s.view.Nodes[at].Take(g.Grant)
		if err != nil {
			s.t.Fatalf("job %d: %v", st.Job, err)
		}
		s.view.Nodes[at] = n
	}
	x.r = &order.Running{Job: st.Job, Epoch: x.epoch, Cards: order.CardsOf(x.c.Ask), Submit: x.c.Submit,
		Start: s.now, TimeLimit: x.c.TimeLimit, Attained: x.c.Attained, KeepsWork: true}
	at, _ := slices.BinarySearchFunc(s.view.Running, st.Job, func(r *order.Running, job int64) int { return cmp.Compare(r.Job, job) })
	s.view.Running = slices.Insert(s.view.Running, at, x.r)
	s.view.Queue.Remove(st.Job)
}

type siteGrant struct {
	node string
	cluster.Grant
}

func grantsBySlots(c *order.Candidate, slots []cluster.Slot, epoch int, until time.Time) (out []siteGrant) {
	for len(slots) > 0 {
		n := 1
		for n < len(slots) && slots[n].Node == slots[0].Node {
			n++
		}
		out = append(out, siteGrant{slots[0].Node, cluster.GrantFor(c.Ask, api.MemberKey{Job: c.Job, Epoch: epoch}, slots[:n], until)})
		slots = slots[n:]
	}
	return out
}

// leave takes a gang off its nodes.
func (s *site) leave(job int64) time.Duration {
	x := s.runs[job]
	for i, n := range s.view.Nodes {
		s.view.Nodes[i] = n.Release(api.MemberKey{Job: job, Epoch: x.epoch})
	}
	s.view.Running = slices.DeleteFunc(s.view.Running, func(r *order.Running) bool { return r.Job == job })
	ran := s.now.Sub(x.r.Start)
	s.view.Queue.Ledger().Add(order.Usage{Peer: order.Peer{Cards: x.r.Cards}, Ran: ran, Ended: s.now})
	x.r = nil
	return ran
}

func (s *site) stop(job int64) {
	if s.runs[job].r == nil {
		s.t.Fatalf("job %d is stopped, and does not run", job)
	}
	s.stopped++
	again := *s.runs[job].c
	again.Attained += s.leave(job)
	s.runs[job].c = &again
	s.view.Queue.Insert(&again)
}

// end ends the next gang that has run for its true duration; false: none runs.
func (s *site) end() bool {
	var first *siteRun
	var at time.Time
	for _, r := range s.view.Running {
		x := s.runs[r.Job]
		if t := r.Start.Add(s.ends[r.Job] - r.Attained); first == nil || t.Before(at) {
			first, at = x, t
		}
	}
	if first == nil {
		return false
	}
	if at.After(s.now) {
		s.now = at
	}
	job := first.c.Job
	s.leave(job)
	delete(s.runs, job)
	return true
}

// TestInstantsEnd: whatever is submitted and ends, and whatever the policy, no gang starts
// twice or is stopped twice in one instant, and all of them come to their end.
func TestInstantsEnd(t *testing.T) {
	stopped := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := &order.Policy{Preempt: rapid.SampledFrom([]order.Preempt{order.PreemptOff, order.PreemptService, order.PreemptService}).Draw(rt, "preempt"),
			BackfillDepth: rapid.IntRange(1, 4).Draw(rt, "backfills"), GuardAfter: time.Duration(rapid.SampledFrom([]int{0, 1, 5, 48}).Draw(rt, "guard")) * time.Hour}
		s := newSite(fataler{t, rt}, p, plantest.Nodes(rapid.IntRange(2, 6).Draw(rt, "nodes"), 64, 4, 80))
		s.keeps = rapid.Bool().Draw(rt, "keeps")
		limited := rapid.IntRange(0, 3).Draw(rt, "limited") > 0
		n := rapid.IntRange(10, 60).Draw(rt, "jobs")
		for i := range n {
			cards := rapid.SampledFrom([]int{1, 2, 4, 4, 4, 8, 16}).Draw(rt, "cards")
			cards = min(cards, 4*len(s.view.Nodes))
			spec := api.Spec{Size: max(1, cards/4), GPUsPerRank: min(4, cards)}
			runs := time.Duration(rapid.SampledFrom([]int{5, 30, 60, 300, 3000, 9000}).Draw(rt, "minutes")) * time.Minute
			limit := runs * time.Duration(rapid.IntRange(1, 8).Draw(rt, "factor"))
			if !limited {
				limit = 0
			}
			s.submit(int64(i+1), spec, limit, runs)
			s.settle()
			if r := s.runs[int64(i+1)].r; r != nil {
				r.Final = rapid.IntRange(0, 4).Draw(rt, "final") == 0
			}
			for range rapid.IntRange(0, 2).Draw(rt, "ends") {
				if s.end() {
					s.settle()
				}
			}
			s.now = s.now.Add(time.Duration(rapid.IntRange(0, 60).Draw(rt, "later")) * time.Minute)
			for range len(s.view.Running) { // what should have ended meanwhile
				if !s.due() || !s.end() {
					break
				}
				s.settle()
			}
		}
		for s.end() {
			s.settle()
		}
		if len(s.runs) > 0 {
			rt.Fatalf("%d gangs never end", len(s.runs))
		}
		stopped += s.stopped
	})
	if stopped == 0 {
		t.Error("nobody was ever preempted")
	}
}

// due reports whether something that runs should have ended by now.
func (s *site) due() bool {
	return slices.ContainsFunc(s.view.Running, func(r *order.Running) bool {
		return !r.Start.Add(s.ends[r.Job] - r.Attained).After(s.now)
	})
}

// fataler is a testing.TB whose failures are those of a drawn example.
type fataler struct {
	testing.TB
	rt *rapid.T
}

func (f fataler) Fatalf(format string, args ...any) { f.rt.Fatalf(format, args...) }

// TestMoveIsNotCrossed: a move whose victims are gone is served, though its places are also
// those of a backfill for later and a longer gang with a backfill would fit there. That gang would
// be the next victim, and the one stopped first the next with a backfill, without end.
func TestMoveIsNotCrossed(t *testing.T) {
	s := newSite(t, &order.Policy{Preempt: order.PreemptService, BackfillDepth: 2}, plantest.Nodes(3, 64, 4, 80))
	one, two := api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}, api.Spec{Size: 8, GPUsPerRank: 1}
	s.submit(1, one, 180*time.Hour, 100*time.Hour)
	s.settle()
	s.runs[1].r.KeepsWork = false
	s.submit(6, one, 190*time.Hour, 100*time.Hour)
	s.settle()
	s.runs[6].r.KeepsWork = false
	s.submit(2, one, 170*time.Hour, 100*time.Hour)
	s.settle()
	s.submit(3, two, time.Hour, time.Hour)
	s.submit(4, one, 160*time.Hour, 100*time.Hour)
	s.settle()
	if len(s.view.Backfills) != 2 || s.stopped != 0 {
		t.Fatalf("%d stopped, backfills %+v", s.stopped, s.view.Backfills)
	}
	s.submit(5, one, 24*time.Hour, 20*time.Hour)
	s.settle()
	if s.runs[5].r == nil || s.stopped != 1 {
		t.Errorf("%d stopped; job 5 runs: %v", s.stopped, s.runs[5].r != nil)
	}
}

// TestYieldersUseClaimedPlaces: with preemption among equals a gang that keeps its work runs
// where places are kept for a shorter one, and others do not. The shorter one takes them as
// soon as that lets it start, and who waited too long keeps everybody off.
func TestYieldersUseClaimedPlaces(t *testing.T) {
	for _, tt := range []struct {
		name  string
		keeps bool
		guard time.Duration
		order order.Order
		runs  bool
	}{
		{"keeps its work", true, 0, order.OrderService, true},
		{"would lose it", false, 0, order.OrderService, false},
		{"who waited too long", true, 2 * time.Minute, order.OrderService, false},
		{"who waited as long as what waits needs", true, time.Hour, order.OrderService, true},
		{"another order", true, 0, order.OrderFIFO, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, &order.Policy{Preempt: order.PreemptService, BackfillDepth: 1, GuardAfter: tt.guard, Order: tt.order}, plantest.Nodes(2, 64, 4, 80))
			s.keeps = tt.keeps
			one, two := api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}, api.Spec{Size: 8, GPUsPerRank: 1}
			s.submit(1, one, 10*time.Hour, 9*time.Hour)
			s.settle()
			s.runs[1].r.KeepsWork = false
			s.submit(2, two, time.Hour, time.Hour)
			s.settle()
			s.now = s.now.Add(2 * time.Hour)
			s.submit(3, one, 100*time.Hour, 90*time.Hour)
			s.settle()
			if (s.runs[3].r != nil) != tt.runs {
				t.Fatalf("job 3 runs: %v, want %v", s.runs[3].r != nil, tt.runs)
			}
			s.end()
			for s.runs[1] != nil {
				s.end()
			}
			s.settle()
			if s.runs[2].r == nil {
				t.Errorf("job 1 has ended, and job 2 does not run; backfills %+v", s.view.Backfills)
			}
		})
	}
}
