package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// TestPatienceByCards: on eight nodes of eight cards a tenth of the cards is 6.4. Whoever is
// larger is let in the later, with preemption among equals; never later than 50 times.
func TestPatienceByCards(t *testing.T) {
	for _, tt := range []struct {
		preempt order.Preempt
		share   float64
		cards   int
		want    string
	}{
		{order.PreemptService, 0, 1, "48h0m0s"},
		{order.PreemptService, 0, 6, "48h0m0s"},
		{order.PreemptService, 0, 8, "75h0m0s"},
		{order.PreemptService, 0, 32, "1200h0m0s"},
		{order.PreemptService, 0, 64, "2400h0m0s"},
		{order.PreemptService, 0.5, 32, "48h0m0s"},
		{order.PreemptTier, 0, 64, "48h0m0s"},
		{order.PreemptOff, 0, 64, "48h0m0s"},
	} {
		p := &order.Policy{Preempt: tt.preempt, GuardAfter: 48 * time.Hour, GuardShare: tt.share}
		v := &given.View{Nodes: plantest.Nodes(8, 64, 8, 80), Queue: order.NewQueue(p, nil)}
		pl := new(Planner).planner(plantest.Epoch0, v, p)
		if got := pl.guard.PatienceFor(tt.cards).Round(time.Second).String(); got != tt.want {
			t.Errorf("%s, part %v, %d cards: %s, want %s", tt.preempt, tt.share, tt.cards, got, tt.want)
		}
	}
}

// TestLargeGangsWaitBehindTheFront: a gang of all cards has waited for four days, one of a
// card for three: the small one is at the front, and the plan is made again when the large
// one will be.
func TestLargeGangsWaitBehindTheFront(t *testing.T) {
	p := &order.Policy{Preempt: order.PreemptService, GuardAfter: 48 * time.Hour}
	large := plantest.Candidate(1, api.Spec{Size: 8, GPUsPerRank: 8})
	small := plantest.Candidate(2, api.Spec{Size: 1, GPUsPerRank: 1})
	for _, c := range []*order.Candidate{large, small} {
		c.TimeLimit, c.KeepsWork = time.Hour, true
		c.Submit = plantest.Epoch0.Add(-time.Duration(5-c.Job) * 24 * time.Hour)
	}
	front := func(at time.Time) string {
		q := order.NewQueue(p, nil)
		q.Insert(large)
		q.Insert(small)
		pl := new(Planner).planner(at, &given.View{Nodes: plantest.Nodes(8, 64, 8, 80), Queue: q}, p)
		text := ""
		for _, c := range pl.guard.Guarded {
			text += fmt.Sprintf("%d ", c.Job)
		}
		return text + pl.Next.Sub(plantest.Epoch0).String()
	}
	if got, want := front(plantest.Epoch0), "2 2304h0m0s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := front(plantest.Epoch0.Add(2304*time.Hour)), "1 "; got[:2] != want {
		t.Errorf("100 days after its submission: %s, want the large gang at the front", got)
	}
}

// TestTurnByOwnLimit: in order of service a gang goes to the front when it has waited four times
// its own time limit since it could have started.
func TestTurnByOwnLimit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy order.Policy
		change func(*order.Candidate)
		want   time.Duration // -1: never
	}{
		{"by its limit", order.Policy{GuardAfter: 48 * time.Hour}, func(c *order.Candidate) {}, 4 * time.Hour},
		{"since it could have started", order.Policy{GuardAfter: 48 * time.Hour}, func(c *order.Candidate) { c.Eligible = plantest.Epoch0.Add(7 * time.Hour) }, 11 * time.Hour},
		{"it ran meanwhile", order.Policy{GuardAfter: 48 * time.Hour}, func(c *order.Candidate) { c.Attained = 5 * time.Hour }, 9 * time.Hour},
		{"it ran before it could start again", order.Policy{GuardAfter: 48 * time.Hour}, func(c *order.Candidate) { c.Attained, c.Eligible = 5*time.Hour, plantest.Epoch0.Add(6*time.Hour) }, 10 * time.Hour},
		{"what is too long for any is less", order.Policy{GuardAfter: 3 * time.Hour}, func(c *order.Candidate) {}, 3 * time.Hour},
		{"no limit", order.Policy{GuardAfter: 48 * time.Hour}, func(c *order.Candidate) { c.TimeLimit = 0 }, 48 * time.Hour},
		{"no end", order.Policy{GuardAfter: 48 * time.Hour}, func(c *order.Candidate) { c.TimeLimit = 1 << 62 }, 48 * time.Hour},
		{"off", order.Policy{}, func(c *order.Candidate) {}, -1},
		{"another order", order.Policy{GuardAfter: 48 * time.Hour, Order: order.OrderFair}, func(c *order.Candidate) {}, 48 * time.Hour},
		{"preemption by service", order.Policy{GuardAfter: 48 * time.Hour, Preempt: order.PreemptService}, func(c *order.Candidate) {}, 48 * time.Hour},
		{"preemption by tier", order.Policy{GuardAfter: 48 * time.Hour, Preempt: order.PreemptTier}, func(c *order.Candidate) {}, 4 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := plantest.Lasting(1, 1, 60)
			c.Submit = plantest.Epoch0
			tt.change(c)
			q := order.NewQueue(&tt.policy, nil)
			q.Insert(c)
			at := func(now time.Duration) *planner {
				return new(Planner).planner(plantest.Epoch0.Add(now), &given.View{Nodes: plantest.Nodes(10, 4, 1, 80), Queue: q}, &tt.policy)
			}
			if tt.want < 0 {
				if pl := at(1000 * time.Hour); len(pl.Front) > 0 || !pl.Next.IsZero() {
					t.Errorf("at the front %v, next %s", pl.Front, pl.Next)
				}
				return
			}
			if pl := at(tt.want - 1); len(pl.Front) > 0 || !pl.Next.Equal(plantest.Epoch0.Add(tt.want)) {
				t.Errorf("before its turn: at the front %v, next %s", pl.Front, pl.Next.Sub(plantest.Epoch0))
			}
			if pl := at(tt.want); pl.Front[1] == order.NoTurn {
				t.Error("it is not at the front when its turn has come")
			}
		})
	}
}

// TestTurnsWithinThePart: who waited too long for any comes before who did for its own limit, and
// both together are let in up to the part of the cards.
func TestTurnsWithinThePart(t *testing.T) {
	ago := func(c *order.Candidate, d time.Duration) *order.Candidate {
		c.Submit = plantest.Epoch0.Add(-d)
		return c
	}
	own := func(job int64, cards int) *order.Candidate { // its turn came job minutes ago
		return ago(plantest.Lasting(job, cards, 60), 4*time.Hour+time.Duration(job)*time.Minute)
	}
	long := func(job int64, cards int) *order.Candidate {
		return ago(plantest.Lasting(job, cards, 60*24), 72*time.Hour)
	}
	running := func(turn order.Turn, cards int) *order.Running { // it waited for three days, however it started
		return &order.Running{Job: 90, Cards: cards, TimeLimit: time.Hour, Submit: plantest.Epoch0.Add(-73 * time.Hour), Start: plantest.Epoch0.Add(-time.Hour), Turn: turn}
	}
	across := func(c *order.Candidate) *order.Candidate {
		c.Ask = plantest.Candidate(2, api.Spec{Size: 20, GPUsPerRank: 1}).Ask
		return c
	}
	capped := func(c *order.Candidate) *order.Candidate { c.Account = "small"; return c }
	for _, tt := range []struct {
		name    string
		waiting []*order.Candidate
		running []*order.Running
		want    string
	}{
		{"as far as the part reaches", []*order.Candidate{own(1, 4), own(2, 3), own(3, 1)}, nil, "3 2 1"},
		{"the first beyond it", []*order.Candidate{own(1, 1), own(2, 5), own(3, 4)}, nil, "3"},
		{"one is always let in", []*order.Candidate{own(1, 1), across(own(2, 20))}, nil, "2"},
		{"none beside one that runs", []*order.Candidate{own(1, 1)}, []*order.Running{running(order.TurnOwn, 8)}, ""},
		{"beside one that runs", []*order.Candidate{own(1, 1), own(2, 3)}, []*order.Running{running(order.TurnOwn, 5)}, "2"},
		{"none beside one that waited too long for any", []*order.Candidate{own(1, 1)}, []*order.Running{running(order.TurnLong, 8)}, ""},
		{"beside one that started at its place", []*order.Candidate{own(1, 1), own(2, 8)}, []*order.Running{running(order.NoTurn, 80)}, "2"},
		{"a large one beside one that started at its place", []*order.Candidate{across(own(1, 20))}, []*order.Running{running(order.NoTurn, 60)}, "1"},
		{"too long for any first", []*order.Candidate{own(1, 4), own(2, 4), long(3, 4)}, nil, "3 2"},
		{"too long in both ways", []*order.Candidate{ago(plantest.Lasting(1, 4, 60), 72*time.Hour), own(2, 4)}, nil, "1 2"},
		{"none while one of these waits for the part", []*order.Candidate{own(1, 1), long(2, 8)}, []*order.Running{running(order.TurnLong, 1)}, ""},
		{"who is bound by a cap comes later", []*order.Candidate{own(1, 1), capped(own(2, 8))}, nil, "1"},
		{"who asks for what there is not comes later", []*order.Candidate{own(1, 1), own(2, 9)}, nil, "1"},
		{"also beside those too long for any", []*order.Candidate{own(1, 1), capped(long(2, 8)), long(3, 9)}, nil, "1"},
		{"those do not wait for these", []*order.Candidate{own(1, 1), long(2, 8)}, []*order.Running{running(order.TurnOwn, 8)}, "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &order.Policy{GuardAfter: 48 * time.Hour, Accounts: []order.Account{{Name: "small", Cards: 2}}}
			v := &given.View{Nodes: plantest.Nodes(10, 64, 8, 80), Queue: order.NewQueue(p, nil), Running: tt.running}
			for _, c := range tt.waiting {
				v.Queue.Insert(c)
			}
			var got []string
			for _, c := range new(Planner).planner(plantest.Epoch0, v, p).guard.Guarded {
				got = append(got, fmt.Sprint(c.Job))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("at the front %v, want %s", got, tt.want)
			}
		})
	}
}

// TestNextTurn: a plan is to be made again at the next turn, also when others have come.
func TestNextTurn(t *testing.T) {
	p := &order.Policy{GuardAfter: 48 * time.Hour}
	q := order.NewQueue(p, nil)
	for job, limit := range map[int64]int{1: 60, 2: 90, 3: 120} {
		c := plantest.Lasting(job, 1, limit)
		c.Submit = plantest.Epoch0
		q.Insert(c)
	}
	pl := new(Planner).planner(plantest.Epoch0.Add(4*time.Hour), &given.View{Nodes: plantest.Nodes(10, 4, 1, 80), Queue: q}, p)
	if want := plantest.Epoch0.Add(6 * time.Hour); !pl.Next.Equal(want) || len(pl.Front) != 1 {
		t.Errorf("next %s, want %s; at the front %v", pl.Next, want, pl.Front)
	}
}

// TestBackfillsAtTheFront: who waited too long for any has one backfill beside all others, also those
// of gangs at the front for their own limits; these have one when there is no other at the front.
func TestBackfillsAtTheFront(t *testing.T) {
	ago := func(c *order.Candidate, d time.Duration) *order.Candidate {
		c.Submit = plantest.Epoch0.Add(-d)
		return c
	}
	p := &order.Policy{GuardAfter: 48 * time.Hour, GuardShare: 1, BackfillDepth: 1}
	var nodes []*cluster.Node
	for i := range 4 {
		nodes = append(nodes, plantest.Run(plantest.Node(fmt.Sprint("n", i+1), 32, 4, 80), 90+int64(i), 60+60*i, 0, 1, 2, 3))
	}
	own, later := ago(plantest.Lasting(1, 4, 60), 5*time.Hour), ago(plantest.Lasting(3, 4, 60), 270*time.Minute)
	long, short := ago(plantest.Lasting(2, 4, 60*24), 72*time.Hour), ago(plantest.Lasting(4, 4, 30), 0)
	for _, tt := range []struct {
		name  string
		first []*order.Candidate // who has a backfill when the others come
		want  string
	}{
		{"all at once", nil, "2 4"},
		{"who had one keeps it", []*order.Candidate{own}, "1 2 4"},
	} {
		q := order.NewQueue(p, nil)
		v := &given.View{Nodes: nodes, Queue: q}
		for _, c := range tt.first {
			q.Insert(c)
		}
		v.Backfills = planned(t, plantest.Epoch0, v, p).Backfills
		for _, c := range []*order.Candidate{own, long, later, short} {
			q.Insert(c)
		}
		var got []int
		for _, c := range planned(t, plantest.Epoch0, v, p).Backfills {
			got = append(got, int(c.Job))
		}
		slices.Sort(got)
		if text := strings.Trim(fmt.Sprint(got), "[]"); text != tt.want {
			t.Errorf("%s: backfills of %s, want %s", tt.name, text, tt.want)
		}
	}
}
