package fit

import (
	"cmp"
	"slices"

	"gangd/pkg/core/cluster"
)

// A gang that counts its nodes ("[rack1*2&rack2*4]") has m members of which n1 are on nodes
// of the first class, n2 on others of the second, the rest anywhere. The sets of nodes that
// can be dealt to such places, one to each, are the independent sets of a matroid (a
// transversal one), so that taking the roomiest node that still can be dealt, again and
// again, gives the m nodes with the most room of all: the look is as exact as layout's, and
// with the least m that holds the gang. Whether a set can be dealt is Hall's condition over
// the subsets of the counts, of which there are few.

// alike is nodes that are alike to a counted gang: what they count for, and their room.
type alike struct {
	marks uint
	ranks int
	nodes int
}

// deal is places of counts, and the rest, being dealt to nodes.
type deal struct {
	wants []int // by count
	any   int   // places for any node
	taken []int // nodes dealt, by marks
	n     int   // of these
	ranks int   // room on them
	full  int   // of these, how many hold a full member, where members are given
}

func newDeal(counts []cluster.Count, members int) *deal {
	d := &deal{wants: make([]int, len(counts)), any: members, taken: make([]int, 1<<len(counts))}
	for i, c := range counts {
		d.wants[i] = c.Nodes
		d.any -= c.Nodes
	}
	return d
}

func (d *deal) clone() *deal {
	c := *d
	c.taken = slices.Clone(d.taken)
	return &c
}

// spare is how many more nodes with these marks could be dealt. By König it is, over all
// subsets of the counts, the least of what the subset's nodes leave of the places that are
// not only the subset's.
func (d *deal) spare(marks uint) int {
	least := -1
	for set := range uint(1 << len(d.wants)) {
		if marks&^set != 0 {
			continue // these nodes have places outside of the set too
		}
		// Nodes all of whose counts are in set share its places and those for any.
		room := d.any
		for i, n := range d.wants {
			if set&(1<<i) != 0 {
				room += n
			}
		}
		for m, n := range d.taken {
			if uint(m)&^set == 0 {
				room -= n
			}
		}
		if least < 0 || room < least {
			least = room
		}
	}
	return max(0, least)
}

func (d *deal) take(p *alike, n, perNode int) {
	d.taken[p.marks] += n
	d.n += n
	d.ranks += n * p.ranks
	if p.ranks >= perNode {
		d.full += n
	}
}

// finish deals the roomiest nodes of the pools, which are in falling order of room, as far
// as it goes.
func (d *deal) finish(pools []alike, perNode int) {
	for i := range pools {
		if n := min(pools[i].nodes, d.spare(pools[i].marks)); n > 0 {
			d.take(&pools[i], n, perNode)
		}
	}
}

// holds reports whether the gang fits on the nodes that were dealt, all places taken.
func (d *deal) holds(l Layout) bool {
	return d.n > 0 && d.any >= 0 && d.n == d.places() && d.ranks >= l.size && (l.perNode == 0 || d.full >= l.size/l.perNode)
}

func (d *deal) places() int {
	sum := d.any
	for _, n := range d.wants {
		sum += n
	}
	return sum
}

// Counted is the look for a gang that counts its nodes.
type Counted struct {
	Layout
	need    *cluster.Need
	choices []Choice
	marks   []uint // by choice
	pools   []alike
}

// NewCounted takes what look found; node gives the node of an index.
func NewCounted(d *cluster.Need, choices []Choice, node func(at int) *cluster.Node) *Counted {
	c := &Counted{Layout: LayoutOf(d), need: d, choices: choices}
	by := Marked{}
	for i := range choices {
		marks := d.Marks(node(choices[i].At))
		c.marks = append(c.marks, marks)
		by.Add(marks, choices[i].Ranks, choices[i].Count())
	}
	c.pools = by.pools(c.Layout)
	return c
}

// Marked is a tally of nodes by what they count for and how many ranks they hold.
type Marked map[alike]int

// Add counts n nodes that hold so many ranks, or takes them out again when n is negative.
func (by Marked) Add(marks uint, ranks, n int) {
	if ranks > 0 {
		by[alike{marks: marks, ranks: ranks}] += n
	}
}

// pools lists those that a member of the gang can be on, most room first.
func (by Marked) pools(l Layout) []alike {
	least := 1
	if l.perNode > 0 {
		if least = l.size % l.perNode; least == 0 {
			least = l.perNode
		}
	}
	var out []alike
	for k, n := range by {
		if k.nodes = n; n > 0 && k.ranks >= least {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b alike) int { return cmp.Or(cmp.Compare(b.ranks, a.ranks), cmp.Compare(a.marks, b.marks)) })
	return out
}

// Holds reports whether the gang fits on the nodes counted.
func (by Marked) Holds(d *cluster.Need, l Layout) bool {
	return (&Counted{Layout: l, need: d, pools: by.pools(l)}).Members() > 0
}

// Members is the least number of members that the gang can have, 0 when it does not fit.
func (c *Counted) Members() int {
	low, high := c.lo, min(c.hi, c.size)
	sum := 0
	for _, n := range c.need.Counts {
		sum += n.Nodes
	}
	low = max(low, sum)
	if c.perNode > 0 {
		m := (c.size + c.perNode - 1) / c.perNode
		low, high = max(low, m), min(high, m)
	}
	// More members hold more ranks, as long as there are nodes for them.
	for top := high; low < top; {
		mid := (low + top) / 2
		d := newDeal(c.need.Counts, mid)
		if d.finish(c.pools, c.perNode); d.n < mid || d.ranks >= c.size {
			top = mid
		} else {
			low = mid + 1
		}
	}
	if low > high {
		return 0
	}
	d := newDeal(c.need.Counts, low)
	if d.finish(c.pools, c.perNode); !d.holds(c.Layout) {
		return 0
	}
	return low
}

// Choose takes m members, as [layout.Choose]: of the nodes that cost least as many as leave
// the rest of the gang a place.
func (c *Counted) Choose(m int, wasteOf wasteFunc) []Member {
	share := (c.size + m - 1) / m
	if c.perNode > 0 {
		share = c.perNode
	}
	order := make([]int, len(c.choices))
	for i := range order {
		order[i] = i
		c.choices[i].waste = wasteOf(c.choices[i], min(share, c.choices[i].Ranks))
	}
	slices.SortFunc(order, func(a, b int) int { return byWaste(c.choices[a], c.choices[b]) })
	d := newDeal(c.need.Counts, m)
	var chosen []Choice
	for _, i := range order {
		s := &c.choices[i]
		at := slices.IndexFunc(c.pools, func(p alike) bool { return p.marks == c.marks[i] && p.ranks == s.Ranks })
		if at < 0 {
			continue
		}
		n := c.most(d, at, min(s.Count(), d.spare(c.marks[i])))
		d.take(&c.pools[at], n, c.perNode)
		c.pools[at].nodes -= s.Count()
		for _, one := range apart([]Choice{*s}, n) {
			chosen = append(chosen, Choice{At: one.At, Ranks: one.Ranks, waste: one.waste})
		}
	}
	return c.dealRanks(chosen)
}

// most is how many nodes of a pool, at most so many, may be taken.
func (c *Counted) most(d *deal, at, most int) int {
	fits := func(n int) bool {
		try := d.clone()
		try.take(&c.pools[at], n, c.perNode)
		c.pools[at].nodes -= n
		try.finish(c.pools, c.perNode)
		c.pools[at].nodes += n
		return try.holds(c.Layout)
	}
	low := 0
	for low < most {
		if mid := (low + most + 1) / 2; fits(mid) {
			low = mid
		} else {
			most = mid - 1
		}
	}
	return low
}

// dealRanks deals the ranks to the nodes chosen.
func (c *Counted) dealRanks(chosen []Choice) []Member {
	if c.even && c.perNode == 0 {
		return c.level(chosen)
	}
	slices.SortStableFunc(chosen, func(a, b Choice) int { return cmp.Or(cmp.Compare(b.Ranks, a.Ranks), byWaste(a, b)) })
	out, left := make([]Member, len(chosen)), c.size
	for i, s := range chosen {
		k := min(s.Ranks, left-(len(chosen)-1-i)) // each of the others has one
		if c.perNode > 0 {
			k = min(c.perNode, left)
		}
		out[i] = Member{s.At, k}
		left -= k
	}
	if c.perNode > 0 && c.size%c.perNode > 0 {
		last := out[len(out)-1] // the short member is the last one
		return append(byName(out[:len(out)-1]), last)
	}
	return byName(out)
}
