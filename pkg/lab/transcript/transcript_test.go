package transcript

import (
	"os"
	"strings"
	"testing"
	"time"
)

// played is a test that notes what is said of it.
type played struct {
	testing.TB
	name   string
	ends   []func()
	errors []string
}

func (p *played) Name() string              { return p.name }
func (p *played) Helper()                   {}
func (p *played) Failed() bool              { return false }
func (p *played) Skipped() bool             { return false }
func (p *played) Cleanup(f func())          { p.ends = append(p.ends, f) }
func (p *played) Errorf(_ string, a ...any) { p.errors = append(p.errors, a[0].(string)) }
func (p *played) Fatal(...any)              { panic("fatal") }

// play writes down parts, and gives the errors.
func play(name string, update bool, parts ...string) []string {
	p := &played{name: name}
	for _, text := range parts {
		Of(p, update).Part().Printf("%s", text)
	}
	for _, f := range p.ends {
		f()
	}
	return p.errors
}

// TestWhatIsKept: a section is kept for each test, its parts in any order; another story is an error, and what is too long
// is none.
func TestWhatIsKept(t *testing.T) {
	t.Chdir(t.TempDir())
	const file = "testdata/transcripts/TestA.txt"
	play("TestA", true, "b", "a\nc")
	play("TestA/sub", true, "d")
	if raw, err := os.ReadFile(file); err != nil || string(raw) != "=== TestA\na\nc\n\nb\n=== TestA/sub\nd\n" {
		t.Fatalf("%q %v", raw, err)
	}
	for _, tt := range []struct {
		name  string
		parts []string
		fails bool
	}{
		{"TestA", []string{"a\nc", "b"}, false},
		{"TestA", []string{"b", "a\nc"}, false},
		{"TestA", []string{"b"}, true},
		{"TestA", []string{"b", "a\nd"}, true},
		{"TestA/sub", []string{"d"}, false},
		{"TestA/other", []string{"d"}, true},
		{"TestB", []string{"d"}, true},
		{"TestB", []string{strings.Repeat("d\n", Most-1)}, true},
		{"TestB", []string{strings.Repeat("d\n", Most)}, false},
	} {
		if errs := play(tt.name, false, tt.parts...); (len(errs) > 0) != tt.fails {
			t.Errorf("%s %.20q: %q", tt.name, tt.parts, errs)
		}
	}
	play("TestA", true)
	play("TestA", true, strings.Repeat("d\n", Most))
	play("TestA/sub", true, strings.Repeat("d\n", Most))
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a file of nothing: %v", err)
	}
}

// TestDroppedPart: a part that is taken out is not kept.
func TestDroppedPart(t *testing.T) {
	tr := &Transcript{}
	tr.Part().Printf("a")
	b := tr.Part()
	b.Printf("b")
	b.Drop()
	if got := tr.String(); got != "a\n" {
		t.Errorf("%q", got)
	}
}

type inner struct{ N int }

// TestPrinter: only what is not zero is written, moments from one on, equal neighbours once.
func TestPrinter(t *testing.T) {
	since := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	zero, one := 0, 1
	p := Printer{Since: since}
	for want, v := range map[string]any{
		"": struct{ A int }{},
		"{A:1 B:x}": struct {
			A, Z int
			B    string
		}{A: 1, B: "x"},
		`"a b"`: "a b",
		"1m0s":  since.Add(time.Minute),
		"2s":    2 * time.Second,
		"{P:0}": struct{ P *int }{&zero},
		"{P:1}": struct{ P *int }{&one},
		"{N:3 M:4}": struct {
			inner
			M int
		}{inner{3}, 4},
		"[1 1 2]":      []int{1, 1, 2},
		"[2x{N:5} {}]": []inner{{5}, {5}, {}},
		"[a:1 b:0]":    map[string]int{"b": 0, "a": 1},
		`"#!\n"`:       []byte("#!\n"),
		"{T:-1s}":      struct{ T time.Time }{since.Add(-time.Second)},
	} {
		if got := p.Value(v); got != want {
			t.Errorf("%+v: %s, want %s", v, got, want)
		}
	}
	if got := p.Fields(&inner{2}); len(got) != 1 || got[0] != (Field{"N", "2"}) {
		t.Errorf("%v", got)
	}
}
