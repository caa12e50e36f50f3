package why

import (
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// reservedVerdict is why a gang stays that would fit were there no reservations; nil: it would
// not.
func (wy *Why) reservedVerdict(c *order.Candidate, sh *fit.AskClass) *verdict {
	if wy.Reservations == nil || sh.Bad != nil {
		return nil
	}
	end := wy.End(c)
	all, seen := wy.kept.Bare(), wy.OpenTo(c, wy.kept.Bare(), end)
	if !wy.holdsNow(c, sh, all) || wy.holdsNow(c, sh, seen) {
		return nil
	}
	v := &verdict{word: given.WordNodes, sentence: "would fit, but " + wy.reservedText(c, sh)}
	if given.ReservationOf(c) != "" {
		v.word = given.WordReservation
		v.sentence = "its nodes are free, but " + wy.reservedText(c, sh)
	}
	return v
}

func (wy *Why) holdsNow(c *order.Candidate, sh *fit.AskClass, l *fit.NodeView) bool {
	if sh.Need.Parts != nil {
		return wy.kept.PlaceMixed(c, sh.Need, l) != nil
	}
	return wy.fit.Fits(sh, l) // also of alternatives: what is preferred keeps nobody
}

// reservedText names the reservations in the way of a gang, the first to begin first, and how
// long it could run before the first of them.
func (wy *Why) reservedText(c *order.Candidate, sh *fit.AskClass) string {
	end := given.WithGrace(c, wy.End(c))
	var parts []string
	var longest time.Duration
	for i := range wy.Reservations.List {
		x := &wy.Reservations.List[i]
		if !wy.Reservations.Bars(x, given.ReservationOf(c)) || !x.ClearBy.Before(end) {
			continue
		}
		var names []string
		for at := range wy.View.Nodes {
			if wy.Reservations.On[i][at] && sh.Need.Admits(wy.View.Nodes[at]) {
				names = append(names, wy.View.Nodes[at].Name)
			}
		}
		if names == nil {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s %s for reservation %s", Hosts(names), isOrAre(len(names)), reserved(wy.Now, x), x.Name))
		if left := x.ClearBy.Sub(wy.Now) - max(c.Stop, c.Ask.Spec.GraceMax); longest == 0 && left >= time.Minute {
			longest = left
		}
	}
	if parts == nil && given.ReservationOf(c) != "" {
		return "not those of its reservation " + given.ReservationOf(c)
	}
	const most = 3
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], api.Count(more, "more reservation"))
	}
	text := given.And(parts)
	if longest > 0 {
		limit := "it has no time limit"
		if c.TimeLimit > 0 {
			limit = "it may run for " + when.Words(c.TimeLimit)
		}
		text += fmt.Sprintf("; %s, and its stop takes up to %s: at most --time=%d would end before", limit,
			when.Words(max(c.Stop, c.Ask.Spec.GraceMax)), int(longest/time.Minute))
	}
	return text
}

// reserved says from when to when nodes are reserved.
func reserved(now time.Time, x *given.Reservation) string {
	if x.Start.After(now) {
		return fmt.Sprintf("reserved from %s to %s", when.Clock(now, x.Start), when.Clock(now, x.End))
	}
	return fmt.Sprintf("reserved until %s", when.Clock(now, x.End))
}

// reservedNode says by which reservation a node is shut to the gang that is explained.
func (wy *Why) reservedNode(at int) string {
	if !wy.ExplainedView.Shuts(at) {
		return ""
	}
	for i := range wy.Reservations.List {
		x := &wy.Reservations.List[i]
		if wy.Reservations.On[i][at] {
			return reserved(wy.Now, x) + " for reservation " + x.Name + ": "
		}
	}
	return "not of its reservation: "
}
