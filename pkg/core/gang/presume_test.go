package gang

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// openers is a world whose nodes open the gates of gangs that they have alone.
func openers(t *testing.T, nodes int) *bench {
	b := newBench(t, 0)
	for i := range nodes {
		b.opener(fmt.Sprintf("n%d", i+1))
	}
	return b
}

func (b *bench) opener(node string, members ...api.MemberActual) {
	b.t.Helper()
	h := helloOf(node, members...)
	h.Hello.Opens, h.Hello.StateID = true, "state-"+node
	b.must(h)
}

// alone admits a gang of two ranks, each with a card, on the first node.
func (b *bench) alone(s *api.Spec) int64 {
	b.t.Helper()
	s.GPUsPerRank = 1
	id := b.submit(s)
	b.admitOn(id, "n1")
	return id
}

func (b *bench) admitOn(id int64, node string) {
	b.t.Helper()
	var slots []cluster.Slot
	for i := range b.w.Job(id).Ranks {
		slots = append(slots, cluster.Slot{Node: node, Cards: []string{fmt.Sprintf("GPU-%s-%d", node, i)}})
	}
	b.must(Admit{Job: id, Slots: slots})
}

func (b *bench) events(ty api.EventType) int {
	return len(slices.DeleteFunc(b.w.Take().Events, func(ev api.Event) bool { return ev.Type != ty }))
}

func runningWord(j *Job) (all []api.RankActual) {
	for r := range j.Ranks {
		all = append(all, api.RankActual{Rank: r, PID: 100 + r})
	}
	return all
}

// TestAGangOfOneNodeRunsFromItsAdmissionOn: with the assignment its node may open the gate, so all that a script may do is
// allowed at once; that it has started is told when the node says so.
func TestAGangOfOneNodeRunsFromItsAdmissionOn(t *testing.T) {
	b := openers(t, 2)
	id := b.alone(specOf(2))
	b.state(id, api.JobRunning)
	if n := b.events(api.EventStarted); n != 0 {
		t.Errorf("%d starts are told before the node's word", n)
	}
	a := b.w.Desired("n1")
	if len(a) != 1 || a[0].Gate == nil || !a[0].Gate.Alone || a[0].Body == nil || a[0].Body.RestartCount != 0 {
		t.Fatalf("n1 is told %+v", a)
	}
	if out := b.step(StepBegin{Job: id, Key: "s", Ask: api.StepAsk{StepComponent: api.StepComponent{Tasks: 1}}}); !out.Applied {
		t.Errorf("a step of its script: %+v", out)
	}
	waits := b.depending(on(api.After, id))
	b.waits(waits, "after:1(unfulfilled)")
	b.phase(id, "n1", api.PhaseRunning, runningWord(b.w.Job(id))...)
	if n := b.events(api.EventStarted); n != 1 {
		t.Errorf("%d starts are told", n)
	}
	b.waits(waits, "")
	if a := b.w.Desired("n1"); a[0].Gate.Alone || a[0].Gate.MasterPort != 4000 {
		t.Errorf("n1 is told %+v", a[0].Gate)
	}
	two := b.submit(specOf(2))
	b.must(b.spread(two))
	b.state(two, api.JobReserved)
	box := specOf(1)
	box.Container = &api.Container{Image: "/img"}
	inBox := b.submit(box)
	b.must(Admit{Job: inBox, Slots: []cluster.Slot{{Node: "n2"}}})
	b.state(inBox, api.JobReserved)
}

// TestWhatMayRunIsStoppedBeforeItIsGivenOn: whatever ends a gang that its node may have started keeps its cards and its epoch
// until the node has said what became of it. Where nothing ran it is as if it had only been reserved: nobody is charged.
func TestWhatMayRunIsStoppedBeforeItIsGivenOn(t *testing.T) {
	noRequeue := func(s *api.Spec) { s.NoRequeue = true }
	for _, c := range []struct {
		name  string
		spec  func(*api.Spec)
		end   func(b *bench, id int64)
		never api.JobState // when nothing ran
		ran   api.JobState
	}{
		{"cancel", nil, func(b *bench, id int64) { b.must(Cancel{Job: id}) }, api.JobCancelled, api.JobCancelled},
		{"requeue", nil, func(b *bench, id int64) { b.must(Requeue{Job: id}) }, api.JobPending, api.JobPending},
		{"preempt", nil, func(b *bench, id int64) { b.must(Preempt{Job: id}) }, api.JobPending, api.JobPending},
		{"preempt what may not run again", noRequeue, func(b *bench, id int64) { b.must(Preempt{Job: id}) }, api.JobPending, api.JobPreempted},
		{"card broken", nil, func(b *bench, _ int64) {
			b.must(NodeSample{Node: "n1", Cards: []api.CardSample{{UUID: "GPU-n1-0", Unhealthy: "fell off the bus"}}})
		}, api.JobPending, api.JobPending},
		{"card broken of what may not run again", noRequeue, func(b *bench, _ int64) {
			b.must(NodeSample{Node: "n1", Cards: []api.CardSample{{UUID: "GPU-n1-0", Unhealthy: "fell off the bus"}}})
		}, api.JobPending, api.JobNodeFail},
		{"node to be empty", nil, func(b *bench, _ int64) { b.must(NodeDrain{Node: "n1", By: b.now.Wall}); b.after(0) }, api.JobPending,
			api.JobPending},
		{"node down", noRequeue, func(b *bench, _ int64) { b.must(NodeDrain{Node: "n1", Down: true}); b.after(0) }, api.JobPending, api.JobNodeFail},
		{"start time-out", nil, func(b *bench, _ int64) { b.after(b.w.set.StartTimeout) }, api.JobPending, api.JobPending},
		{"start time-out of what may not run again", noRequeue, func(b *bench, _ int64) { b.after(b.w.set.StartTimeout) }, api.JobPending,
			api.JobFailed},
	} {
		for _, again := range []bool{false, true} {
			for ran, want := range map[bool]api.JobState{false: c.never, true: c.ran} {
				t.Run(fmt.Sprintf("%s, ran: %t, restored: %t", c.name, ran, again), func(t *testing.T) {
					b := openers(t, 2)
					s := specOf(2)
					if c.spec != nil {
						c.spec(s)
					}
					id := b.alone(s)
					c.end(b, id)
					if again {
						b.w.Take()
						b.w = Restore(b.now, b.w.set, &Snapshot{Jobs: []*Job{b.w.Job(id)}, Nodes: b.w.Nodes(), NextID: id + 1, NextSeq: 1})
						b.desired = nil
						b.opener("n2")
						b.opener("n1") // it has not been told of it yet
					}
					j := b.w.Job(id)
					key := j.key()
					if JobState(j) != api.JobCompleting || !slices.ContainsFunc(b.w.Node("n1").Res.Grants, func(g cluster.Grant) bool { return g.MemberKey == key }) {
						t.Fatalf("%s, and its grant is %+v", JobState(j), b.w.Node("n1").Res.Grants)
					}
					if a := b.w.Desired("n1"); len(a) != 1 || a[0].Stop == nil || a[0].Gate != nil {
						t.Fatalf("n1 is told %+v", a)
					}
					if out := b.step(Admit{Job: id, Slots: []cluster.Slot{{Node: "n2"}, {Node: "n2"}}}); out.Refused == nil {
						t.Fatal("it is admitted a second time")
					}
					used := len(j.Used)
					if ran { // the order had come too late
						b.phase(id, "n1", api.PhaseRunning, runningWord(j)...)
						b.ack(id)
					} else {
						b.phase(id, "n1", api.PhaseStopped)
					}
					b.state(id, want)
					j = b.w.Job(id)
					if n := len(b.w.Node("n1").Res.Grants) + len(b.w.Node("n1").Left); n != 0 {
						t.Errorf("%d things of it are left", n)
					}
					if counts := ran || c.name == "requeue" || c.name == "node to be empty"; j.Start.IsZero() == counts || j.Presumed != nil || !ran && len(j.Used) > used {
						t.Errorf("started at %s, presumed %v, charged %v", j.Start, j.Presumed, j.Used)
					}
				})
			}
		}
	}
}

// TestNobodyKnowsWhetherItRan: without a word of its node a gang counts as one that ran.
func TestNobodyKnowsWhetherItRan(t *testing.T) {
	for name, end := range map[string]func(b *bench){
		"lost": func(b *bench) {
			b.must(NodeGone{Node: "n1"})
			b.after(b.w.set.NodeTimeout)
		},
		"rebooted": func(b *bench) {
			b.must(NodeGone{Node: "n1"})
			h := helloOf("n1")
			h.Hello.Opens, h.Hello.StateID, h.Hello.BootID = true, "state-n1", "boot-2"
			b.must(h)
		},
		"its records are gone": func(b *bench) {
			b.must(NodeGone{Node: "n1"})
			h := helloOf("n1")
			h.Hello.Opens, h.Hello.StateID = true, "another"
			b.must(h)
		},
		"its shim died": func(b *bench) { b.phase(1, "n1", api.PhaseLost) },
		"gone":          func(b *bench) { b.must(NodeReport{Node: "n1", Actual: api.Actual{Gone: []api.MemberKey{b.key(1)}}}) },
		"never stopped": func(b *bench) {
			b.must(Requeue{Job: 1})
			b.after(b.w.set.Grace + b.w.set.DrainSlack)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := openers(t, 3)
			id := b.alone(specOf(2))
			end(b)
			j := b.w.Job(id)
			if j.Start.IsZero() || j.Presumed != nil || j.Restarts != 0 || JobState(j) != api.JobPending || name != "never stopped" && j.Used[api.CauseNodeLost] != 1 {
				t.Fatalf("%s, started at %s, charged %v", JobState(j), j.Start, j.Used)
			}
			if left := b.w.Fenced(id); (name == "lost" || name == "never stopped") != (len(left) == 1) {
				t.Errorf("it waits for %v", left)
			}
		})
	}
}

// TestANodeThatNeverHeardOfItIsToldAgain: a session that broke before the assignment came, and a new leader, end nothing.
func TestANodeThatNeverHeardOfItIsToldAgain(t *testing.T) {
	b := openers(t, 1)
	id := b.alone(specOf(2))
	b.after(b.w.set.StartTimeout - time.Second)
	b.must(NodeGone{Node: "n1"})
	b.opener("n1")
	b.after(b.w.set.StartTimeout - time.Second) // all of its time, from here on
	b.state(id, api.JobRunning)
	if a := b.w.Desired("n1"); len(a) != 1 || a[0].Gate == nil || !a[0].Gate.Alone {
		t.Fatalf("n1 is told %+v", a)
	}
	b.w.Take()
	b.w = Restore(b.now, b.w.set, &Snapshot{Jobs: []*Job{b.w.Job(id)}, Nodes: b.w.Nodes(), NextID: id + 1, NextSeq: 1})
	b.desired = nil
	b.opener("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseReady, Port: 4000})
	if a := b.w.Desired("n1"); len(a) != 1 || a[0].Gate == nil || !a[0].Gate.Alone {
		t.Fatalf("n1 is told %+v", a)
	}
	b.phase(id, "n1", api.PhaseRunning, runningWord(b.w.Job(id))...)
	if b.state(id, api.JobRunning); b.w.Job(id).Presumed != nil {
		t.Error("it is not known to run")
	}
}

// TestARefusalOfWhatWasTakenForStarted: it waits again as it did before, with the epochs that it really had.
func TestARefusalOfWhatWasTakenForStarted(t *testing.T) {
	b := openers(t, 2)
	id := b.alone(specOf(2))
	b.phase(id, "n1", api.PhaseRunning, runningWord(b.w.Job(id))...)
	b.must(Requeue{Job: id})
	b.ack(id)
	first := b.w.Job(id).Start
	b.after(time.Minute)
	b.admitOn(id, "n1")
	for _, row := range b.w.Take().Epochs { // the first is not booked a second time
		if row.Epoch == 2 && row.Booking != nil {
			t.Errorf("the row of an epoch of which nothing is known is booked as %+v", row.Booking)
		}
	}
	if a := b.w.Desired("n1"); a[0].Body.RestartCount != 1 {
		t.Errorf("it is told of restart %d", a[0].Body.RestartCount)
	}
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameNode, Text: "no"}})
	j := b.w.Job(id)
	if JobState(j) != api.JobPending || !j.Start.Equal(first) || j.Restarts != 0 || len(j.Used) != 0 || j.Rollbacks != 1 || len(b.w.Node("n1").Strikes) != 1 {
		t.Errorf("%s, started at %s, %d restarts, charged %v, %d rollbacks", JobState(j), j.Start, j.Restarts, j.Used, j.Rollbacks)
	}
	b.after(time.Hour) // nothing that was armed for it is left
	b.admitOn(id, "n2")
	b.must(Cancel{Job: id})
	b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameNode, Text: "no"}})
	if b.state(id, api.JobCancelled); b.w.Job(id).Restarts != 0 {
		t.Errorf("%d restarts", b.w.Job(id).Restarts)
	}
}
