package sim

import (
	"flag"
	"os"
	"testing"
)

var (
	seeds = flag.Int("sim.schedules", 60, "random schedules to play")
	first = flag.Uint64("sim.seed", 1, "seed of the first random schedule")
	trace = flag.Bool("sim.trace", false, "print what happens in the first schedule, and play only that")
)

func TestRandomSchedules(t *testing.T) {
	if *trace {
		res, err := Run(Random(*first, DefaultShape), Options{Trace: os.Stdout})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", res)
		return
	}
	for i := range *seeds {
		seed := *first + uint64(i)
		res, err := Run(Random(seed, DefaultShape), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if res.Violation != nil {
			t.Errorf("seed %d: %v", seed, res.Violation)
		}
	}
}
