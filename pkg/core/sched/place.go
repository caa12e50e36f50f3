package sched

import (
	"math"
	"slices"

	"gangd/pkg/core/cluster"
)

// place finds members for a gang, nil when it does not fit. Nodes that just failed it
// are used only when nothing else does.
// switches is below how many it has to be, 0: any number.
func (pl *planner) place(sh *askClass, on *nodeView, avoid []string, switches int) []member {
	choices := pl.look(sh, on, avoid)
	l := layoutOf(sh.need)
	t := pl.tallyOf(choices)
	m := l.members(t)
	var c *countedLayout
	if m > 0 && sh.need.Counts != nil {
		c = newCounted(sh.need, choices, func(at int) *cluster.Node { return on.node(at) })
		m = c.members()
	}
	if m == 0 {
		if len(avoid) > 0 {
			return pl.place(sh, on, nil, switches)
		}
		return nil
	}
	if sh.mix != pl.packer.Turn {
		sh.mix = pl.packer.Turn
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
			w.Price = pl.packer.price(sh.need, s.class, ranks)
			sh.wastes[key] = w
		}
		if len(pl.packer.Asks) > 0 && len(s.class.node.Grants) == 0 {
			w.Price += scarcity(on.members(s.class).count)
		}
		return w
	}
	if c != nil {
		return pl.chooseCounted(c, m, switches, wasteOf)
	}
	if tree := pl.topology(); tree != nil {
		choices = slices.Clone(choices)
		return pl.near(tree, l, choices, l.choose(slices.Clone(choices), t, m, wasteOf), switches, wasteOf)
	}
	return l.choose(choices, t, m, wasteOf)
}

// look lists where ranks fit: class by class, or node by node when names matter. A node that
// was taken apart from its class is a choice of its own.
func (pl *planner) look(sh *askClass, l *nodeView, avoid []string) []nodeChoice {
	pl.choices = pl.choices[:0]
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
			like = pl.without(sh, l, list, avoid)
		}
		if like.count > 0 {
			pl.choices = append(pl.choices, nodeChoice{at: like.first(), like: like, class: k, ranks: ranks})
		}
	}
	return pl.choices
}

func (pl *planner) without(sh *askClass, l *nodeView, list *nodeList, avoid []string) nodeList {
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

func (pl *planner) tallyOf(choices []nodeChoice) *tally {
	pl.tally.reset()
	for i := range choices {
		pl.tally.addAll(choices[i].ranks, choices[i].count())
	}
	return &pl.tally
}
