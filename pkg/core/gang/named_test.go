package gang

import "testing"

// TestNamed: the jobs of a number that have not ended are called as their owner is, and no others.
func TestNamed(t *testing.T) {
	b := newBench(t, 1)
	of := func(uid uint32, name string) int64 {
		s := specOf(1)
		return b.must(Submit{Spec: s, SpecHash: hashOf(s), UID: uid, User: name, Partition: "main"}).JobIDs[0]
	}
	runs, waits, ended, others := of(50001, "50001"), of(50001, "50001"), of(50001, "50001"), of(50002, "50001")
	b.start(runs)
	b.must(Cancel{Job: ended})
	b.w.Take()
	b.must(Named{UID: 50001, User: "anna"})
	for id, want := range map[int64]string{runs: "anna", waits: "anna", ended: "50001", others: "50001"} {
		if got := b.w.Job(id).User; got != want {
			t.Errorf("job %d is of %s, want %s", id, got, want)
		}
	}
	if jobs := b.w.Take().Jobs; len(jobs) != 2 {
		t.Errorf("%d jobs are to be kept anew", len(jobs))
	}
	for _, again := range []Named{{UID: 50001, User: "anna"}, {UID: 50001}, {UID: 7, User: "bob"}} {
		if out := b.step(again); out.Applied || out.Refused != nil {
			t.Errorf("%+v: %+v", again, out)
		}
	}
}
