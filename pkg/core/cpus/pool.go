package cpus

import (
	"cmp"
	"slices"
)

// Ask is what one rank needs.
type Ask struct {
	CPUs int
	// Near are the NUMA nodes of its cards; none: it has no card, and keeps away from those of others.
	Near []int
	// OneThread: of each core one thread, as long as there are cores enough.
	OneThread bool
}

// Pool is the CPUs of a topology and who holds them. K names a holder.
type Pool[K comparable] struct {
	topo  *Topology
	cards map[int]int // by NUMA node, how many are there
	held  map[K]Set
}

// NewPool is a pool of which nothing is held. cards are the NUMA nodes of the machine's cards, one
// entry for each.
func NewPool[K comparable](t *Topology, cards []int) *Pool[K] {
	p := &Pool[K]{topo: t, cards: map[int]int{}, held: map[K]Set{}}
	for _, n := range cards {
		p.cards[n]++
	}
	return p
}

// Keep counts CPUs as held, whoever else holds them: they were given by a pool before this one.
func (p *Pool[K]) Keep(k K, s Set) {
	if len(s) > 0 {
		p.held[k] = p.held[k].Or(s)
	}
}

// Give takes back what k holds.
func (p *Pool[K]) Give(k K) { delete(p.held, k) }

// Held is what k holds.
func (p *Pool[K]) Held(k K) Set { return p.held[k] }

// Free is what nobody holds.
func (p *Pool[K]) Free() Set {
	var taken []int
	for _, s := range p.held {
		taken = append(taken, s...)
	}
	used := Of(taken...)
	return slices.DeleteFunc(p.topo.All(), used.Has)
}

// Take gives k CPUs for each of its asks, in their order; false: there are not enough, and nothing
// has changed. What k held before it keeps.
func (p *Pool[K]) Take(k K, asks []Ask) ([]Set, bool) {
	total := 0
	for _, a := range asks {
		total += a.CPUs
	}
	free := p.Free()
	if total > len(free) {
		return nil, false
	}
	c := choice{topo: p.topo, cards: p.cards, free: free, rest: total, used: map[int]bool{}}
	out := make([]Set, len(asks))
	for i := range asks {
		out[i] = c.rank(&asks[i])
		p.Keep(k, out[i])
	}
	return out, true
}

// choice is one Take under way.
type choice struct {
	topo  *Topology
	cards map[int]int
	free  Set
	rest  int          // CPUs that ranks still need
	used  map[int]bool // NUMA nodes of ranks before
}

// rank chooses for one rank: by NUMA node, whole cores first.
func (c *choice) rank(a *Ask) Set {
	var got Set
	for _, numa := range c.order(a) {
		if want := a.CPUs - len(got); want > 0 {
			got = got.Or(c.at(numa, want, a.OneThread))
		}
	}
	if want := a.CPUs - len(got); want > 0 { // one thread of each core was not enough
		for _, numa := range c.order(a) {
			got = got.Or(c.at(numa, a.CPUs-len(got), false))
		}
	}
	c.rest -= a.CPUs
	for _, numa := range c.topo.NUMA(got) {
		c.used[numa] = true
	}
	return got
}

// domain is a NUMA node as a rank sees it.
type domain struct {
	numa     int
	distance int  // to the nearest of the rank's cards, 0: it has none
	whole    bool // it has room for all that is needed
	used     bool // by ranks of the same member
	cards    int  // of the node, which somebody without cards keeps away from
	free     int
}

// order is the NUMA nodes, best first. Near cards count most. Who has none goes where all of the
// member fits, else where the rank does: to the fewest cards, and of those where the least is left over.
func (c *choice) order(a *Ask) []int {
	free := map[int]int{}
	for _, cpu := range c.topo.CPUs {
		if c.free.Has(cpu.ID) {
			free[cpu.NUMA]++
		}
	}
	roomy := false // a NUMA node has room for the whole rest of the member
	for _, n := range free {
		roomy = roomy || n >= c.rest
	}
	var list []domain
	for numa, n := range free {
		d := domain{numa: numa, used: c.used[numa], free: n, cards: c.cards[numa]}
		need := a.CPUs
		if len(a.Near) == 0 && roomy {
			need = c.rest
		}
		d.whole = n >= need
		if len(a.Near) > 0 {
			d.cards, d.distance = 0, c.topo.distance(a.Near[0], numa)
			for _, near := range a.Near[1:] {
				d.distance = min(d.distance, c.topo.distance(near, numa))
			}
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(x, y domain) int {
		return cmp.Or(cmp.Compare(x.distance, y.distance), trueFirst(x.whole, y.whole), trueFirst(x.used, y.used), cmp.Compare(x.cards, y.cards),
			tighter(x, y), cmp.Compare(x.numa, y.numa))
	})
	out := make([]int, len(list))
	for i, d := range list {
		out[i] = d.numa
	}
	return out
}

func trueFirst(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// tighter prefers, of those that have room, the one with less of it, and of those that have not the
// one with more: fewer are needed then.
func tighter(x, y domain) int {
	if x.whole {
		return cmp.Compare(x.free, y.free)
	}
	return cmp.Compare(y.free, x.free)
}

// at takes at most want CPUs of one NUMA node: whole free cores as far as they are filled; a rest,
// which fills none, of a core of its own, else of what others have left over.
func (c *choice) at(numa, want int, oneThread bool) (got Set) {
	all := c.topo.At(numa)
	size := map[int]int{} // of the core of a CPU: its threads
	for _, core := range c.topo.Cores(all) {
		for _, id := range core {
			size[id] = len(core)
		}
	}
	take := func(ids Set) {
		got = got.Or(ids)
		c.free = slices.DeleteFunc(slices.Clone(c.free), ids.Has)
		want -= len(ids)
	}
	var whole, broken []Set
	for _, core := range c.topo.Cores(all.And(c.free)) {
		if len(core) == size[core[0]] {
			whole = append(whole, core)
		} else {
			broken = append(broken, core)
		}
	}
	if oneThread {
		for _, core := range append(whole, broken...) {
			if want > 0 {
				take(core[:1])
			}
		}
		return got
	}
	rest := whole[:0:0]
	for _, core := range whole {
		if len(core) <= want {
			take(core)
		} else {
			rest = append(rest, core)
		}
	}
	for _, core := range append(rest, broken...) {
		if n := min(want, len(core)); n > 0 {
			take(core[:n])
		}
	}
	return got
}
