package plantest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

const GiB = int64(1) << 30

var Epoch0 = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Node is a ready node named name with so many cards of so many G.
func Node(name string, cpus, cards int, vram int64) *cluster.Node {
	n := &cluster.Node{Name: name, Ready: true, Has: cluster.Amounts{cluster.CPUs: int64(cpus), cluster.Memory: 256 * GiB,
		cluster.Tmp: 16 * GiB}, Partitions: []string{"gpu"}}
	for i := range cards {
		n.Cards = append(n.Cards, cluster.Card{State: api.CardOK, CardInfo: api.CardInfo{
			Index: i, UUID: fmt.Sprintf("%s-%d", name, i), Model: "NVIDIA A100", VRAMBytes: vram * GiB, NUMA: i / 4}})
	}
	return n.Counted()
}

func Nodes(count, cpus, cards int, vram int64) []*cluster.Node {
	nodes := make([]*cluster.Node, count)
	for i := range nodes {
		nodes[i] = Node(fmt.Sprintf("n%05d", i+1), cpus, cards, vram)
	}
	return nodes
}

func Candidate(job int64, spec api.Spec) *order.Candidate {
	return &order.Candidate{Job: job, Submit: Epoch0.Add(time.Duration(job) * time.Second), Terms: &order.Terms{Size: spec.Size,
		Ask: cluster.AskOf(&spec, []string{"gpu"})}}
}

// DrawNodes draws a few unequal nodes: strangers, quarantine, drained ones and all.
func DrawNodes(t *rapid.T) []*cluster.Node {
	count := rapid.IntRange(1, 5).Draw(t, "nodes")
	var nodes []*cluster.Node
	for i := range count {
		name := fmt.Sprintf("n%d", i+1)
		n := &cluster.Node{Name: name, Ready: rapid.IntRange(0, 9).Draw(t, "ready") > 0, NotReady: "drained: test",
			Has: cluster.Amounts{cluster.CPUs: int64(rapid.IntRange(1, 8).Draw(t, "cpus")), cluster.Memory: rapid.Int64Range(0, 16).Draw(t,
				"memory") * GiB, cluster.Tmp: rapid.Int64Range(0, 8).Draw(t, "tmp") * GiB},
			Each:       cluster.Amounts{cluster.Tmp: rapid.SampledFrom([]int64{0, 0, 1}).Draw(t, "tmp of each") * GiB},
			Partitions: rapid.SampledFrom([][]string{{"gpu"}, {"gpu"}, {"gpu", "short"}, {"short"}}).Draw(t, "partitions"),
			Features:   rapid.SampledFrom([][]string{nil, {"ib"}, {"big"}, {"ib", "big"}}).Draw(t, "features")}
		for c := range rapid.IntRange(0, 4).Draw(t, "cards") {
			card := cluster.Card{State: api.CardOK, CardInfo: api.CardInfo{Index: c, UUID: fmt.Sprintf("%s-%d", name, c),
				Model:     rapid.SampledFrom([]string{"NVIDIA A100", "NVIDIA H100"}).Draw(t, "model"),
				VRAMBytes: rapid.SampledFrom([]int64{24, 40, 80}).Draw(t, "vram") * GiB, NUMA: c / 2}}
			if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
				card.State = api.CardQuarantined
			}
			if rapid.IntRange(0, 3).Draw(t, "strange") == 0 {
				card.StrangersBytes = rapid.Int64Range(0, 80).Draw(t, "strangers") * GiB
			}
			n.Cards = append(n.Cards, card)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func DrawSpec(t *rapid.T) *api.Spec {
	s := &api.Spec{Size: rapid.IntRange(1, 6).Draw(t, "size"), CPUsPerRank: rapid.IntRange(0, 3).Draw(t, "cpus per rank")}
	s.MemoryPerRank = rapid.SampledFrom([]int64{0, 0, 1, 4}).Draw(t, "mem") * GiB
	s.MemoryPerNode = rapid.SampledFrom([]int64{0, 0, 0, 2}).Draw(t, "mem per node") * GiB
	s.TmpPerNode = rapid.SampledFrom([]int64{0, 0, 0, 1, 4}).Draw(t, "tmp asked") * GiB
	switch rapid.IntRange(0, 4).Draw(t, "gpus") {
	case 0:
	case 1:
		s.GPUsPerNode = rapid.IntRange(1, 3).Draw(t, "per node")
	default:
		s.GPUsPerRank = rapid.IntRange(1, 2).Draw(t, "per rank")
	}
	if s.GPUsPerRank+s.GPUsPerNode > 0 {
		s.VRAMBytes = rapid.SampledFrom([]int64{0, 10, 20, 40, 60}).Draw(t, "vram asked") * GiB
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
	s.Constraint = rapid.SampledFrom([]string{"", "", "", "", "ib", "ib&big", "big|none", "[ib|big]", "ib&[big|none]", "ib*2",
		"ib&big*1", "[ib*1&big*1]"}).Draw(t, "constraint")
	s.Prefer = rapid.SampledFrom([]string{"", "", "", "", "ib", "[big|none]", "big*1"}).Draw(t, "prefer")
	if rapid.IntRange(0, 9).Draw(t, "exclude") == 0 {
		s.Exclude = []string{"n1"}
	}
	return s
}

func DrawCandidate(t *rapid.T, job int64) *order.Candidate {
	s := DrawSpec(t)
	if rapid.IntRange(0, 3).Draw(t, "roles") == 0 {
		GiveRoles(t, s)
	}
	partitions := rapid.SampledFrom([][]string{{"gpu"}, {"gpu", "short"}, {"short"}}).Draw(t, "in")
	return &order.Candidate{Job: job, Submit: Epoch0.Add(time.Duration(job) * time.Second),
		Terms: &order.Terms{Priority: rapid.Int64Range(0, 1).Draw(t, "priority"), Size: s.Size, Ask: cluster.AskOf(s, partitions),
			Avoid: rapid.SampledFrom([][]string{nil, nil, {"n1"}}).Draw(t, "avoid")}}
}

func DrawQueue(t *rapid.T, first int64, most int) *order.Queue {
	q := new(order.Queue)
	for i := range rapid.IntRange(1, most).Draw(t, "waiting") {
		q.Insert(DrawCandidate(t, first+int64(i)))
	}
	return q
}

func QueueOf(cs ...*order.Candidate) *order.Queue {
	q := new(order.Queue)
	for _, c := range cs {
		q.Insert(c)
	}
	return q
}

// GrantsBy is what slots take, by node.
func GrantsBy(c *order.Candidate, epoch int, slots []cluster.Slot, until time.Time) map[string]cluster.Grant {
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

// Apply takes what a start asks for, node by node, and fails the test when one refuses.
func Apply(t interface{ Fatalf(string, ...any) }, nodes []*cluster.Node, c *order.Candidate, epoch int,
	slots []cluster.Slot) []*cluster.Node {
	return ApplyUntil(t, nodes, c, epoch, slots, time.Time{})
}

// ApplyUntil does so for a gang that has ended by then.
func ApplyUntil(t interface{ Fatalf(string, ...any) }, nodes []*cluster.Node, c *order.Candidate, epoch int, slots []cluster.Slot,
	until time.Time) []*cluster.Node {
	out := append([]*cluster.Node(nil), nodes...)
	by := GrantsBy(c, epoch, slots, until)
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

// GiveRoles cuts a spec into roles of unlike ranks.
func GiveRoles(t *rapid.T, s *api.Spec) {
	s.Roles, s.Size, s.RanksPerNode, s.MinNodes, s.MaxNodes, s.MemoryPerNode, s.GPUsPerNode = nil, 0, 0, 0, 0, 0, 0
	for i := range rapid.IntRange(1, 3).Draw(t, "number of roles") {
		r := api.Role{Name: fmt.Sprintf("r%d", i), Count: rapid.IntRange(1, 3).Draw(t, "count"), CPUsPerRank: rapid.IntRange(1, 4).Draw(t,
			"role cpus"),
			MemoryPerRank: rapid.SampledFrom([]int64{0, 1, 6}).Draw(t, "role mem") * GiB, GPUsPerRank: rapid.IntRange(0, 2).Draw(t, "role cards"),
			Constraint: rapid.SampledFrom([]string{"", "", "ib"}).Draw(t, "role constraint")}
		if r.GPUsPerRank > 0 {
			r.VRAMBytes = rapid.SampledFrom([]int64{0, 20, 40}).Draw(t, "role vram") * GiB
			r.GPUType = s.GPUType
		}
		s.Size += r.Count
		s.Roles = append(s.Roles, r)
	}
}

// Fabric is switches over n00001, n00002 ...: so many nodes a leaf, two leaves a spine, one top.
func Fabric(nodes, each int) []api.Switch {
	var leaves, spines []api.Switch
	top := api.Switch{Name: "top", Level: 2}
	for i := range nodes {
		name := fmt.Sprintf("n%05d", i+1)
		if i%each == 0 {
			leaves = append(leaves, api.Switch{Name: fmt.Sprintf("leaf%d", i/each+1), Parent: fmt.Sprintf("spine%d", i/each/2+1)})
		}
		if i%(2*each) == 0 {
			spines = append(spines, api.Switch{Name: fmt.Sprintf("spine%d", i/each/2+1), Level: 1, Parent: "top"})
		}
		l, s := &leaves[len(leaves)-1], &spines[len(spines)-1]
		l.Nodes, s.Nodes, top.Nodes = append(l.Nodes, name), append(s.Nodes, name), append(top.Nodes, name)
	}
	return append(append(leaves, spines...), top)
}

func NeedOf(t testing.TB, s api.Spec) *cluster.Need {
	t.Helper()
	d, err := cluster.NewNeed(cluster.AskOf(&s, []string{"gpu"}))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Hold gives cards of a node to a job.
func Hold(n *cluster.Node, job int64, vram int64, exclusive bool, cards ...int) *cluster.Node {
	g := cluster.Grant{MemberKey: api.MemberKey{Job: job, Epoch: 1}, Ranks: 1, Takes: cluster.Amounts{cluster.CPUs: 1}}
	for _, i := range cards {
		g.Cards = append(g.Cards, cluster.CardGrant{UUID: n.Cards[i].UUID, VRAMBytes: vram, Exclusive: exclusive})
	}
	return n.Restore(g)
}

// LedgerOf has seen so many asks of each spec; job is the last.
func LedgerOf(asks ...Asks) (*order.Ledger, int64) {
	l, job := order.NewLedger(0), int64(0)
	q := order.NewQueue(&order.Policy{}, l)
	for _, a := range asks {
		for range a.N {
			job++
			q.Insert(Candidate(job, a.Spec)) // which counts it
		}
	}
	return l, job
}

// Part is an ask for a share of one card.
func Part(vram int64, cpus int) api.Spec {
	return api.Spec{Size: 1, GPUsPerRank: 1, VRAMBytes: vram * GiB, Share: true, CPUsPerRank: cpus}
}

type Asks struct {
	N    int
	Spec api.Spec
}

// Within gives a node a feature.
func Within(feature string, n *cluster.Node) *cluster.Node {
	with := *n
	with.Features = []string{feature}
	return &with
}

// Run gives cards of a node to a job that ends so many minutes after Epoch0; 0: nobody
// knows when.
func Run(n *cluster.Node, job int64, minutes int, cards ...int) *cluster.Node {
	g := cluster.Grant{MemberKey: api.MemberKey{Job: job, Epoch: 1}, Ranks: 1, Takes: cluster.Amounts{cluster.CPUs: 1}}
	if minutes != 0 {
		g.Until = Epoch0.Add(time.Duration(minutes) * time.Minute)
	}
	for _, i := range cards {
		g.Cards = append(g.Cards, cluster.CardGrant{UUID: n.Cards[i].UUID, Exclusive: true})
	}
	return n.Restore(g)
}

func Lasting(job int64, gpus, minutes int) *order.Candidate {
	c := Candidate(job, api.Spec{Size: 1, GPUsPerRank: gpus})
	c.TimeLimit = time.Duration(minutes) * time.Minute
	return c
}

func BruteForce(c *order.Candidate, nodes []*cluster.Node) bool {
	most := make([]int, len(nodes))
	for i, n := range nodes {
		for k := 1; k <= c.Size && takes(c, n, k); k++ {
			most[i] = k
		}
	}
	return distribute(c.Ask.Spec, most, nil, nodes)
}

func distribute(s *api.Spec, most, ks []int, nodes []*cluster.Node) bool {
	if len(ks) == len(most) {
		var on [][]string
		for i, k := range ks {
			if k > 0 {
				on = append(on, nodes[i].Features)
			}
		}
		return allowed(s, ks) && MayBeOn(s, on)
	}
	for k := 0; k <= most[len(ks)]; k++ {
		if distribute(s, most, append(slices.Clone(ks), k), nodes) {
			return true
		}
	}
	return false
}

func allowed(s *api.Spec, ks []int) bool {
	sum, members, short := 0, 0, 0
	for _, k := range ks {
		sum += k
		if k > 0 {
			members++
		}
		if s.RanksPerNode > 0 && k > s.RanksPerNode {
			return false
		}
		if k > 0 && k < s.RanksPerNode {
			short++
		}
	}
	return sum == s.Size && members >= s.MinNodes && (s.MaxNodes == 0 || members <= s.MaxNodes) && short <= 1
}

// takes reports whether k ranks fit on n by trying every set of cards.
func takes(c *order.Candidate, n *cluster.Node, k int) bool {
	s := c.Ask.Spec
	spec := *s
	spec.Constraint, spec.Prefer = "", "" // these are judged of all nodes together
	d, err := cluster.NewNeed(cluster.AskOf(&spec, c.Ask.Partitions))
	if err != nil || !d.Admits(n) {
		return false
	}
	want := s.GPUsPerNode
	if s.GPUsPerRank > 0 {
		want = s.GPUsPerRank * k
	}
	for set := range 1 << len(n.Cards) {
		slots := make([]cluster.Slot, k)
		for i := range n.Cards {
			card := &n.Cards[i]
			// Beyond Take's arithmetic: the type, and never a card that strangers have filled.
			if set&(1<<i) != 0 && d.MatchesCard(card) && card.StrangersBytes < card.VRAMBytes && n.FreeVRAM(i) > 0 {
				slots[0].Cards = append(slots[0].Cards, card.UUID)
			}
		}
		if len(slots[0].Cards) != want {
			continue
		}
		if _, err := n.Take(cluster.GrantFor(c.Ask, api.MemberKey{Job: c.Job, Epoch: 9}, slots, time.Time{})); err == nil {
			return true
		}
	}
	return false
}

// MayBeOn says of the constraints that genSpec draws, without the code that reads them,
// whether a gang may be on nodes with these features.
func MayBeOn(s *api.Spec, on [][]string) bool {
	return Meets(s.Constraint, on) || s.Prefer != "" && Meets(s.Prefer, on)
}

func Meets(text string, on [][]string) bool {
	with := func(names ...string) (n int) {
		for _, features := range on {
			if !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(features, name) }) {
				n++
			}
		}
		return n
	}
	ib, big, both := with("ib"), with("big"), with("ib", "big")
	switch text {
	case "":
		return true
	case "ib":
		return ib == len(on)
	case "ib&big", "ib&[big|none]":
		return both == len(on)
	case "big|none", "[big|none]":
		return big == len(on)
	case "[ib|big]":
		return ib == len(on) || big == len(on)
	case "ib*2":
		return ib >= 2
	case "big*1":
		return big >= 1
	case "ib&big*1":
		return ib == len(on) && big >= 1
	case "[ib*1&big*1]":
		return ib >= 1 && big >= 1 && ib+big-both >= 2
	}
	panic("no judge of " + text)
}

// EarliestOf tries the ends that are known one after the other; zero: none makes room.
func EarliestOf(c *order.Candidate, nodes []*cluster.Node) time.Time {
	for minute := range 10 {
		at, by := Epoch0.Add(time.Duration(minute)*time.Minute), slices.Clone(nodes)
		for i, n := range by {
			for _, g := range n.Grants {
				if !g.Until.IsZero() && !g.Until.After(at) {
					by[i] = by[i].Release(g.MemberKey)
				}
			}
		}
		if BruteForce(c, by) {
			return at
		}
	}
	return time.Time{}
}

// Ran makes a running gang that holds cards of nodes since some minutes before Epoch0.
func Ran(nodes []*cluster.Node, job int64, minutes int, places map[int][]int) *order.Running {
	began := Epoch0.Add(-time.Duration(minutes) * time.Minute)
	r := &order.Running{Job: job, Epoch: 1, Start: began, Submit: began}
	for at, cards := range places {
		nodes[at] = Run(nodes[at], job, 0, cards...)
		r.Cards += len(cards)
	}
	return r
}
