package gang

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
)

// What makes no sense changes nothing.
func TestReportsThatAreIgnored(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	if out := b.phase(id, "n1", "asleep"); out.Applied {
		t.Errorf("an unknown phase: %+v", out)
	}
	b.state(id, api.JobRunning)
	b.must(NodeGone{Node: "n1"})
	if out := b.phase(id, "n1", api.PhaseStopped, exit(0, 1)); out.Ignored != "no session: a hello comes first" {
		t.Errorf("of a node without a session: %+v", out)
	}
}

// A node that says only the signal is told as a shell would tell it.
func TestASignalIsAnExitCode(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	b.phase(id, "n1", api.PhaseStopped, api.RankActual{Rank: 0, PID: 100, Exited: true, Signal: 9})
	if v := b.w.Job(id).Verdict; v == nil || v.ExitCode != 137 || v.Signal != 9 {
		t.Errorf("%+v", v)
	}
}

// Only a stop by the time limit is the deadline's, where that had cut the limit.
func TestACrashBeforeADeadlineIsACrash(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(due(50*time.Minute, time.Hour, 10*time.Minute))
	b.start(id)
	b.phase(id, "n1", api.PhaseRunning, exit(0, 1))
	b.ack(id)
	b.state(id, api.JobFailed)
}

// --no-requeue refuses the owner's requeue, not the scheduler's preemption.
func TestWhoMayNotBeRequeuedMayBePreempted(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.NoRequeue = true
	id := b.submit(s)
	b.start(id)
	if out := b.step(Requeue{Job: id}); out.Refused == nil {
		t.Errorf("requeued: %+v", out)
	}
	b.must(Preempt{Job: id, For: "job 9"})
	b.ack(id)
	b.state(id, api.JobPreempted)
}

// Only who asked for a notice, and checkpoints, hands its work over.
func TestKeepsWork(t *testing.T) {
	notice := &api.Notice{Signal: "USR1", Lead: time.Minute}
	set := &Checkpoint{Epoch: 1, Complete: true}
	for _, c := range []struct {
		name string
		j    Job
		want bool
	}{
		{"nothing", Job{Spec: &api.Spec{}, Wishes: new(Wishes), Past: noPast}, false},
		{"a notice alone", Job{Spec: &api.Spec{Notice: notice}, Wishes: new(Wishes), Past: &Past{Attempt: Attempt{Epoch: 2}}}, false},
		{"it says that it checkpoints", Job{Spec: &api.Spec{Notice: notice, Checkpoint: api.CheckpointDrain}, Wishes: new(Wishes), Past: noPast}, true},
		{"it has shown it", Job{Spec: &api.Spec{Notice: notice}, Wishes: new(Wishes), Past: &Past{Attempt: Attempt{Epoch: 2}, Progress: Progress{Checkpoint: set}}}, true},
		{"without a notice", Job{Spec: &api.Spec{Checkpoint: api.CheckpointDrain}, Wishes: new(Wishes), Past: &Past{Attempt: Attempt{Epoch: 2}, Progress: Progress{Checkpoint: set}}}, false},
	} {
		if got := keepsWork(&c.j); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// What is kept of an attempt is the time from its start to its newest whole set.
func TestKeep(t *testing.T) {
	at := func(d time.Duration) time.Time { return epoch0.Add(d) }
	for _, c := range []struct {
		name string
		c    *Checkpoint
		want time.Duration
	}{
		{"no checkpoint", nil, time.Hour},
		{"half of a set", &Checkpoint{Epoch: 2, Time: at(time.Minute)}, time.Hour},
		{"a set of the attempt before", &Checkpoint{Epoch: 1, Complete: true, Time: at(time.Minute)}, time.Hour},
		{"a set", &Checkpoint{Epoch: 2, Complete: true, Time: at(time.Minute)}, time.Hour + time.Minute},
		{"a clock that was set back", &Checkpoint{Epoch: 2, Complete: true, Time: at(-time.Minute)}, time.Hour},
	} {
		j := Job{Wishes: new(Wishes), Past: &Past{Attempt: Attempt{Epoch: 2, Start: epoch0}, Progress: Progress{Kept: time.Hour, Checkpoint: c.c}}}
		if keep(&j); j.Kept != c.want {
			t.Errorf("%s: %v, want %v", c.name, j.Kept, c.want)
		}
	}
}

// A node may name ranks that the gang does not have.
func TestSilentRanksThatAreNone(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(2))
	b.start(id)
	g := &guard{seen: map[string]*Watched{"n1": {Node: "n1", Silent: []int{-1, 2, 99}}}}
	if all := g.silent(b.w.Job(id)); len(all) != 0 {
		t.Errorf("%v", all)
	}
	g.seen["n1"].Silent = []int{99, 1, 0, 1}
	if all := g.silent(b.w.Job(id)); !slices.Equal(all, []quietVoice{{speaker{-1, 0}, "n1"}, {speaker{-1, 1}, "n1"}}) {
		t.Errorf("%v, want each once, the first first", all)
	}
}

// A message alone is an update; what a gang is placed by can't change once it is placed.
func TestUpdatesOfARunningGang(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	b.must(Update{Job: id, Message: new("look at the loss"), By: "ada"})
	for _, ev := range []Update{{Job: id, Constraint: new("ib")}, {Job: id, Prefer: new("ib")}, {Job: id, Partition: new("big")},
		{Job: id, Begin: new(b.now.Wall.Add(time.Hour))}} {
		if out := b.step(ev); out.Refused == nil || out.Refused.Code != api.CodeConflict {
			t.Errorf("%+v: %+v", ev, out)
		}
	}
}

// TestARankIsWarned: what it is warned of is an event, once, and so is that it is over.
func TestARankIsWarned(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	warn := func(text string, applied bool) {
		t.Helper()
		if out := b.phase(id, "n1", api.PhaseRunning, api.RankActual{PID: 100, Warning: text}); out.Applied != applied {
			t.Errorf("%q: %+v", text, out)
		}
	}
	warn("uses 9G of 8G", true)
	warn("uses 9G of 8G", false)
	warn("", true)
	warn("", false)
	warn("uses 9G of 8G", true)
	if got := slices.Sorted(maps.Keys(b.w.jobs.byID[id].warned)); !slices.Equal(got, []int{0}) {
		t.Errorf("%v", got)
	}
	b.phase(id, "n1", api.PhaseStopped, api.RankActual{PID: 100, Exited: true, Warning: "uses 10G of 8G"})
}

// TestStopsOfTheNodesOwn: a stop that nobody ordered here is the loss of the node.
func TestStopsOfTheNodesOwn(t *testing.T) {
	for _, cause := range []api.Cause{api.CauseNodeLost, api.CausePreempted, api.CauseRequeued, api.CauseOOM, api.CauseStalled, api.CauseTimeout} {
		t.Run(string(cause), func(t *testing.T) {
			b := newBench(t, 2)
			id := b.submit(timed(2, time.Hour))
			b.start(id)
			b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: cause, Text: map[bool]string{true: "9G of 8G"}[cause == api.CauseOOM]})
			b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: cause})
			for range 2 { // a later cause, and again
				b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: api.CauseGPUHang})
			}
			b.ack(id)
		})
	}
}

// TestAnImageThatIsMoved: members that found other images of one name don't start together.
func TestAnImageThatIsMoved(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.Container = &api.Container{Image: "torch:1"}
	id := b.submit(s)
	b.must(b.spread(id))
	ready := func(node, image string) {
		b.say(node, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseReady, Port: 4000, Image: image})
	}
	ready("n1", "sha256:1")
	ready("n2", "sha256:2")
	if j := b.w.Job(id); !blocked(j) || j.Image != "sha256:1" || len(j.Refusals) != 1 || j.Refusals[0].Text != "the image is sha256:2 here and sha256:1 elsewhere" {
		t.Errorf("%+v", j.Refusals)
	}
}

// TestStaleClaimsAreToldOnce a session, though they are refused each time.
func TestStaleClaimsAreToldOnce(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(1))
	claim := func(job int64) {
		t.Helper()
		out := b.say("n1", api.MemberActual{MemberKey: memberKey(job, 7), Phase: api.PhaseRunning})
		if out.Refused == nil || out.Refused.Message != fmt.Sprintf("stale epoch 7 of job %d", job) {
			t.Errorf("%+v", out)
		}
	}
	eventsSince(b)
	for range 2 {
		claim(id)
		claim(99)
	}
	want := []string{string(api.EventStaleRefused) + " n1: running", string(api.EventStaleRefused) + " n1: running, of job 99 which is not known"}
	if got := eventsSince(b); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	b.must(NodeGone{Node: "n1"})
	b.hello("n1")
	eventsSince(b)
	claim(id)
	if got := eventsSince(b); len(got) != 1 {
		t.Errorf("in a new session: %q", got)
	}
}
