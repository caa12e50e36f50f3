package sched

import (
	"slices"

	"gangd/pkg/core/cluster"
)

// place finds members for a gang, nil when it does not fit. Nodes that just failed it
// are used only when nothing else does.
// switches is below how many it has to be, 0: any number.
func (f *finder) place(sh *askClass, on *nodeView, avoid []string, switches int) []member {
	choices := f.look(sh, on, avoid)
	l := layoutOf(sh.need)
	t := f.tallyOf(choices)
	m := l.members(t)
	var c *countedLayout
	if m > 0 && sh.need.Counts != nil {
		c = newCounted(sh.need, choices, func(at int) *cluster.Node { return on.node(at) })
		m = c.members()
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
	wasteOf := func(s nodeChoice, ranks int) cluster.Waste {
		if s.class == nil {
			return sh.need.WasteOf(on.node(s.at), ranks)
		}
		key := wasteKey{s.class.id, ranks}
		w, known := sh.wastes[key]
		if !known {
			w = sh.need.WasteOf(s.class.node, ranks)
			w.Price = f.packer.price(sh.need, s.class, ranks)
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
		return f.near(tree, l, choices, l.choose(slices.Clone(choices), t, m, wasteOf), switches, wasteOf)
	}
	return l.choose(choices, t, m, wasteOf)
}

// look lists where ranks fit: class by class, or node by node when names matter. A node that
// was taken apart from its class is a choice of its own.
func (f *finder) look(sh *askClass, l *nodeView, avoid []string) []nodeChoice {
	f.choices = f.choices[:0]
	for _, k := range l.live {
		if k.closed || !k.carded && sh.need.WantsCards() {
			continue
		}
		list := l.members(k)
		if list.count == 0 {
			continue
		}
		ranks := sh.ranksOn(k)
		if ranks == 0 {
			continue
		}
		like := *list
		if sh.named || len(avoid) > 0 || l.closed != nil {
			like = f.without(sh, l, list, avoid)
		}
		if like.count > 0 {
			f.choices = append(f.choices, nodeChoice{at: like.first(), like: like, class: k, ranks: ranks})
		}
	}
	return f.choices
}

func (f *finder) without(sh *askClass, l *nodeView, list *nodeList, avoid []string) nodeList {
	var out []int32
	for at := range list.each() {
		if name := l.node(at).Name; sh.need.Named(name) && !slices.Contains(avoid, name) && (l.closed == nil || !l.closed[at]) {
			out = append(out, int32(at))
		}
	}
	return listOf(out)
}

func (f *finder) tallyOf(choices []nodeChoice) *tally {
	f.tally.reset()
	for i := range choices {
		f.tally.addAll(choices[i].ranks, choices[i].count())
	}
	return &f.tally
}

// slotsBelow is where a gang without roles fits below so many switches, 0: any number; nil: nowhere.
func (f *finder) slotsBelow(sh *askClass, l *nodeView, avoid []string, switches int) []cluster.Slot {
	if sh.alternatives != nil {
		return f.slotsOfAlternatives(sh, l, avoid, switches)
	}
	members := f.place(sh, l, avoid, switches)
	if members == nil {
		return nil
	}
	return pick(sh.need, l, members)
}

func pick(d *cluster.Need, on *nodeView, members []member) []cluster.Slot {
	slots := make([]cluster.Slot, 0, d.Size)
	for _, m := range members {
		slots = append(slots, d.Pick(on.node(m.at), m.ranks)...)
	}
	return slots
}
