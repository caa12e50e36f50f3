package gang

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

// reborn is the bench after the controller was down for a while: the nodes have not said
// hello yet.
func (b *bench) reborn(down time.Duration) {
	b.t.Helper()
	saved := &Snapshot{Keys: map[string]int64{}, NextID: b.w.jobs.nextID, NextSeq: b.w.record.nextSeq}
	for j := range b.w.Jobs() {
		saved.Jobs = append(saved.Jobs, j)
	}
	saved.Nodes, saved.Reservations = b.w.Nodes(), b.w.Reservations()
	for _, t := range b.w.site.crontabs.byUser {
		saved.Crontabs = append(saved.Crontabs, t)
	}
	b.now.Wall, b.now.Mono = b.now.Wall.Add(down), 5*time.Second // another machine: its own clock
	b.w = Restore(b.now, b.w.set, saved)
	if bad := b.w.Verify(); len(bad) > 0 {
		b.t.Fatalf("restored: %q", bad)
	}
}

func TestRestartTouchesNoRunningGang(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	b.reborn(3 * time.Hour)
	for _, n := range b.w.Nodes() {
		if n.State != api.NodeUnknown || n.Res.Ready || len(n.Res.Grants) != 1 {
			t.Fatalf("%s is %s, ready %t, %d grants", n.Name, n.State, n.Res.Ready, len(n.Res.Grants))
		}
	}
	b.after(29 * time.Second)
	for i, n := range []string{"n1", "n2"} {
		b.hello(n, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Ranks: []api.RankActual{{Rank: i, PID: 100 + i}}})
	}
	b.after(time.Hour)
	b.state(id, api.JobRunning)
	if n := b.w.Node("n1"); n.State != api.NodeUp {
		t.Fatal(n.State)
	}
}

// A gang whose gate was opened just before the controller died has not been slow.
func TestRestartInTheLaunchWindow(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.must(b.spread(id))
	b.ready(id)
	b.reborn(time.Hour)
	b.after(20 * time.Second)
	for i, n := range []string{"n1", "n2"} {
		b.hello(n, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseReady})
		if as := b.w.Desired(n); as[0].Gate == nil {
			t.Fatal("the gate is told again, or nobody starts")
		}
		b.phase(id, n, api.PhaseRunning, api.RankActual{Rank: i, PID: 7})
	}
	b.after(time.Hour)
	b.state(id, api.JobRunning)
}

func TestRestartArmsWhatWasLeft(t *testing.T) {
	b := newBench(t, 2)
	late := specOf(1)
	late.Begin = epoch0.Add(time.Hour)
	begin := b.submit(late)
	draining := b.submit(specOf(1))
	b.start(draining)
	b.must(Cancel{Job: draining})
	waiting := b.submit(specOf(1))
	b.must(b.spread(waiting))
	retry := specOf(1)
	retry.MaxRetries = intPtr(3)
	crashed := b.submit(retry)
	b.start(crashed)
	b.phase(crashed, "n1", api.PhaseStopped, exit(0, 1))
	if b.w.Candidate(crashed) != nil {
		t.Fatal("no back-off")
	}
	gone := b.submit(specOf(1))
	b.must(Cancel{Job: gone})

	b.after(900 * time.Millisecond)
	b.reborn(0)
	if b.w.Candidate(crashed) != nil {
		t.Fatal("the back-off was lost in the restart")
	}
	b.after(100 * time.Millisecond)
	if b.w.Candidate(crashed) == nil {
		t.Fatal("the back-off began anew")
	}
	b.after(29 * time.Second)
	b.state(waiting, api.JobPending)
	b.after(15 * time.Second)
	b.state(draining, api.JobCancelled)
	b.after(255 * time.Second)
	if b.w.Job(gone) != nil {
		t.Fatal("an ended job stays in memory")
	}
	b.after(time.Hour)
	if b.w.Candidate(begin) == nil {
		t.Fatal("not a candidate after its begin time")
	}
}

// The clock of the wall may be anything after a restart: a timer then has its full time at
// most, and never a negative one.
func TestRestartWithAWildClock(t *testing.T) {
	for _, jump := range []time.Duration{-1000 * time.Hour, 1000 * time.Hour} {
		b := newBench(t, 1)
		id := b.submit(specOf(1))
		b.start(id)
		b.must(Cancel{Job: id})
		b.reborn(jump)
		b.hello("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning})
		b.after(45 * time.Second)
		b.state(id, api.JobCancelled)
	}
}

// A past epoch that may still run keeps its gang out also after a restart, and its lease
// counts from the restart: while no controller ran the node had no need to stop.
func TestRestartKeepsAGangBarred(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(2))
	b.start(id)
	b.must(NodeGone{Node: "n2"})
	b.after(30 * time.Second)
	b.ack(id)
	b.reborn(24 * time.Hour)
	b.hello("n1")
	b.hello("n3")
	if n := b.w.Node("n2"); n.State != api.NodeLost || len(n.Res.Grants) != 1 {
		t.Fatalf("%s, %d grants", n.State, len(n.Res.Grants))
	}
	b.after(10*time.Minute + 44*time.Second)
	if b.w.Candidate(id) != nil {
		t.Fatal("admitted before the lease, counted from the restart, is over")
	}
	b.after(time.Second)
	if b.w.Candidate(id) == nil {
		t.Fatal("still barred")
	}
}

func TestRestartRemembersKeys(t *testing.T) {
	b := newBench(t, 0)
	ev := Submit{Key: "k", Spec: specOf(1), SpecHash: hashOf(specOf(1)), Partition: "main", Array: &api.Array{Indices: []int{0, 1, 2}}}
	ids := b.must(ev).JobIDs
	b.reborn(time.Minute)
	if out := b.step(ev); out.Ignored != "already submitted" || len(out.JobIDs) != 3 || out.JobIDs[2] != ids[2] {
		t.Fatalf("%+v", out)
	}
	if b.w.Job(b.w.memory.keys["k"]).ID != ids[0] {
		t.Fatal("by key")
	}
}

// TestRestartBetweenExits: a rank that has ended while its member is being stopped is not waited for.
func TestRestartBetweenExits(t *testing.T) {
	b, id := cardJob(t)
	b.must(Cancel{Job: id})
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: api.CauseCancelled, Ranks: []api.RankActual{exit(0, 143)}})
	b.reborn(time.Second)
	b.hello("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Stopping: api.CauseCancelled, Ranks: []api.RankActual{exit(0, 143), exit(1, 143)}})
	b.state(id, api.JobCancelled)
}

// TestRestartWhileAnImageComes: who imports has all of the time to become ready once more.
func TestRestartWhileAnImageComes(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.must(b.spread(id))
	b.after(20 * time.Second)
	far := api.MemberActual{MemberKey: b.key(id), Phase: api.PhasePreparing, Importing: api.Import{Bytes: 1}}
	b.say("n1", far)
	b.after(20 * time.Second)
	b.reborn(0)
	b.hello("n1", far)
	b.after(b.w.set.StartTimeout - time.Second)
	if !reserved(b.w.Job(id)) {
		t.Error("given up while its image comes")
	}
	b.after(time.Second)
	if reserved(b.w.Job(id)) {
		t.Error("never given up")
	}
}
