package gang

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

func TestLifeOfAGang(t *testing.T) {
	b := newBench(t, 4)
	id := b.submit(specOf(4))
	b.state(id, api.JobPending)
	if b.w.Candidate(id) == nil {
		t.Fatal("a waiting gang is not a candidate")
	}
	b.must(b.spread(id))
	b.state(id, api.JobReserved)
	if b.w.Candidate(id) != nil {
		t.Fatal("a reserved gang is a candidate")
	}
	for i, n := range []string{"n1", "n2", "n3"} {
		b.phase(id, n, api.PhaseReady)
		if as := b.w.Desired("n1"); as[0].Gate != nil {
			t.Fatalf("gate open with %d of 4 ready", i+1)
		}
	}
	b.phase(id, "n4", api.PhaseReady)
	b.state(id, api.JobRunning)
	as := b.w.Desired("n3")
	if len(as) != 1 || as[0].Gate == nil || as[0].Gate.MasterPort != 4000 || as[0].Body.Nodes[0].Address != "10.0.0.1" || as[0].Body.SpecHash != b.w.Job(id).SpecHash {
		t.Fatalf("desired of n3: %+v", as)
	}
	for r, n := range []string{"n1", "n2", "n3", "n4"} {
		b.phase(id, n, api.PhaseRunning, api.RankActual{Rank: r, PID: 10 + r})
	}
	for r, n := range []string{"n1", "n2", "n3", "n4"} {
		b.state(id, api.JobRunning)
		b.phase(id, n, api.PhaseStopped, exit(r, 0))
	}
	b.state(id, api.JobCompleted)
	for _, n := range b.w.Nodes() {
		if len(n.Res.Grants) != 0 {
			t.Fatalf("%s holds %v", n.Name, n.Res.Grants)
		}
	}
	b.after(b.w.set.KeepEnded)
	if b.w.Job(id) != nil {
		t.Fatal("still in memory")
	}
}

// A gang that has ended is COMPLETING until the last member has proved that it is empty.
func TestCompletingNeedsProof(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	b.phase(id, "n1", api.PhaseStopped, exit(0, 0))
	b.phase(id, "n2", api.PhaseRunning, exit(1, 0))
	b.state(id, api.JobCompleting)
	if as := b.w.Desired("n2"); len(as) != 1 || as[0].Stop != nil {
		t.Fatalf("a member that ends by itself is sent %+v", as)
	}
	b.phase(id, "n2", api.PhaseStopped, exit(1, 0))
	b.state(id, api.JobCompleted)
}

func TestCompletingIsBounded(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStuck, Ranks: []api.RankActual{exit(0, 0)},
		Survivors: []api.Survivor{{PID: 77, Command: "nfsd", State: "D"}}})
	b.after(45 * time.Second)
	b.state(id, api.JobCompleted)
	n := b.w.Node("n1")
	if len(n.Res.Grants) != 1 || n.Left[0].Text != "stuck: pid 77 nfsd (D)" {
		t.Fatalf("left %+v, grants %v", n.Left, n.Res.Grants)
	}
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped})
	if len(b.w.Node("n1").Res.Grants) != 0 {
		t.Fatal("grant kept after the proof")
	}
}

func TestBatchEndsWithRankZero(t *testing.T) {
	for _, tc := range []struct {
		code int
		want api.JobState
	}{{0, api.JobCompleted}, {3, api.JobFailed}} {
		b := newBench(t, 3)
		s := specOf(3)
		s.Launch = api.LaunchBatch
		id := b.submit(s)
		b.start(id)
		b.phase(id, "n1", api.PhaseStopped, exit(0, tc.code))
		b.state(id, api.JobCompleting)
		if as := b.w.Desired("n2"); as[0].Stop == nil {
			t.Fatal("the rest of the allocation is not stopped")
		}
		b.phase(id, "n2", api.PhaseStopped)
		b.phase(id, "n3", api.PhaseStopped)
		b.state(id, tc.want)
		if got := b.w.Job(id).Verdict.ExitCode; got != tc.code {
			t.Fatalf("exit code %d, want %d", got, tc.code)
		}
	}
}

func TestReservationTimeoutRollsTheWholeGangBack(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(3))
	b.must(b.spread(id))
	b.phase(id, "n1", api.PhaseReady)
	b.phase(id, "n3", api.PhaseReady)
	old := b.key(id)
	b.after(30 * time.Second)
	b.state(id, api.JobPending)
	j := b.w.Job(id)
	if len(j.Used) != 0 || j.Avoid[0] != "n2" || len(b.w.Node("n2").Strikes) != 0 {
		t.Fatalf("used %v avoid %v", j.Used, j.Avoid)
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		if _, held := b.w.Node(n).Res.Grant(old); !held {
			t.Fatalf("%s: the grant went before the member", n)
		}
		// It is asked to say that nothing is left, also where it was never told.
		if as := b.w.Desired(n); len(as) != 1 || as[0].Body != nil || as[0].Stop != nil || as[0].Gate != nil {
			t.Fatalf("%s still desires %v", n, as)
		}
	}
	// Nothing can have run: the gang may be placed again at once, beside what is left.
	b.must(b.spread(id))
	out := b.say("n2", api.MemberActual{MemberKey: old, Phase: api.PhaseReady})
	if out.Refused == nil || out.Refused.Code != api.CodeStaleEpoch {
		t.Fatalf("late answer: %+v", out)
	}
	b.state(id, api.JobReserved)
	b.step(NodeReport{Node: "n2", Actual: api.Actual{Gone: []api.MemberKey{old}}})
	if _, held := b.w.Node("n2").Res.Grant(old); held {
		t.Fatal("gone, and still held")
	}
}

func TestThreeFailedLaunchesDrainTheNode(t *testing.T) {
	b := newBench(t, 1)
	for _, user := range []string{"ada", "ada", "bob"} {
		if n := b.w.Node("n1"); n.State != api.NodeUp {
			t.Fatalf("%s before %s", n.State, user)
		}
		id := b.by(user)
		b.must(b.spread(id))
		b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameNode, Text: "no cgroup"}})
		b.must(Cancel{Job: id})
	}
	n := b.w.Node("n1")
	if n.State != api.NodeDrained || n.Reason != "launch failures: job 3: no cgroup" {
		t.Fatalf("%s %q", n.State, n.Reason)
	}
	b.must(NodeResume{Node: "n1"})
	if n := b.w.Node("n1"); n.State != api.NodeUp || len(n.Strikes) != 0 {
		t.Fatalf("%+v", n)
	}
}

func TestJobsOwnFaultStrikesNobodyAndEnds(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	runs := 0
	for ; b.w.Job(id).Verdict == nil; runs++ {
		b.after(5 * time.Minute)
		b.must(b.spread(id))
		b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameFiles, Text: "no such directory: /x"}})
	}
	b.state(id, api.JobFailed)
	v := b.w.Job(id).Verdict
	if runs != 5 || v.Cause != api.CauseLaunch || v.Text != "n1: no such directory: /x" || len(b.w.Node("n1").Strikes) != 0 {
		t.Fatalf("%d runs, %+v", runs, v)
	}
}

// A user whom the nodes do not take must not be able to drain them all by submitting.
func TestRefusedUserStrikesNobodyAndEnds(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(1))
	var places []string
	for b.w.Job(id).Verdict == nil {
		b.after(5 * time.Minute)
		b.must(b.spread(id))
		node := b.w.Job(id).Members[0].Node
		places = append(places, node)
		b.say(node, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameUser, Text: "user ada: uid 7 is below min_uid 1000 of this node"}})
		if j := b.w.Job(id); j.Verdict == nil && !slices.Equal(j.Avoid, []string{node}) {
			t.Errorf("avoids %v after a refusal of %s", j.Avoid, node)
		}
	}
	v := b.w.Job(id).Verdict
	if len(places) != 5 || v.Cause != api.CauseLaunch || v.Text != places[4]+": user ada: uid 7 is below min_uid 1000 of this node" {
		t.Errorf("%v, %+v", places, v)
	}
	for _, n := range []string{"n1", "n2"} {
		if got := b.w.Node(n); len(got.Strikes) != 0 || got.State != api.NodeUp {
			t.Errorf("%s: %d strikes, %s", n, len(got.Strikes), got.State)
		}
	}
}

// The rule of which the opposite makes a gang run for ever: the trigger's cause is
// charged when the drain starts, once.
func TestAlwaysCrashingGangEndsAfterItsBudget(t *testing.T) {
	for _, retries := range []int{0, 1, 4} {
		b := newBench(t, 3)
		s := specOf(3)
		s.MaxRetries = &retries
		id := b.submit(s)
		runs := 0
		for ; b.w.Job(id).Verdict == nil && runs < 50; runs++ {
			b.after(5 * time.Minute)
			b.start(id)
			b.phase(id, "n2", api.PhaseRunning, exit(1, 7))
			b.phase(id, "n2", api.PhaseStopped, exit(1, 7))
			b.ack(id)
		}
		j := b.w.Job(id)
		if runs != retries+1 || j.Verdict.ExitCode != 7 || j.Verdict.Trigger != 1 || j.Verdict.State != api.JobFailed {
			t.Fatalf("retries %d: %d runs, %+v", retries, runs, j.Verdict)
		}
	}
}

func TestTwentyPreemptionsChargeNothing(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	for range 20 {
		b.start(id)
		b.must(Preempt{Job: id, For: "job 99"})
		b.state(id, api.JobCompleting)
		b.ack(id)
		b.state(id, api.JobPending)
	}
	if j := b.w.Job(id); len(j.Used) != 0 || j.Restarts != 19 || !j.BackoffUntil.IsZero() || j.Epoch != 20 {
		t.Fatalf("%+v", j)
	}
}

func TestCancelDuringAnyDrainIsFinal(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	b.must(Preempt{Job: id, For: "job 9"})
	b.must(Cancel{Job: id, By: "ada"})
	if out := b.step(Cancel{Job: id}); out.Ignored != "already being cancelled" {
		t.Fatalf("%+v", out)
	}
	b.ack(id)
	b.state(id, api.JobCancelled)
	if out := b.step(Cancel{Job: id}); out.Refused == nil || out.Refused.Code != api.CodeAlreadyEnded {
		t.Fatalf("%+v", out)
	}
}

func TestTimeLimitOfTheShim(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.TimeLimit = time.Minute
	id := b.submit(s)
	b.start(id)
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: api.CauseTimeout, Ranks: []api.RankActual{exit(0, 143)}})
	b.state(id, api.JobCompleting)
	if d := b.w.Job(id).Drain; d.Cause != api.CauseTimeout || d.Moved != 2 {
		t.Fatalf("%+v", d)
	}
	b.ack(id)
	b.state(id, api.JobTimeout)
}

func TestLostNodeKeepsTheGangOutUntilItIsKnownGone(t *testing.T) {
	lost := func(t *testing.T) (*bench, int64) {
		b := newBench(t, 3)
		id := b.submit(specOf(2))
		b.start(id)
		b.must(NodeGone{Node: "n2"})
		b.state(id, api.JobRunning)
		b.after(30 * time.Second)
		b.state(id, api.JobCompleting)
		b.ack(id)
		b.state(id, api.JobPending)
		if b.w.Candidate(id) != nil {
			t.Fatal("candidate while its rank 1 may still run")
		}
		out := b.step(Admit{Job: id, Slots: []cluster.Slot{{Node: "n1"}, {Node: "n3"}}})
		if out.Refused == nil || out.Refused.Error() != "epoch 1 of job 1 may still run on n2" {
			t.Fatalf("%+v", out)
		}
		return b, id
	}
	for name, back := range map[string]func(b *bench, id int64){
		"hello without it": func(b *bench, id int64) { b.hello("n2") },
		"new boot": func(b *bench, id int64) {
			h := helloOf("n2")
			h.Hello.BootID = "boot-2"
			b.must(h)
		},
		"a person's word": func(b *bench, id int64) { b.must(NodeFence{Node: "n2"}) },
		"the lease": func(b *bench, id int64) {
			b.after(10*time.Minute + 14*time.Second)
			if b.w.Candidate(id) != nil {
				b.t.Fatal("a candidate before the lease, grace and slack were over")
			}
			b.after(time.Second)
		},
		"alive, then stopped": func(b *bench, id int64) {
			key := b.key(id)
			b.hello("n2", api.MemberActual{MemberKey: key, Phase: api.PhaseRunning})
			if b.w.Candidate(id) != nil {
				b.t.Fatal("candidate though the node says that it runs")
			}
			b.say("n2", api.MemberActual{MemberKey: key, Phase: api.PhaseStopped})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, id := lost(t)
			back(b, id)
			if b.w.Candidate(id) == nil {
				t.Fatal("not a candidate")
			}
			if got := b.w.Job(id).Used[api.CauseNodeLost]; got != 1 {
				t.Fatalf("charged %d times", got)
			}
		})
	}
}

func TestNothingIsPlacedAgainWhileMostNodesAreAway(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(1))
	b.start(id)
	b.must(NodeGone{Node: "n1"})
	b.must(NodeGone{Node: "n2"})
	b.after(time.Hour)
	if b.w.Candidate(id) != nil {
		t.Fatal("placed again by a controller that is probably the one cut off")
	}
	b.hello("n2")
	if b.w.Candidate(id) == nil {
		t.Fatal("not placed again though most nodes are back")
	}
}

func TestForceFencesAndNeverBlocksTheOthers(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(3))
	b.start(id)
	b.must(Cancel{Job: id})
	b.phase(id, "n1", api.PhaseStopped, exit(0, 143))
	b.phase(id, "n3", api.PhaseStopped, exit(2, 143))
	b.after(44 * time.Second)
	b.state(id, api.JobCompleting)
	b.after(time.Second)
	b.state(id, api.JobCancelled)
	if len(b.w.Node("n2").Res.Grants) != 1 || len(b.w.Node("n1").Res.Grants) != 0 {
		t.Fatal("grants")
	}
}

func TestLaunchWindow(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.must(b.spread(id))
	b.ready(id)
	b.phase(id, "n1", api.PhaseRunning, api.RankActual{Rank: 0, PID: 5})
	b.after(30 * time.Second)
	d := b.w.Job(id).Drain
	if d == nil || d.Cause != api.CauseLaunch || d.Trigger != 1 {
		t.Fatalf("%+v", d)
	}
}

func TestSameKeyGivesTheSameIDs(t *testing.T) {
	b := newBench(t, 0)
	ev := Submit{Key: "k", Spec: specOf(1), SpecHash: hashOf(specOf(1)), Partition: "main", Array: &api.Array{Indices: []int{2, 4, 6}}}
	first := b.must(ev)
	again := b.step(ev)
	if again.Ignored != "already submitted" || len(again.JobIDs) != 3 || again.JobIDs[2] != first.JobIDs[2] {
		t.Fatalf("%+v", again)
	}
	j := b.w.Job(first.JobIDs[1])
	if j.ArrayID != first.JobIDs[0] || j.ArrayIndex != 4 || *j.Array != (ArrayInfo{Count: 3, Min: 2, Max: 6, Step: 2}) {
		t.Fatalf("%+v %+v", j, j.Array)
	}
}

func TestArrayLimit(t *testing.T) {
	b := newBench(t, 4)
	ids := b.must(Submit{Spec: specOf(1), SpecHash: hashOf(specOf(1)), Partition: "main", Array: &api.Array{Indices: []int{0, 1, 2, 3}, Limit: 2}}).JobIDs
	candidates := func() (out []int64) {
		for _, id := range ids {
			if b.w.Candidate(id) != nil {
				out = append(out, id)
			}
		}
		return out
	}
	if got := candidates(); len(got) != 2 {
		t.Fatalf("%v", got)
	}
	b.must(Hold{Job: ids[0]})
	if got := candidates(); len(got) != 2 || got[0] != ids[1] {
		t.Fatalf("held: %v", got)
	}
	b.start(ids[1])
	b.start(ids[2])
	if got := candidates(); len(got) != 0 {
		t.Fatalf("two run: %v", got)
	}
	b.w.Take()
	b.phase(ids[1], "n1", api.PhaseStopped, exit(0, 0))
	if got := candidates(); len(got) != 1 || got[0] != ids[3] {
		t.Fatalf("one ended: %v", got)
	}
	if q := b.w.Take().Queue; q[len(q)-1] != ids[3] {
		t.Fatalf("queue %v", q)
	}
}

func TestBeginTime(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.Begin = epoch0.Add(time.Hour)
	id := b.submit(s)
	b.after(time.Hour - time.Second)
	if b.w.Candidate(id) != nil {
		t.Fatal("too early")
	}
	b.w.Take()
	b.after(time.Second)
	if b.w.Candidate(id) == nil || len(b.w.Take().Queue) != 1 {
		t.Fatal("not a candidate at its begin time")
	}
}

// The first time that a gang can't be prepared it may go elsewhere at once; from the second
// on it waits, longer each time.
func TestBackoffBeginsWithTheSecondRollback(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	for i, want := range []time.Duration{0, 1, 2, 4} {
		b.must(b.spread(id))
		b.phase(id, "n1", api.PhaseRefused)
		j := b.w.Job(id)
		if j.Rollbacks != i+1 {
			t.Fatalf("%d rollbacks, want %d", j.Rollbacks, i+1)
		}
		wait := time.Duration(0)
		if !j.BackoffUntil.IsZero() {
			wait = j.BackoffUntil.Sub(b.now.Wall)
		}
		if wait != want*time.Second {
			t.Errorf("after rollback %d it waits %v, want %v", i+1, wait, want*time.Second)
		}
		b.step(NodeResume{Node: "n1"}) // strikes are another story
		b.after(wait)
	}
}

// A node that has no session when the launch window ends is not judged; the window begins
// again, so that a node that comes back and does not start its ranks is found.
func TestLaunchWindowOfANodeThatWasAway(t *testing.T) {
	s := settings()
	s.NodeTimeout = time.Hour
	b := benchWith(t, 2, s)
	id := b.submit(specOf(2))
	b.must(b.spread(id))
	b.ready(id)
	b.phase(id, "n1", api.PhaseRunning, api.RankActual{Rank: 0, PID: 5})
	b.must(NodeGone{Node: "n2"})
	b.after(s.StartTimeout)
	if d := b.w.Job(id).Drain; d != nil {
		t.Fatalf("judged while it was away: %+v", d)
	}
	b.hello("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseReady, Port: 4000})
	b.after(s.StartTimeout)
	if d := b.w.Job(id).Drain; d == nil || d.Cause != api.CauseLaunch || d.Trigger != 1 {
		t.Fatalf("after another window: %+v", d)
	}
}

// A plan is checked again when it is carried out: a node may be in other partitions by then.
func TestPartitionIsCheckedAtAdmission(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	moved := helloOf("n2")
	moved.Partitions = []string{"other"}
	b.must(moved)
	out := b.step(b.spread(id))
	if out.Refused == nil || out.Refused.Message != "node n2 is not in partition main" {
		t.Fatalf("%+v", out)
	}
	if b.w.Job(id).Epoch != 0 || len(b.w.Node("n1").Res.Grants) != 0 {
		t.Error("part of it was admitted")
	}
	moved.Partitions = []string{"other", "main"}
	b.must(moved)
	b.must(b.spread(id))
}
