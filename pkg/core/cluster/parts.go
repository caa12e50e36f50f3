package cluster

import (
	"slices"
	"time"

	"gangd/pkg/api"
)

// A gang with roles asks for several kinds of ranks at once. Each kind is a part: an ask of
// its own, with the arithmetic of a gang without roles. What the parts of one gang take on a
// node is one grant, because it is one member that is started and proven gone.

// PartOf is the part that a rank belongs to: the ask itself without roles.
func (a *Ask) PartOf(rank int) *Ask {
	for _, p := range a.Parts {
		if rank < p.Spec.Size {
			return p
		}
		rank -= p.Spec.Size
	}
	return a
}

// GrantOf is what the member of a gang on one node takes: the ranks on that node, in
// order, and the place of each.
func GrantOf(ask *Ask, key api.MemberKey, ranks []int, slot func(rank int) Slot, until time.Time) Grant {
	if ask.Parts == nil {
		return GrantFor(ask, key, slotsOf(ranks, slot), until)
	}
	sum := Grant{MemberKey: key, Exclusive: ask.Spec.Exclusive, Until: until}
	for len(ranks) > 0 {
		part, n := ask.PartOf(ranks[0]), 1
		for n < len(ranks) && ask.PartOf(ranks[n]) == part {
			n++
		}
		g := GrantFor(part, key, slotsOf(ranks[:n], slot), until)
		sum.Ranks += g.Ranks
		for r := range sum.Takes {
			if Resources[r].Common {
				sum.Takes[r] = max(sum.Takes[r], g.Takes[r])
			} else {
				sum.Takes[r] += g.Takes[r]
			}
		}
		sum.Cards = append(sum.Cards, g.Cards...)
		ranks = ranks[n:]
	}
	return sum
}

func slotsOf(ranks []int, slot func(rank int) Slot) []Slot {
	out := make([]Slot, len(ranks))
	for i, r := range ranks {
		out[i] = slot(r)
	}
	return out
}

// Beside is n as it is for the other parts of a gang once a part has these slots there: smaller by
// what they take, or without anything where the part is to be apart.
func (a *Ask) Beside(n *Node, slots []Slot) *Node {
	if !a.Apart {
		return n.Without(GrantFor(a, api.MemberKey{}, slots, time.Time{}))
	}
	c := *n
	c.Has[CPUs] = 0
	c.used = c.count()
	return &c
}

// Without is n less what g takes, as if the node were that much smaller. It is for the
// parts of one gang: they do not share cards with each other, and they are not strangers
// to each other on a node that the gang wants to itself, as another gang's grant would be.
func (n *Node) Without(g Grant) *Node {
	c := *n
	for r := range c.Has {
		if !Resources[r].Common {
			c.Has[r] -= g.Takes[r]
		}
	}
	if len(g.Cards) > 0 {
		c.Cards = slices.Clone(n.Cards)
		for _, held := range g.Cards {
			if i := c.cardIndex(held.UUID); i >= 0 {
				c.Cards[i].State = stateQuarantined
			}
		}
	}
	c.used = c.count()
	return &c
}
