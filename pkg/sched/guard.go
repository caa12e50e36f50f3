package sched

import "slices"

// tooLong reports whether a gang waits for longer than the site lets any wait in its turn.
func (pl *planner) tooLong(c *Candidate) bool {
	return pl.policy.GuardAfter > 0 && pl.now.Sub(c.since()) >= pl.policy.GuardAfter
}

// waited reports whether a running gang was let in because it had waited too long: it is
// not sent back for a shorter one of its tier.
func (pl *planner) waited(r *Running) bool {
	return pl.policy.GuardAfter > 0 && !r.Start.IsZero() && r.Start.Sub(r.Submit)-r.Attained >= pl.policy.GuardAfter
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
		pl.by(&pl.next, oldest[0].since().Add(pl.policy.GuardAfter))
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
			pl.by(&pl.next, c.since().Add(pl.policy.GuardAfter))
			break
		}
		if left -= weight(c.Ask); left < 0 && !none {
			break
		}
		none = false
		pl.guarded = append(pl.guarded, c)
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
