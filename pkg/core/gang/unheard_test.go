package gang

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
)

// A lead for nobody ends with the word of the last member, where the stop is a cancel or a requeue; where one could hear it, or says
// nothing, and before a preemption it is kept.
func TestLeadForNobody(t *testing.T) {
	cancel := func(b *bench, id int64) { b.must(Cancel{Job: id}) }
	requeue := func(b *bench, id int64) { b.must(Requeue{Job: id}) }
	preempt := func(b *bench, id int64) { b.must(Preempt{Job: id, For: "job 7"}) }
	for _, c := range []struct {
		name string
		stop func(b *bench, id int64)
		deaf []bool // by member; shorter: the others say nothing
		ends bool
	}{
		{"cancelled, all deaf", cancel, []bool{true, true}, true},
		{"requeued, all deaf", requeue, []bool{true, true}, true},
		{"preempted, all deaf", preempt, []bool{true, true}, false},
		{"preempted, then cancelled, all deaf", func(b *bench, id int64) { preempt(b, id); cancel(b, id) }, []bool{true, true}, true},
		{"cancelled, the first hears", cancel, []bool{false, true}, false},
		{"cancelled, the second hears", cancel, []bool{true, false}, false},
		{"requeued, one has not said so", requeue, []bool{true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 2)
			s := specOf(2)
			s.Notice = &api.Notice{Signal: "USR1", Lead: time.Minute}
			id := b.submit(s)
			b.start(id)
			c.stop(b, id)
			for i, deaf := range c.deaf {
				if d := b.w.Job(id).Drain; d.Lead != time.Minute {
					t.Fatalf("after the word of %d members the lead is %s", i, d.Lead)
				}
				for range 2 { // a repeat says nothing new
					b.say(fmt.Sprintf("n%d", i+1), api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: b.w.Job(id).Drain.Cause, Noticed: true, Deaf: deaf})
				}
			}
			said := 0
			for _, ev := range b.w.Take().Events {
				if ev.Type == api.EventUnheard && ev.Text == "nobody listens: ending now" {
					said++
				}
			}
			want, times := time.Minute, 0
			if c.ends {
				want, times = 0, 1
			}
			if d := b.w.Job(id).Drain; d.Lead != want || said != times {
				t.Errorf("the lead is %s, want %s; said %d times", d.Lead, want, said)
			}
		})
	}
}

// Who has heard the notice and has ended may have told the others, who can't hear it themselves.
func TestLeadOfThoseWhoWereTold(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.Notice = &api.Notice{Signal: "USR1", Lead: time.Minute}
	id := b.submit(s)
	b.start(id)
	b.must(Requeue{Job: id})
	say := func(node string, phase api.MemberPhase, deaf bool, ranks ...api.RankActual) {
		b.say(node, api.MemberActual{MemberKey: b.key(id), Phase: phase, Stopping: api.CauseRequeued, Noticed: true, Deaf: deaf, Ranks: ranks})
	}
	say("n1", api.PhaseRunning, false)
	say("n2", api.PhaseRunning, true)
	say("n1", api.PhaseStopped, false, exit(0, 0))
	if d := b.w.Job(id).Drain; d == nil || d.Lead != time.Minute {
		t.Errorf("%+v", d)
	}
}

// A notice before the time limit that nobody could hear is no reason to wait for one who cancels after it; a controller
// that is started again hears of it again.
func TestLeadForNobodyAfterTheLimitsNotice(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.Notice = &api.Notice{Signal: "USR1", Lead: time.Minute}
	id := b.submit(s)
	b.start(id)
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Noticed: true, Deaf: true})
	b.must(Cancel{Job: id})
	if d := b.w.Job(id).Drain; d == nil || d.Lead != 0 {
		t.Errorf("%+v", d)
	}
}
