package fit

import (
	"slices"

	"gangd/pkg/core/cluster"
)

// place finds members for a gang, nil when it does not fit. Nodes that just failed it
// are used only when nothing else does.
// switches is below how many it has to be, 0: any number.
func (f *Finder) place(sh *AskClass, on *NodeView, avoid []string, switches int) []Member {
	choices := f.Look(sh, on, avoid)
	l := LayoutOf(sh.Need)
	t := f.TallyOf(choices)
	m := l.Members(t)
	var c *Counted
	if m > 0 && sh.Need.Counts != nil {
		c = NewCounted(sh.Need, choices, func(at int) *cluster.Node { return on.Node(at) })
		m = c.Members()
	}
	if m == 0 {
		if len(avoid) > 0 {
			return f.place(sh, on, nil, switches)
		}
		return nil
	}
	if sh.mix != f.packer.Turn {
		sh.mix = f.packer.Turn
		clear(sh.wastes)
	}
	wasteOf := func(s Choice, ranks int) cluster.Waste {
		if s.class == nil {
			return sh.Need.WasteOf(on.Node(s.At), ranks)
		}
		key := wasteKey{s.class.id, ranks}
		w, known := sh.wastes[key]
		if !known {
			w = sh.Need.WasteOf(s.class.node, ranks)
			w.Price = f.packer.price(sh.Need, s.class, ranks)
			sh.wastes[key] = w
		}
		if len(f.packer.Asks) > 0 && len(s.class.node.Grants) == 0 {
			w.Price += scarcity(on.members(s.class).count)
		}
		return w
	}
	if c != nil {
		return f.chooseCounted(c, m, switches, wasteOf)
	}
	if tree := f.topology(); tree != nil {
		choices = slices.Clone(choices)
		return f.near(tree, l, choices, l.Choose(slices.Clone(choices), t, m, wasteOf), switches, wasteOf)
	}
	return l.Choose(choices, t, m, wasteOf)
}

// Look lists where ranks fit: class by class, or node by node when names matter. A node that
// was taken apart from its class is a choice of its own.
func (f *Finder) Look(sh *AskClass, l *NodeView, avoid []string) []Choice {
	f.choices = f.choices[:0]
	for _, k := range l.live {
		if k.closed || !k.carded && sh.Need.WantsCards() {
			continue
		}
		list := l.members(k)
		if list.count == 0 {
			continue
		}
		ranks := sh.RanksOn(k)
		if ranks == 0 {
			continue
		}
		like := *list
		if sh.Named || len(avoid) > 0 || l.closed != nil {
			like = f.without(sh, l, list, avoid)
		}
		if like.count > 0 {
			f.choices = append(f.choices, Choice{At: like.first(), like: like, class: k, Ranks: ranks})
		}
	}
	return f.choices
}

func (f *Finder) without(sh *AskClass, l *NodeView, list *nodeList, avoid []string) nodeList {
	var out []int32
	for at := range list.each() {
		if name := l.Node(at).Name; sh.Need.Named(name) && !slices.Contains(avoid, name) && (l.closed == nil || !l.closed[at]) {
			out = append(out, int32(at))
		}
	}
	return listOf(out)
}

// TallyOf counts choices, and leaves that for Found.
func (f *Finder) TallyOf(choices []Choice) *Tally {
	f.tally.Reset()
	for i := range choices {
		f.tally.AddAll(choices[i].Ranks, choices[i].Count())
	}
	return &f.tally
}

// SlotsBelow is where a gang without roles fits below so many switches, 0: any number; nil: nowhere.
func (f *Finder) SlotsBelow(sh *AskClass, l *NodeView, avoid []string, switches int) []cluster.Slot {
	if sh.Alternatives != nil {
		return f.slotsOfAlternatives(sh, l, avoid, switches)
	}
	members := f.place(sh, l, avoid, switches)
	if members == nil {
		return nil
	}
	return pick(sh.Need, l, members)
}

func pick(d *cluster.Need, on *NodeView, members []Member) []cluster.Slot {
	slots := make([]cluster.Slot, 0, d.Size)
	for _, m := range members {
		slots = append(slots, d.Pick(on.Node(m.At), m.Ranks)...)
	}
	return slots
}
