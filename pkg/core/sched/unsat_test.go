package sched

import (
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

func TestUnsatisfiable(t *testing.T) {
	var nodes []*cluster.Node
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		n := plantest.Hold(plantest.Node(name, 16, 8, 80), 7, 0, true, 0, 1, 2, 3, 4, 5, 6, 7)
		n.Features = []string{"ib"}
		nodes = append(nodes, n)
	}
	nodes[3].Ready = false
	nodes[0].Has[cluster.Tmp], nodes[0].Each[cluster.Tmp] = 800*plantest.GiB, 500*plantest.GiB
	small := plantest.Node("n5", 64, 2, 24)
	small.Cards[1].State, small.Cards[0].StrangersBytes = api.CardQuarantined, 24*plantest.GiB
	nodes = append(nodes, small.Counted())
	cpu := plantest.Node("c1", 128, 0, 0)
	for _, n := range nodes {
		n.Shape = api.CPUShape{Sockets: 1, Cores: n.CPUs(), Threads: 1}
	}
	cpu.Shape = api.CPUShape{Sockets: 2, Cores: 64, Threads: 1}
	cpu.Partitions, cpu.Features = []string{"cpu"}, []string{"fast"}
	nodes = append([]*cluster.Node{cpu}, nodes...)
	p := &order.Policy{Partitions: []api.Partition{{Name: "gpu"}, {Name: "cpu"}, {Name: "empty"}}}
	in := func(names ...string) []string { return names }
	for _, tt := range []struct {
		name       string
		spec       api.Spec
		partitions []string
		code       api.Code
		want       string
	}{
		{"fits when empty", api.Spec{Size: 32, GPUsPerRank: 1, VRAMBytes: 80 * plantest.GiB}, in("gpu"), "", ""},
		{"fits without strangers and quarantine", api.Spec{Size: 34, GPUsPerRank: 1, VRAMBytes: 24 * plantest.GiB}, in("gpu"), "", ""},
		{"partition", api.Spec{Size: 1}, in("gpuu"), api.CodeInvalid, `unknown partition "gpuu"; did you mean "gpu"? partitions: cpu, empty, gpu`},
		{"partition far off", api.Spec{Size: 1}, in("batch"), api.CodeInvalid, `unknown partition "batch"; partitions: cpu, empty, gpu`},
		{"node", api.Spec{Size: 1, NodeList: in("n1", "n9")}, in("gpu"), api.CodeInvalid, `unknown node "n9"; nodes: c1,n[1-5]`},
		{"excluded node", api.Spec{Size: 1, Exclude: in("gpu-17")}, in("gpu"), api.CodeInvalid, `unknown node "gpu-17"; nodes: c1,n[1-5]`},
		{"constraint", api.Spec{Size: 1, Constraint: "ib&"}, in("gpu"), api.CodeInvalid,
			`constraint "ib&": a feature expected at column 4, found the end; write features joined by & and |, such as a100&(ib|roce), alternatives for all nodes as [rack1|rack2], counts of nodes as rack1*2`},
		{"feature", api.Spec{Size: 1, Constraint: "fast&ibb"}, in("gpu"), api.CodeInvalid, `unknown feature "ibb"; did you mean "ib"? features: fast, ib`},
		{"one of several features", api.Spec{Size: 1, Constraint: "ib|roce"}, in("gpu"), api.CodeInvalid, `unknown feature "roce"; features: fast, ib`},
		{"preferred feature", api.Spec{Size: 1, Prefer: "fats"}, in("gpu"), api.CodeInvalid,
			`unknown preferred feature "fats"; did you mean "fast"? preferred features: fast, ib`},
		{"feature of another partition", api.Spec{Size: 1, Constraint: "fast"}, in("gpu"), api.CodeUnsatisfiable,
			`no node of partition gpu meets the constraint "fast"; features there: ib`},
		{"feature of the other partition alone", api.Spec{Size: 1, Constraint: "ib"}, in("cpu"), api.CodeUnsatisfiable,
			`no node of partition cpu meets the constraint "ib"; features there: fast`},
		{"no nodes", api.Spec{Size: 1}, in("empty"), api.CodeUnsatisfiable, `partition empty has no nodes`},
		{"other partition's node", api.Spec{Size: 1, NodeList: in("c1")}, in("gpu"), api.CodeUnsatisfiable,
			`no node of partition gpu is left by --nodelist=c1; partition gpu has n[1-5]`},
		{"sockets", api.Spec{Size: 1, Shape: api.CPUShape{Sockets: 2, Cores: 16, Threads: 2}}, in("gpu"), api.CodeUnsatisfiable,
			`no node of partition gpu has 2 sockets of 16 cores with 2 threads; nodes there: 1 socket x 16 cores x 1 thread on n[1-4], 1 socket x 64 cores x 1 thread on n5`},
		{"threads", api.Spec{Size: 1, Shape: api.CPUShape{Threads: 2}}, in("gpu"), api.CodeUnsatisfiable,
			`no node of partition gpu has 1 socket of cores with 2 threads; nodes there: 1 socket x 16 cores x 1 thread on n[1-4], 1 socket x 64 cores x 1 thread on n5`},
		{"sockets of one node", api.Spec{Size: 2, Shape: api.CPUShape{Sockets: 2}, RanksPerNode: 1}, in("cpu"), api.CodeUnsatisfiable,
			`2 ranks do not fit on nodes with 1 rank each, though every node were empty: each rank needs 1 CPU; ask for --size=1 or less`},
		{"sockets that are there", api.Spec{Size: 1, Shape: api.CPUShape{Sockets: 2, Cores: 64}}, in("gpu", "cpu"), "", ""},
		{"temporary space", api.Spec{Size: 1, TmpPerNode: 900 * plantest.GiB}, in("gpu"), api.CodeUnsatisfiable,
			`no node has 900G temporary space (--tmp): the most is 800G on n1; ask for --tmp=800G or less`},
		{"temporary space for all", api.Spec{Size: 1, TmpPerNode: 800 * plantest.GiB}, in("gpu"), "", ""},
		{"VRAM", api.Spec{Size: 1, GPUsPerRank: 1, VRAMBytes: 96 * plantest.GiB}, in("gpu"), api.CodeUnsatisfiable,
			`no node has a card with 96G: the largest is 80G on n[1-4]; ask for --vram=80G or less`},
		{"type", api.Spec{Size: 1, GPUsPerRank: 1, GPUType: "h200"}, in("gpu"), api.CodeUnsatisfiable,
			`no node has a card of type h200; cards: NVIDIA A100 on n[1-5]`},
		{"cards", api.Spec{Size: 1, GPUsPerRank: 16}, in("gpu"), api.CodeUnsatisfiable,
			`no node has 16 cards: the most is 8 on n[1-4]; ask for --gpus-per-rank=8 or less`},
		{"cards of a node", api.Spec{Size: 2, GPUsPerNode: 9}, in("gpu"), api.CodeUnsatisfiable,
			`no node has 9 cards: the most is 8 on n[1-4]; ask for --gpus-per-node=8 or less`},
		{"cards by the hundred", api.Spec{Size: 1, GPUsPerRank: 500}, in("gpu"), api.CodeUnsatisfiable,
			`no node has 500 cards: the most is 8 on n[1-4]; ask for --gpus-per-rank=8 or less`},
		{"nodes", api.Spec{Size: 20, MinNodes: 10, MaxNodes: 10}, in("gpu"), api.CodeUnsatisfiable,
			`20 ranks do not fit on exactly 10 nodes, though every node were empty: each rank needs 1 CPU; ask for --nodes=5 or less`},
		{"no cards at all", api.Spec{Size: 1, GPUsPerRank: 1}, in("cpu"), api.CodeUnsatisfiable, `no node has a card; gnoded found none on any of them: ginfo --cards, and its log says why`},
		{"CPUs", api.Spec{Size: 1, CPUsPerRank: 100}, in("gpu"), api.CodeUnsatisfiable,
			`no node has 100 CPUs for a rank: the most is 64 on n5; ask for --cpus-per-task=64 or less`},
		{"memory", api.Spec{Size: 1, MemoryPerNode: 300 * plantest.GiB}, in("gpu"), api.CodeUnsatisfiable,
			`no node has 300G memory for a rank: the most is 256G on n[1-5]; ask for --mem=256G or less`},
		{"not together", api.Spec{Size: 1, CPUsPerRank: 32, GPUsPerRank: 4}, in("gpu"), api.CodeUnsatisfiable,
			`no node has all that a rank needs at once: 4 cards and 32 CPUs; ask for --gpus-per-rank=2 or less`},
		{"size", api.Spec{Size: 40, GPUsPerRank: 1, VRAMBytes: 40 * plantest.GiB}, in("gpu"), api.CodeUnsatisfiable,
			`the whole cluster, empty, has room for 32 of 40 ranks: each needs 1 card with 40G and 1 CPU; ask for --size=32 or less`},
		{"max nodes", api.Spec{Size: 16, GPUsPerRank: 1, MaxNodes: 1}, in("gpu"), api.CodeUnsatisfiable,
			`16 ranks do not fit on at most 1 node, though every node were empty: each rank needs 1 card and 1 CPU; ask for --size=8 or less`},
		{"min nodes", api.Spec{Size: 2, MinNodes: 3}, in("gpu"), api.CodeUnsatisfiable,
			`2 ranks can't be spread over 3 nodes: each node has at least one; ask for --nodes=2 or less`},
		{"ranks per node", api.Spec{Size: 8, RanksPerNode: 4, MinNodes: 4, MaxNodes: 4}, in("gpu"), api.CodeUnsatisfiable,
			`8 ranks with 4 on each node take 2 nodes, but 4 were asked for; ask for --nodes=2`},
		{"ranks per node, at least", api.Spec{Size: 8, RanksPerNode: 4, MinNodes: 4}, in("gpu"), api.CodeUnsatisfiable,
			`8 ranks with 4 on each node take 2 nodes, but at least 4 were asked for; ask for --nodes=2`},
		{"ranks per node, from and to", api.Spec{Size: 8, RanksPerNode: 4, MinNodes: 3, MaxNodes: 4}, in("gpu"), api.CodeUnsatisfiable,
			`8 ranks with 4 on each node take 2 nodes, but 3 to 4 were asked for; ask for --nodes=2`},
		{"ranks per node, at most", api.Spec{Size: 8, RanksPerNode: 4, MaxNodes: 1}, in("gpu"), api.CodeUnsatisfiable,
			`8 ranks with 4 on each node take 2 nodes, but at most 1 were asked for; ask for --nodes=2`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := why.Unsatisfiable(nodes, p, cluster.AskOf(&tt.spec, tt.partitions))
			switch {
			case err == nil && tt.want == "":
			case err == nil:
				t.Errorf("accepted, want %s", tt.want)
			case err.Code != tt.code || err.Error() != tt.want:
				t.Errorf("%s: %s\nwant %s: %s", err.Code, err.Error(), tt.code, tt.want)
			}
		})
	}
}

// TestUnsatisfiableAgreesWithPlanning: what is refused never starts on the empty, whole
// cluster, and what is not refused does.
func TestUnsatisfiableAgreesWithPlanning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genView(t)
		p := &order.Policy{Partitions: []api.Partition{{Name: "gpu"}, {Name: "short"}}}
		whole := why.Pristine(v.Nodes)
		for _, c := range v.Queue.Slice() {
			c := c.Apart()
			c.Avoid = nil
			spec := *c.Ask.Spec
			spec.Prefer = "" // what is preferred is no reason to accept what can't be had without
			c.Ask = cluster.AskOf(&spec, c.Ask.Partitions)
			plan := Make(plantest.Epoch0, &given.View{Nodes: whole, Queue: plantest.QueueOf(c)}, &order.Policy{})
			err := why.Unsatisfiable(v.Nodes, p, c.Ask)
			if err != nil && strings.Contains(err.Message, "unknown ") {
				continue // a name that may be misspelt is refused, whether or not the rest would do
			}
			if (err == nil) != (len(plan.Starts) == 1) {
				t.Fatalf("%+v: %v, but %d starts", *c.Ask.Spec, err, len(plan.Starts))
			}
			if err != nil && (err.Message == "" || err.Code != api.CodeUnsatisfiable) {
				t.Fatalf("%+v: %+v", *c.Ask.Spec, err)
			}
		}
	})
}

func BenchmarkUnsatisfiable(b *testing.B) {
	nodes := plantest.Nodes(10000, 64, 8, 80)
	fill(nodes, nil)
	p := &order.Policy{Partitions: []api.Partition{{Name: "gpu"}}}
	for name, spec := range map[string]api.Spec{
		"accepted": {Size: 64, GPUsPerRank: 1, VRAMBytes: 80 * plantest.GiB},
		"refused":  {Size: 64, GPUsPerRank: 1, VRAMBytes: 96 * plantest.GiB},
	} {
		b.Run(name, func(b *testing.B) {
			ask := cluster.AskOf(&spec, []string{"gpu"})
			for b.Loop() {
				if err := why.Unsatisfiable(nodes, p, ask); (err == nil) != (name == "accepted") {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkExplain(b *testing.B) {
	nodes := plantest.Nodes(10000, 64, 8, 80)
	fill(nodes, func(n, c int) bool { return (n*8+c)%40 == 0 })
	v := &given.View{Nodes: nodes, Queue: plantest.QueueOf(benchQueue(100000, 500)...)}
	for _, s := range Make(plantest.Epoch0, v, &order.Policy{}).Starts {
		v.Nodes = plantest.Apply(b, v.Nodes, v.Queue.Get(s.Job), 1, s.Slots)
	}
	start := time.Now()
	n := 0
	for b.Loop() {
		Explain(plantest.Epoch0, v, &order.Policy{}, 99999)
		n++
	}
	b.ReportMetric(float64(time.Since(start).Milliseconds())/float64(n), "ms/explain")
}

// TestAboveCap: an ask that is above what its user or account may ever hold is refused at once.
func TestAboveCap(t *testing.T) {
	p := &order.Policy{UserCards: 6, Accounts: []order.Account{{Name: "small", Cards: 4}, {Name: "free"}}}
	for _, tt := range []struct {
		account string
		size    int
		want    string
	}{
		{"", 6, ""},
		{"", 7, "7 cards are asked for, and a user may hold at most 6 at a time"},
		{"free", 6, ""},
		{"small", 4, ""},
		{"small", 5, "5 cards are asked for, and account small may hold at most 4 at a time"},
	} {
		got := ""
		if err := p.AboveCap(tt.account, plantest.Candidate(1, api.Spec{Size: tt.size, GPUsPerRank: 1}).Ask); err != nil {
			got = err.Message
		}
		if got != tt.want {
			t.Errorf("%d cards under %q: %q, want %q", tt.size, tt.account, got, tt.want)
		}
	}
}

// TestAdviceInTheWordsThatWereUsed: the nearest ask is written with the option that asked.
func TestAdviceInTheWordsThatWereUsed(t *testing.T) {
	nodes, p := plantest.Nodes(2, 16, 4, 80), &order.Policy{Partitions: []api.Partition{{Name: "gpu"}}}
	by := func(option string) *api.Asked { return &api.Asked{CardsBy: option} }
	for want, s := range map[string]api.Spec{
		"--gpus-per-rank=4":     {Size: 2, GPUsPerRank: 8},
		"--gpus-per-node=4":     {Size: 2, GPUsPerRank: 8, Asked: by("gpus-per-node")},
		"--gpus-per-task=4":     {Size: 1, GPUsPerRank: 8, Asked: by("gpus-per-task")},
		"--gpus=8":              {Size: 2, GPUsPerRank: 8, Asked: by("gpus")},
		"--gres=gpu:4":          {Size: 1, GPUsPerRank: 8, Asked: by("gres")},
		"--gres=gpu:nvidia:4":   {Size: 1, GPUsPerRank: 8, GPUType: "nvidia", Asked: by("gres")},
		"--size=32":             {Size: 100, Launch: api.LaunchRanks},
		"--ntasks=32":           {Size: 100, Launch: api.LaunchBatch},
		"--nodes=2":             {Size: 3, Launch: api.LaunchBatch, MinNodes: 3, MaxNodes: 3, RanksPerNode: 1},
		"--gpus-per-node=4 all": {Size: 8, MinNodes: 2, MaxNodes: 2, GPUsPerNode: 5},
	} {
		s.CPUsPerRank = 1
		err := why.Unsatisfiable(nodes, p, cluster.AskOf(&s, []string{"gpu"}))
		want := "ask for " + strings.TrimSuffix(want, " all") + " or less"
		if err == nil || err.Hint != want {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

// TestFitsEmptyIsPlannedEmpty: what nodes of several kinds would hold with nothing on them is what a plan on such places.
func TestFitsEmptyIsPlannedEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genView(t)
		empty := make([]*cluster.Node, len(v.Nodes))
		for i, n := range v.Nodes {
			empty[i] = n.Emptied()
		}
		for _, c := range v.Queue.Slice() {
			c := c.Apart()
			spec := *c.Ask.Spec
			spec.Prefer, spec.Constraint = "", ""
			c.Avoid, c.Ask = nil, cluster.AskOf(&spec, c.Ask.Partitions)
			if c.Ask.Parts != nil {
				continue
			}
			p := new(Planner)
			pl := p.planner(plantest.Epoch0, &given.View{Nodes: v.Nodes, Queue: plantest.QueueOf(c)}, &order.Policy{})
			fits := pl.fit.FitsEmpty(pl.fit.ClassOf(c.Ask))
			if plan := Make(plantest.Epoch0, &given.View{Nodes: empty, Queue: plantest.QueueOf(c)}, &order.Policy{}); fits != (len(plan.Starts) == 1) {
				t.Fatalf("%+v: fits %t, but %d starts", spec, fits, len(plan.Starts))
			}
		}
	})
}
