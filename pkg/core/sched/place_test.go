package sched

import (
	"fmt"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/why"
	"gangd/pkg/lab/plantest"
)

// TestPlacement: among fits the one that keeps most future asks possible.
func TestPlacement(t *testing.T) {
	gpu := func(name string, cards int, vram int64, used ...int) *cluster.Node {
		n := plantest.Node(name, 16, cards, vram)
		for _, c := range used {
			n = plantest.Hold(n, int64(900+c), 0, true, c)
		}
		return n
	}
	down := gpu("n2", 8, 80)
	down.Ready = false
	sharing := plantest.Hold(gpu("n2", 4, 80), 900, 30*plantest.GiB, false, 2)
	list := func(nodes ...*cluster.Node) []*cluster.Node { return nodes }
	for _, tt := range []struct {
		name  string
		nodes []*cluster.Node
		spec  api.Spec
		avoid []string
		want  string // node:ranks
	}{
		{"the fullest node", list(gpu("n1", 4, 80), gpu("n2", 4, 80, 0, 1), gpu("n3", 4, 80, 0)), api.Spec{Size: 1, GPUsPerRank: 1}, nil, "n2:1"},
		{"the lowest model that is enough", list(gpu("n1", 4, 80, 0, 1, 2), gpu("n2", 4, 24), gpu("n3", 4, 40)),
			api.Spec{Size: 1, GPUsPerRank: 1, VRAMBytes: 30 * plantest.GiB}, nil, "n3:1"},
		{"no card nodes for asks without cards", list(gpu("n1", 4, 80), gpu("n2", 0, 0), gpu("n3", 4, 80, 0, 1)), api.Spec{Size: 2}, nil, "n2:2"},
		{"card nodes with few open cards otherwise", list(gpu("n1", 4, 80), gpu("n3", 4, 80, 0, 1)), api.Spec{Size: 2}, nil, "n3:2"},
		{"the node that is shared already", list(gpu("n1", 4, 80), sharing, gpu("n3", 4, 80, 0, 1, 2)),
			api.Spec{Size: 1, GPUsPerRank: 1, VRAMBytes: 20 * plantest.GiB, Share: true}, nil, "n2:1"},
		{"fewest nodes", list(gpu("n1", 2, 80), gpu("n2", 2, 80), gpu("n3", 4, 80)), api.Spec{Size: 4, GPUsPerRank: 1}, nil, "n3:4"},
		{"whole nodes before parts of larger ones", list(gpu("n1", 8, 80), gpu("n2", 4, 80), gpu("n3", 4, 80)),
			api.Spec{Size: 8, GPUsPerRank: 1}, nil, "n1:8"},
		{"two exact ones", list(gpu("n1", 6, 80), gpu("n2", 4, 80), gpu("n3", 4, 80)), api.Spec{Size: 8, GPUsPerRank: 1}, nil, "n2:4 n3:4"},
		{"the rest where it fits best", list(gpu("n1", 6, 80), gpu("n2", 5, 80), gpu("n3", 2, 80)), api.Spec{Size: 8, GPUsPerRank: 1}, nil, "n1:6 n3:2"},
		{"evenly over the nodes asked for", list(gpu("n1", 8, 80), gpu("n2", 8, 80)), api.Spec{Size: 8, GPUsPerRank: 1, MinNodes: 2, MaxNodes: 2}, nil, "n1:4 n2:4"},
		{"as evenly as room allows", list(gpu("n1", 2, 80), gpu("n2", 8, 80)), api.Spec{Size: 8, GPUsPerRank: 1, MinNodes: 2}, nil, "n1:2 n2:6"},
		{"ranks per node, the short one last", list(gpu("n1", 2, 80), gpu("n2", 4, 80), gpu("n3", 4, 80)),
			api.Spec{Size: 8, GPUsPerRank: 1, RanksPerNode: 3}, nil, "n2:3 n3:3 n1:2"},
		{"not where it just failed", list(gpu("n1", 4, 80, 0), gpu("n2", 4, 80)), api.Spec{Size: 1, GPUsPerRank: 1}, []string{"n1"}, "n2:1"},
		{"there when nothing else fits", list(gpu("n1", 4, 80), gpu("n2", 1, 80)), api.Spec{Size: 2, GPUsPerRank: 1}, []string{"n1"}, "n1:2"},
		{"not what is out of service", list(gpu("n1", 1, 80), down), api.Spec{Size: 2, GPUsPerRank: 1}, nil, ""},
		{"unequal nodes", list(gpu("n1", 1, 80), gpu("n2", 3, 80, 0), gpu("n3", 8, 24)), api.Spec{Size: 3, GPUsPerRank: 1, VRAMBytes: 40 * plantest.GiB}, nil, "n1:1 n2:2"},
		{"excluded", list(gpu("n1", 1, 80), gpu("n2", 1, 80)), api.Spec{Size: 1, Exclude: []string{"n1"}}, nil, "n2:1"},
		{"listed", list(gpu("n1", 1, 80), gpu("n2", 1, 80)), api.Spec{Size: 1, NodeList: []string{"n2"}}, nil, "n2:1"},
		{"the whole node", list(gpu("n1", 2, 80, 0), gpu("n2", 2, 80)), api.Spec{Size: 1, Exclusive: true}, nil, "n2:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := plantest.Candidate(1, tt.spec)
			c.Avoid = tt.avoid
			var parts []string
			for _, s := range planned(t, plantest.Epoch0, &given.View{Nodes: tt.nodes, Queue: plantest.QueueOf(c)}, &order.Policy{}).Starts {
				for i := 0; i < len(s.Slots); {
					k := 1
					for i+k < len(s.Slots) && s.Slots[i+k].Node == s.Slots[i].Node {
						k++
					}
					parts = append(parts, fmt.Sprintf("%s:%d", s.Slots[i].Node, k))
					i += k
				}
			}
			if got := strings.Join(parts, " "); got != tt.want {
				t.Errorf("placed on %q, want %q", got, tt.want)
			}
		})
	}
}

// TestReasons are the words of the table.
func TestReasons(t *testing.T) {
	nodes := plantest.Nodes(1, 8, 2, 80)
	nodes[0] = plantest.Hold(nodes[0], 7, 0, true, 0)
	down := *plantest.Node("n9", 64, 0, 0)
	down.Ready, down.NotReady = false, "drained: broken fan"
	v := &given.View{Nodes: []*cluster.Node{nodes[0], &down}, Queue: plantest.QueueOf(
		plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 2}),
		plantest.Candidate(2, api.Spec{Size: 1, GPUsPerRank: 2}),
		plantest.Candidate(3, api.Spec{Size: 1, GPUsPerRank: 1}),
		plantest.Candidate(4, api.Spec{Size: 1, CPUsPerRank: 32}),
		plantest.Candidate(5, api.Spec{Size: 1, Constraint: "a&"}),
		plantest.Candidate(6, api.Spec{Size: 1, CPUsPerRank: 1}),
	)}
	want := []why.Reason{
		{Job: 1, Word: "Resources", Text: "room for 0 of 1 rank now, each needs 2 cards and 1 CPU"},
		{Job: 2, Word: "Priority", Text: "behind job 1, which asks for the same; room for 0 of 1 rank now, each needs 2 cards and 1 CPU"},
		{Job: 3, Word: "Priority", Text: "would fit, but what is free is kept for job 1"},
		{Job: 4, Word: "ReqNodeNotAvail", Text: "does not fit without what is out of service: n9 (drained: broken fan)"},
		{Job: 5, Word: "BadConstraints", Text: `constraint "a&": a feature expected at column 3, found the end; write features joined by & and |, such as a100&(ib|roce), alternatives for all nodes as [rack1|rack2], counts of nodes as rack1*2`},
	}
	plan := planned(t, plantest.Epoch0, v, &order.Policy{})
	if got := plan.Reasons(v.Queue); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if len(plan.Starts) != 1 || plan.Starts[0].Job != 6 {
		t.Errorf("job 6 fits beside the claim: %+v", plan.Starts)
	}
}
