package accttable

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var all = []Column{{Name: "JobID", Width: -12}, {Name: "JobIDRaw", Width: -12}, {Name: "State", Width: 10},
	{Name: "Start", Width: 19, Fit: Chop}, {Name: "Elapsed", Width: 10, Fit: Whole}, {Name: "Def Acct", Width: 10, Key: "DefaultAccount"}}

// What sacct of Slurm 22.05.8 printed for these.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		format string
		style  Style
		values []string
		want   string
	}{
		{"jobid,state", Padded, []string{"1", "COMPLETED"}, "JobID             State \n------------ ---------- \n1             COMPLETED \n"},
		{"jobid%5,state%3", Padded, []string{"1.batch", "COMPLETED"}, "JobID Sta \n----- --- \n1.ba+ CO+ \n"},
		{"jobid%5", Padded, []string{"1"}, "JobID \n----- \n    1 \n"},
		{"state%-12", Padded, []string{"FAILED"}, "State        \n------------ \nFAILED       \n"},
		{"start%5,elapsed%4", Padded, []string{"2026-11-21T08:39:47", "00:05:00"}, "Start Elap \n----- ---- \n2026- 00:05:00 \n"},
		{"jobid%,state%x", Padded, []string{"1", "FAILED"}, "  \n  \n  \n"},
		{"jobid,,state", Padded, []string{"1"}, "JobID        \n------------ \n1            \n"},
		{"jobi, stat", Padded, []string{"1", "FAILED"}, "JobID             State \n------------ ---------- \n1                FAILED \n"},
		{"jobid%5,state%3", Parsable, []string{"1.batch", "COMPLETED"}, "JobID|State|\n1.batch|COMPLETED|\n"},
		{"jobid,state", Parsable2, []string{"1", "COMPLETED"}, "JobID|State\n1|COMPLETED\n"},
		{"defaulta", Parsable2, []string{"x"}, "Def Acct\nx\n"},
	} {
		chosen, err := Parse(c.format, all)
		if err != nil {
			t.Fatalf("%s: %v", c.format, err)
		}
		table := &Table{Columns: chosen, Style: c.style}
		if got := table.Header() + table.Row(c.values); got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.format, got, c.want)
		}
	}
}

func TestDelimiter(t *testing.T) {
	chosen, _ := Parse("jobid,state", all)
	table := &Table{Columns: chosen, Style: Parsable2, Delimiter: ", "}
	if got := table.Row([]string{"1", "FAILED"}); got != "1, FAILED\n" {
		t.Errorf("%q", got)
	}
}

func TestUnknownColumn(t *testing.T) {
	_, err := Parse("jobid,foo%3", all)
	if u, ok := err.(*UnknownError); !ok || u.Name != "foo" {
		t.Errorf("%v", err)
	}
}

func TestNames(t *testing.T) {
	want := "JobID               JobIDRaw            State               Start              \nElapsed             Def Acct           \n"
	if got := Names(all); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// A padded column that may be cut is as wide as it was asked for, whatever stands in it.
func TestWidthHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(-60, 60).Draw(t, "width")
		v := rapid.StringMatching(`[a-zé0-9 :+\-]{0,80}`).Draw(t, "value")
		got := pad(v, &Column{Width: width, Fit: Cut})
		if n := utf8.RuneCountInString(got); n != abs(width) {
			t.Fatalf("%q is %d wide, want %d", got, n, abs(width))
		}
		switch {
		case utf8.RuneCountInString(v) > abs(width) && width != 0:
			if !strings.HasSuffix(got, "+") {
				t.Fatalf("%q was cut to %q without a mark", v, got)
			}
		case width > 0 && !strings.HasSuffix(got, v), width < 0 && !strings.HasPrefix(got, v):
			t.Fatalf("%q became %q", v, got)
		}
	})
}

// Whatever is written after --format, it is read or refused by name, and no column is wider
// than the bound.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"jobid", "jobid%10,state%-3", "%", "jobid%99999999999999999999", "jobid%-", ",", "State%1x,foo"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		chosen, err := Parse(s, all)
		if _, ok := err.(*UnknownError); err != nil && !ok {
			t.Fatalf("%v", err)
		}
		for _, c := range chosen {
			if abs(c.Width) > maxWidth {
				t.Fatalf("%q: %d wide", s, c.Width)
			}
		}
		(&Table{Columns: chosen}).Header()
	})
}
