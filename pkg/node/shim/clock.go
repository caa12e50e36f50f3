package shim

import (
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/core/supervise"
)

func now() supervise.Instant {
	return supervise.Instant{Mono: clock(unix.CLOCK_MONOTONIC), Boot: clock(unix.CLOCK_BOOTTIME)}
}

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("clock_gettime: " + err.Error()) // both clocks are there since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}
