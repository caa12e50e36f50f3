package cron

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const layout = "2006-01-02 15:04:05 -0700"

func in(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestNext has the times of each line after another, as far as they are named.
func TestNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ expr, zone, after, want string }{
		"each minute":              {"* * * * *", "UTC", "2026-11-21 08:30:59 +0000", "2026-11-21 08:31:00 +0000, 2026-11-21 08:32:00 +0000"},
		"on the minute it has run": {"30 8 * * *", "UTC", "2026-11-21 08:30:00 +0000", "2026-11-22 08:30:00 +0000"},
		"list, range and step":     {"1-5,30 8-17/2 * * wed", "UTC", "2026-11-25 16:05:00 +0000", "2026-11-25 16:30:00 +0000, 2026-12-02 08:01:00 +0000"},
		"from a number by a step":  {"50/5 23 * * *", "UTC", "2026-11-25 00:00:00 +0000", "2026-11-25 23:50:00 +0000, 2026-11-25 23:55:00 +0000, 2026-11-26 23:50:00 +0000"},
		"over the year":            {"@yearly", "UTC", "2026-11-25 00:00:00 +0000", "2027-01-01 00:00:00 +0000"},
		"leap day over 2100":       {"0 0 29 feb *", "UTC", "2096-03-01 00:00:00 +0000", "2104-02-29 00:00:00 +0000"},
		"either day":               {"0 0 13 * 5", "UTC", "2026-11-01 00:00:00 +0000", "2026-11-06 00:00:00 +0000, 2026-11-13 00:00:00 +0000, 2026-11-20 00:00:00 +0000"},
		"a star by a step is one":  {"0 0 */10 * 5", "UTC", "2026-11-01 00:00:00 +0000", "2026-12-11 00:00:00 +0000"},
		"seven is Sunday":          {"0 0 * * 7", "UTC", "2026-11-18 00:00:00 +0000", "2026-11-22 00:00:00 +0000"},
		"to Sunday":                {"0 0 * * 6-7", "UTC", "2026-11-18 00:00:00 +0000", "2026-11-21 00:00:00 +0000, 2026-11-22 00:00:00 +0000, 2026-11-28 00:00:00 +0000"},

		"in the gap: once, behind it":    {"30 2 * * *", "Europe/Berlin", "2026-03-28 03:00:00 +0100", "2026-03-29 03:00:00 +0200, 2026-03-30 02:30:00 +0200"},
		"in the gap, each hour: no more": {"30 * * * *", "Europe/Berlin", "2026-03-29 01:00:00 +0100", "2026-03-29 01:30:00 +0100, 2026-03-29 03:30:00 +0200"},
		"gap of the west":                {"15 2 * * *", "America/New_York", "2026-03-08 00:00:00 -0500", "2026-03-08 03:00:00 -0400, 2026-03-09 02:15:00 -0400"},
		"twice: the first":               {"30 2 * * *", "Europe/Berlin", "2026-10-25 00:00:00 +0200", "2026-10-25 02:30:00 +0200, 2026-10-26 02:30:00 +0100"},
		"twice: not after the first":     {"30 2 * * *", "Europe/Berlin", "2026-10-25 02:30:00 +0200", "2026-10-26 02:30:00 +0100"},
		"twice, each hour: both":         {"30 * * * *", "Europe/Berlin", "2026-10-25 01:30:00 +0200", "2026-10-25 02:30:00 +0200, 2026-10-25 02:30:00 +0100, 2026-10-25 03:30:00 +0100"},
		"by half an hour":                {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00:00 +1100", "2026-04-05 01:45:00 +1100, 2026-04-06 01:45:00 +1030"},
		"midnight is in the gap":         {"0 0 * * *", "America/Havana", "2026-03-07 12:00:00 -0500", "2026-03-08 01:00:00 -0400, 2026-03-09 00:00:00 -0400"},
		"a day that was left out":        {"0 12 30 12 *", "Pacific/Apia", "2011-12-29 00:00:00 -1000", "2011-12-31 00:00:00 +1400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse(c.expr)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(layout, c.after)
			if err != nil {
				t.Fatal(err)
			}
			at = at.In(in(t, c.zone))
			var got []string
			for range strings.Split(c.want, ", ") {
				at = s.Next(at)
				got = append(got, at.Format(layout))
			}
			if g := strings.Join(got, ", "); g != c.want {
				t.Errorf("%s after %s: %s, want %s", c.expr, c.after, g, c.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"* * * *":        `has 4`,
		"60 * * * *":     `minute "60": want 0 to 59`,
		"* 24 * * *":     `hour "24": want 0 to 23`,
		"* * 0 * *":      `day of month "0": want 1 to 31`,
		"* * * foo *":    `month "foo": want 1 to 12`,
		"* * * * 8":      `day of week "8": want 0 to 7`,
		"*/0 * * * *":    `minute "*/0": want a step of 1 to 59 behind the /`,
		"5-1 * * * *":    `minute "5-1": the range runs backwards`,
		"1,,2 * * * *":   `minute "": want 0 to 59`,
		"0 0 30 2 *":     `names a day that never comes`,
		"0 0 31 4,6 *":   `names a day that never comes`,
		"@reboot":        `no such shortcut: @reboot`,
		"+1 * * * *":     `minute "+1": want 0 to 59`,
		"":               `has 0`,
		"* * * * jan-":   `day of week "jan-": want 0 to 7`,
		"* * * * mo\x00": `day of week`,
	} {
		if _, err := Parse(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", expr, err, want)
		}
	}
}

// TestNextIsTheFirst holds Next against a walk over all minutes, in zones that put their clocks on and back.
func TestNextIsTheFirst(t *testing.T) {
	t.Parallel()
	zones := []*time.Location{time.UTC, in(t, "Europe/Berlin"), in(t, "America/New_York"), in(t, "Australia/Lord_Howe")}
	rapid.Check(t, func(rt *rapid.T) {
		minute := rapid.SampledFrom([]string{"*", "*/7", "0", "13,47"}).Draw(rt, "minute")
		hour := rapid.SampledFrom([]string{"*", "*/3"}).Draw(rt, "hour")
		days := rapid.SampledFrom([]string{"* * *", "* * sun", "1-7,25-31 3,10 *"}).Draw(rt, "days")
		s, err := Parse(minute + " " + hour + " " + days)
		if err != nil {
			rt.Fatal(err)
		}
		// Around the days on which clocks are changed.
		start := rapid.SampledFrom([]string{"2026-03-07 22:10:03 +0000", "2026-03-28 22:10:00 +0000", "2026-04-04 09:00:00 +0000", "2026-10-24 20:59:59 +0000", "2026-11-01 00:00:00 +0000"}).Draw(rt, "start")
		at, _ := time.Parse(layout, start)
		at = at.Add(time.Duration(rapid.IntRange(0, 600).Draw(rt, "minutes")) * time.Minute).In(rapid.SampledFrom(zones).Draw(rt, "zone"))
		want := at.Truncate(time.Minute)
		for {
			want = want.Add(time.Minute)
			y, m, d := want.Date()
			if s.on(time.Date(y, m, d, 0, 0, 0, 0, time.UTC)) && s.hour&(1<<want.Hour()) != 0 && s.minute&(1<<want.Minute()) != 0 {
				break
			}
		}
		if got := s.Next(at); !got.Equal(want) {
			rt.Fatalf("%s %s %s after %s: %s, want %s", minute, hour, days, at, got, want)
		}
	})
}
