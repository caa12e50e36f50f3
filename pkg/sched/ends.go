package sched

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// overdue is how soon something is expected to end that should have ended by now.
const overdue = time.Minute

// ending is a grant and when it ends at the latest.
type ending struct {
	at  int
	t   time.Time
	key api.MemberKey
}

// endOf is when a grant ends at the latest; zero: not known. A gang that is being stopped
// ends sooner than its time limit says, and also without one.
func (pl *planner) endOf(g *cluster.Grant) time.Time {
	t := g.Until
	if by, stopping := pl.stopping()[g.Job]; stopping && (t.IsZero() || by.Before(t)) {
		t = by
	}
	if !t.IsZero() && t.Before(pl.now) {
		t = pl.now.Add(overdue)
	}
	return t
}

// stopping is until when the gangs that are being stopped have ended.
func (pl *planner) stopping() map[int64]time.Time {
	if pl.stopBy == nil {
		pl.stopBy = make(map[int64]time.Time)
		for _, r := range pl.view.Running {
			if r.Stopping {
				pl.stopBy[r.Job] = r.StopBy
			}
		}
	}
	return pl.stopBy
}

// byEnd is everything on the ready nodes whose end is known, the first to end first.
func (pl *planner) byEnd() []ending {
	if pl.ends != nil && pl.endsAt == len(pl.starts) {
		return pl.ends
	}
	pl.ends, pl.endsAt = pl.ends[:0], len(pl.starts)
	for at, n := range pl.levels[0].nodes {
		if !n.Ready {
			continue
		}
		for i := range n.Grants {
			if t := pl.endOf(&n.Grants[i]); !t.IsZero() {
				pl.ends = append(pl.ends, ending{at, t, n.Grants[i].MemberKey})
			}
		}
	}
	slices.SortFunc(pl.ends, func(a, b ending) int {
		return cmp.Or(a.t.Compare(b.t), cmp.Compare(a.at, b.at), cmp.Compare(a.key.Job, b.key.Job), cmp.Compare(a.key.Epoch, b.key.Epoch))
	})
	return pl.ends
}

// earliest finds where a gang can start soonest by the known ends of what is there, beside
// the claims made so far; nil when only the end of something unknown would make room.
func (pl *planner) earliest(c *Candidate, sh *shape, avoid []string) ([]cluster.Slot, time.Time) {
	if pl.windows != nil {
		return pl.earliestAround(c, sh, avoid)
	}
	d, l := sh.need, layoutOf(sh.need)
	if d.Parts != nil {
		return pl.earliestMixed(d, avoid)
	}
	top := pl.top()
	t := pl.tallyOf(pl.look(sh, top, avoid))
	changed := make(map[int]*cluster.Node)
	admits := make(map[int]bool)
	ends := pl.byEnd()
	for i := 0; i < len(ends); {
		at := ends[i].t
		for ; i < len(ends) && ends[i].t.Equal(at); i++ {
			e := &ends[i]
			ok, known := admits[e.at]
			if !known {
				n := top.nodes[e.at]
				ok = d.Admits(n) && !slices.Contains(avoid, n.Name)
				admits[e.at] = ok
			}
			if !ok {
				continue
			}
			n := changed[e.at]
			if n == nil {
				n = top.nodes[e.at]
			}
			next := n.Release(e.key)
			changed[e.at] = next
			if was, is := d.Ranks(n), d.Ranks(next); was != is {
				if was > 0 {
					t.addAll(was, -1)
				}
				t.add(is)
			}
		}
		if m := l.members(t); m > 0 {
			return pl.settle(sh, avoid, changed, m, nil), at
		}
	}
	if len(avoid) > 0 {
		return pl.earliest(c, sh, nil)
	}
	return nil, time.Time{}
}

// earliestMixed is earliest for a gang with roles: the end after which it fits is looked
// for by halves, since each look packs all of its parts.
func (pl *planner) earliestMixed(d *cluster.Need, avoid []string) ([]cluster.Slot, time.Time) {
	ends, top := pl.byEnd(), pl.top()
	after := func(n int) []cluster.Slot {
		nodes := slices.Clone(top.nodes)
		for _, e := range ends[:n] {
			nodes[e.at] = nodes[e.at].Release(e.key)
		}
		var ready []int32
		for at, n := range nodes {
			if n.Ready {
				ready = append(ready, int32(at))
			}
		}
		return mixed(d, nodes, ready, avoid)
	}
	n, found := len(ends), after(len(ends))
	if found == nil {
		if len(avoid) > 0 {
			return pl.earliestMixed(d, nil)
		}
		return nil, time.Time{}
	}
	for low := 0; low < n; {
		mid := (low + n) / 2
		if slots := after(mid); slots != nil {
			n, found = mid, slots
		} else {
			low = mid + 1
		}
	}
	if n == 0 {
		return found, pl.now
	}
	return found, ends[n-1].t
}

// settle chooses the places of a gang on the nodes as they will be; open says which of them
// it may use then, nil: all.
func (pl *planner) settle(sh *shape, avoid []string, changed map[int]*cluster.Node, m int, open func(at int) bool) []cluster.Slot {
	d, l, top := sh.need, layoutOf(sh.need), pl.top()
	node := func(at int) *cluster.Node {
		if n := changed[at]; n != nil {
			return n
		}
		return top.nodes[at]
	}
	var spots []spot
	for at := range top.nodes {
		n := node(at)
		if !n.Ready || slices.Contains(avoid, n.Name) || open != nil && !open(at) {
			continue
		}
		if k := d.Ranks(n); k > 0 && d.Admits(n) {
			spots = append(spots, spot{at: at, ranks: k})
		}
	}
	var slots []cluster.Slot
	for _, m := range l.choose(spots, pl.tallyOf(spots), m, func(s spot, ranks int) cluster.Waste { return d.WasteOf(node(s.at), ranks) }) {
		slots = append(slots, d.Pick(node(m.at), m.ranks)...)
	}
	return slots
}

// freeAt is when the places of a claim are free at the latest; zero: not known.
func (pl *planner) freeAt(grants []nodeGrant) time.Time {
	latest := pl.now
	for _, g := range grants {
		n := pl.top().nodes[g.at]
		var ends []ending
		for i := range n.Grants {
			if n.Grants[i].Epoch == epochClaim && n.Grants[i].Until.IsZero() {
				continue
			}
			if t := pl.endOf(&n.Grants[i]); !t.IsZero() {
				ends = append(ends, ending{g.at, t, n.Grants[i].MemberKey})
			}
		}
		slices.SortFunc(ends, func(a, b ending) int { return a.t.Compare(b.t) })
		t := pl.now
		for {
			if _, err := n.Take(g.Grant); err == nil {
				break
			}
			if len(ends) == 0 {
				return time.Time{}
			}
			n, t = n.Release(ends[0].key), ends[0].t
			ends = ends[1:]
		}
		if t.After(latest) {
			latest = t
		}
	}
	return latest
}
