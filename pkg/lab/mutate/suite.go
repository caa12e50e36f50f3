package mutate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Tests are what notices the mutants of a package.
type Tests struct {
	Package string // import path
	// Program, if any, is an import path of a program that the tests start. It has the mutants,
	// too; the tests find it by the environment variable Variable.
	Program, Variable string
}

// Suite is the test binary of a package with its mutants.
type Suite struct {
	Package *Package
	Tests   Tests
	Mutants []*Mutant
	Broken  []string // tests that fail without any mutant: they are left out

	patience time.Duration // on top of ten times what the tests need

	cwd   string
	dirs  []string // one for each run at a time, each with the binary
	flags []string
	tests []*test // those that pass, the fast ones first
}

// test is one test of a suite.
type test struct {
	name    string
	took    time.Duration
	reaches []byte // by number of the mutant
}

// Build makes the test binary with some mutants of a package, for so many runs at a time.
func Build(p *Package, tests Tests, mutants []*Mutant, dir string, workers int) (*Suite, error) {
	s := &Suite{Package: p, Tests: tests, Mutants: mutants, patience: 10 * time.Second}
	for i, m := range mutants {
		m.ID = i + 1
	}
	dir = filepath.Join(dir, strings.ReplaceAll(p.Path, "/", "_"))
	src := filepath.Join(dir, "src")
	if err := os.MkdirAll(src, 0o755); err != nil {
		return nil, err
	}
	where, err := goList(tests.Package)
	if err != nil {
		return nil, err
	}
	s.cwd = where[0].Dir
	source := p.rewritten(mutants)
	binary := filepath.Join(dir, "mutants.test")
	if err := TestBinary(tests.Package, source, src, binary); err != nil {
		return nil, err
	}
	made := []string{binary}
	if tests.Program != "" {
		made = append(made, filepath.Join(dir, filepath.Base(tests.Program)))
		if err := compile(source, src, "build", "-o", made[1], tests.Program); err != nil {
			return nil, err
		}
	}
	for i := range workers {
		d := filepath.Join(dir, strconv.Itoa(i))
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
		for _, b := range made {
			if err := os.Link(b, filepath.Join(d, filepath.Base(b))); err != nil {
				return nil, err
			}
		}
		s.dirs = append(s.dirs, d)
	}
	return s, s.list()
}

// list asks the binary for its tests.
func (s *Suite) list() error {
	cmd := exec.Command(s.binary(0), "-test.list", ".")
	cmd.Dir = s.cwd
	cmd.Env = s.environ(0)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("tests of %s: %w", s.Package.Path, err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			s.tests = append(s.tests, &test{name: name})
		}
	}
	s.flags = []string{"-test.short", "-test.failfast"}
	help := exec.Command(s.binary(0), "-help")
	help.Dir = s.cwd
	help.Env = s.environ(0)
	// It says what flags there are, and fails.
	out, _ = help.CombinedOutput()
	if bytes.Contains(out, []byte("-rapid.seed")) {
		// The same draws each time: which mutants live is no matter of luck.
		s.flags = append(s.flags, "-rapid.seed=1", "-rapid.nofailfile")
	}
	return nil
}

func (s *Suite) binary(worker int) string {
	return filepath.Join(s.dirs[worker], "mutants.test")
}

func (s *Suite) environ(worker int) []string {
	if s.Tests.Program == "" {
		return os.Environ()
	}
	return append(os.Environ(), s.Tests.Variable+"="+filepath.Join(s.dirs[worker], filepath.Base(s.Tests.Program)))
}

// each calls f for all numbers below n, as many at a time as there are copies of the binary.
func (s *Suite) each(n int, f func(worker, i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for w := range s.dirs {
		wg.Go(func() {
			for i := range next {
				f(w, i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// Learn runs each test by itself, without any mutant.
func (s *Suite) Learn() error {
	all := s.tests
	failed := make([]error, len(all))
	s.each(len(all), func(w, i int) {
		reached := filepath.Join(s.dirs[w], "reached")
		if failed[i] = os.WriteFile(reached, make([]byte, len(s.Mutants)+1), 0o666); failed[i] != nil {
			return
		}
		defer os.Remove(reached)
		// For processes of other users that a test may start.
		if failed[i] = os.Chmod(reached, 0o666); failed[i] != nil {
			return
		}
		began := time.Now()
		if _, err := s.run(w, 0, all[i:i+1], 5*time.Minute); err != nil {
			failed[i] = err
			return
		}
		all[i].took = time.Since(began)
		all[i].reaches, failed[i] = os.ReadFile(reached)
	})
	s.tests = nil
	for i, t := range all {
		var bad *failure
		switch {
		case errors.As(failed[i], &bad):
			s.Broken = append(s.Broken, t.name)
		case failed[i] != nil:
			return failed[i]
		default:
			s.tests = append(s.tests, t)
		}
	}
	slices.SortFunc(s.tests, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
	return nil
}

// Fate is what became of a mutant.
type Fate string

const (
	Killed   Fate = "killed"
	TimedOut Fate = "timed out" // which is killed, too
	Survived Fate = "survived"
	Unseen   Fate = "not reached" // by any test: it survives
)

// Result is the fate of a mutant and the test that decided it.
type Result struct {
	Mutant *Mutant
	Fate   Fate
	By     string
}

// Try runs the tests that reach each mutant.
func (s *Suite) Try(done func(Result)) {
	var mu sync.Mutex
	s.each(len(s.Mutants), func(w, i int) {
		r := s.try(w, s.Mutants[i])
		mu.Lock()
		defer mu.Unlock()
		done(r)
	})
}

// quick tests run together, in one process.
const quick = time.Second

func (s *Suite) try(worker int, m *Mutant) Result {
	var tests []*test
	for _, t := range s.tests {
		if t.reaches[m.ID] != 0 {
			tests = append(tests, t)
		}
	}
	if len(tests) == 0 {
		return Result{m, Unseen, ""}
	}
	for len(tests) > 0 {
		n, sum := 1, tests[0].took
		for n < len(tests) && sum+tests[n].took < quick {
			sum += tests[n].took
			n++
		}
		if fate, by := s.verdict(worker, m, tests[:n], sum); fate != Survived {
			return Result{m, fate, by}
		}
		tests = tests[n:]
	}
	return Result{m, Survived, ""}
}

// verdict runs tests that go together. One that fails has to do so twice.
func (s *Suite) verdict(worker int, m *Mutant, tests []*test, took time.Duration) (Fate, string) {
	limit := s.patience + 10*took
	for range 2 {
		by, err := s.run(worker, m.ID, tests, limit)
		var bad *failure
		if !errors.As(err, &bad) {
			return Survived, ""
		}
		if bad.late {
			return TimedOut, by
		}
		i := slices.IndexFunc(tests, func(t *test) bool { return t.name == by })
		if i < 0 {
			// The process died, or something was left behind: whose test it was is not known.
			return Killed, by
		}
		if again, err := s.run(worker, m.ID, tests[i:i+1], limit); err != nil {
			return Killed, again
		}
	}
	return Survived, ""
}

// failure is a run whose tests did not pass.
type failure struct {
	late bool
	text string
}

func (f *failure) Error() string { return f.text }

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// run runs tests with a mutant on (none: 0) and says which failed.
func (s *Suite) run(worker, id int, tests []*test, limit time.Duration) (by string, err error) {
	if err := os.WriteFile(filepath.Join(s.dirs[worker], "active"), []byte(strconv.Itoa(id)), 0o644); err != nil {
		return "", err
	}
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary(worker), append(s.flags, "-test.run=^("+strings.Join(names, "|")+")$")...)
	cmd.Dir = s.cwd
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = s.environ(worker)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		// What a test left in its group.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case ctx.Err() != nil:
		return names[0], &failure{true, "time is up"}
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return "", nil
	case cmd.ProcessState == nil:
		return "", err
	}
	if m := failedTest.FindSubmatch(out.Bytes()); m != nil {
		return string(m[1]), &failure{false, out.String()}
	}
	return names[0], &failure{false, out.String()}
}
