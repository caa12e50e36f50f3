package sched

import (
	"math"
	"slices"

	"gangd/pkg/cluster"
)

// place finds members for a gang, nil when it does not fit. Nodes that just failed it
// are used only when nothing else does.
// switches is below how many it has to be, 0: any number.
func (pl *planner) place(sh *shape, on *level, avoid []string, switches int) []member {
	spots := pl.look(sh, on, avoid)
	l := layoutOf(sh.need)
	t := pl.tallyOf(spots)
	m := l.members(t)
	var c *counted
	if m > 0 && sh.need.Counts != nil {
		c = newCounted(sh.need, spots, func(at int) *cluster.Node { return on.node(at) })
		m = c.members()
	}
	if m == 0 {
		if len(avoid) > 0 {
			return pl.place(sh, on, nil, switches)
		}
		return nil
	}
	if sh.mix != pl.mix.turn {
		sh.mix = pl.mix.turn
		clear(sh.wastes)
	}
	wasteOf := func(s spot, ranks int) cluster.Waste {
		if s.kind == nil {
			return sh.need.WasteOf(on.node(s.at), ranks)
		}
		key := wasteKey{s.kind.id, ranks}
		w, known := sh.wastes[key]
		if !known {
			w = sh.need.WasteOf(s.kind.node, ranks)
			w.Price = pl.mix.price(sh.need, s.kind, ranks)
			sh.wastes[key] = w
		}
		if len(pl.mix.asks) > 0 && len(s.kind.node.Grants) == 0 {
			w.Price += scarcity(on.members(s.kind).count)
		}
		return w
	}
	if c != nil {
		return pl.chooseCounted(c, m, switches, wasteOf)
	}
	if tree := pl.topology(); tree != nil {
		spots = slices.Clone(spots)
		return pl.near(tree, l, spots, l.choose(slices.Clone(spots), t, m, wasteOf), switches, wasteOf)
	}
	return l.choose(spots, t, m, wasteOf)
}

// look lists where ranks fit: kind by kind, or node by node when names matter. A node that
// was taken apart from its kind is a spot of its own.
func (pl *planner) look(sh *shape, l *level, avoid []string) []spot {
	pl.spots = pl.spots[:0]
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
		if sh.named || len(avoid) > 0 || l.shut != nil {
			like = pl.without(sh, l, list, avoid)
		}
		if like.count > 0 {
			pl.spots = append(pl.spots, spot{at: like.first(), like: like, kind: k, ranks: ranks})
		}
	}
	return pl.spots
}

func (pl *planner) without(sh *shape, l *level, list *nodeList, avoid []string) nodeList {
	var out []int32
	for at := range list.each() {
		if name := l.node(at).Name; sh.need.Named(name) && !slices.Contains(avoid, name) && (l.shut == nil || !l.shut[at]) {
			out = append(out, int32(at))
		}
	}
	return listOf(out)
}

// ranksOn is how many ranks fit on a node of a kind, wherever the ask's lists of names
// allow it.
func (sh *shape) ranksOn(k *kind) int {
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

// freeOn is what is free for the ask on a node of a kind: see [cluster.Need.Free].
func (sh *shape) freeOn(k *kind) int {
	sh.frees = reach(sh.frees, k.id)
	if sh.frees[k.id] == 0 {
		sh.frees[k.id] = int32(min(math.MaxInt32-1, sh.need.Free(k.node))) + 1
	}
	return int(sh.frees[k.id]) - 1
}

// reach makes a list of figures by kind long enough for one.
func reach[T any](list []T, id int) []T {
	if id >= len(list) {
		list = append(list, make([]T, id+1-len(list)+len(list)/4)...)
	}
	return list
}

func (pl *planner) tallyOf(spots []spot) *tally {
	pl.tally.reset()
	for i := range spots {
		pl.tally.addAll(spots[i].ranks, spots[i].count())
	}
	return &pl.tally
}
