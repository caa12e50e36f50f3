package gang

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

// A job that has ended is queued under its number, and runs as one that is new.
func TestRequeueOfAnEndedJob(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	b.phase(id, "n1", api.PhaseStopped, exit(0, 3))
	b.ack(id)
	b.state(id, api.JobFailed)
	if out := b.step(Requeue{Job: id}); out.Refused == nil || out.Refused.Code != api.CodeAlreadyEnded {
		t.Fatalf("without being asked for: %+v", out)
	}
	b.must(Requeue{Job: id, By: "ada", Ended: true, Hold: HeldSpecial})
	j := b.w.Job(id)
	if !blocked(j) || j.Verdict != nil || j.Held != HeldSpecial || !j.End.IsZero() || j.Used != nil {
		t.Fatalf("queued again: %s, held %q, verdict %+v, end %s, used %v", JobState(j), j.Held, j.Verdict, j.End, j.Used)
	}
	if b.w.Candidate(id) != nil {
		t.Fatal("held, and may be admitted")
	}
	b.must(Release{Job: id})
	if b.w.Candidate(id) != nil {
		t.Fatal("it may be admitted at once, as fast as it fails")
	}
	b.after(b.w.set.RetryBackoff)
	if b.w.Candidate(id) == nil {
		t.Fatal("released, and may not be admitted")
	}
	b.after(b.w.set.KeepEnded + time.Second)
	if b.w.Job(id) == nil {
		t.Fatal("it left memory although it waits")
	}
}

func TestRequeueOfAnEndedJobIsRefused(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(1)
	s.NoRequeue = true
	id := b.submit(s)
	b.must(Cancel{Job: id})
	if out := b.step(Requeue{Job: id, Ended: true}); out.Refused == nil || out.Refused.Reason != api.ReasonNoRequeue {
		t.Fatalf("one that must not be: %+v", out)
	}
}

// An element counts in its array again, under the limit that the array has by now.
func TestRequeueOfAnEndedElement(t *testing.T) {
	b := newBench(t, 2)
	b.must(Submit{Spec: specOf(1), SpecHash: "a", Array: &api.Array{Indices: []int{0, 1, 2}, Limit: 1}, User: "ada", UID: 1000, Partition: "main"})
	b.must(Cancel{Job: 1})
	b.must(Update{Job: 2, ArrayLimit: new(3)})
	b.must(Requeue{Job: 1, Ended: true})
	if got := b.w.Job(1).Array.Limit; got != 3 {
		t.Fatalf("its limit is %d", got)
	}
	if bad := b.w.Verify(); len(bad) > 0 {
		t.Fatal(bad)
	}
	b.after(b.w.set.RetryBackoff)
	if b.w.Candidate(1) == nil {
		t.Fatal("it may not be admitted")
	}
}
