package sched

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

func licences(n int) []api.Pool { return []api.Pool{{Kind: "licence", Name: "l", Count: n}} }

func asking(job int64, n int, limit time.Duration) *order.Candidate {
	c := plantest.Candidate(job, api.Spec{Size: 1, AsAsked: api.AsAsked{Pools: licences(n)}})
	c.TimeLimit = limit
	return c
}

// TestPools: no more are given than there are, and who waits for some is passed only by who has given them back by then.
func TestPools(t *testing.T) {
	holder := func(n int, limit time.Duration) *order.Running {
		return &order.Running{Job: 90, Epoch: 1, Pools: licences(n), Start: plantest.Epoch0, TimeLimit: limit}
	}
	for _, tt := range []struct {
		name    string
		running *order.Running
		queue   []*order.Candidate
		starts  int
		job     int64
		text    string
	}{
		{"as many as there are", holder(1, 0), []*order.Candidate{asking(1, 2, 0)}, 1, 0, ""},
		{"one more", holder(2, 0), []*order.Candidate{asking(1, 2, 0)}, 0, 1, "2 of licence l asked for, 1 of 3 free"},
		{"one after the other", holder(1, 0), []*order.Candidate{asking(1, 1, 0), asking(2, 2, 0)}, 1, 2, "2 of licence l asked for, 1 of 3 free"},
		{"kept for who is first", holder(2, time.Hour), []*order.Candidate{asking(1, 3, 0), asking(2, 1, 0)}, 0, 2, "1 of licence l asked for, 1 of 3 free, 1 of them kept for job 1"},
		{"unless it has ended by then", holder(2, time.Hour), []*order.Candidate{asking(1, 3, 0), asking(2, 1, time.Hour)}, 1, 1, "3 of licence l asked for, 1 of 3 free"},
		{"nobody knows when", holder(2, 0), []*order.Candidate{asking(1, 3, 0), asking(2, 1, time.Minute)}, 0, 2, "kept for job 1"},
		{"fewer than are held", holder(5, time.Hour), []*order.Candidate{asking(1, 1, time.Minute)}, 0, 1, "1 of licence l asked for, 0 of 3 free"},
		{"fewer than are asked for, which keeps nobody", holder(1, 0), []*order.Candidate{asking(1, 4, 0), asking(2, 2, 0)}, 1, 1, "4 of licence l asked for, and the site has only 3 any more"},
		{"who asks for none goes on", holder(3, 0), []*order.Candidate{asking(1, 3, 0), plantest.Candidate(2, api.Spec{Size: 1})}, 1, 1, "0 of 3 free"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &order.Policy{Partitions: []api.Partition{{Name: "gpu"}}, BackfillDepth: 2, Order: order.OrderFIFO, Pools: licences(3)}
			q := order.NewQueue(p, order.NewLedger(0))
			for i, c := range tt.queue {
				c.Submit = plantest.Epoch0.Add(time.Duration(i))
				q.Insert(c)
			}
			v := &given.View{Nodes: []*cluster.Node{plantest.Node("n1", 64, 0, 0)}, Queue: q, Running: []*order.Running{tt.running}}
			plan := Make(plantest.Epoch0, v, p)
			if len(plan.Starts) != tt.starts {
				t.Errorf("%d starts, want %d", len(plan.Starts), tt.starts)
			}
			if tt.job > 0 {
				r, _ := plan.Reason(tt.job, q.JobClass(tt.job))
				if r.Word != "Licenses" || !strings.Contains(r.Text, tt.text) {
					t.Errorf("%+v, want %s", r, tt.text)
				}
				if e := Explain(plantest.Epoch0, v, p, tt.job); e.Word != "Licenses" || !strings.Contains(e.Text, "held by job 90") {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

func TestPoolsThatAreNot(t *testing.T) {
	p := &order.Policy{Pools: []api.Pool{{Kind: "licence", Name: "matlab", Count: 3}}}
	for _, tt := range []struct {
		policy *order.Policy
		ask    api.Pool
		want   string
	}{
		{p, api.Pool{Kind: "licence", Name: "matlab", Count: 3}, ""},
		{p, api.Pool{Kind: "licence", Name: "matlab", Count: 4}, "4 of licence matlab are asked for, and the site has 3"},
		{p, api.Pool{Kind: "licence", Name: "matlba", Count: 1}, "there is no licence matlba; did you mean matlab?"},
		{&order.Policy{}, api.Pool{Kind: "licence", Name: "x", Count: 1}, "there is no licence x: the site has no licence; ask an admin, who lists them in gangd's configuration"},
	} {
		got := ""
		if err := tt.policy.AboveCap("", cluster.AskOf(&api.Spec{Size: 1, AsAsked: api.AsAsked{Pools: []api.Pool{tt.ask}}}, []string{"gpu"})); err != nil {
			got = strings.TrimSuffix(err.Message+"; "+err.Hint, "; ")
		}
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%v: %s, want %s", tt.ask, got, tt.want)
		}
	}
}

// TestPoolsAreNeverOverdrawn plans drawn queues.
func TestPoolsAreNeverOverdrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &order.Policy{Partitions: []api.Partition{{Name: "gpu"}}, BackfillDepth: rapid.IntRange(1, 3).Draw(t, "depth"), Order: rapid.SampledFrom(order.Orders).Draw(t, "order"), Pools: licences(3)}
		q, asked := order.NewQueue(p, order.NewLedger(0)), map[int64]int{}
		for job := range int64(rapid.IntRange(1, 8).Draw(t, "jobs")) {
			n := rapid.IntRange(1, 3).Draw(t, "asks for")
			c := asking(job+1, n, time.Duration(rapid.IntRange(0, 3).Draw(t, "hours"))*time.Hour)
			asked[c.Job] = n
			q.Insert(c)
		}
		held := rapid.IntRange(0, 3).Draw(t, "held")
		v := &given.View{Nodes: []*cluster.Node{plantest.Node("n1", rapid.IntRange(1, 8).Draw(t, "cpus"), 0, 0)}, Queue: q}
		if held > 0 {
			v.Running = []*order.Running{{Job: 90, Epoch: 1, Pools: licences(held), Start: plantest.Epoch0, TimeLimit: time.Duration(rapid.IntRange(0, 2).Draw(t, "ends")) * time.Hour}}
		}
		for _, s := range Make(plantest.Epoch0, v, p).Starts {
			if held += asked[s.Job]; held > 3 {
				t.Fatalf("%d of 3 are given", held)
			}
		}
	})
}
