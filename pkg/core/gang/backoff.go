package gang

import "gangd/pkg/api"

// backsOff: a re-run for this cause waits first, longer each time.
func backsOff(c api.Cause) bool { return charged(c) && c != api.CauseNodeLost }

// backoff keeps a gang from being admitted for a time that doubles with the n-th of its
// failures.
func (ln *launches) backoff(e *entry, n int) {
	d := ln.set.RetryBackoff
	for ; n > 1 && d < ln.set.RetryBackoffMax; n-- {
		d *= 2
	}
	d = min(d, ln.set.RetryBackoffMax)
	if d <= 0 {
		return
	}
	j := ln.jobs.edit(e)
	j.BackoffUntil = ln.clock.now.Wall.Add(d)
	j.Eligible = j.BackoffUntil
	ln.clock.in(d, timer{kind: timerEligible, job: j.ID})
}
