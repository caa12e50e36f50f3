package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// What a partition says of watchdogs holds for its jobs that do not say themselves.
func TestWatchDefaults(t *testing.T) {
	minute, off, retries := time.Minute, time.Duration(0), 7
	p := &api.Partition{StallTimeout: &minute, StallRetries: &retries, GPUWatch: true, IdleLimit: &off}
	one := 1
	for _, c := range []struct {
		name       string
		spec, want api.Spec
		part       *api.Partition
	}{
		{"nothing said anywhere", api.Spec{}, api.Spec{}, &api.Partition{}},
		{"the partition's", api.Spec{GPUsPerRank: 1},
			api.Spec{GPUsPerRank: 1, StallTimeout: time.Minute, StallRetries: &retries, GPUWatch: true, IdleLimit: api.WatchdogOff}, p},
		{"its own", api.Spec{StallTimeout: api.WatchdogOff, StallRetries: &one}, api.Spec{StallTimeout: api.WatchdogOff, StallRetries: &one, IdleLimit: api.WatchdogOff}, p},
		{"off for the partition", api.Spec{}, api.Spec{StallTimeout: api.WatchdogOff}, &api.Partition{StallTimeout: &off}},
		{"watched by its own word", api.Spec{GPUWatch: true}, api.Spec{GPUWatch: true}, &api.Partition{}},
		{"cards by node", api.Spec{GPUsPerNode: 1}, api.Spec{GPUWatch: true}, &api.Partition{GPUWatch: true}},
		{"cards of a role", api.Spec{Roles: []api.Role{{}, {GPUsPerRank: 1}}}, api.Spec{GPUWatch: true}, &api.Partition{GPUWatch: true}},
		{"no cards", api.Spec{Roles: []api.Role{{}}}, api.Spec{}, &api.Partition{GPUWatch: true}},
		{"a limit that only the site may set", api.Spec{IdleLimit: time.Hour}, api.Spec{}, &api.Partition{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.spec
			watchDefaults(&got, c.part)
			same := got.StallTimeout == c.want.StallTimeout && got.GPUWatch == c.want.GPUWatch && got.IdleLimit == c.want.IdleLimit &&
				(got.StallRetries == nil) == (c.want.StallRetries == nil) && (got.StallRetries == nil || *got.StallRetries == *c.want.StallRetries)
			if !same {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A rank that is silent is told to the core once, not with each note; after the node's
// session broke it is told again, because the core has forgotten.
func TestNotesReachTheWatchdogs(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id := r.submit("k", spec(1))
	r.run(id)
	commits := func() int { r.rec.mu.Lock(); defer r.rec.mu.Unlock(); return r.rec.commits }
	key := api.MemberKey{Job: id, Epoch: 1}
	say := func(silent bool) {
		r.NodeNotes("n1", []api.MemberNote{{MemberKey: key, Ranks: []api.RankNote{{Rank: 0, Beats: 5, BeatAge: time.Second, Silent: silent}}}})
		if err := r.inspect(t.Context(), func() {}); err != nil { // what was posted has been stepped
			t.Fatal(err)
		}
	}
	suspected := func() int {
		evs, _, err := r.Events(t.Context(), id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, ev := range evs {
			if ev.Type == api.EventStallSuspected {
				n++
			}
		}
		return n
	}
	before := commits()
	say(false)
	say(false)
	if commits() != before {
		t.Error("a beat was committed")
	}
	say(true)
	before = commits()
	if suspected() != 1 {
		t.Fatalf("suspected %d times", suspected())
	}
	for range 5 {
		say(true)
	}
	if commits() != before || suspected() != 1 {
		t.Error("told again with each note")
	}
	j, err := r.One(t.Context(), api.JobRef{ID: id, Index: -1}, me)
	if err != nil {
		t.Fatal(err)
	}
	shown := r.show(j, true)
	if age := time.Since(shown.LastBeat); age < time.Second || age > time.Minute || shown.StallTimeoutSeconds != 120 {
		t.Errorf("shown: last beat %v ago, time-out %g", age, shown.StallTimeoutSeconds)
	}
	why, err := r.Explain(t.Context(), j)
	if want := "\nwatchdog: the gang has no cards that could show whether it works"; err != nil || !strings.HasPrefix(why.Why, "not waiting: RUNNING\nwaited ") || !strings.HasSuffix(why.Why, want) {
		t.Errorf("why %q, %v", why.Why, err)
	}
	r.NodeGone("n1")
	if r.notes.news(&gang.Watched{Job: id, Epoch: 1, Node: "n1", Silent: []int{0}}) != true {
		t.Error("after the session broke it is news again")
	}
}

// run takes a gang of one from reserved to running.
func (r *rig) run(id int64) {
	r.t.Helper()
	for _, phase := range []api.MemberPhase{api.PhaseReady, api.PhaseRunning} {
		ma := api.MemberActual{MemberKey: api.MemberKey{Job: id, Epoch: 1}, Phase: phase, Port: 4000}
		if phase == api.PhaseRunning {
			ma.Ranks = []api.RankActual{{PID: 100, Started: time.Now()}}
		}
		r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{ma}})
	}
	if err := r.inspect(r.t.Context(), func() {}); err != nil {
		r.t.Fatal(err)
	}
}

func TestAttemptCodes(t *testing.T) {
	for _, c := range []struct {
		row  gang.EpochRow
		want int
	}{
		{gang.EpochRow{Cause: api.CauseCompleted, Trigger: -1, ExitCodes: []int{0}}, 0},
		{gang.EpochRow{Cause: api.CauseTimeout, Trigger: -1, ExitCodes: []int{143}}, 75},
		{gang.EpochRow{Cause: api.CauseStalled, Trigger: 0, ExitCodes: []int{143}}, 76},
		{gang.EpochRow{Cause: api.CauseIdle, Trigger: -1, ExitCodes: []int{0}}, 77},
		{gang.EpochRow{Cause: api.CauseGPUHang, Trigger: -1, ExitCodes: []int{137}}, 78},
		{gang.EpochRow{Cause: api.CauseCrash, Trigger: 1, ExitCodes: []int{143, 3}}, 3},
		{gang.EpochRow{Cause: api.CauseNodeLost, Trigger: 0, ExitCodes: []int{-1}}, -1},
		{gang.EpochRow{Cause: api.CauseCancelled, Trigger: -1, ExitCodes: []int{143}}, -1},
	} {
		if got := attemptCode(&c.row); got != c.want {
			t.Errorf("%s: %d, want %d", c.row.Cause, got, c.want)
		}
	}
}

// The idle hook is told of what was committed, and ends with the engine.
func TestIdleHookIsTold(t *testing.T) {
	told := make(chan IdleEvent, 8)
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.TellIdle = func(_ context.Context, w IdleEvent) error { told <- w; return nil }
	})
	if err := r.inspect(t.Context(), func() {}); err != nil { // Run has begun
		t.Fatal(err)
	}
	r.tellIdle([]api.Event{{Type: api.EventIdleWarned, JobID: 4, Text: "its cards"}, {Type: api.EventDrainStarted, Cause: api.CauseCrash},
		{Type: api.EventDrainStarted, JobID: 4, Cause: api.CauseIdle}, {Type: api.EventIdleOver, JobID: 5}})
	for _, want := range []string{"warn", "end", "over"} {
		if w := <-told; w.What != want {
			t.Errorf("told %+v, want %s", w, want)
		}
	}
}
