package sched

import (
	"time"

	"gangd/pkg/core/sched/order"
)

// switchLimit is below how many switches a gang has to be now; 0: any number.
func (gv *given) switchLimit(c *order.Candidate) int {
	if len(gv.policy.Switches) == 0 || c.Ask.Spec.Switches <= 0 {
		return 0
	}
	until := gv.switchUntil(c)
	if !until.After(gv.now) {
		return 0
	}
	gv.by(&gv.next, until)
	return c.Ask.Spec.Switches
}

// switchUntil is until when a gang waits for its number of switches.
func (gv *given) switchUntil(c *order.Candidate) time.Time {
	wait := gv.policy.MaxSwitchWait
	if w := c.Ask.Spec.SwitchWait; w != nil && *w < wait {
		wait = *w
	}
	since := c.Eligible
	if since.IsZero() {
		since = c.Submit
	}
	return since.Add(wait)
}
