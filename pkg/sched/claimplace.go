package sched

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// findClaim chooses places over the whole of the ready nodes, those that need the least
// further freeing: for when it is not known when what runs will end.
func (pl *planner) findClaim(sh *shape, avoid []string) []cluster.Slot {
	d := sh.need
	if sh.ways != nil {
		return pl.findClaimOfWays(sh, avoid)
	}
	if d.Packed() {
		return pl.claimMixed(d, avoid)
	}
	spots := pl.spotsEmpty(sh, avoid)
	l := layoutOf(d)
	if l.members(pl.tallyOf(spots)) == 0 {
		if len(avoid) > 0 {
			return pl.findClaim(sh, nil)
		}
		return nil
	}
	var slots []cluster.Slot
	for _, m := range l.chooseClaim(spots) {
		slots = append(slots, pl.claimOn(d, m)...)
	}
	return slots
}

// groups are nodes that are alike to a claim, with memory for their lists.
type groups struct {
	spots []spot
	lists [][]int32
	from  []int          // how many lists each was put together from
	by    map[[3]int]int // index of a group by ranks, now and free
}

func (gs *groups) reset() {
	clear(gs.by)
	gs.spots, gs.from = gs.spots[:0], gs.from[:0]
}

// add puts n nodes into their group, of which at are the first.
func (gs *groups) add(at []int32, n, ranks, now, free int) {
	if gs.by == nil {
		gs.by = map[[3]int]int{}
	}
	k := [3]int{ranks, now, free}
	i, known := gs.by[k]
	if !known {
		i = len(gs.spots)
		gs.by[k] = i
		gs.spots, gs.from = append(gs.spots, spot{ranks: ranks, now: now, free: free}), append(gs.from, 0)
		if len(gs.lists) == i {
			gs.lists = append(gs.lists, nil)
		}
		gs.lists[i] = gs.lists[i][:0]
	}
	gs.lists[i] = append(gs.lists[i], at...)
	gs.spots[i].like.count += n
	gs.from[i]++
}

// made is the groups, each with its nodes in order.
func (gs *groups) made() []spot {
	for i := range gs.spots {
		if gs.from[i] > 1 {
			slices.Sort(gs.lists[i])
		}
		gs.spots[i].at, gs.spots[i].like.runs = int(gs.lists[i][0]), [][]int32{gs.lists[i]}
	}
	return gs.spots
}

// spotsEmpty lists where a claim may be: all ready nodes but for the claims made so far. Of
// ten thousand nodes only those are looked at that claims or starts of this plan are on, and
// the others pair by pair. Of a group no more nodes are listed than a gang can use: each is
// chosen for its room or its name, and there are at most as many as it may have members, and
// as many that these are exchanged for.
func (pl *planner) spotsEmpty(sh *shape, avoid []string) []spot {
	d, top, rs, gs := sh.need, pl.top(), &pl.mem.rooms, &pl.mem.groups
	list := pl.mem.pairsNow()
	pl.openRooms()
	gs.reset()
	allows := func(at int32) bool {
		name := top.node(int(at)).Name
		return !slices.Contains(avoid, name) && d.Named(name)
	}
	for _, i := range pl.touched {
		at := int32(i)
		n := pl.levels[0].node(i)
		if !n.Ready || !allows(at) || !d.Admits(n) {
			continue
		}
		if total := rs.at(i).Ranks(d); total > 0 {
			k := top.kind(i)
			gs.add([]int32{at}, 1, total, min(total, sh.ranksOn(k)), sh.freeOn(k))
		}
	}
	most, picky := 2*layoutOf(d).hi, sh.named || len(avoid) > 0
	for _, p := range list {
		total := sh.ranksOn(p.empty)
		if total == 0 {
			continue
		}
		some, n := pl.some[:0], len(p.nodes)-p.apart
		if picky {
			n = 0
		}
		for _, at := range p.nodes {
			if rs.at(int(at)) != nil || picky && !allows(at) {
				continue
			}
			if picky {
				n++
			}
			if len(some) < most {
				some = append(some, at)
			} else if !picky {
				break
			}
		}
		if pl.some = some; n > 0 {
			gs.add(some, n, total, min(total, sh.ranksOn(p.kind)), sh.freeOn(p.kind))
		}
	}
	pl.closeRooms()
	return gs.made()
}

// openRooms makes a room, with the claims made so far on it, of each node that claims or
// starts of this plan are on, and lists these nodes.
func (pl *planner) openRooms() {
	rs, of := &pl.mem.rooms, pl.mem.pairs.of
	rs.begin(len(of))
	pl.touched = pl.touched[:0]
	open := func(at int) *cluster.Room {
		if r := rs.at(at); r != nil {
			return r
		}
		n := pl.levels[0].node(at)
		r := rs.open(at, n)
		r.OfEmptied(n)
		pl.touched = append(pl.touched, at)
		if of[at] != nil {
			of[at].apart++
		}
		return r
	}
	for i := range pl.started {
		open(pl.started[i].at)
	}
	for i := range pl.booked {
		for j := range pl.booked[i].grants {
			g := &pl.booked[i].grants[j]
			open(g.at).Restore(&g.Grant)
		}
	}
}

// closeRooms takes back what openRooms noted of pairs.
func (pl *planner) closeRooms() {
	for _, at := range pl.touched {
		if p := pl.mem.pairs.of[at]; p != nil {
			p.apart = 0
		}
	}
}

// emptied is the kind of a ready node with nothing on it.
func (m *Planner) emptied(at int, n *cluster.Node) *kind {
	if m.empty[at] == nil {
		m.empty[at] = m.kinds.emptied(n)
	}
	return m.empty[at]
}

// chooseClaim takes the spots with most room free already until they hold the gang. When
// that is more members than allowed, the ones with least room in all are exchanged for
// the largest others.
func (l layout) chooseClaim(spots []spot) []member {
	if l.perNode > 0 {
		return l.claimFixed(spots)
	}
	slices.SortFunc(spots, func(a, b spot) int {
		return cmp.Or(cmp.Compare(b.now, a.now), cmp.Compare(b.free, a.free), cmp.Compare(b.ranks, a.ranks), cmp.Compare(a.at, b.at))
	})
	var chosen []spot
	sum := 0
	for _, s := range apart(spots, l.hi) {
		if sum >= l.size && len(chosen) >= l.lo {
			break
		}
		chosen = append(chosen, s)
		sum += s.ranks
	}
	slices.SortStableFunc(chosen, byRanks)
	if sum < l.size {
		rest := apart(spots, math.MaxInt)[len(chosen):]
		slices.SortStableFunc(rest, byRanks)
		for i := len(chosen) - 1; sum < l.size; i-- {
			next := rest[len(chosen)-1-i]
			sum += next.ranks - chosen[i].ranks
			chosen[i] = next
		}
	}
	return l.dealClaim(chosen)
}

// dealClaim gives each spot a rank, then what is free there, then the rest.
func (l layout) dealClaim(spots []spot) []member {
	out := make([]member, len(spots))
	left := l.size
	for pass := range 3 {
		for i, s := range spots {
			limit := [...]int{1, s.now, s.ranks}[pass]
			k := min(left, max(0, limit-out[i].ranks))
			out[i] = member{s.at, out[i].ranks + k}
			left -= k
		}
	}
	return byName(out)
}

func (l layout) claimFixed(spots []spot) []member {
	freeFirst := func(k int) func(a, b spot) int {
		return func(a, b spot) int {
			return cmp.Or(cmp.Compare(min(k, b.now), min(k, a.now)), cmp.Compare(b.free, a.free), cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.at, b.at))
		}
	}
	var out []member
	spots = apart(spots, math.MaxInt)
	for left := l.size; left > 0; {
		k := min(l.perNode, left)
		fit := slices.DeleteFunc(slices.Clone(spots), func(s spot) bool { return s.ranks < k || holds(out, s.at) })
		slices.SortFunc(fit, freeFirst(k))
		n := max(1, left/l.perNode)
		for _, s := range fit[:n] {
			out = append(out, member{s.at, k})
			left -= k
		}
	}
	return out
}

// claimOn picks the cards of one member: those free now first, then such as must be
// waited for.
func (pl *planner) claimOn(d *cluster.Need, m member) []cluster.Slot {
	here, empty := pl.top().node(m.at), pl.cleared(m.at)
	now := min(m.ranks, d.Ranks(here))
	if now == m.ranks {
		return d.Pick(here, now)
	}
	if now == 0 || d.NodeCards > 0 {
		return d.Pick(empty, m.ranks)
	}
	slots := d.Pick(here, now)
	taken := cluster.GrantFor(d.Ask, api.MemberKey{Epoch: epochClaim}, slots, time.Time{})
	for i := range taken.Cards {
		taken.Cards[i].Exclusive = true // not twice for the same gang
	}
	return append(slots, d.Pick(empty.Restore(taken), m.ranks-now)...)
}
