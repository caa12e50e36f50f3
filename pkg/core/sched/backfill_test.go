package sched

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// run gives cards of a node to a job that ends so many minutes after plantest.Epoch0; 0: nobody
// knows when.
func run(n *cluster.Node, job int64, minutes int, cards ...int) *cluster.Node {
	g := cluster.Grant{MemberKey: api.MemberKey{Job: job, Epoch: 1}, Ranks: 1, Takes: cluster.Amounts{cluster.CPUs: 1}}
	if minutes != 0 {
		g.Until = plantest.Epoch0.Add(time.Duration(minutes) * time.Minute)
	}
	for _, i := range cards {
		g.Cards = append(g.Cards, cluster.CardGrant{UUID: n.Cards[i].UUID, Exclusive: true})
	}
	return n.Restore(g)
}

func lasting(job int64, gpus, minutes int) *order.Candidate {
	c := plantest.Candidate(job, api.Spec{Size: 1, GPUsPerRank: gpus})
	c.TimeLimit = time.Duration(minutes) * time.Minute
	return c
}

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
		{"what ends before the reservation uses its places", nodes(run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*order.Candidate{lasting(1, 4, 10), lasting(2, 2, 60)}, "[2@n1]", "[1@n1+60]"},
		{"what would last longer does not", nodes(run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*order.Candidate{lasting(1, 4, 10), lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor what has no limit", nodes(run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*order.Candidate{lasting(1, 4, 10), lasting(2, 2, 0), lasting(3, 1, 1)}, "[3@n1]", "[1@n1+60]"},
		{"beside the reserved places anything goes", nodes(run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*order.Candidate{lasting(1, 3, 10), lasting(2, 1, 0), lasting(3, 1, 0)}, "[2@n1]", "[1@n1+60]"},
		{"the place that is free first", nodes(run(n("n1"), 90, 60, 0, 1, 2, 3), run(n("n2"), 91, 30, 0, 1, 2, 3)), fifo(1),
			[]*order.Candidate{lasting(1, 4, 10)}, "[]", "[1@n2+30]"},
		{"ends that are known before one that is not", nodes(run(n("n1"), 90, 0, 0), run(n("n2"), 91, 600, 0, 1, 2, 3)), fifo(1),
			[]*order.Candidate{lasting(1, 4, 10)}, "[]", "[1@n2+600]"},
		{"no end known: what has a limit uses the places meanwhile", nodes(run(n("n1"), 90, 0, 0)), fifo(1),
			[]*order.Candidate{lasting(1, 4, 10), lasting(2, 1, 0), lasting(3, 1, 100000)}, "[3@n1]", "[1@n1]"},
		{"but nobody is given a limit for it", nodes(run(n("n1"), 90, 0, 0)), fifo(1),
			[]*order.Candidate{lasting(1, 4, 10), shortest(lasting(2, 1, 0))}, "[]", "[1@n1]"},
		{"what is overdue ends soon", nodes(run(n("n1"), 90, -600, 0)), fifo(1),
			[]*order.Candidate{lasting(1, 4, 10), lasting(2, 1, 5)}, "[]", "[1@n1+1]"},
		{"each of two reservations holds", nodes(run(n("n1"), 90, 60, 0, 1), run(n("n2"), 91, 120, 0, 1)), fifo(2),
			[]*order.Candidate{lasting(1, 4, 10), lasting(2, 4, 10), lasting(3, 2, 60), lasting(4, 2, 61), lasting(5, 2, 120)},
			"[3@n1 4@n2]", "[1@n1+60 2@n2+120]"},
		{"what is being stopped ends sooner", nodes(run(n("n1"), 90, 600, 0)), fifo(1),
			[]*order.Candidate{lasting(1, 4, 10), lasting(2, 1, 6)}, "[]", "[1@n1+5]"},
		{"the second one stands on what the first leaves", nodes(run(n("n1"), 90, 60, 0, 1)), fifo(2),
			[]*order.Candidate{lasting(1, 3, 10), lasting(2, 2, 100)}, "[]", "[1@n1+60]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := order.NewQueue(tt.policy, nil)
			for _, c := range tt.queue {
				q.Insert(c)
			}
			v := &View{Nodes: tt.nodes, Queue: q}
			if strings.Contains(tt.name, "stopped") {
				v.Running = []*order.Running{{Job: 90, Epoch: 1, Cards: 1, Stopping: true, StopBy: plantest.Epoch0.Add(5 * time.Minute)}}
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
	urgent := lasting(4, 2, 100)
	urgent.Priority = 1
	nice := lasting(2, 2, 61)
	nice.Priority = -1
	slow := lasting(4, 2, 590) // to stop
	slow.Stop = time.Hour
	for _, tt := range []struct {
		name            string
		policy          order.Policy
		claimant        *order.Candidate
		later           []*order.Candidate
		starts, claimed string
	}{
		{"shorter", order.Policy{}, lasting(1, 4, 600), []*order.Candidate{lasting(2, 2, 61)}, "[2@n1]", "[1@n1+61]"},
		{"to no more than need be", order.Policy{}, lasting(1, 4, 600), []*order.Candidate{lasting(2, 1, 61)}, "[2@n1]", "[1@n1+61]"},
		{"as long, and half as large", order.Policy{}, lasting(1, 4, 600), []*order.Candidate{lasting(2, 2, 600)}, "[]", "[1@n1+60]"},
		{"longer, and a quarter as large", order.Policy{}, lasting(1, 4, 600), []*order.Candidate{lasting(2, 1, 700)}, "[]", "[1@n1+60]"},
		{"longer than it, and shorter ones before that", order.Policy{}, lasting(1, 4, 600), []*order.Candidate{lasting(2, 2, 700), lasting(3, 2, 59)}, "[3@n1]", "[1@n1+60]"},
		{"for a part of the wait", order.Policy{}, ago(lasting(1, 4, 600), giveWay*expected-time.Second), []*order.Candidate{lasting(2, 2, 61)}, "[2@n1]", "[1@n1+61]"},
		{"then no more", order.Policy{}, ago(lasting(1, 4, 600), giveWay*expected), []*order.Candidate{lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"not at the front", order.Policy{GuardAfter: time.Minute}, ago(lasting(1, 4, 600), time.Minute), []*order.Candidate{lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor where running ones give way", order.Policy{Preempt: order.PreemptService}, lasting(1, 4, 600), []*order.Candidate{lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor without a limit", order.Policy{}, lasting(1, 4, 0), []*order.Candidate{lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor in another order", order.Policy{Order: order.OrderFIFO}, lasting(1, 4, 600), []*order.Candidate{lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor to who is nice", order.Policy{}, lasting(1, 4, 600), []*order.Candidate{nice}, "[]", "[1@n1+60]"},
		{"a higher priority is not bound", order.Policy{}, ago(lasting(1, 4, 600), giveWay*expected), []*order.Candidate{urgent}, "[4@n1]", "[1@n1+100]"},
		{"its places, not the claim", order.Policy{BackfillDepth: 2}, lasting(1, 4, 600), []*order.Candidate{lasting(2, 3, 61)}, "[]", "[1@n1+60]"},
		{"to one where another of that shape stays", order.Policy{}, lasting(1, 4, 600), []*order.Candidate{ago(lasting(2, 2, 610), time.Hour), slow}, "[4@n1]", "[1@n1+650]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.policy
			q := order.NewQueue(&p, nil)
			q.Insert(tt.claimant)
			v := &View{Nodes: []*cluster.Node{run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1)}, Queue: q}
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
	nice := lasting(2, 2, 0)
	nice.Priority = -1
	guard := order.Policy{GuardAfter: 48 * time.Hour}
	for _, tt := range []struct {
		name            string
		policy          order.Policy
		claimant, later *order.Candidate
		starts          string
	}{
		{"nothing is known", guard, lasting(1, 4, 0), lasting(2, 2, 0), "[2@n1]"},
		{"nor who comes to the front", order.Policy{}, lasting(1, 4, 0), lasting(2, 2, 0), "[]"},
		{"it is at the front", guard, ago(lasting(1, 4, 0), 48*time.Hour), lasting(2, 2, 0), "[]"},
		{"it has a limit", guard, lasting(1, 4, 600), lasting(2, 2, 0), "[]"},
		{"another order", order.Policy{Order: order.OrderFIFO, GuardAfter: time.Hour}, lasting(1, 4, 0), lasting(2, 2, 0), "[]"},
		{"running ones give way", order.Policy{Preempt: order.PreemptService, GuardAfter: time.Hour}, lasting(1, 4, 0), lasting(2, 2, 0), "[]"},
		{"who is nice", guard, lasting(1, 4, 0), nice, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := order.NewQueue(&tt.policy, nil)
			v := &View{Nodes: []*cluster.Node{run(plantest.Node("n1", 32, 4, 80), 90, 0, 0)}, Queue: q}
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
		v := &View{Nodes: []*cluster.Node{run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3)}, Queue: q}
		for i, c := range []*order.Candidate{lasting(1, 2, 600), lasting(2, 1, 300), lasting(3, 1, 100)} {
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
	n1, n2 := run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3), run(plantest.Node("n2", 32, 4, 80), 91, 120, 0, 1, 2, 3)
	p := &order.Policy{}
	v := &View{Nodes: []*cluster.Node{n1, n2}, Queue: plantest.QueueOf(lasting(1, 4, 600))}
	v.Backfills = planned(t, plantest.Epoch0, v, p).Backfills
	v.Nodes = []*cluster.Node{run(n1, 90, 90, 0, 1, 2, 3), run(n2, 91, 90, 0, 1, 2, 3)}
	plan := planned(t, plantest.Epoch0, v, p)
	if got := claimed(plan); got != "[1@n1+90]" {
		t.Errorf("equally early elsewhere: %s", got)
	}
	v.Nodes[1] = run(n2, 91, 150, 0, 1, 2, 3)
	v.Backfills = plan.Backfills
	plan = planned(t, plantest.Epoch0, v, p)
	if got := claimed(plan); got != "[1@n1+90]" {
		t.Errorf("later elsewhere: %s", got)
	}
	v.Nodes[1] = run(n2, 91, 30, 0, 1, 2, 3)
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
	all, none := alone(run(plantest.Node("n1", 16, 4, 80), 7, 120, 0, 1, 2, 3)), alone(run(plantest.Node("n2", 16, 4, 80), 8, 60))
	for _, nodes := range [][]*cluster.Node{{all, none}, {none, all}} {
		v := &View{Nodes: nodes, Queue: plantest.QueueOf(lasting(1, 4, 30))}
		if got := claimed(planned(t, plantest.Epoch0, v, &order.Policy{BackfillDepth: 1})); got != "[1@n2+60]" {
			t.Errorf("kept: %s", got)
		}
	}
}

func TestStoredBackfillsAreRead(t *testing.T) {
	var got []Backfill
	err := json.Unmarshal([]byte(`[{"Job":7,"Slots":null,"At":"2026-11-22T12:00:00Z","Looked":"2026-11-22T11:00:00Z",
		"Victims":[{"Job":3,"Epoch":2,"At":"2026-11-22T11:30:00Z","Told":true}],"Until":"0001-01-01T00:00:00Z"}]`), &got)
	if err != nil || len(got) != 1 || got[0].Job != 7 || got[0].SearchedAt.Hour() != 11 || len(got[0].Victims) != 1 || !got[0].Victims[0].Notified {
		t.Errorf("%+v, %v", got, err)
	}
}

// A move whose victim was not stopped after all waits for its places as any backfill does:
// until they are free by the limits of what is there, not with the lead of a move.
func TestARefusedMoveIsAPlainBackfill(t *testing.T) {
	n1 := run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3)
	v := &View{Nodes: []*cluster.Node{n1}, Queue: plantest.QueueOf(lasting(1, 4, 600))}
	v.Backfills = planned(t, plantest.Epoch0, v, &order.Policy{}).Backfills
	if got := claimed(Plan{Backfills: v.Backfills}); got != "[1@n1+60]" {
		t.Fatal(got)
	}
	move := v.Backfills[0]
	move.At, move.Until = plantest.Epoch0.Add(time.Minute), plantest.Epoch0.Add(601*time.Minute)
	v.Backfills = []Backfill{move}
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
	q.Insert(lasting(1, 4, 600))
	v := &View{Nodes: []*cluster.Node{run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3), run(plantest.Node("n2", 32, 4, 80), 91, 120, 0, 1, 2, 3)}, Queue: q}
	same := planned(t, plantest.Epoch0, v, p).Backfills[0]
	q.Insert(lasting(2, 4, 600))
	v.Backfills = []Backfill{same, same}
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
	v := &View{Nodes: []*cluster.Node{run(plantest.Node("n1", 32, 2, 80), 90, 0, 0), run(plantest.Node("n2", 32, 4, 80), 91, 0, 0, 1, 2, 3)},
		Queue: plantest.QueueOf(plantest.Candidate(1, api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}))}
	if got := planned(t, plantest.Epoch0, v, &order.Policy{}).Backfills; len(got) != 1 || len(got[0].Slots) != 4 || got[0].Slots[0].Node != "n2" || got[0].Slots[3].Node != "n2" {
		t.Errorf("%+v", got)
	}
}

// TestAMoveWaitsForANodeThatIsAway: its victims are gone, but so is the node for now: the places stay kept, and nothing starts there.
func TestAMoveWaitsForANodeThatIsAway(t *testing.T) {
	v := &View{Nodes: []*cluster.Node{run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3)}, Queue: plantest.QueueOf(lasting(1, 4, 600))}
	move := planned(t, plantest.Epoch0, v, &order.Policy{}).Backfills[0]
	move.Until = plantest.Epoch0.Add(10 * time.Hour)
	away := plantest.Node("n1", 32, 4, 80)
	v.Backfills = []Backfill{move}
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
	v := &View{Nodes: []*cluster.Node{run(plantest.Node("n1", 32, 4, 80), 90, 60, 0), plantest.Node("n2", 32, 4, 80)}, Queue: order.NewQueue(p, nil)}
	v.Queue.Insert(large)
	v.Backfills = planned(t, plantest.Epoch0, v, p).Backfills
	v.Queue.Insert(lasting(2, 1, 10))
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
		var kept []Backfill
		for i := range 3 {
			c := lasting(int64(i+1), 2, []int{60, 600, 60}[i]) // the first is ahead for being shorter alone
			c.Avoid = avoid
			waiting = append(waiting, c)
			if i < 2 {
				kept = append(kept, Backfill{Job: c.Job, SearchedAt: plantest.Epoch0, Slots: []cluster.Slot{{Node: "n00001", Cards: []string{fmt.Sprintf("n00001-%d", 2*i), fmt.Sprintf("n00001-%d", 2*i+1)}}}})
			}
		}
		t.Run(name, func(t *testing.T) {
			plan := planned(t, plantest.Epoch0, &View{Nodes: plantest.Nodes(1, 8, 4, 80), Queue: plantest.QueueOf(waiting...), Backfills: kept}, &order.Policy{BackfillDepth: 4})
			if got := started(plan); got != "[1@n00001 2@n00001]" {
				t.Errorf("started %s", got)
			}
		})
	}
}

// TestGrantsAreOfTheirBackfill: what is remembered of one is not said of it when it has other places, ends at another time or its gang asks for something else.
func TestGrantsAreOfTheirBackfill(t *testing.T) {
	pl := new(Planner).planner(plantest.Epoch0, &View{Nodes: plantest.Nodes(2, 8, 4, 80), Queue: plantest.QueueOf()}, &order.Policy{})
	slots := []cluster.Slot{{Node: "n00001"}, {Node: "n00002"}}
	of := func(cpus, n int, until time.Time) backfill {
		return backfill{Backfill: Backfill{Job: 1, Slots: slots[:n], Until: until}, c: plantest.Candidate(1, api.Spec{Size: n, CPUsPerRank: cpus})}
	}
	first := of(1, 2, time.Time{})
	was := pl.kept.grantsOf(&first)
	pl.kept.mem.backfillGrants[1].heldAt = pl.fit.AtCapacity()
	if again := pl.kept.grantsOf(&first); &again[0] != &was[0] || !pl.kept.stands(&first) {
		t.Error("the same backfill is not known again")
	}
	for name, b := range map[string]backfill{"other CPUs": of(2, 2, time.Time{}), "fewer places": of(1, 1, time.Time{}), "another end": of(1, 2, plantest.Epoch0.Add(time.Hour))} {
		pl.kept.grantsOf(&first)
		got := pl.kept.grantsOf(&b)
		if len(got) != len(b.Slots) || got[0].Takes[cluster.CPUs] != int64(b.c.Ask.Spec.CPUsPerRank) || !got[0].Until.Equal(b.Until) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	moved := of(1, 2, time.Time{})
	pl.kept.grantsOf(&first)
	moved.Slots = []cluster.Slot{slots[1], slots[0]}
	if got := pl.kept.grantsOf(&moved); got[0].At != 1 || pl.kept.stands(&moved) {
		t.Errorf("other places: %+v", got)
	}
	pl.kept.mem.backfillGrants[1].heldAt = pl.fit.AtCapacity()
	if pl.kept.mem.backfillGrants[1].heldAt--; pl.kept.stands(&moved) {
		t.Error("it stands though the nodes are others")
	}
}

// TestTimesOfABackfill: from when it is in the way, and of whom.
func TestTimesOfABackfill(t *testing.T) {
	at := func(minutes int) time.Time { return plantest.Epoch0.Add(time.Duration(minutes) * time.Minute) }
	plain, move, open, away := backfill{Backfill: Backfill{At: at(10)}}, backfill{Backfill: Backfill{At: at(10), Until: at(60)}}, backfill{}, backfill{away: true}
	for _, tt := range []struct {
		name           string
		b              backfill
		from           time.Time
		open, isMove   bool
		ten, eleven    bool // in the way of who ends then
		without, limit bool
	}{
		{"plain", plain, at(10), false, false, false, true, true, true},
		{"move", move, time.Time{}, false, true, true, true, true, true},
		{"open", open, beyondLimits, true, false, false, false, true, false},
		{"away", away, time.Time{}, false, false, true, true, true, true},
	} {
		b := &tt.b
		if !b.from().Equal(tt.from) || b.isOpen() != tt.open || b.isMove() != tt.isMove || b.inWayOf(at(10)) != tt.ten || b.inWayOf(at(11)) != tt.eleven ||
			b.inWayOf(never) != tt.without || b.inWayOf(at(1<<20)) != tt.limit {
			t.Errorf("%s: from %v, open %t, move %t", tt.name, b.from(), b.isOpen(), b.isMove())
		}
	}
	for minutes, want := range map[int]bool{59: false, 60: true, 61: true} {
		if o := (&backfill{Backfill: Backfill{At: at(minutes)}}); move.over(o) != want {
			t.Errorf("a move until 60 is over by %d: %t", minutes, !want)
		}
	}
	if move.over(&open) || move.over(&move) {
		t.Error("it is not known when the other starts")
	}
	c := lasting(1, 1, 60)
	c.Stop, c.TimeMin = time.Minute, 10*time.Minute
	pl := &planner{given: given{now: plantest.Epoch0}}
	for _, tt := range []struct {
		change     func(c *order.Candidate)
		end, least time.Time
	}{
		{func(c *order.Candidate) {}, at(61), at(11)},
		{func(c *order.Candidate) { c.TimeMin = 0 }, at(61), at(61)},
		{func(c *order.Candidate) { c.TimeLimit, c.TimeMin = 0, 0 }, never, never},
		{func(c *order.Candidate) { c.TimeLimit = 0 }, never, at(11)},
		{func(c *order.Candidate) { c.Deadline = at(30) }, at(31), at(11)},
		{func(c *order.Candidate) { c.Deadline = at(5) }, at(6), at(6)},
		{func(c *order.Candidate) { c.Deadline = at(90) }, at(61), at(11)},
		{func(c *order.Candidate) { c.Deadline, c.TimeLimit = at(90), 0 }, at(91), at(11)},
	} {
		own := c.Apart()
		tt.change(own)
		if end, least := pl.end(own), pl.leastEnd(own); !end.Equal(tt.end) || !least.Equal(tt.least) {
			t.Errorf("%s: ends by %v, %v at the least", printer.Value(own), end.Sub(plantest.Epoch0), least.Sub(plantest.Epoch0))
		}
	}
}

// TestViewsOfATaker: what is kept for others is in its way until they are served, but for its own; in the time of its
// reservation only what others of that have, and moves.
func TestViewsOfATaker(t *testing.T) {
	in := func(job int64, reservation string) *order.Candidate {
		return plantest.QueueOf(plantest.Candidate(job, api.Spec{Size: 1, CPUsPerRank: 2, Reservation: reservation})).Get(job)
	}
	for _, tt := range []struct {
		name         string
		c            *order.Candidate
		reservations bool
		kept         int
		own          int64
		minutes      int
		want         string // which nodes are full
	}{
		{"another", in(9, ""), false, 4, 0, 5, "1 2 3"},
		{"one that takes long", in(9, ""), false, 4, 0, 11, "1 2 3 4"},
		{"the taker of the first", in(1, ""), false, 4, 1, 5, "2 3"},
		{"the taker of the last", in(4, ""), false, 4, 4, 11, "1 2 3"},
		{"the only one", in(1, ""), false, 1, 1, 5, ""},
		{"of two", in(1, ""), false, 2, 1, 5, "2"},
		{"beside reservations", in(9, ""), true, 4, 0, 5, "1 2 3"},
		{"of a reservation", in(9, "w"), true, 4, 0, 11, "2 3"},
		{"the taker of a reservation", in(3, "w"), true, 4, 3, 11, "2"},
		{"of a reservation that is gone", in(9, "w"), false, 4, 0, 5, "1 2 3"},
	} {
		v := &View{Nodes: plantest.Nodes(4, 2, 0, 0), Queue: plantest.QueueOf()}
		if tt.reservations {
			v.Reservations = []Reservation{window("w", 0, time.Hour, "n00001", "n00002", "n00003", "n00004")}
		}
		pl := new(Planner).planner(plantest.Epoch0, v, &order.Policy{})
		for i, c := range []*order.Candidate{in(1, ""), in(2, ""), in(3, "w"), in(4, "")}[:tt.kept] {
			b := backfill{Backfill: Backfill{Job: c.Job, At: plantest.Epoch0, Slots: []cluster.Slot{{Node: v.Nodes[i].Name}}}, c: c}
			switch c.Job {
			case 2:
				b.Until = plantest.Epoch0.Add(time.Hour)
			case 4:
				b.At = plantest.Epoch0.Add(10 * time.Minute)
			}
			b.grants = pl.kept.grantsOf(&b)
			pl.kept.add(b)
		}
		end := plantest.Epoch0.Add(time.Duration(tt.minutes) * time.Minute)
		full := func(l *fit.NodeView) string {
			var out []string
			for at := range v.Nodes {
				if l.Node(at).FreeCPUs() == 0 {
					out = append(out, fmt.Sprint(at+1))
				}
			}
			return strings.Join(out, " ")
		}
		if got := full(pl.kept.viewWithout(tt.c, pl.kept.of(tt.own), end)); got != tt.want {
			t.Errorf("%s: full are %q, want %q", tt.name, got, tt.want)
		}
		if got := full(pl.kept.viewFor(tt.c, end)); tt.own == 0 && got != tt.want {
			t.Errorf("%s: without a backfill full are %q, want %q", tt.name, got, tt.want)
		}
		for len(pl.kept.list) > 0 {
			pl.kept.remove(0)
		}
		if got := full(pl.kept.topView()); got != "" {
			t.Errorf("%s: none is left, and full are %q", tt.name, got)
		}
	}
}

// TestKeptPlacesWithoutAnEndMove: places kept for a gang, of which nobody knows when they are free,
// are given up for others that are free before; in an order that promises starts they are not.
func TestKeptPlacesWithoutAnEndMove(t *testing.T) {
	for by, want := range map[order.Order]string{order.OrderService: "[1@n2]", order.OrderFIFO: "[1@n1]"} {
		one, two := run(plantest.Node("n1", 32, 4, 80), 90, 0, 0, 1, 2), run(plantest.Node("n2", 32, 4, 80), 91, 0, 0)
		kept := Backfill{Job: 1, Slots: []cluster.Slot{{Node: "n1"}}}
		for _, c := range one.Cards {
			kept.Slots[0].Cards = append(kept.Slots[0].Cards, c.UUID)
		}
		l := order.NewLedger(0)
		l.Add(order.Usage{Peer: order.Peer{User: "max", Name: "y", Cards: 1, Job: 1}, Ended: plantest.Epoch0, Ran: time.Hour, Whole: time.Hour})
		q := order.NewQueue(&order.Policy{Order: by}, l)
		q.Insert(lasting(1, 4, 0))
		plan := planned(t, plantest.Epoch0, &View{Nodes: []*cluster.Node{one, two}, Queue: q, Backfills: []Backfill{kept}}, &order.Policy{Order: by})
		if got := claimed(plan); got != want {
			t.Errorf("order %s: kept %s, want %s", by, got, want)
		}
	}
}
