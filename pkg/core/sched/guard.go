package sched

import (
	"gangd/pkg/core/sched/order"
	"slices"
	"time"
)

// mostPatience is the longest that patience may be, in times of [Policy].GuardAfter: under a
// load that never ends what waits grows for ever, and a wait must not.
const mostPatience = 50

// maxPassed bounds the gangs that are passed over for others behind them, so that a plan costs
// no more on a queue in which all have waited for long.
const maxPassed = 1000

// patience is how long a gang waits before it has waited too long: as long as the site says.
// With preemption among equals it is as long as the cluster would need for all that waits,
// by what is expected of it, where that is longer. There whoever was let in for the length of
// its wait is not sent back; where more waits than can be served soon all long gangs are such,
// and sparing them is first come, first served.
func (pl *planner) patience() time.Duration {
	least := pl.policy.GuardAfter
	if !pl.ranksLeft() {
		return least
	}
	if pl.patienceMemo == 0 {
		backlog := time.Duration(pl.view.Queue.Backlog()/int64(max(1, pl.cards()))) * time.Second
		pl.patienceMemo = min(max(least, backlog), mostPatience*least)
	}
	return pl.patienceMemo
}

// patienceFor is that for a gang of so many cards. One that is larger than the part of the
// cards is let in alone, and is then more than the part: it is let in the less often, by the
// square of how much larger it is. On eight nodes a part of 6.4 cards that any gang of 32 may
// have after 48 h is half of the cluster for first come, first served.
func (pl *planner) patienceFor(cards int) time.Duration {
	p, part := pl.patience(), float64(pl.cards())*pl.guardShare()
	if !pl.ranksLeft() || float64(cards) <= part {
		return p
	}
	f := float64(cards) / part
	most := mostPatience * pl.policy.GuardAfter
	if f *= f; f >= mostPatience {
		return most // and a product that would not fit
	}
	return min(most, time.Duration(float64(p)*f))
}

// cards is how many there are.
func (pl *planner) cards() int {
	if pl.cardCount == 0 {
		for _, n := range pl.view.Nodes {
			pl.cardCount += len(n.Cards)
		}
	}
	return pl.cardCount
}

func (pl *planner) guardShare() float64 {
	if pl.policy.GuardShare <= 0 {
		return 0.1
	}
	return pl.policy.GuardShare
}

// ranksLeft reports whether gangs give way to others for needing more yet.
func (pl *planner) ranksLeft() bool {
	return pl.policy.Preempt == PreemptService && pl.policy.ByService()
}

// tooLong reports whether a gang waits for longer than any should in its turn.
func (pl *planner) tooLong(c *Candidate) bool {
	return pl.policy.GuardAfter > 0 && pl.now.Sub(c.Since()) >= pl.patienceFor(order.Weight(c.Ask))
}

// waited reports whether a running gang was let in when it had waited too long: it is not
// sent back for a shorter one of its tier.
func (pl *planner) waited(r *Running) bool {
	return pl.policy.GuardAfter > 0 && !r.Start.IsZero() && r.Start.Sub(r.Submit)-r.Attained >= pl.patienceFor(max(1, r.Cards))
}

// guard lists the gangs that waited too long, the longest wait first, as far as the part of
// the cards reaches that may be given away so, what runs so already included. One is always
// let in, however large, or a gang of more than that part would never be. What they leave of
// the part is for those that waited long beside their own time limit; while one of them waits
// for the part, nothing.
func (pl *planner) guard() {
	if pl.policy.GuardAfter <= 0 || pl.view.Queue.Len() == 0 {
		return
	}
	soon := pl.view.Queue.ByAge()[0].Since().Add(pl.patience())
	if turns := pl.view.Queue.ByTurn(); len(turns) > 0 && turns[0].TurnAt().Before(soon) {
		soon = turns[0].TurnAt()
	}
	if pl.now.Before(soon) {
		pl.by(&pl.next, soon)
		return
	}
	cards := int(pl.guardShare() * float64(pl.cards()))
	long, own := guardPart{cards, true}, guardPart{cards, true}
	for _, r := range pl.view.Running {
		if r.Turn >= TurnLong {
			long.take(max(1, r.Cards))
		}
		if r.Turn >= TurnOwn {
			own.take(max(1, r.Cards))
		}
	}
	if pl.guardLong(&long) {
		for _, c := range pl.guarded {
			own.take(order.Weight(c.Ask))
		}
		pl.guardOwn(&own)
	}
	slices.SortStableFunc(pl.guarded, func(a, b *Candidate) int {
		switch {
		case pl.policy.Below(b, a):
			return -1
		case pl.policy.Below(a, b):
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
func (pl *planner) letFront(c *Candidate, why Turn, p *guardPart) bool {
	cards := order.Weight(c.Ask)
	if p.left < cards && !p.whole {
		return false
	}
	p.take(cards)
	pl.guarded = append(pl.guarded, c)
	pl.front[c.Job] = why
	return true
}

// waitsForRoom reports whether it helps a gang to be at the front: who is bound by a cap, or
// asks for nodes that are down, would keep the part from those who can start.
func (pl *planner) waitsForRoom(c *Candidate) bool {
	sh := pl.askClass(c.Ask)
	return sh.bad == nil && pl.capped(c) == nil && pl.fitsEmpty(sh)
}

// guardLong lets in those that waited too long for any, and reports whether there was room for all.
func (pl *planner) guardLong(p *guardPart) (room bool) {
	passed := 0
	for _, c := range pl.view.Queue.ByAge() {
		if !pl.tooLong(c) {
			pl.by(&pl.next, c.Since().Add(pl.patienceFor(order.Weight(c.Ask))))
			if passed++; passed > maxPassed || pl.now.Sub(c.Since()) < pl.patience() {
				break
			}
			continue // larger than the part: smaller ones behind it may be due before
		}
		if pl.waitsForRoom(c) {
			if !pl.letFront(c, TurnLong, p) {
				return false
			}
		} else if passed++; passed > maxPassed {
			break
		}
	}
	return true
}

// guardOwn lets in those that waited too long beside their own time limits.
func (pl *planner) guardOwn(p *guardPart) {
	passed := 0
	for _, c := range pl.view.Queue.ByTurn() {
		if pl.now.Before(c.TurnAt()) {
			pl.by(&pl.next, c.TurnAt())
			return
		}
		if pl.front[c.Job] == NoTurn && pl.waitsForRoom(c) {
			if !pl.letFront(c, TurnOwn, p) {
				return
			}
		} else if passed++; passed > maxPassed {
			return
		}
	}
}
