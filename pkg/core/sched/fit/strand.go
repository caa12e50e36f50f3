package fit

import (
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// Placement by expected stranding. Of the places where a gang fits, that one is best which
// leaves most of the cards usable for what people here ask for: the site's own asks are
// packed, in thought, on top of each node before and after, and what no longer can be used
// then is the price. It knows card models, because an ask for one model can use nothing of
// another, and it knows CPUs and memory, because cards without them are stranded as well.
//
// They are packed in two ways. Together, in the order in which people may come: what is left
// over then is lost to everybody, and that is the larger part of the price. And each ask
// alone: what it can't use then is a choice lost for it, though others may use it.

// The figures behind each constant are in docs/design/placement.md.

// fillWeight is how much more a piece counts that is lost to everybody. Where cards are asked
// for whole nothing is, and what each ask alone loses decides.
const fillWeight = 10

// openPrice is added for the first gang on a node that is wholly free: a free node is what
// the largest asks need, and no mix of the past shows how badly the next one will. It breaks
// ties of what each ask alone loses.
const openPrice = 60

// scarcePrice is shared by the wholly free nodes of one class: the fewer of a class are free,
// the more the next one of it is worth to an ask that fits on no other, however rare it is.
// It is two cards lost to everybody: with a tenth of it asks for eight cards were turned away
// at nine tenths of the load.
const scarcePrice = 2000 * fillWeight

func scarcity(free int) int64 { return scarcePrice / int64(max(1, free)) }

// packer packs what people ask for on nodes.
type packer struct {
	*order.Mix
	room *cluster.Packing // of one node at a time
}

// stranding is what of the cards of a node is expected to be of no use, in thousandths.
type stranding struct {
	left  int64 // sum of all fills
	alone float64
}

// stranded is that of the room.
func (p *packer) stranded() (s stranding) {
	free := p.room.Free()
	if free == 0 {
		return s
	}
	for i := range p.Asks {
		s.alone += p.Shares[i] * max(0, float64(free)-p.room.Alone(i))
	}
	s.left = p.room.Fill(p.Orders)
	return s
}

// price is what so many ranks on a node of a class strand: thousandths of a card, those lost to
// everybody counted fillWeight times.
func (p *packer) price(d *cluster.Need, k *NodeClass, ranks int) int64 {
	if len(p.Asks) == 0 || len(k.node.Cards) == 0 {
		return 0
	}
	p.room.Of(k.node, p.Asks)
	if k.strandedBy != p.Mix {
		k.strandedBy, k.strands = p.Mix, p.stranded()
	}
	p.room.Put(k.node, d, ranks)
	after := p.stranded()
	sum := after.alone - k.strands.alone
	if len(k.node.Grants) == 0 {
		sum += openPrice
	}
	return int64(sum) + fillWeight*(after.left-k.strands.left)/int64(len(p.Orders))
}
