package cron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schedule says when a line is due. The zero value never is.
type Schedule struct {
	minute, hour, day, month, weekday uint64 // bits of the numbers that match
	everyHour                         bool   // the hours were given by a star
	anyDay, anyWeekday                bool   // a star; of two that are none either will do
}

type field struct {
	name     string
	min, max int
	names    []string // of the numbers from min on
}

var fields = []field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

func fieldNames() string {
	var names []string
	for i := range fields {
		names = append(names, fields[i].name)
	}
	return strings.Join(names, ", ")
}

// shortcuts are Slurm's; some of them are common to all crons.
var shortcuts = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *",
	"@midnight": "0 0 * * *", "@hourly": "0 * * * *", "@elevenses": "0 11 * * *", "@fika": "0 15 * * *", "@teatime": "0 16 * * *",
}

// Parse reads five fields, or a shortcut as @daily.
func Parse(expr string) (Schedule, error) {
	words := strings.Fields(expr)
	if len(words) == 1 && strings.HasPrefix(words[0], "@") {
		long, ok := shortcuts[strings.ToLower(words[0])]
		if !ok {
			return Schedule{}, fmt.Errorf("no such shortcut: %s", words[0])
		}
		words = strings.Fields(long)
	}
	if len(words) != len(fields) {
		return Schedule{}, fmt.Errorf("a time has %d fields (%s) or is a shortcut as @daily, %q has %d", len(fields), fieldNames(), expr,
			len(words))
	}
	var s Schedule
	for i, to := range []*uint64{&s.minute, &s.hour, &s.day, &s.month, &s.weekday} {
		var err error
		if *to, err = fields[i].parse(words[i]); err != nil {
			return Schedule{}, err
		}
	}
	if s.weekday&(1<<7) != 0 { // Sunday too
		s.weekday |= 1
	}
	s.everyHour, s.anyDay, s.anyWeekday = words[1][0] == '*', words[2][0] == '*', words[4][0] == '*'
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("%q names a day that never comes", expr)
	}
	return s, nil
}

// parse reads a list of numbers, ranges and stars, each with a step if it has one.
func (f *field) parse(text string) (bits uint64, err error) {
	bad := func(part, why string) error { return fmt.Errorf("%s %q: %s", f.name, part, why) }
	for part := range strings.SplitSeq(text, ",") {
		span, by, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(by); err != nil || step < 1 || step > f.max {
				return 0, bad(part, fmt.Sprintf("want a step of 1 to %d behind the /", f.max))
			}
		}
		low, high, ranged := strings.Cut(span, "-")
		first, last := f.min, f.max
		if f.names != nil && f.min == 0 {
			last = f.max - 1 // 0 and 7 are one day
		}
		if span != "*" {
			if first, err = f.number(low); err != nil {
				return 0, bad(part, err.Error())
			}
			switch {
			case ranged:
				if last, err = f.number(high); err != nil {
					return 0, bad(part, err.Error())
				}
			case !stepped:
				last = first
			}
			if last < first {
				return 0, bad(part, "the range runs backwards")
			}
		}
		for n := first; n <= last; n += step {
			bits |= 1 << n
		}
	}
	return bits, nil
}

// named is the place of the name that a word begins with; less than 0: with none.
func (f *field) named(word string) int {
	return slices.Index(f.names, strings.ToLower(word[:min(3, len(word))]))
}

func (f *field) number(word string) (int, error) {
	if i := f.named(word); i >= 0 && strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz") == "" {
		return f.min + i, nil
	}
	n, err := strconv.ParseUint(word, 10, 8)
	if err != nil || int(n) < f.min || int(n) > f.max {
		return 0, fmt.Errorf("want %d to %d", f.min, f.max)
	}
	return int(n), nil
}

// horizon: a 29th of February comes within eight years, also around 2100.
const horizon = 9

// Next is the first time after another at which the line is due, in that time's zone; zero: it never is.
func (s *Schedule) Next(after time.Time) time.Time {
	year, month, day := after.Date()
	// From the day before: one that begins in a gap is still to come when the date says it is over.
	for d := time.Date(year, month, day-1, 0, 0, 0, 0, time.UTC); d.Year() <= year+horizon; d = d.AddDate(0, 0, 1) {
		if s.on(d) {
			if at := s.within(d, after); !at.IsZero() {
				return at
			}
		}
	}
	return time.Time{}
}

// on says whether a line is due on a day.
func (s *Schedule) on(d time.Time) bool {
	if s.month&(1<<d.Month()) == 0 {
		return false
	}
	day, weekday := s.day&(1<<d.Day()) != 0, s.weekday&(1<<d.Weekday()) != 0
	if s.anyDay || s.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// within is the first time of a day that is after another; zero: none.
func (s *Schedule) within(d, after time.Time) (first time.Time) {
	plain := offset(d.AddDate(0, 0, -1), after.Location()) == offset(d.AddDate(0, 0, 2), after.Location())
	for h := range 24 {
		if s.hour&(1<<h) == 0 {
			continue
		}
		for m := range 60 {
			if s.minute&(1<<m) == 0 {
				continue
			}
			for _, t := range s.at(d.Add(time.Duration(h)*time.Hour+time.Duration(m)*time.Minute), after.Location()) {
				if t.After(after) && (first.IsZero() || t.Before(first)) {
					first = t
				}
			}
			if plain && !first.IsZero() {
				return first
			}
		}
	}
	return first
}

// at gives the times at which the clock of a zone shows what wall says, as far as the line is due then.
func (s *Schedule) at(wall time.Time, zone *time.Location) []time.Time {
	before, behind := offset(wall.Add(-24*time.Hour), zone), offset(wall.Add(24*time.Hour), zone)
	early, late := wall.Add(-max(before, behind)).In(zone), wall.Add(-min(before, behind)).In(zone)
	shows := func(t time.Time) bool {
		return t.Day() == wall.Day() && t.Hour() == wall.Hour() && t.Minute() == wall.Minute()
	}
	switch {
	case early.Equal(late):
		return []time.Time{early}
	case shows(early) && shows(late): // the clock is put back in between
		if s.everyHour {
			return []time.Time{early, late}
		}
		return []time.Time{early}
	case shows(early):
		return []time.Time{early}
	case shows(late):
		return []time.Time{late}
	case s.everyHour:
		return nil
	}
	gap, _ := late.ZoneBounds() // the clock was put forward over it
	return []time.Time{gap}
}

// offset is how far the clock of a zone is ahead when that of Greenwich shows a time.
func offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
