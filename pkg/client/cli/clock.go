package cli

import (
	"strconv"
	"time"

	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/table/jobfield"
)

// now is the wall clock, which the golden tables stop.
func now() time.Time { return jobfield.Now() }

// ago tells how long something has been so, for people: "3s", "12m", "5h", "4d".
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(max(d, 0)/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + "d"
}

// told is a text of the controller with its times as they are written here.
func told(text string) string { return when.Told(now().Local(), text) }
