package gang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// roomsOf are members with so many CPUs each, and two cards.
func roomsOf(cpus ...int) []room {
	var out []room
	for i, n := range cpus {
		r := room{member: i, node: fmt.Sprintf("n%d", i+1), cpus: n, mem: 8 << 30, cards: []string{fmt.Sprintf("GPU-%d-0", i), fmt.Sprintf("GPU-%d-1", i)}}
		out = append(out, r.empty())
	}
	return out
}

// laid writes parts as "n1:0,1 n2:2".
func laid(parts []StepPart) string {
	var out []string
	for _, p := range parts {
		out = append(out, fmt.Sprintf("n%d:%s/%dc/%dg", p.Member+1, strings.ReplaceAll(strings.Trim(fmt.Sprint(p.Tasks), "[]"), " ", ","), p.CPUs, len(p.Cards)))
	}
	return strings.Join(out, " ")
}

// asks is for tasks of one component.
func asks(c api.StepComponent) api.StepAsk { return api.StepAsk{StepComponent: c} }

func TestLayStep(t *testing.T) {
	busy := roomsOf(4, 4)
	busy[0].cpusFree = 1
	cases := []struct {
		name  string
		ask   api.StepAsk
		rooms []room
		want  string // or the error
	}{
		{"one on each node", api.StepAsk{}, roomsOf(4, 4), "n1:0/4c/2g n2:1/4c/2g"},
		{"as many as nodes allow", asks(api.StepComponent{Tasks: 6}), roomsOf(4, 4), "n1:0,1,2/4c/2g n2:3,4,5/4c/2g"},
		{"a node is enough", asks(api.StepComponent{Tasks: 3}), roomsOf(4, 4), "n1:0,1,2/4c/2g"},
		{"spread over nodes", asks(api.StepComponent{Tasks: 3, MinNodes: 2, MaxNodes: 2}), roomsOf(4, 4), "n1:0,1/4c/2g n2:2/4c/2g"},
		{"uneven nodes", asks(api.StepComponent{Tasks: 5, MinNodes: 2, MaxNodes: 2}), roomsOf(1, 4), "n1:0/1c/2g n2:1,2,3,4/4c/2g"},
		{"cyclic", asks(api.StepComponent{Tasks: 5, MinNodes: 2, MaxNodes: 2, Distribution: "cyclic"}), roomsOf(4, 4), "n1:0,2,4/4c/2g n2:1,3/4c/2g"},
		{"by planes", asks(api.StepComponent{Tasks: 8, MinNodes: 2, MaxNodes: 2, Distribution: "plane=2"}), roomsOf(4, 4), "n1:0,1,4,5/4c/2g n2:2,3,6,7/4c/2g"},
		{"by node", asks(api.StepComponent{MinNodes: 2, MaxNodes: 2, TasksPerNode: 2}), roomsOf(4, 4), "n1:0,1/4c/2g n2:2,3/4c/2g"},
		{"exact", asks(api.StepComponent{Tasks: 1, CPUsPerTask: 2, Exact: true, NoGPUs: true}), roomsOf(4, 4), "n1:0/2c/0g"},
		{"a card each", asks(api.StepComponent{Tasks: 4, GPUsPerTask: 1}), roomsOf(4, 4), "n1:0,1/4c/2g n2:2,3/4c/2g"},
		{"three cards in all", asks(api.StepComponent{Tasks: 2, MinNodes: 2, MaxNodes: 2, GPUs: 3}), roomsOf(4, 4), "n1:0/4c/2g n2:1/4c/1g"},
		{"past a busy node", asks(api.StepComponent{Tasks: 2}), busy, "n2:0,1/4c/2g"},
		{"in what a busy node has left", asks(api.StepComponent{Tasks: 1, Exact: true}), busy, "n1:0/1c/2g"},
		{"overcommitted", asks(api.StepComponent{Tasks: 3, Overcommit: true}), roomsOf(1), "n1:0,1,2/1c/2g"},
		{"one by one", asks(api.StepComponent{Tasks: 3, NodeList: []string{"n2", "n1", "n2"}, Distribution: api.Arbitrary}), roomsOf(4, 4), "n1:1/4c/2g n2:0,2/4c/2g"},
		{"one by one without a number", asks(api.StepComponent{NodeList: []string{"n2", "n2"}, Distribution: api.Arbitrary, Exact: true}), roomsOf(4, 4)[1:], "n2:0,1/2c/2g"},
		{"more than a node of the list has room for", asks(api.StepComponent{NodeList: []string{"n1", "n2", "n1"}, CPUsPerTask: 3, Distribution: api.Arbitrary}), roomsOf(4, 4), "2 tasks with 3 CPUs asked of node n1, there is room for 1"},
		{"fewer names than tasks", asks(api.StepComponent{Tasks: 3, NodeList: []string{"n1", "n2"}, Distribution: api.Arbitrary}), roomsOf(4, 4), "3 tasks asked, and 2 nodes for them"},
		{"too many tasks", asks(api.StepComponent{Tasks: 9}), roomsOf(4, 4), "9 tasks with 1 CPU asked, there is room for 8 on 2 nodes"},
		{"too large tasks", asks(api.StepComponent{Tasks: 1, CPUsPerTask: 5}), roomsOf(4, 4), "1 nodes with 5 CPUs asked, 0 have it"},
		{"too many cards", asks(api.StepComponent{Tasks: 1, GPUsPerNode: 3}), roomsOf(4), "1 nodes with 1 CPU and 3 GPUs a node asked, 0 have it"},
		{"too many nodes", asks(api.StepComponent{MinNodes: 3, MaxNodes: 3}), roomsOf(4, 4), "Only allocated 2 nodes asked for 3"},
		{"unknown order", asks(api.StepComponent{Tasks: 1, Distribution: "spiral"}), roomsOf(4), `distribution "spiral": want block, cyclic, plane=N or arbitrary`},
	}
	for _, c := range cases {
		parts, err := layStep(&c.ask, c.rooms)
		got := laid(parts)
		if err != nil {
			got = err.Message
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Which nodes a step may use, in which order they are tried, and on which task 0 is.
func TestChooseNodesOfAStep(t *testing.T) {
	j := &Job{ID: 7, Spec: &api.Spec{Size: 4}}
	for _, c := range []struct {
		ask  api.StepComponent
		want string
	}{
		{api.StepComponent{NodeList: []string{"n3", "n1"}, MinNodes: 2, MaxNodes: 2}, "n1:0/4c/2g n3:1/4c/2g"},
		{api.StepComponent{NodeList: []string{"n3"}, MinNodes: 2, MaxNodes: 2}, "n1:0/4c/2g n3:1/4c/2g"},
		{api.StepComponent{Relative: 1, MinNodes: 2, MaxNodes: 2}, "n2:0/4c/2g n3:1/4c/2g"},
		{api.StepComponent{Relative: 2}, "n3:0/4c/2g n4:1/4c/2g"},
		{api.StepComponent{Relative: 3, MinNodes: 2, MaxNodes: 2}, "Only allocated 1 nodes asked for 2"},
		{api.StepComponent{Relative: 4}, "relative node 4 of an allocation of 4"},
		{api.StepComponent{NodeList: []string{"n4", "n2", "n4"}, Distribution: api.Arbitrary}, "n2:1/4c/2g n4:0,2/4c/2g"},
		{api.StepComponent{NodeList: []string{"n4", "n9"}, Distribution: api.Arbitrary}, "node n9 is not in the allocation of job 7"},
		{api.StepComponent{Exclude: []string{"n1", "n3"}}, "n2:0/4c/2g n4:1/4c/2g"},
	} {
		ask := asks(c.ask)
		parts, err := laySteps(j, &ask, roomsOf(4, 4, 4, 4), room.empty)
		got := laid(parts)
		if err != nil {
			got = err.Message
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.ask, got, c.want)
		}
	}
}

// The components of a step are on nodes of their own: of a heterogeneous job on those of its component.
func TestLayStepsOfComponents(t *testing.T) {
	group := func(n int) *int { return &n }
	plain := &Job{ID: 7, Spec: &api.Spec{Size: 4}}
	het := &Job{ID: 7, Spec: &api.Spec{Size: 4, Launch: api.LaunchBatch, Roles: []api.Role{
		{Name: "component-0", Count: 1, CPUsPerRank: 1, Component: &api.Component{}}, {Name: "component-1", Count: 3, CPUsPerRank: 1, Component: &api.Component{}}}}}
	for _, c := range []struct {
		name string
		job  *Job
		ask  api.StepAsk
		want string
	}{
		{"without a word the first", het, api.StepAsk{}, "n1:0/4c/2g"},
		{"the second", het, asks(api.StepComponent{Group: group(1)}), "n2:0/4c/2g n3:1/4c/2g"},
		{"both", het, api.StepAsk{StepComponent: api.StepComponent{Group: group(0), Tasks: 2}, More: []api.StepComponent{{Group: group(1), Tasks: 3, Distribution: "cyclic", MinNodes: 2}}}, "n1:0,1/4c/2g n2:2,4/4c/2g n3:3/4c/2g"},
		{"none such", het, asks(api.StepComponent{Group: group(2)}), "there is no component 2: job 7 has components 0 to 1"},
		{"the same twice", het, api.StepAsk{StepComponent: api.StepComponent{Group: group(0)}, More: []api.StepComponent{{Group: group(0)}}}, "component 0 of the job is asked for twice in one step"},
		{"too much for one", het, api.StepAsk{StepComponent: api.StepComponent{Group: group(0), Tasks: 1}, More: []api.StepComponent{{Group: group(1), Tasks: 9}}}, "component 1: 9 tasks with 1 CPU asked, there is room for 8 on 2 nodes"},
		{"of a job that has none, each other nodes", plain, api.StepAsk{StepComponent: api.StepComponent{Tasks: 1}, More: []api.StepComponent{{Tasks: 2, Exact: true}, {Tasks: 1}}}, "n1:0/4c/2g n2:1,2/2c/2g n3:3/4c/2g"},
		{"more than there are nodes", plain, api.StepAsk{StepComponent: api.StepComponent{Tasks: 3, MinNodes: 3, MaxNodes: 3}, More: []api.StepComponent{{Tasks: 1}}},
			"component 1: the others have all nodes of the allocation, and components are on nodes of their own"},
	} {
		rooms := roomsOf(4, 4, 4)
		for i := range rooms {
			rooms[i].component = min(i, 1)
		}
		parts, err := laySteps(c.job, &c.ask, rooms, room.empty)
		got := laid(parts)
		if err != nil {
			got = err.Message
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// stepBench is a running batch job on two nodes of two ranks each, a CPU and no card each.
func stepBench(t *testing.T) *bench {
	b := newBench(t, 2)
	spec := specOf(2)
	spec.Launch = api.LaunchBatch
	b.must(Submit{Key: "k", Spec: spec, SpecHash: hashOf(spec), Partition: "main"})
	b.start(1)
	return b
}

func begin(b *bench, a api.StepAsk) Outcome {
	return b.step(StepBegin{Job: 1, Key: fmt.Sprint(len(b.w.Job(1).Steps), a), Ask: a, Secret: "s"})
}

// A step that waits for what the step has that asks for it would wait for its own end.
func TestStepWithinAStep(t *testing.T) {
	b := stepBench(t)
	outer := begin(b, api.StepAsk{StepComponent: api.StepComponent{Tasks: 1, Exact: true}})
	within := outer.Step.ID
	ask := func(key string, c api.StepComponent, overlap bool) Outcome {
		return b.step(StepBegin{Job: 1, Key: key, Ask: api.StepAsk{StepComponent: c, Overlap: overlap}, Secret: "s", Within: &within})
	}
	all := ask("all", api.StepComponent{}, false)
	if r := all.Refused; r == nil || r.Code != api.CodeUnsatisfiable || r.Reason != api.ReasonWithin || r.Message != "step 1.0, which asks, has it itself and would wait for its own end" {
		t.Errorf("all of the allocation: %+v", r)
	}
	if o := ask("shared", api.StepComponent{}, true); !o.Applied {
		t.Errorf("with --overlap: %+v", o.Refused)
	}
	if o := ask("rest", api.StepComponent{Tasks: 1, Exact: true}, false); !o.Applied {
		t.Errorf("beside it: %+v", o.Refused)
	}
	if r := ask("other", api.StepComponent{Tasks: 1, Exact: true}, false).Refused; r == nil || r.Code != api.CodeBusy {
		t.Errorf("what another step has comes free: %+v", r)
	}
}

func TestStepLife(t *testing.T) {
	b := stepBench(t)
	out := begin(b, api.StepAsk{Name: "a"})
	if !out.Applied || out.Step.ID != 0 || len(out.Step.Parts) != 2 {
		t.Fatalf("%+v", out)
	}
	if again := b.step(StepBegin{Job: 1, Key: out.Step.Key}); again.Ignored == "" || again.Step.ID != 0 {
		t.Errorf("a repeat: %+v", again)
	}
	a := b.w.Desired("n2")
	if len(a) != 1 || len(a[0].Steps) != 1 || a[0].Steps[0].Part != 1 || a[0].Steps[0].Secret != "s" || a[0].Steps[0].Tasks != 1 {
		t.Fatalf("desired of n2: %+v", a)
	}
	if busy := begin(b, api.StepAsk{Name: "b"}); busy.Refused == nil || busy.Refused.Code != api.CodeBusy {
		t.Errorf("a second step: %+v", busy)
	}
	if shared := begin(b, api.StepAsk{Name: "c", Overlap: true}); !shared.Applied || shared.Step.ID != 1 {
		t.Errorf("a sharing step: %+v", shared)
	}
	over := func(node string, step, code int) {
		b.say(node, api.MemberActual{MemberKey: memberKey(1, 1), Phase: api.PhaseRunning, Steps: []api.StepActual{{ID: step, Over: true, ExitCode: code}}})
	}
	over("n1", 0, 0)
	over("n1", 0, 7) // once
	if n := len(b.w.Job(1).Steps); n != 2 {
		t.Fatalf("%d steps while a part runs", n)
	}
	over("n2", 0, 3)
	ended := slices.Concat(b.w.steps.ended)
	if len(ended) != 1 || ended[0].StepID != "0" || *ended[0].ExitCode != 3 || ended[0].State != api.JobFailed || len(b.w.Job(1).Steps) != 1 {
		t.Fatalf("ended: %+v", ended)
	}
	if next := begin(b, api.StepAsk{Name: "d"}); !next.Applied || next.Step.ID != 2 {
		t.Errorf("after the first: %+v", next)
	}
}

// TestStepOverItsLimit: a step that is ended for its own time limit is said to be so, however its tasks took it; one that
// somebody ended is not.
func TestStepOverItsLimit(t *testing.T) {
	for late, want := range map[bool]api.JobState{true: api.JobTimeout, false: api.JobCancelled} {
		for _, code := range []int{0, 143} {
			b := stepBench(t)
			begin(b, api.StepAsk{TimeLimit: time.Minute})
			b.must(StepStop{Job: 1, Step: 0, By: "ada", Late: late})
			for _, n := range []string{"n1", "n2"} {
				b.say(n, api.MemberActual{MemberKey: memberKey(1, 1), Phase: api.PhaseRunning, Steps: []api.StepActual{{ID: 0, Over: true, ExitCode: code}}})
			}
			if len(b.w.steps.ended) != 1 || b.w.steps.ended[0].State != want {
				t.Errorf("late %v, exit code %d: %+v", late, code, b.w.steps.ended)
			}
		}
	}
}

// TestTaskIsBlamed: of a step that failed the task that ended first by itself is named, by the clock of this machine, or who
// may be it; of one that ran out of memory the one that the kernel ended. A script that returned what the step did tells of it.
func TestTaskIsBlamed(t *testing.T) {
	ms := func(n int) time.Time { return epoch0.Add(time.Minute + time.Duration(n)*time.Millisecond) }
	end := func(task, at, code int) api.TaskEnd {
		return api.TaskEnd{Task: task, Time: ms(at), ExitCode: code, Signal: max(0, code-128)}
	}
	for _, c := range []struct {
		name         string
		on1, on2     api.StepActual
		script       int
		text, job    string
		trigger      int
		tied         []int
		state        api.JobState
		ahead, close time.Duration // of n2's clock
	}{
		{name: "on one of two", on1: api.StepActual{ExitCode: 9, Ends: []api.TaskEnd{end(0, 40, 9)}}, on2: api.StepActual{ExitCode: 3, Ends: []api.TaskEnd{end(1, 0, 3)}}, script: 9,
			text: "task 1 exited with code 3 on n2", job: "rank 0 exited with code 9; step 0: task 1 exited with code 3 on n2", trigger: 1, state: api.JobFailed},
		{name: "another code of the script", on1: api.StepActual{}, on2: api.StepActual{ExitCode: 137, Signal: 9, Ends: []api.TaskEnd{end(1, 0, 137)}}, script: 2,
			text: "task 1 was ended by signal 9 on n2", job: "rank 0 exited with code 2", trigger: 1, state: api.JobFailed},
		{name: "by clocks that differ", on1: api.StepActual{ExitCode: 9, Ends: []api.TaskEnd{end(0, 40, 9)}}, on2: api.StepActual{ExitCode: 3, Ends: []api.TaskEnd{end(1, 30000, 3)}}, script: 9,
			ahead: 30 * time.Second, text: "task 1 exited with code 3 on n2", job: "rank 0 exited with code 9; step 0: task 1 exited with code 3 on n2", trigger: 1, state: api.JobFailed},
		{name: "at the same moment", on1: api.StepActual{ExitCode: 9, Ends: []api.TaskEnd{end(0, 0, 9)}}, on2: api.StepActual{ExitCode: 3, Ends: []api.TaskEnd{end(1, 3, 3)}}, script: 9,
			close: 2 * time.Millisecond, text: "task 0, or 1: 3.0 ms apart; task 0 exited with code 9 on n1",
			job: "rank 0 exited with code 9; step 0: task 0, or 1: 3.0 ms apart; task 0 exited with code 9 on n1", trigger: 0, tied: []int{1}, state: api.JobFailed},
		{name: "out of memory", on1: api.StepActual{ExitCode: 9, Ends: []api.TaskEnd{end(0, 0, 9)}}, on2: api.StepActual{ExitCode: 137, Signal: 9, OOM: true, Ends: []api.TaskEnd{end(1, 40, 137)}}, script: 137,
			text: "task 1 ran out of memory on n2", job: "rank 0 exited with code 137; step 0: task 1 ran out of memory on n2", trigger: 1, state: api.JobOutOfMemory},
		{name: "a child out of memory", on1: api.StepActual{ExitCode: 9, Ends: []api.TaskEnd{end(0, 0, 9)}}, on2: api.StepActual{ExitCode: 1, OOM: true, Ends: []api.TaskEnd{end(1, 40, 1)}}, script: 9,
			text: "task 1 exited with code 1 on n2, where memory had run out", job: "rank 0 exited with code 9; step 0: task 1 exited with code 1 on n2, where memory had run out", trigger: 1,
			state: api.JobOutOfMemory},
		{name: "a task of another node", on1: api.StepActual{ExitCode: 3, Ends: []api.TaskEnd{end(1, 0, 3)}}, on2: api.StepActual{ExitCode: 9, Ends: []api.TaskEnd{end(1, 5, 9)}}, script: 9,
			text: "task 1 exited with code 9 on n2", job: "rank 0 exited with code 9; step 0: task 1 exited with code 9 on n2", trigger: 1, state: api.JobFailed},
		{name: "an abort", on1: api.StepActual{ExitCode: 143, Signal: 15}, on2: api.StepActual{ExitCode: 7, Ends: []api.TaskEnd{{Task: 1, Time: ms(0), ExitCode: 143, Signal: 15, Aborted: "status 7"}}},
			script: 143, text: "task 1 aborted (status 7) on n2", job: "rank 0 exited with code 143; step 0: task 1 aborted (status 7) on n2", trigger: 1, state: api.JobFailed},
		{name: "nobody says which", on1: api.StepActual{ExitCode: 3}, on2: api.StepActual{}, script: 3, job: "rank 0 exited with code 3", trigger: -1, state: api.JobFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := stepBench(t)
			begin(b, api.StepAsk{})
			for node, clock := range map[string]api.NodeClock{"n1": {Within: 1}, "n2": {Within: max(1, c.close), Ahead: c.ahead}} {
				b.step(NodeReport{Node: node, Actual: api.Actual{Clock: clock}})
			}
			for node, a := range map[string]api.StepActual{"n1": c.on1, "n2": c.on2} {
				a.Over = true
				b.say(node, api.MemberActual{MemberKey: memberKey(1, 1), Phase: api.PhaseRunning, Steps: []api.StepActual{a}})
			}
			s := b.w.steps.ended[0]
			trigger := -1
			if s.TriggerTask != nil {
				trigger = *s.TriggerTask
			}
			if s.Text != c.text || trigger != c.trigger || !slices.Equal(s.TiedTasks, c.tied) || s.State != c.state {
				t.Errorf("%q, task %d or %v, %s", s.Text, trigger, s.TiedTasks, s.State)
			}
			b.phase(1, "n1", api.PhaseStopped, exit(0, c.script))
			b.phase(1, "n2", api.PhaseStopped)
			if got := b.w.Job(1).Verdict.Text; got != c.job {
				t.Errorf("the job: %q, want %q", got, c.job)
			}
		})
	}
}

// TestAnyFailingStep: with --fail=any the first step that fails by itself ends its job, with its code and its words, whatever the
// script makes of it and however late it is told of; one that somebody ended, or that was stopped with its job, does not.
func TestAnyFailingStep(t *testing.T) {
	failed := api.StepActual{Over: true, ExitCode: 3, Ends: []api.TaskEnd{{Time: epoch0, ExitCode: 3}}}
	one := 1
	say := func(b *bench, node string, steps []api.StepActual, ranks ...api.RankActual) {
		ma := api.MemberActual{MemberKey: b.key(1), Phase: api.PhaseRunning, Steps: steps, Ranks: ranks}
		b.say(node, ma)
	}
	const text = "step 0 failed: task 0 exited with code 3 on n2"
	for _, c := range []struct {
		name   string
		spec   func(*api.Spec)
		do     func(b *bench)
		script int // returns when it is stopped
		state  api.JobState
		code   int
		text   string
	}{
		{name: "of two that run", do: func(b *bench) { say(b, "n2", []api.StepActual{failed}) }, script: 143, state: api.JobFailed, code: 3, text: text},
		{name: "without the option", spec: func(s *api.Spec) { s.Fail = "" }, do: func(b *bench) { say(b, "n2", []api.StepActual{failed}) }, state: api.JobCompleted},
		{name: "the script traps the stop and returns 0", do: func(b *bench) { say(b, "n2", []api.StepActual{failed}) }, state: api.JobFailed, code: 3, text: text},
		{name: "by a signal", do: func(b *bench) {
			say(b, "n2", []api.StepActual{{Over: true, ExitCode: 137, Signal: 9, Ends: []api.TaskEnd{{Time: epoch0, ExitCode: 137, Signal: 9}}}})
		}, state: api.JobFailed, code: 137, text: "step 0 failed: task 0 was ended by signal 9 on n2"},
		{name: "ended by its client once a task had failed", do: func(b *bench) {
			b.must(StepStop{Job: 1, Step: 0, By: "ada"})
			say(b, "n2", []api.StepActual{{Over: true, ExitCode: 143, Signal: 15, Ends: failed.Ends}})
		}, state: api.JobFailed, code: 3, text: text},
		{name: "another fails after it", do: func(b *bench) {
			say(b, "n2", []api.StepActual{failed})
			say(b, "n1", []api.StepActual{{ID: 1, Over: true, ExitCode: 4, Ends: []api.TaskEnd{{Time: epoch0, ExitCode: 4}}}})
		}, script: 143, state: api.JobFailed, code: 3, text: text},
		{name: "ended by somebody", do: func(b *bench) {
			b.must(StepStop{Job: 1, Step: 0, By: "ada"})
			say(b, "n2", []api.StepActual{{Over: true, ExitCode: 143, Signal: 15}})
		}, state: api.JobCompleted},
		{name: "the others ended by a signal of its client", do: func(b *bench) {
			say(b, "n2", []api.StepActual{{Over: true, ExitCode: 143, Signal: 15, Ends: failed.Ends}})
		}, state: api.JobFailed, code: 3, text: text},
		{name: "its own time limit", do: func(b *bench) {
			b.must(StepStop{Job: 1, Step: 0, Late: true})
			say(b, "n2", []api.StepActual{{Over: true, ExitCode: 143, Signal: 15}})
		}, state: api.JobFailed, code: 143, text: "step 0 failed: it has reached its own time limit"},
		{name: "out of memory", do: func(b *bench) { say(b, "n2", []api.StepActual{{Over: true, ExitCode: 1, OOM: true}}) }, state: api.JobOutOfMemory, code: 1,
			text: "step 0 failed: it ran out of memory"},
		{name: "its program is not there", do: func(b *bench) {
			say(b, "n2", []api.StepActual{{Over: true, ExitCode: 2, Error: "execve(): train: No such file or directory"}})
		}, state: api.JobFailed, code: 2, text: "step 0 failed: n2: execve(): train: No such file or directory"},
		{name: "in the same word as the end of its script", do: func(b *bench) {
			say(b, "n1", []api.StepActual{{ID: 1, Over: true, ExitCode: 4}}, exit(0, 5))
		}, state: api.JobFailed, code: 4, text: "step 1 failed: it ended with code 4"},
		{name: "told of after the script, which failed of it", do: func(b *bench) {
			say(b, "n1", nil, exit(0, 5))
			say(b, "n2", []api.StepActual{failed})
		}, script: 5, state: api.JobFailed, code: 3, text: text},
		{name: "told of after the script, which took no notice", do: func(b *bench) {
			say(b, "n1", nil, exit(0, 0))
			say(b, "n2", []api.StepActual{failed})
		}, state: api.JobFailed, code: 3, text: text},
		{name: "stopped with its script", do: func(b *bench) {
			say(b, "n1", nil, exit(0, 0))
			say(b, "n2", []api.StepActual{{Over: true, ExitCode: 143, Signal: 15}})
		}, state: api.JobCompleted},
		{name: "cancelled meanwhile", do: func(b *bench) {
			say(b, "n2", []api.StepActual{failed})
			b.must(Cancel{Job: 1})
		}, script: 143, state: api.JobCancelled, code: 1, text: "cancelled"},
		{name: "its node is lost", do: func(b *bench) {
			say(b, "n2", []api.StepActual{failed})
			b.say("n2", api.MemberActual{MemberKey: b.key(1), Phase: api.PhaseLost})
		}, script: 143},
		{name: "run again", spec: func(s *api.Spec) { s.MaxRetries = &one }, do: func(b *bench) { say(b, "n2", []api.StepActual{failed}) }, script: 143},
		{name: "run again after a script that took no notice", spec: func(s *api.Spec) { s.MaxRetries = &one }, do: func(b *bench) {
			say(b, "n1", nil, exit(0, 0))
			say(b, "n2", []api.StepActual{failed})
		}},
		{name: "run again once", spec: func(s *api.Spec) { s.MaxRetries = &one }, do: func(b *bench) {
			say(b, "n1", nil, exit(0, 0))
			say(b, "n2", []api.StepActual{failed})
			b.phase(1, "n1", api.PhaseStopped, exit(0, 0))
			b.phase(1, "n2", api.PhaseStopped)
			b.after(time.Hour)
			b.start(1)
			begin(b, api.StepAsk{StepComponent: api.StepComponent{Tasks: 1, NodeList: []string{"n2"}}})
			say(b, "n1", nil, exit(0, 0))
			say(b, "n2", []api.StepActual{failed})
		}, script: 143, state: api.JobFailed, code: 3, text: text + "; crash for the 2nd time, of 1 re-runs none is left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 2)
			b.unwritten() // thirteen jobs that begin alike
			spec := specOf(2)
			spec.Launch, spec.Fail = api.LaunchBatch, api.FailAny
			if c.spec != nil {
				c.spec(spec)
			}
			b.must(Submit{Key: "k", Spec: spec, SpecHash: hashOf(spec), Partition: "main"})
			b.start(1)
			for _, n := range []string{"n2", "n1"} {
				if out := begin(b, api.StepAsk{StepComponent: api.StepComponent{Tasks: 1, NodeList: []string{n}}}); !out.Applied {
					t.Fatal(out.Refused)
				}
			}
			c.do(b)
			b.phase(1, "n1", api.PhaseStopped, exit(0, c.script))
			b.phase(1, "n2", api.PhaseStopped)
			v := b.w.Job(1).Verdict
			switch {
			case v == nil && c.state != "":
				t.Errorf("it runs again, want %s", c.state)
			case v != nil && (v.State != c.state || v.ExitCode != c.code || v.Text != c.text):
				t.Errorf("%s, code %d, %q", v.State, v.ExitCode, v.Text)
			}
		})
	}
}

// TestCardUnderAStep: a card whose node says that it is being stopped before it says what became of the card has ended the step that a
// task of that node has ended by itself; beside one that was only stopped it says nothing.
func TestCardUnderAStep(t *testing.T) {
	for name, c := range map[string]struct {
		over  bool // the step is, when the card is told of
		ends  []api.TaskEnd
		cause api.Cause
	}{
		"its task failed":                       {true, []api.TaskEnd{{Task: 1, Time: epoch0, ExitCode: 4}}, api.CauseNodeLost},
		"its task failed, the step is not over": {false, []api.TaskEnd{{Task: 1, Time: epoch0, ExitCode: 4}}, api.CauseNodeLost},
		"its task was stopped":                  {true, nil, api.CauseCrash},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			spec := specOf(2)
			spec.Launch, spec.GPUsPerRank = api.LaunchBatch, 1
			b.must(Submit{Key: "k", Spec: spec, SpecHash: hashOf(spec), Partition: "main"})
			b.must(Admit{Job: 1, Slots: []cluster.Slot{{Node: "n1", Cards: []string{"GPU-n1-0"}}, {Node: "n2", Cards: []string{"GPU-n2-0"}}}})
			b.ready(1)
			b.phase(1, "n1", api.PhaseRunning, api.RankActual{PID: 100})
			begin(b, api.StepAsk{})
			b.say("n2", api.MemberActual{MemberKey: memberKey(1, 1), Phase: api.PhaseRunning, Steps: []api.StepActual{{ExitCode: 4, Ends: c.ends, Over: true}}})
			if c.over {
				b.say("n1", api.MemberActual{MemberKey: memberKey(1, 1), Phase: api.PhaseRunning, Steps: []api.StepActual{{ExitCode: 9, Over: true,
					Ends: []api.TaskEnd{{Task: 0, Time: epoch0, ExitCode: 9}}}}})
			}
			b.phase(1, "n1", api.PhaseStopped, exit(0, 9))
			b.say("n2", api.MemberActual{MemberKey: memberKey(1, 1), Phase: api.PhaseRunning, Stopping: api.CauseCrash})
			b.must(NodeSample{Node: "n2", Cards: []api.CardSample{{UUID: "GPU-n2-0", Unhealthy: "fell off the bus"}}})
			b.phase(1, "n2", api.PhaseStopped)
			if row := b.w.Job(1); row.Used[api.CauseNodeLost] != map[bool]int{true: 1}[c.cause == api.CauseNodeLost] {
				t.Errorf("charged %v, %+v", row.Used, row.Verdict)
			}
		})
	}
}

// TestDrainEndsSteps: what ends the epoch ends its steps, and the next epoch counts anew.
func TestDrainEndsSteps(t *testing.T) {
	b := stepBench(t)
	begin(b, api.StepAsk{})
	b.must(Requeue{Job: 1})
	a := b.w.Desired("n2")
	if len(a[0].Steps) != 0 || a[0].Stop == nil {
		t.Errorf("a stopping member is to have %+v", a[0])
	}
	if out := begin(b, api.StepAsk{Overlap: true}); out.Refused == nil || out.Refused.Code != api.CodeConflict {
		t.Errorf("a step in a drain: %+v", out)
	}
	b.phase(1, "n1", api.PhaseStopped, exit(0, 143))
	b.phase(1, "n2", api.PhaseStopped)
	j := b.w.Job(1)
	if len(b.w.steps.ended) != 1 || b.w.steps.ended[0].State != api.JobPreempted || b.w.steps.ended[0].Cause != api.CauseRequeued || b.w.steps.ended[0].ExitCode != nil {
		t.Errorf("ended: %+v", b.w.steps.ended)
	}
	if len(j.Steps) != 0 || j.NextStep != 0 {
		t.Errorf("left: %+v, next %d", j.Steps, j.NextStep)
	}
	b.start(1)
	if out := b.step(StepBegin{Job: 1, Epoch: 1}); out.Refused == nil || out.Refused.Code != api.CodeStaleEpoch {
		t.Errorf("a step of the old epoch: %+v", out)
	}
}

// TestStepsNeverOverlap: whatever is begun and ends, no CPU and no card of a member is in two
// steps that do not share.
func TestStepsNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "nodes")
		cpus := make([]int, n)
		for i := range cpus {
			cpus[i] = rapid.IntRange(1, 8).Draw(t, "cpus")
		}
		all := roomsOf(cpus...)
		var live []Step
		for i := range rapid.IntRange(1, 30).Draw(t, "events") {
			if len(live) > 0 && rapid.Bool().Draw(t, "end") {
				k := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				live = slices.Delete(live, k, k+1)
				continue
			}
			a := asks(api.StepComponent{Tasks: rapid.IntRange(0, 10).Draw(t, "tasks"), CPUsPerTask: rapid.IntRange(0, 3).Draw(t, "c"), Exact: rapid.Bool().Draw(t, "exact"),
				GPUsPerTask: rapid.IntRange(0, 1).Draw(t, "g"), NoGPUs: rapid.Bool().Draw(t, "no"), TasksPerNode: rapid.IntRange(0, 3).Draw(t, "per")})
			if a.GPUsPerTask > 0 {
				a.NoGPUs = false
			}
			now := make([]room, n)
			for i := range all {
				now[i] = all[i].empty()
				for s := range live {
					for p := range live[s].Parts {
						if live[s].Parts[p].Member == i {
							now[i].take(&live[s].Parts[p])
						}
					}
				}
			}
			parts, err := layStep(&a, now)
			if err != nil {
				continue
			}
			live = append(live, Step{ID: i, Ask: a, Parts: parts})
			total := 0
			seen := map[int]bool{}
			for _, p := range parts {
				total += len(p.Tasks)
				for _, k := range p.Tasks {
					seen[k] = true
				}
			}
			if a.Tasks > 0 && total != a.Tasks || len(seen) != total {
				t.Fatalf("%+v: tasks %s", a, laid(parts))
			}
		}
		for i := range all {
			used, cards := 0, map[string]int{}
			for _, s := range live {
				for _, p := range s.Parts {
					if p.Member == i {
						used += p.CPUs
						for _, c := range p.Cards {
							cards[c]++
						}
					}
				}
			}
			for c, n := range cards {
				if n > 1 {
					t.Fatalf("card %s is in %d steps", c, n)
				}
			}
			if used > all[i].cpus {
				t.Fatalf("node %d: %d of %d CPUs", i, used, all[i].cpus)
			}
		}
	})
}

// TestStopOfAStep: one that runs once, and what is said of those that do not.
func TestStopOfAStep(t *testing.T) {
	b := stepBench(t)
	code := func(step int) api.Code { return api.CodeOf(b.step(StepStop{Job: 1, Step: step}).Refused) }
	if code(0) != api.CodeNotFound || code(-1) != api.CodeNotFound {
		t.Error("a step that never was")
	}
	begin(b, api.StepAsk{})
	b.must(StepStop{Job: 1, Step: 0})
	if out := b.step(StepStop{Job: 1, Step: 0}); out.Ignored != "already being ended" {
		t.Errorf("%+v", out)
	}
	b.stepOver(0)
	if got := code(0); got != api.CodeAlreadyEnded {
		t.Errorf("a step that has ended: %s", got)
	}
	if got := code(1); got != api.CodeNotFound {
		t.Errorf("the next step: %s", got)
	}
}

// TestEndsOfSteps: how a step ended by what its parts say, and by what ended it.
func TestEndsOfSteps(t *testing.T) {
	part := func(code int) StepPart { return StepPart{Known: true, ExitCode: code, Signal: code % 3} }
	unknown := StepPart{}
	stop := func(c api.Cause) *Job { return &Job{Past: &Past{Attempt: Attempt{Drain: &Drain{Cause: c}}}} }
	for _, c := range []struct {
		job    *Job
		step   Step
		state  api.JobState
		cause  api.Cause
		code   int // -1: not known
		signal int
		err    string
	}{
		{&Job{}, Step{Parts: []StepPart{part(0), part(0)}}, api.JobCompleted, "", 0, 0, ""},
		{&Job{}, Step{Parts: []StepPart{part(4), part(5), part(1)}}, api.JobFailed, "", 5, 2, ""},
		{&Job{}, Step{Parts: []StepPart{part(5), part(5)}}, api.JobFailed, "", 5, 2, ""},
		{&Job{}, Step{Parts: []StepPart{part(0), unknown}}, api.JobCancelled, api.CauseCancelled, -1, 0, ""},
		{&Job{}, Step{Parts: []StepPart{part(2), unknown}}, api.JobCancelled, api.CauseCancelled, 2, 2, ""},
		{&Job{}, Step{Stop: true, Parts: []StepPart{part(0)}}, api.JobCancelled, api.CauseCancelled, 0, 0, ""},
		{&Job{}, Step{Stop: true, Late: true, Parts: []StepPart{part(0)}}, api.JobTimeout, api.CauseTimeout, 0, 0, ""},
		{&Job{}, Step{Parts: []StepPart{{Known: true, ExitCode: 9, OOM: true}, part(0)}}, api.JobOutOfMemory, "", 9, 0, ""},
		{&Job{}, Step{Parts: []StepPart{part(0), {Known: true, ExitCode: 1, Text: "no such file"}, {Known: true, Text: "later"}}}, api.JobFailed, "", 1, 0, "n2: no such file"},
		{&Job{}, Step{Parts: []StepPart{{Known: true, Member: 9, Text: "nowhere"}}}, api.JobCompleted, "", 0, 0, ""},
		{stop(api.CausePreempted), Step{Parts: []StepPart{unknown}}, api.JobPreempted, api.CausePreempted, -1, 0, ""},
		{stop(api.CausePreempted), Step{Parts: []StepPart{part(2)}}, api.JobPreempted, api.CausePreempted, 2, 2, ""},
		{stop(api.CausePreempted), Step{Parts: []StepPart{part(0)}}, api.JobCompleted, "", 0, 0, ""},
		{stop(api.CauseCompleted), Step{Parts: []StepPart{part(2)}}, api.JobFailed, "", 2, 2, ""},
	} {
		c.job.Share()
		c.job = c.job.Copy()
		for i := range c.step.Parts {
			c.job.Members = append(c.job.Members, Member{Node: fmt.Sprint("n", i+1)})
			if c.step.Parts[i].Member == 0 {
				c.step.Parts[i].Member = i
			}
		}
		s := ShowStep(c.job, &c.step, epoch0)
		code := -1
		if s.ExitCode != nil {
			code = *s.ExitCode
		}
		if s.State != c.state || s.Cause != c.cause || code != c.code || s.Signal != c.signal || s.Error != c.err {
			t.Errorf("%s: %s %s, code %d, signal %d, %q", text(c.step), s.State, s.Cause, code, s.Signal, s.Error)
		}
	}
}

// TestImagesOfStepsAreBounded: of so many the digest is kept.
func TestImagesOfStepsAreBounded(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	e := b.w.jobs.byID[id]
	j := b.w.jobs.edit(e)
	j.StepImages = make([]StepImage, maxStepImages-1)
	for i, want := range []bool{true, false} {
		j.Steps = []Step{{Parts: make([]StepPart, 1)}}
		j.Steps[0].Ask.Container = &api.Container{Image: fmt.Sprint("torch:", i)}
		if got := b.w.steps.stepImage(e, 0, 0, &api.StepActual{Image: "sha256:1"}); got != want || len(e.job.StepImages) != maxStepImages {
			t.Errorf("image %d: kept %v, %d in all", i, got, len(e.job.StepImages))
		}
		j = e.job
	}
}

// TestDistributions: which tasks each node of a step has.
func TestDistributions(t *testing.T) {
	for how, want := range map[string]string{
		"": "[0 1 2] [3] [4 5]", "block": "[0 1 2] [3] [4 5]", "cyclic": "[0 3 5] [1] [2 4]", "plane=2": "[0 1 5] [2] [3 4]", "plane=9": "[0 1 2] [3] [4 5]",
		"plane=0": `distribution "plane=0": want plane=N`, "plane": `distribution "plane": want plane=N`, "spiral": `distribution "spiral": want block, cyclic, plane=N or arbitrary`,
	} {
		parts := make([]StepPart, 3)
		err := number(how, parts, []int{3, 1, 2})
		got := fmt.Sprint(parts[0].Tasks, parts[1].Tasks, parts[2].Tasks)
		if err != nil {
			got = err.Message
		}
		if got != want {
			t.Errorf("%s: %s, want %s", how, got, want)
		}
	}
}

// TestCardsOfAStepOnThreeNodes: none has a number of them below nought, and what is left over is refused.
func TestCardsOfAStepOnThreeNodes(t *testing.T) {
	for gpus, want := range map[int]string{1: "1 CPU and 1 GPUs in all asked, node n1 has 2 GPUs for the step", 3: "", 6: "", 7: "7 GPUs asked, its nodes have 6"} {
		a := asks(api.StepComponent{Tasks: 3, GPUs: gpus})
		parts, got := make([]StepPart, 3), ""
		if err := giveCards(&a, []room{{node: "n1", cardFree: []string{"a", "b"}}, {node: "n2", cardFree: []string{"c", "d"}}, {node: "n3", cardFree: []string{"e", "f"}}}, parts); err != nil {
			got = err.Message
		}
		if got != want || want == "" && (len(parts[0].Cards) != gpus/3 || len(parts[1].Cards) != gpus/3 || len(parts[2].Cards) != gpus/3) {
			t.Errorf("%d: %q, %+v", gpus, got, parts)
		}
	}
}
