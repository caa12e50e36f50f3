package cron

import (
	"fmt"
	"strings"
	"testing"
)

// show is an entry in one line.
func show(e *Entry) string {
	return fmt.Sprintf("%d-%d %s [%s] %q %q %q", e.First, e.Last, e.Expr, e.Zone, e.Command, e.Env, e.Options)
}

func TestTable(t *testing.T) {
	t.Parallel()
	entries, mistakes := Table(`# a comment
DIR=/home/ada
 NAME = "with blanks "
#SCRON -t 5
# between

#GANG --gpus=1
  @Hourly   $DIR/run  --x=1
#DISABLED: * * * * * not me
CRON_TZ=Europe/Berlin
NAME=
0 2 * * *	a=b; echo "$a"
`)
	if mistakes != nil {
		t.Fatal(mistakes)
	}
	want := []string{
		`4-8 @Hourly [] "$DIR/run  --x=1" ["DIR=/home/ada" "NAME=with blanks "] "\n\n\n#SBATCH -t 5\n\n\n#GANG --gpus=1"`,
		`12-12 0 2 * * * [Europe/Berlin] "a=b; echo \"$a\"" ["DIR=/home/ada" "NAME="] ""`,
	}
	for i := range entries {
		if got := show(&entries[i]); i >= len(want) || got != want[i] {
			t.Errorf("entry %d is\n%s, want\n%s", i, got, want[min(i, 1)])
		}
	}
	if len(entries) != len(want) {
		t.Errorf("%d entries", len(entries))
	}
	if got, want := entries[0].Script(), "#!/bin/sh\n#SBATCH -t 5\n#GANG --gpus=1\n# due: @Hourly\n$DIR/run  --x=1\n"; got != want {
		t.Errorf("script %q, want %q", got, want)
	}
}

func TestTableNamesEachBadLine(t *testing.T) {
	t.Parallel()
	const needs = `1-1 a line has 5 times (minute, hour, day of month, month, day of week), or a shortcut as @daily, and then its command; of these times `
	for text, want := range map[string]string{
		"* * * * * ok\n61 * * * * x\n#SCRON -t 5\n* * * * *\n@never x\n": `2-2 minute "61": want 0 to 59; 3-4 there is no command behind the time; 5-5 no such shortcut: @never`,
		"#GCRON --time=5\n@daily x\n":                                    `1-1 #GCRON is no word for options here: write #GANG, or #SCRON for those of sbatch`,
		"#SCRON -t 5\n# nothing\n":                                       `1-2 options with no line behind them that they are for`,
		"hello\n":                                                        needs + `"hello" has 0`,
		"\n 5 4 * * /usr/bin/run me\n":                                   `2-2` + needs[3:] + `"5 4 * * /usr/bin/run me" has 4`,
		"*/5 * * sunset":                                                 needs + `"*/5 * * sunset" has 4`,
		"* * * true":                                                     needs + `"* * * true" has 3`,
		"* * * *":                                                        needs + `"* * * *" has 4`,
		"* * * * 8 x":                                                    `1-1 day of week "8": want 0 to 7`,
		"* * * foo * x":                                                  `1-1 month "foo": want 1 to 12`,
		strings.Repeat("@daily x\n", MaxLines+1):                         `101-101 the table has 101 lines with a time, and may have 100`,
		"#" + strings.Repeat("x", MaxBytes):                              `1-1 the table has 65537 bytes, and may have 65536`,
	} {
		_, mistakes := Table(text)
		var got []string
		for _, m := range mistakes {
			got = append(got, fmt.Sprintf("%d-%d %s", m.First, m.Last, m.Text))
		}
		if g := strings.Join(got, "; "); g != want {
			t.Errorf("%.60q: %q, want %q", text, g, want)
		}
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	if got, want := Mark("a\nb\nc\nd", "#BAD: ", 2, 3), "a\n#BAD: b\n#BAD: c\nd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Mark("a\n", "#BAD: ", 1, 9), "#BAD: a\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
