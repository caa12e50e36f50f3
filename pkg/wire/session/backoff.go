package session

import "time"

const (
	// The back-off between tries. The first retry is at once: a controller that was
	// restarted is there again within milliseconds. The ceiling is what a person waits
	// without asking; leaseTries lowers it for a short lease.
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second

	// leaseTries is how often at least a node asks in the time of its lease: each refused
	// connection renews it, and the gaps between them must not use it up.
	leaseTries = 8

	// steadySession is how long a session lasts for the next retry to be at once again: a
	// controller that refuses each hello must not be asked in a tight loop.
	steadySession = time.Second
)

// backoff is the wait before the last try.
type backoff time.Duration

// next is how long to wait after a session that lasted so long, 0: there was none. A jitter
// of half the wait spreads a site's nodes after a restart of the controller; n gives a
// random duration below its argument.
func (b *backoff) next(lasted, lease time.Duration, n func(time.Duration) time.Duration) time.Duration {
	if lasted >= steadySession {
		*b = 0
		return 0
	}
	longest := maxBackoff
	if lease > 0 {
		longest = min(maxBackoff, max(lease/leaseTries, minBackoff))
	}
	wait := min(max(2*time.Duration(*b), minBackoff), longest)
	*b = backoff(wait)
	return wait/2 + n(wait/2+1)
}
