package victims

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/bounds"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/guard"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
	"gangd/pkg/lab/transcript"
)

var printer = transcript.Printer{Since: plantest.Epoch0}

// victimsOf is who may make room in a view.
func victimsOf(v *given.View, p *order.Policy) *Victims {
	f := new(fit.Finder)
	f.Begin(v.Nodes, p.Switches, v.Queue.Ledger().Typical(), nil)
	g := &given.Facts{Now: plantest.Epoch0, View: v, Policy: p, Depth: max(1, p.BackfillDepth), Front: map[int64]order.Turn{}}
	k := kept.New(g, f, new(kept.Memory))
	b := bounds.New(g, &k)
	gd := guard.New(g, f, &k, &b)
	vs := New(g, f, &k, &b, &gd)
	return &vs
}

// A place costs the cards' work that its victims lose, a minute for each of them so that of
// equal ones the fewest go, and another for who would not run again; and no more victims than
// the ranks there need.
func TestPriceOfAPlace(t *testing.T) {
	nodes := []*cluster.Node{plantest.Node("n1", 32, 4, 80), plantest.Node("n2", 32, 4, 80)}
	victim := func(job int64, lost time.Duration, places map[int][]int) *candidate {
		v := &candidate{Running: plantest.Ran(nodes, job, 60, places), lost: lost}
		for at := range places {
			v.at = append(v.at, at)
		}
		return v
	}
	half, other := victim(1, 10*time.Minute, map[int][]int{0: {0, 1}}), victim(2, 20*time.Minute, map[int][]int{0: {2, 3}})
	wide := victim(3, 10*time.Minute, map[int][]int{1: {0, 1, 2, 3}})
	wide.at = []int{0, 1} // of a gang on two nodes
	c := plantest.Candidate(9, api.Spec{Size: 4, GPUsPerRank: 1})
	vs := victimsOf(&given.View{Nodes: nodes, Queue: plantest.QueueOf(c)}, &order.Policy{})
	sh := vs.fit.ClassOf(c.Ask)
	mv := &mover{d: sh.Need, base: vs.kept.Bare(), on: map[int][]*candidate{0: {half, other}, 1: {wide}}}
	for _, tt := range []struct {
		at, ranks int
		want      int64
	}{{0, 0, 0}, {0, 1, 600*2 + 60}, {0, 2, 600*2 + 60}, {0, 3, 600*2 + 60 + 1200*2 + 60}, {1, 4, 600*4/2 + 60}} {
		if got := mv.price(tt.at, tt.ranks); got != tt.want {
			t.Errorf("%d ranks on node %d cost %d, want %d", tt.ranks, tt.at, got, tt.want)
		}
	}
	half.Final = true
	if got := mv.price(0, 1); got != 600*2+120 {
		t.Errorf("of who may not run again: %d", got)
	}
}

// TestLostWork: what a gang did since its last checkpoint, all of it where it does not run again.
func TestLostWork(t *testing.T) {
	hour := func(h int) time.Time { return plantest.Epoch0.Add(time.Duration(h-10) * time.Hour) }
	for _, tt := range []struct {
		r    order.Running
		want int
	}{
		{order.Running{}, 0},
		{order.Running{KeepsWork: true, Attained: time.Hour}, 0},
		{order.Running{Start: hour(4)}, 6},
		{order.Running{Start: hour(4), Attained: time.Hour}, 6},
		{order.Running{Start: hour(4), KeepsWork: true}, 0},
		{order.Running{Start: hour(4), KeepsWork: true, Attained: time.Hour, Ending: order.Ending{Final: true}}, 7},
		{order.Running{Start: hour(4), Saved: hour(9), Ending: order.Ending{Final: true}}, 6},
		{order.Running{Start: hour(4), Saved: hour(9)}, 1},
		{order.Running{Start: hour(4), Saved: hour(3)}, 6},
		{order.Running{Attained: time.Hour, Ending: order.Ending{Final: true}}, 0},
	} {
		if got := (&Victims{Facts: &given.Facts{Now: hour(10)}}).lost(&tt.r); got != time.Duration(tt.want)*time.Hour {
			t.Errorf("%s: %v, want %d hours", printer.Value(tt.r), got, tt.want)
		}
	}
}

// TestMayTake: of whom a gang may take the place, one below, at and above each bound.
func TestMayTake(t *testing.T) {
	mine := []order.Account{{Name: "own", Quota: 4}, {Name: "other", Quota: 1}, {Name: "none"}}
	holds := &order.Running{Job: 2, Account: "other", Cards: 2}
	for _, tt := range []struct {
		name    string
		p       order.Policy
		c       order.Terms
		r       order.Running
		left    float64
		service float64
		want    bool
	}{
		{"off", order.Policy{}, order.Terms{Tier: 2}, order.Running{}, 10, 1, false},
		{"a higher tier", order.Policy{Preempt: order.PreemptTier}, order.Terms{Tier: 1}, order.Running{}, 0, 0, true},
		{"a higher tier by service", order.Policy{Preempt: order.PreemptService}, order.Terms{Tier: 1}, order.Running{Priority: 9}, 0, 0, true},
		{"a lower tier", order.Policy{Preempt: order.PreemptService}, order.Terms{Priority: 9}, order.Running{Tier: 1, KeepsWork: true}, 10, 1, false},
		{"a higher priority", order.Policy{Preempt: order.PreemptTier}, order.Terms{Priority: 1}, order.Running{}, 0, 0, true},
		{"a lower priority", order.Policy{Preempt: order.PreemptTier}, order.Terms{}, order.Running{Priority: 1}, 0, 0, false},
		{"it is nicer", order.Policy{Preempt: order.PreemptTier}, order.Terms{Priority: 2, Nice: 3}, order.Running{Priority: 4}, 0, 0, true},
		{"only the other is nice", order.Policy{Preempt: order.PreemptTier}, order.Terms{Priority: 4}, order.Running{Priority: 1, Nice: 3}, 0, 0, false},
		{"equals by tier", order.Policy{Preempt: order.PreemptTier}, order.Terms{}, order.Running{KeepsWork: true}, 10, 1, false},
		{"needs much less", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{KeepsWork: true}, 12, 10, true},
		{"needs little less", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{KeepsWork: true}, 11.9, 10, false},
		{"as little as the site says", order.Policy{Preempt: order.PreemptService, Hysteresis: 1}, order.Terms{}, order.Running{KeepsWork: true}, 10, 10, true},
		{"and no less", order.Policy{Preempt: order.PreemptService, Hysteresis: 3}, order.Terms{}, order.Running{KeepsWork: true}, 29, 10, false},
		{"it is not known what it needs", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{KeepsWork: true}, 12, 0, false},
		{"the other would lose its work", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{}, 12, 1, false},
		{"the other would not run again", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{KeepsWork: true, Ending: order.Ending{Final: true}}, 12, 1, false},
		{"the other had its turn", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{KeepsWork: true, Turn: order.TurnOwn}, 12, 1, false},
		{"the other had waited", order.Policy{Preempt: order.PreemptService, GuardAfter: time.Hour}, order.Terms{}, order.Running{KeepsWork: true, Submit: plantest.Epoch0, Start: plantest.Epoch0.Add(time.Hour)}, 12, 1, false},
		{"not for long", order.Policy{Preempt: order.PreemptService, GuardAfter: time.Hour}, order.Terms{}, order.Running{KeepsWork: true, Submit: plantest.Epoch0, Start: plantest.Epoch0.Add(time.Hour - 1)}, 12, 1, true},
		{"for it ran before", order.Policy{Preempt: order.PreemptService, GuardAfter: time.Hour}, order.Terms{}, order.Running{KeepsWork: true, Submit: plantest.Epoch0, Start: plantest.Epoch0.Add(time.Hour), Attained: 1}, 12, 1, true},
		{"what was lent", order.Policy{Accounts: mine}, order.Terms{Account: "own"}, order.Running{Account: "other", Tier: 5}, 0, 0, true},
		{"what is the other's own", order.Policy{Accounts: mine}, order.Terms{Account: "own"}, order.Running{Account: "own", Tier: 5}, 0, 0, false},
		{"who has no quota", order.Policy{Accounts: mine}, order.Terms{Account: "none"}, order.Running{Account: "other", Tier: 5}, 0, 0, false},
		{"who has no account", order.Policy{Accounts: mine}, order.Terms{}, order.Running{Account: "other", Tier: 5}, 0, 0, false},
	} {
		p := tt.p
		p.GuardShare = 0.5
		nodes := plantest.Nodes(1, 16, 8, 80)
		c := plantest.Candidate(1, api.Spec{Size: 4, GPUsPerRank: 1})
		ask := c.Ask
		*c.Terms = tt.c
		c.Size, c.Ask = 4, ask
		vs := victimsOf(&given.View{Nodes: nodes, Queue: plantest.QueueOf(), Running: []*order.Running{holds}}, &p)
		if got := vs.mayTake(c, tt.service, &candidate{Running: &tt.r, left: tt.left}); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestServiceLeft: the time of all cards that a gang may run yet, of one at least, by what it ran in all.
func TestServiceLeft(t *testing.T) {
	l := order.NewLedger(0)
	v := &given.View{Nodes: plantest.Nodes(1, 16, 8, 80), Queue: order.NewQueue(&order.Policy{}, l)}
	vs := victimsOf(v, &order.Policy{})
	of := func(ran time.Duration, cards int) float64 {
		return l.Remaining(10*time.Hour, ran, order.Peer{Cards: cards}).Seconds() * float64(cards)
	}
	for _, tt := range []struct {
		r    order.Running
		want float64
	}{
		{order.Running{Cards: 4}, order.Unknown},
		{order.Running{TimeLimit: 10 * time.Hour}, of(0, 1)},
		{order.Running{TimeLimit: 10 * time.Hour, Cards: 1}, of(0, 1)},
		{order.Running{TimeLimit: 10 * time.Hour, Cards: 4}, of(0, 4)},
		{order.Running{TimeLimit: 10 * time.Hour, Cards: 4, Attained: time.Hour}, of(time.Hour, 4)},
		{order.Running{TimeLimit: 10 * time.Hour, Cards: 4, Attained: time.Hour, Start: plantest.Epoch0.Add(-2 * time.Hour)}, of(3*time.Hour, 4)},
	} {
		if got := vs.serviceLeft(&tt.r); got != tt.want {
			t.Errorf("%s: %v, want %v", printer.Value(tt.r), got, tt.want)
		}
	}
}

// TestVictimsInTurn: the cheapest first, by what each loses, its tier, its priority, whether it runs again, what it needs yet
// and when it began; neither who is being stopped nor who is protected.
func TestVictimsInTurn(t *testing.T) {
	began := func(job int64, hours int, change func(r *order.Running)) *order.Running {
		r := &order.Running{Job: job, Epoch: 1, Cards: 1, Start: plantest.Epoch0.Add(-time.Duration(hours) * time.Hour), TimeLimit: 20 * time.Hour}
		change(r)
		return r
	}
	same := func(*order.Running) {}
	running := []*order.Running{
		began(1, 5, same), began(2, 5, func(r *order.Running) { r.Tier = 1 }), began(3, 5, func(r *order.Running) { r.Priority = 1 }),
		began(4, 5, func(r *order.Running) { r.Final = true }), began(5, 5, func(r *order.Running) { r.Cards = 2 }), began(6, 4, same),
		began(7, 5, same), began(8, 9, func(r *order.Running) { r.Saved = plantest.Epoch0.Add(-5 * time.Hour) }), began(9, 8, func(r *order.Running) { r.KeepsWork = true }),
		began(10, 1, func(r *order.Running) { r.Stopping = true }), began(11, 1, func(r *order.Running) { r.MinRun = 2 * time.Hour }), began(12, 1, func(r *order.Running) { r.MinRun = time.Hour }),
		began(13, 5, func(r *order.Running) { r.TimeLimit = 0 }), began(14, 3, func(r *order.Running) { r.KeepsWork = true }),
	}
	p := &order.Policy{Preempt: order.PreemptService}
	vs := victimsOf(&given.View{Nodes: plantest.Nodes(1, 16, 8, 80), Queue: order.NewQueue(p, order.NewLedger(0)), Running: running}, p)
	var got []int64
	for range 2 {
		got = nil
		for _, v := range vs.list() {
			got = append(got, v.Job)
		}
	}
	if want := "[14 9 12 6 13 5 1 7 8 4 3 2]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if !vs.Next.Equal(plantest.Epoch0.Add(time.Hour)) {
		t.Errorf("next at %v, want when the protection of job 11 is over", vs.Next.Sub(plantest.Epoch0))
	}
}

// TestVictimsAreToldInTime: so that all are through with their notice together; who is told already or not yet due is not told.
func TestVictimsAreToldInTime(t *testing.T) {
	victim := func(job int64, lead int) *candidate {
		return &candidate{Running: &order.Running{Job: job, Epoch: 2, Ending: order.Ending{Lead: time.Duration(lead) * time.Second}}}
	}
	g := &given.Facts{Now: plantest.Epoch0}
	vs := &Victims{Facts: g, kept: &kept.Backfills{Facts: g, Moved: map[int64]bool{}}}
	b := &kept.Backfill{Backfill: given.Backfill{Job: 9, Victims: vs.timed([]*candidate{victim(1, 10), victim(2, 60), victim(3, 0)})}}
	vs.Tell(b)
	if got := printer.Value(b.Victims); got != "[{Job:1 Epoch:2 At:50s} {Job:2 Epoch:2 At:0s Notified:true} {Job:3 Epoch:2 At:1m0s}]" || len(vs.kept.Moved) != 3 {
		t.Errorf("%s, of a move %v", got, vs.kept.Moved)
	}
	g.Now = plantest.Epoch0.Add(50 * time.Second)
	vs.Tell(b)
	vs.Tell(b)
	if got := printer.Value(vs.Stops); got != "[{Job:2 Epoch:2 For:9} {Job:1 Epoch:2 For:9}]" {
		t.Errorf("told %s", got)
	}
}
