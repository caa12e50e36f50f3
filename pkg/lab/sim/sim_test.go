package sim

import (
	"flag"
	"os"
	"runtime"
	"strings"
	"testing"
)

var (
	schedules = flag.Int("sim.schedules", 40, "random schedules to play")
	first     = flag.Uint64("sim.seed", 1, "seed of the first random schedule")
	workers   = flag.Int("sim.workers", runtime.GOMAXPROCS(0), "schedules played at the same time")
	failures  = flag.Int("sim.failures", 5, "failing schedules after which a sweep ends")
	trace     = flag.Bool("sim.trace", false, "play the first schedule alone and print what happens in it")
	full      = flag.Bool("sim.full", false, "play all variants of the directed scenarios, not a share")
	tries     = flag.Int("sim.shrink", 300, "runs to make a failing schedule smaller")
)

func TestRandomSchedules(t *testing.T) { sweepRandom(t, *schedules, Random) }

// The same with two to four controllers on one database.
func TestRandomControllers(t *testing.T) { sweepRandom(t, max(*schedules/2, 1), Several) }

func sweepRandom(t *testing.T, n int, scenario func(uint64, Shape) *Scenario) {
	if *trace {
		res, err := Run(scenario(*first, DefaultShape), Options{Trace: os.Stdout})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", res)
		if v := res.Violation; v != nil && *tries > 0 {
			t.Logf("reduced:\n%s", Shrink(scenario(*first, DefaultShape), v.Invariant, *tries).Literal())
		}
		return
	}
	total, err := Sweep(n, *workers, *failures, func(i int) *Scenario {
		if i > 0 && i%1000 == 0 {
			t.Logf("%d begun", i)
		}
		return scenario(*first+uint64(i), DefaultShape)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range total.Failures {
		t.Errorf("%s: %v", f.Scenario.Name, f.Violation)
		if i == 0 && *tries > 0 {
			t.Errorf("reduced:\n%s", Shrink(f.Scenario, f.Violation.Invariant, *tries).Literal())
		}
	}
	var b strings.Builder
	total.Table(&b)
	t.Logf("from seed %d on:\n%s", *first, b.String())
}

// The same seed is the same run, event by event.
func TestReplay(t *testing.T) {
	for seed := range uint64(12) {
		sc := Random(1000+seed, DefaultShape)
		a, err := Run(sc, Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Run(Random(1000+seed, DefaultShape), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Hash != b.Hash || a.Events != b.Events {
			t.Errorf("seed %d: %d events with hash %x, then %d with %x", 1000+seed, a.Events, a.Hash, b.Events, b.Hash)
		}
		if c, err := Run(Random(2000+seed, DefaultShape), Options{}); err != nil || c.Hash == a.Hash {
			t.Errorf("seed %d: the hash of another run is the same: %v", seed, err)
		}
	}
}
