package sched

import (
	"slices"
	"time"
)

// mostPatience is the longest that patience may be, in times of [Policy].GuardAfter: under a
// load that never ends what waits grows for ever, and a wait must not.
const mostPatience = 50

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
		cards := 0
		for _, n := range pl.view.Nodes {
			cards += len(n.Cards)
		}
		backlog := time.Duration(pl.view.Queue.backlog/int64(max(1, cards))) * time.Second
		pl.patient = min(max(least, backlog), mostPatience*least)
	}
	return pl.patient
}

// ranksLeft reports whether gangs give way to others for needing more yet.
func (pl *planner) ranksLeft() bool {
	return pl.policy.Preempt == PreemptService && (pl.policy.Order == OrderService || pl.policy.Order == "")
}

// tooLong reports whether a gang waits for longer than any should in its turn.
func (pl *planner) tooLong(c *Candidate) bool {
	return pl.policy.GuardAfter > 0 && pl.now.Sub(c.since()) >= pl.patience()
}

// waited reports whether a running gang was let in when it had waited too long: it is not
// sent back for a shorter one of its tier.
func (pl *planner) waited(r *Running) bool {
	return pl.policy.GuardAfter > 0 && !r.Start.IsZero() && r.Start.Sub(r.Submit)-r.Attained >= pl.patience()
}

// guard lists the gangs that waited too long, the longest wait first, as far as the part of
// the cards reaches that may be given away so, what runs so already included. One is always
// let in, however large, or a gang of more than that part would never be.
func (pl *planner) guard() {
	share := pl.policy.GuardShare
	if share <= 0 {
		share = 0.1
	}
	oldest := pl.view.Queue.byAge
	if pl.policy.GuardAfter <= 0 || len(oldest) == 0 {
		return
	}
	if !pl.tooLong(oldest[0]) {
		pl.by(&pl.next, oldest[0].since().Add(pl.patience()))
		return
	}
	cards := 0
	for _, n := range pl.view.Nodes {
		cards += len(n.Cards)
	}
	left := int(share * float64(cards))
	none := true
	for _, r := range pl.view.Running {
		if pl.waited(r) {
			left -= max(1, r.Cards)
			none = false
		}
	}
	for _, c := range oldest {
		if !pl.tooLong(c) {
			pl.by(&pl.next, c.since().Add(pl.patience()))
			break
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
