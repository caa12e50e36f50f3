package gang

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

var update = flag.Bool("update", false, "write docs/state-table.md anew")

const tableFile = "../../../docs/state-table.md"

// gangStateOf is the column that a job is in.
func gangStateOf(w *World, id int64) GangState {
	e := w.jobs.byID[id]
	switch {
	case e == nil:
		return GangNone
	case e.job.Verdict != nil:
		return GangEnded
	case e.job.Drain != nil && e.job.Drain.Cause == api.CauseCompleted:
		return GangClosing
	case e.job.Drain != nil:
		return GangDraining
	case reserved(e.job):
		return GangReserved
	case !blocked(e.job) && slices.ContainsFunc(e.job.Members, func(m Member) bool { return m.State == MemberStarting }):
		return GangStarting
	case !blocked(e.job):
		return GangRunning
	case e.job.Held != "":
		return GangHeld
	case e.left > 0:
		return GangBarred
	case !w.queue.eligible(e):
		return GangDeferred
	}
	return GangBlocked
}

// scene builds job 1, of rank 0 on n1 and rank 1 on n2, in a state; n3 is free.
func scene(t *testing.T, s GangState) *bench {
	b := newBench(t, 3)
	b.unwritten()
	spec := specOf(2)
	spec.MaxRetries = intPtr(9)
	spec.ReadyTimeout = 2 * time.Hour
	if s == GangDeferred {
		spec.Begin = epoch0.Add(time.Hour)
	}
	spec.Hold = s == GangHeld
	if s != GangNone {
		b.must(Submit{Key: "k", Spec: spec, SpecHash: hashOf(spec), Partition: "main"})
	}
	switch s {
	case GangReserved:
		b.must(b.spread(1))
		b.phase(1, "n1", api.PhaseReady)
	case GangStarting:
		b.must(b.spread(1))
		b.ready(1)
		b.phase(1, "n1", api.PhaseRunning, api.RankActual{Rank: 0, PID: 100})
	case GangRunning:
		b.start(1)
	case GangDraining:
		b.start(1)
		b.must(Preempt{Job: 1, For: "job 9"})
	case GangClosing:
		b.start(1)
		b.phase(1, "n1", api.PhaseStopped, exit(0, 0))
		b.phase(1, "n2", api.PhaseRunning, exit(1, 0))
	case GangBarred:
		b.start(1)
		b.must(Preempt{Job: 1, For: "job 9"})
		b.phase(1, "n1", api.PhaseStopped, exit(0, 143))
		b.after(45 * time.Second)
	case GangEnded:
		b.must(Cancel{Job: 1})
	}
	if got := gangStateOf(b.w, 1); got != s {
		t.Fatalf("scene %s is %s", s, got)
	}
	return b
}

// happenings make the events of the rows happen; those that need time let it pass.
func happenings() map[string]func(b *bench) Outcome {
	key := func(b *bench) api.MemberKey {
		if j := b.w.Job(1); j != nil && j.Epoch > 0 {
			return j.key()
		}
		return memberKey(1, 1)
	}
	member := func(p api.MemberPhase, ranks ...api.RankActual) func(b *bench) Outcome {
		return func(b *bench) Outcome {
			return b.say("n2", api.MemberActual{MemberKey: key(b), Phase: p, Ranks: ranks})
		}
	}
	refuse := func(whose api.Blame) func(b *bench) Outcome {
		return func(b *bench) Outcome {
			return b.say("n2", api.MemberActual{MemberKey: key(b), Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: whose, Text: "no"}})
		}
	}
	send := func(ev Event) func(b *bench) Outcome { return func(b *bench) Outcome { return b.step(ev) } }
	late := func(d time.Duration) func(b *bench) Outcome {
		return func(b *bench) Outcome {
			b.now.Wall, b.now.Mono = b.now.Wall.Add(d), b.now.Mono+d
			return b.step(Tick{})
		}
	}
	return map[string]func(b *bench) Outcome{
		"submit again (same key)": send(Submit{Key: "k", Spec: specOf(2), SpecHash: hashOf(specOf(2)), Partition: "main"}),
		"reserve":                 send(Admit{Job: 1, Slots: []cluster.Slot{{Node: "n1"}, {Node: "n3"}}}),
		"member preparing":        member(api.PhasePreparing),
		"member ready":            member(api.PhaseReady),
		"member refused (node)":   refuse(api.BlameNode),
		"member refused (job)":    refuse(api.BlameJob),
		"member running":          member(api.PhaseRunning, api.RankActual{Rank: 1, PID: 101}),
		"rank exits with 0":       member(api.PhaseRunning, exit(1, 0)),
		"rank exits with 1":       member(api.PhaseRunning, exit(1, 1)),
		"time limit reached": func(b *bench) Outcome {
			return b.say("n2", api.MemberActual{MemberKey: key(b), Phase: api.PhaseRunning, Stopping: api.CauseTimeout})
		},
		"member stopped, exits known":   member(api.PhaseStopped, exit(1, 0)),
		"member stopped, exits unknown": member(api.PhaseStopped),
		"member stuck":                  member(api.PhaseStuck),
		"member lost":                   member(api.PhaseLost),
		"member gone": func(b *bench) Outcome {
			return b.step(NodeReport{Node: "n2", Actual: api.Actual{Gone: []api.MemberKey{key(b)}}})
		},
		"another epoch is ready": func(b *bench) Outcome {
			return b.say("n2", api.MemberActual{MemberKey: memberKey(1, 7), Phase: api.PhaseReady})
		},
		"another epoch stopped": func(b *bench) Outcome {
			return b.say("n2", api.MemberActual{MemberKey: memberKey(1, 7), Phase: api.PhaseStopped})
		},
		"node says hello without it": send(helloOf("n2")),
		"node rebooted": func(b *bench) Outcome {
			h := helloOf("n2")
			h.Hello.BootID = "boot-2"
			return b.step(h)
		},
		"session cut": send(NodeGone{Node: "n2"}),
		"node lost": func(b *bench) Outcome {
			b.must(NodeGone{Node: "n2"})
			b.w.clock.timers.set(timer{kind: timerLost, node: "n2"}, b.now.Mono)
			return b.step(Tick{})
		},
		"node drained by an admin": send(NodeDrain{Node: "n2", Reason: "disk"}),
		"node resumed":             send(NodeResume{Node: "n2"}),
		"node fenced":              send(NodeFence{Node: "n2"}),
		"lost node fenced": func(b *bench) Outcome {
			b.must(NodeGone{Node: "n2"})
			b.w.clock.timers.set(timer{kind: timerLost, node: "n2"}, b.now.Mono)
			b.must(Tick{})
			return b.step(NodeFence{Node: "n2"})
		},
		"cards sampled":                send(NodeSample{Node: "n2", Cards: []api.CardSample{{UUID: "GPU-n2-0", Utilization: 5}}}),
		"cancel":                       send(Cancel{Job: 1}),
		"hold":                         send(Hold{Job: 1}),
		"hold by an admin":             send(Hold{Job: 1, Admin: true}),
		"release":                      send(Release{Job: 1}),
		"requeue":                      send(Requeue{Job: 1}),
		"requeue, also what has ended": send(Requeue{Job: 1, Ended: true}),
		"update":                       send(Update{Job: 1, TimeLimit: new(2 * time.Hour)}),
		"deadline in 30 min set": func(b *bench) Outcome {
			return b.step(Update{Job: 1, Deadline: new(b.now.Wall.Add(30 * time.Minute))})
		},
		"deadline passes": func(b *bench) Outcome {
			if e := b.w.jobs.byID[1]; e != nil && (blocked(e.job) || reserved(e.job)) {
				b.w.jobs.edit(e).Deadline = b.now.Wall.Add(2 * time.Second)
				b.w.launches.armDeadline(e)
			}
			return late(2 * time.Second)(b)
		},
		"preempt": send(Preempt{Job: 1, For: "job 9"}),
		"rank saved a checkpoint": func(b *bench) Outcome {
			return b.step(CheckpointSaved{Job: 1, Epoch: key(b).Epoch, Rank: 1, Bytes: 5, SetRanks: 1, SetBytes: 5})
		},
		"rank acknowledged the stop": func(b *bench) Outcome {
			return b.step(Acknowledged{Job: 1, Epoch: key(b).Epoch, Ranks: 1})
		},
		"rank is silent": func(b *bench) Outcome {
			return b.step(Watched{Job: 1, Epoch: key(b).Epoch, Node: "n2", Silent: []int{1}})
		},
		"rank says it is ready": func(b *bench) Outcome {
			return b.step(Ready{Job: 1, Epoch: key(b).Epoch, Ranks: []int{1}})
		},
		"step begins": send(StepBegin{Job: 1, Key: "s", Ask: api.StepAsk{StepComponent: api.StepComponent{Tasks: 1, NodeList: []string{"n2"}}}}),
		"step is ended": func(b *bench) Outcome {
			b.step(StepBegin{Job: 1, Key: "s", Ask: api.StepAsk{StepComponent: api.StepComponent{Tasks: 1, NodeList: []string{"n2"}}}})
			return b.step(StepStop{Job: 1, Step: 0})
		},
		"step is over on its node": func(b *bench) Outcome {
			b.step(StepBegin{Job: 1, Key: "s", Ask: api.StepAsk{StepComponent: api.StepComponent{Tasks: 1, NodeList: []string{"n2"}}}})
			if e := b.w.jobs.byID[1]; e != nil && len(e.job.Steps) == 0 && len(e.job.Members) > 0 {
				b.w.jobs.edit(e).Steps = []Step{{Parts: []StepPart{{Member: 1, Tasks: []int{0}}}}} // begun before the stop
				b.w.jobs.edit(e).NextStep = 1
			}
			return b.say("n2", api.MemberActual{MemberKey: key(b), Phase: api.PhaseRunning, Steps: []api.StepActual{{ID: 0, Over: true}}})
		},
		"3 h pass":          late(3 * time.Hour),
		"tick, nothing due": send(Tick{}),
		"30 s pass":         late(30 * time.Second),
		"45 s pass":         late(45 * time.Second),
		"1 h passes":        late(time.Hour),
	}
}

func cellOf(b *bench, out Outcome, before GangState) Cell {
	switch {
	case out.Refused != nil:
		return Cell{Result: Refused, Detail: string(out.Refused.Code), Next: before}
	case out.Ignored != "":
		return Cell{Result: Ignored, Detail: out.Ignored, Next: gangStateOf(b.w, 1)}
	}
	return Cell{Result: Applied, Next: gangStateOf(b.w, 1)}
}

// TestStateTable walks every state against every event: Step does what the table says, and
// what was ignored or refused changed nothing of the job.
func TestStateTable(t *testing.T) {
	events := happenings()
	for _, row := range Table {
		happen := events[row.Event]
		if happen == nil {
			t.Errorf("row %q: no such event", row.Event)
			continue
		}
		delete(events, row.Event)
		for i, state := range GangStates {
			b := scene(t, state)
			before := text(b.w.Job(1))
			if row.Cells[i].Result != Ignored {
				b.beginTranscript()
				b.witness.Printf("# %s, when it is %s", row.Event, state)
			}
			got := cellOf(b, happen(b), state)
			if i >= len(row.Cells) || got != row.Cells[i] {
				t.Errorf("%s x %s: is %#v", state, row.Event, got)
			}
			if got.Result != Applied && text(b.w.Job(1)) != before {
				t.Errorf("%s x %s: %s, and yet the job changed", state, row.Event, got.Result)
			}
		}
	}
	for name := range events {
		t.Errorf("event %q has no row", name)
	}
}

func TestStateTableFileIsCurrent(t *testing.T) {
	want := TableText()
	if *update {
		if err := os.WriteFile(tableFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(tableFile)
	if err != nil || string(got) != want {
		t.Fatalf("%s is not current: run go generate ./pkg/core/gang (%v)", tableFile, err)
	}
}

// TestPrintWalk prints the table as it is walked, for whoever adds a row.
func TestPrintWalk(t *testing.T) {
	if os.Getenv("GANG_PRINT_WALK") == "" {
		t.Skip("set GANG_PRINT_WALK=1 to print")
	}
	events := happenings()
	var names []string
	for n := range events {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		var out []string
		for _, state := range GangStates {
			b := scene(t, state)
			c := cellOf(b, events[n](b), state)
			switch c.Result {
			case Applied:
				out = append(out, fmt.Sprintf("to(%q)", c.Next))
			case Ignored:
				out = append(out, fmt.Sprintf("skip(%q)", c.Detail))
			default:
				out = append(out, fmt.Sprintf("no(%q)", c.Detail))
			}
		}
		fmt.Printf("%-30s %s\n", n, strings.Join(out, ", "))
	}
}
