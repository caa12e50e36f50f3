package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
)

// pairRuns is a job of two ranks on n1 and n2 in its second epoch, with step 3 of two tasks on n2.
func pairRuns(edit func(*gang.Job)) *gang.Job {
	return waitingJob(func(j *gang.Job) {
		j.Spec = &api.Spec{Size: 2, Launch: api.LaunchRanks}
		j.Epoch, j.Members = 2, []gang.Member{{Node: "n1", Ranks: []int{0}}, {Node: "n2", Ranks: []int{1}}}
		j.Ranks = []gang.Rank{{State: api.RankRunning, Slot: cluster.Slot{Node: "n1"}}, {State: api.RankRunning, Slot: cluster.Slot{Node: "n2"}}}
		j.Steps = []gang.Step{{ID: 3, Parts: []gang.StepPart{{Member: 1, Tasks: []int{0, 1}}}}}
		edit(j)
	})
}

func nobodyEnded(*gang.Job, api.TaskKey) bool { return false }

// TestPartyOf: a node speaks for the ranks and tasks that are on it, and for no others.
func TestPartyOf(t *testing.T) {
	j, batch := pairRuns(func(*gang.Job) {}), pairRuns(func(j *gang.Job) { j.Spec.Launch = api.LaunchBatch })
	three, nine := 3, 9
	for _, c := range []struct {
		j    *gang.Job
		node string
		call api.Call
		want party
		err  string
		code api.Code
	}{
		{j, "n1", api.Call{Rank: 0}, party{store.OfRanks, 2}, "", ""}, {j, "n2", api.Call{Rank: 1}, party{store.OfRanks, 2}, "", ""}, {batch, "n1", api.Call{Rank: 0}, party{store.OfRanks, 1}, "", ""},
		{j, "n2", api.Call{Rank: 0}, party{}, "rank 0 of job 7 is not on node n2", api.CodePermission},
		{j, "n1", api.Call{Rank: -1}, party{}, "rank -1 of job 7 is not on node n1", api.CodePermission},
		{j, "n1", api.Call{Rank: 2}, party{}, "rank 2 of job 7 is not on node n1", api.CodePermission},
		{j, "n2", api.Call{Step: &three, Rank: 1}, party{3, 2}, "", ""},
		{j, "n1", api.Call{Step: &three, Rank: 1}, party{}, "task 1 of step 7.3 does not run on node n1", api.CodePermission},
		{j, "n2", api.Call{Step: &nine, Rank: 1}, party{}, "step 7.9 is over", api.CodeAlreadyEnded},
	} {
		c.call.Job = 7
		p, err := partyOf(c.j, c.node, &c.call)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if p != c.want || text != c.err || err != nil && err.Code != c.code {
			t.Errorf("%s, rank %d: %+v, %s; want %+v, %s", c.node, c.call.Rank, p, text, c.want, c.err)
		}
	}
	for want, p := range map[string]party{"the gang, rank 1 of job 7, rank": {store.OfRanks, 2}, "step 7.0, task 1 of step 7.0, task": {0, 2}} {
		if got := p.text(j) + ", " + p.member(j, 1) + ", " + p.word(); got != want {
			t.Errorf("%+v is called %s", p, got)
		}
	}
}

// TestSetsOfAParty: which sets are kept of a party, and which one it is given.
func TestSetsOfAParty(t *testing.T) {
	set := func(epoch, step int) store.SetKey {
		return store.SetKey{MemberKey: api.MemberKey{Job: 7, Epoch: epoch}, Step: step}
	}
	ranks, tasks := party{store.OfRanks, 2}, party{3, 4}
	none := pairRuns(func(*gang.Job) {})
	whole := pairRuns(func(j *gang.Job) {
		j.Checkpoint = &gang.Checkpoint{Epoch: 2, Before: 1, Complete: true}
		j.TaskCheckpoint = &gang.TaskCheckpoint{StepSet: gang.StepSet{Epoch: 2, Step: 3, Tasks: 4}, Before: gang.StepSet{Epoch: 1, Step: 5, Tasks: 6}, Complete: true}
	})
	half := whole.Copy()
	half.Checkpoint, half.TaskCheckpoint = &gang.Checkpoint{Epoch: 2, Before: 1}, &gang.TaskCheckpoint{StepSet: whole.TaskCheckpoint.StepSet, Before: whole.TaskCheckpoint.Before}
	for _, c := range []struct {
		p        party
		j        *gang.Job
		kept     []store.SetKey
		complete bool
		get      api.CheckpointGet
		want     store.SetKey
		err      string
	}{
		{ranks, none, nil, false, api.CheckpointGet{}, store.SetKey{}, "job 7 has no complete checkpoint; one is complete when every rank has put its own in the same epoch"},
		{ranks, whole, []store.SetKey{set(2, store.OfRanks), set(1, store.OfRanks)}, true, api.CheckpointGet{}, set(2, store.OfRanks), ""},
		{ranks, half, []store.SetKey{set(2, store.OfRanks), set(1, store.OfRanks)}, false, api.CheckpointGet{}, set(1, store.OfRanks), ""},
		{ranks, none, nil, false, api.CheckpointGet{Epoch: 1}, set(1, store.OfRanks), ""},
		{tasks, none, nil, false, api.CheckpointGet{}, store.SetKey{}, "job 7 has no complete checkpoint; one is complete when every task of a step has put its own in the same epoch"},
		{tasks, whole, []store.SetKey{set(2, 3), set(1, 5)}, true, api.CheckpointGet{Own: true}, set(2, 3), ""},
		{tasks, half, []store.SetKey{set(2, 3), set(1, 5)}, false, api.CheckpointGet{Own: true}, store.SetKey{}, "the newest checkpoints of job 7 are of 6 tasks, and step 7.3 has 4; take one by its number: gckpt get --rank=N"},
		{tasks, half, []store.SetKey{set(2, 3), set(1, 5)}, false, api.CheckpointGet{}, set(1, 5), ""},
		{tasks, none, nil, false, api.CheckpointGet{From: &api.TaskSet{Epoch: 1, Step: 8}}, set(1, 8), ""},
	} {
		kept, complete := c.p.kept(c.j)
		if !slices.Equal(kept, c.kept) || complete != c.complete {
			t.Errorf("%+v: %v, %t, want %v, %t", c.p, kept, complete, c.kept, c.complete)
		}
		if got, err := c.p.wanted(c.j, &c.get); got != c.want || errText(err) != c.err {
			t.Errorf("%+v wants %+v and gets %v, %v; want %v, %s", c.p, c.get, got, err, c.want, c.err)
		}
	}
}

// TestNever: when a barrier of the current epoch can't be released any more, and by whom it is.
func TestNever(t *testing.T) {
	after := func(task int) ended {
		return func(_ *gang.Job, k api.TaskKey) bool { return k == api.TaskKey{Step: 3, Task: task} }
	}
	for i, c := range []struct {
		edit    func(*gang.Job)
		step    int
		arrived map[int]string
		gone    ended
		want    string
	}{
		{func(*gang.Job) {}, store.OfRanks, nil, nobodyEnded, ""},
		{func(j *gang.Job) { j.Drain = &gang.Drain{} }, store.OfRanks, nil, nobodyEnded, "barrier b: job 7 is being stopped"},
		{func(j *gang.Job) { j.Verdict = &gang.Verdict{} }, store.OfRanks, nil, nobodyEnded, "barrier b: job 7 is being stopped"},
		{func(j *gang.Job) { j.Ranks[1].Exited = true }, store.OfRanks, nil, nobodyEnded, "barrier b: rank 1 of job 7 has ended and will not come"},
		{func(j *gang.Job) { j.Ranks[1].Exited = true }, store.OfRanks, map[int]string{1: ""}, nobodyEnded, ""},
		{func(*gang.Job) {}, store.OfRanks, nil, after(1), ""},
		{func(*gang.Job) {}, 3, nil, after(1), "barrier b: task 1 of step 7.3 has ended and will not come"},
		{func(*gang.Job) {}, 3, map[int]string{1: ""}, after(1), ""},
		{func(*gang.Job) {}, 3, nil, after(2), ""}, // there are two
		{func(j *gang.Job) { j.Ranks[1].Exited = true }, 3, nil, nobodyEnded, ""},
		{func(*gang.Job) {}, 4, nil, nobodyEnded, "barrier b: step 7.4 is over"},
	} {
		err := never(pairRuns(c.edit), barrierKey{c.step, "b"}, &barrier{size: 2, arrived: c.arrived}, c.gone)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != c.want || err != nil && err.Code != api.CodeConflict {
			t.Errorf("%d: %s, want %s", i, text, c.want)
		}
	}
}

// TestArrive: the last to come releases a barrier; who comes again with its key is answered, who comes in vain or in an old epoch is told.
func TestArrive(t *testing.T) {
	var s barriers
	j := pairRuns(func(*gang.Job) {})
	at := barrierKey{store.OfRanks, "b"}
	arrive := func(j *gang.Job, rank int, key string) (*barrier, bool, *api.Error) {
		return s.arrive(j, at, rank, key, 2, nobodyEnded)
	}
	first, last, err := arrive(j, 0, "k0")
	if err != nil || last || first.size != 2 || len(first.arrived) != 1 {
		t.Fatalf("%+v, %t, %v", first, last, err)
	}
	if b, last, err := arrive(j, 0, "k1"); b != first || last || err != nil || b.arrived[0] != "k1" {
		t.Errorf("the same once more: %+v, %t, %v", b, last, err)
	}
	s.leave(j, at, 0, "k0", first) // an earlier call of it, that broke off
	if len(first.arrived) != 1 {
		t.Error("an old call took the new arrival away")
	}
	s.leave(j, at, 0, "k1", &barrier{arrived: map[int]string{0: "k1"}})
	if b, last, err := arrive(j, 1, "k2"); b != first || !last || err != nil {
		t.Errorf("the last: %+v, %t, %v", b, last, err)
	}
	s.leave(j, at, 0, "k1", first)
	if len(first.arrived) != 2 {
		t.Error("one that was released is not left any more")
	}
	for key, again := range map[string]bool{"k1": true, "k9": false, "": false} {
		b, last, err := arrive(j, 0, key)
		if (b == first) != again || last || err != nil {
			t.Errorf("key %q: %+v, %t, %v", key, b, last, err)
		}
		s.leave(j, at, 0, key, b)
	}
	exited := pairRuns(func(j *gang.Job) { j.Ranks[1].Exited = true })
	if b, last, err := arrive(exited, 0, "k3"); b != nil || last || err == nil || err.Message != "barrier b: rank 1 of job 7 has ended and will not come" {
		t.Errorf("in vain: %+v, %t, %v", b, last, err)
	}
	if open := s.jobs[7].open[at]; len(open.arrived) != 0 {
		t.Errorf("who came in vain is still there: %v", open.arrived)
	}
	next := pairRuns(func(j *gang.Job) { j.Epoch = 3 })
	if b, _, err := arrive(next, 0, "k1"); b == first || err != nil || len(s.jobs[7].past) != 0 {
		t.Errorf("in the next epoch: %+v, %v", b, err)
	}
	if b, last, err := arrive(j, 1, "k4"); b != nil || last || err == nil || err.Code != api.CodeStaleEpoch || err.Message != "epoch 2 of job 7 is over" {
		t.Errorf("in the one before: %+v, %t, %v", b, last, err)
	}
}

// TestCheckOfBarriers: a change of a job ends the barriers that it makes vain and no others; of a job that is over none are kept.
func TestCheckOfBarriers(t *testing.T) {
	var s barriers
	j := pairRuns(func(*gang.Job) {})
	if s.check(j, nobodyEnded) {
		t.Error("a job without barriers has some to drop")
	}
	ofRanks, _, _ := s.arrive(j, barrierKey{store.OfRanks, "b"}, 0, "", 2, nobodyEnded)
	ofStep, _, _ := s.arrive(j, barrierKey{3, "b"}, 0, "", 2, nobodyEnded)
	closed := func(b *barrier) bool {
		select {
		case <-b.done:
			return true
		default:
			return false
		}
	}
	if s.check(j, nobodyEnded) || closed(ofRanks) || closed(ofStep) {
		t.Error("nothing has changed")
	}
	over := j.Copy()
	over.Steps = nil
	if s.check(over, nobodyEnded) || closed(ofRanks) || !closed(ofStep) || ofStep.err.Error() != "barrier b: step 7.3 is over" {
		t.Errorf("when the step is over: %v", ofStep.err)
	}
	if len(s.jobs[7].open) != 1 {
		t.Errorf("%d are open", len(s.jobs[7].open))
	}
	over.Verdict = &gang.Verdict{}
	if !s.check(over, nobodyEnded) || !closed(ofRanks) || s.jobs[7] != nil {
		t.Error("when the job is over something of it is kept")
	}
}

// TestRememberAtMost: of all steps together the newest so many; a name that comes again is one.
func TestRememberAtMost(t *testing.T) {
	var s barriers
	m := s.meeting(7, 1)
	key := func(n int) barrierKey { return barrierKey{n / store.KeptReleases, fmt.Sprint(n)} }
	for n := range store.MostReleases {
		m.remember(key(n), &barrier{})
	}
	again := &barrier{}
	if m.remember(key(0), again); len(m.past) != store.MostReleases || m.past[key(0)] != again || m.order[len(m.order)-1] != key(0) || m.order[0] != key(1) {
		t.Errorf("%d are kept, the oldest %v", len(m.past), m.order[0])
	}
	if m.remember(barrierKey{99, "x"}, &barrier{}); len(m.past) != store.MostReleases || len(m.order) != len(m.past) || m.past[key(1)] != nil || m.past[key(2)] == nil {
		t.Errorf("%d are kept, the oldest %v", len(m.past), m.order[0])
	}
	if s.meeting(7, 1) != m || s.meeting(7, 0) != m || s.meeting(7, 2) == m {
		t.Error("an epoch has not its own")
	}
}

// TestMayPut: a rank or task may put a checkpoint while it runs.
func TestMayPut(t *testing.T) {
	j := pairRuns(func(j *gang.Job) { j.Widest = gang.StepSet{Epoch: 2, Step: 3, Tasks: 2} })
	call := func(epoch, rank int) *api.Call {
		return &api.Call{MemberKey: api.MemberKey{Job: 7, Epoch: epoch}, Rank: rank}
	}
	for _, c := range []struct {
		p    party
		call *api.Call
		want string
	}{
		{party{store.OfRanks, 2}, call(2, 1), ""}, {party{store.OfRanks, 2}, call(2, 2), "job 7 has no rank 2 that runs"},
		{party{3, 2}, call(2, 1), ""}, {party{3, 2}, call(2, 2), "task 2 of step 7.3 has ended"},
		{party{3, 2}, call(1, 1), "epoch 1 of job 7 is over; the current one is 2; what an earlier one saves must not replace it"},
	} {
		if err := c.p.mayPut(j, c.call); errText(err) != c.want {
			t.Errorf("%+v, %+v: %v, want %s", c.p, c.call, err, c.want)
		}
	}
}

// TestWaitForRelease: who waits is answered with how many came, with why it is in vain, or with why the caller left.
func TestWaitForRelease(t *testing.T) {
	kept := make(chan store.Release, 1)
	s := barriers{keep: func(r store.Release) error { kept <- r; return nil }}
	j := pairRuns(func(*gang.Job) {})
	p := party{store.OfRanks, 2}
	wait := func(ctx context.Context, j *gang.Job, rank int) (*api.CallResult, error) {
		return s.wait(ctx, j, p, rank, &api.Barrier{Name: "b", Key: fmt.Sprint("k", rank)}, nobodyEnded)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	if _, err := wait(gone, j, 0); err != errLeft {
		t.Errorf("who left: %v", err)
	}
	if n := len(s.jobs[7].open[barrierKey{p.step, "b"}].arrived); n != 0 {
		t.Errorf("%d are there still", n)
	}
	first := make(chan *api.CallResult, 1)
	go func() {
		res, _ := wait(context.Background(), j, 0)
		first <- res
	}()
	last, err := wait(t.Context(), j, 1)
	if res := <-first; err != nil || res == nil || last.Size != 2 || res.Size != 2 {
		t.Errorf("%+v and %+v, %v", res, last, err)
	}
	differs(t, "the release", <-kept, store.Release{SetKey: store.SetKey{MemberKey: api.MemberKey{Job: 7, Epoch: 2}, Step: store.OfRanks}, Name: "b", Keys: map[int]string{0: "k0", 1: "k1"}})
	over := pairRuns(func(j *gang.Job) { j.Epoch, j.Drain = 3, &gang.Drain{} })
	if res, err := wait(t.Context(), over, 0); res != nil || errText(err) != "barrier b: job 7 is being stopped" {
		t.Errorf("%+v, %v", res, err)
	}
}
