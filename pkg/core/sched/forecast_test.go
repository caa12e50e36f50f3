package sched

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

func TestForecast(t *testing.T) {
	at := func(minutes int) time.Time { return plantest.Epoch0.Add(time.Duration(minutes) * time.Minute) }
	p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 1}
	q := order.NewQueue(p, nil)
	for _, c := range []*order.Candidate{plantest.Lasting(1, 4, 30), plantest.Lasting(2, 2, 100), plantest.Lasting(3, 4, 0), plantest.Lasting(4, 1, 10), plantest.Lasting(5, 1, 1000)} {
		q.Insert(c)
	}
	got := Forecast(plantest.Epoch0, &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 16, 4, 80), 7, 90, 0, 1, 2)}, Queue: q}, p)
	want := map[int64]ExpectedStart{
		1: {At: at(90), Sure: true},
		2: {At: at(120)},
		3: {At: at(220)},
		4: {At: plantest.Epoch0}, // beside the backfill, at once
		5: {},                    // 3 has no limit
	}
	for job, w := range want {
		if g := got[job]; !g.At.Equal(w.At) || g.Sure != w.Sure {
			t.Errorf("job %d: %+v, want %+v", job, g, w)
		}
	}
}

// What is free now counts to what is free later, places that are kept without an end do not come back, and those of a
// reservation do when it is over.
func TestForecastCounts(t *testing.T) {
	at := func(minutes int) time.Time { return plantest.Epoch0.Add(time.Duration(minutes) * time.Minute) }
	p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 1}
	partly, full := plantest.Run(plantest.Node("n1", 16, 4, 80), 7, 90, 0, 1, 2), plantest.Run(plantest.Node("n2", 16, 4, 80), 7, 40, 0, 1, 2, 3)
	for name, tt := range map[string]struct {
		nodes        []*cluster.Node
		reservations []given.Reservation
		queue        []*order.Candidate
		want         map[int64]time.Time
	}{
		"what is free now":     {[]*cluster.Node{partly}, nil, []*order.Candidate{plantest.Lasting(1, 4, 30), plantest.Lasting(2, 4, 10)}, map[int64]time.Time{1: at(90), 2: at(120)}},
		"behind one for good":  {[]*cluster.Node{partly}, nil, []*order.Candidate{plantest.Lasting(1, 4, 0), plantest.Lasting(2, 4, 10)}, map[int64]time.Time{1: at(90), 2: {}}},
		"after a reservation":  {[]*cluster.Node{plantest.Node("n1", 16, 4, 80), full}, []given.Reservation{window("talk", -time.Hour, 2*time.Hour, "n1")}, []*order.Candidate{plantest.Lasting(1, 4, 30), plantest.Lasting(2, 4, 10)}, map[int64]time.Time{1: at(40), 2: at(60)}},
		"beside a reservation": {[]*cluster.Node{plantest.Node("n1", 16, 4, 80), full}, []given.Reservation{window("talk", -time.Hour, 2*time.Hour, "n1")}, []*order.Candidate{plantest.Lasting(1, 2, 30), plantest.Lasting(2, 2, 10)}, map[int64]time.Time{1: at(40), 2: at(40)}},
	} {
		q := order.NewQueue(p, nil)
		for _, c := range tt.queue {
			q.Insert(c)
		}
		got := Forecast(plantest.Epoch0, &given.View{Nodes: tt.nodes, Queue: q, Reservations: tt.reservations}, p)
		for job, want := range tt.want {
			if !got[job].At.Equal(want) {
				t.Errorf("%s: job %d at %s, want %s", name, job, got[job].At, want)
			}
		}
	}
}

// Gangs without cards stand behind each other by their CPUs, and gangs that want nodes to themselves by whole nodes.
func TestForecastWithoutCards(t *testing.T) {
	at := func(minutes int) time.Time { return plantest.Epoch0.Add(time.Duration(minutes) * time.Minute) }
	whole := func(job int64, minutes int) *order.Candidate {
		c := plantest.Candidate(job, api.Spec{Size: 1, CPUsPerRank: 1, Exclusive: true})
		c.TimeLimit = time.Duration(minutes) * time.Minute
		return c
	}
	cpus := func(job int64, n, minutes int) *order.Candidate {
		c := plantest.Candidate(job, api.Spec{Size: n, CPUsPerRank: 1})
		c.TimeLimit = time.Duration(minutes) * time.Minute
		return c
	}
	alone := cluster.Grant{MemberKey: api.MemberKey{Job: 7}, Ranks: 1, Takes: cluster.Amounts{cluster.CPUs: 1}, Exclusive: true, Until: at(10)}
	for name, tt := range map[string]struct {
		queue []*order.Candidate
		want  map[int64]ExpectedStart
	}{
		"whole nodes": {
			[]*order.Candidate{whole(1, 20), whole(2, 30), whole(3, 5)},
			map[int64]ExpectedStart{1: {At: at(10), Sure: true}, 2: {At: at(30)}, 3: {At: at(60)}},
		},
		"CPUs": {
			[]*order.Candidate{cpus(1, 8, 20), cpus(2, 5, 30), cpus(3, 4, 7), cpus(4, 3, 7)},
			map[int64]ExpectedStart{1: {At: at(10), Sure: true}, 2: {At: at(30)}, 3: {At: at(60)}, 4: {At: at(60)}},
		},
	} {
		p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 1}
		q := order.NewQueue(p, nil)
		for _, c := range tt.queue {
			q.Insert(c)
		}
		n := plantest.Node("n1", 8, 0, 0)
		n.Grants = []cluster.Grant{alone}
		got := Forecast(plantest.Epoch0, &given.View{Nodes: []*cluster.Node{n.Counted()}, Queue: q}, p)
		for job, w := range tt.want {
			if g := got[job]; !g.At.Equal(w.At) || g.Sure != w.Sure {
				t.Errorf("%s: job %d: %+v, want %+v", name, job, g, w)
			}
		}
	}
}

// A gang that takes all of nodes that are not alike has an expected start, and so has who is behind it.
func TestForecastOfAllNodes(t *testing.T) {
	var nodes []*cluster.Node
	for i, cpus := range []int{8, 3} {
		n := plantest.Node("n"+strconv.Itoa(i+1), cpus, 0, 0)
		n.Grants = []cluster.Grant{{MemberKey: api.MemberKey{Job: 7}, Ranks: 1, Takes: cluster.Amounts{cluster.CPUs: 1}, Exclusive: true, Until: plantest.Epoch0.Add(10 * time.Minute)}}
		nodes = append(nodes, n.Counted())
	}
	p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 1}
	q := order.NewQueue(p, nil)
	for job := range int64(3) {
		c := plantest.Candidate(job+1, api.Spec{Size: 11, CPUsPerRank: 1, Exclusive: true})
		c.TimeLimit = time.Hour
		q.Insert(c)
	}
	got := Forecast(plantest.Epoch0, &given.View{Nodes: nodes, Queue: q}, p)
	for job, minutes := range map[int64]int{1: 10, 2: 70, 3: 130} {
		if want := plantest.Epoch0.Add(time.Duration(minutes) * time.Minute); !got[job].At.Equal(want) {
			t.Errorf("job %d: expected at %s, want %s", job, got[job].At, want)
		}
	}
}

func BenchmarkForecast(b *testing.B) {
	nodes := plantest.Nodes(10000, 64, 8, 80)
	fill(nodes, nil)
	v := &given.View{Nodes: nodes, Queue: plantest.QueueOf(benchQueue(100000, 500)...)}
	for b.Loop() {
		if got := Forecast(plantest.Epoch0, v, &order.Policy{BackfillDepth: 4}); len(got) != 100000 {
			b.Fatal(len(got))
		}
	}
}

// A gang that only a stranger's process keeps out has no expected start, and takes nothing
// from those behind it.
func TestForecastBehindAStranger(t *testing.T) {
	n := plantest.Node("n1", 16, 2, 80)
	n.Cards[0].StrangersBytes = 50 * plantest.GiB
	n = plantest.Run(n.Counted(), 7, 60, 1)
	p := &order.Policy{BackfillDepth: 1}
	q := order.NewQueue(p, nil)
	q.Insert(plantest.Candidate(1, api.Spec{Size: 2, GPUsPerRank: 1, VRAMBytes: 40 * plantest.GiB}))
	q.Insert(plantest.Candidate(2, api.Spec{Size: 1, GPUsPerRank: 1, VRAMBytes: 40 * plantest.GiB}))
	got := Forecast(plantest.Epoch0, &given.View{Nodes: []*cluster.Node{n}, Queue: q}, p)
	if !got[1].At.IsZero() {
		t.Errorf("behind a stranger: expected at %s", got[1].At)
	}
	if want := plantest.Epoch0.Add(time.Hour); !got[2].At.Equal(want) {
		t.Errorf("behind job 7: expected at %s, want %s", got[2].At, want)
	}
}

// TestPromises: a start is told as one at the latest, and where gangs that need less may come
// before it that is said.
func TestPromises(t *testing.T) {
	for _, tt := range []struct {
		policy order.Policy
		waited time.Duration
		sure   bool
		text   string
	}{
		{order.Policy{Order: order.OrderFIFO}, 0, true, "n1 is kept for it; starts there at the latest at 01:30:00, by the time limits of what runs there\n"},
		{order.Policy{}, 0, false, "at 01:30:00, by the time limits of what runs there, unless gangs that need less come before\n"},
		{order.Policy{GuardAfter: time.Hour}, time.Hour, true, "at 01:30:00, by the time limits of what runs there\n"},
		{order.Policy{Preempt: order.PreemptService}, 0, true, "at 01:30:00, by the time limits of what runs there\n"},
	} {
		c := plantest.Lasting(1, 4, 60)
		c.Submit = plantest.Epoch0.Add(-tt.waited)
		q := order.NewQueue(&tt.policy, nil)
		q.Insert(c)
		v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 16, 4, 80), 7, 90, 0)}, Queue: q}
		if got := Forecast(plantest.Epoch0, v, &tt.policy)[1]; got.Sure != tt.sure || !got.At.Equal(plantest.Epoch0.Add(90*time.Minute)) {
			t.Errorf("%+v: %+v, want sure %v", tt.policy, got, tt.sure)
		}
		if got := Explain(plantest.Epoch0, v, &tt.policy, 1).Text; !strings.Contains(got, tt.text) {
			t.Errorf("%+v: %s\nwant in it: %s", tt.policy, got, tt.text)
		}
	}
}

// TestForecastOfAnAskThatCanNotBeRead: it is expected at no time, and the others are as if it were not there.
func TestForecastOfAnAskThatCanNotBeRead(t *testing.T) {
	bad, next := plantest.Candidate(1, api.Spec{Size: 1, Constraint: "a&"}), plantest.Lasting(2, 4, 30)
	v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 16, 4, 80), 7, 90, 0)}, Queue: plantest.QueueOf(bad, next)}
	if got := Forecast(plantest.Epoch0, v, &order.Policy{}); len(got) != 1 || !got[2].At.Equal(plantest.Epoch0.Add(90*time.Minute)) {
		t.Errorf("%+v", got)
	}
	if got := Explain(plantest.Epoch0, v, &order.Policy{}, 2); got.Word != given.WordResources {
		t.Errorf("%+v", got)
	}
}
