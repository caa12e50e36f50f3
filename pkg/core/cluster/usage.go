package cluster

import "cmp"

// usage is the sum of the grants of a node. It is kept beside them so that a plan over
// ten thousand nodes adds nothing up: it only reads.
type usage struct {
	taken     Amounts
	grants    int
	exclusive int       // grants that want the node to themselves
	open      int       // cards on which something may still be placed
	cards     []cardUse // parallel to counted
	counted   []Card    // the Cards these sums were made for: another slice means count again
}

// cardUse is what is granted on one card.
type cardUse struct {
	vram      int64 // sum of the shares
	holders   int
	exclusive int // holders that have the card to themselves
}

// Counted is n with its sums made. Take, Release and Restore keep them; a node put
// together by hand, or given another Cards slice, is counted again by each reader until
// this has been called once.
func (n *Node) Counted() *Node {
	if n.isCounted() {
		return n
	}
	c := *n
	c.used = n.count()
	return &c
}

func (n *Node) isCounted() bool {
	u := &n.used
	if u.grants != len(n.Grants) || len(u.cards) != len(n.Cards) || len(u.counted) != len(n.Cards) {
		return false
	}
	return len(n.Cards) == 0 || &u.counted[0] == &n.Cards[0]
}

// use reads the sums, counting when they are not at hand.
func (n *Node) use() *usage {
	if n.isCounted() {
		return &n.used
	}
	u := n.count()
	return &u
}

func (n *Node) count() usage {
	u := usage{counted: n.Cards}
	if len(n.Cards) > 0 {
		u.cards = make([]cardUse, len(n.Cards))
	}
	for i := range n.Grants {
		u.add(n, &n.Grants[i], 1)
	}
	u.look(n)
	return u
}

// look counts the open cards: most looks at a node of a full cluster end at this figure,
// without a read of its cards.
func (u *usage) look(n *Node) {
	u.open = 0
	for i := range n.Cards {
		if n.Cards[i].State != stateQuarantined && u.cards[i].exclusive == 0 {
			u.open++
		}
	}
}

// with copies the sums before they are changed: the old node keeps its own.
func (n *Node) with(g *Grant, sign int) usage {
	u := *n.use()
	if len(u.cards) > 0 {
		u.cards = append([]cardUse(nil), u.cards...)
	}
	u.add(n, g, sign)
	u.look(n)
	return u
}

func (u *usage) add(n *Node, g *Grant, sign int) {
	for r := range u.taken {
		u.taken[r] += int64(sign) * cmp.Or(g.Takes[r], n.Each[r])
	}
	u.grants += sign
	if g.Exclusive {
		u.exclusive += sign
	}
	last := -1
	for j := range g.Cards {
		c := &g.Cards[j]
		i := n.cardAfter(last, c.UUID)
		if i < 0 {
			continue // the card left the node while it was granted: nothing to count it on
		}
		last = i
		u.cards[i].vram += int64(sign) * c.VRAMBytes
		u.cards[i].holders += sign
		if c.Exclusive {
			u.cards[i].exclusive += sign
		}
	}
}

// cardIndex is the position of a card in n.Cards, -1: not there. Nodes have at most a
// few dozen cards, so that looking is cheaper than a map.
func (n *Node) cardIndex(uuid string) int {
	for i := range n.Cards {
		if n.Cards[i].UUID == uuid {
			return i
		}
	}
	return -1
}

// cardAfter is cardIndex where the card is likely the one after another: a grant has its
// cards mostly in the node's order.
func (n *Node) cardAfter(last int, uuid string) int {
	if next := last + 1; next < len(n.Cards) && n.Cards[next].UUID == uuid {
		return next
	}
	return n.cardIndex(uuid)
}

// OpenCards is how many cards something may still be placed on: neither quarantined nor
// in one gang's hands alone.
func (n *Node) OpenCards() int { return n.use().open }

// FreeVRAM is what a further gang could be given on the card at index i: nothing when it
// is quarantined or one gang has it to itself.
func (n *Node) FreeVRAM(i int) int64 {
	return n.freeVRAM(n.use(), i)
}

func (n *Node) freeVRAM(u *usage, i int) int64 {
	c := &n.Cards[i]
	if c.State == stateQuarantined || u.cards[i].exclusive > 0 {
		return 0
	}
	return max(0, c.VRAMBytes-c.StrangersBytes-u.cards[i].vram)
}
