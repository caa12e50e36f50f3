package sched

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/why"
	"gangd/pkg/lab/plantest"
)

// Three nodes of unlike room, and three roles that fit on them in one way alone: r2 has n2 with
// the rest of it for a rank of r0. Out of service the cards are no reason to wait: none is asked for.
func TestRolesThatFitInOneWay(t *testing.T) {
	for name, state := range map[string]api.CardState{"cards in service": api.CardOK, "cards drained": api.CardQuarantined} {
		nodes := []*cluster.Node{plantest.Node("n1", 2, 2, 40), plantest.Node("n2", 5, 1, 40), plantest.Node("n3", 2, 4, 40)}
		for i, n := range nodes {
			n.Has[cluster.Memory] = []int64{plantest.GiB, plantest.GiB, plantest.GiB / 2}[i]
			if i > 0 {
				n.Features = []string{"ib"}
			}
			for k := range n.Cards {
				n.Cards[k].State = state
			}
			nodes[i] = n.Counted()
		}
		spec := api.Spec{Size: 4, Exclusive: true, Roles: []api.Role{
			{Name: "r0", Count: 2, CPUsPerRank: 2, Constraint: "ib"},
			{Name: "r1", Count: 1, CPUsPerRank: 2, MemoryPerRank: plantest.GiB},
			{Name: "r2", Count: 1, CPUsPerRank: 3},
		}}
		c := plantest.Candidate(1, spec)
		p := &order.Policy{Partitions: []api.Partition{{Name: "gpu"}}}
		if err := why.Unsatisfiable(nodes, p, c.Ask); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		plan := planned(t, plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(c)}, p)
		if len(plan.Starts) != 1 {
			t.Errorf("%s: accepted, but %d starts on the empty cluster", name, len(plan.Starts))
		}
	}
}
