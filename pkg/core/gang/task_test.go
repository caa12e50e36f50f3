package gang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// taskBench is a running allocation of two nodes, two CPUs and a card each.
func taskBench(t *testing.T, edit func(*api.Spec)) *bench {
	t.Helper()
	b := newBench(t, 2)
	s := specOf(4)
	s.Launch, s.GPUsPerNode, s.RanksPerNode = api.LaunchBatch, 1, 2
	if edit != nil {
		edit(s)
	}
	b.must(Submit{Key: "k", Spec: s, SpecHash: hashOf(s), Partition: "main"})
	b.startAllocation()
	return b
}

func (b *bench) startAllocation() {
	b.t.Helper()
	slot := func(n string) cluster.Slot { return cluster.Slot{Node: n, Cards: []string{"GPU-" + n + "-0"}} }
	b.must(Admit{Job: 1, Slots: []cluster.Slot{slot("n1"), slot("n1"), slot("n2"), slot("n2")}})
	b.ready(1)
	b.phase(1, "n1", api.PhaseRunning, api.RankActual{Rank: 0, PID: 100, Started: b.now.Wall})
	b.phase(1, "n2", api.PhaseRunning)
}

// srun begins a step of so many tasks, spread over both nodes, and gives its number.
func (b *bench) srun(tasks int) int {
	b.t.Helper()
	j := b.w.Job(1)
	out := b.step(StepBegin{Job: 1, Key: fmt.Sprint(j.Epoch, j.NextStep), Ask: api.StepAsk{StepComponent: api.StepComponent{Tasks: tasks, MinNodes: min(tasks, 2), NoGPUs: true}, Overlap: true}, Secret: "s"})
	if !out.Applied {
		b.t.Fatalf("step of %d: %v", tasks, out.Refused)
	}
	return out.Step.ID
}

// over ends a step.
func (b *bench) stepOver(id int) {
	for _, n := range []string{"n1", "n2"} {
		b.step(NodeReport{Node: n, Actual: api.Actual{Members: []api.MemberActual{{MemberKey: b.key(1), Phase: api.PhaseRunning,
			Steps: []api.StepActual{{ID: id, Over: true}}}}}})
	}
}

// puts says that tasks of a step put a checkpoint, one after the other.
func (b *bench) puts(step int, tasks ...int) (refusal string) {
	for i, task := range tasks {
		out := b.step(CheckpointSaved{Job: 1, Step: &step, Epoch: b.w.Job(1).Epoch, Rank: task, Bytes: 1, SetRanks: i + 1, SetBytes: int64(i + 1)})
		if out.Refused != nil {
			return out.Refused.Message
		}
	}
	return ""
}

// A set is of all tasks of the widest step of an epoch, or it is none; what a step starts from is the
// newest complete one of as many tasks.
func TestTaskSets(t *testing.T) {
	b := taskBench(t, nil)
	from := func(step int) StepSet { return StepOf(b.w.Job(1), step).From }
	prepare := b.srun(1)
	if text := b.puts(prepare, 0); text != "" {
		t.Fatal(text) // nothing is wider yet
	}
	train := b.srun(4)
	if text := b.puts(train, 0, 1, 2); text != "" {
		t.Fatal(text)
	}
	if got := NewestTaskSet(b.w.Job(1)); got != (StepSet{1, prepare, 1}) {
		t.Errorf("with task 3 missing the newest set is %+v", got)
	}
	if text := b.puts(prepare, 0); text != "checkpoints are kept of a job's widest step: step 1.0 has 1 task, step 1.1 has 4" {
		t.Errorf("a narrow step: %q", text)
	}
	beside := b.srun(4)
	if text := b.puts(beside, 0); !strings.HasPrefix(text, "checkpoints are kept of one step at a time: those of step 1.1, which began before step 1.2") {
		t.Errorf("a step beside it: %q", text)
	}
	b.puts(train, 0, 1, 2, 3)
	b.must(CheckpointSaved{Job: 1, Step: &train, Epoch: 1, Rank: 0, Bytes: 1, SetRanks: 1, SetBytes: 1}) // counted before the others, told after them
	if got := NewestTaskSet(b.w.Job(1)); got != (StepSet{1, train, 4}) {
		t.Errorf("complete: %+v", got)
	}
	if c := b.w.Job(1).Checkpoint; c != nil {
		t.Errorf("the batch script has put nothing, and has %+v", c)
	}
	if text := b.puts(train, 9); !strings.HasSuffix(text, "task 9 of step 1.1 has ended") {
		t.Errorf("a task that is not there: %q", text)
	}
	b.stepOver(train)
	next := b.srun(4)
	if from(next) != (StepSet{1, train, 4}) {
		t.Errorf("a later step starts from %+v", from(next))
	}
	if text := b.puts(next, 0); text != "" {
		t.Errorf("a step as wide as one that is over: %q", text)
	}
	if text := b.puts(train, 0); !strings.HasSuffix(text, "has ended") {
		t.Errorf("a step that is over: %q", text)
	}
	again := func() {
		b.must(Requeue{Job: 1})
		b.ack(1)
		b.startAllocation()
	}
	again()
	if text := b.step(CheckpointSaved{Job: 1, Step: &next, Epoch: 1, Rank: 0}).Refused; text == nil || text.Code != api.CodeStaleEpoch {
		t.Errorf("a put of the epoch before: %v", text)
	}
	one, four := b.srun(1), b.srun(4)
	if from(one) != (StepSet{}) || from(four) != (StepSet{1, train, 4}) {
		t.Errorf("the second attempt starts from %+v and %+v", from(one), from(four))
	}
	a := b.w.Desired("n2")
	if i := slices.IndexFunc(a[0].Steps, func(o api.StepOrder) bool { return o.ID == four }); i < 0 || *a[0].Steps[i].From != (api.TaskSet{Epoch: 1, Step: train}) ||
		fmt.Sprint(a[0].Steps[i].Numbers, a[0].Steps[i].Size) != "[2 3] 4" {
		t.Errorf("orders %+v", a[0].Steps)
	}
	b.puts(four, 0, 1, 2)
	again()
	again() // without any step
	if s := b.srun(4); from(s) != (StepSet{1, train, 4}) {
		t.Errorf("a set that is not complete was handed over: %+v", from(s))
	}
	// What a wider step kept is not given up for a narrower one, though no wider one runs now.
	again()
	if text := b.puts(b.srun(2), 0); text != "checkpoints are kept of a job's widest step: step 1.0 has 2 tasks, and attempt 1 kept those of 4" {
		t.Errorf("narrower than what is kept: %q", text)
	}
}

func TestTasksOfDrainCheckpoints(t *testing.T) {
	b := taskBench(t, func(s *api.Spec) { s.Checkpoint = api.CheckpointDrain })
	s := b.srun(2)
	if text := b.puts(s, 0); text != "job 1 was submitted with --checkpoint=drain and is not being stopped" {
		t.Errorf("while it runs: %q", text)
	}
	b.must(Requeue{Job: 1})
	if text := b.puts(s, 0, 1); text != "" {
		t.Errorf("while it is stopped: %q", text)
	}
}

// A silent task is a question to all cards, whichever of the tasks it is; one whose step is over
// is none.
func TestSilentTask(t *testing.T) {
	b := taskBench(t, nil)
	s := b.srun(4)
	mute := func(k ...api.TaskKey) Watched { return Watched{Job: 1, Epoch: 1, Node: "n2", Tasks: k} }
	b.w.Take()
	b.must(mute(api.TaskKey{Step: s, Task: 1})) // is on n1: not this node's to say
	b.must(mute(api.TaskKey{Step: 7, Task: 3}))
	if evs := b.took(api.EventStallSuspected); len(evs) != 0 {
		t.Fatalf("suspected %+v", evs)
	}
	b.must(mute(api.TaskKey{Step: s, Task: 3}))
	evs := b.took(api.EventStallSuspected)
	if len(evs) != 1 || evs[0].Rank != nil || *evs[0].Task != (api.TaskKey{Step: s, Task: 3}) || evs[0].Node != "n2" || evs[0].Text != "task 3 of step 1.0 has not beaten for 2 min" {
		t.Fatalf("suspected: %+v", evs)
	}
	for _, n := range []string{"n1", "n2"} {
		w := b.answer(n, nil, api.CardsQuiet)
		if n == "n2" {
			w.Tasks = mute(api.TaskKey{Step: s, Task: 3}).Tasks
		}
		b.must(w)
	}
	if d := b.w.Job(1).Drain; d == nil || d.Cause != api.CauseStalled || d.Trigger != -1 || !strings.HasPrefix(d.Text, "task 3 of step 1.0 was silent for 2 min; ") {
		t.Errorf("drain %+v", d)
	}
}

// A row of dismissals is a task's own too, and ends with its step.
func TestTaskSparedInARow(t *testing.T) {
	b := taskBench(t, nil)
	s := b.srun(4)
	mute := []api.TaskKey{{Step: s, Task: 3}}
	b.must(Watched{Job: 1, Epoch: 1, Node: "n2", Tasks: mute})
	for i := range 20 {
		w := b.answer("n2", nil, api.CardsUnknown)
		w.Tasks = mute
		b.must(w)
		b.after(2 * time.Minute)
		evs := b.took(api.EventWatchBlind)
		if told := i == 9; (len(evs) == 1) != told || told && (evs[0].Rank != nil || *evs[0].Task != mute[0] || !strings.HasPrefix(evs[0].Text, "task 3 of step 1.0: silent, and spared 10 times")) {
			t.Fatalf("after %d dismissals: %+v", i+1, evs)
		}
	}
	b.stepOver(s)
	if n := len(b.w.jobs.byID[1].guard.spared); n != 1 {
		t.Fatalf("%d rows", n)
	}
	b.must(Watched{Job: 1, Epoch: 1, Node: "n1"})
	if n := len(b.w.jobs.byID[1].guard.spared); n != 0 {
		t.Errorf("%d rows of a step that is over", n)
	}
}

func TestSilentTaskWhoseStepIsOver(t *testing.T) {
	b := taskBench(t, nil)
	s := b.srun(4)
	b.must(Watched{Job: 1, Epoch: 1, Node: "n2", Tasks: []api.TaskKey{{Step: s, Task: 3}}})
	b.stepOver(s)
	b.w.Take()
	for _, n := range []string{"n1", "n2"} {
		b.step(b.answer(n, nil, api.CardsQuiet))
	}
	if evs := b.took(api.EventStallDismissed); len(evs) != 1 || evs[0].Text != "task 3 of step 1.0 beats again, or has ended" || b.w.Job(1).Drain != nil {
		t.Errorf("dismissed %+v, drain %+v", evs, b.w.Job(1).Drain)
	}
}

// The ready gate of an allocation is passed by its script, or by every task of its widest step.
func TestReadyGateOfAllocation(t *testing.T) {
	for _, c := range []struct {
		name   string
		play   func(b *bench)
		passed bool
		text   string
	}{
		{"the script says so", func(b *bench) { b.srun(4); b.saidReady(1, 0) }, true, ""},
		{"all tasks do", func(b *bench) { b.tasksReady(b.srun(4), 0, 1, 2); b.tasksReady(0, 2, 3) }, true, ""},
		{"the only one does", func(b *bench) { b.tasksReady(b.srun(1), 0) }, true, ""},
		{"one does not", func(b *bench) { b.tasksReady(b.srun(4), 0, 1, 3) }, false, "task 2 of step 1.0 not ready within 60 s (3 of 4 were)"},
		{"those of a narrow step do", func(b *bench) { b.srun(4); b.tasksReady(b.srun(2), 0, 1) }, false, "tasks 0, 1, 2 and 3 of step 1.0 not ready within 60 s (0 of 4 were)"},
		{"nobody is", func(b *bench) {}, false, "rank 0 not ready within 60 s (0 of 1 were)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := taskBench(t, func(s *api.Spec) { s.ReadyTimeout = time.Minute })
			c.play(b)
			if passed := !b.w.Job(1).ReadyAt.IsZero(); passed != c.passed {
				t.Errorf("passed %v", passed)
			}
			b.after(time.Minute)
			text := ""
			if d := b.w.Job(1).Drain; d != nil {
				text = d.Text
			}
			if text != c.text {
				t.Errorf("drain %q, want %q", text, c.text)
			}
		})
	}
}

func (b *bench) tasksReady(step int, tasks ...int) {
	ev := Ready{Job: 1, Epoch: b.w.Job(1).Epoch}
	for _, n := range tasks {
		ev.Tasks = append(ev.Tasks, api.TaskKey{Step: step, Task: n})
	}
	b.step(ev)
}

// Who has steps that run is asked of their tasks whether a notice was heard.
func TestVoices(t *testing.T) {
	b := taskBench(t, nil)
	want := func(n int) {
		t.Helper()
		if got := voices(b.w.Job(1)); got != n {
			t.Errorf("%d voices, want %d", got, n)
		}
	}
	want(1)
	s := b.srun(4)
	b.srun(2)
	want(6)
	b.stepOver(s)
	want(2)
}

// TestCardsThatRanksShare: the cards of a member that all its ranks see count once.
func TestCardsThatRanksShare(t *testing.T) {
	if r := taskBench(t, nil).w.Running(1); r.Cards != 2 {
		t.Errorf("%d cards, one on each of two nodes", r.Cards)
	}
}

// TestATaskIsReadyOnce: a repeat is none.
func TestATaskIsReadyOnce(t *testing.T) {
	b := taskBench(t, func(s *api.Spec) { s.ReadyTimeout = time.Minute })
	ev := Ready{Job: 1, Epoch: 1, Tasks: []api.TaskKey{{Step: b.srun(2)}}}
	b.must(ev)
	if out := b.step(ev); out.Ignored != "known to be ready" {
		t.Errorf("%+v", out)
	}
}
