package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

var (
	long      = flag.Bool("sim.long", false, "play a day: see the flags beside")
	longNodes = flag.Int("sim.long.nodes", 200, "nodes of the long run")
	longJobs  = flag.Int("sim.long.jobs", 50000, "jobs of the long run")
	longHours = flag.Int("sim.long.hours", 24, "virtual hours of the long run")
)

// day is a scenario of many hours: a steady stream of jobs that fill about half of the
// nodes, and now and then a fault.
func day(seed uint64, n, jobs, hours int) *Scenario {
	d := rand.New(rand.NewPCG(seed, 9))
	span := time.Duration(hours) * time.Hour
	set := Settings()
	set.Heartbeat, set.NodeTimeout, set.Lease = 5*time.Second, 30*time.Second, 10*time.Minute
	set.KeepEnded = 10 * time.Minute
	// Three hours of the stream: the store has its size after that, and the rest of the day
	// shows whether it keeps it. Ids are those of a site that has run for a while: from job 32,768
	// on, in the sixteenth hour, SQLite would take three bytes instead of two for each id in each
	// row and index, 1.5 % of all.
	sc := &Scenario{Name: "a day", Seed: seed, Lean: true, Settings: set, FirstID: 1_000_000, History: History{Memory: set.KeepEnded, Jobs: jobs / hours * 3}}
	for i := range n {
		sc.Nodes = append(sc.Nodes, Node{Name: fmt.Sprintf("n%03d", i+1), CPUs: 8, Cards: 4})
	}
	// So long that half of the CPUs are busy with three and a half ranks a job.
	run := time.Duration(float64(span) * float64(n*8) / 2 / 3.5 / float64(jobs))
	for i := range jobs {
		j := Job{At: span / time.Duration(jobs) * time.Duration(i), Ranks: 1 + d.IntN(6), GPUs: d.IntN(2),
			Runs: Behaviour{For: run/2 + time.Duration(d.Int64N(int64(run)))}}
		if d.IntN(20) == 0 {
			j.MaxRetries, j.Runs.FailEpochs, j.Runs.FailCode = 2, 1+d.IntN(3), 3
		}
		sc.Jobs = append(sc.Jobs, j)
	}
	for range 8 * hours {
		f := randomFault(d, sc, span)
		switch f.Do {
		case Resubmit: // a key is forgotten with its job
			continue
		case CrashGangd, DiskBroken, OldStore, CrashSender: // the next controller would be another process, and its heap another heap
			continue
		}
		if f.When.On != "" {
			continue
		}
		sc.Faults = append(sc.Faults, f)
	}
	return sc
}

// Nothing grows over a day. Of ended jobs the store keeps a number, and is measured from when it
// has had that many: before that it fills.
func TestADay(t *testing.T) {
	if !*long {
		t.Skip("only with -sim.long: takes minutes")
	}
	var heap, routines, store, kept []float64
	res, err := Run(day(*first, *longNodes, *longJobs, *longHours), Options{Hour: func(hour int, s StoreSize) {
		if hour > *longHours {
			return
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = append(heap, float64(m.HeapAlloc))
		routines = append(routines, float64(runtime.NumGoroutine()))
		store = append(store, float64(s.Bytes))
		kept = append(kept, float64(s.Ended))
		t.Logf("hour %2d: heap %5.1f MiB, %d goroutines, store %6.2f MiB (%.2f free) with %d ended jobs", hour, heap[len(heap)-1]/(1<<20), runtime.NumGoroutine(),
			float64(s.Bytes)/(1<<20), float64(s.Free)/(1<<20), s.Ended)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Violation != nil {
		t.Fatal(res.Violation)
	}
	warm := min(3, len(heap)/4) // the first jobs have to come to their end
	full := 5                   // hours: three of stream, the memory of ended jobs, and a look
	if len(store) < full+3 {
		t.Fatalf("%d hours are too few to see a store that is full", len(store))
	}
	last := len(store) - 1
	t.Logf("%d jobs ended, %d events, heap slope %.2f %%, store slope from hour %d on %.2f %%, %.0f bytes a job that is kept", res.Ended, res.Events,
		100*slope(heap[warm:]), full, 100*slope(store[full-1:]), store[last]/kept[last])
	if s := slope(heap[warm:]); s > 0.02 {
		t.Errorf("the heap grows by %.1f %%: %.0f", 100*s, heap)
	}
	if slices.Max(routines) > slices.Min(routines) {
		t.Errorf("goroutines: %v", routines)
	}
	if s := slope(store[full-1:]); s > 0.02 {
		t.Errorf("the store grows by %.1f %%: %.0f", 100*s, store)
	}
	if n, want := kept[last], float64(*longJobs / *longHours * 3); n < want || n > 1.2*want {
		t.Errorf("%.0f ended jobs are kept, want %.0f", n, want)
	}
}

// slope is by how much a line through the values rises from the first to the last, as a part
// of their mean.
func slope(v []float64) float64 {
	n := float64(len(v))
	var sx, sy, sxx, sxy float64
	for i, y := range v {
		x := float64(i)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if n < 2 || sy == 0 {
		return 0
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx) * (n - 1) / (sy / n)
}
