package watchdog

import (
	"time"

	"gangd/pkg/api"
)

// Check carries out one [api.Check] of the cards of a member.
type Check struct {
	ask    api.Check
	series *Series
	next   time.Duration // when the next reading counts
	taken  int
}

// NewCheck begins a check; its first reading is due at once.
func NewCheck(ask api.Check, idle Idle, uuids []string, now time.Duration) *Check {
	return &Check{ask: ask, series: NewSeries(idle, uuids), next: now}
}

// Due is when the next reading is wanted.
func (c *Check) Due() time.Duration { return c.next }

// Add takes a reading of every card and reports whether the check is done. A reading
// before its time does not count towards the number, but what it shows does: cards that
// were busy in between were busy. What is not quiet needs no further readings.
func (c *Check) Add(now time.Duration, read func(uuid string) Reading) (done bool) {
	c.series.Add(read)
	if now >= c.next {
		c.taken++
		c.next = now + c.ask.Interval
	}
	return c.taken >= max(c.ask.Readings, 1) || c.taken > 0 && c.series.State() != api.CardsQuiet
}

// Nearly reports whether the next reading may confirm.
func (c *Check) Nearly() bool {
	return c.taken > 0 && c.taken == c.ask.Readings-1 && c.series.State() == api.CardsQuiet
}

// Note is the answer.
func (c *Check) Note() (round int64, f *api.Finding) { return c.ask.Round, c.series.Finding() }
