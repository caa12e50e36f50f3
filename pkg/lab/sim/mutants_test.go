//go:build mutants

package sim

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gangd/pkg/fault"
)

var (
	mutant = flag.String("sim.mutant", "", "known bug to be put back")
	report = flag.String("sim.report", "", "file to be written with what caught each mutant")
)

// With -sim.mutant every test runs against that mutant.
func TestMain(m *testing.M) {
	flag.Parse()
	fault.Set(fault.Mutant(*mutant))
	os.Exit(m.Run())
}

// catch is what showed a mutant.
type catch struct {
	by, what string
	took     time.Duration
}

// hunt looks for a mutant: with the directed scenarios, then the crash points, then random
// schedules.
func hunt() (catch, error) {
	began := time.Now()
	for i := range scenarios {
		if bad, err := scenarios[i].play(); err != nil || bad != "" {
			return catch{"scenario \"" + scenarios[i].name + "\"", bad, time.Since(began)}, err
		}
	}
	for i := range crashScenarios {
		c := &crashScenarios[i]
		sum, err := c.points(10)
		if err != nil {
			return catch{}, err
		}
		if len(sum.bad) > 0 {
			return catch{"crash points of \"" + c.name + "\"", sum.bad[0], time.Since(began)}, nil
		}
	}
	total, err := Sweep(*schedules, *workers, 1, func(i int) *Scenario { return Random(*first+uint64(i), DefaultShape) })
	if err != nil || len(total.Failures) == 0 {
		return catch{took: time.Since(began)}, err
	}
	f := total.Failures[0]
	return catch{"seed " + strings.TrimPrefix(f.Scenario.Name, "random "), f.Violation.Error(), time.Since(began)}, nil
}

// Each mutant is caught.
func TestMutants(t *testing.T) {
	var out strings.Builder
	out.WriteString(reportHead)
	caught, played := 0, 0
	for _, k := range fault.All {
		t.Run(string(k.Mutant), func(t *testing.T) {
			played++
			fault.Set(k.Mutant)
			defer fault.Set(fault.Mutant(*mutant))
			c, err := hunt()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", k.Mutant, k.Text, cmp.Or(c.by, "**nothing**"), inLine(c.what))
			if c.by == "" {
				t.Fatalf("survived: %s", k.Text)
			}
			caught++
			t.Logf("caught after %s by %s: %s", c.took.Round(time.Millisecond), c.by, inLine(c.what))
		})
	}
	fmt.Fprintf(&out, "\n%d of %d are caught.\n", caught, played)
	t.Logf("%d of %d mutants are caught", caught, played)
	if *report != "" && !t.Failed() && played == len(fault.All) {
		if err := os.WriteFile(*report, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const reportHead = `# Mutants

Written by ` + "`make mutants`" + `. Each row is a bug that can be put back into the controller, the session, gnoded's rules or the shim's
stop sequence (build tag ` + "`mutants`" + `, package fault), what caught it first (directed scenarios are played before crash points, these before
random schedules), and what that saw. A mutant that survives fails the target.

| mutant | the bug | caught by | seen |
|---|---|---|---|
`

// inLine is a text in one line of a table.
func inLine(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\n", " "), "|", "/")
	if len(s) > 160 {
		s = s[:160] + "..."
	}
	return s
}
