package sched

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/why"
	"gangd/pkg/lab/plantest"
)

// TestCouldHold: with nothing on them, and the ask must be one.
func TestCouldHold(t *testing.T) {
	full := []*cluster.Node{plantest.Hold(plantest.Node("n1", 8, 2, 80), 7, 0, true, 0, 1)}
	for _, tt := range []struct {
		spec api.Spec
		want bool
	}{{api.Spec{Size: 2, GPUsPerRank: 1}, true}, {api.Spec{Size: 3, GPUsPerRank: 1}, false}, {api.Spec{Size: 1, Constraint: "a&"}, false}} {
		if got := why.CouldHold(full, cluster.AskOf(&tt.spec, []string{"gpu"})); got != tt.want {
			t.Errorf("%+v: %t", tt.spec, got)
		}
	}
}

func TestSwitchPath(t *testing.T) {
	got := fit.SwitchPath([]api.Switch{
		{Name: "a", Nodes: []string{"n1", "n2"}, Parent: "top"}, {Name: "b", Nodes: []string{"n3"}, Parent: "mid"}, {Name: "c", Nodes: []string{"n4"}},
		{Name: "mid", Level: 1, Parent: "top", Nodes: []string{"n3"}}, {Name: "top", Level: 2},
	})
	if want := map[string]string{"n1": "top.a", "n2": "top.a", "n3": "top.mid.b", "n4": "c"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestOpenTo(t *testing.T) {
	for _, tt := range []struct {
		users []string
		want  bool
	}{{nil, true}, {[]string{"ada"}, true}, {[]string{"bob", "ada"}, true}, {[]string{"bob"}, false}} {
		if got := (&order.Account{Users: tt.users}).OpenTo("ada"); got != tt.want {
			t.Errorf("%v: %t", tt.users, got)
		}
	}
}

func TestDefaultBackfillDepth(t *testing.T) {
	for p, want := range map[order.Preempt]int{order.PreemptOff: 8, order.PreemptTier: 8, order.PreemptService: 1, "": 8} {
		if got := order.DefaultBackfillDepth(p); got != want {
			t.Errorf("%s: %d", p, got)
		}
	}
}

// TestWouldPreempt: the victims of a move of that job alone, none of one that is not planned.
func TestWouldPreempt(t *testing.T) {
	p := &Plan{Backfills: []given.Backfill{{Job: 1, Victims: []given.Victim{{Job: 7}, {Job: 8}}}, {Job: 2}, {Job: 3, Victims: []given.Victim{{Job: 9}}}}}
	for job, want := range map[int64][]int64{1: {7, 8}, 2: nil, 3: {9}, 4: nil} {
		if got := p.WouldPreempt(job); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", job, got, want)
		}
	}
}

// TestClock: the time of today, the date with it of another day, in the zone of now.
func TestClock(t *testing.T) {
	zone := time.FixedZone("", 3600)
	now := time.Date(2030, 1, 2, 0, 30, 0, 0, zone)
	for _, tt := range []struct {
		at   time.Time
		want string
	}{
		{now, "00:30:00"}, {now.Add(23*time.Hour + 29*time.Minute), "23:59:00"}, {now.Add(24 * time.Hour), "2030-01-03 00:30:00"},
		{now.Add(-time.Hour), "2030-01-01 23:30:00"}, {now.AddDate(0, 1, 0), "2030-02-02 00:30:00"}, {now.AddDate(1, 0, 0), "2031-01-02 00:30:00"},
		{time.Date(2030, 1, 2, 1, 0, 0, 0, time.UTC), "02:00:00"},
	} {
		if got := when.Clock(now, tt.at); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.at, got, tt.want)
		}
	}
}

// TestExplainWhenItStartsAtTheLatest: in each case that makes it known or not.
func TestExplainWhenItStartsAtTheLatest(t *testing.T) {
	for _, limits := range [][3]int{{90, 30, 30}, {90, 30, 0}, {0, 30, 30}, {90, 200, 30}} {
		for _, by := range []order.Order{order.OrderFIFO, order.OrderService} {
			for _, ago := range []int{10, 70, 300} {
				p := &order.Policy{Order: by, BackfillDepth: 1, GuardAfter: time.Hour, GuardShare: 0.5}
				q := order.NewQueue(p, nil)
				for job, size := range []int{3, 3, 2} {
					c := plantest.Lasting(int64(job+1), size, limits[min(job+1, 2)])
					c.Submit = plantest.Epoch0.Add(-time.Duration(ago-job) * time.Minute)
					q.Insert(c)
				}
				n := plantest.Run(plantest.Node("n1", 16, 4, 80), 7, limits[0], 0, 1, 2)
				v := &given.View{Nodes: []*cluster.Node{n}, Queue: q, Running: []*order.Running{{Job: 7, Epoch: 1, Cards: 3, Start: plantest.Epoch0, TimeLimit: time.Duration(limits[0]) * time.Minute}}}
				q.Refresh(plantest.Epoch0)
				planned(t, plantest.Epoch0, v, p)
			}
		}
	}
}

// TestNoCapIsNone, and the cap itself may be asked for.
func TestNoCapIsNone(t *testing.T) {
	ask := cluster.AskOf(&api.Spec{Size: 3, GPUsPerRank: 1}, []string{"gpu"})
	lab := func(cards int) []order.Account { return []order.Account{{Name: "lab", Cards: cards}} }
	for _, tt := range []struct {
		p    order.Policy
		want string
	}{
		{order.Policy{}, ""}, {order.Policy{UserCards: 3}, ""}, {order.Policy{Accounts: lab(0)}, ""}, {order.Policy{Accounts: lab(3)}, ""},
		{order.Policy{UserCards: 2}, "3 cards are asked for, and a user may hold at most 2 at a time; ask for 2 cards or fewer"},
		{order.Policy{Accounts: lab(1)}, "3 cards are asked for, and account lab may hold at most 1 at a time; ask for 1 card or fewer"},
	} {
		got := ""
		if err := tt.p.AboveCap("lab", ask); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.p, got, tt.want)
		}
		c := plantest.Candidate(1, *ask.Spec)
		c.User, c.Account = "ada", "lab"
		plan := planned(t, plantest.Epoch0, &given.View{Nodes: plantest.Nodes(1, 16, 4, 80), Queue: plantest.QueueOf(c)}, &tt.p)
		if starts := len(plan.Starts) == 1; starts != (tt.want == "") {
			t.Errorf("%+v: starts %t", tt.p, starts)
		}
	}
}

// TestKeptPlacesAreWhatWasAskedFor: of nodes that are all full the one that was named, not the one that was excluded, and one
// that failed the gang only where no other would do, also for roles.
func TestKeptPlacesAreWhatWasAskedFor(t *testing.T) {
	role := []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1, GPUsPerRank: 1}, {Name: "b", Count: 1, CPUsPerRank: 2, GPUsPerRank: 1}}
	for _, tt := range []struct {
		name  string
		nodes int
		spec  api.Spec
		avoid []string
		want  string
	}{
		{"named", 3, api.Spec{Size: 1, GPUsPerRank: 2, NodeList: []string{"n00002"}}, nil, "[1@n00002+60]"},
		{"excluded", 3, api.Spec{Size: 1, GPUsPerRank: 2, Exclude: []string{"n00001", "n00002"}}, nil, "[1@n00003+60]"},
		{"failed", 3, api.Spec{Size: 1, GPUsPerRank: 2}, []string{"n00001"}, "[1@n00002+60]"},
		{"all failed", 1, api.Spec{Size: 1, GPUsPerRank: 2}, []string{"n00001"}, "[1@n00001+60]"},
		{"roles, failed", 3, api.Spec{Size: 2, Roles: role}, []string{"n00001"}, "[1@n00002+60]"},
		{"roles, all failed", 1, api.Spec{Size: 2, Roles: role}, []string{"n00001"}, "[1@n00001+60]"},
		{"roles, both failed", 2, api.Spec{Size: 2, Roles: role}, []string{"n00001", "n00002"}, "[1@n00001+60]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, minutes := range []int{60, 0} { // an end that is known, and none
				nodes := plantest.Nodes(tt.nodes, 8, 2, 80)
				for i := range nodes {
					nodes[i] = plantest.Run(nodes[i], int64(90+i), minutes, 0, 1)
				}
				c := plantest.Candidate(1, tt.spec)
				c.Avoid = tt.avoid
				want := tt.want
				if minutes == 0 {
					want = want[:len(want)-len("+60]")] + "]"
				}
				if got := claimed(planned(t, plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(c)}, &order.Policy{BackfillDepth: 1})); got != want {
					t.Errorf("%d minutes: %s, want %s", minutes, got, want)
				}
			}
		})
	}
}

// TestTurnBesideAReservation: when it starts at the latest is not said where a reservation may keep the nodes.
func TestTurnBesideAReservation(t *testing.T) {
	p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 1, GuardAfter: time.Hour, GuardShare: 0.5}
	q := order.NewQueue(p, nil)
	for job := range 3 {
		q.Insert(plantest.Lasting(int64(job+1), 3-job/2, 30))
	}
	v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 16, 4, 80), 7, 90, 0, 1, 2)}, Queue: q, Reservations: []given.Reservation{window("w", 300*time.Minute, time.Hour, "n1")}}
	planned(t, plantest.Epoch0, v, p)
	want := "comes to the front of its tier at 01:00:03, after a wait of 1 h, if no reservation keeps its nodes"
	if got := Explain(plantest.Epoch0, v, p, 3).Text; !slices.Contains(strings.Split(got, "\n"), want) {
		t.Errorf("%s\nlacks %s", got, want)
	}
}

// TestNodesOutOfService: three causes are named, and how many more there are.
func TestNodesOutOfService(t *testing.T) {
	for causes := 1; causes <= 5; causes++ {
		nodes := plantest.Nodes(6, 8, 2, 80)
		for i := range nodes {
			n := *nodes[i]
			if n.Ready = false; i%causes > 0 {
				n.NotReady = fmt.Sprint("cause ", i%causes)
			}
			nodes[i] = &n
		}
		planned(t, plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 1}))}, &order.Policy{})
	}
}
