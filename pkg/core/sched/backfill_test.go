package sched

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// shortest may be cut to a minute.
func shortest(c *order.Candidate) *order.Candidate { c.TimeMin = time.Minute; return c }

// started and claimed write a plan down: "job@node", "job@node+minutes".
func started(p Plan) string {
	var out []string
	for _, s := range p.Starts {
		out = append(out, fmt.Sprintf("%d@%s", s.Job, s.Slots[0].Node))
	}
	return fmt.Sprint(out)
}

func claimed(p Plan) string {
	var out []string
	for _, c := range p.Backfills {
		text := fmt.Sprintf("%d@%s", c.Job, c.Slots[0].Node)
		if !c.At.IsZero() {
			text += fmt.Sprintf("+%g", c.At.Sub(plantest.Epoch0).Minutes())
		}
		out = append(out, text)
	}
	return fmt.Sprint(out)
}

func TestBackfill(t *testing.T) {
	nodes := func(list ...*cluster.Node) []*cluster.Node { return list }
	n := func(name string) *cluster.Node { return plantest.Node(name, 32, 4, 80) }
	fifo := func(backfills int) *order.Policy {
		return &order.Policy{Order: order.OrderFIFO, BackfillDepth: backfills}
	}
	for _, tt := range []struct {
		name    string
		nodes   []*cluster.Node
		policy  *order.Policy
		queue   []*order.Candidate
		starts  string
		claimed string
	}{
		{"what ends before the reservation uses its places", nodes(plantest.Run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*order.Candidate{plantest.Lasting(1, 4, 10), plantest.Lasting(2, 2, 60)}, "[2@n1]", "[1@n1+60]"},
		{"what would last longer does not", nodes(plantest.Run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*order.Candidate{plantest.Lasting(1, 4, 10), plantest.Lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor what has no limit", nodes(plantest.Run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*order.Candidate{plantest.Lasting(1, 4, 10), plantest.Lasting(2, 2, 0), plantest.Lasting(3, 1, 1)}, "[3@n1]", "[1@n1+60]"},
		{"beside the reserved places anything goes", nodes(plantest.Run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*order.Candidate{plantest.Lasting(1, 3, 10), plantest.Lasting(2, 1, 0), plantest.Lasting(3, 1, 0)}, "[2@n1]", "[1@n1+60]"},
		{"the place that is free first", nodes(plantest.Run(n("n1"), 90, 60, 0, 1, 2, 3), plantest.Run(n("n2"), 91, 30, 0, 1, 2, 3)), fifo(1),
			[]*order.Candidate{plantest.Lasting(1, 4, 10)}, "[]", "[1@n2+30]"},
		{"ends that are known before one that is not", nodes(plantest.Run(n("n1"), 90, 0, 0), plantest.Run(n("n2"), 91, 600, 0, 1, 2, 3)), fifo(1),
			[]*order.Candidate{plantest.Lasting(1, 4, 10)}, "[]", "[1@n2+600]"},
		{"no end known: what has a limit uses the places meanwhile", nodes(plantest.Run(n("n1"), 90, 0, 0)), fifo(1),
			[]*order.Candidate{plantest.Lasting(1, 4, 10), plantest.Lasting(2, 1, 0), plantest.Lasting(3, 1, 100000)}, "[3@n1]", "[1@n1]"},
		{"but nobody is given a limit for it", nodes(plantest.Run(n("n1"), 90, 0, 0)), fifo(1),
			[]*order.Candidate{plantest.Lasting(1, 4, 10), shortest(plantest.Lasting(2, 1, 0))}, "[]", "[1@n1]"},
		{"what is overdue ends soon", nodes(plantest.Run(n("n1"), 90, -600, 0)), fifo(1),
			[]*order.Candidate{plantest.Lasting(1, 4, 10), plantest.Lasting(2, 1, 5)}, "[]", "[1@n1+1]"},
		{"each of two reservations holds", nodes(plantest.Run(n("n1"), 90, 60, 0, 1), plantest.Run(n("n2"), 91, 120, 0, 1)), fifo(2),
			[]*order.Candidate{plantest.Lasting(1, 4, 10), plantest.Lasting(2, 4, 10), plantest.Lasting(3, 2, 60), plantest.Lasting(4, 2, 61), plantest.Lasting(5, 2, 120)},
			"[3@n1 4@n2]", "[1@n1+60 2@n2+120]"},
		{"what is being stopped ends sooner", nodes(plantest.Run(n("n1"), 90, 600, 0)), fifo(1),
			[]*order.Candidate{plantest.Lasting(1, 4, 10), plantest.Lasting(2, 1, 6)}, "[]", "[1@n1+5]"},
		{"the second one stands on what the first leaves", nodes(plantest.Run(n("n1"), 90, 60, 0, 1)), fifo(2),
			[]*order.Candidate{plantest.Lasting(1, 3, 10), plantest.Lasting(2, 2, 100)}, "[]", "[1@n1+60]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := order.NewQueue(tt.policy, nil)
			for _, c := range tt.queue {
				q.Insert(c)
			}
			v := &given.View{Nodes: tt.nodes, Queue: q}
			if strings.Contains(tt.name, "stopped") {
				v.Running = []*order.Running{{Job: 90, Epoch: 1, Cards: 1, Ending: order.Ending{Stopping: true, StopBy: plantest.Epoch0.Add(5 * time.Minute)}}}
			}
			plan := planned(t, plantest.Epoch0, v, tt.policy)
			if s, c := started(plan), claimed(plan); s != tt.starts || c != tt.claimed {
				t.Errorf("starts %s, backfills %s; want %s, %s", s, c, tt.starts, tt.claimed)
			}
		})
	}
}

// TestBackfillsGiveWay: with order=service a gang that comes later and is expected to run shorter
// may start on places that are kept for another one, but no other may, and not for ever.
func TestBackfillsGiveWay(t *testing.T) {
	ago := func(c *order.Candidate, d time.Duration) *order.Candidate {
		c.Submit = plantest.Epoch0.Add(-d)
		return c
	}
	expected := (*order.Ledger)(nil).Average(600*time.Minute, 0, order.Peer{})
	urgent := plantest.Lasting(4, 2, 100)
	urgent.Priority = 1
	nice := plantest.Lasting(2, 2, 61)
	nice.Priority = -1
	slow := plantest.Lasting(4, 2, 590) // to stop
	slow.Stop = time.Hour
	for _, tt := range []struct {
		name            string
		policy          order.Policy
		claimant        *order.Candidate
		later           []*order.Candidate
		starts, claimed string
	}{
		{"shorter", order.Policy{}, plantest.Lasting(1, 4, 600), []*order.Candidate{plantest.Lasting(2, 2, 61)}, "[2@n1]", "[1@n1+61]"},
		{"to no more than need be", order.Policy{}, plantest.Lasting(1, 4, 600), []*order.Candidate{plantest.Lasting(2, 1, 61)}, "[2@n1]", "[1@n1+61]"},
		{"as long, and half as large", order.Policy{}, plantest.Lasting(1, 4, 600), []*order.Candidate{plantest.Lasting(2, 2, 600)}, "[]", "[1@n1+60]"},
		{"longer, and a quarter as large", order.Policy{}, plantest.Lasting(1, 4, 600), []*order.Candidate{plantest.Lasting(2, 1, 700)}, "[]", "[1@n1+60]"},
		{"longer than it, and shorter ones before that", order.Policy{}, plantest.Lasting(1, 4, 600), []*order.Candidate{plantest.Lasting(2, 2, 700), plantest.Lasting(3, 2, 59)}, "[3@n1]", "[1@n1+60]"},
		{"for a part of the wait", order.Policy{}, ago(plantest.Lasting(1, 4, 600), kept.GiveWay*expected-time.Second), []*order.Candidate{plantest.Lasting(2, 2, 61)}, "[2@n1]", "[1@n1+61]"},
		{"then no more", order.Policy{}, ago(plantest.Lasting(1, 4, 600), kept.GiveWay*expected), []*order.Candidate{plantest.Lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"not at the front", order.Policy{GuardAfter: time.Minute}, ago(plantest.Lasting(1, 4, 600), time.Minute), []*order.Candidate{plantest.Lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor where running ones give way", order.Policy{Preempt: order.PreemptService}, plantest.Lasting(1, 4, 600), []*order.Candidate{plantest.Lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor without a limit", order.Policy{}, plantest.Lasting(1, 4, 0), []*order.Candidate{plantest.Lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor in another order", order.Policy{Order: order.OrderFIFO}, plantest.Lasting(1, 4, 600), []*order.Candidate{plantest.Lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor to who is nice", order.Policy{}, plantest.Lasting(1, 4, 600), []*order.Candidate{nice}, "[]", "[1@n1+60]"},
		{"a higher priority is not bound", order.Policy{}, ago(plantest.Lasting(1, 4, 600), kept.GiveWay*expected), []*order.Candidate{urgent}, "[4@n1]", "[1@n1+100]"},
		{"its places, not the claim", order.Policy{BackfillDepth: 2}, plantest.Lasting(1, 4, 600), []*order.Candidate{plantest.Lasting(2, 3, 61)}, "[]", "[1@n1+60]"},
		{"to one where another of that shape stays", order.Policy{}, plantest.Lasting(1, 4, 600), []*order.Candidate{ago(plantest.Lasting(2, 2, 610), time.Hour), slow}, "[4@n1]", "[1@n1+650]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.policy
			q := order.NewQueue(&p, nil)
			q.Insert(tt.claimant)
			v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1)}, Queue: q}
			v.Backfills = planned(t, plantest.Epoch0, v, &p).Backfills
			if len(v.Backfills) != 1 {
				t.Fatalf("backfills %+v", v.Backfills)
			}
			for _, c := range tt.later {
				if c.Submit.IsZero() {
					c.Submit = plantest.Epoch0
				}
				q.Insert(c)
			}
			plan := planned(t, plantest.Epoch0, v, &p)
			if s, c := started(plan), claimed(plan); s != tt.starts || c != tt.claimed {
				t.Errorf("starts %s, backfills %s; want %s, %s", s, c, tt.starts, tt.claimed)
			}
		})
	}
}

// TestPlacesOfWhichNoEndIsKnown: a gang without a limit starts on places that are kept for another one while it is not known when
// these are free, as long as no such gang has ended, and until that one comes to the front.
func TestPlacesOfWhichNoEndIsKnown(t *testing.T) {
	ago := func(c *order.Candidate, d time.Duration) *order.Candidate {
		c.Submit = plantest.Epoch0.Add(-d)
		return c
	}
	nice := plantest.Lasting(2, 2, 0)
	nice.Priority = -1
	guard := order.Policy{GuardAfter: 48 * time.Hour}
	for _, tt := range []struct {
		name            string
		policy          order.Policy
		claimant, later *order.Candidate
		starts          string
	}{
		{"nothing is known", guard, plantest.Lasting(1, 4, 0), plantest.Lasting(2, 2, 0), "[2@n1]"},
		{"nor who comes to the front", order.Policy{}, plantest.Lasting(1, 4, 0), plantest.Lasting(2, 2, 0), "[]"},
		{"it is at the front", guard, ago(plantest.Lasting(1, 4, 0), 48*time.Hour), plantest.Lasting(2, 2, 0), "[]"},
		{"it has a limit", guard, plantest.Lasting(1, 4, 600), plantest.Lasting(2, 2, 0), "[]"},
		{"another order", order.Policy{Order: order.OrderFIFO, GuardAfter: time.Hour}, plantest.Lasting(1, 4, 0), plantest.Lasting(2, 2, 0), "[]"},
		{"running ones give way", order.Policy{Preempt: order.PreemptService, GuardAfter: time.Hour}, plantest.Lasting(1, 4, 0), plantest.Lasting(2, 2, 0), "[]"},
		{"who is nice", guard, plantest.Lasting(1, 4, 0), nice, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := order.NewQueue(&tt.policy, nil)
			v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 32, 4, 80), 90, 0, 0)}, Queue: q}
			for _, c := range []*order.Candidate{tt.claimant, tt.later} {
				if c.Submit.IsZero() {
					c.Submit = plantest.Epoch0
				}
				q.Insert(c)
				plan := planned(t, plantest.Epoch0, v, &tt.policy)
				if v.Backfills = plan.Backfills; c == tt.later && started(plan) != tt.starts {
					t.Errorf("starts %s, want %s", started(plan), tt.starts)
				}
			}
		})
	}
}

// TestBackfillsBesideLongerOnes: the first in the order has a backfill though a longer gang has the
// only one already; but there are never more than twice as many.
func TestBackfillsBesideLongerOnes(t *testing.T) {
	for _, tt := range []struct {
		policy order.Policy
		want   []string
	}{
		{order.Policy{BackfillDepth: 1}, []string{"[1@n1+60]", "[1@n1+60 2@n1+60]", "[2@n1+60 1@n1+60]"}},
		{order.Policy{BackfillDepth: 2}, []string{"[1@n1+60]", "[1@n1+60 2@n1+60]", "[2@n1+60 1@n1+60 3@n1+60]"}},
		{order.Policy{BackfillDepth: 1, Preempt: order.PreemptService}, []string{"[1@n1+60]", "[1@n1+60]", "[1@n1+60]"}},
	} {
		q := order.NewQueue(&tt.policy, nil)
		v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3)}, Queue: q}
		for i, c := range []*order.Candidate{plantest.Lasting(1, 2, 600), plantest.Lasting(2, 1, 300), plantest.Lasting(3, 1, 100)} {
			q.Insert(c)
			plan := planned(t, plantest.Epoch0, v, &tt.policy)
			if v.Backfills = plan.Backfills; claimed(plan) != tt.want[i] {
				t.Errorf("%+v: after job %d backfills %s, want %s", tt.policy, c.Job, claimed(plan), tt.want[i])
			}
		}
	}
}

// TestBackfillMovesToWhereItIsServedEarlier, and nowhere else.
func TestBackfillMovesToWhereItIsServedEarlier(t *testing.T) {
	n1, n2 := plantest.Run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3), plantest.Run(plantest.Node("n2", 32, 4, 80), 91, 120, 0, 1, 2, 3)
	p := &order.Policy{}
	v := &given.View{Nodes: []*cluster.Node{n1, n2}, Queue: plantest.QueueOf(plantest.Lasting(1, 4, 600))}
	v.Backfills = planned(t, plantest.Epoch0, v, p).Backfills
	v.Nodes = []*cluster.Node{plantest.Run(n1, 90, 90, 0, 1, 2, 3), plantest.Run(n2, 91, 90, 0, 1, 2, 3)}
	plan := planned(t, plantest.Epoch0, v, p)
	if got := claimed(plan); got != "[1@n1+90]" {
		t.Errorf("equally early elsewhere: %s", got)
	}
	v.Nodes[1] = plantest.Run(n2, 91, 150, 0, 1, 2, 3)
	v.Backfills = plan.Backfills
	plan = planned(t, plantest.Epoch0, v, p)
	if got := claimed(plan); got != "[1@n1+90]" {
		t.Errorf("later elsewhere: %s", got)
	}
	v.Nodes[1] = plantest.Run(n2, 91, 30, 0, 1, 2, 3)
	v.Backfills = plan.Backfills
	if got := claimed(planned(t, plantest.Epoch0, v, p)); got != "[1@n2+30]" {
		t.Errorf("earlier elsewhere: %s", got)
	}
}

// A store of the first release says Looked and Told.
// TestCardsOfNodesThatOneGangHas: such nodes are alike to what could be placed on them, for nothing can, and not in what becomes
// free with their gangs.
func TestCardsOfNodesThatOneGangHas(t *testing.T) {
	alone := func(n *cluster.Node) *cluster.Node {
		g := n.Grants[0]
		g.Exclusive = true
		return n.Restore(g)
	}
	all, none := alone(plantest.Run(plantest.Node("n1", 16, 4, 80), 7, 120, 0, 1, 2, 3)), alone(plantest.Run(plantest.Node("n2", 16, 4, 80), 8, 60))
	for _, nodes := range [][]*cluster.Node{{all, none}, {none, all}} {
		v := &given.View{Nodes: nodes, Queue: plantest.QueueOf(plantest.Lasting(1, 4, 30))}
		if got := claimed(planned(t, plantest.Epoch0, v, &order.Policy{BackfillDepth: 1})); got != "[1@n2+60]" {
			t.Errorf("kept: %s", got)
		}
	}
}

func TestStoredBackfillsAreRead(t *testing.T) {
	var got []given.Backfill
	err := json.Unmarshal([]byte(`[{"Job":7,"Slots":null,"At":"2026-11-22T12:00:00Z","Looked":"2026-11-22T11:00:00Z",
		"Victims":[{"Job":3,"Epoch":2,"At":"2026-11-22T11:30:00Z","Told":true}],"Until":"0001-01-01T00:00:00Z"}]`), &got)
	if err != nil || len(got) != 1 || got[0].Job != 7 || got[0].SearchedAt.Hour() != 11 || len(got[0].Victims) != 1 || !got[0].Victims[0].Notified {
		t.Errorf("%+v, %v", got, err)
	}
}

// A move whose victim was not stopped after all waits for its places as any backfill does:
// until they are free by the limits of what is there, not with the lead of a move.
func TestARefusedMoveIsAPlainBackfill(t *testing.T) {
	n1 := plantest.Run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3)
	v := &given.View{Nodes: []*cluster.Node{n1}, Queue: plantest.QueueOf(plantest.Lasting(1, 4, 600))}
	v.Backfills = planned(t, plantest.Epoch0, v, &order.Policy{}).Backfills
	if got := claimed(Plan{Backfills: v.Backfills}); got != "[1@n1+60]" {
		t.Fatal(got)
	}
	move := v.Backfills[0]
	move.At, move.Until = plantest.Epoch0.Add(time.Minute), plantest.Epoch0.Add(601*time.Minute)
	v.Backfills = []given.Backfill{move}
	plan := planned(t, plantest.Epoch0, v, &order.Policy{})
	if got := claimed(plan); got != "[1@n1+60]" || !plan.Backfills[0].Until.IsZero() {
		t.Errorf("%s, until %v", got, plan.Backfills[0].Until)
	}
}

// TestTwoBackfillsHaveNotOnePlace: of two that are kept from before on the same cards the first in the order stays there, and the
// other goes elsewhere, or has none.
func TestTwoBackfillsHaveNotOnePlace(t *testing.T) {
	p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 2}
	q := order.NewQueue(p, nil)
	q.Insert(plantest.Lasting(1, 4, 600))
	v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3), plantest.Run(plantest.Node("n2", 32, 4, 80), 91, 120, 0, 1, 2, 3)}, Queue: q}
	same := planned(t, plantest.Epoch0, v, p).Backfills[0]
	q.Insert(plantest.Lasting(2, 4, 600))
	v.Backfills = []given.Backfill{same, same}
	v.Backfills[1].Job = 2
	if got := claimed(planned(t, plantest.Epoch0, v, p)); got != "[1@n1+60 2@n2+120]" {
		t.Error(got)
	}
	v.Nodes = v.Nodes[:1]
	if got := claimed(planned(t, plantest.Epoch0, v, p)); got != "[1@n1+60]" {
		t.Error(got)
	}
}

// TestABackfillOnOneNodeIsOnAWholeOne: places that are to be on one node are not begun where most is free now, when that node never
// holds them.
func TestABackfillOnOneNodeIsOnAWholeOne(t *testing.T) {
	v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 32, 2, 80), 90, 0, 0), plantest.Run(plantest.Node("n2", 32, 4, 80), 91, 0, 0, 1, 2, 3)},
		Queue: plantest.QueueOf(plantest.Candidate(1, api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}))}
	if got := planned(t, plantest.Epoch0, v, &order.Policy{}).Backfills; len(got) != 1 || len(got[0].Slots) != 4 || got[0].Slots[0].Node != "n2" || got[0].Slots[3].Node != "n2" {
		t.Errorf("%+v", got)
	}
}

// TestAMoveWaitsForANodeThatIsAway: its victims are gone, but so is the node for now: the places stay kept, and nothing starts there.
func TestAMoveWaitsForANodeThatIsAway(t *testing.T) {
	v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3)}, Queue: plantest.QueueOf(plantest.Lasting(1, 4, 600))}
	move := planned(t, plantest.Epoch0, v, &order.Policy{}).Backfills[0]
	move.Until = plantest.Epoch0.Add(10 * time.Hour)
	away := plantest.Node("n1", 32, 4, 80)
	v.Backfills = []given.Backfill{move}
	v.Nodes = []*cluster.Node{away}
	if got := started(planned(t, plantest.Epoch0, v, &order.Policy{})); got != "[1@n1]" {
		t.Fatalf("on its node: %s", got)
	}
	gone := *away
	gone.Ready, gone.Away = false, true
	v.Nodes = []*cluster.Node{&gone}
	if plan := planned(t, plantest.Epoch0, v, &order.Policy{}); len(plan.Starts) != 0 || claimed(plan) != "[1@n1]" {
		t.Errorf("starts %s, keeps %s", started(plan), claimed(plan))
	}
}

// TestPlacesBesideANodeThatIsAway: a node that may be back in a moment is no gang without a limit, so that nobody uses the rest of
// the places meanwhile.
func TestPlacesBesideANodeThatIsAway(t *testing.T) {
	p := &order.Policy{Order: order.OrderFIFO}
	large := plantest.Candidate(1, api.Spec{Size: 2, GPUsPerRank: 4})
	v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 32, 4, 80), 90, 60, 0), plantest.Node("n2", 32, 4, 80)}, Queue: order.NewQueue(p, nil)}
	v.Queue.Insert(large)
	v.Backfills = planned(t, plantest.Epoch0, v, p).Backfills
	v.Queue.Insert(plantest.Lasting(2, 1, 10))
	away := *v.Nodes[0]
	away.Ready, away.Away = false, true
	v.Nodes = []*cluster.Node{&away, v.Nodes[1]}
	plan := planned(t, plantest.Epoch0, v, p)
	if s, c := started(plan), claimed(plan); s != "[]" || c != "[1@n1]" {
		t.Errorf("starts %s, backfills %s", s, c)
	}
}

// TestTakersOfOneNode: each starts beside what is kept there for the other, at its own places, also where the node just failed it.
func TestTakersOfOneNode(t *testing.T) {
	for name, avoid := range map[string][]string{"any": nil, "it failed": {"n00001"}} {
		var waiting []*order.Candidate
		var kept []given.Backfill
		for i := range 3 {
			c := plantest.Lasting(int64(i+1), 2, []int{60, 600, 60}[i]) // the first is ahead for being shorter alone
			c.Avoid = avoid
			waiting = append(waiting, c)
			if i < 2 {
				kept = append(kept, given.Backfill{Job: c.Job, SearchedAt: plantest.Epoch0, Slots: []cluster.Slot{{Node: "n00001", Cards: []string{fmt.Sprintf("n00001-%d", 2*i), fmt.Sprintf("n00001-%d", 2*i+1)}}}})
			}
		}
		t.Run(name, func(t *testing.T) {
			plan := planned(t, plantest.Epoch0, &given.View{Nodes: plantest.Nodes(1, 8, 4, 80), Queue: plantest.QueueOf(waiting...), Backfills: kept}, &order.Policy{BackfillDepth: 4})
			if got := started(plan); got != "[1@n00001 2@n00001]" {
				t.Errorf("started %s", got)
			}
		})
	}
}

// TestKeptPlacesWithoutAnEndMove: places kept for a gang, of which nobody knows when they are free,
// are given up for others that are free before; in an order that promises starts they are not.
func TestKeptPlacesWithoutAnEndMove(t *testing.T) {
	for by, want := range map[order.Order]string{order.OrderService: "[1@n2]", order.OrderFIFO: "[1@n1]"} {
		one, two := plantest.Run(plantest.Node("n1", 32, 4, 80), 90, 0, 0, 1, 2), plantest.Run(plantest.Node("n2", 32, 4, 80), 91, 0, 0)
		kept := given.Backfill{Job: 1, Slots: []cluster.Slot{{Node: "n1"}}}
		for _, c := range one.Cards {
			kept.Slots[0].Cards = append(kept.Slots[0].Cards, c.UUID)
		}
		l := order.NewLedger(0)
		l.Add(order.Usage{Peer: order.Peer{User: "max", Name: "y", Cards: 1, Job: 1}, Ended: plantest.Epoch0, Ran: time.Hour, Whole: time.Hour})
		q := order.NewQueue(&order.Policy{Order: by}, l)
		q.Insert(plantest.Lasting(1, 4, 0))
		plan := planned(t, plantest.Epoch0, &given.View{Nodes: []*cluster.Node{one, two}, Queue: q, Backfills: []given.Backfill{kept}}, &order.Policy{Order: by})
		if got := claimed(plan); got != want {
			t.Errorf("order %s: kept %s, want %s", by, got, want)
		}
	}
}
