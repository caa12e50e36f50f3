package kept

import (
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
)

// find chooses places over the whole of the ready nodes, those that need the least
// further freeing: for when it is not known when what runs will end.
func (kp *Backfills) find(sh *fit.AskClass, avoid []string) []cluster.Slot {
	d := sh.Need
	if sh.Alternatives != nil {
		return kp.findOfAlternatives(sh, avoid)
	}
	if d.Packed() {
		return kp.findMixed(d, avoid)
	}
	choices := kp.choicesEmpty(sh, avoid)
	l := fit.LayoutOf(d)
	if l.Members(kp.fit.TallyOf(choices)) == 0 {
		if len(avoid) > 0 {
			return kp.find(sh, nil)
		}
		return nil
	}
	var slots []cluster.Slot
	for _, m := range l.ChooseBackfill(choices) {
		slots = append(slots, kp.backfillOn(d, m)...)
	}
	return slots
}

// choicesEmpty lists where a backfill may be: all ready nodes but for the backfills made so far. Of
// ten thousand nodes only those are looked at that backfills or starts of this plan are on, and
// the others pair by pair. Of a group no more nodes are listed than a gang can use: each is
// chosen for its room or its name, and there are at most as many as it may have members, and
// as many that these are exchanged for.
func (kp *Backfills) choicesEmpty(sh *fit.AskClass, avoid []string) []fit.Choice {
	d, top, rs, gs := sh.Need, kp.TopView(), &kp.mem.rooms, &kp.mem.groups
	list := kp.mem.classes(kp.fit)
	kp.openRooms()
	gs.Reset()
	allows := func(at int32) bool {
		name := top.Node(int(at)).Name
		return !slices.Contains(avoid, name) && d.Named(name)
	}
	for _, i := range kp.touchedNodes {
		at := int32(i)
		n := kp.views[0].Node(i)
		if !n.Ready || !allows(at) || !d.Admits(n) {
			continue
		}
		if total := rs.at(i).Ranks(d); total > 0 {
			k := top.Class(i)
			gs.Add([]int32{at}, 1, total, min(total, sh.RanksOn(k)), sh.FreeOn(k))
		}
	}
	most, picky := 2*fit.LayoutOf(d).Most(), sh.Named || len(avoid) > 0
	for _, p := range list {
		total := sh.RanksOn(p.emptiedClass)
		if total == 0 {
			continue
		}
		some, n := kp.nodeBuffer[:0], len(p.nodes)-p.apart
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
		if kp.nodeBuffer = some; n > 0 {
			gs.Add(some, n, total, min(total, sh.RanksOn(p.class)), sh.FreeOn(p.class))
		}
	}
	kp.closeRooms()
	return gs.Made()
}

// openRooms makes a room, with the backfills made so far on it, of each node that backfills or
// starts of this plan are on, and lists these nodes.
func (kp *Backfills) openRooms() {
	rs, of := &kp.mem.rooms, kp.mem.backfillClasses.of
	rs.begin(len(of))
	kp.touchedNodes = kp.touchedNodes[:0]
	open := func(at int) *cluster.Room {
		if r := rs.at(at); r != nil {
			return r
		}
		n := kp.views[0].Node(at)
		r := rs.open(at, n)
		r.OfEmptied(n)
		kp.touchedNodes = append(kp.touchedNodes, at)
		if of[at] != nil {
			of[at].apart++
		}
		return r
	}
	for i := range kp.ends.started {
		open(kp.ends.started[i].At)
	}
	for i := range kp.List {
		for j := range kp.List[i].Grants {
			g := &kp.List[i].Grants[j]
			open(g.At).Restore(&g.Grant)
		}
	}
}

// closeRooms takes back what openRooms noted of backfill classes.
func (kp *Backfills) closeRooms() {
	for _, at := range kp.touchedNodes {
		if p := kp.mem.backfillClasses.of[at]; p != nil {
			p.apart = 0
		}
	}
}

// backfillOn picks the cards of one member: those free now first, then such as must be
// waited for.
func (kp *Backfills) backfillOn(d *cluster.Need, m fit.Member) []cluster.Slot {
	here, empty := kp.TopView().Node(m.At), kp.cleared(m.At)
	now := min(m.Ranks, d.Ranks(here))
	if now == m.Ranks {
		return d.Pick(here, now)
	}
	if now == 0 || d.NodeCards > 0 {
		return d.Pick(empty, m.Ranks)
	}
	slots := d.Pick(here, now)
	taken := cluster.GrantFor(d.Ask, api.MemberKey{Epoch: given.EpochBackfill}, slots, time.Time{})
	for i := range taken.Cards {
		taken.Cards[i].Exclusive = true // not twice for the same gang
	}
	return append(slots, d.Pick(empty.Restore(taken), m.Ranks-now)...)
}
