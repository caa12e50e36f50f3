package gang

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

func due(in time.Duration, limit, least time.Duration) *api.Spec {
	s := specOf(2)
	s.Deadline, s.TimeLimit, s.TimeMin = epoch0.Add(in), limit, least
	return s
}

func TestAJobThatCanNotEndByItsDeadlineEnds(t *testing.T) {
	for _, c := range []struct {
		name                 string
		deadline, limit, min time.Duration
		waits                time.Duration // it is a candidate still
		text                 string
	}{
		{"by its limit", 2 * time.Hour, time.Hour, 0, time.Hour, "can't end by its deadline 2026-03-01T14:00:00Z any more: its time limit is 1 h"},
		{"by its least limit", 2 * time.Hour, time.Hour, 10 * time.Minute, 110 * time.Minute,
			"can't end by its deadline 2026-03-01T14:00:00Z any more: its time limit is 1 h and may be cut to 10 min"},
		{"no limit", 2 * time.Hour, 0, 0, 2*time.Hour - time.Second, "can't end by its deadline 2026-03-01T14:00:00Z any more: it has no time limit"},
		{"too late at once", time.Minute, time.Hour, 0, -time.Second, "can't end by its deadline 2026-03-01T12:01:00Z any more: its time limit is 1 h"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 2)
			b.now.Wall = epoch0
			id := b.submit(due(c.deadline, c.limit, c.min))
			after := b.depending(on(api.AfterNotOK, id))
			if c.waits >= 0 {
				b.after(c.waits)
				if b.w.Candidate(id) == nil {
					t.Fatal("given up too early")
				}
			}
			b.after(time.Second)
			b.state(id, api.JobDeadline)
			if v := b.w.Job(id).Verdict; v.Text != c.text || v.Cause != api.CauseDeadline || v.ExitCode != 1 {
				t.Errorf("%+v", v)
			}
			b.waits(after, "")
		})
	}
}

// A start cuts the limit to what is left, on the nodes and in the grants; the stop at the
// cut limit is the deadline's.
func TestADeadlineCutsTheLimit(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(due(50*time.Minute, time.Hour, 10*time.Minute))
	b.after(10 * time.Minute)
	b.must(b.spread(id))
	b.after(5 * time.Second)
	b.ready(id)
	for i, n := range []string{"n1", "n2"} {
		b.phase(id, n, api.PhaseRunning, api.RankActual{Rank: i, PID: 100 + i})
	}
	want := 40*time.Minute - 5*time.Second
	if as := b.w.Desired("n2"); as[0].Gate.TimeLimit != want {
		t.Errorf("told %s, want %s", as[0].Gate.TimeLimit, want)
	}
	if g, _ := b.w.Node("n2").Res.Grant(b.key(id)); !g.Until.Equal(epoch0.Add(50*time.Minute + b.w.set.Grace)) {
		t.Errorf("granted until %s", g.Until)
	}
	ev := b.w.Take().Events
	at := slices.IndexFunc(ev, func(e api.Event) bool { return e.Type == api.EventStarted })
	if got := ev[at].Text; got != "time limit 39 min 55 s, cut from 1 h for the deadline 2026-03-01T12:50:00Z" {
		t.Error(got)
	}
	if out := b.step(Update{Job: id, Deadline: new(epoch0.Add(15 * time.Minute))}); out.Refused == nil || out.Refused.Message !=
		"job 1 could not end by 2026-03-01T12:15:00Z: it takes at least 10 min from its start at 2026-03-01T12:10:05Z" {
		t.Errorf("%v", out.Refused)
	}
	b.must(Update{Job: id, Deadline: new(time.Time{})})
	if as := b.w.Desired("n1"); as[0].Gate.TimeLimit != time.Hour {
		t.Errorf("told %s without a deadline", as[0].Gate.TimeLimit)
	}
	b.must(Update{Job: id, Deadline: new(epoch0.Add(30 * time.Minute))})
	b.after(20 * time.Minute)
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: api.CauseTimeout})
	b.ack(id)
	b.state(id, api.JobDeadline)
	if v := b.w.Job(id).Verdict; v.Text != "deadline 2026-03-01T12:30:00Z reached after 19 min 55 s" || v.ExitCode != 75 {
		t.Errorf("%+v", v)
	}
}

// The gate stays shut when the members were ready too late.
func TestADeadlineThatPassesWhileAGangIsPrepared(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(due(time.Hour, time.Hour, 0))
	b.must(b.spread(id))
	b.phase(id, "n1", api.PhaseReady)
	b.now.Wall, b.now.Mono = b.now.Wall.Add(time.Second), b.now.Mono+time.Second
	b.phase(id, "n2", api.PhaseReady)
	b.state(id, api.JobDeadline)
}

func TestALimitThatAPlanCut(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(1)
	s.TimeLimit, s.TimeMin = time.Hour, 10*time.Minute
	id := b.submit(s)
	r := b.spread(id)
	for _, bad := range []time.Duration{time.Minute, time.Hour, -1} {
		r.TimeLimit = bad
		if out := b.step(r); out.Refused == nil || out.Refused.Code != api.CodeInvalid {
			t.Errorf("%s: %+v", bad, out)
		}
	}
	r.TimeLimit = 20 * time.Minute
	b.must(r)
	b.ready(id)
	if as := b.w.Desired("n1"); as[0].Gate.TimeLimit != 20*time.Minute {
		t.Errorf("told %s", as[0].Gate.TimeLimit)
	}
	b.must(Requeue{Job: id})
	b.ack(id)
	b.must(Admit{Job: id, Slots: []cluster.Slot{{Node: "n2"}}})
	if got := TimeLimit(b.w.Job(id)); got != time.Hour {
		t.Errorf("the next attempt has %s", got)
	}
}

// What was stopped for others goes on waiting under its deadline.
func TestADeadlineAfterARequeue(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(due(time.Hour, 30*time.Minute, 0))
	b.start(id)
	b.must(Preempt{Job: id, For: "job 9"})
	b.ack(id)
	b.after(29 * time.Minute)
	b.state(id, api.JobPending)
	b.after(2 * time.Minute)
	b.state(id, api.JobDeadline)
}

// What is left until a deadline is counted in whole seconds, but a limit with a part of one
// that fits is not cut for it.
func TestALimitOfAPartOfASecondIsNotCut(t *testing.T) {
	for _, c := range []struct{ limit, least, left, want time.Duration }{
		{6065 * time.Millisecond, 0, 6310 * time.Millisecond, 6065 * time.Millisecond},
		{6065 * time.Millisecond, 0, 6065 * time.Millisecond, 6065 * time.Millisecond},
		{20 * time.Second, 6500 * time.Millisecond, 6700 * time.Millisecond, 6500 * time.Millisecond},
		{20 * time.Second, 5 * time.Second, 6700 * time.Millisecond, 6 * time.Second},
		{0, 0, 6700 * time.Millisecond, 6 * time.Second},
		{20 * time.Second, 0, 300 * time.Millisecond, time.Second},
	} {
		start := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
		j := &Job{Spec: &api.Spec{TimeMin: c.least}, TimeLimit: c.limit, Ranks: []Rank{{State: api.RankRunning}}, Wishes: &Wishes{Deadline: start.Add(c.left)}, Past: &Past{Attempt: Attempt{Start: start, Epoch: 1}}}
		if got := TimeLimit(j); got != c.want {
			t.Errorf("limit %s, at least %s, %s left: may run for %s, want %s", c.limit, c.least, c.left, got, c.want)
		}
	}
}

// A plan that is carried out too late is refused, whatever the timers have seen.
func TestDeadlineIsCheckedAtAdmission(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(due(2*time.Hour, time.Hour, 0))
	b.now.Wall, b.now.Mono = b.now.Wall.Add(time.Hour+time.Second), b.now.Mono+time.Hour+time.Second
	out := b.step(b.spread(id))
	want := "job 1 can't end by its deadline 2026-03-01T14:00:00Z any more: its time limit is 1 h"
	if out.Refused == nil || out.Refused.Message != want {
		t.Fatalf("%+v", out)
	}
	b.now.Wall, b.now.Mono = b.now.Wall.Add(-2*time.Second), b.now.Mono-2*time.Second
	b.must(b.spread(id))
}
