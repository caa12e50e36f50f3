package script

import (
	"time"

	"gangd/pkg/core/cmdline/when"
)

const beginForms = "write 16:00, now+1hour, tomorrow, noon tomorrow, 2030-01-20 or 2030-01-20T12:34:00"

// ParseBegin reads sbatch's --begin relative to now, in now's time zone. A time that is past begins at once.
func ParseBegin(s string, now time.Time) (time.Time, error) {
	t, err := when.Parse(s, now, when.Future)
	if err != nil || s == "" {
		return time.Time{}, bad("not a time", beginForms)
	}
	return t, nil
}
