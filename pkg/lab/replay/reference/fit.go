package reference

import (
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// room is how many cards are free on each node. The orders know whole cards only, as the
// published experiments do; which card of a node is taken makes no difference to them.
type room []int

func roomOf(nodes []*cluster.Node) room {
	r := make(room, len(nodes))
	for i, n := range nodes {
		r[i] = n.OpenCards()
	}
	return r
}

// share is how many ranks of a gang a node is given.
type share struct{ at, ranks int }

// place gives each rank of a gang the node that keeps the fewest free cards (best fit),
// the first by name of equals. It takes the cards, or nothing and gives nil.
func (r room) place(c *order.Candidate) []share {
	size, cards := c.Size, c.Ask.Spec.GPUsPerRank
	var out []share
	for placed := 0; placed < size; placed++ {
		best := -1
		for i, free := range r {
			if free >= cards && (best < 0 || free < r[best]) {
				best = i
			}
		}
		if best < 0 {
			r.giveBack(out, cards)
			return nil
		}
		r[best] -= cards
		if k := len(out); k > 0 && out[k-1].at == best {
			out[k-1].ranks++
		} else {
			out = append(out, share{best, 1})
		}
	}
	return out
}

func (r room) giveBack(shares []share, cards int) {
	for _, s := range shares {
		r[s.at] += s.ranks * cards
	}
}

// slots names the cards of shares on the nodes as they are now.
func slots(nodes []*cluster.Node, c *order.Candidate, shares []share) []cluster.Slot {
	d, err := cluster.NewNeed(c.Ask)
	if err != nil {
		return nil // traces have no constraint that could be wrong
	}
	var out []cluster.Slot
	for _, s := range shares {
		out = append(out, d.Pick(nodes[s.at], s.ranks)...)
	}
	return out
}
