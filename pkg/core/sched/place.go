package sched

import (
	"math"
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

// ranksOn is how many ranks fit on a node of a class, wherever the ask's lists of names
// allow it.
func (sh *askClass) ranksOn(k *nodeClass) int {
	sh.ranks = reach(sh.ranks, k.id)
	if known := sh.ranks[k.id]; known > 0 {
		return int(known) - 1
	}
	ranks := sh.need.Ranks(k.node)
	if ranks > 0 && !(sh.need.InPartition(k.node) && sh.need.HasFeatures(k.node)) {
		ranks = 0
	}
	if ranks < math.MaxInt16 {
		sh.ranks[k.id] = int16(ranks + 1)
	}
	return ranks
}

// freeOn is what is free for the ask on a node of a class: see [cluster.Need.Free].
func (sh *askClass) freeOn(k *nodeClass) int {
	sh.frees = reach(sh.frees, k.id)
	if sh.frees[k.id] == 0 {
		sh.frees[k.id] = int32(min(math.MaxInt32-1, sh.need.Free(k.node))) + 1
	}
	return int(sh.frees[k.id]) - 1
}

// reach makes a list of figures by class long enough for one.
func reach[T any](list []T, id int) []T {
	if id >= len(list) {
		list = append(list, make([]T, id+1-len(list)+len(list)/4)...)
	}
	return list
}

func (f *finder) tallyOf(choices []nodeChoice) *tally {
	f.tally.reset()
	for i := range choices {
		f.tally.addAll(choices[i].ranks, choices[i].count())
	}
	return &f.tally
}
