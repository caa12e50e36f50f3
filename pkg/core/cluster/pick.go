package cluster

import (
	"cmp"
	"slices"

	"gangd/pkg/api"
)

// Pick gives places to so many ranks on a node where they fit ([Need.Ranks]). Cards are
// taken from the lowest model that is enough, near each other: NVLink peers, then the
// same NUMA node, leaving as few links as possible cut. A sharing gang fills cards that
// are shared already before it opens another one.
func (d *Need) Pick(n *Node, ranks int) []Slot {
	slots := make([]Slot, ranks)
	for i := range slots {
		slots[i].Node = n.Name
	}
	want := d.CardsFor(ranks)
	if want == 0 && !TakesAll(d.Ask.Spec) {
		return slots
	}
	var rest, chosen []int
	if want > 0 {
		chosen = d.pickCards(n, want)
	}
	if TakesAll(d.Ask.Spec) {
		for i := range n.Cards {
			if !slices.Contains(chosen, i) && d.CardFits(n, i) {
				rest = append(rest, i)
			}
		}
	}
	if d.Cards == 0 {
		chosen = append(chosen, rest...)
		all := uuids(n, chosen)
		for i := range slots {
			slots[i].Cards = all // the ranks of a member see all its cards
		}
		return slots
	}
	for i, group := range groups(n, chosen, d.Cards) {
		slots[i].Cards = uuids(n, group)
	}
	slots[ranks-1].Cards = append(slots[ranks-1].Cards, uuids(n, rest)...)
	return slots
}

// TakesAll reports whether a member has all cards of its node that are of the kind, however many are asked for, or none:
// nobody else could use them, and its steps can. Ranks that are processes have what each asked for, as many at
// each start.
func TakesAll(s *api.Spec) bool {
	return s.Exclusive && !shares(s) && s.Launch == api.LaunchBatch && len(s.Roles) == 0
}

func (d *Need) pickCards(n *Node, want int) []int {
	u := n.use()
	var fit []int
	for i := range n.Cards {
		if d.cardFits(n, u, i) {
			fit = append(fit, i)
		}
	}
	slices.SortStableFunc(fit, func(a, b int) int { return d.compareCards(n, u, a, b) })
	if d.Share {
		// Packing decides here, down to the bytes left: two half-filled cards serve
		// nobody, and the links of a card that is shared are shared as well.
		return slices.Sorted(slices.Values(fit[:want]))
	}
	// Whole cards: all that are as good as the last one needed compete by nearness, the
	// better ones are taken anyway.
	last := fit[want-1]
	better := 0
	for better < len(fit) && d.compareTier(n, fit[better], last) < 0 {
		better++
	}
	end := want
	for end < len(fit) && d.compareTier(n, fit[end], last) == 0 {
		end++
	}
	return near(n, fit[:better], fit[better:end], want)
}

// compareTier orders cards by model: less VRAM first. Without a VRAM figure cards that
// strangers use come after clean ones of any size: how much is left may not be enough.
func (d *Need) compareTier(n *Node, a, b int) int {
	x, y := &n.Cards[a], &n.Cards[b]
	if d.VRAM == 0 {
		if c := cmp.Compare(dirty(x), dirty(y)); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(x.VRAMBytes, y.VRAMBytes), cmp.Compare(x.Model, y.Model))
}

func (d *Need) compareCards(n *Node, u *usage, a, b int) int {
	if d.Share {
		if c := cmp.Compare(min(1, u.cards[b].holders), min(1, u.cards[a].holders)); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(n.freeVRAM(u, a), n.freeVRAM(u, b)), cmp.Compare(n.Cards[a].VRAMBytes, n.Cards[b].VRAMBytes))
	}
	return d.compareTier(n, a, b)
}

// dirty is 1 for a card on which strangers hold more than a sixteenth: a display server
// or a context's few hundred megabytes do not count.
func dirty(c *Card) int {
	if c.StrangersBytes > c.VRAMBytes/16 {
		return 1
	}
	return 0
}

func uuids(n *Node, cards []int) []string {
	out := make([]string, len(cards))
	for i, c := range cards {
		out[i] = n.Cards[c].UUID
	}
	return out
}
