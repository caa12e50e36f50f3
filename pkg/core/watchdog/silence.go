package watchdog

import "time"

// Silence judges one rank by its beats. The zero value never trips.
type Silence struct {
	Timeout time.Duration // 0: the rank is not judged
	armed   bool
	last    time.Duration
}

// Beat arms the rule, or arms it anew.
func (s *Silence) Beat(now time.Duration) { s.armed, s.last = true, now }

// End is the end of the rank: it has nothing more to say.
func (s *Silence) End() { s.armed = false }

// Over reports whether the rank has been silent for too long.
func (s *Silence) Over(now time.Duration) bool {
	at, ok := s.Due()
	return ok && now >= at
}

// Due is when the rank will have been silent for too long; false when it is not judged.
func (s *Silence) Due() (at time.Duration, ok bool) {
	return s.last + s.Timeout, s.armed && s.Timeout > 0
}
