package watchdog

import (
	"time"

	"gangd/pkg/api"
)

// Check carries out one [api.Check] of a member.
type Check struct {
	ask    api.Check
	series *Series
	next   time.Duration // when the next reading counts
	taken  int
}

// leastReadings: what processes move shows between two.
const leastReadings = 2

// NewCheck begins a check; its first reading is due at once.
func NewCheck(ask api.Check, idle Idle, uuids []string, now time.Duration) *Check {
	ask.Readings = max(ask.Readings, leastReadings)
	return &Check{ask: ask, series: NewSeries(idle, uuids), next: now}
}

// Due is when the next reading is wanted.
func (c *Check) Due() time.Duration { return c.next }

// Add takes a reading of the member and reports whether the check is done. A reading
// before its time does not count towards the number, but what it shows does: cards that
// were busy in between were busy. What is not quiet needs no further readings.
func (c *Check) Add(now time.Duration, see Sight) (done bool) {
	c.series.Add(now, see)
	if now >= c.next {
		c.taken++
		c.next = now + c.ask.Interval
	}
	return c.taken >= c.ask.Readings || c.taken > 0 && c.series.State() != api.CardsQuiet
}

// Nearly reports whether the next reading may confirm.
func (c *Check) Nearly() bool {
	return c.taken > 0 && c.taken == c.ask.Readings-1 && c.series.State() == api.CardsQuiet
}

// Note is the answer.
func (c *Check) Note() (round int64, f *api.Finding) { return c.ask.Round, c.series.Finding() }
