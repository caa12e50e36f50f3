package getopt

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var grammar = Grammar{Options: []Option{
	{Long: "start"}, {Long: "steps", Short: 's', Arg: Optional}, {Long: "states", Short: 't', Arg: Required},
	{Long: "user", Short: 'u', Arg: Required}, {Long: "me"}, {Long: "noheader", Short: 'h'}, {Long: "long", Short: 'l'},
	{Long: "job", Arg: Optional, Name: "jobs"}, {Long: "jobs", Short: 'j', Arg: Optional},
}}

// TestMessages holds the C library's words, as Slurm 22.05's commands print them.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-@", "-h"}, "invalid option -- '@'"},
		{[]string{"-h@"}, "invalid option -- '@'"},
		{[]string{"--st"}, "option '--st' is ambiguous; possibilities: '--start' '--steps' '--states'"},
		{[]string{"--st=1"}, "option '--st=1' is ambiguous; possibilities: '--start' '--steps' '--states'"},
		{[]string{"--me=1"}, "option '--me' doesn't allow an argument"},
		{[]string{"--user"}, "option '--user' requires an argument"},
		{[]string{"--us"}, "option '--user' requires an argument"},
		{[]string{"-u"}, "option requires an argument -- 'u'"},
		{[]string{"--foo=1"}, "unrecognized option '--foo=1'"},
	} {
		_, _, err := grammar.Parse(c.args)
		var e *Error
		if !errors.As(err, &e) || e.Text != c.want {
			t.Errorf("%q: %v, want %s", c.args, err, c.want)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []Setting
		rest []string
	}{
		{[]string{"-hlu", "me", "a"}, []Setting{{"noheader", "", false, true}, {"long", "", false, true}, {"user", "me", true, true}}, []string{"a"}},
		{[]string{"a", "-uroot", "b"}, []Setting{{"user", "root", true, true}}, []string{"a", "b"}},
		{[]string{"-j", "12"}, []Setting{{"jobs", "", false, true}}, []string{"12"}},
		{[]string{"-j12", "--jo=13", "--job"}, []Setting{{"jobs", "12", true, true}, {"jobs", "13", true, false}, {"jobs", "", false, false}}, nil},
		{[]string{"--", "-u"}, nil, []string{"-u"}},
		{[]string{"-", "--user=", "--stat", "R"}, []Setting{{"user", "", true, false}, {"states", "R", true, false}}, []string{"-"}},
	} {
		got, rest, err := grammar.Parse(c.args)
		if err != nil || !slices.Equal(got, c.want) || !slices.Equal(rest, c.rest) {
			t.Errorf("%q: %v %q %v, want %v %q", c.args, got, rest, err, c.want, c.rest)
		}
	}
	stop := Grammar{Options: grammar.Options, Stop: true}
	if got, rest, err := stop.Parse([]string{"-h", "job.sh", "-u", "x"}); err != nil || len(got) != 1 || len(rest) != 3 {
		t.Errorf("%v %q %v", got, rest, err)
	}
}

// TestAnyWords: no command line loses a word that is not an option, and none stops the
// program.
func TestAnyWords(t *testing.T) {
	word := rapid.OneOf(rapid.StringMatching(`-{0,2}[a-z=]{0,6}`), rapid.SampledFrom([]string{"--", "-", "-h", "--user", "--job=3", "-tR"}))
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOfN(word, 0, 6).Draw(t, "args")
		settings, rest, err := grammar.Parse(args)
		if err != nil {
			return
		}
		taken := 0
		for _, s := range settings {
			if s.Name == "" {
				t.Fatalf("%q: a setting without a name", args)
			}
			taken++
		}
		for _, r := range rest {
			if !slices.Contains(args, r) {
				t.Fatalf("%q: %q comes from nowhere", args, r)
			}
		}
		if len(args) > 0 && taken == 0 && len(rest) == 0 && !slices.Contains(args, "--") {
			t.Fatalf("%q: all words are gone", args)
		}
	})
}
