package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/given"
)

// textGroup is the nodes about which the same is to be said.
type textGroup struct {
	names   []string
	text    string
	holders []int64
	ranks   int // room on each of them
	free    int
	by      time.Time // when the first of them is empty, at the latest; zero: not known of any
	apart   bool      // the others are empty at another time, or it is not known when
}

// MaxNodeLines keeps an answer about ten thousand nodes on one screen.
const MaxNodeLines = 6

// NodeLines says of each node that the ask admits what is free and what is short, nodes
// about which the same is to be said together, those with most room first.
func (wy *Why) NodeLines(d *cluster.Need) []string {
	groups := wy.textGroups(d)
	if len(groups) == 0 {
		return []string{"no node is in its partition, node list and constraint at once"}
	}
	slices.SortStableFunc(groups, func(a, b *textGroup) int {
		return cmp.Or(cmp.Compare(b.ranks, a.ranks), cmp.Compare(b.free, a.free))
	})
	var lines []string
	for _, g := range groups[:min(MaxNodeLines, len(groups))] {
		line := Hosts(g.names) + ": " + g.text
		if len(g.holders) > 0 {
			line += "; held by " + wy.View.Names.List(g.holders)
			if g.apart { // of one at least it is known when
				line += ", the first of these nodes is free at the latest at " + when.Clock(wy.Now, g.by)
			} else if !g.by.IsZero() {
				line += ", free at the latest at " + when.Clock(wy.Now, g.by)
			}
		}
		lines = append(lines, line)
	}
	if len(groups) > MaxNodeLines {
		more := 0
		for _, g := range groups[MaxNodeLines:] {
			more += len(g.names)
		}
		lines = append(lines, fmt.Sprintf("and %s with less", api.Count(more, "more node")))
	}
	return lines
}

func (wy *Why) textGroups(d *cluster.Need) []*textGroup {
	byText := make(map[string]*textGroup)
	var groups []*textGroup
	for at, n := range wy.kept.Bare().Every() {
		if !d.Admits(n) {
			continue
		}
		text := wy.nodeText(d, at)
		g := byText[text]
		if g == nil {
			g = &textGroup{text: text}
			if n.Ready {
				g.ranks, g.free = d.Ranks(wy.ExplainedView.Node(at)), d.Free(n)
				if wy.ExplainedView.Shuts(at) {
					g.ranks = 0
				}
			} else {
				g.free = -1 // out of service comes last
			}
			byText[text] = g
			groups = append(groups, g)
		}
		g.names = append(g.names, n.Name)
		if n.Ready {
			for i := range n.Grants {
				g.holders = append(g.holders, n.Grants[i].Job)
			}
			t := wy.emptyBy(n)
			g.apart = g.apart || len(g.names) > 1 && !t.Equal(g.by)
			if !t.IsZero() && (g.by.IsZero() || t.Before(g.by)) {
				g.by = t
			}
		}
	}
	return groups
}

// emptyBy is when everything on a node has ended at the latest; zero: not known.
func (wy *Why) emptyBy(n *cluster.Node) (by time.Time) {
	for i := range n.Grants {
		t := wy.kept.EndOf(&n.Grants[i])
		if t.IsZero() {
			return t
		}
		if t.After(by) {
			by = t
		}
	}
	return by
}

// nodeText is the arithmetic of one node.
func (wy *Why) nodeText(d *cluster.Need, at int) string {
	n := wy.kept.Bare().Node(at)
	if !n.Ready {
		return "out of service: " + cmp.Or(n.NotReady, "not ready")
	}
	return wy.reservedNode(at) + wy.freeText(d, at)
}

// freeText is what of a node in service is free, and what is short.
func (wy *Why) freeText(d *cluster.Need, at int) string {
	n := wy.kept.Bare().Node(at)
	for i := range n.Grants {
		if n.Grants[i].Exclusive {
			return "taken as a whole"
		}
	}
	if d.Exclusive && len(n.Grants) > 0 {
		return "wanted as a whole, but not empty"
	}
	var parts []string
	if d.WantsCards() {
		parts = append(parts, cardParts(d, n, wy.View.Names)...)
	}
	for r, need := range d.One() {
		row, free := &cluster.Resources[r], max(0, n.Free(cluster.Resource(r)))
		need = cmp.Or(need, n.Each[r])
		if need > free || cluster.Resource(r) == cluster.CPUs && !d.WantsCards() {
			parts = append(parts, fmt.Sprintf("%s of %s free", row.Figure(free), row.Text(n.Has[r])))
		}
		if need > free {
			parts = append(parts, "needs "+row.Figure(need))
		}
	}
	text := strings.Join(parts, ", ")
	if now, real := d.Ranks(wy.ExplainedView.Node(at)), d.Ranks(n); now > 0 && !wy.ExplainedView.Shuts(at) {
		text = fmt.Sprintf("room for %s: %s", api.Count(now, "rank"), text)
	} else if real > 0 && !wy.ExplainedView.Shuts(at) {
		text = fmt.Sprintf("kept for %s: %s", wy.takersOf(n.Name), text)
	}
	return text
}

// takersOf names the jobs whose backfills keep others off a node.
func (wy *Why) takersOf(node string) string {
	var ids []int64
	for _, c := range wy.kept.List {
		if slices.ContainsFunc(c.Slots, func(s cluster.Slot) bool { return s.Node == node }) {
			ids = append(ids, c.Job)
		}
	}
	return wy.View.Names.List(ids)
}

// cardParts is "2 of 8 cards free, needs 40G on each, card 1 has 22G free after 50G held
// by strangers".
func cardParts(d *cluster.Need, n *cluster.Node, names given.Names) []string {
	right := 0
	var short []string
	for i := range n.Cards {
		c := &n.Cards[i]
		if !d.MatchesCard(c) {
			continue
		}
		right++
		if text := cardShort(d, n, i, names); text != "" {
			short = append(short, text)
		}
	}
	noun := kindOfCard(d)
	if right == 0 {
		return []string{fmt.Sprintf("no %s", noun)}
	}
	parts := []string{fmt.Sprintf("%d of %s free", d.Free(n), api.Count(right, noun))}
	if d.Free(n) < d.CardsFor(1) && d.CardsFor(1) > 1 {
		parts = append(parts, fmt.Sprintf("needs %d", d.CardsFor(1)))
	}
	if len(short) == 0 {
		return parts
	}
	if d.VRAM > 0 {
		parts = append(parts, fmt.Sprintf("needs %s on each", cluster.Size(d.VRAM)))
	}
	const most = 3
	parts = append(parts, short[:min(most, len(short))]...)
	if more := len(short) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%s short likewise", api.Count(more, "card")))
	}
	return parts
}

// cardShort says why a card that no gang has to itself will not do.
func cardShort(d *cluster.Need, n *cluster.Node, i int, names given.Names) string {
	c := &n.Cards[i]
	holders, alone := n.Holders(i)
	free := n.FreeVRAM(i)
	switch {
	case c.State == api.CardQuarantined:
		return fmt.Sprintf("card %d quarantined (%s)", c.Index, cmp.Or(c.Reason, "unhealthy"))
	case alone || d.CardFits(n, i):
		return ""
	case len(holders) > 0 && !d.Share:
		return fmt.Sprintf("card %d is shared by %s", c.Index, names.List(holders))
	}
	text := fmt.Sprintf("card %d has %s free", c.Index, cluster.Size(free))
	var by []string
	if c.StrangersBytes > 0 {
		by = append(by, cluster.Size(c.StrangersBytes)+" held by strangers")
	}
	if held := c.VRAMBytes - c.StrangersBytes - free; len(holders) > 0 && held > 0 {
		by = append(by, fmt.Sprintf("%s reserved by %s", cluster.Size(held), names.List(holders)))
	}
	if len(by) > 0 {
		return text + " after " + given.And(by)
	}
	if free == c.VRAMBytes {
		return fmt.Sprintf("card %d has %s in all", c.Index, cluster.Size(free))
	}
	return text
}
