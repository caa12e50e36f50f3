//go:build mutants

package sim

import (
	"flag"
	"os"
	"testing"

	"gangd/pkg/fault"
)

var mutant = flag.String("sim.mutant", "", "mutant of -sim.trace")

// Each mutant is caught by some random schedule.
func TestMutants(t *testing.T) {
	for _, m := range fault.All {
		t.Run(string(m), func(t *testing.T) {
			fault.Set(m)
			defer fault.Set("")
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

func TestMutantTrace(t *testing.T) {
	if !*trace {
		t.Skip("only with -sim.trace")
	}
	fault.Set(fault.Mutant(*mutant))
	defer fault.Set("")
	res, err := Run(Random(*first, DefaultShape), Options{Trace: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", res)
	if v := res.Violation; v != nil && *tries > 0 {
		t.Logf("reduced:\n%s", Shrink(Random(*first, DefaultShape), v.Invariant, *tries).Literal())
	}
}
