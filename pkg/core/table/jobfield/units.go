package jobfield

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// Elapsed writes a duration as squeue does: [days-][hours:]minutes:seconds.
func Elapsed(d time.Duration) string {
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

// TimeLimit writes a limit as squeue does; 0 is no limit.
func TimeLimit(seconds int64) string {
	if seconds == 0 {
		return "UNLIMITED"
	}
	return Elapsed(time.Duration(seconds) * time.Second)
}

// Stamp is a time as Slurm's commands write it.
func Stamp(t time.Time) string { return when.Stamp(t, "N/A") }

// SafeUntil is until when a running gang is not preempted: "END" is as long as it runs.
func SafeUntil(j *api.Job) string {
	if j.SafeBy != "" && j.SafeUntil.IsZero() {
		return "END"
	}
	return Stamp(j.SafeUntil)
}

// BytesText writes a size in the largest binary unit, with one decimal where it says
// something: "80G", "22.5G", "512M", "0".
func BytesText(n int64) string {
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
