package sched

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// run gives cards of a node to a job that ends so many minutes after epoch0; 0: nobody
// knows when.
func run(n *cluster.Node, job int64, minutes int, cards ...int) *cluster.Node {
	g := cluster.Grant{MemberKey: api.MemberKey{Job: job, Epoch: 1}, Ranks: 1, CPUs: 1}
	if minutes != 0 {
		g.Until = epoch0.Add(time.Duration(minutes) * time.Minute)
	}
	for _, i := range cards {
		g.Cards = append(g.Cards, cluster.CardGrant{UUID: n.Cards[i].UUID, Exclusive: true})
	}
	return n.Restore(g)
}

func lasting(job int64, gpus, minutes int) *Candidate {
	c := candidate(job, api.Spec{Size: 1, GPUsPerRank: gpus})
	c.TimeLimit = time.Duration(minutes) * time.Minute
	return c
}

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
	for _, c := range p.Claims {
		text := fmt.Sprintf("%d@%s", c.Job, c.Slots[0].Node)
		if !c.At.IsZero() {
			text += fmt.Sprintf("+%g", c.At.Sub(epoch0).Minutes())
		}
		out = append(out, text)
	}
	return fmt.Sprint(out)
}

func TestBackfill(t *testing.T) {
	nodes := func(list ...*cluster.Node) []*cluster.Node { return list }
	n := func(name string) *cluster.Node { return testNode(name, 32, 4, 80) }
	fifo := func(claims int) *Policy { return &Policy{Order: OrderFIFO, Claims: claims} }
	for _, tt := range []struct {
		name    string
		nodes   []*cluster.Node
		policy  *Policy
		queue   []*Candidate
		starts  string
		claimed string
	}{
		{"what ends before the reservation uses its places", nodes(run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*Candidate{lasting(1, 4, 10), lasting(2, 2, 60)}, "[2@n1]", "[1@n1+60]"},
		{"what would last longer does not", nodes(run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*Candidate{lasting(1, 4, 10), lasting(2, 2, 61)}, "[]", "[1@n1+60]"},
		{"nor what has no limit", nodes(run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*Candidate{lasting(1, 4, 10), lasting(2, 2, 0), lasting(3, 1, 1)}, "[3@n1]", "[1@n1+60]"},
		{"beside the reserved places anything goes", nodes(run(n("n1"), 90, 60, 0, 1)), fifo(1),
			[]*Candidate{lasting(1, 3, 10), lasting(2, 1, 0), lasting(3, 1, 0)}, "[2@n1]", "[1@n1+60]"},
		{"the place that is free first", nodes(run(n("n1"), 90, 60, 0, 1, 2, 3), run(n("n2"), 91, 30, 0, 1, 2, 3)), fifo(1),
			[]*Candidate{lasting(1, 4, 10)}, "[]", "[1@n2+30]"},
		{"ends that are known before one that is not", nodes(run(n("n1"), 90, 0, 0), run(n("n2"), 91, 600, 0, 1, 2, 3)), fifo(1),
			[]*Candidate{lasting(1, 4, 10)}, "[]", "[1@n2+600]"},
		{"no end known: nobody uses the places meanwhile", nodes(run(n("n1"), 90, 0, 0)), fifo(1),
			[]*Candidate{lasting(1, 4, 10), lasting(2, 1, 1)}, "[]", "[1@n1]"},
		{"what is overdue ends soon", nodes(run(n("n1"), 90, -600, 0)), fifo(1),
			[]*Candidate{lasting(1, 4, 10), lasting(2, 1, 5)}, "[]", "[1@n1+1]"},
		{"each of two reservations holds", nodes(run(n("n1"), 90, 60, 0, 1), run(n("n2"), 91, 120, 0, 1)), fifo(2),
			[]*Candidate{lasting(1, 4, 10), lasting(2, 4, 10), lasting(3, 2, 60), lasting(4, 2, 61), lasting(5, 2, 120)},
			"[3@n1 4@n2]", "[1@n1+60 2@n2+120]"},
		{"the second one stands on what the first leaves", nodes(run(n("n1"), 90, 60, 0, 1)), fifo(2),
			[]*Candidate{lasting(1, 3, 10), lasting(2, 2, 100)}, "[]", "[1@n1+60]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := NewQueue(tt.policy, nil)
			for _, c := range tt.queue {
				q.Insert(c)
			}
			plan := Make(epoch0, &View{Nodes: tt.nodes, Queue: q}, tt.policy)
			if s, c := started(plan), claimed(plan); s != tt.starts || c != tt.claimed {
				t.Errorf("starts %s, claims %s; want %s, %s", s, c, tt.starts, tt.claimed)
			}
		})
	}
}

// TestClaimIsNotBrokenByLaterShorterGangs: with order=service a shorter gang that comes
// later is ahead in the queue, and still does not delay who was given a start.
func TestClaimIsNotBrokenByLaterShorterGangs(t *testing.T) {
	nodes := []*cluster.Node{run(testNode("n1", 32, 4, 80), 90, 60, 0, 1)}
	p := &Policy{Claims: 1}
	q := NewQueue(p, nil)
	q.Insert(lasting(1, 4, 600))
	v := &View{Nodes: nodes, Queue: q}
	v.Claims = Make(epoch0, v, p).Claims
	q.Insert(lasting(2, 2, 61))
	q.Insert(lasting(3, 2, 59))
	if q.Slice()[2].Job != 1 {
		t.Fatal("the large gang should be last")
	}
	plan := Make(epoch0, v, p)
	if s, c := started(plan), claimed(plan); s != "[3@n1]" || c != "[1@n1+60]" {
		t.Errorf("starts %s, claims %s", s, c)
	}
	urgent := lasting(4, 2, 100)
	urgent.Priority = 1
	q.Insert(urgent)
	if s := started(Make(epoch0, v, p)); s != "[4@n1]" {
		t.Errorf("starts %s: a higher priority is not bound by it", s)
	}
}

// TestClaimMovesToWhereItIsServedEarlier, and nowhere else.
func TestClaimMovesToWhereItIsServedEarlier(t *testing.T) {
	n1, n2 := run(testNode("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3), run(testNode("n2", 32, 4, 80), 91, 120, 0, 1, 2, 3)
	p := &Policy{}
	v := &View{Nodes: []*cluster.Node{n1, n2}, Queue: queueOf(lasting(1, 4, 600))}
	v.Claims = Make(epoch0, v, p).Claims
	v.Nodes = []*cluster.Node{run(n1, 90, 90, 0, 1, 2, 3), run(n2, 91, 90, 0, 1, 2, 3)}
	plan := Make(epoch0, v, p)
	if got := claimed(plan); got != "[1@n1+90]" {
		t.Errorf("equally early elsewhere: %s", got)
	}
	v.Nodes[1] = run(n2, 91, 30, 0, 1, 2, 3)
	v.Claims = plan.Claims
	if got := claimed(Make(epoch0, v, p)); got != "[1@n2+30]" {
		t.Errorf("earlier elsewhere: %s", got)
	}
}
