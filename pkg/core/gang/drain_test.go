package gang

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
)

func TestOneDrainOneCharge(t *testing.T) {
	b := newBench(t, 3)
	s := specOf(3)
	s.MaxRetries = intPtr(5)
	id := b.submit(s)
	b.start(id)
	b.phase(id, "n1", api.PhaseRunning, exit(0, 3))
	b.phase(id, "n2", api.PhaseRunning, exit(1, 4))
	b.phase(id, "n3", api.PhaseRunning, exit(2, 5))
	b.must(NodeGone{Node: "n2"})
	b.after(30 * time.Second)
	b.phase(id, "n3", api.PhaseLost)
	b.phase(id, "n1", api.PhaseStopped)
	j := b.w.Job(id)
	if len(j.Used) != 1 || j.Used[api.CauseNodeLost] != 1 {
		t.Fatalf("charged %v", j.Used)
	}
	if b.w.Fenced(id) == nil {
		t.Fatal("n2 is lost and its member is not waited for")
	}
}

// The story as the log and the metrics read it.
func TestDrainEvents(t *testing.T) {
	b := newBench(t, 4)
	id := b.submit(specOf(4))
	b.start(id)
	b.w.Take()
	b.phase(id, "n2", api.PhaseStopped, exit(1, 7))
	b.after(1500 * time.Millisecond)
	b.ack(id)
	var types []api.EventType
	for _, ev := range b.w.Take().Events {
		types = append(types, ev.Type)
		switch ev.Type {
		case api.EventDrainStarted:
			if ev.Cause != api.CauseCrash || *ev.Trigger != 1 || ev.Moved != 3 || ev.Epoch != 1 {
				t.Errorf("%+v", ev)
			}
		case api.EventDrainCompleted:
			if ev.Outcome != "failed" || ev.Seconds != 1.5 || ev.Cause != api.CauseCrash {
				t.Errorf("%+v", ev)
			}
		case api.EventEnded:
			if ev.State != api.JobFailed || *ev.ExitCode != 7 || ev.Text != "rank 1 exited with code 7" {
				t.Errorf("%+v", ev)
			}
		}
	}
	want := []api.EventType{api.EventRankExited, api.EventDrainStarted, api.EventMemberStopped,
		api.EventRankExited, api.EventMemberStopped, api.EventRankExited, api.EventMemberStopped, api.EventRankExited, api.EventMemberStopped,
		api.EventDrainCompleted, api.EventEnded}
	if !slices.Equal(types, want) {
		t.Fatalf("got  %v\nwant %v", types, want)
	}
}

func TestRankThatEndedBeforeTheOrderKeepsItsResult(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	b.must(Preempt{Job: id, For: "job 9"})
	b.phase(id, "n2", api.PhaseStopped, exit(1, 0)) // Stopping is empty: the order had not reached it
	b.ack(id)
	j := b.w.Job(id)
	b.state(id, api.JobPreempted)
	if j.Ranks[1].State != api.RankDone || j.Verdict.Text != "preempted for job 9; not run again: 1 of 2 ranks were done" {
		t.Fatalf("%s %q", ranksOf(j), j.Verdict.Text)
	}
}

func TestCleanExitAfterTheOrderIsStillPreempted(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	b.must(Preempt{Job: id, For: "job 9"})
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Stopping: api.CausePreempted, Ranks: []api.RankActual{exit(0, 0)}})
	b.state(id, api.JobPending)
}

func TestGangWithADoneRankIsNotPutBack(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.MaxRetries = intPtr(5)
	id := b.submit(s)
	b.start(id)
	b.phase(id, "n1", api.PhaseStopped, exit(0, 0))
	if out := b.step(Requeue{Job: id}); out.Refused == nil || out.Refused.Error() != "rank 0 of job 1 is done: another run would overwrite its work" {
		t.Fatalf("%+v", out)
	}
	b.phase(id, "n2", api.PhaseStopped, exit(1, 1))
	b.state(id, api.JobFailed)
	if j := b.w.Job(id); j.Ranks[0].State != api.RankDone || j.Ranks[1].State != api.RankFailed {
		t.Fatal(ranksOf(j))
	}
}

// TestNobodyOptsOutOfPreemption: who may not run again is stopped like any other, with its
// notice and without a charge, and ends PREEMPTED.
func TestNobodyOptsOutOfPreemption(t *testing.T) {
	for name, tt := range map[string]struct {
		with func(*api.Spec)
		done bool
		text string
	}{
		"no requeue":          {func(s *api.Spec) { s.NoRequeue = true }, false, "preempted for job 9; not run again, as it was submitted"},
		"requeue=crash":       {func(s *api.Spec) { s.RequeueCauses = []api.Cause{api.CauseCrash} }, false, "preempted for job 9; not run again, as it was submitted"},
		"a rank that is done": {func(*api.Spec) {}, true, "preempted for job 9; not run again: 1 of 2 ranks were done"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			s := specOf(2)
			s.MaxRetries, s.Notice = intPtr(3), &api.Notice{Signal: "USR1", Lead: time.Minute, Scope: api.ScopeRanks}
			tt.with(s)
			id := b.submit(s)
			b.start(id)
			if r := b.w.Running(id); r.Final == tt.done || r.Done {
				t.Fatalf("before: %+v", r)
			}
			if tt.done {
				b.phase(id, "n1", api.PhaseStopped, exit(0, 0))
				if r := b.w.Running(id); !r.Final || !r.Done {
					t.Fatalf("with a done rank: %+v", r)
				}
			}
			b.must(Preempt{Job: id, For: "job 9"})
			if d := b.w.Job(id).Drain; d == nil || d.Cause != api.CausePreempted || d.Lead != time.Minute {
				t.Fatalf("%+v", d)
			}
			b.ack(id)
			b.state(id, api.JobPreempted)
			if j := b.w.Job(id); len(j.Used) != 0 || j.Verdict.Text != tt.text || tt.done && j.Ranks[0].State != api.RankDone {
				t.Fatalf("used %v, %s, %q", j.Used, ranksOf(j), j.Verdict.Text)
			}
		})
	}
}

func TestBackoffDoublesToItsCap(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.MaxRetries = intPtr(20)
	id := b.submit(s)
	var waits []time.Duration
	for range 11 {
		b.start(id)
		b.phase(id, "n1", api.PhaseStopped, exit(0, 1))
		waits = append(waits, b.w.Job(id).BackoffUntil.Sub(b.now.Wall))
		b.after(5 * time.Minute)
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	for i := range want {
		if waits[i] != want[i]*time.Second {
			t.Fatalf("%v", waits)
		}
	}
}

func TestNoticeBeforeACancel(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.Notice = &api.Notice{Signal: "USR1", Lead: time.Minute}
	id := b.submit(s)
	b.start(id)
	b.must(Cancel{Job: id})
	stop := func() *api.Stop { as := b.w.Desired("n1"); return as[0].Stop }
	if got := stop(); got.Lead != time.Minute || got.Grace != 15*time.Second || got.Signal != "TERM" {
		t.Fatalf("%+v", got)
	}
	b.after(10 * time.Second)
	b.must(Cancel{Job: id, Now: true})
	if got := stop(); got.Lead != 0 { // a lead counts from when it is heard of
		t.Fatalf("%+v", got)
	}
	b.after(44 * time.Second)
	b.state(id, api.JobCompleting)
	b.after(time.Second)
	b.state(id, api.JobCancelled)
}

// A jump of the wall clock, in either direction and in any phase, moves no deadline.
func TestWallClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		b := newBench(t, 1)
		s := specOf(1)
		s.Notice, s.MaxRetries = &api.Notice{Signal: "USR1", Lead: time.Minute}, intPtr(1)
		id := b.submit(s)
		b.start(id)
		b.phase(id, "n1", api.PhaseStopped, exit(0, 1)) // crash: a back-off of 1 s
		b.now.Wall = b.now.Wall.Add(jump)
		b.after(time.Second)
		if b.w.Candidate(id) == nil {
			t.Fatalf("jump %v: no candidate after its back-off", jump)
		}
		b.start(id)
		b.must(Cancel{Job: id})
		b.after(10 * time.Second)
		b.now.Wall = b.now.Wall.Add(jump)
		b.must(Cancel{Job: id, Now: true})
		if as := b.w.Desired("n1"); as[0].Stop.Lead != 0 {
			t.Errorf("jump %v: still %v of notice", jump, as[0].Stop.Lead)
		}
		b.after(45*time.Second - 1)
		b.state(id, api.JobCompleting)
		b.after(1)
		b.state(id, api.JobCancelled) // forced at grace and slack, to the instant
	}
}

// An end that came before the stop is a true result, also when one report tells of both.
func TestEndBeforeTheStop(t *testing.T) {
	for own, want := range map[bool]api.RankState{true: api.RankDone, false: api.RankPreempting} {
		b := newBench(t, 1)
		id := b.submit(specOf(2))
		b.start(id)
		b.must(Requeue{Job: id})
		end := exit(0, 0)
		end.Own = own
		b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: api.CauseRequeued, Ranks: []api.RankActual{end}})
		if got := b.w.Job(id).Ranks[0].State; got != want {
			t.Errorf("own %v: rank 0 is %s, want %s", own, got, want)
		}
	}
}

// The early signal is one event of the job, however many members tell of it how often.
func TestNoticeIsOneEvent(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.Notice = &api.Notice{Signal: "USR1", Lead: time.Minute}
	id := b.submit(s)
	b.start(id)
	b.must(Requeue{Job: id})
	for range 2 {
		for _, n := range []string{"n1", "n2"} {
			b.say(n, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: api.CauseRequeued, Noticed: true})
		}
	}
	var got []api.Event
	for _, ev := range b.w.Take().Events {
		if ev.Type == api.EventNotice {
			got = append(got, ev)
		}
	}
	if len(got) != 1 || got[0].Signal != "USR1" || got[0].LeadSeconds != 60 || got[0].Cause != api.CauseRequeued {
		t.Errorf("%+v", got)
	}
}

// The fence hook is asked for a lost node that keeps a gang waiting, and for none while
// most nodes are away.
func TestFenceable(t *testing.T) {
	b := newBench(t, 4)
	id := b.submit(specOf(4))
	b.start(id)
	lose := func(node string) {
		b.must(NodeGone{Node: node})
		b.w.clock.timers.set(timer{kind: timerLost, node: node}, b.now.Mono)
		b.must(Tick{})
	}
	lose("n1")
	if got := b.w.Fenceable(); len(got) != 1 || got[0] != "n1" {
		t.Errorf("one lost: %v", got)
	}
	lose("n2")
	lose("n3")
	if got := b.w.Fenceable(); len(got) != 0 {
		t.Errorf("three of four lost: %v", got)
	}
	b.hello("n3")
	if got := b.w.Fenceable(); len(got) != 2 {
		t.Errorf("two of four lost: %v", got)
	}
	b.must(NodeFence{Node: "n1", By: "the fence hook"})
	if got := b.w.Fenceable(); len(got) != 1 || got[0] != "n2" {
		t.Errorf("n1 fenced: %v", got)
	}
}

func TestBudgets(t *testing.T) {
	n := intPtr
	for name, tc := range map[string]struct {
		spec  api.Spec
		cause api.Cause
		want  int
	}{
		"crash":                       {api.Spec{}, api.CauseCrash, 0},
		"oom is a crash":              {api.Spec{MaxRetries: n(2)}, api.CauseOOM, 2},
		"launch":                      {api.Spec{}, api.CauseLaunch, 3},
		"node lost":                   {api.Spec{}, api.CauseNodeLost, 5},
		"backoff limit":               {api.Spec{BackoffLimit: n(7)}, api.CauseNodeLost, 7},
		"backoff limit alone":         {api.Spec{BackoffLimit: n(7)}, api.CauseCrash, 7},
		"backoff limit and retries":   {api.Spec{BackoffLimit: n(7), MaxRetries: n(1)}, api.CauseCrash, 1},
		"stalled":                     {api.Spec{StallRetries: n(1)}, api.CauseStalled, 1},
		"preempted":                   {api.Spec{}, api.CausePreempted, -1},
		"timeout":                     {api.Spec{}, api.CauseTimeout, 0},
		"timeout asked for":           {api.Spec{RequeueCauses: []api.Cause{api.CauseTimeout}}, api.CauseTimeout, -1},
		"not asked for":               {api.Spec{RequeueCauses: []api.Cause{api.CauseTimeout}}, api.CauseNodeLost, 0},
		"no requeue":                  {api.Spec{NoRequeue: true, MaxRetries: n(3)}, api.CauseCrash, 0},
		"no requeue, preempted":       {api.Spec{NoRequeue: true}, api.CausePreempted, 0},
		"no requeue, launch":          {api.Spec{NoRequeue: true}, api.CauseLaunch, 0},
		"cancel is never run again":   {api.Spec{}, api.CauseCancelled, 0},
		"crash asked for, no retries": {api.Spec{RequeueCauses: []api.Cause{api.CauseCrash}}, api.CauseCrash, 0},
	} {
		set := settings()
		if got := limit(&set, &tc.spec, tc.cause); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestRequeueOnTimeout(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.RequeueCauses = []api.Cause{api.CauseTimeout}
	id := b.submit(s)
	b.start(id)
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Stopping: api.CauseTimeout, Ranks: []api.RankActual{exit(0, 143)}})
	b.state(id, api.JobPending)
}

// TestResumesAfterItsLimit: who saves and ends well in the lead of its limit, or is stopped by
// it, is queued again behind others and charged nothing, until all runs together took as long
// as it said. Then it ends TIMEOUT.
func TestResumesAfterItsLimit(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.RequeueCauses, s.MaxTimeTotal, s.TimeLimit = []api.Cause{api.CauseTimeout}, 25*time.Minute, 10*time.Minute
	s.Notice = &api.Notice{Signal: "USR1", Lead: time.Minute, Scope: api.ScopeRanks}
	id := b.submit(s)
	run := func(limit, ran time.Duration) {
		t.Helper()
		b.start(id)
		if got := TimeLimit(b.w.Job(id)); got != limit {
			t.Fatalf("its limit is %s, want %s", got, limit)
		}
		b.after(ran)
	}
	noticed := func(phase api.MemberPhase, node string, ra api.RankActual) {
		t.Helper()
		b.say(node, api.MemberActual{MemberKey: b.key(id), Phase: phase, Noticed: true, Ranks: []api.RankActual{ra}})
	}
	submitted := b.w.Job(id).Submit

	run(10*time.Minute, 9*time.Minute+30*time.Second)
	noticed(api.PhaseStopped, "n1", exit(0, 0))
	if j := b.w.Job(id); j.Ranks[0].State != api.RankPreempted || j.Drain != nil {
		t.Fatalf("one saved: %s, %+v", ranksOf(j), j.Drain)
	}
	noticed(api.PhaseStopped, "n2", exit(1, 0))
	b.state(id, api.JobPending)
	j := b.w.Job(id)
	if c := b.w.Candidate(id); j.Ran != 9*time.Minute+30*time.Second || len(j.Used) != 0 || j.Kept != 0 || !j.Submit.Equal(submitted) || !c.Submit.Equal(b.now.Wall) {
		t.Fatalf("%+v, candidate %+v", j, c)
	}

	run(10*time.Minute, 10*time.Minute) // stopped by the limit, one saved just before
	for i, n := range []string{"n1", "n2"} {
		ra := exit(i, 143)
		if i == 0 {
			ra = exit(0, 0)
			ra.Own = true
		}
		b.say(n, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Noticed: true, Stopping: api.CauseTimeout, Ranks: []api.RankActual{ra}})
	}
	b.state(id, api.JobPending)

	run(5*time.Minute+30*time.Second, 5*time.Minute)
	noticed(api.PhaseStopped, "n1", exit(0, 0))
	noticed(api.PhaseStopped, "n2", exit(1, 0))
	b.state(id, api.JobTimeout)
	want := "ended in the lead of its time limit of 5 min 30 s; all runs together took 24 min 30 s of the 25 min that it asked for (--max-time-total)"
	if j := b.w.Job(id); j.Verdict.Text != want || len(j.Used) != 0 {
		t.Fatalf("%q, want %q; used %v", j.Verdict.Text, want, j.Used)
	}
}

// TestOnlyTheLeadOfTheLimitSaves: an exit status 0 is the end of the work where no notice of
// the limit came before, where the notice was another's, and where nobody asked for another run.
func TestOnlyTheLeadOfTheLimitSaves(t *testing.T) {
	for name, tt := range map[string]struct {
		again, noticed bool
		want           api.JobState
	}{
		"before the notice": {true, false, api.JobCompleted},
		"in the lead":       {true, true, api.JobPending},
		"not asked for":     {false, true, api.JobCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			s := specOf(1)
			s.Notice = &api.Notice{Signal: "USR1", Lead: time.Minute, Scope: api.ScopeRanks}
			if tt.again {
				s.RequeueCauses, s.MaxTimeTotal = []api.Cause{api.CauseTimeout}, time.Hour
			}
			id := b.submit(s)
			b.start(id)
			b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Noticed: tt.noticed, Ranks: []api.RankActual{exit(0, 0)}})
			b.state(id, tt.want)
		})
	}
}

// A rank that could not be started at all is reported as a shell would: 126 or 127.
func TestRankThatCouldNotBeStarted(t *testing.T) {
	for _, ra := range []api.RankActual{
		{Rank: 0, Exited: true, ExitCode: 127, Error: "python: not found"},
		{Rank: 0, Error: "python: permission denied"},
	} {
		b := newBench(t, 1)
		id := b.submit(specOf(1))
		b.must(b.spread(id))
		b.ready(id)
		b.phase(id, "n1", api.PhaseStopped, ra)
		b.state(id, api.JobFailed)
		v := b.w.Job(id).Verdict
		if v.Cause != api.CauseCrash || v.ExitCode < 126 || v.Text != "rank 0 could not be started: "+ra.Error {
			t.Fatalf("%+v", v)
		}
	}
}

func TestBackoffLimitAloneCountsCrashesAndLostNodesTogether(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(1)
	s.BackoffLimit = intPtr(1)
	id := b.submit(s)
	b.start(id)
	b.phase(id, "n1", api.PhaseLost)
	b.state(id, api.JobPending)
	b.start(id)
	b.phase(id, "n1", api.PhaseStopped, exit(0, 1))
	b.state(id, api.JobFailed)
	if got := b.w.Job(id).Verdict.Text; got != "rank 0 exited with code 1; crash for the 2nd time, of 1 re-runs none is left" {
		t.Fatal(got)
	}
}

// A rank may extend its grace to what the spec allows: so long a drain waits before it gives
// a member up.
func TestTheMostGraceIsWaitedFor(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.GraceMax = 10 * time.Minute
	id := b.submit(s)
	b.start(id)
	b.must(Cancel{Job: id})
	b.after(10*time.Minute + settings().DrainSlack - time.Second)
	b.state(id, api.JobCompleting)
	b.after(time.Second)
	b.state(id, api.JobCancelled)
}

// How a rank took a stop of ours is not how the job ended.
func TestAnExitClassStandsAlone(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	killed := api.RankActual{Rank: 0, PID: 100, Exited: true, ExitCode: 137, Signal: 9}
	j := b.w.Job(id)
	b.say("n1", api.MemberActual{MemberKey: j.key(), Phase: api.PhaseRunning, Stopping: api.CauseStalled, Ranks: []api.RankActual{killed}})
	j = b.w.Job(id)
	for cause, want := range map[api.Cause][2]int{api.CauseStalled: {76, 0}, api.CauseCrash: {137, 9}} {
		if v := verdictOf(j, cause, 0, ""); v.ExitCode != want[0] || v.Signal != want[1] {
			t.Errorf("%s: code %d, signal %d, want %v", cause, v.ExitCode, v.Signal, want)
		}
	}
}

// Of several failures in one word the first is blamed: by time, and at one time by rank.
func TestTheFirstFailureIsBlamed(t *testing.T) {
	for _, c := range []struct {
		after [3]int // seconds until each rank fails
		want  int
	}{{[3]int{3, 1, 2}, 1}, {[3]int{3, 2, 1}, 2}, {[3]int{1, 1, 1}, 0}} {
		b := newBench(t, 1)
		id := b.submit(specOf(3))
		b.start(id)
		var ranks []api.RankActual
		for r, s := range c.after {
			ra := exit(r, 1)
			ra.Ended = b.now.Wall.Add(time.Duration(s) * time.Second)
			ranks = append(ranks, ra)
		}
		b.phase(id, "n1", api.PhaseStopped, ranks...)
		b.state(id, api.JobFailed)
		if got := b.w.Job(id).Verdict.Trigger; got != c.want {
			t.Errorf("failures after %v: rank %d is blamed, want %d", c.after, got, c.want)
		}
	}
}

// A node on which a gang could not be launched is avoided the next time, one on which it
// crashed is not.
func TestANodeOfAFailedLaunchIsAvoided(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.MaxRetries = intPtr(1)
	id := b.submit(s)
	b.must(b.spread(id))
	b.ready(id)
	b.phase(id, "n1", api.PhaseRunning, api.RankActual{Rank: 0, PID: 5})
	b.after(settings().StartTimeout)
	b.ack(id)
	b.state(id, api.JobPending)
	if got := b.w.Job(id).Avoid; !slices.Equal(got, []string{"n2"}) {
		t.Errorf("after a failed launch on n2 it avoids %v", got)
	}
	b.after(time.Minute)
	b.start(id)
	b.phase(id, "n1", api.PhaseRunning, exit(0, 1))
	b.ack(id)
	b.state(id, api.JobPending)
	if got := b.w.Job(id).Avoid; got != nil {
		t.Errorf("after a crash it avoids %v", got)
	}
}

// What happens to a gang that is being stopped is on record, each cause once.
func TestLaterCausesAreRecordedOnce(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(3))
	b.start(id)
	b.must(Preempt{Job: id, For: "job 9"})
	for _, n := range []string{"n1", "n2"} {
		b.must(NodeGone{Node: n})
	}
	b.after(settings().NodeTimeout)
	j := b.w.Job(id)
	if j.Drain == nil || j.Drain.Cause != api.CausePreempted || !slices.Equal(j.Drain.Later, []api.Cause{api.CauseNodeLost}) {
		t.Fatalf("%+v", j.Drain)
	}
	b.must(Cancel{Job: id})
	b.must(NodeGone{Node: "n3"})
	b.after(settings().NodeTimeout)
	b.state(id, api.JobCancelled)
}

// TestASignalIsNoExitCode: an attempt says which signal ended each rank: `exit 137` and KILL are two things.
func TestASignalIsNoExitCode(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(2)
	s.BackoffLimit = intPtr(1)
	id := b.submit(s)
	b.start(id)
	b.w.Take()
	b.phase(id, "n1", api.PhaseStopped, api.RankActual{Rank: 0, PID: 100, Exited: true, ExitCode: 137, Signal: 9}, exit(1, 137))
	row := b.w.Take().Epochs[0]
	if !slices.Equal(row.ExitCodes, []int{137, 137}) || !slices.Equal(row.Signals, []int{9, 0}) {
		t.Errorf("codes %v, signals %v", row.ExitCodes, row.Signals)
	}
	if len(row.Slots) != 2 || row.Slots[0].Node != "n1" || row.Slots[1].Node != "n1" {
		t.Errorf("it was at %+v", row.Slots)
	}
	b.after(time.Hour)
	b.start(id)
	b.w.Take()
	b.phase(id, "n1", api.PhaseStopped, exit(0, 137), exit(1, 0))
	if row := b.w.Take().Epochs[0]; row.Signals != nil {
		t.Errorf("signals %v of ranks that exited", row.Signals)
	}
}

// TestWhoCancelled: the first who cancels a job is kept, whatever the job was at.
func TestWhoCancelled(t *testing.T) {
	b := newBench(t, 1)
	waiting, running := b.submit(specOf(1)), b.submit(specOf(1))
	b.start(running)
	for _, by := range []string{"ada", "root"} {
		b.step(Cancel{Job: waiting, By: by})
		b.step(Cancel{Job: running, By: by})
	}
	b.ack(running)
	for _, id := range []int64{waiting, running} {
		b.state(id, api.JobCancelled)
		if got := b.w.Job(id).CancelledBy; got != "ada" {
			t.Errorf("job %d was cancelled by %q", id, got)
		}
	}
}

// A node that finds the port of the rendezvous taken as the gate opens ends the epoch before
// its script runs there: nobody is charged, and it is tried again.
func TestPortTakenAtTheGate(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.must(b.spread(id))
	b.ready(id)
	b.phase(id, "n2", api.PhaseRunning, api.RankActual{Rank: 1, PID: 101})
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Stopping: api.CauseRequeued, Text: "MASTER_PORT 4000 was taken"})
	j := b.w.Job(id)
	if j.Drain == nil || j.Drain.Cause != api.CauseRequeued || j.Drain.Text != "n1: MASTER_PORT 4000 was taken" {
		t.Fatalf("%+v", j.Drain)
	}
	b.ack(id)
	b.state(id, api.JobPending)
	if j = b.w.Job(id); len(j.Used) != 0 || len(b.w.Node("n1").Strikes) != 0 {
		t.Errorf("charged %v, strikes %+v", j.Used, b.w.Node("n1").Strikes)
	}
	b.start(id)
	b.state(id, api.JobRunning)
}

// TestGoneInADrain: a member that is gone while its gang is stopped is no other cause of the stop.
func TestGoneInADrain(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	b.must(Requeue{Job: id})
	b.hello("n2")
	if d := b.w.Job(id).Drain; d == nil || len(d.Later) != 0 {
		t.Errorf("%+v", d)
	}
	b.ack(id)
	b.state(id, api.JobPending)
}
