package gang

import (
	"slices"
	"testing"

	"gangd/pkg/api"
)

// What was handed out of a job never changes, and its ranks are shared until one of them does.
func TestRanksAreSharedUntilTheyChange(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(4)
	s.RanksPerNode = 2
	id := b.submit(s)
	now := func() *Job { // as who reads beside the core has it
		b.w.Take()
		return b.w.Job(id)
	}
	waiting := now()
	b.must(b.spread(id))
	reserved := now()
	b.phase(id, reserved.Members[0].Node, api.PhaseReady)
	half := now()
	if half != reserved {
		t.Error("a member is ready, and the job was copied")
	}
	b.phase(id, reserved.Members[1].Node, api.PhaseReady)
	opened := now()
	if waiting.Ranks[0].State != api.RankBlocked || reserved.Ranks[0].State != api.RankReserved || opened.Ranks[0].State == api.RankReserved {
		t.Fatalf("rank 0 was %v, %v, is %v", waiting.Ranks[0].State, reserved.Ranks[0].State, opened.Ranks[0].State)
	}
	held := slices.Clone(opened.Ranks)
	b.phase(id, opened.Members[0].Node, api.PhaseRunning, api.RankActual{Rank: 0, PID: 7, Started: b.now.Wall})
	if last := now(); last.Ranks[0].PID != 7 || last == opened {
		t.Fatalf("rank 0 is %+v", last.Ranks[0])
	}
	for i := range held {
		if opened.Ranks[i].PID != held[i].PID || opened.Ranks[i].State != held[i].State {
			t.Errorf("rank %d of a job that was handed out is %+v now, and was %+v", i, opened.Ranks[i], held[i])
		}
	}
}
