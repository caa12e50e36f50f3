package gang

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

// gated is a running gang of three whose ranks have a minute to be ready.
func gated(t *testing.T) (*bench, int64) {
	t.Helper()
	b := newBench(t, 3)
	s := specOf(3)
	s.ReadyTimeout = time.Minute
	id := b.submit(s)
	b.start(id)
	return b, id
}

func (b *bench) saidReady(id int64, ranks ...int) Outcome {
	return b.step(Ready{Job: id, Epoch: b.w.Job(id).Epoch, Ranks: ranks})
}

// rejoin lets every node say hello to a new controller, with what runs there.
func (b *bench) rejoin(id int64) {
	b.t.Helper()
	for _, m := range b.w.Job(id).Members {
		ma := api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning}
		for _, r := range m.Ranks {
			ma.Ranks = append(ma.Ranks, api.RankActual{Rank: r, PID: 100 + r})
		}
		b.hello(m.Node, ma)
	}
}

func TestReadyGate(t *testing.T) {
	for _, c := range []struct {
		name   string
		play   func(b *bench, id int64)
		passed bool
		text   string // of the drain; empty: none
	}{
		{"all are ready", func(b *bench, id int64) {
			b.saidReady(id, 0, 2)
			if out := b.saidReady(id, 2); out.Ignored != "known to be ready" {
				t.Errorf("a repeat: %+v", out)
			}
			b.saidReady(id, 1)
			b.after(time.Hour)
		}, true, ""},
		{"nobody is", func(b *bench, id int64) { b.after(time.Minute) }, false, "ranks 0, 1 and 2 not ready within 60 s (0 of 3 were)"},
		{"one is not", func(b *bench, id int64) { b.saidReady(id, 0, 2); b.after(time.Minute) }, false, "rank 1 not ready within 60 s (2 of 3 were)"},
		{"not yet", func(b *bench, id int64) { b.after(59 * time.Second) }, false, ""},
		{"one has ended well before", func(b *bench, id int64) { b.saidReady(id, 0, 2); b.exits(id, exit(1, 0)); b.after(time.Hour) }, true, ""},
		{"the controller restarts, and they say it again", func(b *bench, id int64) {
			b.saidReady(id, 0, 1)
			b.after(50 * time.Second)
			b.reborn(time.Second)
			if !b.w.clock.timers.armed(timer{kind: timerReady, job: id, epoch: 1}) {
				t.Error("it is not waited for any more")
			}
			b.rejoin(id)
			b.after(50 * time.Second)
			b.saidReady(id, 0, 1, 2)
			b.after(time.Hour)
		}, true, ""},
		{"the controller restarts after it was passed", func(b *bench, id int64) {
			b.saidReady(id, 0, 1, 2)
			b.reborn(time.Second)
			if b.w.clock.timers.armed(timer{kind: timerReady, job: id, epoch: 1}) {
				t.Error("it is waited for again")
			}
			b.rejoin(id)
			b.after(time.Hour)
		}, true, ""},
		{"a node is away", func(b *bench, id int64) {
			b.saidReady(id, 0, 1)
			b.after(50 * time.Second)
			b.must(NodeGone{Node: "n3"})
			b.after(11 * time.Second)
		}, false, ""},
		{"of another epoch", func(b *bench, id int64) {
			b.saidReady(id, 0, 1)
			if out := b.step(Ready{Job: id, Epoch: 9, Ranks: []int{2}}); out.Ignored == "" {
				t.Errorf("applied: %+v", out)
			}
			b.after(time.Minute)
		}, false, "rank 2 not ready within 60 s (2 of 3 were)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, id := gated(t)
			c.play(b, id)
			j := b.w.Job(id)
			if j.ReadyAt.IsZero() == c.passed {
				t.Errorf("passed at %v", j.ReadyAt)
			}
			switch {
			case c.text == "" && j.Drain != nil:
				t.Errorf("drained: %+v", j.Drain)
			case c.text != "" && (j.Drain == nil || j.Drain.Text != c.text || j.Drain.Cause != api.CauseLaunch):
				t.Errorf("drain %+v, want %q", j.Drain, c.text)
			}
		})
	}
}

// Each run has a gate of its own, and the last failed launch names who was late.
func TestReadyGateOfEachRun(t *testing.T) {
	b, id := gated(t)
	b.saidReady(id, 0, 1, 2)
	b.must(Requeue{Job: id})
	b.ack(id)
	for run := 0; b.w.Job(id).Verdict == nil; run++ {
		if run > 4 {
			t.Fatal("it runs for ever")
		}
		b.after(10 * time.Minute)
		b.start(id)
		if !b.w.Job(id).ReadyAt.IsZero() {
			t.Fatal("ready before anybody said so")
		}
		b.saidReady(id, 1, 2)
		b.after(time.Minute)
		b.ack(id)
	}
	v := b.w.Job(id).Verdict
	if want := "rank 0 not ready within 60 s (2 of 3 were); launch for the 4th time, of 3 re-runs none is left"; v.State != api.JobFailed || v.Text != want {
		t.Errorf("%s %q, want %q", v.State, v.Text, want)
	}
}

// TestWhoAwaitsReadiness: only who runs, asked for it and has not passed.
func TestWhoAwaitsReadiness(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(j *Job)
		want bool
	}{
		"it runs":      {func(j *Job) {}, true},
		"did not ask":  {func(j *Job) { j.Spec.ReadyTimeout = 0 }, false},
		"has passed":   {func(j *Job) { j.ReadyAt = epoch0 }, false},
		"is stopped":   {func(j *Job) { j.Drain = &Drain{} }, false},
		"is over":      {func(j *Job) { j.Verdict = &Verdict{} }, false},
		"waits":        {func(j *Job) { j.Ranks[0].State = api.RankBlocked }, false},
		"is prepared":  {func(j *Job) { j.Ranks[0].State = api.RankReserved }, false},
		"has one done": {func(j *Job) { j.Ranks[0].State = api.RankDone }, true},
	} {
		j := &Job{Spec: &api.Spec{ReadyTimeout: 1}, Ranks: []Rank{{State: api.RankRunning}}, Past: &Past{}}
		if c.edit(j); AwaitsReady(j) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}
