package script

import (
	"strconv"
	"strings"
	"time"
)

const beginForms = "write 16:00, now+1hour, tomorrow, 2030-01-20 or 2030-01-20T12:34:00"

// ParseBegin reads sbatch's --begin relative to now, in now's time zone.
func ParseBegin(s string, now time.Time) (time.Time, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch t {
	case "now":
		return now, nil
	case "today":
		return now, nil
	case "tomorrow":
		return day.AddDate(0, 0, 1), nil
	case "midnight":
		return day.AddDate(0, 0, 1), nil
	case "noon":
		return nextClock(day, 12*time.Hour, now), nil
	case "fika":
		return nextClock(day, 15*time.Hour, now), nil
	case "teatime":
		return nextClock(day, 16*time.Hour, now), nil
	}
	for name, from := range map[string]time.Time{"-today": day, "-tomorrow": day.AddDate(0, 0, 1)} { // noon-tomorrow
		if clock, ok := strings.CutSuffix(t, name); ok && (clock == "noon" || clock == "fika" || clock == "teatime") {
			return ParseBegin(clock, from)
		}
	}
	if rest, ok := strings.CutPrefix(t, "now+"); ok {
		return beginAfter(rest, now)
	}
	for _, layout := range []string{"2006-01-02t15:04:05", "2006-01-02t15:04", "2006-01-02", "01/02/06", "010206"} {
		if v, err := time.ParseInLocation(layout, t, now.Location()); err == nil {
			return v, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04", "3:04pm", "3:04 pm", "3pm"} {
		if v, err := time.Parse(layout, t); err == nil {
			clock := time.Duration(v.Hour())*time.Hour + time.Duration(v.Minute())*time.Minute + time.Duration(v.Second())*time.Second
			return nextClock(day, clock, now), nil
		}
	}
	if v, err := time.ParseInLocation("01/02", t, now.Location()); err == nil {
		v = v.AddDate(now.Year(), 0, 0)
		if v.Before(day) {
			v = v.AddDate(1, 0, 0)
		}
		return v, nil
	}
	return time.Time{}, bad("not a time", beginForms)
}

// nextClock is the next time the clock shows so much.
func nextClock(day time.Time, clock time.Duration, now time.Time) time.Time {
	at := day.Add(clock)
	if at.Before(now) {
		at = day.AddDate(0, 0, 1).Add(clock)
	}
	return at
}

// beginAfter reads what stands behind now+: 60 (seconds), 60seconds, 5minutes, 1hour,
// 2days, 1week.
func beginAfter(s string, now time.Time) (time.Time, error) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	count, err := strconv.Atoi(s[:n])
	if err != nil || count > 1e9 {
		return time.Time{}, bad("not a time", beginForms)
	}
	unit := unitOf(s[n:])
	switch s[n:] {
	case "":
		unit = time.Second
	case "w", "week", "weeks":
		unit = 7 * 24 * time.Hour
	}
	if unit == 0 || time.Duration(count) > maxDuration/unit {
		return time.Time{}, bad("not a time", beginForms)
	}
	return now.Add(time.Duration(count) * unit), nil
}
