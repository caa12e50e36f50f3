package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// now is the wall clock, a variable so that the golden tables stand still.
var now = time.Now

// elapsed writes a duration as squeue does: [days-][hours:]minutes:seconds.
func elapsed(d time.Duration) string {
	if d < 0 {
		return "INVALID"
	}
	s := int64(d / time.Second)
	days, h, m, sec := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, h, m, sec)
	case h > 0:
		return fmt.Sprintf("%d:%02d:%02d", h, m, sec)
	}
	return fmt.Sprintf("%d:%02d", m, sec)
}

// timeLimit writes a limit as squeue does; 0 is no limit.
func timeLimit(seconds int64) string {
	if seconds == 0 {
		return "UNLIMITED"
	}
	return elapsed(time.Duration(seconds) * time.Second)
}

// stamp is a time as Slurm's commands write it.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "N/A"
	}
	return t.Local().Format("2006-01-02T15:04:05")
}

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

// bytesText writes a size in the largest binary unit, with one decimal where it says
// something: "80G", "22.5G", "512M", "0".
func bytesText(n int64) string {
	const units = "KMGTP"
	if n < 1024 {
		return strconv.FormatInt(n, 10)
	}
	v, unit := float64(n)/1024, 0
	for v >= 1000 && unit < len(units)-1 {
		v, unit = v/1024, unit+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + units[unit:unit+1]
}
