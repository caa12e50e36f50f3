package why

import (
	"fmt"
	"math"
	"time"

	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/guard"
	"gangd/pkg/core/sched/order"
)

// TurnText is when a gang that waits for room comes to the front of its tier, and by when it
// starts then. Empty: it never does, or it is there.
func (wy *Why) TurnText(c *order.Candidate) string {
	if wy.Policy.GuardAfter <= 0 || wy.Front[c.Job] != order.NoTurn || !wy.guard.WaitsForRoom(c) {
		return ""
	}
	patience := wy.guard.PatienceFor(order.Weight(c.Ask))
	due, why := c.Since().Add(patience), when.Words(patience)
	if c.HasTurn() && c.TurnAt().Before(due) {
		due, why = c.TurnAt(), fmt.Sprintf("%d times its time limit", order.OwnPatience)
	}
	text := fmt.Sprintf("comes to the front of its tier at %s, after a wait of %s", when.Clock(wy.Now, due), why)
	if !due.After(wy.Now) {
		text = fmt.Sprintf("has waited for %s, and comes to the front of its tier when those who waited longer have started", why)
	}
	at, longest := wy.LatestStart(c)
	switch {
	case wy.Reservations != nil:
		return text + ", if no reservation keeps its nodes"
	case at.IsZero():
		return text + "; gangs without a time limit may hold it up for as long as they run"
	}
	return fmt.Sprintf("%s; starts at the latest at %s, if none of a higher tier comes, and none that may run for more than %s", text,
		when.Clock(wy.Now, at), when.Words(longest))
}

// LatestStart is by when a gang starts at the latest, by its turn at the front and the time
// limits of all that runs or waits, the longest of which is returned too. Zero: not known, for
// somebody has no limit, or later than a [time.Time] can say.
//
// Those whose turn comes before go one after another. Each has places kept for it as soon as it is
// at the front; they are free when all has ended that ran then, and who had places kept before it.
// Who came to the front by its own limit stands behind all that waited too long for any, so that
// this counts only where nobody will have by then.
func (wy *Why) LatestStart(c *order.Candidate) (at time.Time, longest time.Duration) {
	q := wy.View.Queue
	for _, r := range wy.View.Running {
		if longest = max(longest, r.TimeLimit+r.Stop); r.TimeLimit <= 0 {
			return time.Time{}, 0
		}
	}
	for _, w := range q.Slice() {
		if longest = max(longest, w.TimeLimit+w.Stop); w.TimeLimit <= 0 {
			return time.Time{}, 0
		}
	}
	kept := time.Duration(1 + wy.Depth)
	if longest > math.MaxInt64/kept/2 {
		return time.Time{}, 0
	}
	each := kept * longest
	if c.HasTurn() {
		at := wy.after(c.TurnAt(), q.ByTurn(), c, each)
		if first := q.ByAge()[0].Since().Add(wy.Policy.GuardAfter); !at.IsZero() && at.Before(first) {
			return at, longest
		}
	}
	patience := wy.Policy.GuardAfter
	if wy.RanksLeft() {
		patience *= guard.MostPatience
	}
	return wy.after(c.Since().Add(patience), q.ByAge(), c, each), longest
}

// after is when a gang has started that comes to the front then, behind those of a list that are
// before it there.
func (wy *Why) after(due time.Time, list []*order.Candidate, c *order.Candidate, each time.Duration) time.Time {
	if due.Before(wy.Now) {
		due = wy.Now
	}
	const century = 100 * 365 * 24 * time.Hour
	sum := each
	for _, w := range list {
		if w.Job == c.Job {
			return due.Add(sum)
		}
		if sum += each + w.TimeLimit + w.Stop; sum > century {
			break
		}
	}
	return time.Time{}
}
