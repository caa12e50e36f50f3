package gang

import (
	"fmt"
	"time"

	"gangd/pkg/core/cmdline/when"
)

// A job that asked for it runs again after its time limit, until all its runs together have
// lasted as long as it said. That a rank ends well after the notice of the limit says then
// that it has saved, not that its work is done.

// ranInAll is how long all runs of a job have lasted by now, that of the current epoch included.
func ranInAll(j *Job, now time.Time) time.Duration {
	ran := j.Ran
	if d := now.Sub(j.Start); !j.Start.IsZero() && d > 0 {
		ran += d.Round(time.Millisecond)
	}
	return ran
}

// withinTotal is a time limit, or what is left of the time of all runs where that is less.
func withinTotal(j *Job, limit time.Duration) time.Duration {
	if j.Spec.MaxTimeTotal == 0 {
		return limit
	}
	left := max(j.Spec.MaxTimeTotal-j.Ran, shortest)
	if limit == 0 {
		return left
	}
	return min(limit, left)
}

// usedUp says how the time of all runs was used up, empty where another run has more left
// than the lead in which it would be told to end.
func usedUp(j *Job, now time.Time) string {
	total := j.Spec.MaxTimeTotal
	if total == 0 {
		return ""
	}
	ran := ranInAll(j, now)
	if total-ran >= lead(j, false)+shortest {
		return ""
	}
	return fmt.Sprintf("all runs together took %s of the %s that it asked for (--max-time-total)", when.Words(ran), when.Words(total))
}

// queuedAt is since when a job counts as submitted where others are.
func queuedAt(j *Job) time.Time {
	if j.Queued.IsZero() {
		return j.Submit
	}
	return j.Queued
}

// keep adds what the epoch that ends here worked and the next one will start from.
func keep(j *Job) {
	at := LastSaved(j, j.Epoch)
	if at.IsZero() || j.Start.IsZero() {
		return
	}
	if d := at.Sub(j.Start); d > 0 {
		j.Kept += d.Round(time.Millisecond)
	}
}
