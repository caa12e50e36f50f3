package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/lab/mutate"
	"gangd/pkg/lab/tool"
)

var (
	playBugs = flag.Bool("sim.bugs", false, "put the known bugs back, one at a time")
	report   = flag.String("sim.report", "", "document whose part about known bugs is written anew")
)

// catch is what showed a bug.
type catch struct{ By, What string }

// hunt looks for the bug that is in this binary: with the directed scenarios, then the crash
// points, then random schedules.
func hunt() (catch, error) {
	for i := range scenarios {
		if bad, err := scenarios[i].play(); err != nil || bad != "" {
			return catch{"scenario \"" + scenarios[i].name + "\"", bad}, err
		}
	}
	for i := range crashScenarios {
		c := &crashScenarios[i]
		sum, err := c.points(10)
		if err != nil {
			return catch{}, err
		}
		if len(sum.bad) > 0 {
			return catch{"crash points of \"" + c.name + "\"", sum.bad[0]}, nil
		}
	}
	total, err := Sweep(*schedules, *workers, 1, func(i int) *Scenario { return Random(*first+uint64(i), DefaultShape) })
	if err == nil && len(total.Failures) == 0 {
		total, err = Sweep(*schedules, *workers, 1, func(i int) *Scenario { return Several(*first+uint64(i), DefaultShape) })
	}
	if err != nil || len(total.Failures) == 0 {
		return catch{}, err
	}
	f := total.Failures[0]
	return catch{"seed of " + f.Scenario.Name, f.Violation.Error()}, nil
}

// Run by TestBugs, with one bug on.
func TestHunt(t *testing.T) {
	to := os.Getenv("BUG_CATCH")
	if to == "" {
		t.Skip("it has to be built with the known bugs: TestBugs does so")
	}
	c, err := hunt()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// withBugs is the source with all known bugs in it, switched off.
func withBugs(t *testing.T) map[string][]byte {
	pkg, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	changes := map[string][]mutate.Change{}
	for _, b := range slices.Concat(bugs, storeBugs) {
		if changes[b.name] != nil {
			t.Errorf("two bugs are called %s", b.name)
		}
		names = append(names, b.name)
		changes[b.name] = b.changes
	}
	source, err := mutate.Bugs(pkg, names, changes)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// Each known bug still has its place in the source, and the source with all of them is built.
func TestBugsAreBuilt(t *testing.T) {
	tool.Need(t, "go")
	if err := mutate.Compile(withBugs(t), t.TempDir(), "gangd/pkg/lab/sim", "gangd/pkg/controller/store/pgstore"); err != nil {
		t.Fatal(err)
	}
}

// Each known bug is caught.
func TestBugs(t *testing.T) {
	if !*playBugs {
		t.Skip("minutes: run with -sim.bugs (make mutants)")
	}
	dir := t.TempDir()
	source := withBugs(t)
	build := func(pkg string) (binary string) {
		binary = filepath.Join(dir, filepath.Base(pkg)+".test")
		if err := mutate.TestBinary("gangd/pkg/"+pkg, source, dir, binary); err != nil {
			t.Fatal(err)
		}
		return binary
	}
	simulator, ofStore := build("lab/sim"), build("controller/store/pgstore")
	all := slices.Concat(bugs, storeBugs)
	caught := make([]catch, len(all))
	t.Run("all", func(t *testing.T) {
		for i, b := range all {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				if i < len(bugs) {
					caught[i] = b.play(t, simulator, filepath.Join(dir, b.name+".json"))
				} else {
					caught[i] = b.test(t, ofStore)
				}
				if caught[i].By == "" {
					t.Fatalf("survived: %s", b.text)
				}
				t.Logf("caught by %s: %s", caught[i].By, inLine(caught[i].What))
			})
		}
	})
	if *report == "" || t.Failed() || slices.Contains(caught, catch{}) {
		return
	}
	var out strings.Builder
	out.WriteString("| bug | what it does | caught by | seen |\n|---|---|---|---|\n")
	for i, c := range caught {
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", all[i].name, all[i].text, c.By, inLine(c.What))
	}
	fmt.Fprintf(&out, "\n%d of %d are caught.\n", len(all), len(all))
	if err := mutate.WritePart(*report, "bugs", out.String()); err != nil {
		t.Fatal(err)
	}
}

// play runs the hunt with a bug on. A hunt that dies of it has caught it too.
func (b *bug) play(t *testing.T, binary, to string) catch {
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestHunt$", fmt.Sprint("-sim.schedules=", *schedules), "-sim.workers=1")
	cmd.Env = append(os.Environ(), "BUG="+b.name, "BUG_CATCH="+to)
	out, err := cmd.CombinedOutput()
	if err != nil && bytes.Contains(out, []byte("panic: ")) {
		_, text, _ := strings.Cut(string(out), "panic: ")
		return catch{"a panic", text}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	var c catch
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	c.What = cmp.Or(c.What, "-")
	return c
}

// test runs the store's own tests with a bug on, until the first fails.
func (b *bug) test(t *testing.T, binary string) catch {
	if _, err := pgserver.Find(); err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.failfast", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), "BUG="+b.name)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return catch{}
	}
	said := "-"
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "_test.go:") {
			_, said, _ = strings.Cut(line, ": ")
		}
		if _, rest, ok := strings.Cut(line, "panic: "); ok {
			return catch{"a panic", rest}
		}
		if _, rest, ok := strings.Cut(line, "--- FAIL: "); ok {
			name, _, _ := strings.Cut(rest, " ")
			return catch{"test " + name, strings.TrimSpace(said)}
		}
	}
	t.Fatalf("%v\n%s", err, out)
	return catch{}
}

// inLine is a text in one line of a table.
func inLine(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\n", " "), "|", "/")
	if len(s) > 160 {
		s = s[:160] + "..."
	}
	return s
}
