package why

import (
	"fmt"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// TestLayoutsThatContradictThemselves: one below, at and above each bound, in words.
func TestLayoutsThatContradictThemselves(t *testing.T) {
	in := []string{"gpu"}
	for _, tt := range []struct {
		spec api.Spec
		want string
	}{
		{api.Spec{Size: 3, MinNodes: 3, MaxNodes: 3}, ""},
		{api.Spec{Size: 3, MinNodes: 4, MaxNodes: 4}, "3 ranks can't be spread over 4 nodes: each node has at least one; ask for --nodes=3 or less"},
		{api.Spec{Size: 3, MinNodes: 2, MaxNodes: 1}, "at least 2 nodes but at most 1 asked for; write --nodes=MIN-MAX"},
		{api.Spec{Size: 4, RanksPerNode: 2, MinNodes: 2, MaxNodes: 2}, ""},
		{api.Spec{Size: 5, RanksPerNode: 2, MinNodes: 3, MaxNodes: 3}, ""},
		{api.Spec{Size: 5, RanksPerNode: 2, MaxNodes: 2}, "5 ranks with 2 on each node take 3 nodes, but at most 2 were asked for; ask for --nodes=3"},
		{api.Spec{Size: 5, RanksPerNode: 2, MinNodes: 4}, "5 ranks with 2 on each node take 3 nodes, but at least 4 were asked for; ask for --nodes=3"},
		{api.Spec{Size: 2, RanksPerNode: 5, MinNodes: 1, MaxNodes: 1}, ""},
		{api.Spec{Size: 2, Constraint: "ib*2"}, ""},
		{api.Spec{Size: 2, Constraint: "ib*3"}, `the constraint "ib*3" counts 3 nodes, more than the gang has ranks (2): each node has at least one; ask for 3 ranks or more`},
		{api.Spec{Size: 4, MaxNodes: 2, Constraint: "ib*2"}, ""},
		{api.Spec{Size: 4, MaxNodes: 1, Constraint: "[ib*1&big*1]"}, `the constraint "[ib*1&big*1]" counts 2 nodes, but at most 1 were asked for; ask for --nodes=2`},
		{api.Spec{Size: 4, RanksPerNode: 2, Constraint: "ib*2"}, ""},
		{api.Spec{Size: 4, RanksPerNode: 2, Constraint: "ib*3"}, `the constraint "ib*3" counts 3 nodes, but 4 ranks with 2 on each node take 2; ask for 6 ranks`},
	} {
		d, err := cluster.NewNeed(cluster.AskOf(&tt.spec, in))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := checkLayout(d); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.spec, got, tt.want)
		}
	}
}

// TestCountsOfRoles: what the whole gang counts is refused where it has roles, and the name of a role, or the number of a
// component, is said.
func TestCountsOfRoles(t *testing.T) {
	roles := func(constraint string, own ...string) api.Spec {
		s := api.Spec{Constraint: constraint}
		for i, c := range own {
			s.Roles = append(s.Roles, api.Role{Name: fmt.Sprint("r", i), Count: 2, CPUsPerRank: 1, Constraint: c})
			s.Size += 2
		}
		return s
	}
	for _, tt := range []struct {
		spec api.Spec
		want string
	}{
		{roles("", "ib*2", "big"), ""},
		{roles("ib*1", "ib*1", "big"), `the constraint "ib*1" counts nodes, and the gang has roles: each of them has nodes of its own; write constraint=ib*1 in the role whose nodes it counts`},
		{roles("", "big", "ib*3"), `role r1: the constraint "ib*3" counts 3 nodes, more than the gang has ranks (2): each node has at least one; ask for 3 ranks or more`},
	} {
		d, err := cluster.NewNeed(cluster.AskOf(&tt.spec, []string{"gpu"}))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := checkRoleCounts(d); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.spec, got, tt.want)
		}
	}
}

func TestConditionsBeforeACount(t *testing.T) {
	for text, want := range map[string]string{"ib*2": "ib", "(ib&big)*2": "(ib&big)", "(ib|big)*2": "(ib|big)"} {
		d, err := cluster.NewNeed(cluster.AskOf(&api.Spec{Size: 2, Constraint: text}, []string{"gpu"}))
		if err != nil {
			t.Fatal(err)
		}
		if got := named(d.Alternatives[0].Counts[0].Features); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestLayoutsInWords(t *testing.T) {
	for want, s := range map[string]api.Spec{
		"nodes with 1 rank each":  {RanksPerNode: 1, MinNodes: 2},
		"nodes with 2 ranks each": {RanksPerNode: 2},
		"exactly 1 node":          {MinNodes: 1, MaxNodes: 1},
		"2 to 3 nodes":            {MinNodes: 2, MaxNodes: 3},
		"at most 3 nodes":         {MaxNodes: 3},
		"at least 2 nodes":        {MinNodes: 2},
	} {
		if got := layoutText(&cluster.Need{Ask: &cluster.Ask{Spec: &s}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if switches(1) != "1 switch" || switches(2) != "2 switches" {
		t.Error(switches(1), switches(2))
	}
	if got := partWord(&api.Spec{Roles: []api.Role{{Name: "a"}}}); got != "role" {
		t.Error(got)
	}
}

func TestShapesInWords(t *testing.T) {
	for want, s := range map[string]api.CPUShape{
		"2 sockets": {Sockets: 2}, "1 socket of 4 cores": {Cores: 4}, "1 socket of cores with 2 threads": {Threads: 2},
		"2 sockets of 1 core with 1 thread": {Sockets: 2, Cores: 1, Threads: 1},
	} {
		if got := shapeText(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestUnknownNames: each that is known is listed once, in its order, and one that is spelled much like it is offered.
func TestUnknownNames(t *testing.T) {
	for _, tt := range []struct {
		asked, known []string
		want, hint   string
	}{
		{nil, []string{"a"}, "", ""},
		{[]string{"n1"}, []string{"n1"}, "", ""},
		{[]string{"n1", "x"}, nil, `unknown thing "n1"`, "there is no thing yet"},
		{[]string{"n1", "zzz"}, []string{"n10", "n2", "n1", "n2"}, `unknown thing "zzz"`, "things: n1 n2 n10"},
		{[]string{"fast1"}, []string{"slow", "fast"}, `unknown thing "fast1"`, `did you mean "fast"? things: fast slow`},
	} {
		e := checkKnown("thing", "", tt.asked, func() []string { return tt.known }, func(all []string) string { return strings.Join(all, " ") })
		if e == nil && tt.want == "" {
			continue
		}
		if e == nil || e.Message != tt.want || e.Hint != tt.hint {
			t.Errorf("%v of %v: %+v, want %s; %s", tt.asked, tt.known, e, tt.want, tt.hint)
		}
	}
	for want, s := range map[string]api.Spec{"": {}, "--nodelist=n1": {NodeList: []string{"n1"}}, "--exclude=n[1-2]": {Exclude: []string{"n1", "n2"}},
		"--nodelist=n3 and --exclude=n4": {NodeList: []string{"n3"}, Exclude: []string{"n4"}}} {
		if got := nodeOptions(&s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestCountsThatNodesLack: how many have it, and can hold a rank, is said.
func TestCountsThatNodesLack(t *testing.T) {
	nodes := []*cluster.Node{plantest.Within("ib", plantest.Node("n1", 8, 0, 0)), plantest.Within("ib", plantest.Node("n2", 2, 0, 0)), plantest.Within("big", plantest.Node("n3", 8, 0, 0)), plantest.Node("n4", 8, 0, 0)}
	p := &order.Policy{Partitions: []api.Partition{{Name: "gpu"}}}
	for _, tt := range []struct {
		spec api.Spec
		want string
	}{
		{api.Spec{Size: 3, Constraint: "ib*2"}, ""},
		{api.Spec{Size: 3, Constraint: "ib*3"}, `the constraint "ib*3" counts 3 nodes with ib, and only 2 can hold a rank; ask for ib*2 or less: n[1-2]`},
		{api.Spec{Size: 3, CPUsPerRank: 3, Constraint: "ib*2"}, `the constraint "ib*2" counts 2 nodes with ib, and only 1 can hold a rank; ask for ib*1 or less: n1`},
		{api.Spec{Size: 3, CPUsPerRank: 9, Constraint: "ib*1"}, "no node has 9 CPUs for a rank: the most is 8 on n[1,3-4]; ask for --cpus-per-task=8 or less"},
		{api.Spec{Size: 3, Constraint: "(ib&big)*1"}, `the constraint "(ib&big)*1" counts 1 node with ib&big, and only 0 can hold a rank; none does`},
		{api.Spec{Size: 30, Constraint: "ib*1"}, `the whole cluster, empty, does not hold it so: room for 26 of 30 ranks, 1 of 1 node with ib; each rank needs 1 CPU; ask for --size=26 or less`},
	} {
		got := ""
		if err := Unsatisfiable(nodes, p, cluster.AskOf(&tt.spec, []string{"gpu"})); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.spec, got, tt.want)
		}
	}
}
