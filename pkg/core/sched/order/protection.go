package order

import "time"

// Protection is what keeps a running gang from being preempted; empty: nothing.
type Protection string

// What protects, by the option or the key that says so.
const (
	ProtectedByItself Protection = "min-run"         // its own --min-run
	ProtectedBySite   Protection = "preempt_min_run" // the site's
	ProtectedByDone   Protection = "protect_done"    // a rank of it is done
)

// Protects says what keeps a running gang from being preempted now, and until when; zero:
// until it ends.
func (p *Policy) Protects(r *Running, now time.Time) (by Protection, until time.Time) {
	if r.Done && p.ProtectDone {
		return ProtectedByDone, time.Time{}
	}
	if r.Start.IsZero() {
		return "", time.Time{} // nothing of it runs yet
	}
	// A bound that was lowered counts for those that run already.
	least, by := r.MinRun, ProtectedByItself
	if p.MaxMinRun > 0 {
		least = min(least, p.MaxMinRun)
	}
	if p.MinRun > least {
		least, by = p.MinRun, ProtectedBySite
	}
	if until = r.Start.Add(least); until.After(now) {
		return by, until
	}
	return "", time.Time{}
}

// Preempts reports whether anybody may be preempted at all.
func (p *Policy) Preempts() bool {
	return p.Preempt == PreemptTier || p.Preempt == PreemptService || p.hasQuotas()
}
