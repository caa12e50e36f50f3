package sched

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// stream is a cluster of single cards under gangs of one size that never stop coming.
type stream struct {
	t         *testing.T
	policy    *order.Policy
	queue     *order.Queue
	planner   Planner
	nodes     []*cluster.Node
	backfills []given.Backfill
	ends      map[int64]int // tick
	asks      map[int64]*order.Candidate
	tick      int
	next      int64
}

func newStream(t *testing.T, nodes int, p *order.Policy) *stream {
	return &stream{t: t, policy: p, queue: order.NewQueue(p, nil), nodes: plantest.Nodes(nodes, 4, 1, 80), ends: map[int64]int{}, asks: map[int64]*order.Candidate{}}
}

func (s *stream) now() time.Time { return plantest.Epoch0.Add(time.Duration(s.tick) * time.Second) }

func (s *stream) submit(size int, priority int64, limit time.Duration) int64 {
	s.next++
	c := plantest.Candidate(s.next, api.Spec{Size: size, GPUsPerRank: 1})
	c.Priority, c.TimeLimit, c.Submit = priority, limit, s.now()
	s.queue.Insert(c)
	return s.next
}

// step lets a second pass: what is over ends, and what may starts for five to nine more.
func (s *stream) step() (started []int64) {
	s.tick++
	for job, end := range s.ends {
		if end <= s.tick {
			delete(s.ends, job)
			for i, n := range s.nodes {
				s.nodes[i] = n.Release(api.MemberKey{Job: job, Epoch: 1})
			}
		}
	}
	plan := s.planner.Make(s.now(), &given.View{Nodes: s.nodes, Queue: s.queue, Backfills: s.backfills}, s.policy)
	s.backfills = plan.Backfills
	for _, st := range plan.Starts {
		c, until := s.queue.Get(st.Job), time.Time{}
		if c.TimeLimit > 0 {
			until = s.now().Add(c.TimeLimit)
		}
		s.nodes = plantest.ApplyUntil(s.t, s.nodes, c, 1, st.Slots, until)
		s.queue.Remove(st.Job)
		s.ends[st.Job] = s.tick + 5 + int(st.Job%5)
		started = append(started, st.Job)
	}
	return started
}

// TestUnderAStream: a gang of 4 under an endless stream of gangs of 2, and an urgent one of
// 2 under a stream of gangs of 3, start as soon as what ran at their submission has ended.
func TestUnderAStream(t *testing.T) {
	for _, by := range order.Orders {
		for _, tt := range []struct {
			name         string
			nodes        int
			flow, size   int
			priority     int64
			limit        time.Duration
			perStep      int
			orders       string
			waitingFirst int
		}{
			{name: "4 under 2s", nodes: 4, flow: 2, size: 4, perStep: 1},
			{name: "4 under many 2s", nodes: 4, flow: 2, size: 4, perStep: 3, waitingFirst: 50},
			{name: "4 under 2s of an hour", nodes: 4, flow: 2, size: 4, perStep: 1, limit: time.Hour},
			{name: "urgent 2 under 3s", nodes: 4, flow: 3, size: 2, priority: 1, perStep: 2},
			{name: "urgent 2 under 3s of an hour", nodes: 4, flow: 3, size: 2, priority: 1, perStep: 2, limit: time.Hour},
		} {
			if by == order.OrderLargest && tt.priority > 0 {
				continue // there size is the key
			}
			t.Run(fmt.Sprintf("%s/%s", by, tt.name), func(t *testing.T) {
				shorter := by == order.OrderService && tt.priority == 0
				s := newStream(t, tt.nodes, &order.Policy{Order: by, BackfillDepth: 4, GuardAfter: time.Minute})
				for range tt.waitingFirst {
					s.submit(tt.flow, 0, tt.limit)
				}
				for range 20 {
					s.submit(tt.flow, 0, tt.limit)
					s.step()
					if by == order.OrderFIFO || by == order.OrderFair {
						tt.perStep = 1 // who came before may go before
					}
				}
				ours := s.submit(tt.size, tt.priority, tt.limit)
				ahead := s.queue.Position(ours)
				last := 0
				for _, end := range s.ends {
					last = max(last, end)
				}
				switch {
				case shorter:
					last += 60 // gangs that need half as much, or of which nothing is known, go first until it has waited too long
				case by == order.OrderFIFO || by == order.OrderFair && tt.priority == 0:
					last += 10 * (ahead + 1) // those rightly before it come first
				}
				for {
					for range tt.perStep {
						s.submit(tt.flow, 0, tt.limit)
					}
					started := s.step()
					for _, job := range started {
						if job == ours {
							return
						}
					}
					if s.tick > last {
						t.Fatalf("not started at second %d, when all that ran or was ahead (%d) has ended by %d", s.tick, ahead, last)
					}
				}
			})
		}
	}
}

// TestUnderAStreamOfShorter: gangs of 2 that are expected to run shorter than the one of 4 hold
// it up, but no longer than four times what it is expected to run; those that run as long do not
// at all, once it has a backfill. No wait is long enough here for a gang to go to the front.
func TestUnderAStreamOfShorter(t *testing.T) {
	const limit = 10 * time.Second
	wait := int(kept.GiveWay * (*order.Ledger)(nil).Average(limit, 0, order.Peer{}) / time.Second)
	for _, tt := range []struct {
		limit time.Duration
		held  int // for so many seconds
	}{
		{limit, 0},
		{limit / 2, wait},
	} {
		s := newStream(t, 4, &order.Policy{BackfillDepth: 4})
		s.submit(4, 1, limit)
		s.step()
		ours := s.submit(4, 0, limit)
		s.step()
		came, started := s.tick, 0
		for started == 0 && s.tick < 10*wait {
			for s.queue.Len() < 4 {
				s.submit(2, 0, tt.limit)
			}
			if slices.Contains(s.step(), ours) {
				started = s.tick
			}
		}
		// Two runs of ten seconds at most: what ran when it came, and who was let before it last.
		if started < came+tt.held || started > came+tt.held+20 {
			t.Errorf("gangs with a limit of %v: started after %d s (0 s: never), they may hold it up for %d s", tt.limit, max(0, started-came), tt.held)
		}
	}
}

// TestUnderAStreamOfSmaller: where so many gangs of 2 always wait that the one of 4 never has a
// backfill, its turn comes when it has waited four times its time limit and those that were there
// before it have had theirs.
func TestUnderAStreamOfSmaller(t *testing.T) {
	const limit = 10 * time.Second
	s := newStream(t, 4, &order.Policy{BackfillDepth: 4, GuardAfter: 48 * time.Hour})
	for range 20 {
		s.submit(2, 0, limit)
	}
	s.step()
	ours := s.submit(4, 0, limit)
	ahead, came := s.queue.Position(ours), s.tick
	// Those ahead run two at a time, for ten seconds at most.
	last := came + order.OwnPatience*10 + (ahead/2+2)*10
	for started := []int64(nil); !slices.Contains(started, ours); started = s.step() {
		for range 3 {
			s.submit(2, 0, limit)
		}
		if s.tick > last {
			t.Fatalf("not started at second %d, %d s after it came", s.tick, s.tick-came)
		}
	}
	if s.tick < came+order.OwnPatience*10 {
		t.Errorf("started %d s after it came: it had a claim", s.tick-came)
	}
}

// TestUnderAStreamBesideOneWithoutALimit: while one without a limit is in the way of a gang of 4, those of a stream that have a
// limit start on what is free, in each order; when it has ended, none that would hold the gang up.
func TestUnderAStreamBesideOneWithoutALimit(t *testing.T) {
	const limit, ends = 10, 40
	for _, by := range order.Orders {
		s := newStream(t, 4, &order.Policy{Order: by, BackfillDepth: 4, GuardAfter: time.Hour})
		first := s.submit(1, 0, 0)
		s.step()
		s.ends[first] = ends
		ours := s.submit(4, 1, limit*time.Second)
		for started := []int64(nil); !slices.Contains(started, ours); started = s.step() {
			for s.queue.Len() < 6 {
				s.submit(1, 0, limit*time.Second)
			}
			if s.tick > 1 && s.tick < ends && len(s.ends) < 4 {
				t.Fatalf("%s: %d of 4 cards are used at second %d", by, len(s.ends), s.tick)
			}
			if s.tick > ends+limit {
				t.Fatalf("%s: not started at second %d", by, s.tick)
			}
		}
		if s.tick < ends {
			t.Errorf("%s: started at second %d", by, s.tick)
		}
	}
}
