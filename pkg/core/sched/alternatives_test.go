package sched

import (
	"fmt"
	"slices"
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

func checkFeaturesOf(t *rapid.T, c *order.Candidate, per map[string]int, nodes []*cluster.Node) {
	var on [][]string
	for _, n := range nodes {
		if per[n.Name] > 0 {
			on = append(on, n.Features)
		}
	}
	if !plantest.MayBeOn(c.Ask.Spec, on) {
		t.Fatalf("job %d, which asks for %q, rather %q, is placed on nodes with %q", c.Job, c.Ask.Spec.Constraint, c.Ask.Spec.Prefer, on)
	}
}

var jointly = []string{"[ib|big]", "ib&[big|none]", "ib*2", "ib&big*1", "[ib*1&big*1]"}

// genJoint is small nodes of unlike features, on which a gang of several ranks is spread.
func genJoint(t *rapid.T) ([]*cluster.Node, *order.Candidate) {
	var nodes []*cluster.Node
	for i := range rapid.IntRange(2, 6).Draw(t, "nodes") {
		nodes = append(nodes, (&cluster.Node{Name: fmt.Sprintf("n%d", i+1), Ready: true, Has: cluster.Amounts{cluster.CPUs: int64(rapid.IntRange(1, 3).Draw(t, "cpus"))}, Partitions: []string{"gpu"},
			Features: rapid.SampledFrom([][]string{nil, {"ib"}, {"big"}, {"ib", "big"}}).Draw(t, "features")}).Counted())
	}
	s := &api.Spec{Size: rapid.IntRange(1, 6).Draw(t, "size"), Constraint: rapid.SampledFrom(jointly).Draw(t, "constraint")}
	switch rapid.IntRange(0, 4).Draw(t, "layout") {
	case 0:
		s.RanksPerNode = rapid.IntRange(1, 2).Draw(t, "each")
	case 1:
		s.MinNodes = rapid.IntRange(1, 4).Draw(t, "min")
	case 2:
		s.MaxNodes = rapid.IntRange(1, 4).Draw(t, "max")
	}
	if rapid.IntRange(0, 4).Draw(t, "excludes") == 0 {
		s.Exclude = []string{"n1"}
	}
	return nodes, &order.Candidate{Job: 1, Terms: &order.Terms{Size: s.Size, Ask: cluster.AskOf(s, []string{"gpu"})}}
}

// TestJointConstraintsAreExact: a gang starts if and only if trying every distribution of its
// ranks finds one that its constraint allows, and then on such nodes; with switches too, and on
// a few of them where it asks for that.
func TestJointConstraintsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, c := genJoint(t)
		p := &order.Policy{}
		if rapid.Bool().Draw(t, "switches") {
			p = treeOf(nodes)
		}
		plan := Make(plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(c)}, p)
		if want := plantest.BruteForce(c, nodes); (len(plan.Starts) == 1) != want {
			t.Fatalf("started %t, brute force %t: %+v", len(plan.Starts) == 1, want, *c.Ask.Spec)
		}
		for _, start := range plan.Starts {
			checkPlaces(t, c, start.Slots, nodes)
		}
		spec := *c.Ask.Spec
		spec.Switches = 1
		one := c.Apart()
		one.Ask, one.Eligible = cluster.AskOf(&spec, c.Ask.Partitions), plantest.Epoch0
		p = treeOf(nodes)
		p.MaxSwitchWait = time.Hour
		plan = Make(plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(one)}, p)
		if want := plantest.BruteForce(c, nodes[:len(nodes)/2]) || plantest.BruteForce(c, nodes[len(nodes)/2:]); (len(plan.Starts) == 1) != want {
			t.Fatalf("below one switch: started %t, brute force %t: %+v", len(plan.Starts) == 1, want, spec)
		}
		for _, start := range plan.Starts {
			checkPlaces(t, one, start.Slots, nodes)
		}
	})
}

func nodeNames(nodes []*cluster.Node) (names []string) {
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

// treeOf hangs each half of the nodes on a switch.
func treeOf(nodes []*cluster.Node) *order.Policy {
	names := nodeNames(nodes)
	half := len(names) / 2
	return &order.Policy{Switches: []api.Switch{{Name: "s1", Parent: "top", Nodes: names[:half]}, {Name: "s2", Parent: "top", Nodes: names[half:]},
		{Name: "top", Level: 1, Nodes: names}}}
}

// TestJointClaims: what a gang waits for, and what it takes by a move, its constraint allows
// too, and there it starts when that is free.
func TestJointClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, c := genJoint(t)
		if !plantest.BruteForce(c, nodes) {
			return
		}
		empty := slices.Clone(nodes)
		p := &order.Policy{BackfillDepth: 1, Preempt: rapid.SampledFrom([]order.Preempt{"", order.PreemptTier}).Draw(t, "preempt")}
		var running []*order.Running
		for i := range nodes {
			if rapid.IntRange(0, 3).Draw(t, "holds") == 0 {
				continue
			}
			g := cluster.Grant{MemberKey: api.MemberKey{Job: int64(100 + i), Epoch: 1}, Ranks: 1, Takes: cluster.Amounts{cluster.CPUs: nodes[i].Has[cluster.CPUs]}}
			if rapid.Bool().Draw(t, "limited") {
				g.Until = plantest.Epoch0.Add(time.Duration(rapid.IntRange(1, 9).Draw(t, "ends")) * time.Minute)
			}
			nodes[i] = nodes[i].Restore(g)
			running = append(running, &order.Running{Job: g.Job, Epoch: 1, Start: plantest.Epoch0.Add(-time.Hour)})
		}
		c.Priority = 5
		v := &given.View{Nodes: nodes, Queue: plantest.QueueOf(c), Running: running}
		plan := Make(plantest.Epoch0, v, p)
		if len(plan.Starts)+len(plan.Backfills) != 1 {
			t.Fatalf("%d starts, %d backfills: %+v", len(plan.Starts), len(plan.Backfills), *c.Ask.Spec)
		}
		if len(plan.Backfills) == 0 {
			return
		}
		if reasons := plan.Reasons(v.Queue); len(reasons) != 1 || reasons[0].Text == "" {
			t.Fatalf("reasons %+v", reasons)
		}
		checkPlaces(t, c, plan.Backfills[0].Slots, nodes)
		if want := plantest.EarliestOf(c, nodes); p.Preempt == "" && !plan.Backfills[0].At.Equal(want) {
			t.Fatalf("starts at %v, could at %v", plan.Backfills[0].At, want)
		}
		if text := Explain(plantest.Epoch0, &given.View{Nodes: nodes, Queue: v.Queue, Running: running, Backfills: plan.Backfills}, p, 1).Text; text == "" {
			t.Fatal("nothing to say")
		}
		next := Make(plantest.Epoch0.Add(time.Minute), &given.View{Nodes: empty, Queue: v.Queue, Backfills: plan.Backfills}, p)
		if len(next.Starts) != 1 {
			t.Fatalf("claimed %v and did not start there", plan.Backfills[0].Slots)
		}
	})
}

// TestJointConstraintsAroundReservations: what is reserved for others is as if it were not
// there, until it is over.
func TestJointConstraintsAroundReservations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, c := genJoint(t)
		c.TimeLimit = time.Hour
		var reserved []string
		var rest []*cluster.Node
		for _, n := range nodes {
			if rapid.IntRange(0, 2).Draw(t, "reserved") == 0 {
				reserved = append(reserved, n.Name)
			} else {
				rest = append(rest, n)
			}
		}
		v := &given.View{Nodes: nodes, Queue: plantest.QueueOf(c), Reservations: []given.Reservation{window("talk", -time.Minute, 20*time.Minute, reserved...)}}
		plan := Make(plantest.Epoch0, v, &order.Policy{BackfillDepth: 1})
		if want := plantest.BruteForce(c, rest); (len(plan.Starts) == 1) != want {
			t.Fatalf("started %t, brute force on what is not reserved %t: %+v", len(plan.Starts) == 1, want, *c.Ask.Spec)
		}
		for _, s := range plan.Starts {
			checkPlaces(t, c, s.Slots, rest)
			return
		}
		if want := plantest.BruteForce(c, nodes); (len(plan.Backfills) == 1) != want {
			t.Fatalf("%d backfills, brute force after the reservation %t", len(plan.Backfills), want)
		}
		for _, k := range plan.Backfills {
			checkPlaces(t, c, k.Slots, nodes)
			if !k.At.Equal(plantest.Epoch0.Add(19 * time.Minute)) {
				t.Fatalf("claimed for %v", k.At)
			}
		}
	})
}

// TestPreferredComesFirst: a gang that can start on what it prefers does, and one that can
// not starts as if it preferred nothing.
func TestPreferredComesFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genView(t)
		c := plantest.DrawCandidate(t, 1)
		s := *c.Ask.Spec
		if s.Prefer == "" || s.Roles != nil || c.Avoid != nil {
			return
		}
		starts := func(constraint, prefer string) []Start {
			one := s
			one.Constraint, one.Prefer = constraint, prefer
			v.Queue = plantest.QueueOf(&order.Candidate{Job: 1, Terms: &order.Terms{Size: s.Size, Ask: cluster.AskOf(&one, c.Ask.Partitions)}})
			return Make(plantest.Epoch0, v, &order.Policy{}).Starts
		}
		both, soft, hard := starts(s.Constraint, s.Prefer), starts(s.Prefer, ""), starts(s.Constraint, "")
		if (len(both) == 1) != (len(soft)+len(hard) > 0) {
			t.Fatalf("%d starts, %d on what is preferred, %d without", len(both), len(soft), len(hard))
		}
		if len(soft) == 1 && len(hard) == 1 {
			var on [][]string
			for _, name := range cluster.NodesOf(both[0].Slots) {
				on = append(on, v.Nodes[slices.IndexFunc(v.Nodes, func(n *cluster.Node) bool { return n.Name == name })].Features)
			}
			if !plantest.Meets(s.Prefer, on) {
				t.Fatalf("could be on %q, is on %q", s.Prefer, on)
			}
		}
	})
}

// TestBackfillsKeepToOneWay: also the places that a gang waits for, and those it takes by a move,
// are such as its constraint allows together.
func TestBackfillsKeepToOneWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genView(t)
		v.Running = runningOn(v.Nodes)
		p := &order.Policy{BackfillDepth: 3, Preempt: order.PreemptTier}
		for _, c := range v.Queue.Slice() {
			c.Priority += 5 * rapid.Int64Range(0, 1).Draw(t, "higher")
		}
		v.Queue = plantest.QueueOf(v.Queue.Slice()...)
		plan := Make(plantest.Epoch0, v, p)
		for _, k := range plan.Backfills {
			c := find(v.Queue, k.Job)
			per := map[string]int{}
			for _, s := range k.Slots {
				per[s.Node]++
			}
			s := *c.Ask.Spec
			if s.Prefer = ""; s.Roles == nil {
				checkFeaturesOf(t, &order.Candidate{Job: c.Job, Terms: &order.Terms{Ask: &cluster.Ask{Spec: &s}}}, per, v.Nodes)
			}
		}
	})
}

// runningOn is a gang for each that holds something.
func runningOn(nodes []*cluster.Node) (out []*order.Running) {
	for _, n := range nodes {
		for _, g := range n.Grants {
			r := &order.Running{Job: g.Job, Epoch: g.Epoch, Cards: len(g.Cards), Start: plantest.Epoch0.Add(-1e12)}
			if !slices.ContainsFunc(out, func(o *order.Running) bool { return o.Job == r.Job }) {
				out = order.PutRunning(out, r.Job, r)
			}
		}
	}
	return out
}

// TestRolesShareTheirAlternative: roles that say the same alternatives have the same one, and
// such as say others have their own.
func TestRolesShareTheirAlternative(t *testing.T) {
	node := func(name string, cpus int, features ...string) *cluster.Node {
		return (&cluster.Node{Name: name, Ready: true, Has: cluster.Amounts{cluster.CPUs: int64(cpus)}, Partitions: []string{"gpu"}, Features: features}).Counted()
	}
	nodes := []*cluster.Node{node("n1", 1, "ib"), node("n2", 1, "big"), node("n3", 1, "big", "fast"), node("n4", 1, "none")}
	for _, tt := range []struct{ a, b, prefer, on string }{
		{"[ib|big]", "[ib|big]", "", "n2 n3"},
		{"[ib|none]", "[ib|none]", "", ""},
		{"[ib|none]", "[none|ib]", "", "n1 n4"},
		{"[ib|big]", "big*1", "", "n1 n2"},
		{"", "", "[ib|big]", "n2 n3"},
		{"", "", "[ib|none]", "n1 n4"}, // no two with the same, so those with either come first
		{"none", "", "[ib|big]", "n4 n1"},
	} {
		s := &api.Spec{Size: 2, Prefer: tt.prefer, Roles: []api.Role{
			{Name: "a", Count: 1, CPUsPerRank: 1, Constraint: tt.a}, {Name: "b", Count: 1, CPUsPerRank: 1, Constraint: tt.b}}}
		plan := planned(t, plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(&order.Candidate{Job: 1, Terms: &order.Terms{Size: 2, Ask: cluster.AskOf(s, []string{"gpu"})}})}, &order.Policy{BackfillDepth: 1})
		on := ""
		for _, start := range plan.Starts {
			on = start.Slots[0].Node + " " + start.Slots[1].Node
		}
		if on != tt.on {
			t.Errorf("%q and %q, rather %q: on %q, want %q", tt.a, tt.b, tt.prefer, on, tt.on)
		}
		if never := why.Unsatisfiable(nodes, &order.Policy{}, cluster.AskOf(s, []string{"gpu"})) != nil; never != (tt.on == "") {
			t.Errorf("%q and %q: can never start: %t", tt.a, tt.b, never)
		}
	}
}
