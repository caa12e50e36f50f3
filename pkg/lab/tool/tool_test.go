package tool

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// elsewhere is what CI does not install, with who does.
var elsewhere = map[string]string{
	"bash":            "every Debian",
	"coreutils":       "every Debian",
	"libc-bin":        "every Debian",
	"passwd":          "every Debian",
	"perl-base":       "every Debian",
	"util-linux":      "every Debian",
	"debootstrap":     "make chaos: a minute",
	"libmpich-dev":    "make chaos: minutes",
	"libopenmpi-dev":  "make chaos: minutes",
	"openmpi-bin":     "make chaos: minutes",
	"openssh-client":  "a host where people log in",
	"openssh-server":  "a host where people log in",
	"pgbouncer":       "by hand: a pooler before the database",
	"qemu-system-x86": "make vm",
	"snakemake":       "make chaos: minutes",
	"systemd":         "a host that it starts",
}

// TestCIInstalls: what tests may ask for is installed by CI, or it is said here who runs those tests. A test that is
// skipped everywhere proves nothing.
func TestCIInstalls(t *testing.T) {
	text, err := os.ReadFile("../../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for name, pkg := range packages {
		installed := regexp.MustCompile(`wanted\+=\(` + regexp.QuoteMeta(pkg) + `(-[0-9]+)?\)`).Match(text)
		if _, said := elsewhere[pkg]; installed == said {
			t.Errorf("%s, for tests that need %s: want it in .ci/run or in elsewhere, not both", pkg, name)
		}
	}
}

var (
	skips = regexp.MustCompile(`\.(?:Skip|Skipf)\((?:\w+, )?("[^"]*")?`)
	// words that a test says of a program which it lacks.
	lacking = regexp.MustCompile(`(?i)\binstalled\b|\bapt(-get)? install\b|\bno such program\b`)
)

// TestSaidByName: a test that lacks a program says so by Need or Lack, by which make test runs it once more with all that is
// installed. Words of its own would hide it on every machine.
func TestSaidByName(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "bin" || d.Name() == ".git" || d.Name() == "shared") {
			return cmp.Or(err, error(filepath.SkipDir))
		}
		if !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "pkg/lab/tool/tool_test.go") || strings.Contains(path, "scripts/gotest/") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		for n, line := range lines {
			for _, m := range skips.FindAllStringSubmatch(line, -1) {
				seen++
				bad := lacking.MatchString(m[1]) || m[1] == "" && strings.Contains(strings.Join(lines[max(0, n-3):n], ""), "LookPath(")
				for name := range packages {
					program, _, _ := strings.Cut(name, ":")
					bad = bad || regexp.MustCompile(`(?i)\bneeds? `+regexp.QuoteMeta(program)+`\b`).MatchString(m[1])
				}
				if bad {
					t.Errorf("%s:%d: %s: say it by tool.Need or tool.Lack", path, n+1, strings.TrimSpace(line))
				}
			}
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Fatal(seen, err)
	}
}

// TestNeed: a test goes on with what is installed, and is skipped by name for what is not.
func TestNeed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := os.WriteFile(dir+"/python3", []byte("#!/bin/sh\n[ \"$2\" = 'import torch' ]\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	packages["python3:other"] = "python3-other"
	defer delete(packages, "python3:other")
	for name, want := range map[string]string{
		"python3": "", "python3:torch": "", "python3:other": "not installed: python3:other (apt-get install python3-other)",
		"tmux": "not installed: tmux (apt-get install tmux)", dir + "/python3": "", "/none/git": "not installed: /none/git (apt-get install git)",
	} {
		r := &recorder{TB: t}
		func() {
			defer func() { _ = recover() }()
			Need(r, name)
		}()
		if r.said != want {
			t.Errorf("%s: %q, want %q", name, r.said, want)
		}
	}
}

// recorder is a test that is skipped or fails, as seen by what it calls.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper() {}
func (r *recorder) Skip(args ...any) {
	r.said = fmt.Sprint(args...)
	panic("skipped")
}
