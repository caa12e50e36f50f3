package gang

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

// Two gangs on n1, one with a notice of 20 s: it is told so much earlier, and both are
// stopped at the deadline, charged with nothing, and wait for another node.
func TestANodeIsEmptiedByADeadline(t *testing.T) {
	b := newBench(t, 1)
	plain := b.submit(specOf(1))
	s := specOf(1)
	s.Notice = &api.Notice{Signal: "USR1", Lead: 20 * time.Second}
	noticed := b.submit(s)
	b.start(plain)
	b.start(noticed)
	by := b.now.Wall.Add(time.Minute)
	b.must(NodeDrain{Node: "n1", Reason: "fan", User: "ada", By: by})
	if out := b.step(NodeDrain{Node: "n1", Reason: "fan", By: by}); out.Ignored == "" {
		t.Errorf("%+v", out)
	}
	b.after(39 * time.Second)
	b.state(noticed, api.JobRunning)
	b.after(time.Second)
	b.state(plain, api.JobRunning)
	if d := b.w.Job(noticed).Drain; d == nil || d.Cause != api.CauseRequeued || d.Lead != 20*time.Second ||
		d.Text != "node n1 is to be empty by 2026-03-01T12:01:00Z: fan" {
		t.Fatalf("%+v", d)
	}
	b.after(20 * time.Second)
	if d := b.w.Job(plain).Drain; d == nil || d.Lead != 0 {
		t.Fatalf("%+v", d)
	}
	for _, id := range []int64{plain, noticed} {
		b.ack(id)
		b.state(id, api.JobPending)
		if j := b.w.Job(id); len(j.Used) != 0 || b.w.Candidate(id) == nil {
			t.Errorf("job %d: charged %v", id, j.Used)
		}
	}
	if n := b.w.Node("n1"); n.State != api.NodeDrained || n.DrainUser != "ada" || !n.DrainTime.Equal(by.Add(-time.Minute)) {
		t.Errorf("%+v", n)
	}
	b.must(NodeResume{Node: "n1"})
	if n := b.w.Node("n1"); n.State != api.NodeUp || n.DrainUser != "" || !n.DrainTime.IsZero() || !n.DrainBy.IsZero() {
		t.Errorf("%+v", n)
	}
}

// What runs on a node that a person calls down is stopped at once and without its notice, and counts as lost with the node.
func TestANodeThatIsCalledDown(t *testing.T) {
	b := newBench(t, 1)
	again := specOf(1)
	again.Notice = &api.Notice{Signal: "USR1", Lead: 20 * time.Second}
	once := specOf(1)
	once.NoRequeue = true
	jobs := []int64{b.submit(again), b.submit(once)}
	for _, id := range jobs {
		b.start(id)
	}
	b.must(NodeDrain{Node: "n1", Reason: "fan", User: "ada", Down: true})
	if out := b.step(NodeDrain{Node: "n1", Reason: "fan", Down: true}); out.Ignored == "" {
		t.Errorf("said again: %+v", out)
	}
	b.after(0)
	for _, id := range jobs {
		if d := b.w.Job(id).Drain; d == nil || d.Cause != api.CauseNodeLost || d.Lead != 0 || d.Text != "node n1 is down: fan" {
			t.Fatalf("job %d: %+v", id, d)
		}
		b.ack(id)
	}
	b.state(jobs[0], api.JobPending)
	b.state(jobs[1], api.JobNodeFail)
	if used := b.w.Job(jobs[0]).Used[api.CauseNodeLost]; used != 1 {
		t.Errorf("charged %d", used)
	}
	if n := b.w.Node("n1"); !n.Down || n.State != api.NodeDrained {
		t.Errorf("%+v", n)
	}
	b.must(NodeResume{Node: "n1"})
	if n := b.w.Node("n1"); n.Down || n.State != api.NodeUp {
		t.Errorf("resumed: %+v", n)
	}
}

func TestAnEmptyingThatIsCalledOff(t *testing.T) {
	for name, ev := range map[string]Event{"resume": NodeResume{Node: "n1"}, "drain without a deadline": NodeDrain{Node: "n1", Reason: "fan"}} {
		b := newBench(t, 1)
		id := b.submit(specOf(1))
		b.start(id)
		b.must(NodeDrain{Node: "n1", Reason: "fan", By: b.now.Wall.Add(time.Minute)})
		b.must(ev)
		b.after(2 * time.Minute)
		if JobState(b.w.Job(id)) != api.JobRunning {
			t.Errorf("%s: job is %s", name, JobState(b.w.Job(id)))
		}
	}
}

// The time is kept over a restart; a gang whose notice should have begun meanwhile has what
// is left of it.
func TestAnEmptyingSurvivesARestart(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.Notice = &api.Notice{Signal: "USR1", Lead: 20 * time.Second}
	id := b.submit(s)
	b.start(id)
	b.must(NodeDrain{Node: "n1", Reason: "fan", By: b.now.Wall.Add(time.Minute)})
	ch := b.w.Take()
	b.now.Wall = b.now.Wall.Add(50 * time.Second)
	b.now.Mono = 0
	b.w = Restore(b.now, b.w.set, &Snapshot{Jobs: ch.Jobs, Nodes: ch.Nodes, NextID: ch.NextID, NextSeq: ch.NextSeq})
	b.must(Tick{})
	if d := b.w.Job(id).Drain; d == nil || d.Lead != 10*time.Second {
		t.Errorf("%+v", d)
	}
}

// A gang that may not run again ends: the node does not wait for it.
func TestAnEmptyingEndsWhatMayNotRunAgain(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.NoRequeue = true
	id := b.submit(s)
	b.start(id)
	b.must(NodeDrain{Node: "n1", Reason: "fan", By: b.now.Wall.Add(time.Second)})
	b.after(time.Second)
	b.ack(id)
	b.state(id, api.JobPreempted)
}

func TestAnEmptyingRollsBackWhatIsPrepared(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.must(b.spread(id))
	b.must(NodeDrain{Node: "n2", Reason: "fan", By: b.now.Wall.Add(time.Second)})
	b.after(time.Second)
	b.state(id, api.JobPending)
}
