package sched

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// Three nodes of unlike room, and three roles that fit on them in one way alone: r2 has n2 with
// the rest of it for a rank of r0. Out of service the cards are no reason to wait: none is asked for.
func TestRolesThatFitInOneWay(t *testing.T) {
	for name, state := range map[string]api.CardState{"cards in service": api.CardOK, "cards drained": api.CardQuarantined} {
		nodes := []*cluster.Node{testNode("n1", 2, 2, 40), testNode("n2", 5, 1, 40), testNode("n3", 2, 4, 40)}
		for i, n := range nodes {
			n.MemoryBytes = []int64{gib, gib, gib / 2}[i]
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
			{Name: "r1", Count: 1, CPUsPerRank: 2, MemoryPerRank: gib},
			{Name: "r2", Count: 1, CPUsPerRank: 3},
		}}
		c := candidate(1, spec)
		p := &Policy{Partitions: []api.Partition{{Name: "gpu"}}}
		if err := Unsatisfiable(nodes, p, c.Ask); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		plan := planned(t, epoch0, &View{Nodes: nodes, Queue: queueOf(c)}, p)
		if len(plan.Starts) != 1 {
			t.Errorf("%s: accepted, but %d starts on the empty cluster", name, len(plan.Starts))
		}
	}
}
