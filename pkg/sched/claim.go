package sched

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// Epochs under which a plan books what does not exist yet. Real epochs count from 1.
const (
	epochClaim = -1
	epochStart = -2
)

// claim keeps lower gangs off the places that c waits for. It reports false when no
// ready nodes, however empty, would hold it: waiting for those would hold others up for
// nothing.
func (pl *planner) claim(c *Candidate, sh *shape) bool {
	if sh.unclaimable {
		return false
	}
	slots := pl.kept(c, sh.need)
	if slots == nil {
		slots = pl.findClaim(sh.need, c.Avoid)
	}
	if slots == nil {
		sh.unclaimable = true // claims only add up within a plan
		return false
	}
	pl.claims = append(pl.claims, Claim{Job: c.Job, Slots: slots})
	if pl.shadow == nil {
		pl.shadow = slices.Clone(pl.real)
	}
	for _, g := range pl.grants(c, slots, epochClaim, time.Time{}) {
		pl.empty[g.at] = pl.emptied(g.at).Restore(g.Grant)
		pl.shadow[g.at] = pl.shadow[g.at].Restore(g.Grant)
	}
	return true
}

// kept is the claim that c had in the plan before, when its places are still there.
func (pl *planner) kept(c *Candidate, d *cluster.Need) []cluster.Slot {
	i := slices.IndexFunc(pl.view.Claims, func(k Claim) bool { return k.Job == c.Job })
	if i < 0 || len(pl.view.Claims[i].Slots) != d.Size {
		return nil
	}
	slots := pl.view.Claims[i].Slots
	if !pl.admitsAll(d, slots) {
		return nil
	}
	for _, g := range pl.grants(c, slots, epochClaim, time.Time{}) {
		if _, err := pl.emptied(g.at).Take(g.Grant); err != nil {
			return nil
		}
	}
	return slots
}

// carry keeps the claims of gangs that a bounded plan did not come to: made anew in the
// next one they could stand elsewhere.
func (pl *planner) carry(rest []*Candidate) {
	for _, old := range pl.view.Claims {
		if len(pl.claims) < pl.limit && slices.ContainsFunc(rest, func(c *Candidate) bool { return c.Job == old.Job }) {
			pl.claims = append(pl.claims, old)
		}
	}
}

// emptied is a node with nothing on it but the claims made so far.
func (pl *planner) emptied(at int) *cluster.Node {
	if n := pl.empty[at]; n != nil {
		return n
	}
	return pl.real[at].Emptied()
}

// findClaim chooses places over the whole of the ready nodes, those that need the least
// further freeing.
func (pl *planner) findClaim(d *cluster.Need, avoid []string) []cluster.Slot {
	if d.Parts != nil {
		return pl.claimMixed(d, avoid)
	}
	spots := pl.spotsEmpty(d, avoid)
	l := layoutOf(d)
	if l.members(pl.tallyOf(spots)) == 0 {
		if len(avoid) > 0 {
			return pl.findClaim(d, nil)
		}
		return nil
	}
	var slots []cluster.Slot
	for _, m := range l.chooseClaim(spots) {
		slots = append(slots, pl.claimOn(d, m)...)
	}
	return slots
}

func (pl *planner) spotsEmpty(d *cluster.Need, avoid []string) []spot {
	var spots []spot
	for at, n := range pl.real {
		if !n.Ready || slices.Contains(avoid, n.Name) {
			continue
		}
		if total := pl.ranksEmpty(d, at); total > 0 && d.Admits(n) {
			spots = append(spots, spot{at: at, ranks: total, now: min(total, d.Ranks(pl.current()[at])),
				free: d.Free(pl.current()[at])})
		}
	}
	return spots
}

func (pl *planner) ranksEmpty(d *cluster.Need, at int) int {
	if n := pl.empty[at]; n != nil {
		return d.Ranks(n)
	}
	return d.RanksEmpty(pl.real[at])
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
	n, sum := 0, 0
	for n < len(spots) && n < l.hi && (sum < l.size || n < l.lo) {
		sum += spots[n].ranks
		n++
	}
	chosen, rest := spots[:n], slices.Clone(spots[n:])
	slices.SortStableFunc(chosen, byRanks)
	slices.SortStableFunc(rest, byRanks)
	for i := n - 1; sum < l.size; i-- {
		next := rest[n-1-i]
		sum += next.ranks - chosen[i].ranks
		chosen[i] = next
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
	here, empty := pl.current()[m.at], pl.emptied(m.at)
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
