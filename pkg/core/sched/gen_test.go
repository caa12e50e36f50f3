package sched

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

const gib = int64(1) << 30

var epoch0 = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// testNode is a ready node named name with so many cards of so many G.
func testNode(name string, cpus, cards int, vram int64) *cluster.Node {
	n := &cluster.Node{Name: name, Ready: true, Has: cluster.Amounts{cluster.CPUs: int64(cpus), cluster.Memory: 256 * gib, cluster.Tmp: 16 * gib}, Partitions: []string{"gpu"}}
	for i := range cards {
		n.Cards = append(n.Cards, cluster.Card{State: api.CardOK, CardInfo: api.CardInfo{
			Index: i, UUID: fmt.Sprintf("%s-%d", name, i), Model: "NVIDIA A100", VRAMBytes: vram * gib, NUMA: i / 4}})
	}
	return n.Counted()
}

func testNodes(count, cpus, cards int, vram int64) []*cluster.Node {
	nodes := make([]*cluster.Node, count)
	for i := range nodes {
		nodes[i] = testNode(fmt.Sprintf("n%05d", i+1), cpus, cards, vram)
	}
	return nodes
}

func candidate(job int64, spec api.Spec) *order.Candidate {
	return &order.Candidate{Job: job, Submit: epoch0.Add(time.Duration(job) * time.Second), Terms: &order.Terms{Size: spec.Size, Ask: cluster.AskOf(&spec, []string{"gpu"})}}
}

// genNodes draws a few unequal nodes: strangers, quarantine, drained ones and all.
func genNodes(t *rapid.T) []*cluster.Node {
	count := rapid.IntRange(1, 5).Draw(t, "nodes")
	var nodes []*cluster.Node
	for i := range count {
		name := fmt.Sprintf("n%d", i+1)
		n := &cluster.Node{Name: name, Ready: rapid.IntRange(0, 9).Draw(t, "ready") > 0, NotReady: "drained: test",
			Has: cluster.Amounts{cluster.CPUs: int64(rapid.IntRange(1, 8).Draw(t, "cpus")), cluster.Memory: rapid.Int64Range(0, 16).Draw(t, "memory") * gib, cluster.Tmp: rapid.Int64Range(0, 8).Draw(t, "tmp") * gib}, Each: cluster.Amounts{cluster.Tmp: rapid.SampledFrom([]int64{0, 0, 1}).Draw(t, "tmp of each") * gib},
			Partitions: rapid.SampledFrom([][]string{{"gpu"}, {"gpu"}, {"gpu", "short"}, {"short"}}).Draw(t, "partitions"),
			Features:   rapid.SampledFrom([][]string{nil, {"ib"}, {"big"}, {"ib", "big"}}).Draw(t, "features")}
		for c := range rapid.IntRange(0, 4).Draw(t, "cards") {
			card := cluster.Card{State: api.CardOK, CardInfo: api.CardInfo{Index: c, UUID: fmt.Sprintf("%s-%d", name, c),
				Model:     rapid.SampledFrom([]string{"NVIDIA A100", "NVIDIA H100"}).Draw(t, "model"),
				VRAMBytes: rapid.SampledFrom([]int64{24, 40, 80}).Draw(t, "vram") * gib, NUMA: c / 2}}
			if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
				card.State = api.CardQuarantined
			}
			if rapid.IntRange(0, 3).Draw(t, "strange") == 0 {
				card.StrangersBytes = rapid.Int64Range(0, 80).Draw(t, "strangers") * gib
			}
			n.Cards = append(n.Cards, card)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func genSpec(t *rapid.T) *api.Spec {
	s := &api.Spec{Size: rapid.IntRange(1, 6).Draw(t, "size"), CPUsPerRank: rapid.IntRange(0, 3).Draw(t, "cpus per rank")}
	s.MemoryPerRank = rapid.SampledFrom([]int64{0, 0, 1, 4}).Draw(t, "mem") * gib
	s.MemoryPerNode = rapid.SampledFrom([]int64{0, 0, 0, 2}).Draw(t, "mem per node") * gib
	s.TmpPerNode = rapid.SampledFrom([]int64{0, 0, 0, 1, 4}).Draw(t, "tmp asked") * gib
	switch rapid.IntRange(0, 4).Draw(t, "gpus") {
	case 0:
	case 1:
		s.GPUsPerNode = rapid.IntRange(1, 3).Draw(t, "per node")
	default:
		s.GPUsPerRank = rapid.IntRange(1, 2).Draw(t, "per rank")
	}
	if s.GPUsPerRank+s.GPUsPerNode > 0 {
		s.VRAMBytes = rapid.SampledFrom([]int64{0, 10, 20, 40, 60}).Draw(t, "vram asked") * gib
		s.Share = rapid.Bool().Draw(t, "share")
		s.GPUType = rapid.SampledFrom([]string{"", "", "", "a100", "a100|h100"}).Draw(t, "type")
	}
	switch rapid.IntRange(0, 5).Draw(t, "layout") {
	case 0:
		s.RanksPerNode = rapid.IntRange(1, 4).Draw(t, "ranks per node")
	case 1:
		s.MinNodes = rapid.IntRange(1, 3).Draw(t, "min")
	case 2:
		s.MaxNodes = rapid.IntRange(1, 3).Draw(t, "max")
	}
	s.Exclusive = rapid.IntRange(0, 9).Draw(t, "exclusive") == 0
	s.Constraint = rapid.SampledFrom([]string{"", "", "", "", "ib", "ib&big", "big|none", "[ib|big]", "ib&[big|none]", "ib*2", "ib&big*1", "[ib*1&big*1]"}).Draw(t, "constraint")
	s.Prefer = rapid.SampledFrom([]string{"", "", "", "", "ib", "[big|none]", "big*1"}).Draw(t, "prefer")
	if rapid.IntRange(0, 9).Draw(t, "exclude") == 0 {
		s.Exclude = []string{"n1"}
	}
	return s
}

func genCandidate(t *rapid.T, job int64) *order.Candidate {
	s := genSpec(t)
	if rapid.IntRange(0, 3).Draw(t, "roles") == 0 {
		giveRoles(t, s)
	}
	partitions := rapid.SampledFrom([][]string{{"gpu"}, {"gpu", "short"}, {"short"}}).Draw(t, "in")
	return &order.Candidate{Job: job, Submit: epoch0.Add(time.Duration(job) * time.Second), Terms: &order.Terms{Priority: rapid.Int64Range(0, 1).Draw(t, "priority"), Size: s.Size, Ask: cluster.AskOf(s, partitions), Avoid: rapid.SampledFrom([][]string{nil, nil, {"n1"}}).Draw(t, "avoid")}}
}

func genQueue(t *rapid.T, first int64, most int) *order.Queue {
	q := new(order.Queue)
	for i := range rapid.IntRange(1, most).Draw(t, "waiting") {
		q.Insert(genCandidate(t, first+int64(i)))
	}
	return q
}

func queueOf(cs ...*order.Candidate) *order.Queue {
	q := new(order.Queue)
	for _, c := range cs {
		q.Insert(c)
	}
	return q
}

// grantsBy is what slots take, by node.
func grantsBy(c *order.Candidate, epoch int, slots []cluster.Slot, until time.Time) map[string]cluster.Grant {
	ranks := make(map[string][]int)
	for r, s := range slots {
		ranks[s.Node] = append(ranks[s.Node], r)
	}
	out := make(map[string]cluster.Grant, len(ranks))
	for node, on := range ranks {
		out[node] = cluster.GrantOf(c.Ask, api.MemberKey{Job: c.Job, Epoch: epoch}, on, func(r int) cluster.Slot { return slots[r] }, until)
	}
	return out
}

// apply takes what a start asks for, node by node, and fails the test when one refuses.
func apply(t interface{ Fatalf(string, ...any) }, nodes []*cluster.Node, c *order.Candidate, epoch int, slots []cluster.Slot) []*cluster.Node {
	return applyUntil(t, nodes, c, epoch, slots, time.Time{})
}

// applyUntil does so for a gang that has ended by then.
func applyUntil(t interface{ Fatalf(string, ...any) }, nodes []*cluster.Node, c *order.Candidate, epoch int, slots []cluster.Slot, until time.Time) []*cluster.Node {
	out := append([]*cluster.Node(nil), nodes...)
	by := grantsBy(c, epoch, slots, until)
	for i, n := range out {
		g, here := by[n.Name]
		if !here {
			continue
		}
		next, err := n.Take(g)
		if err != nil {
			t.Fatalf("job %d %+v on %+v: %v", c.Job, *c.Ask.Spec, slots, err)
		}
		out[i] = next
		delete(by, n.Name)
	}
	if len(by) > 0 {
		t.Fatalf("job %d placed on unknown nodes: %v", c.Job, by)
	}
	return out
}
