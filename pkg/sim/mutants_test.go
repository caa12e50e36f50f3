//go:build mutants

package sim

import (
	"flag"
	"os"
	"testing"

	"gangd/pkg/fault"
)

var mutant = flag.String("sim.mutant", "", "known bug to be put back")

// With -sim.mutant every test runs against that mutant.
func TestMain(m *testing.M) {
	flag.Parse()
	fault.Set(fault.Mutant(*mutant))
	os.Exit(m.Run())
}

// Each mutant is caught by some random schedule.
func TestMutants(t *testing.T) {
	for _, m := range fault.All {
		t.Run(string(m), func(t *testing.T) {
			fault.Set(m)
			defer fault.Set(fault.Mutant(*mutant))
			total, err := Sweep(*schedules, *workers, 1, func(i int) *Scenario { return Random(*first+uint64(i), DefaultShape) })
			if err != nil {
				t.Fatal(err)
			}
			if len(total.Failures) == 0 {
				t.Fatalf("survived %d schedules", total.Runs)
			}
			f := total.Failures[0]
			t.Logf("caught by %s after %d schedules: %v", f.Scenario.Name, total.Runs, f.Violation)
		})
	}
}
