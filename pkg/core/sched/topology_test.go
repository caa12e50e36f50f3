package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/why"
	"gangd/pkg/lab/plantest"
)

func leavesOf(sw []api.Switch, slots []cluster.Slot) []string {
	var out []string
	for _, n := range cluster.NodesOf(slots) {
		for i := range sw {
			if sw[i].Level == 0 && slices.Contains(sw[i].Nodes, n) {
				out = append(out, sw[i].Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// busy takes all cards of nodes, by number.
func busy(nodes []*cluster.Node, which ...int) []*cluster.Node {
	for _, i := range which {
		nodes[i-1] = plantest.Hold(nodes[i-1], int64(100+i), 0, true, 0, 1)
	}
	return nodes
}

func TestNearNodes(t *testing.T) {
	sw := plantest.Fabric(16, 4)
	whole := func(n int) api.Spec { return api.Spec{Size: 2 * n, GPUsPerRank: 1, RanksPerNode: 2} }
	for _, tt := range []struct {
		name string
		busy []int
		ask  api.Spec
		want string // nodes
	}{
		{"below one leaf", []int{1, 2, 3}, whole(3), "n[00005-00007]"},
		{"the tightest leaf", []int{5, 6}, whole(2), "n[00007-00008]"},
		{"below one spine", []int{1, 2, 9, 10, 13}, whole(5), "n[00011-00012,00014-00016]"},
		{"the fewest leaves of it", []int{1, 9, 10, 13, 14}, whole(6), "n[00002-00007]"},
		{"below the top", nil, whole(9), "n[00001-00009]"},
		{"parts of nodes", []int{1, 2, 3}, api.Spec{Size: 3, GPUsPerRank: 1}, "n[00004-00005]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &given.View{Nodes: busy(plantest.Nodes(16, 8, 2, 80), tt.busy...), Queue: plantest.QueueOf(plantest.Candidate(1, tt.ask))}
			plan := planned(t, plantest.Epoch0, v, &order.Policy{BackfillDepth: 1, Switches: sw, MaxSwitchWait: time.Hour})
			if len(plan.Starts) != 1 {
				t.Fatal("not started")
			}
			slots := plan.Starts[0].Slots
			if got := why.Hosts(cluster.NodesOf(slots)); got != tt.want && tt.name != "parts of nodes" {
				t.Errorf("%s below %v, want %s", got, leavesOf(sw, slots), tt.want)
			}
			if tt.name == "parts of nodes" && len(leavesOf(sw, slots)) != 1 {
				t.Errorf("below %v", leavesOf(sw, slots))
			}
		})
	}
}

// A gang that asked for one switch waits for that, says so, and starts anywhere when its time is over.
func TestSwitchesAreWaitedFor(t *testing.T) {
	sw := plantest.Fabric(8, 2)
	wait := 2 * time.Minute
	p := &order.Policy{BackfillDepth: 1, Switches: sw, MaxSwitchWait: 5 * time.Minute}
	c := plantest.Candidate(0, api.Spec{Size: 4, GPUsPerRank: 1, RanksPerNode: 2, Switches: 1, SwitchWait: &wait})
	c.Job = 1
	v := &given.View{Nodes: busy(plantest.Nodes(8, 8, 2, 80), 1, 3, 5, 7), Queue: plantest.QueueOf(c)}
	plan := planned(t, plantest.Epoch0, v, p)
	if len(plan.Starts) != 0 || !plan.Next.Equal(plantest.Epoch0.Add(wait)) {
		t.Fatalf("starts %+v, next %s", plan.Starts, plan.Next)
	}
	if len(plan.Backfills) != 0 {
		t.Errorf("it keeps others off what it does not want: %+v", plan.Backfills)
	}
	want := "there is room now, but not below 1 switch: leaf1 has room for 2 ranks, leaf2 has room for 2 ranks, leaf3 has room for 2 ranks and " +
		"leaf4 has room for 2 ranks; that takes 2; it waits for that until 00:02:00, then it starts anywhere"
	if r := plan.Reasons(v.Queue); len(r) != 1 || r[0].Text != want || r[0].Word != given.WordResources {
		t.Errorf("%+v\nwant %s", r, want)
	}
	if e := Explain(plantest.Epoch0, v, p, 1); !strings.Contains(e.Text, want) {
		t.Error(e.Text)
	}
	if plan := planned(t, plantest.Epoch0.Add(wait), v, p); len(plan.Starts) != 1 || len(leavesOf(sw, plan.Starts[0].Slots)) != 2 {
		t.Errorf("after its wait: %+v", plan.Starts)
	}
	v.Nodes = busy(plantest.Nodes(8, 8, 2, 80), 1, 3, 5)
	if plan := planned(t, plantest.Epoch0, v, p); len(plan.Starts) != 1 || !slices.Equal(leavesOf(sw, plan.Starts[0].Slots), []string{"leaf4"}) {
		t.Errorf("with room below one: %+v", plan.Starts)
	}
	// The site's bound counts, too, and without switches nothing is waited for.
	short := &order.Policy{BackfillDepth: 1, Switches: sw, MaxSwitchWait: time.Minute}
	v.Nodes = busy(plantest.Nodes(8, 8, 2, 80), 1, 3, 5, 7)
	if plan := planned(t, plantest.Epoch0.Add(time.Minute), v, short); len(plan.Starts) != 1 {
		t.Error("it waits for longer than the site allows")
	}
	if plan := planned(t, plantest.Epoch0, v, &order.Policy{BackfillDepth: 1}); len(plan.Starts) != 1 {
		t.Error("it waits for switches that are not known")
	}
}

// A gang that waits for its switches does not hold another up that has waited for them.
func TestSwitchesAreWaitedForAlone(t *testing.T) {
	wait := 2 * time.Minute
	p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 1, Switches: plantest.Fabric(4, 2), MaxSwitchWait: 5 * time.Minute}
	q := order.NewQueue(p, nil)
	for job, waited := range []time.Duration{0, wait} {
		c := plantest.Candidate(int64(job+1), api.Spec{Size: 4, GPUsPerRank: 1, RanksPerNode: 2, Switches: 1, SwitchWait: &wait})
		c.Submit, c.Priority, c.TimeLimit = plantest.Epoch0.Add(-waited), int64(-job), time.Duration(job+1)*time.Hour
		q.Insert(c)
	}
	if got := started(planned(t, plantest.Epoch0, &given.View{Nodes: busy(plantest.Nodes(4, 8, 2, 80), 1, 3), Queue: q}, p)); got != "[2@n00002]" {
		t.Errorf("started %s", got)
	}
}

// Switches only choose among places: whatever starts without them starts with them, on as many
// nodes, and a limit is kept.
func TestSwitchesOnlyChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := plantest.DrawNodes(t)
		var sw []api.Switch
		for i, n := range nodes {
			if k := rapid.IntRange(-1, 2).Draw(t, "leaf"); k >= 0 {
				name := fmt.Sprint("leaf", k)
				at := slices.IndexFunc(sw, func(s api.Switch) bool { return s.Name == name })
				if at < 0 {
					sw = append(sw, api.Switch{Name: name, Parent: "top"})
					at = len(sw) - 1
				}
				sw[at].Nodes = append(sw[at].Nodes, nodes[i].Name)
				_ = n
			}
		}
		if len(sw) == 0 {
			return
		}
		sw = append(sw, api.Switch{Name: "top", Level: 1})
		c := plantest.DrawCandidate(t, 1)
		limit := rapid.IntRange(0, 2).Draw(t, "switches")
		s := *c.Ask.Spec
		s.Switches = limit
		c.Ask = cluster.AskOf(&s, c.Ask.Partitions)
		plain := Make(plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(c)}, &order.Policy{BackfillDepth: 1})
		plan := Make(plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(c)}, &order.Policy{BackfillDepth: 1, Switches: sw, MaxSwitchWait: time.Hour})
		if len(plan.Starts) > len(plain.Starts) || limit == 0 && len(plan.Starts) < len(plain.Starts) {
			t.Fatalf("without switches %+v, with them %+v", plain.Starts, plan.Starts)
		}
		if len(plan.Starts) == 0 {
			return
		}
		plantest.Apply(t, nodes, c, 1, plan.Starts[0].Slots)
		on, was := cluster.NodesOf(plan.Starts[0].Slots), cluster.NodesOf(plain.Starts[0].Slots)
		if limit == 0 && len(on) != len(was) {
			t.Fatalf("%v, without switches %v", on, was)
		}
		if limit > 0 && s.Roles == nil {
			if n := len(leavesOf(sw, plan.Starts[0].Slots)); n > limit {
				t.Fatalf("%v is below %d switches", on, n)
			}
		}
	})
}
