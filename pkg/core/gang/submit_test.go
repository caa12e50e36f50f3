package gang

import (
	"fmt"
	"slices"
	"testing"
	"time"

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
	if len(b.w.specs.asks) != 1 {
		t.Fatalf("%d asks of two equal jobs", len(b.w.specs.asks))
	}
	b.must(Cancel{Job: x})
	b.after(settings().KeepEnded)
	if len(b.w.specs.asks) != 1 {
		t.Error("the ask of a job that waits is forgotten")
	}
	b.must(Cancel{Job: y})
	b.after(settings().KeepEnded)
	if len(b.w.specs.asks) != 0 {
		t.Errorf("%d asks of no job", len(b.w.specs.asks))
	}
}

// An admin's hold stays one whoever holds the job again, until an admin says otherwise.
func TestHoldOfAnAdminStays(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.must(Hold{Job: id})
	b.must(Hold{Job: id, Admin: true})
	for _, again := range []Hold{{Job: id}, {Job: id, Admin: true}, {Job: id, Admin: true, Lower: true}} {
		if out := b.step(again); out.Ignored != "already held" || b.w.Job(id).Held != HeldAdmin {
			t.Errorf("%+v: %+v, held by %q", again, out, b.w.Job(id).Held)
		}
	}
	b.must(Hold{Job: id, Lower: true})
	if held := b.w.Job(id).Held; held != HeldUser {
		t.Errorf("lowered, and held by %q", held)
	}
}

// The ranks of each attempt are told how many came before it, while it is prepared and afterwards.
func TestRanksAreToldTheirRestarts(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.MaxRetries = intPtr(2)
	id := b.submit(s)
	for n := range 3 {
		b.must(b.spread(id))
		told := func() int { return b.w.Desired("n1")[0].Body.RestartCount }
		prepared := told()
		b.ready(id)
		b.phase(id, "n1", api.PhaseRunning, api.RankActual{Rank: 0, PID: 100})
		if prepared != n || told() != n || b.w.Job(id).Restarts != n {
			t.Errorf("attempt %d is told of %d restarts, then of %d; on record are %d", n, prepared, told(), b.w.Job(id).Restarts)
		}
		b.phase(id, "n1", api.PhaseStopped, exit(0, 1))
		b.after(time.Hour)
	}
}

// A notice that was for the script alone and that the script does not take is for the steps of the
// other nodes, from when its node says so.
func TestPassedNoticeIsToldToTheOthers(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.Launch = api.LaunchBatch
	id := b.submit(s)
	b.start(id)
	told := func() (passed []bool) {
		for _, n := range []string{"n1", "n2"} {
			passed = append(passed, b.w.Desired(n)[0].Passed)
		}
		return passed
	}
	if got := told(); got[0] || got[1] {
		t.Errorf("before: %v", got)
	}
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Passed: true, Ranks: []api.RankActual{{Rank: 0, PID: 100}}})
	if got := told(); got[0] || !got[1] {
		t.Errorf("after: %v", got)
	}
}

// The next attempt avoids the node of the rank that was lost, rank 0's as any other's.
func TestLostNodeIsAvoided(t *testing.T) {
	for _, node := range []string{"n1", "n2"} {
		b := newBench(t, 2)
		id := b.submit(specOf(2))
		b.start(id)
		b.must(NodeGone{Node: node})
		b.after(b.w.set.NodeTimeout)
		b.ack(id)
		if got := b.w.Job(id).Avoid; !slices.Equal(got, []string{node}) {
			t.Errorf("%s was lost, avoided are %v", node, got)
		}
	}
}

// What an array is said to have come to is the worst of it.
func TestWorst(t *testing.T) {
	for want, states := range map[api.JobState]map[api.JobState]int{
		api.JobFailed:    {api.JobFailed: 1, api.JobCompleted: 9},
		api.JobCompleted: {api.JobCompleted: 1, api.JobCancelled: 3},
		api.JobCancelled: {api.JobCancelled: 2},
	} {
		if got := worst(states); got != want {
			t.Errorf("%v: %s, want %s", states, got, want)
		}
	}
}

func TestSubmissionsThatAreRefused(t *testing.T) {
	b := newBench(t, 1)
	sub := func(edit func(*Submit)) Submit {
		ev := Submit{Spec: specOf(1), SpecHash: "h", User: "ada", Partition: "main"}
		edit(&ev)
		return ev
	}
	b.refuses(sub(func(ev *Submit) { ev.Spec = nil }), "the submission has no spec")
	b.refuses(sub(func(ev *Submit) { ev.Spec = specOf(0) }), fmt.Sprintf("invalid size 0: want 1 to %d ranks", api.MaxGangSize))
	b.refuses(sub(func(ev *Submit) { ev.Spec = specOf(api.MaxGangSize + 1) }), fmt.Sprintf("invalid size %d: want 1 to %d ranks", api.MaxGangSize+1, api.MaxGangSize))
	roles := specOf(3)
	roles.Roles = []api.Role{{Name: "a", Count: 1}, {Name: "b", Count: 1}}
	b.refuses(sub(func(ev *Submit) { ev.Spec = roles }), "invalid size 3: the roles come to 2 ranks")
	b.refuses(sub(func(ev *Submit) { ev.Array = &api.Array{} }), fmt.Sprintf("invalid array of 0 elements: want 1 to %d", api.MaxArraySize))
	b.w.SetPartitions([]api.Partition{{Name: "main", Default: true}, {Name: "night"}})
	b.refuses(sub(func(ev *Submit) { ev.Partition = "main,nite" }), `no partition "nite"`)
	b.must(sub(func(ev *Submit) { ev.Partition = "main,night" }))
}

// TestIDsAreSkipped: never back.
func TestIDsAreSkipped(t *testing.T) {
	b := newBench(t, 1)
	b.w.SkipIDs(7)
	b.w.SkipIDs(3)
	if id := b.submit(specOf(1)); id != 7 || b.w.NextID() != 8 {
		t.Errorf("job %d, then %d", id, b.w.NextID())
	}
}
