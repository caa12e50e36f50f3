package mutate

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const fixture = "gangd/pkg/lab/mutate/testdata/fare"

// What becomes of each mutant of a small package whose tests are known.
func TestFates(t *testing.T) {
	packages, err := Load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	p := packages[0]
	s, err := Build(p, Tests{Package: fixture}, p.Mutants, t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	s.patience = time.Second
	if err := s.Learn(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Broken, []string{"TestBroken"}) {
		t.Errorf("tests that fail by themselves: %v", s.Broken)
	}
	got := map[string]Fate{}
	s.Try(func(r Result) {
		got[fmt.Sprintf("%s: %s %s", r.Mutant.Func, r.Mutant.Operator, r.Mutant.What)] = r.Fate
	})
	want := map[string]Fate{
		"Price: off by one 2":                 Killed,
		"Price: negate zones > 3":             Killed,
		"Price: bound zones > 3":              Killed,
		"Price: off by one 3":                 Killed,
		"Price: skip p--":                     Killed,
		"Price: drop child":                   Killed,
		"Price: drop !dog":                    Unseen, // no child rides
		"Price: drop case p > 100":            Unseen, // no price comes past p > 100
		"Price: off by one 0":                 Unseen,
		"Price: bound p > 100":                Survived,
		"Price: off by one 100":               Survived,
		"Price: off by one 90":                Unseen,
		"Price: skip p = 90":                  Unseen,
		"Price: return zero return max(p, 1)": Killed,
		"Price: min max max(p, 1)":            Killed,
		"Price: off by one 1":                 Killed,
		"Rides: negate sum >= 2":              Killed,
		"Rides: bound sum >= 2":               Killed,
		"Rides: off by one 2":                 Killed,
		"Rides: skip sum -= 2":                TimedOut,
		"Rides: skip n++":                     Killed,
		"Rides: return zero return n":         Killed,
		"Forgotten: negate zones == 0":        Unseen,
		"Forgotten: off by one 0":             Unseen,
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if got[k] != want[k] {
			t.Errorf("%s: %s, want %q", k, got[k], want[k])
		}
	}
	for k := range want {
		if got[k] == "" {
			t.Errorf("%s was not tried", k)
		}
	}
}

// With all mutants off the source is what it was, line by line.
func TestLinesStay(t *testing.T) {
	packages, err := Load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	p := packages[0]
	out := p.rewritten(p.Mutants)
	for path, source := range p.files {
		if a, b := strings.Count(string(source), "\n"), strings.Count(string(out[path]), "\n"); a != b {
			t.Errorf("%s has %d lines, was %d", path, b, a)
		}
	}
}

func TestDraw(t *testing.T) {
	packages, err := Load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	keys := func(n int, seed uint64) []string {
		var out []string
		for _, m := range Draw(packages, n, seed)[fixture] {
			out = append(out, m.Key())
		}
		return out
	}
	if a, b := keys(5, 1), keys(5, 1); len(a) != 5 || !slices.Equal(a, b) {
		t.Errorf("the same seed drew %v and %v", a, b)
	}
	if a, b := keys(5, 1), keys(5, 2); slices.Equal(a, b) {
		t.Errorf("two seeds drew %v", a)
	}
	all := keys(1000, 1)
	// One mutant less in the source: the others keep their lots.
	drawn := keys(5, 1)
	packages[0].Mutants = slices.DeleteFunc(packages[0].Mutants, func(m *Mutant) bool { return !slices.Contains(drawn, m.Key()) && m.Key() == all[0] })
	if again := keys(5, 1); all[0] != drawn[0] && !slices.Equal(again, drawn) {
		t.Errorf("drew %v, and after a change elsewhere %v", drawn, again)
	}
}

func TestBugs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.go")
	if err := os.WriteFile(path, []byte("package a\n\nfunc f(n int) bool { return n > 0 }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bugs := map[string][]Change{"one": {{"a.go", "n > 0", "n > 0 || bug()"}}, "two": {{"a.go", "n >= 0", "bug()"}}}
	source, err := Bugs(dir, []string{"one"}, bugs)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(source[path]); !strings.Contains(got, `n > 0 || bugOn("one")`) {
		t.Errorf("changed source: %s", got)
	}
	if got := string(source[filepath.Join(dir, "bug_switch.go")]); !strings.HasPrefix(got, "package a\n") {
		t.Errorf("switch: %s", got)
	}
	if _, err := Bugs(dir, []string{"one", "two"}, bugs); err == nil || !strings.Contains(err.Error(), `bug two: a.go has "n >= 0" 0 times`) {
		t.Errorf("a text that is not there: %v", err)
	}
}

// A row of equals that matches no mutant any more is taken out.
func TestEqualsAreInTheSource(t *testing.T) {
	var paths []string
	for key := range equals {
		file, _, _ := strings.Cut(key, " ")
		paths = append(paths, "gangd/"+filepath.ToSlash(filepath.Dir(file)))
	}
	if len(paths) == 0 {
		t.Skip("none")
	}
	slices.Sort(paths)
	packages, err := Load(slices.Compact(paths)...)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, p := range packages {
		for _, m := range p.Mutants {
			there[m.Key()] = true
		}
	}
	for key := range equals {
		if !there[key] {
			t.Errorf("no such mutant: %s", key)
		}
	}
}
