package sched

import (
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/why"
	"gangd/pkg/lab/plantest"
)

// Components of a heterogeneous job are on nodes of their own, in their order where that is possible,
// and are found room for also where only one order of them fits.
func TestComponentsAreApart(t *testing.T) {
	part := func(i, ranks int, c api.Component) api.Role {
		return api.Role{Name: api.ComponentName(i), Count: ranks, CPUsPerRank: 1, Component: &c}
	}
	carded := func(r api.Role, n int) api.Role { r.GPUsPerRank = n; return r }
	for _, c := range []struct {
		name  string
		roles []api.Role
		want  string // nodes by rank, or what is said
	}{
		{"one after the other", []api.Role{part(0, 1, api.Component{}), part(1, 2, api.Component{})}, "n1 n2 n2"},
		{"nodes are counted by component", []api.Role{part(0, 2, api.Component{MinNodes: 2, MaxNodes: 2}), part(1, 1, api.Component{})}, "n1 n2 n3"},
		{"the one node with cards is left to who needs it", []api.Role{part(0, 1, api.Component{}), carded(part(1, 1, api.Component{NodeList: []string{"n1"}}), 1)}, "n2 n1"},
		{"cards by node", []api.Role{part(0, 1, api.Component{}), part(1, 2, api.Component{GPUsPerNode: 1, MinNodes: 2, MaxNodes: 2})}, "n1 n2 n3"},
		{"each its own list", []api.Role{part(0, 1, api.Component{NodeList: []string{"n1", "n2"}}), part(1, 1, api.Component{NodeList: []string{"n1", "n3"}}), part(2, 1, api.Component{NodeList: []string{"n1"}})}, "n2 n3 n1"},
		{"a partition of its own", []api.Role{part(0, 1, api.Component{Partition: "gpu"}), part(1, 1, api.Component{Partition: "cpu"})}, "n1 n3"},
		{"more nodes than there are", []api.Role{part(0, 3, api.Component{MinNodes: 3}), part(1, 1, api.Component{})}, "the whole cluster, empty, has room for each component but not for all at once, on nodes of their own"},
		{"one that fits nowhere", []api.Role{part(0, 1, api.Component{}), part(1, 99, api.Component{})}, "component 1: the whole cluster, empty, has room for 6 of 99 ranks"},
		{"a node that is not there", []api.Role{part(0, 1, api.Component{}), part(1, 1, api.Component{NodeList: []string{"n9"}})}, "component 1: unknown node \"n9\""},
	} {
		nodes := []*cluster.Node{plantest.Node("n1", 2, 2, 40), plantest.Node("n2", 2, 2, 40), plantest.Node("n3", 2, 2, 40)}
		nodes[2].Partitions = append(nodes[2].Partitions, "cpu")
		spec := api.Spec{Launch: api.LaunchBatch, Roles: c.roles}
		for i := range c.roles {
			spec.Size += c.roles[i].Count
		}
		job := plantest.Candidate(1, spec)
		job.Ask = cluster.AskOf(&spec, []string{"gpu", "cpu"})
		p := &order.Policy{Partitions: []api.Partition{{Name: "gpu"}, {Name: "cpu"}}}
		got := ""
		if err := why.Unsatisfiable(nodes, p, job.Ask); err != nil {
			got = err.Message
		} else if plan := planned(t, plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(job)}, p); len(plan.Starts) == 1 {
			var at []string
			for _, s := range plan.Starts[0].Slots {
				at = append(at, s.Node)
			}
			got = strings.Join(at, " ")
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
