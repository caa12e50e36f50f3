package slurm

import (
	"os"
	"time"

	"gangd/pkg/core/cmdline/when"
)

// Stamper is how SLURM_TIME_FORMAT wants times to be written: as usual, relative to today, or
// by a format of strftime(3). It gives nil for the usual way.
func Stamper(format string, now func() time.Time) func(time.Time) string {
	switch format {
	case "", "standard":
		return nil
	case "relative":
		return func(t time.Time) string { return relative(t.Local(), now().Local()) }
	}
	return func(t time.Time) string { return strftime(format, t.Local()) }
}

// relative is the time alone for today; a word and hours and minutes for the days around it;
// the date for this year; the date and the year for another.
func relative(t, now time.Time) string {
	day := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	days := int(day(t).Sub(day(now)) / (24 * time.Hour))
	clock := t.Format("15:04")
	switch {
	case days == 0:
		return t.Format("15:04:05")
	case days == 1:
		return "Tomorr " + clock
	case days == -1:
		return "Ystday " + clock
	case days > 1 && days < 7:
		return t.Format("Mon ") + clock
	case t.Year() == now.Year():
		return t.Format("_2 Jan ") + clock
	}
	return t.Format("_2 Jan 2006")
}

// Stamp is a time as Slurm's commands write it, which SLURM_TIME_FORMAT has a say in; a zero one is what none says.
func Stamp(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	if write := Stamper(os.Getenv("SLURM_TIME_FORMAT"), time.Now); write != nil {
		return write(t)
	}
	return when.Stamp(t, none)
}
