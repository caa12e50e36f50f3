package sched

import (
	"slices"
	"testing"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// TestNodesAreOfferedByName, those of several classes too: the same view has the same plan.
func TestNodesAreOfferedByName(t *testing.T) {
	nodes := []*cluster.Node{plantest.Node("n1", 8, 4, 80), plantest.Node("n2", 8, 2, 80), plantest.Node("n3", 8, 4, 80), plantest.Node("n4", 8, 2, 80)}
	pl := new(Planner).planner(plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf()}, &order.Policy{})
	if got := pl.kept.Bare().Open(); !slices.Equal(got, []int32{0, 1, 2, 3}) {
		t.Error(got)
	}
}
