package when

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var now = time.Date(2026, 11, 21, 8, 54, 4, 0, time.UTC)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text  string
		tense Tense
		want  string
	}{
		{"2026-11-21T08:30:00", Past, "2026-11-21T08:30:00"},
		{"2026-11-21T08:30", Past, "2026-11-21T08:30:00"},
		{"2026-11-21-08:30", Past, "2026-11-21T08:30:00"},
		{"2026-11-21 08:30", Past, "2026-11-21T08:30:00"},
		{"2026-11-21", Past, "2026-11-21T00:00:00"},
		{"11/21", Past, "2026-11-21T00:00:00"},
		{"11/22", Past, "2025-11-22T00:00:00"},
		{"11/22", Future, "2026-11-22T00:00:00"},
		{"11/20", Future, "2027-11-20T00:00:00"},
		{"11/20/25", Past, "2025-11-20T00:00:00"},
		{"112025", Past, "2025-11-20T00:00:00"},
		{"1120", Past, "2026-11-20T00:00:00"},
		{"08:30", Past, "2026-11-21T08:30:00"},
		{"08:30", Future, "2026-11-22T08:30:00"},
		{"09:30:15", Future, "2026-11-21T09:30:15"},
		{"8:30pm", Past, "2026-11-21T20:30:00"},
		{"12:05 am", Past, "2026-11-21T00:05:00"},
		{"4pm", Future, "2026-11-21T16:00:00"},
		{"12 AM tomorrow", Future, "2026-11-22T00:00:00"},
		{"noon", Past, "2026-11-21T12:00:00"},
		{"midnight", Past, "2026-11-21T00:00:00"},
		{"midnight", Future, "2026-11-22T00:00:00"},
		{"teatime", Past, "2026-11-21T16:00:00"},
		{"fika", Past, "2026-11-21T15:00:00"},
		{"today", Past, "2026-11-21T00:00:00"},
		{"tomorrow", Future, "2026-11-22T00:00:00"},
		{"tomorrow 10:00", Future, "2026-11-22T10:00:00"},
		{"now", Past, "2026-11-21T08:54:04"},
		{"now-1hour", Past, "2026-11-21T07:54:04"},
		{"now-3", Past, "2026-11-21T08:54:01"},
		{"now+2hours", Future, "2026-11-21T10:54:04"},
		{"now-1days", Past, "2026-11-20T08:54:04"},
		{"now-2w", Past, "2026-11-07T08:54:04"},
		{"now+5291w", Future, "2128-04-17T08:54:04"},
		{"NOW + 5 minutes", Future, "2026-11-21T08:59:04"},
		{"uts1795250387", Past, "2026-11-21T08:39:47"},
		{"", Past, "2026-11-21T00:00:00"},
	} {
		got, err := Parse(c.text, now, c.tense)
		if err != nil || got.Format(Layout) != c.want {
			t.Errorf("%q: got %s, %v; want %s", c.text, got.Format(Layout), err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"bogus":      "Invalid time specification (pos=0): bogus",
		"0830am":     "Invalid time specification (pos=4): 0830am",
		"now+x":      "Invalid time specification (pos=4): now+x",
		"now+1moon":  "Invalid time specification (pos=5): now+1moon",
		"now+5292w":  "Invalid time specification (pos=8): now+5292w",
		"25:00":      "Invalid time specification (pos=5): 25:00",
		"13/01":      "Invalid time specification (pos=5): 13/01",
		"2026-13-01": "Invalid time specification (pos=10): 2026-13-01",
	} {
		if _, err := Parse(text, now, Past); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is written is read back as the same second.
func TestStampIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0).UTC()
		got, err := Parse(at.Format(Layout), now, Past)
		if err != nil || !got.Equal(at) {
			t.Fatalf("%s became %s, %v", at, got, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"now-1hour", "2026-11-21T08:30:00", "11/21/26", "08:30 pm", "midnight", "uts1", "112026", "T", "-", "now+99999999999weeks"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Parse(s, now, Past)
		if err != nil && !strings.HasPrefix(err.Error(), "Invalid time specification (pos=") {
			t.Fatalf("%v", err)
		}
		if err == nil && (got.Year() < -2000 || got.Year() > 12000) {
			t.Fatalf("%q is %s", s, got)
		}
	})
}

func TestSpans(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Span(0), "00:00:00"}, {Span(92 * time.Second), "00:01:32"}, {Span(25*time.Hour + time.Second), "1-01:00:01"}, {Span(-time.Second), "00:00:00"},
		{Limit(0), "UNLIMITED"}, {Limit(1200), "00:20:00"}, {Limit(7 * 86400), "7-00:00:00"},
		{CPUSpan(0), "00:00:00"}, {CPUSpan(0.0141), "00:00.014"}, {CPUSpan(61.5), "01:01.500"}, {CPUSpan(3601), "01:00:01"},
		{Stamp(time.Time{}, "Unknown"), "Unknown"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestWords: a span of time in a sentence has its two largest units; a clock has the day only where that is another one.
func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 s", -time.Second: "0 s", 300 * time.Microsecond: "1 ms", 250 * time.Millisecond: "250 ms", time.Second: "1 s", 90 * time.Second: "90 s",
		2 * time.Minute: "2 min", 130 * time.Second: "2 min 10 s", time.Hour: "1 h", 90 * time.Minute: "1 h 30 min", 24*time.Hour - time.Second: "23 h 59 min", 76 * time.Hour: "3 d 4 h", 48*time.Hour + time.Minute: "2 d"} {
		if got := Words(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	zone := time.FixedZone("", 3600)
	now := time.Date(2026, 3, 1, 0, 30, 0, 0, zone)
	for at, want := range map[time.Time]string{now.Add(time.Hour): "01:30:00", now.Add(time.Hour).UTC(): "01:30:00", now.Add(-time.Hour): "2026-02-28 23:30:00"} {
		if got := Clock(now, at); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}

func TestTold(t *testing.T) {
	zone := time.FixedZone("there", 2*60*60)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, zone)
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"begins at 2026-03-01T11:00:00Z (root)", "begins at 13:00:00 (root)"},
		{"2026-03-01T11:00:00Z, 2026-03-01T22:00:00.5Z.", "13:00:00, 2026-03-02 00:00:00."},
		{"at 2026-03-01T11:00:00+02:00: T, TIMEOUT 2026-03-01T", "at 11:00:00: T, TIMEOUT 2026-03-01T"},
		{"2026-03-01T11:00:00 has no zone", "2026-03-01T11:00:00 has no zone"},
		{"2026-13-01T11:00:00Z is none", "2026-13-01T11:00:00Z is none"},
		{"TTTTTTTTTTT ünïTcode 2026-03-01T11:00:00Z", "TTTTTTTTTTT ünïTcode 13:00:00"},
	} {
		if got := Told(now, c.text); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
