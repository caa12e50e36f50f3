package sched

import (
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// TestPartitionsBoundNodes: a gang has as many nodes as the partition that it is in allows, of several the one in which it fits; no
// advice says to ask for what the partition does not allow.
func TestPartitionsBoundNodes(t *testing.T) {
	short, wide, least := cluster.In{Name: "short", MaxNodes: 1}, cluster.In{Name: "wide"}, cluster.In{Name: "least", MinNodes: 2}
	for name, c := range map[string]struct {
		spec api.Spec
		in   []cluster.In
		busy []string
		on   string // nodes, "": it waits
	}{
		"what fits on one":                    {api.Spec{Size: 2}, []cluster.In{short}, nil, "n1"},
		"more than one holds":                 {api.Spec{Size: 3}, []cluster.In{short}, nil, ""},
		"in another partition":                {api.Spec{Size: 3}, []cluster.In{short, wide}, nil, "n3 n4"},
		"the other way round":                 {api.Spec{Size: 3}, []cluster.In{wide, short}, nil, "n3 n4"},
		"in the first, as that is enough":     {api.Spec{Size: 2}, []cluster.In{short, wide}, []string{"n3", "n4"}, "n1"},
		"in the second, as the first is full": {api.Spec{Size: 2}, []cluster.In{short, wide}, []string{"n1", "n2"}, "n3"},
		"not on nodes of both":                {api.Spec{Size: 3}, []cluster.In{short, wide}, []string{"n3"}, ""},
		"at least two":                        {api.Spec{Size: 2}, []cluster.In{least}, nil, "n3 n4"},
		"at least two, of one":                {api.Spec{Size: 2}, []cluster.In{least}, []string{"n3"}, ""},
		"roles, on one":                       {roled(1, 1), []cluster.In{short}, nil, "n1"},
		"roles, more than one holds":          {roled(1, 2), []cluster.In{short}, nil, ""},
		"roles, on at least two":              {roled(1, 1), []cluster.In{least}, nil, "n3 n4"},
	} {
		nodes := plantest.Nodes(4, 2, 0, 0)
		for i, n := range nodes {
			n.Name = "n" + string(rune('1'+i))
			if n.Partitions = []string{"short"}; i >= 2 {
				n.Partitions = []string{"wide", "least"}
			}
			if slices.Contains(c.busy, n.Name) {
				n.Ready, n.NotReady = false, "drained"
			}
		}
		spec := c.spec
		ask := cluster.AskIn(&spec, c.in)
		v := &given.View{Nodes: nodes, Queue: plantest.QueueOf(&order.Candidate{Job: 1, Submit: plantest.Epoch0, Terms: &order.Terms{Size: spec.Size, Ask: ask}})}
		plan := Make(plantest.Epoch0, v, &order.Policy{BackfillDepth: 1})
		on := ""
		for _, s := range plan.Starts {
			on = strings.Join(slices.Compact(cluster.NodesOf(s.Slots)), " ")
			if !ask.MayHave(nodes, s.Slots) {
				t.Errorf("%s: planned on %s, which an admission would refuse", name, on)
			}
		}
		if on != c.on {
			t.Errorf("%s: on %q, want %q", name, on, c.on)
		}
		if c.on != "" {
			continue
		}
		if text := Explain(plantest.Epoch0, v, &order.Policy{BackfillDepth: 1}, 1).Text; strings.Contains(text, "without --nodes") {
			t.Errorf("%s: advised against what nobody asked for: %s", name, text)
		}
	}
}

// roled is a gang of two roles with so many ranks.
func roled(a, b int) api.Spec {
	return api.Spec{Size: a + b, Launch: api.LaunchRanks, Roles: []api.Role{{Name: "a", Count: a, CPUsPerRank: 1}, {Name: "b", Count: b, CPUsPerRank: 1}}}
}
