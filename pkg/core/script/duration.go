package script

import (
	"strconv"
	"strings"
	"time"
)

// maxDuration bounds every time: ten years is beyond any job and far from overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

const timeForms = "write 90 (minutes), 90m, 12:00:00, 3-00:00:00 or 1d12h"

// ParseTime reads a time limit: Slurm's minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM and
// D-HH:MM:SS, and units (90m, 12h, 1d12h, 45s). Fields may run over (90:00 is 90
// minutes). Seconds are kept: sbatch rounds up to a minute.
func ParseTime(s string) (time.Duration, error) { return parseDuration(s, time.Minute) }

// ParseSeconds reads the same forms where a plain number means seconds (a lead, a grace).
func ParseSeconds(s string) (time.Duration, error) {
	d, err := parseDuration(s, time.Second)
	if err != nil {
		err.(*valueError).hint = "write 120 (seconds), 2m or 1h"
	}
	return d, err
}

func parseDuration(s string, plain time.Duration) (time.Duration, error) {
	t := strings.TrimSpace(s)
	switch {
	case t == "":
		return 0, bad("the time is empty", timeForms)
	case strings.HasPrefix(t, "-"):
		return 0, bad("a time can't be negative", timeForms)
	case strings.ContainsAny(t, "smhdSMHD"):
		return unitDuration(t)
	}
	days, clock, hasDays := strings.Cut(t, "-")
	if !hasDays {
		days, clock = "0", t
	}
	f := strings.Split(clock, ":")
	if len(f) > 3 {
		return 0, bad("not a time", timeForms)
	}
	// The unit of the first field: behind days always hours, else by the number of fields.
	unit := [...]time.Duration{plain, time.Minute, time.Hour}[len(f)-1]
	if hasDays {
		unit = time.Hour
	}
	d, err := times(days, 24*time.Hour)
	for i := 0; err == nil && i < len(f); i++ {
		var part time.Duration
		part, err = times(f[i], unit)
		d += part
		unit /= 60
	}
	if err == nil && d > maxDuration {
		err = bad("longer than ten years", timeForms)
	}
	if err != nil {
		return 0, err
	}
	return d, nil
}

// times is digits x unit, within bounds that keep a sum of four from overflowing.
func times(digits string, unit time.Duration) (time.Duration, error) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, bad("not a time", timeForms)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > int64(maxDuration/unit) {
		return 0, bad("longer than ten years", timeForms)
	}
	return time.Duration(n) * unit, nil
}

// unitDuration reads 90m, 1h30m, 2d, 90min, 12hours.
func unitDuration(s string) (time.Duration, error) {
	var sum time.Duration
	last := maxDuration + 1 // units shrink from left to right, each once
	for s != "" {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		e := n
		for e < len(s) && (s[e] < '0' || s[e] > '9') {
			e++
		}
		unit := unitOf(strings.ToLower(s[n:e]))
		if n == 0 || unit == 0 || unit >= last {
			return 0, bad("not a time", timeForms)
		}
		part, err := times(s[:n], unit)
		if err != nil {
			return 0, err
		}
		sum += part
		last, s = unit, s[e:]
	}
	if sum > maxDuration {
		return 0, bad("longer than ten years", timeForms)
	}
	return sum, nil
}

func unitOf(s string) time.Duration {
	switch s {
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	}
	return 0
}

// formatTime writes a duration the way people here write one: 90s, 2m, 1h30m, 3d.
func formatTime(d time.Duration) string {
	if d <= 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range []struct {
		d time.Duration
		s string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / u.d; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10))
			b.WriteString(u.s)
			d %= u.d
		}
	}
	return b.String()
}
