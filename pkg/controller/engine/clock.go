package engine

import (
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/core/gang"
)

type systemClock struct{}

// SystemClock is the machine's own: wall time for the record, CLOCK_BOOTTIME for timers,
// which goes on while the machine sleeps and does not jump.
func SystemClock() Clock { return systemClock{} }

func (systemClock) Now() gang.Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("engine: CLOCK_BOOTTIME: " + err.Error()) // every Linux since 2.6.39 has it
	}
	return gang.Instant{Wall: time.Now().UTC(), Mono: time.Duration(ts.Nano())}
}
