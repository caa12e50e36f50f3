package given

import (
	"math"
	"time"

	"gangd/pkg/core/sched/order"
)

// Facts is what a plan is made of, and what all its owners are told: the view, the rules, and who is let to the front.
type Facts struct {
	Now          time.Time
	View         *View
	Policy       *order.Policy
	Depth        int                  // backfills that are made
	Reservations *Windows             // nil: none
	Front        map[int64]order.Turn // who waited too long, and is let to the front
	Next         time.Time            // when a plan would decide otherwise though nothing has happened; zero: never
	cardCount    int                  // cards of the view; 0: not counted yet
}

// Never is later than any end.
var Never = time.Unix(math.MaxInt32*100, 0)

// BeyondLimits is later than whatever has a time limit ends, and sooner than all else does.
var BeyondLimits = Never.Add(-1)

// Epochs under which a plan books what does not exist yet. Real epochs count from 1.
const (
	EpochBackfill = -1
	EpochStart    = -2
)

// By makes t no later than at, which is in the future.
func (gv *Facts) By(t *time.Time, at time.Time) {
	if at.After(gv.Now) && (t.IsZero() || at.Before(*t)) {
		*t = at
	}
}

// End is when a gang that starts now has ended at the latest.
func (gv *Facts) End(c *order.Candidate) time.Time {
	end := Never
	if c.TimeLimit > 0 {
		end = gv.Now.Add(c.TimeLimit + c.Stop)
	}
	if by := c.Deadline.Add(c.Stop); !c.Deadline.IsZero() && by.Before(end) {
		end = by
	}
	return end
}

// LeastEnd is end with its time limit cut as far as it allows.
func (gv *Facts) LeastEnd(c *order.Candidate) time.Time {
	end := gv.End(c)
	if by := gv.Now.Add(c.TimeMin + c.Stop); c.TimeMin > 0 && by.Before(end) {
		end = by
	}
	return end
}

// Cards is how many there are.
func (gv *Facts) Cards() int {
	if gv.cardCount == 0 {
		for _, n := range gv.View.Nodes {
			gv.cardCount += len(n.Cards)
		}
	}
	return gv.cardCount
}

// GuardShare is the part of the cards that may be given away to who waited too long.
func (gv *Facts) GuardShare() float64 {
	if gv.Policy.GuardShare <= 0 {
		return 0.1
	}
	return gv.Policy.GuardShare
}

// RanksLeft reports whether gangs give way to others for needing more yet.
func (gv *Facts) RanksLeft() bool {
	return gv.Policy.Preempt == order.PreemptService && gv.Policy.ByService()
}

// MayPreempt reports whether gangs are stopped for others at all.
func (gv *Facts) MayPreempt() bool {
	return len(gv.View.Running) > 0 && gv.Policy.Preempts()
}

// Wide reports whether a gang asks for half of all cards or more.
func (gv *Facts) Wide(c *order.Candidate) bool { return 2*order.Weight(c.Ask) >= gv.Cards() }

// SwitchLimit is below how many switches a gang has to be now; 0: any number.
func (gv *Facts) SwitchLimit(c *order.Candidate) int {
	if len(gv.Policy.Switches) == 0 || c.Ask.Spec.Switches <= 0 {
		return 0
	}
	until := gv.SwitchUntil(c)
	if !until.After(gv.Now) {
		return 0
	}
	gv.By(&gv.Next, until)
	return c.Ask.Spec.Switches
}

// SwitchUntil is until when a gang waits for its number of switches.
func (gv *Facts) SwitchUntil(c *order.Candidate) time.Time {
	wait := gv.Policy.MaxSwitchWait
	if w := c.Ask.Spec.SwitchWait; w != nil && *w < wait {
		wait = *w
	}
	since := c.Eligible
	if since.IsZero() {
		since = c.Submit
	}
	return since.Add(wait)
}
