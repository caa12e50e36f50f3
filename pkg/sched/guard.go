package sched

import (
	"slices"
	"time"
)

// mostPatience is the longest that patience may be, in times of [Policy].GuardAfter: under a
// load that never ends what waits grows for ever, and a wait must not.
const mostPatience = 50

// maxPassed bounds the gangs larger than the part that are passed over for smaller ones, so
// that a plan costs no more on a queue in which all have waited for long.
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
	if pl.patient == 0 {
		backlog := time.Duration(pl.view.Queue.backlog/int64(max(1, pl.cards()))) * time.Second
		pl.patient = min(max(least, backlog), mostPatience*least)
	}
	return pl.patient
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
	if pl.all == 0 {
		for _, n := range pl.view.Nodes {
			pl.all += len(n.Cards)
		}
	}
	return pl.all
}

func (pl *planner) guardShare() float64 {
	if pl.policy.GuardShare <= 0 {
		return 0.1
	}
	return pl.policy.GuardShare
}

// ranksLeft reports whether gangs give way to others for needing more yet.
func (pl *planner) ranksLeft() bool {
	return pl.policy.Preempt == PreemptService && pl.policy.byService()
}

// tooLong reports whether a gang waits for longer than any should in its turn.
func (pl *planner) tooLong(c *Candidate) bool {
	return pl.policy.GuardAfter > 0 && pl.now.Sub(c.since()) >= pl.patienceFor(weight(c.Ask))
}

// waited reports whether a running gang was let in when it had waited too long: it is not
// sent back for a shorter one of its tier.
func (pl *planner) waited(r *Running) bool {
	return pl.policy.GuardAfter > 0 && !r.Start.IsZero() && r.Start.Sub(r.Submit)-r.Attained >= pl.patienceFor(max(1, r.Cards))
}

// guard lists the gangs that waited too long, the longest wait first, as far as the part of
// the cards reaches that may be given away so, what runs so already included. One is always
// let in, however large, or a gang of more than that part would never be.
func (pl *planner) guard() {
	oldest := pl.view.Queue.byAge
	if pl.policy.GuardAfter <= 0 || len(oldest) == 0 {
		return
	}
	if pl.now.Sub(oldest[0].since()) < pl.patience() {
		pl.by(&pl.next, oldest[0].since().Add(pl.patience()))
		return
	}
	left := int(pl.guardShare() * float64(pl.cards()))
	none := true
	for _, r := range pl.view.Running {
		if pl.waited(r) {
			left -= max(1, r.Cards)
			none = false
		}
	}
	passed := 0
	for _, c := range oldest {
		if !pl.tooLong(c) {
			pl.by(&pl.next, c.since().Add(pl.patienceFor(weight(c.Ask))))
			if passed++; passed > maxPassed || pl.now.Sub(c.since()) < pl.patience() {
				break
			}
			continue // larger than the part: smaller ones behind it may be due before
		}
		if left -= weight(c.Ask); left < 0 && !none {
			break
		}
		none = false
		pl.guarded = append(pl.guarded, c)
		pl.front[c.Job] = true
	}
	slices.SortStableFunc(pl.guarded, func(a, b *Candidate) int {
		switch {
		case pl.policy.below(b, a):
			return -1
		case pl.policy.below(a, b):
			return 1
		}
		return 0
	})
}
