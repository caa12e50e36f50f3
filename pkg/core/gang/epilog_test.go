package gang

import (
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// cleaning is what a node says of a member whose end it tells while the site's epilog runs.
func (b *bench) cleaning(id int64, node string, end api.MemberPhase, ranks ...api.RankActual) Outcome {
	return b.say(node, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Epilog: end, Ranks: ranks})
}

func (b *bench) free(node string, k api.MemberKey, want bool) {
	b.t.Helper()
	if _, held := b.w.Node(node).Res.Grant(k); held == want {
		b.t.Fatalf("%s has a grant for %v: %t", node, k, held)
	}
}

// TestEndBeforeEpilog: what is told while an epilog runs is the whole end, and its node is given on when it is over.
func TestEndBeforeEpilog(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	next := b.depending(&api.Dependency{On: []api.Condition{{Kind: api.AfterAny, Job: id}}})
	b.start(id)
	k := b.key(id)
	began := b.w.Job(id).Start
	b.after(5 * time.Second)
	b.cleaning(id, "n1", api.PhaseStopped, exit(0, 3))
	b.state(id, api.JobCompleting)
	b.free("n1", k, false)
	b.cleaning(id, "n2", api.PhaseStopped, exit(1, 143))
	b.state(id, api.JobFailed)
	if j := b.w.Job(id); j.End.Sub(began) != 5*time.Second || !j.Booking.Until.Equal(j.End) {
		t.Fatalf("started %v, ended %v, booked until %v", began, j.End, j.Booking.Until)
	}
	b.waits(next, "")
	b.free("n2", k, false)
	if out := b.cleaning(id, "n2", api.PhaseStopped, exit(1, 143)); out.Applied {
		t.Fatalf("%+v", out)
	}
	// Told once more when the epilog is over, with what it wrote; that is booked to nobody.
	booked := *b.w.Job(id).Booking
	m := &api.Measure{Seconds: 5, Hooks: []api.HookRun{{Hook: "epilog", Output: "wiped"}}}
	b.say("n2", api.MemberActual{MemberKey: k, Phase: api.PhaseStopped, Ranks: []api.RankActual{exit(1, 143)}, Measure: m})
	b.free("n2", k, true)
	if rows := b.w.record.measures; len(rows) == 0 || rows[len(rows)-1].Member != 1 || rows[len(rows)-1].Measure.Hooks[0].Output != "wiped" {
		t.Fatalf("%+v", rows)
	}
	if now := b.w.Job(id).Booking; now.Until != booked.Until || now.UsedCPUMS != booked.UsedCPUMS {
		t.Fatalf("booked %+v, then %+v", booked, now)
	}
	b.hello("n1", api.MemberActual{MemberKey: k, Phase: api.PhaseRunning, Epilog: api.PhaseStopped, Ranks: []api.RankActual{exit(0, 3)}})
	b.free("n1", k, false)
	b.reborn(time.Second)
	b.hello("n1", api.MemberActual{MemberKey: k, Phase: api.PhaseRunning, Epilog: api.PhaseStopped, Ranks: []api.RankActual{exit(0, 3)}})
	b.free("n1", k, false)
	b.hello("n1")
	b.free("n1", k, true)
}

// TestEpilogsBeforeTheNextRun: a gang that is queued again waits for the epilogs of its last run; where the node of one is
// lost, for nothing, and the node keeps its grant.
func TestEpilogsBeforeTheNextRun(t *testing.T) {
	again := func() (*bench, int64, api.MemberKey) {
		b := newBench(t, 3)
		id := b.submit(specOf(2))
		b.start(id)
		k := b.key(id)
		b.must(Requeue{Job: id, Now: true})
		b.cleaning(id, "n1", api.PhaseStopped, exit(0, 143))
		b.cleaning(id, "n2", api.PhaseLost)
		b.state(id, api.JobPending)
		if b.w.Candidate(id) != nil {
			t.Fatal("a candidate while epilogs run")
		}
		b.refuses(Admit{Job: id, Slots: []cluster.Slot{{Node: "n3"}, {Node: "n3"}}}, "the site's epilog after epoch 1 of job 1 runs on n1, n2")
		b.say("n1", api.MemberActual{MemberKey: k, Phase: api.PhaseStopped})
		if b.w.Candidate(id) != nil {
			t.Fatal("a candidate while an epilog runs")
		}
		return b, id, k
	}
	b, id, k := again()
	b.say("n2", api.MemberActual{MemberKey: k, Phase: api.PhaseLost})
	if b.w.Candidate(id) == nil {
		t.Fatal("no candidate")
	}
	b, id, k = again()
	b.must(NodeGone{Node: "n2"})
	b.after(30 * time.Second)
	if b.w.Candidate(id) == nil {
		t.Fatal("no candidate though nothing of it lives")
	}
	b.free("n2", k, false)
	b.hello("n2", api.MemberActual{MemberKey: k, Phase: api.PhaseRunning, Epilog: api.PhaseLost})
	b.free("n2", k, false)
	b.hello("n2")
	b.free("n2", k, true)
}

// TestStrayInItsEpilog: what was given up by a person's word and is being cleaned up after keeps its node closed.
func TestStrayInItsEpilog(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	k := b.key(id)
	b.must(NodeGone{Node: "n2"})
	b.after(30 * time.Second)
	b.must(NodeFence{Node: "n2"})
	b.hello("n2", api.MemberActual{MemberKey: k, Phase: api.PhasePreparing, Epilog: api.PhaseStopped})
	if n := b.w.Node("n2"); n.Res.Ready {
		t.Fatalf("%+v", n)
	}
	b.say("n2", api.MemberActual{MemberKey: k, Phase: api.PhaseStopped})
	if n := b.w.Node("n2"); !n.Res.Ready {
		t.Fatalf("%+v", n)
	}
}

// TestRefusedBeforeEpilog: a gang goes elsewhere at once, and what was prepared is given on after the epilog.
func TestRefusedBeforeEpilog(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(1))
	b.must(Admit{Job: id, Slots: []cluster.Slot{{Node: "n1"}}})
	k := b.key(id)
	r := &api.Refusal{Blame: api.BlameNode, Text: "prolog: no IB link"}
	b.say("n1", api.MemberActual{MemberKey: k, Phase: api.PhasePreparing, Epilog: api.PhaseRefused, Refusal: r})
	b.free("n1", k, false)
	if b.w.Candidate(id) == nil {
		t.Fatal("no candidate")
	}
	b.say("n1", api.MemberActual{MemberKey: k, Phase: api.PhaseRefused, Refusal: r})
	b.free("n1", k, true)
	if n := b.w.Node("n1"); len(n.Strikes) != 1 {
		t.Fatalf("%+v", n.Strikes)
	}
}
