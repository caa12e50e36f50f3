package order

import (
	"cmp"
	"slices"

	"gangd/pkg/core/cluster"
)

// typicalAsks bounds the asks that are packed; the rest is too rare to matter. Where people
// share cards 20 are too few: there are as many sizes of a share.
const typicalAsks = 50

// fills and fillAsks are how often a node is filled up with asks, and how many come by each
// time: more than a node holds, but so few that rare asks miss most nodes, so that what only
// they could use counts as lost.
const (
	fills    = 8
	fillAsks = 30
)

// Mix is what people ask for, the commonest first. It is not changed once it is made.
type Mix struct {
	Turn   int // changes with what is in it
	Asks   []cluster.Packed
	Shares []float64
	Orders [][]uint8 // in which they come, by index
}

// asked counts an ask once for each job.
func (l *Ledger) asked(c *Candidate) {
	if l == nil || c.Job <= l.lastJob {
		return
	}
	l.lastJob = c.Job
	a := l.asks[c.Ask.Key]
	if a == nil {
		a = &askCount{ask: c.Ask}
		l.asks[c.Ask.Key] = a
	}
	a.n++
	l.askedFor++
}

type askCount struct {
	ask *cluster.Ask
	n   int64
}

// Typical is the mix of now; it is made again when a tenth more was asked for since, so
// that prices stay good for many plans.
func (l *Ledger) Typical() *Mix {
	if l == nil {
		return &Mix{}
	}
	if l.mix != nil && l.askedFor < l.mixAt+l.mixAt/10+1 {
		return l.mix
	}
	m := &Mix{Turn: 1}
	if l.mix != nil {
		m.Turn = l.mix.Turn + 1
	}
	m.take(l.commonest())
	l.mix, l.mixAt = m, l.askedFor
	return m
}

// commonest are the asks for cards that come most often, the first of them first.
func (l *Ledger) commonest() []*askCount {
	all := make([]*askCount, 0, len(l.asks))
	for _, a := range l.asks {
		if CardsOf(a.ask) > 0 && a.ask.Parts == nil {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *askCount) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.ask.Key, b.ask.Key)) })
	return all[:min(typicalAsks, len(all))]
}

// take makes the mix of some asks.
func (m *Mix) take(all []*askCount) {
	var counts []int64
	sum := 0.0
	for _, a := range all {
		s := *a.ask.Spec
		most := max(1, s.Size)
		if s.RanksPerNode > 0 {
			most = min(most, s.RanksPerNode)
		}
		s.Size, s.MinNodes, s.MaxNodes, s.RanksPerNode, s.Exclusive, s.NodeList, s.Exclude = 1<<10, 0, 0, 0, false, nil, nil
		d, err := cluster.NewNeed(cluster.AskOf(&s, a.ask.Partitions))
		if err != nil {
			continue
		}
		m.Asks = append(m.Asks, cluster.Packed{Need: d, Most: most})
		counts = append(counts, a.n)
		sum += float64(a.n)
	}
	for _, n := range counts {
		m.Shares = append(m.Shares, float64(n)/sum)
	}
	if len(counts) > 0 {
		m.Orders = inTurn(counts)
	}
}

// inTurn deals the asks evenly, each as often as it is asked for: next is always the one that
// is farthest behind its share. Dealt and not drawn, so that a plan can be repeated.
func inTurn(counts []int64) [][]uint8 {
	sum := int64(0)
	for _, n := range counts {
		sum += n
	}
	behind := make([]int64, len(counts))
	out := make([][]uint8, fills)
	for f := range out {
		for range fillAsks {
			next := 0
			for i := range behind {
				if behind[i] += counts[i]; behind[i] > behind[next] {
					next = i
				}
			}
			behind[next] -= sum
			out[f] = append(out[f], uint8(next))
		}
	}
	return out
}
