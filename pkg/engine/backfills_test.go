package engine

import (
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/gang"
)

// TestClaimsOutliveTheController: a gang of all three nodes waits behind a job on one. A
// smaller one that runs as long is ahead of it in the order of service, and is kept off the free
// nodes by the backfill alone: with the backfills made anew it would start when the controller does, and with
// backfills that end where a node is not back yet, when the first node is.
func TestClaimsOutliveTheController(t *testing.T) {
	f := newFarm(t)
	job := func(size int, limit time.Duration) int64 {
		s := spec(size)
		s.RanksPerNode, s.TimeLimit = 1, limit
		return f.submit("", s)
	}
	first := job(1, time.Hour)
	for range 3 {
		f.all()
	}
	large := job(3, 10*time.Hour)
	small := job(1, 10*time.Hour)
	waits := func(when string) {
		t.Helper()
		f.settled()
		if a, b, c := f.state(first), f.state(large), f.state(small); a != api.JobRunning || b != api.JobPending || c != api.JobPending {
			t.Fatalf("%s: the first is %s, the large one %s, the small one %s", when, a, b, c)
		}
	}
	waits("before")
	for range 3 {
		f.kill()
		f.begin()
		waits("after a restart")
		f.all()
		waits("when all nodes have said what they have")
	}
	if _, err := f.Do(t.Context(), gang.Cancel{Job: first, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		f.all()
	}
	if a, b := f.state(large), f.state(small); a != api.JobRunning || b != api.JobPending {
		t.Errorf("when the first has ended the large one is %s, the small one %s", a, b)
	}
}
