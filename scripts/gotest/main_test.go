package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A module of its own with a test of each kind: what is printed, what is run once more, what the
// run ends with, and what is said of skipped and of slow tests.
func TestGotest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26.0\n",
		"a/a_test.go": `package a
import ("os"; "testing"; "time")
func TestGood(t *testing.T) { t.Log("not shown"); time.Sleep(2 * time.Second) }
func TestFlaky(t *testing.T) {
	if f, err := os.OpenFile("seen", os.O_CREATE|os.O_EXCL, 0o600); err == nil { f.Close(); t.Error("the first time") }
}
func TestSkips(t *testing.T) { t.Run("part", func(t *testing.T) { t.Skip("no such device: x") }) }
`,
		"b/b_test.go": `package b
import "testing"
func TestBad(t *testing.T) { t.Run("deep", func(t *testing.T) { t.Error("always") }) }
func TestFine(t *testing.T) {}
`,
		"c/c_test.go": `package c
import "testing"
func TestPanics(t *testing.T) { panic("ouch") }
`,
		"d/d_test.go": `package d
import ("os"; "testing")
func TestSays(t *testing.T) { t.Run("part", func(t *testing.T) { if os.Getenv("BARE") != "" { t.Skip("not installed: x") } }) }
func TestStillLacks(t *testing.T) { t.Skip("not installed: y") }
func TestFailsWithIt(t *testing.T) { if os.Getenv("BARE") != "" { t.Skip("not installed: z") }; t.Error("z is broken") }
func TestHides(t *testing.T) { if os.Getenv("BARE") != "" { t.Error("lacks x") } }
`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	notes := filepath.Join(dir, "notes")
	call := func(args ...string) (string, int) {
		var out bytes.Buffer
		code := gotest(args, &out)
		return out.String(), code
	}
	out, code := call("-again", "-notes="+notes, "-count=1", "./a", "./b", "./c")
	if code != 1 {
		t.Errorf("status %d", code)
	}
	for _, want := range []string{"the first time", "== once more: m/a TestFlaky\n", "== once more: m/b TestBad\n", "panic: ouch",
		"\nfailed once and passed the second time:\n  m/a TestFlaky\n", "\nfailed twice:\n  m/b TestBad\n  m/c "} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q", want)
		}
	}
	if strings.Contains(out, "not shown") || strings.Count(out, "always") != 2 {
		t.Errorf("shows what passed, or not what failed:\n%s", out)
	}
	want := regexp.MustCompile(`^\nthe slowest tests, seconds:\n +\d+ a\.TestGood\n\n1 tests were skipped:\n  no such device: x\n      a\.TestSkips/part\n$`)
	if out, code := call("-report=" + notes); code != 0 || !want.MatchString(out) {
		t.Errorf("%d %q", code, out)
	}
	// What fails once alone is no failure; without -again it is.
	_ = os.Remove(filepath.Join(dir, "a", "seen"))
	if out, code := call("-count=1", "./a"); code != 1 || strings.Contains(out, "once more") {
		t.Errorf("without -again: %d\n%s", code, out)
	}
	_ = os.Remove(filepath.Join(dir, "a", "seen"))
	if out, code := call("-again", "-count=1", "./a"); code != 0 {
		t.Errorf("fails once: %d\n%s", code, out)
	}

	// A test that needs a program without saying so fails, also the second time; who says so is run with it.
	_ = os.Remove(notes)
	out, code = call("-again", "-notes="+notes, "-bare=env BARE=1", "-count=1", "./d")
	for _, want := range []string{"lacks x", "z is broken", "\n== with what is installed: TestFailsWithIt TestSays TestStillLacks\n",
		"\nfailed twice:\n  m/d TestHides\n  m/d TestFailsWithIt\n"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("on a bare machine: %d lacks %q:\n%s", code, want, out)
		}
	}
	if out, _ := call("-report=" + notes); !strings.HasSuffix(out, "\n1 tests were skipped:\n  not installed: y\n      d.TestStillLacks\n") {
		t.Errorf("%q", out)
	}
}
