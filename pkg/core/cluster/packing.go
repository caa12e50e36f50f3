package cluster

import "cmp"

// Packing is what is left of a node while asks are packed on it in thought: sums alone, as
// in [Room], but here the asks come one after the other, nothing is named and no grant is
// made. The memory is used again. The zero value is of no node.
//
// Of a node it takes what is free, and of the asks which of its cards each may have. Both
// are read once: one question packs some hundreds of asks.
type Packing struct {
	asks []Packed
	may  []bool // by ask and card; an ask that must not go to the node has none
	now  packing
	then packing // while it is filled
	open []bool  // by ask: it fits,
	fits []bool  // and while it is filled still does
}

// Packed is an ask to be packed, and how many of its ranks come to a node at most.
type Packed struct {
	*Need
	Most int
}

// packing is what packing uses up.
type packing struct {
	free  Amounts
	each  Amounts // the node's
	full  bool    // one gang has the node
	cards []packedCard
}

type packedCard struct {
	free, total int64 // VRAM; total 0: no figure is known
	held        bool  // somebody has a share of it
	open        bool  // it is sound, and nobody has it alone
	mine        bool  // the gang being packed has it
}

// milli is one card in the figures of a packing.
const milli = 1000

func (c *packedCard) milli() int64 {
	switch {
	case !c.open:
		return 0
	case c.total == 0:
		return milli
	}
	return c.free * milli / c.total
}

// Of makes it the room of n for these asks.
func (p *Packing) Of(n *Node, asks []Packed) {
	u := n.use()
	p.asks, p.may = asks, p.may[:0]
	p.now = packing{free: n.free(u), each: n.Each, full: u.exclusive > 0, cards: p.now.cards[:0]}
	for i := range n.Cards {
		p.now.cards = append(p.now.cards, packedCard{free: n.freeVRAM(u, i), total: n.Cards[i].VRAMBytes,
			held: u.cards[i].holders > 0, open: n.Cards[i].State != stateQuarantined && u.cards[i].exclusive == 0})
	}
	for i := range asks {
		goes := asks[i].InPartition(n) && asks[i].HasFeatures(n)
		for j := range n.Cards {
			p.may = append(p.may, goes && asks[i].MatchesCard(&n.Cards[j]))
		}
	}
}

// Put takes off what so many ranks of d would take of n, of which the packing is; they fit.
func (p *Packing) Put(n *Node, d *Need, ranks int) {
	p.now.put(d, ranks)
	if want := d.CardsFor(ranks); want > 0 {
		for _, i := range d.pickCards(n, want) {
			p.now.cards[i].take(d)
		}
	}
	p.now.full = p.now.full || d.Exclusive
}

// put takes off the amounts of so many ranks.
func (r *packing) put(d *Need, ranks int) {
	for i := range r.free {
		r.free[i] -= cmp.Or(int64(ranks)*d.PerRank[i]+d.PerMember[i], r.each[i])
	}
}

func (c *packedCard) take(d *Need) {
	if c.held = true; d.Share {
		c.free -= d.VRAM
	} else {
		c.free, c.open = 0, false
	}
}

// Free is what is free on the cards, in thousandths of a card.
func (p *Packing) Free() int64 { return p.now.freeCards() }

func (r *packing) freeCards() int64 {
	var sum int64
	for i := range r.cards {
		sum += r.cards[i].milli()
	}
	return sum
}

// Alone is how much of the cards asks like the one at index i can use with nobody else
// beside them, in thousandths of a card.
func (p *Packing) Alone(i int) float64 {
	d := p.asks[i].Need
	k := p.ranksAlone(d, p.mayOf(i))
	if k <= 0 {
		return 0
	}
	used := float64(k) * milli * float64(d.Cards)
	if d.NodeCards > 0 {
		used = milli * float64(d.NodeCards)
	}
	if total := p.now.cards[0].total; d.Share && total > 0 {
		used *= float64(d.VRAM) / float64(total)
	}
	return used
}

// ranksAlone counts, of an ask for a share of one card, also those that share a card with
// each other: they are of different gangs.
func (p *Packing) ranksAlone(d *Need, may []bool) int {
	if !d.Share || d.Cards != 1 {
		k, _ := p.now.ranks(d, may, maxAlone)
		return k
	}
	k := p.now.ranksBeside(d, maxAlone)
	var fit int64
	for i := range p.now.cards {
		if may[i] {
			fit += p.now.cards[i].free / d.VRAM
		}
	}
	return int(min(int64(k), fit))
}

// maxAlone is more ranks than any node has room for.
const maxAlone = 1 << 20

func (p *Packing) mayOf(i int) []bool {
	n := len(p.now.cards)
	return p.may[i*n : (i+1)*n]
}

// ranksBeside is how many ranks find all but their cards.
func (r *packing) ranksBeside(d *Need, most int) int {
	if r.full {
		return 0
	}
	return d.ranksIn(&r.free, &r.each, most)
}

// ranks is how many ranks fit, and how many cards they take.
func (r *packing) ranks(d *Need, may []bool, most int) (ranks, cards int) {
	k := r.ranksBeside(d, most)
	if k <= 0 {
		return 0, 0
	}
	fit := 0
	for i := range r.cards {
		if may[i] && r.cards[i].fits(d) {
			fit++
		}
	}
	if d.Cards == 0 {
		if fit < d.NodeCards {
			return 0, 0
		}
		return k, d.NodeCards
	}
	k = min(k, fit/d.Cards)
	return k, k * d.Cards
}

// fits is [Need.cardFits] but for the model.
func (c *packedCard) fits(d *Need) bool {
	return c.open && (d.Share || !c.held) && d.VRAM <= c.free && (c.free > 0 || c.total == 0)
}

// Fill packs asks in each of some orders, by their indexes, each ask where it fits, and says
// what is free on the cards then, in thousandths of a card: the sum over the orders.
func (p *Packing) Fill(orders [][]uint8) (sum int64) {
	p.open = p.open[:0]
	for i := range p.asks {
		k, _ := p.now.ranks(p.asks[i].Need, p.mayOf(i), 1)
		p.open = append(p.open, k > 0)
	}
	for _, o := range orders {
		sum += p.fill(o)
	}
	return sum
}

func (p *Packing) fill(order []uint8) int64 {
	cards := append(p.then.cards[:0], p.now.cards...)
	p.then = p.now
	p.then.cards = cards
	p.fits = append(p.fits[:0], p.open...)
	for _, i := range order {
		// What does not fit now never will: room only shrinks.
		p.fits[i] = p.fits[i] && p.then.add(p.asks[i], p.mayOf(int(i)))
	}
	return p.then.freeCards()
}

// add packs as much of one gang as fits.
func (r *packing) add(a Packed, may []bool) bool {
	ranks, cards := r.ranks(a.Need, may, a.Most)
	if ranks <= 0 {
		return false
	}
	r.put(a.Need, ranks)
	for range cards {
		best := -1
		for i := range r.cards {
			if c := &r.cards[i]; may[i] && !c.mine && c.fits(a.Need) && (best < 0 || c.before(&r.cards[best])) {
				best = i
			}
		}
		r.cards[best].take(a.Need)
		r.cards[best].mine = cards > 1
	}
	for i := range r.cards {
		r.cards[i].mine = false
	}
	return true
}

// before is the order in which [Need.Pick] takes cards, as far as sums tell them apart.
func (c *packedCard) before(o *packedCard) bool {
	if c.held != o.held {
		return c.held
	}
	return c.free < o.free || c.free == o.free && c.total < o.total
}
