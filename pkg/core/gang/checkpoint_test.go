package gang

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

func saved(epoch, rank, ranks int) CheckpointSaved {
	return CheckpointSaved{Job: 1, Epoch: epoch, Rank: rank, Bytes: 5, SetRanks: ranks, SetBytes: int64(5 * ranks)}
}

// again stops the gang of two and starts it once more.
func (b *bench) again() {
	b.must(Requeue{Job: 1})
	b.ack(1)
	b.start(1)
}

// A set is complete when all ranks have put theirs in the same epoch; what is handed over is the newest
// complete one of before, whatever the current epoch has put.
func TestCheckpointSets(t *testing.T) {
	b := newBench(t, 2)
	b.submit(specOf(2))
	b.start(1)
	check := func(what string, handOver, newest int, complete bool) {
		t.Helper()
		j := b.w.Job(1)
		if HandOver(j) != handOver || NewestSet(j) != newest || j.Checkpoint != nil && j.Checkpoint.Complete != complete {
			t.Errorf("%s: hands over %d, newest set %d, %+v", what, HandOver(j), NewestSet(j), j.Checkpoint)
		}
	}
	check("nothing put", 0, 0, false)
	b.must(saved(1, 0, 1))
	check("one of two", 0, 0, false)
	b.must(saved(1, 1, 2))
	check("both", 0, 1, true)
	b.must(saved(1, 0, 1)) // counted before the other, told after it
	check("told late", 0, 1, true)
	b.again()
	check("the next epoch", 1, 1, true)
	b.must(saved(2, 0, 1))
	check("its first", 1, 1, false)
	b.again()
	check("that set stayed incomplete", 1, 1, false)
	b.must(saved(3, 0, 1))
	b.must(saved(3, 1, 2))
	check("a new set", 1, 3, true)
	b.again()
	check("the epoch after it", 3, 3, true)
	a := b.w.Desired("n1")
	if len(a) != 1 || a[0].Body.Checkpoint != 3 {
		t.Errorf("desired %+v", a)
	}
}

func TestCheckpointRefused(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.Checkpoint = api.CheckpointDrain
	b.submit(s)
	b.start(1)
	for _, c := range []struct {
		ev   CheckpointSaved
		want string
	}{
		{saved(1, 0, 1), "job 1 was submitted with --checkpoint=drain and is not being stopped; put it when the job is told to stop, or submit without --checkpoint=drain"},
		{saved(2, 0, 1), "epoch 2 of job 1 is over; the current one is 1; what an earlier one saves must not replace it"},
		{saved(1, 2, 1), "job 1 has no rank 2 that runs"},
	} {
		if out := b.step(c.ev); out.Refused == nil || out.Refused.Error() != c.want {
			t.Errorf("%+v: %+v, want %q", c.ev, out, c.want)
		}
	}
	b.must(Preempt{Job: 1, For: "job 9"})
	b.must(saved(1, 0, 1))
}

// The count rises once, and the lead ends when nobody has anything left to save.
func TestAcknowledged(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.Notice = &api.Notice{Signal: "USR1", Lead: 20 * time.Second}
	b.submit(s)
	b.start(1)
	b.must(Preempt{Job: 1, For: "job 9"})
	b.after(3 * time.Second)
	ack := Acknowledged{Job: 1, Epoch: 1, Ranks: 1}
	b.must(ack)
	if out := b.step(ack); out.Ignored != "acknowledged before" {
		t.Errorf("a repeat: %+v", out)
	}
	if out := b.step(Acknowledged{Job: 1, Epoch: 9, Ranks: 2}); out.Ignored == "" {
		t.Errorf("another epoch: %+v", out)
	}
	if lead := b.w.Job(1).Drain.Lead; lead != 20*time.Second {
		t.Errorf("lead %v before all have saved", lead)
	}
	b.must(Acknowledged{Job: 1, Epoch: 1, Ranks: 2, Saved: true})
	if d := b.w.Job(1).Drain; d.Lead != 0 || d.Acked != 2 {
		t.Errorf("drain %+v, want its lead ended after 3 s", d)
	}
	a := b.w.Desired("n1")
	if len(a) != 1 || a[0].Stop == nil || a[0].Stop.Lead != 0 {
		t.Errorf("desired %+v", a)
	}
}

// A notice before the time limit is acknowledged before there is a drain, which starts from that count.
func TestNoticeIsAcknowledgedBeforeTheDrain(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.TimeLimit, s.Notice = time.Minute, &api.Notice{Signal: "USR1", Lead: 10 * time.Second}
	id := b.submit(s)
	b.start(id)
	ack := func(ranks int, want string) {
		t.Helper()
		if out := b.step(Acknowledged{Job: id, Epoch: 1, Ranks: ranks, Saved: true}); out.Ignored != want || out.Applied != (want == "") {
			t.Errorf("%d: %+v, want %q", ranks, out, want)
		}
	}
	ack(1, "nothing to acknowledge")
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Noticed: true, Ranks: []api.RankActual{{Rank: 0, PID: 100}}})
	ack(1, "")
	ack(1, "acknowledged before")
	b.state(id, api.JobRunning)
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Noticed: true, Stopping: api.CauseTimeout, Ranks: []api.RankActual{{Rank: 0, PID: 100}}})
	if d := b.w.Job(id).Drain; d == nil || d.Acked != 1 {
		t.Errorf("drain %+v", d)
	}
	ack(1, "acknowledged before")
	ack(2, "")
}
