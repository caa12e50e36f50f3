package sched

import (
	"cmp"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// Placement by expected stranding. Of the places where a gang fits, that one is best which
// leaves most of the cards usable for what people here ask for: the site's own asks are
// packed, in thought, on top of each node before and after, and what no longer can be used
// then is the price. It knows card models, because an ask for one model can use nothing of
// another, and it knows CPUs and memory, because cards without them are stranded as well.

// typicalAsks bounds the asks that are packed; the rest is too rare to matter.
const typicalAsks = 20

// milli is one card in the units of a price.
const milli = 1000

// openPrice is added for the first gang on a node that is wholly free: a free node is what
// the largest asks need, and no mix of the past shows how badly the next one will.
const openPrice = 60

// scarcePrice is shared by the wholly free nodes of one kind: the fewer of a kind are free,
// the more the next one of it is worth to an ask that fits on no other, however rare it is.
const scarcePrice = 2000

func scarcity(free int) int64 { return scarcePrice / int64(max(1, free)) }

// mix is what people ask for, the commonest first.
type mix struct {
	turn  int // changes with what is in it
	parts []typical
}

type typical struct {
	need  *cluster.Need
	share float64
}

// asked counts an ask once for each job.
func (l *Ledger) asked(c *Candidate) {
	if l == nil || c.Job <= l.lastJob {
		return
	}
	l.lastJob = c.Job
	a := l.asks[c.Ask.Shape]
	if a == nil {
		a = &askCount{ask: c.Ask}
		l.asks[c.Ask.Shape] = a
	}
	a.n++
	l.askedFor++
}

type askCount struct {
	ask *cluster.Ask
	n   float64
}

// typical is the mix of now; it is made again when a tenth more was asked for since, so
// that prices stay good for many plans.
func (l *Ledger) typical() *mix {
	if l == nil {
		return &mix{}
	}
	if l.mix != nil && l.askedFor < l.mixAt+l.mixAt/10+1 {
		return l.mix
	}
	all := make([]*askCount, 0, len(l.asks))
	for _, a := range l.asks {
		if CardsOf(a.ask) > 0 && a.ask.Parts == nil {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *askCount) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.ask.Shape, b.ask.Shape)) })
	m := &mix{turn: 1}
	if l.mix != nil {
		m.turn = l.mix.turn + 1
	}
	sum := 0.0
	for _, a := range all[:min(typicalAsks, len(all))] {
		s := *a.ask.Spec
		s.Size, s.MinNodes, s.MaxNodes, s.RanksPerNode, s.Exclusive, s.NodeList, s.Exclude = 1<<10, 0, 0, 0, false, nil, nil
		d, err := cluster.NewNeed(cluster.AskOf(&s, a.ask.Partitions))
		if err != nil {
			continue
		}
		m.parts = append(m.parts, typical{d, a.n})
		sum += a.n
	}
	for i := range m.parts {
		m.parts[i].share /= sum
	}
	l.mix, l.mixAt = m, l.askedFor
	return m
}

// stranded is how much of the cards of a node is expected to be of no use, in thousandths.
func (m *mix) stranded(n *cluster.Node) float64 {
	free := float64(freeCards(n))
	if free == 0 {
		return 0
	}
	sum := 0.0
	for i := range m.parts {
		d := m.parts[i].need
		used := 0.0
		if k := packed(d, n); k > 0 && d.InPartition(n) && d.HasFeatures(n) {
			used = float64(k) * milli * float64(d.Cards)
			if d.NodeCards > 0 {
				used = milli * float64(d.NodeCards)
			}
			if d.Share && len(n.Cards) > 0 && n.Cards[0].VRAMBytes > 0 {
				used *= float64(d.VRAM) / float64(n.Cards[0].VRAMBytes)
			}
		}
		sum += m.parts[i].share * max(0, free-used)
	}
	return sum
}

// packed is how many gangs of one rank of an ask a node holds: unlike the ranks of one gang
// they share cards with each other.
func packed(d *cluster.Need, n *cluster.Node) int {
	if !d.Share || d.Cards != 1 || d.VRAM <= 0 {
		return d.Ranks(n)
	}
	k := int64(n.FreeCPUs() / d.CPUs)
	if d.Memory > 0 {
		k = min(k, n.FreeMemory()/d.Memory)
	}
	var fit int64
	for i := range n.Cards {
		if d.MatchesCard(&n.Cards[i]) {
			fit += n.FreeVRAM(i) / d.VRAM
		}
	}
	return int(max(0, min(k, fit)))
}

// freeCards is what is free on the cards of a node, in thousandths of a card.
func freeCards(n *cluster.Node) int64 {
	var sum int64
	for i := range n.Cards {
		if total := n.Cards[i].VRAMBytes; total > 0 {
			sum += n.FreeVRAM(i) * milli / total
		} else if _, alone := n.Holders(i); !alone && n.Cards[i].State != api.CardQuarantined {
			sum += milli
		}
	}
	return sum
}

// price is what so many ranks on a node strand, in thousandths of a card.
func (m *mix) price(d *cluster.Need, n *cluster.Node, ranks int) int64 {
	if len(m.parts) == 0 || len(n.Cards) == 0 {
		return 0
	}
	after := n.Restore(cluster.GrantFor(d.Ask, api.MemberKey{Epoch: epochStart}, d.Pick(n, ranks), never))
	p := m.stranded(after) - m.stranded(n)
	if len(n.Grants) == 0 {
		p += openPrice
	}
	return int64(p)
}
