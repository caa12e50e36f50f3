package guard

import (
	"slices"
	"time"

	"gangd/pkg/core/sched/bounds"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
)

// MostPatience is the longest that patience may be, in times of [order.Policy].GuardAfter: under a
// load that never ends what waits grows for ever, and a wait must not.
const MostPatience = 50

// maxPassed bounds the gangs that are passed over for others behind them, so that a plan costs
// no more on a queue in which all have waited for long.
const maxPassed = 1000

// Guard lets gangs to the front of their tiers that have waited too long.
type Guard struct {
	*given.Facts
	fit          *fit.Finder
	kept         *kept.Backfills
	bounds       *bounds.Bounds
	Guarded      []*order.Candidate // these, the longest wait first
	WaitingWide  []*order.Candidate // see wide.go
	patienceMemo time.Duration      // how long too long is; 0: not worked out yet
}

// New lists them for a view, with the places that are kept.
func New(f *given.Facts, finder *fit.Finder, k *kept.Backfills, b *bounds.Bounds) Guard {
	gd := Guard{Facts: f, fit: finder, kept: k, bounds: b}
	gd.fill()
	gd.listWide()
	return gd
}

// patience is how long a gang waits before it has waited too long: as long as the site says.
// With preemption among equals it is as long as the cluster would need for all that waits,
// by what is expected of it, where that is longer. There whoever was let in for the length of
// its wait is not sent back; where more waits than can be served soon all long gangs are such,
// and sparing them is first come, first served.
func (gd *Guard) patience() time.Duration {
	least := gd.Policy.GuardAfter
	if !gd.RanksLeft() {
		return least
	}
	if gd.patienceMemo == 0 {
		backlog := time.Duration(gd.View.Queue.Backlog()/int64(max(1, gd.Cards()))) * time.Second
		gd.patienceMemo = min(max(least, backlog), MostPatience*least)
	}
	return gd.patienceMemo
}

// PatienceFor is that for a gang of so many cards. One that is larger than the part of the
// cards is let in alone, and is then more than the part: it is let in the less often, by the
// square of how much larger it is. On eight nodes a part of 6.4 cards that any gang of 32 may
// have after 48 h is half of the cluster for first come, first served.
func (gd *Guard) PatienceFor(cards int) time.Duration {
	p, part := gd.patience(), float64(gd.Cards())*gd.GuardShare()
	if !gd.RanksLeft() || float64(cards) <= part {
		return p
	}
	f := float64(cards) / part
	most := MostPatience * gd.Policy.GuardAfter
	if f *= f; f >= MostPatience {
		return most // and a product that would not fit
	}
	return min(most, time.Duration(float64(p)*f))
}

// tooLong reports whether a gang waits for longer than any should in its turn.
func (gd *Guard) tooLong(c *order.Candidate) bool {
	return gd.Policy.GuardAfter > 0 && gd.Now.Sub(c.Since()) >= gd.PatienceFor(order.Weight(c.Ask))
}

// Waited reports whether a running gang was let in when it had Waited too long: it is not
// sent back for a shorter one of its tier.
func (gd *Guard) Waited(r *order.Running) bool {
	return gd.Policy.GuardAfter > 0 && !r.Start.IsZero() && r.Start.Sub(r.Submit)-r.Attained >= gd.PatienceFor(max(1, r.Cards))
}

// fill lists the gangs that waited too long, the longest wait first, as far as the part of
// the cards reaches that may be given away so, what runs so already included. One is always
// let in, however large, or a gang of more than that part would never be. What they leave of
// the part is for those that waited long beside their own time limit; while one of them waits
// for the part, nothing.
func (gd *Guard) fill() {
	if gd.Policy.GuardAfter <= 0 || gd.View.Queue.Len() == 0 {
		return
	}
	soon := gd.View.Queue.ByAge()[0].Since().Add(gd.patience())
	if turns := gd.View.Queue.ByTurn(); len(turns) > 0 && turns[0].TurnAt().Before(soon) {
		soon = turns[0].TurnAt()
	}
	if gd.Now.Before(soon) {
		gd.By(&gd.Next, soon)
		return
	}
	cards := int(gd.GuardShare() * float64(gd.Cards()))
	long, own := guardPart{cards, true}, guardPart{cards, true}
	for _, r := range gd.View.Running {
		if r.Turn >= order.TurnLong {
			long.take(max(1, r.Cards))
		}
		if r.Turn >= order.TurnOwn {
			own.take(max(1, r.Cards))
		}
	}
	if gd.guardLong(&long) {
		for _, c := range gd.Guarded {
			own.take(order.Weight(c.Ask))
		}
		gd.guardOwn(&own)
	}
	slices.SortStableFunc(gd.Guarded, func(a, b *order.Candidate) int {
		switch {
		case gd.Policy.Below(b, a):
			return -1
		case gd.Policy.Below(a, b):
			return 1
		}
		return 0
	})
}

// guardPart is the cards that may be given away to those who waited too long.
type guardPart struct {
	left  int
	whole bool // nothing of it is given away
}

func (p *guardPart) take(cards int) { p.left, p.whole = p.left-cards, false }

// letFront lets a gang to the front of its tier, and reports whether the part had room for it:
// for one it always has.
func (gd *Guard) letFront(c *order.Candidate, why order.Turn, p *guardPart) bool {
	cards := order.Weight(c.Ask)
	if p.left < cards && !p.whole {
		return false
	}
	p.take(cards)
	gd.Guarded = append(gd.Guarded, c)
	gd.Front[c.Job] = why
	return true
}

// WaitsForRoom reports whether it helps a gang to be at the front: who is bound by a cap, or
// asks for nodes that are down, would keep the part from those who can start.
func (gd *Guard) WaitsForRoom(c *order.Candidate) bool {
	sh := gd.fit.ClassOf(c.Ask)
	return sh.Bad == nil && gd.bounds.Capped(c) == nil && gd.fit.FitsEmpty(sh)
}

// guardLong lets in those that waited too long for any, and reports whether there was room for all.
func (gd *Guard) guardLong(p *guardPart) (room bool) {
	passed := 0
	for _, c := range gd.View.Queue.ByAge() {
		if !gd.tooLong(c) {
			gd.By(&gd.Next, c.Since().Add(gd.PatienceFor(order.Weight(c.Ask))))
			if passed++; passed > maxPassed || gd.Now.Sub(c.Since()) < gd.patience() {
				break
			}
			continue // larger than the part: smaller ones behind it may be due before
		}
		if gd.WaitsForRoom(c) {
			if !gd.letFront(c, order.TurnLong, p) {
				return false
			}
		} else if passed++; passed > maxPassed {
			break
		}
	}
	return true
}

// guardOwn lets in those that waited too long beside their own time limits.
func (gd *Guard) guardOwn(p *guardPart) {
	passed := 0
	for _, c := range gd.View.Queue.ByTurn() {
		if gd.Now.Before(c.TurnAt()) {
			gd.By(&gd.Next, c.TurnAt())
			return
		}
		if gd.Front[c.Job] == order.NoTurn && gd.WaitsForRoom(c) {
			if !gd.letFront(c, order.TurnOwn, p) {
				return
			}
		} else if passed++; passed > maxPassed {
			return
		}
	}
}
