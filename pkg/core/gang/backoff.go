package gang

import "gangd/pkg/api"

// backsOff: a re-run for this cause waits first, longer each time.
func backsOff(c api.Cause) bool { return charged(c) && c != api.CauseNodeLost }

// backoff keeps a gang from being admitted for a time that doubles with the n-th of its
// failures.
func (w *World) backoff(e *entry, n int) {
	d := w.set.RetryBackoff
	for ; n > 1 && d < w.set.RetryBackoffMax; n-- {
		d *= 2
	}
	d = min(d, w.set.RetryBackoffMax)
	if d <= 0 {
		return
	}
	j := w.jobs.edit(e)
	j.BackoffUntil = w.clock.now.Wall.Add(d)
	j.Eligible = j.BackoffUntil
	w.clock.in(d, timer{kind: timerEligible, job: j.ID})
}
