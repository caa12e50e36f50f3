// Command gotest runs go test and says what go test keeps to itself: which tests were skipped,
// and why, and which took long. What failed it can run once more, so that a test that a busy
// machine failed is told from one that fails.
//
//	gotest [-again] [-notes=FILE] [-bare=COMMAND] FLAG... PACKAGE...   go test's flags with "=" before their values
//	gotest -report=FILE   what all runs wrote to FILE: skips by reason, the slowest
//
// It prints what go test prints without -v. With -again it fails for what fails twice alone, and
// names both. With -bare it runs all tests by a command that hides the programs that a bare machine lacks
// (scripts/bare --here), and then, with all that is installed, those that were skipped for lack of one.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	os.Exit(gotest(os.Args[1:], os.Stdout))
}

func gotest(args []string, out io.Writer) int {
	again, notes := false, ""
	var bare []string
	for len(args) > 0 {
		name, value, _ := strings.Cut(args[0], "=")
		switch name {
		case "-again":
			again = true
		case "-notes":
			notes = value
		case "-bare":
			bare = strings.Fields(value)
		case "-report":
			return report(value, out)
		default:
			name = ""
		}
		if name == "" {
			break
		}
		args = args[1:]
	}
	first, err := run(bare, args, out)
	var rest *result
	if err == nil {
		rest, err = lacking(first, args, out)
	}
	if err == nil && notes != "" {
		err = cmp.Or(first.write(notes), rest.write(notes))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 2
	}
	switch {
	case first.ok && rest.ok:
		return 0
	case !again || len(first.failed)+len(rest.failed) == 0:
		return 1
	}
	var o outcome
	err = o.retry(bare, args, first.failed, out)
	if err == nil {
		err = o.retry(nil, args, rest.failed, out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 2
	}
	list(out, "failed once and passed the second time", o.once)
	list(out, "failed twice", o.twice)
	return min(1, len(o.twice))
}

// missing begins the reason of a test that was skipped for lack of a program (pkg/lab/tool).
const missing = "not installed: "

// lacking runs, with all that is installed, what was skipped for lack of a program, which is no longer told
// as skipped then.
func lacking(first *result, args []string, out io.Writer) (*result, error) {
	var tests, pkgs []string
	rest := first.skipped[:0]
	for _, s := range first.skipped {
		if !strings.HasPrefix(s.why, missing) {
			rest = append(rest, s)
			continue
		}
		top, _, _ := strings.Cut(s.test, "/")
		tests, pkgs = append(tests, top), append(pkgs, s.pkg)
	}
	first.skipped = rest
	if tests == nil {
		return &result{ok: true}, nil
	}
	slices.Sort(tests)
	slices.Sort(pkgs)
	tests, pkgs = slices.Compact(tests), slices.Compact(pkgs)
	fmt.Fprintf(out, "\n== with what is installed: %s\n", strings.Join(tests, " "))
	again := append(flags(args), "-run=^("+strings.Join(tests, "|")+")$")
	return run(nil, append(again, pkgs...), out)
}

// flags are those of go test, without the choice of tests.
func flags(args []string) []string {
	var f []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "-run=") {
			f = append(f, a)
		}
	}
	return f
}

// outcome is which tests failed once, and which twice.
type outcome struct{ once, twice []string }

// retry runs once more what failed, a package after the other.
func (o *outcome) retry(bare, args []string, failed map[string][]string, out io.Writer) error {
	for _, pkg := range slices.Sorted(maps.Keys(failed)) {
		tests := failed[pkg]
		fmt.Fprintf(out, "\n== once more: %s %s\n", pkg, strings.Join(tests, " "))
		again := append(flags(args), "-count=1")
		if tests != nil {
			again = append(again, "-run=^("+strings.Join(tests, "|")+")$")
		}
		second, err := run(bare, append(again, pkg), out)
		if err != nil {
			return err
		}
		if tests == nil {
			tests = []string{"(all tests)"}
		}
		for _, t := range tests {
			name := pkg + " " + t
			if whole := second.failed[pkg]; !second.ok && (len(whole) == 0 || slices.Contains(whole, t) || t == "(all tests)") {
				o.twice = append(o.twice, name)
			} else {
				o.once = append(o.once, name)
			}
		}
	}
	return nil
}

func list(out io.Writer, what string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(out, "\n%s:\n  %s\n", what, strings.Join(names, "\n  "))
	}
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64 // seconds
}

// result is what came of one call of go test.
type result struct {
	ok      bool
	skipped []skip
	slow    []event
	failed  map[string][]string // top-level tests by package; nil: the whole package is in question
}

type skip struct{ why, pkg, test string }

// Tests that take slowFrom seconds are noted, and report names the slowest.
const slowFrom, slowest = 2, 25

// run calls go test, by another command if there is one, and prints what it would have printed.
func run(by, args []string, out io.Writer) (*result, error) {
	line := slices.Concat(by, []string{"go", "test", "-json"}, args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r, err := read(pipe, out)
	if err != nil {
		return nil, err
	}
	r.ok = cmd.Wait() == nil
	return r, nil
}

func read(in io.Reader, out io.Writer) (*result, error) {
	r := &result{failed: map[string][]string{}}
	said := map[[2]string][]string{} // what a test that has not ended printed
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil && len(line) == 0 {
			if err == io.EOF {
				return r, nil
			}
			return nil, err
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			_, _ = out.Write(line) // not go test's: a program's own words
			continue
		}
		key := [2]string{e.Package, e.Test}
		if e.Elapsed >= slowFrom && e.Test != "" && !strings.Contains(e.Test, "/") {
			r.slow = append(r.slow, e)
		}
		switch {
		case e.Action == "build-output":
			fmt.Fprint(out, e.Output)
		case e.Action == "output" && e.Test != "":
			if !strings.HasPrefix(e.Output, "=== ") {
				said[key] = append(said[key], e.Output)
			}
		case e.Action == "output":
			if e.Output != "PASS\n" && !strings.HasPrefix(e.Output, "=== ") {
				fmt.Fprint(out, e.Output)
			}
		case e.Test != "" && e.Action == "skip":
			r.skipped = append(r.skipped, skip{reason(said[key]), e.Package, e.Test})
			delete(said, key)
		case e.Test != "" && e.Action == "fail":
			fmt.Fprint(out, strings.Join(said[key], ""))
			delete(said, key)
			if top, _, sub := strings.Cut(e.Test, "/"); !sub {
				r.failed[e.Package] = append(r.failed[e.Package], top)
			}
		case e.Test != "" && e.Action == "pass":
			delete(said, key)
		case e.Action == "fail" && e.Package != "":
			r.packageFailed(e.Package, said, out)
		}
	}
}

// packageFailed: where a test did not come to its end, or none failed, the rest of the package was not
// looked at either.
func (r *result) packageFailed(pkg string, said map[[2]string][]string, out io.Writer) {
	broken := len(r.failed[pkg]) == 0
	for _, key := range slices.SortedFunc(maps.Keys(said), func(a, b [2]string) int { return cmp.Compare(a[1], b[1]) }) {
		if key[0] == pkg {
			fmt.Fprint(out, strings.Join(said[key], ""))
			delete(said, key)
			broken = true
		}
	}
	if broken {
		r.failed[pkg] = nil
	}
}

var place = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// reason is what a test said as it skipped: the last thing that it said.
func reason(said []string) string {
	for i := len(said) - 1; i >= 0; i-- {
		if m := place.FindString(said[i]); m != "" {
			return strings.TrimSpace(said[i][len(m):])
		}
	}
	return "(no reason given)"
}

func (r *result) write(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, s := range r.skipped {
		if _, err = fmt.Fprintf(f, "%s\t%s\t%s\n", s.why, s.pkg, s.test); err != nil {
			break
		}
	}
	for _, e := range r.slow {
		if err == nil {
			_, err = fmt.Fprintf(f, "%s\t%s\t%.0f\tseconds\n", e.Package, e.Test, e.Elapsed)
		}
	}
	return cmp.Or(err, f.Close())
}

// report prints the tests that took longest, and what was skipped, by reason.
func report(path string, out io.Writer) int {
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 2
	}
	by, took := map[string][]string{}, map[string]int{}
	n := 0
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) == 4 {
			took[f[0][strings.LastIndexByte(f[0], '/')+1:]+"."+f[1]], _ = strconv.Atoi(f[2])
		}
		if len(f) == 3 {
			by[f[0]] = append(by[f[0]], f[1][strings.LastIndexByte(f[1], '/')+1:]+"."+f[2])
			n++
		}
	}
	if len(took) > 0 {
		fmt.Fprintln(out, "\nthe slowest tests, seconds:")
		names := slices.SortedFunc(maps.Keys(took), func(a, b string) int { return cmp.Or(cmp.Compare(took[b], took[a]), cmp.Compare(a, b)) })
		for _, name := range names[:min(slowest, len(names))] {
			fmt.Fprintf(out, "  %4d %s\n", took[name], name)
		}
	}
	if n == 0 {
		fmt.Fprintln(out, "\nno test was skipped")
		return 0
	}
	fmt.Fprintf(out, "\n%d tests were skipped:\n", n)
	for _, why := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(out, "  %s\n      %s\n", why, strings.Join(by[why], " "))
	}
	return 0
}
