package cmdline

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var grammar = Grammar[struct{}]{Options: []Option[struct{}]{
	{Long: "start"}, {Long: "steps", Short: 's', Kind: Optional}, {Long: "states", Short: 't', Kind: Required},
	{Long: "user", Short: 'u', Kind: Required}, {Long: "me"}, {Long: "noheader", Short: 'h'}, {Long: "long", Short: 'l'},
	{Long: "jobs", Short: 'j', Names: "job jobs", Kind: Optional},
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
		if !errors.As(err, &e) || e.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.args, err, c.want)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
		rest []string
	}{
		{[]string{"-hlu", "me", "a"}, []string{"noheader", "long", "user=me"}, []string{"a"}},
		{[]string{"a", "-uroot", "b"}, []string{"user=root"}, []string{"a", "b"}},
		{[]string{"-j", "12"}, []string{"jobs"}, []string{"12"}},
		{[]string{"-j12", "--jo=13", "--job"}, []string{"jobs=12", "jobs=13", "jobs"}, nil},
		{[]string{"--", "-u"}, nil, []string{"-u"}},
		{[]string{"-", "--user=", "--stat", "R"}, []string{"user=", "states=R"}, []string{"-"}},
	} {
		settings, rest, err := grammar.Parse(c.args)
		var got []string
		for _, s := range settings {
			text := s.Option.Long
			if s.Given {
				text += "=" + s.Value
			}
			got = append(got, text)
		}
		if err != nil || !slices.Equal(got, c.want) || !slices.Equal(rest, c.rest) {
			t.Errorf("%q: %v %q %v, want %v %q", c.args, got, rest, err, c.want, c.rest)
		}
	}
	stop := Grammar[struct{}]{Options: grammar.Options, Stop: true}
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

// TestTyped: what a shell completes at the end of a line.
func TestTyped(t *testing.T) {
	options := []Option[struct{}]{{Long: "partition", Short: 'p', Kind: Required}, {Long: "verbose", Short: 'v'}, {Long: "jobs", Short: 'j', Kind: Optional}}
	for _, tt := range []struct {
		args, word  string
		long, value string
		operand     bool
	}{
		{"", "", "", "", false},
		{"", "--par", "", "", false},
		{"-p", "", "partition", "", false},
		{"--partition", "ma", "partition", "ma", false},
		{"", "--partition=ma", "partition", "ma", false},
		{"", "-pma", "partition", "ma", false},
		{"", "-vpma", "partition", "ma", false},
		{"-v", "x", "", "", false},
		{"-p main", "--par", "", "", false},
		{"-p main -p", "g", "partition", "g", false},
		{"-pmain", "", "", "", false},
		{"-v job.sh -p", "", "", "", true},
		{"-- -p", "", "", "", true},
	} {
		o, value, operand := Typed(options, strings.Fields(tt.args), tt.word)
		long := ""
		if o != nil {
			long = o.Long
		}
		if long != tt.long || value != tt.value || operand != tt.operand {
			t.Errorf("%q %q: option %q, value %q, operand %v", tt.args, tt.word, long, value, operand)
		}
	}
}
