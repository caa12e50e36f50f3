package gang

import (
	"testing"

	"gangd/pkg/api"
)

// A submission is on record, and that it is held.
func TestASubmissionIsAnEvent(t *testing.T) {
	b := newBench(t, 0)
	b.w.Take()
	held := specOf(3)
	held.Hold = true
	id := b.must(Submit{Spec: held, SpecHash: hashOf(held), User: "ada", Partition: "main"}).JobIDs[0]
	evs := b.w.Take().Events
	if len(evs) != 2 || evs[0].Type != api.EventSubmitted || evs[0].JobID != id || evs[0].Size != 3 || evs[1].Type != api.EventHeld || evs[1].Text != HeldUser {
		t.Errorf("%+v", evs)
	}
	b.submit(specOf(1))
	if evs := b.w.Take().Events; len(evs) != 1 || evs[0].Type != api.EventSubmitted {
		t.Errorf("%+v", evs)
	}
}

// What equal jobs ask for is kept once, and no longer than one of them.
func TestAsksAreForgottenWithTheirJobs(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	x, y := b.submit(s), b.submit(s)
	if len(b.w.asks) != 1 {
		t.Fatalf("%d asks of two equal jobs", len(b.w.asks))
	}
	b.must(Cancel{Job: x})
	b.after(settings().KeepEnded)
	if len(b.w.asks) != 1 {
		t.Error("the ask of a job that waits is forgotten")
	}
	b.must(Cancel{Job: y})
	b.after(settings().KeepEnded)
	if len(b.w.asks) != 0 {
		t.Errorf("%d asks of no job", len(b.w.asks))
	}
}
