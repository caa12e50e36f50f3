package gang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// endedAt is a rank that ended by itself so long after the first.
func endedAt(rank, code int, after time.Duration) api.RankActual {
	ra := exit(rank, code)
	ra.Ended, ra.Own = epoch0.Add(after), true
	return ra
}

// fourNodes is a gang of four that runs on four nodes, whose clocks are known to so much.
func fourNodes(t *testing.T, within time.Duration) (*bench, int64) {
	b := newBench(t, 4)
	s := specOf(4)
	s.GPUsPerRank = 1
	id := b.submit(s)
	at := b.spread(id)
	for i := range at.Slots {
		at.Slots[i].Cards = []string{"GPU-" + at.Slots[i].Node + "-0"}
	}
	b.must(at)
	b.ready(id)
	for i := range 4 {
		b.phase(id, fmt.Sprintf("n%d", i+1), api.PhaseRunning, api.RankActual{Rank: i, PID: 100 + i, Started: b.now.Wall})
	}
	for n := range 4 {
		b.step(NodeReport{Node: fmt.Sprintf("n%d", n+1), Actual: api.Actual{Clock: api.NodeClock{Within: within}}})
	}
	return b, id
}

// TestWhoEndedTheEpoch: rank 0 is always reported first, a millisecond after what happened to another. What ends the
// epoch, and what is charged for it, is what happened.
func TestWhoEndedTheEpoch(t *testing.T) {
	peer := func(b *bench, id int64) { b.phase(id, "n1", api.PhaseStopped, endedAt(0, 9, 5*time.Millisecond)) }
	peers := func(b *bench, id int64) {
		peer(b, id)
		b.phase(id, "n3", api.PhaseStopped, endedAt(2, 9, 6*time.Millisecond))
		b.phase(id, "n4", api.PhaseStopped, endedAt(3, 9, 6*time.Millisecond))
	}
	struck := func(b *bench, id int64) {
		ra := endedAt(1, 128+sigTerm, 0)
		ra.Signal = sigTerm
		b.phase(id, "n2", api.PhaseStopped, ra)
	}
	boots := func(b *bench) {
		b.must(NodeGone{Node: "n2"})
		b.after(20 * time.Second)
		h := helloOf("n2")
		h.Hello.BootID = "boot-2"
		b.must(h)
	}
	kills := func(before int) *api.MemoryKills {
		return &api.MemoryKills{Count: before + 1, Before: before, Asked: 1 << 30, Used: 1 << 30}
	}
	for _, c := range []struct {
		name    string
		play    func(b *bench, id int64)
		cause   api.Cause
		trigger int
		text    string
	}{
		{"a peer's report comes first", func(b *bench, id int64) {
			peers(b, id)
			b.phase(id, "n2", api.PhaseStopped, endedAt(1, 3, 0))
		}, api.CauseCrash, 1, "rank 1 exited with code 3"},
		{"its node dies, with a reset", func(b *bench, id int64) {
			peers(b, id)
			b.must(NodeGone{Node: "n2"})
			b.after(30 * time.Second)
		}, api.CauseNodeLost, 1, "node n2 is lost"},
		{"its node was silent before", func(b *bench, id int64) {
			b.must(NodeGone{Node: "n2"})
			b.after(2 * time.Second)
			peers(b, id)
			b.after(28 * time.Second)
		}, api.CauseNodeLost, 1, "node n2 is lost"},
		{"its node has booted", func(b *bench, id int64) {
			peers(b, id)
			boots(b)
		}, api.CauseNodeLost, 1, "n2: the node rebooted"},
		{"its machine goes down, and how it ended is told before", func(b *bench, id int64) {
			peers(b, id)
			struck(b, id)
			b.after(goesDown / 2)
			b.must(NodeGone{Node: "n2"})
			b.after(30 * time.Second)
		}, api.CauseNodeLost, 1, "node n2 is lost"},
		{"its machine boots, and how it ended is told before", func(b *bench, id int64) {
			peers(b, id)
			struck(b, id)
			boots(b)
		}, api.CauseNodeLost, 1, "n2: the node rebooted"},
		{"its machine goes down, and gangd starts again", func(b *bench, id int64) {
			peers(b, id)
			struck(b, id)
			b.reborn(time.Second)
			for _, n := range []string{"n1", "n3", "n4"} {
				b.hello(n)
			}
			b.after(30 * time.Second)
		}, api.CauseNodeLost, 1, "node n2 is lost"},
		{"its gnoded starts again when somebody had ended it", func(b *bench, id int64) {
			peers(b, id)
			struck(b, id)
			b.must(NodeGone{Node: "n2"})
			b.after(20 * time.Second)
			b.must(helloOf("n2"))
			b.after(goesDown)
		}, api.CauseCrash, 1, "rank 1 was ended by signal 15"},
		{"somebody ends it, on a node that lives on", func(b *bench, id int64) {
			peers(b, id)
			struck(b, id)
			if j := b.w.Job(id); j.Drain == nil {
				b.t.Error("judged at once")
			}
			over := b.now.Wall
			b.after(goesDown)
			if j := b.w.Job(id); !j.End.Equal(over) || !j.Booking.Until.Equal(over) {
				b.t.Errorf("charged until %s, ended %s, was over %s", j.Booking.Until, j.End, over)
			}
		}, api.CauseCrash, 1, "rank 1 was ended by signal 15"},
		{"its supervisor died", func(b *bench, id int64) {
			peers(b, id)
			b.phase(id, "n2", api.PhaseLost)
		}, api.CauseNodeLost, 1, "n2: its supervisor died, its processes were killed"},
		{"its node is silent until the drain has no more time", func(b *bench, id int64) {
			b.w.set.NodeTimeout = time.Hour
			peers(b, id)
			b.must(NodeGone{Node: "n2"})
			b.after(drainTime(&b.w.set, b.w.Job(id)))
		}, api.CauseNodeLost, 1, "node n2 is silent"},
		{"its node dies when it had been stopped for long", func(b *bench, id int64) {
			peers(b, id)
			b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: api.CauseCrash, Ranks: []api.RankActual{{Rank: 1, PID: 101}}})
			b.after(10 * time.Second)
			b.must(NodeGone{Node: "n2"})
			b.after(30 * time.Second)
		}, api.CauseCrash, 0, "rank 0, or 2, 3: 1.0 ms apart; rank 0 exited with code 9"},
		{"its card is lost", func(b *bench, id int64) {
			peers(b, id)
			b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Ranks: []api.RankActual{endedAt(1, 134, 0)},
				Cards: []api.CardSample{{UUID: "GPU-n2-0", Unhealthy: "fell off the bus"}}})
		}, api.CauseNodeLost, 1, "card 0 of n2: fell off the bus"},
		{"memory", func(b *bench, id int64) {
			peers(b, id)
			ra := endedAt(1, 137, 0)
			ra.OOM, ra.MemoryAsked, ra.MemoryUsed = true, 1<<30, 1<<30
			b.phase(id, "n2", api.PhaseStopped, ra)
		}, api.CauseOOM, 1, "rank 1 ran out of memory: used 1G of 1G asked there"},
		{"memory of a child, whose rank lives on", func(b *bench, id int64) {
			peers(b, id)
			b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Stopping: api.CauseCrash, Kills: kills(1), Ranks: []api.RankActual{exit(1, 143)}})
		}, api.CauseOOM, 1, "rank 1: 2 processes killed for want of memory: used 1G of 1G asked there"},
		{"memory that ran out while it was stopped", func(b *bench, id int64) {
			peers(b, id)
			b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Stopping: api.CauseCrash, Kills: kills(0), Ranks: []api.RankActual{exit(1, 143)}})
		}, api.CauseCrash, 0, "rank 0, or 2, 3: 1.0 ms apart; rank 0 exited with code 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, id := fourNodes(t, time.Millisecond/4)
			b.w.Take()
			c.play(b, id)
			ch := b.w.Take()
			j := b.w.Job(id)
			budget := c.cause
			if budget == api.CauseOOM {
				budget = api.CauseCrash
			}
			if len(j.Used) != 1 || j.Used[budget] != 1 {
				t.Errorf("charged %v", j.Used)
			}
			if len(ch.Epochs) != 1 {
				t.Fatalf("attempts %+v", ch.Epochs)
			}
			row := ch.Epochs[0]
			if row.Cause != c.cause || row.Trigger != c.trigger || row.Text != c.text {
				t.Errorf("%s of rank %d: %q", row.Cause, row.Trigger, row.Text)
			}
			if by := row.StartedBy; c.trigger != 0 && (by == nil || by.Trigger != 0 || by.Cause != api.CauseCrash) {
				t.Errorf("started by %+v", by)
			}
			for _, ev := range ch.Events {
				if (ev.Type == api.EventDrainCompleted || ev.Type == api.EventEnded) && (ev.Cause != c.cause || *ev.Trigger != c.trigger) {
					t.Errorf("%s: %s of rank %d", ev.Type, ev.Cause, *ev.Trigger)
				}
			}
			if v := j.Verdict; v != nil && (v.Cause != c.cause || v.Trigger != c.trigger || !strings.HasPrefix(v.Text, c.text)) {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestTiesAreTold: whose ends are nearer than clocks and supervisors can tell are both named.
func TestTiesAreTold(t *testing.T) {
	for _, c := range []struct {
		within, late, apart time.Duration
		tie                 bool
	}{
		{100 * time.Microsecond, 0, 200 * time.Microsecond, true},
		{100 * time.Microsecond, 0, 5 * time.Millisecond, false},
		{10 * time.Millisecond, 0, 5 * time.Millisecond, true},
		{100 * time.Microsecond, 10 * time.Millisecond, 5 * time.Millisecond, true},
		{100 * time.Microsecond, 2 * time.Millisecond, 5 * time.Millisecond, false},
	} {
		b, id := fourNodes(t, c.within)
		late := endedAt(0, 9, c.apart)
		late.Late = c.late
		b.phase(id, "n1", api.PhaseStopped, late)
		b.phase(id, "n2", api.PhaseStopped, endedAt(1, 3, 0))
		b.ack(id)
		want := "rank 1 exited with code 3"
		if c.tie {
			want = fmt.Sprintf("rank 1, or 0: %.1f ms apart; rank 1 exited with code 3", float64(c.apart.Microseconds())/1000)
		}
		if v := b.w.Job(id).Verdict; v == nil || v.Trigger != 1 || v.Text != want {
			t.Errorf("%+v: %+v", c, v)
		}
		if tied := b.w.Take().Epochs[0].Tied; c.tie != slices.Equal(tied, []int{0}) || !c.tie && tied != nil {
			t.Errorf("%+v: tied with %v", c, tied)
		}
	}
}

// TestAShellThatHasNotSeenItsProgramFail: it is stopped like a peer, and may have been first all the same.
func TestAShellThatHasNotSeenItsProgramFail(t *testing.T) {
	b, id := fourNodes(t, time.Millisecond/4)
	b.phase(id, "n1", api.PhaseStopped, endedAt(0, 9, 0))
	shell := exit(1, 143)
	shell.Ended, shell.ProgramFailed = epoch0.Add(30*time.Millisecond), true
	b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Stopping: api.CauseCrash, Ranks: []api.RankActual{shell}})
	b.ack(id)
	if v := b.w.Job(id).Verdict; v == nil || v.Trigger != 0 || v.Text != "rank 0, or 1: 30.0 ms apart; rank 0 exited with code 9" {
		t.Errorf("%+v", v)
	}
	if row := b.w.Take().Epochs[0]; !slices.Equal(row.Tied, []int{1}) {
		t.Errorf("tied with %v", row.Tied)
	}
}

// TestEndsByTheClockOfTheController: a node whose clock is an hour ahead is not the last for that.
func TestEndsByTheClockOfTheController(t *testing.T) {
	b, id := fourNodes(t, time.Millisecond/4)
	b.step(NodeReport{Node: "n2", Actual: api.Actual{Clock: api.NodeClock{Ahead: time.Hour, Within: time.Millisecond / 4}}})
	b.phase(id, "n1", api.PhaseStopped, endedAt(0, 9, 20*time.Millisecond))
	b.phase(id, "n2", api.PhaseStopped, endedAt(1, 3, time.Hour))
	b.w.Take()
	b.ack(id)
	if v := b.w.Job(id).Verdict; v == nil || v.Trigger != 1 || v.ExitCode != 3 {
		t.Fatalf("%+v", v)
	}
	for _, e := range b.w.Take().Epochs[0].Ends {
		if want := map[int]time.Duration{0: 20 * time.Millisecond}[e.Rank]; e.Rank < 2 && (e.After != want || !e.Own || e.Within != time.Millisecond/4) {
			t.Errorf("%+v", e)
		}
	}
}

// TestManyLeaveForOne: of sixty that leave because one did, that one is found, though its word is the last.
func TestManyLeaveForOne(t *testing.T) {
	b := newBench(t, 8)
	id := b.submit(specOf(60))
	b.start(id)
	for r := 59; r > 0; r-- {
		b.phase(id, b.w.Job(id).Ranks[r].Slot.Node, api.PhaseRunning, endedAt(r, 9, 10*time.Millisecond+time.Duration(r)*time.Microsecond))
	}
	b.phase(id, b.w.Job(id).Ranks[0].Slot.Node, api.PhaseRunning, endedAt(0, 3, 0))
	if d := b.w.Job(id).Drain; len(d.Reports) != mostReports || d.Reports[0].Trigger != 59 {
		t.Errorf("%d reports, the first of rank %d", len(d.Reports), d.Reports[0].Trigger)
	}
	b.ack(id)
	if v := b.w.Job(id).Verdict; v == nil || v.ExitCode != 3 {
		t.Errorf("%+v", v)
	}
}

// TestKillsAreStates: what the kernel killed is the state of the job, whatever its script made of it.
func TestKillsAreStates(t *testing.T) {
	kills := &api.MemoryKills{Count: 1, Before: 1, Asked: 60 << 20, Used: 60 << 20}
	for _, c := range []struct {
		name string
		code int
		stop func(b *bench, id int64)
		want api.JobState
	}{
		{"the script returns 0", 0, nil, api.JobOutOfMemory},
		{"it returns the code of a step", 137, nil, api.JobOutOfMemory},
		{"somebody cancels it", 0, func(b *bench, id int64) { b.must(Cancel{Job: id}) }, api.JobCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1)
			s := specOf(1)
			s.Launch = api.LaunchBatch
			id := b.submit(s)
			b.start(id)
			if c.stop != nil {
				c.stop(b, id)
			}
			ma := api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Kills: kills, Ranks: []api.RankActual{exit(0, c.code)}}
			if c.stop != nil {
				ma.Stopping = api.CauseCancelled
			}
			b.w.Take()
			b.say("n1", ma)
			b.say("n1", ma) // once on record
			b.state(id, c.want)
			ch, told := b.w.Take(), 0
			for _, ev := range ch.Events {
				if ev.Type == api.EventMemoryKills {
					told++
				}
			}
			if told != 1 {
				t.Errorf("%d events of it", told)
			}
			if v := b.w.Job(id).Verdict; c.want == api.JobOutOfMemory && (v.Cause != api.CauseOOM || v.Trigger != 0 || ch.Epochs[0].Cause != api.CauseOOM) {
				t.Errorf("%+v, attempt %+v", v, ch.Epochs[0])
			}
		})
	}
}
