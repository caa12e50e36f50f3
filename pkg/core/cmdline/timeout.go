package cmdline

import (
	"errors"
	"strconv"
	"time"
)

// TimeoutEnv is the time-out of a command where no option says it, and of all commands by Slurm's
// names, which have no such option.
const TimeoutEnv = "GANG_TIMEOUT"

// TimeoutHelp says what --timeout=TIME does.
const TimeoutHelp = "give up when the controller is silent for so long: 30s, 2m, off (10s)"

// maxTimeout is a month; who wants more says off.
const maxTimeout = 31 * 24 * time.Hour

// ParseTimeout reads a time-out: 30s, 2m, 30 (seconds), or off, which is 0.
func ParseTimeout(text string) (time.Duration, error) {
	if text == "off" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if n, bad := strconv.ParseUint(text, 10, 32); bad == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < time.Millisecond || d > maxTimeout {
		return 0, errors.New("want a time of at most 31 days, as in 30s or 2m, or off")
	}
	return d, nil
}
