package gang

import (
	"runtime"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// TestWaitingGangsAreTheirAsk: a gang that never had nodes costs what its job costs, whatever its
// size, also after a person changed it.
func TestWaitingGangsAreTheirAsk(t *testing.T) {
	const jobs = 500
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	cost := func(size int) int64 {
		w, now, spec := New(settings()), Instant{Wall: epoch0}, specOf(size)
		before := heap()
		for range jobs {
			id := w.Step(now, Submit{Spec: spec, Partition: "main"}).JobIDs[0]
			if out := w.Step(now, Hold{Job: id}); !out.Applied {
				t.Fatal(out.Refused, out.Ignored)
			}
			w.Take()
		}
		after := heap()
		runtime.KeepAlive(w)
		return (int64(after) - int64(before)) / jobs
	}
	small, large := cost(1), cost(512)
	if t.Logf("%d B for one rank, %d B for 512", small, large); large > small+200 {
		t.Errorf("a waiting gang of 512 ranks takes %d B, of one rank %d B", large, small)
	}
}

// TestJobsShareTheirOptions: jobs that differ in name and script alone have one spec, for as long as there is one of them.
func TestJobsShareTheirOptions(t *testing.T) {
	b := newBench(t, 0)
	var ids []int64
	for i, name := range []string{"a", "b", "c"} {
		s := specOf(2)
		s.Name, s.Script = name, []byte("#!/bin/sh\nexec train "+name)
		if i == 2 {
			s.Nice = 7
		}
		ids = append(ids, b.submit(s))
	}
	x, y, z := b.w.Job(ids[0]), b.w.Job(ids[1]), b.w.Job(ids[2])
	if x.Spec != y.Spec || x.Spec == z.Spec || z.Spec.Nice != 7 || x.Name != "a" || y.Name != "b" || x.SpecHash == y.SpecHash {
		t.Errorf("%p %+v of %q, %p of %q, %p", x.Spec, x.Spec, x.Name, y.Spec, y.Name, z.Spec)
	}
	if len(b.w.specs.options) != 2 || len(b.w.specs.asks) != 2 {
		t.Errorf("%d options, %d asks", len(b.w.specs.options), len(b.w.specs.asks))
	}
	b.reborn(time.Minute)
	if x, y := b.w.Job(ids[0]), b.w.Job(ids[1]); x.Spec != y.Spec || x.Name != "a" || y.Name != "b" {
		t.Error("not after a restart")
	}
	for i, id := range ids {
		b.must(Cancel{Job: id})
		b.after(b.w.set.KeepEnded)
		if want := []int{2, 1, 0}[i]; len(b.w.specs.options) != want {
			t.Errorf("%d options when %d jobs are gone", len(b.w.specs.options), i+1)
		}
	}
}

// TestBlankRanksStayBlank: what is done to one waiting gang is done to no other.
func TestBlankRanksStayBlank(t *testing.T) {
	w, now := New(settings()), Instant{Wall: epoch0}
	for range 3 {
		w.Step(now, helloOf("n0"))
		w.Step(now, Submit{Spec: specOf(2), Partition: "main"})
	}
	w.Step(now, Admit{Job: 1, Slots: []cluster.Slot{{Node: "n0"}, {Node: "n0"}}})
	w.Step(now, Cancel{Job: 2, By: "lea"})
	for id, want := range map[int64]api.RankState{1: api.RankReserved, 2: api.RankCancelled, 3: api.RankBlocked} {
		for i, r := range w.Job(id).Ranks {
			if r.State != want {
				t.Errorf("job %d rank %d is %s, want %s", id, i, r.State, want)
			}
		}
	}
	if bad := w.Verify(); len(bad) > 0 {
		t.Error(bad)
	}
	own := OwnRanks(BlankRanks(3))
	own[1].State = api.RankDone
	if BlankRanks(3)[1].State != api.RankBlocked {
		t.Error("an own rank is everybody's")
	}
	if OwnRanks(nil) != nil {
		t.Error("ranks out of nothing")
	}
}
