package reference

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/replay"
	"gangd/pkg/lab/trace"
)

// Placer puts one gang after the other where a rule of the published experiments wants
// it. Gangs have one rank there.
type Placer struct {
	rule  rule
	nodes []*cluster.Node
	needs map[string]*cluster.Need
	turn  *order.Candidate
}

// rule chooses a node and its cards for a gang that fits on all the nodes listed in fit.
type rule interface {
	choose(nodes []*cluster.Node, fit []int, d *cluster.Need) (at int, cards []int)
}

// Begin is part of [replay.Planner].
func (p *Placer) Begin(nodes []*cluster.Node) { p.nodes, p.needs = nodes, map[string]*cluster.Need{} }

// Waits is part of [replay.Planner].
func (p *Placer) Waits(c *order.Candidate) { p.turn = c }

// Leaves is part of [replay.Planner].
func (p *Placer) Leaves(int64) { p.turn = nil }

// Runs is part of [replay.Planner].
func (p *Placer) Runs(int64, *order.Running) {}

// Learns is part of [replay.Planner].
func (p *Placer) Learns(*order.Usage) {}

// Next is part of [replay.Planner].
func (p *Placer) Next() time.Time { return time.Time{} }

// Plan is part of [replay.Planner].
func (p *Placer) Plan(time.Time) replay.Decision {
	if p.turn == nil {
		return replay.Decision{}
	}
	d := p.need(p.turn.Ask)
	var fit []int
	for i, n := range p.nodes {
		if d.Ranks(n) > 0 {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return replay.Decision{}
	}
	at, cards := p.rule.choose(p.nodes, fit, d)
	slot := cluster.Slot{Node: p.nodes[at].Name}
	for _, i := range cards {
		slot.Cards = append(slot.Cards, p.nodes[at].Cards[i].UUID)
	}
	return replay.Decision{Starts: []sched.Start{{Job: p.turn.Job, Slots: []cluster.Slot{slot}}}}
}

func (p *Placer) need(ask *cluster.Ask) *cluster.Need {
	d := p.needs[ask.Key]
	if d == nil {
		d, _ = cluster.NewNeed(ask) // traces have no constraint that could be wrong
		p.needs[ask.Key] = d
	}
	return d
}

// fitting are the cards of a node that the gang could have.
func fitting(n *cluster.Node, d *cluster.Need) []int {
	var out []int
	for i := range n.Cards {
		if d.CardFits(n, i) {
			out = append(out, i)
		}
	}
	return out
}

// packed are the cards with least left, as many as are wanted.
func packed(n *cluster.Node, d *cluster.Need) []int {
	cards := fitting(n, d)
	slices.SortStableFunc(cards, func(a, b int) int { return int(n.FreeVRAM(a)>>20 - n.FreeVRAM(b)>>20) })
	return cards[:d.CardsFor(1)]
}

// Random takes any node and any cards of it.
func Random(seed int) replay.Planner {
	return &Placer{rule: &anywhere{rand.New(rand.NewPCG(uint64(seed), 0))}}
}

type anywhere struct{ rand *rand.Rand }

func (r *anywhere) choose(nodes []*cluster.Node, fit []int, d *cluster.Need) (int, []int) {
	at := fit[r.rand.IntN(len(fit))]
	cards := fitting(nodes[at], d)
	r.rand.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
	return at, cards[:d.CardsFor(1)]
}

// BestFit takes the node that keeps least of CPUs and cards, both weighed alike, as shares
// of the largest node there is.
func BestFit() replay.Planner { return &Placer{rule: &bestFit{}} }

type bestFit struct{ cpus, vram float64 }

func (r *bestFit) choose(nodes []*cluster.Node, fit []int, d *cluster.Need) (int, []int) {
	if r.cpus == 0 {
		for _, n := range nodes {
			r.cpus = max(r.cpus, float64(n.CPUs()))
			r.vram = max(r.vram, float64(len(n.Cards))*1000)
		}
	}
	best, least := -1, math.Inf(1)
	for _, i := range fit {
		left := float64(nodes[i].FreeCPUs()-int(d.PerRank[cluster.CPUs]))/r.cpus + (float64(freeOf(nodes[i]))-asked(d))/r.vram
		if left < least {
			best, least = i, left
		}
	}
	return best, packed(nodes[best], d)
}

// freeOf is the VRAM left on all cards of a node, in thousandths of a card.
func freeOf(n *cluster.Node) int64 {
	sum := int64(0)
	for i := range n.Cards {
		sum += n.FreeVRAM(i) >> 20
	}
	return sum
}

func asked(d *cluster.Need) float64 { return float64(int64(d.CardsFor(1)) * d.VRAM >> 20) }

// FGD is the fragmentation gradient: the node and cards on which the jobs of the trace, by
// how often they come, lose least. What a job loses on a node is the room on cards that it
// can't use: all of it where its CPUs or the number of cards don't suffice. As published,
// a score is a whole number from 0 to 100; unrounded it comes out 0.9 points lower.
func FGD(t *trace.Trace) replay.Planner { return &Placer{rule: newGradient(t)} }

// kind is a job as it is expected to come, with how often.
type kind struct {
	cpus, cards int
	vram        int64
	models      string
	weight      float64
}

type gradient struct {
	kinds []kind
	memo  map[memoKey]memo
}

type memoKey struct {
	at    int
	shape string
}

// memo is what was worked out for a node; it holds as long as the node is the same.
type memo struct {
	node  *cluster.Node
	score float64
	cards []int
}

func newGradient(t *trace.Trace) *gradient {
	count := map[kind]float64{}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		count[kind{cpus: j.CPUs, cards: j.Cards, vram: j.VRAM, models: j.Models}]++
	}
	g := &gradient{memo: map[memoKey]memo{}}
	for k, n := range count {
		if k.cards == 0 {
			continue // loses all room on every node alike
		}
		k.weight = n / float64(len(t.Jobs))
		g.kinds = append(g.kinds, k)
	}
	// Sums of floats depend on the order.
	slices.SortFunc(g.kinds, func(a, b kind) int {
		return compareKinds(&a, &b)
	})
	return g
}

func compareKinds(a, b *kind) int {
	return cmp.Or(cmp.Compare(a.cards, b.cards), cmp.Compare(a.vram, b.vram), cmp.Compare(a.cpus, b.cpus), cmp.Compare(a.models, b.models))
}

func (g *gradient) choose(nodes []*cluster.Node, fit []int, d *cluster.Need) (int, []int) {
	at, best := -1, memo{score: -1}
	for _, i := range fit {
		k := memoKey{i, d.Ask.Key}
		m, ok := g.memo[k]
		if !ok || m.node != nodes[i] {
			m = g.judge(nodes[i], d)
			g.memo[k] = m
		}
		if m.score > best.score {
			at, best = i, m
		}
	}
	return at, best.cards
}

// judge is the best score of the gang on a node, and with which cards.
func (g *gradient) judge(n *cluster.Node, d *cluster.Need) memo {
	free := make([]int64, len(n.Cards))
	for i := range free {
		free[i] = n.FreeVRAM(i)
	}
	model := ""
	if len(n.Cards) > 0 {
		model = n.Cards[0].Model
	}
	before := g.lost(model, n.FreeCPUs(), free)
	m := memo{node: n, score: -1}
	try := func(cards []int) {
		after := slices.Clone(free)
		for _, c := range cards {
			after[c] -= d.VRAM
		}
		gain := before - g.lost(model, n.FreeCPUs()-int(d.PerRank[cluster.CPUs]), after)
		if score := math.Floor(100 / (1 + math.Exp(-gain/1000))); score > m.score {
			m.score, m.cards = score, cards
		}
	}
	cards := fitting(n, d)
	switch want := d.CardsFor(1); want {
	case 1:
		seen := map[int64]bool{}
		for _, c := range cards {
			if !seen[free[c]] {
				seen[free[c]] = true
				try([]int{c})
			}
		}
	default:
		try(cards[:want])
	}
	return m
}

// lost is what the expected jobs can't use of a node.
func (g *gradient) lost(model string, cpus int, free []int64) float64 {
	all := int64(0)
	for _, f := range free {
		all += f
	}
	sum := 0.0
	for i := range g.kinds {
		k := &g.kinds[i]
		lost, fits := int64(0), 0
		for _, f := range free {
			if f < k.vram {
				lost += f
			} else {
				fits++
			}
		}
		if fits < k.cards || cpus < k.cpus || k.models != "" && !slices.Contains(strings.Split(k.models, "|"), model) {
			lost = all
		}
		sum += k.weight * float64(lost>>20)
	}
	return sum
}
