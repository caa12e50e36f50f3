package outpath

import (
	"strings"
	"testing"

	"gangd/pkg/api"
)

func TestExpand(t *testing.T) {
	index := 3
	v := Vars{Job: 15, ArrayJob: 12, ArrayIndex: &index, Name: "train", User: "ann", Node: "n7.example.org", NodeIndex: 1, Rank: 6, Restarts: 2}
	cases := []struct{ pattern, want string }{
		{"", ""},
		{"log.txt", "log.txt"},
		{"gang-%j.out", "gang-15.out"},
		{"%A_%a", "12_3"},
		{"logs/%x-%j.%t.out", "logs/train-15.6.out"},
		{"%u/%N/%n/%r", "ann/n7/1/2"},
		{"%4t", "0006"},
		{"%04t", "0006"},
		{"%1j", "15"},
		{"%10j", "0000000015"},
		{"%99j", "0000000015"},
		{"%99999999999999999999j", "0000000015"},
		{"%5x", "train"},
		{"%8x", "train"},
		{"100%%", "100%"},
		{"%%j", "%j"},
		{"%3%", "3%"},
		{"f-%3%x", "f-3train"},
		{"%q", "%q"},
		{"%4q", "4q"},
		{"%.out", "%.out"},
		{"%", "%"},
		{"x%4", "x4"},
		{"%J-%s-%b-%3b", "15-batch-3-003"},
		{`cli\(0\).%j.log`, "cli(0).%j.log"},
		{`a\\b\`, `a\b`},
	}
	for _, c := range cases {
		if got := Expand(c.pattern, v); got != c.want {
			t.Errorf("Expand(%q) = %q, want %q", c.pattern, got, c.want)
		}
	}
	if got := Expand("%A_%a", Vars{Job: 9}); got != "9_0" {
		t.Errorf("not of an array: %q", got)
	}
	if got := Expand("%x.out", Vars{Name: "../../etc/a"}); got != ".._.._etc_a.out" {
		t.Errorf("a name with slashes: %q", got)
	}
}

func TestPaths(t *testing.T) {
	cases := []struct {
		spec        api.Spec
		out, errOut string
	}{
		{api.Spec{Size: 1, WorkDir: "/w"}, "/w/gang-5.out", ""},
		{api.Spec{Size: 2, WorkDir: "/w"}, "/w/gang-5.1.out", ""},
		{api.Spec{Size: 2, WorkDir: "/w", Launch: api.LaunchBatch}, "/w/gang-5.out", ""},
		{api.Spec{Size: 2, WorkDir: "/w", Output: "logs/%t", Error: "/e/../%t.err"}, "/w/logs/1", "/1.err"},
		{api.Spec{Size: 1, WorkDir: "/w", Output: "/abs/%j"}, "/abs/5", ""},
	}
	for _, c := range cases {
		v := Vars{Job: 5, Rank: 1}
		if got := Output(&c.spec, v); got != c.out {
			t.Errorf("%+v: output %q, want %q", c.spec, got, c.out)
		}
		if got := Error(&c.spec, v); got != c.errOut {
			t.Errorf("%+v: error %q, want %q", c.spec, got, c.errOut)
		}
	}
}

func TestOfArray(t *testing.T) {
	for want, s := range map[string]api.Spec{"gang-%A_%a.out": {Size: 1}, "gang-%A_%a.%t.out": {Size: 2, Launch: api.LaunchRanks}} {
		if got := OfArray(&s); got != want {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("logs/%x-%4j.%t.out")
	f.Add("%%%")
	f.Add("%99999999999999999999999t")
	f.Fuzz(func(t *testing.T, pattern string) {
		got := Expand(pattern, Vars{Job: 1, Name: "n"})
		if !strings.Contains(pattern, "%") && got != pattern {
			t.Errorf("%q became %q", pattern, got)
		}
		if len(got) > len(pattern)+maxWidth*strings.Count(pattern, "%") {
			t.Errorf("%q grew to %d bytes", pattern, len(got))
		}
	})
}
