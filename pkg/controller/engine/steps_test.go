package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// stepAsk is the least that a step may ask for.
func stepAsk(edit func(*api.StepAsk)) api.StepAsk {
	a := api.StepAsk{Hosts: []string{"h:1"}, Fingerprint: strings.Repeat("f", 64)}
	edit(&a)
	return a
}

// TestCheckStep: what no client of ours asks for is refused at the first value that is wrong, and the last that is right is taken.
func TestCheckStep(t *testing.T) {
	const negative, many = "a step's figures are not negative", "more than 65536 tasks, CPUs or nodes in one step"
	image := &api.Container{Image: "/i"}
	for i, c := range []struct {
		edit func(*api.StepAsk)
		want string
	}{
		{func(a *api.StepAsk) {}, ""},
		{func(a *api.StepAsk) { a.Hosts = nil }, "a step names 1 to 64 addresses of its client and the SHA-256 of its certificate"},
		{func(a *api.StepAsk) { a.Hosts = make([]string, 64) }, ""},
		{func(a *api.StepAsk) { a.Hosts = make([]string, 65) }, "a step names 1 to 64 addresses of its client and the SHA-256 of its certificate"},
		{func(a *api.StepAsk) { a.Fingerprint = a.Fingerprint[1:] }, "a step names 1 to 64 addresses of its client and the SHA-256 of its certificate"},
		{func(a *api.StepAsk) { a.Fingerprint += "f" }, "a step names 1 to 64 addresses of its client and the SHA-256 of its certificate"},
		{func(a *api.StepAsk) { a.GPUs = -1 }, "a negative number of GPUs"},
		{func(a *api.StepAsk) { a.GPUsPerTask = -1 }, "a negative number of GPUs"},
		{func(a *api.StepAsk) { a.GPUsPerNode = -1 }, "a negative number of GPUs"},
		{func(a *api.StepAsk) { a.GPUs = 9 }, ""},
		{func(a *api.StepAsk) { a.GPUs, a.GPUsPerTask = 1, 1 }, "give one of GPUs, GPUs per task, GPUs per node"},
		{func(a *api.StepAsk) { a.GPUs, a.GPUsPerNode = 1, 2 }, "give one of GPUs, GPUs per task, GPUs per node"},
		{func(a *api.StepAsk) { a.GPUsPerTask, a.GPUsPerNode = 1, 2 }, "give one of GPUs, GPUs per task, GPUs per node"},
		{func(a *api.StepAsk) { a.Tasks = -1 }, negative}, {func(a *api.StepAsk) { a.MinNodes = -1 }, negative}, {func(a *api.StepAsk) { a.MaxNodes = -1 }, negative},
		{func(a *api.StepAsk) { a.CPUsPerTask = -1 }, negative}, {func(a *api.StepAsk) { a.TasksPerNode = -1 }, negative}, {func(a *api.StepAsk) { a.MemoryPerNode = -1 }, negative},
		{func(a *api.StepAsk) { a.MemoryPerCPU = -1 }, negative}, {func(a *api.StepAsk) { a.TimeLimit = -1 }, negative},
		{func(a *api.StepAsk) { a.Tasks = api.MaxStepTasks }, ""}, {func(a *api.StepAsk) { a.Tasks = api.MaxStepTasks + 1 }, many},
		{func(a *api.StepAsk) { a.CPUsPerTask = api.MaxStepTasks + 1 }, many}, {func(a *api.StepAsk) { a.TasksPerNode = api.MaxStepTasks + 1 }, many},
		{func(a *api.StepAsk) { a.MinNodes = api.MaxStepTasks + 1 }, many},
		{func(a *api.StepAsk) { a.MinNodes, a.MaxNodes = 2, 2 }, ""}, {func(a *api.StepAsk) { a.MinNodes = 2 }, ""},
		{func(a *api.StepAsk) { a.MinNodes, a.MaxNodes = 2, 1 }, "at most 1 nodes is below at least 2"},
		{func(a *api.StepAsk) { a.Ports = api.PortEach }, ""}, {func(a *api.StepAsk) { a.Ports = -2 }, "-2 ports: want a number from 0, or -1 for one each"},
		{func(a *api.StepAsk) {
			a.Name, a.Command, a.Client = strings.Repeat("n", 1024), strings.Repeat("c", 4096), strings.Repeat("h", 512)
		}, ""},
		{func(a *api.StepAsk) { a.Name = strings.Repeat("n", 1025) }, "name, command or client of a step is too long"},
		{func(a *api.StepAsk) { a.Command = strings.Repeat("n", 4097) }, "name, command or client of a step is too long"},
		{func(a *api.StepAsk) { a.Client = strings.Repeat("n", 513) }, "name, command or client of a step is too long"},
		{func(a *api.StepAsk) { a.Dir = "x" }, ""},
		{func(a *api.StepAsk) { a.Container, a.Dir = image, "/x" }, ""},
		{func(a *api.StepAsk) { a.Container, a.Dir = image, "x" }, `dir "x": a step in a container says in which directory it runs`},
		{func(a *api.StepAsk) { a.Container, a.Dir = &api.Container{Image: "/i", WorkDir: "w"}, "/x" }, `container.work_dir "w" is not absolute`},
		{func(a *api.StepAsk) { a.More = []api.StepComponent{{Tasks: 1}} }, ""},
		{func(a *api.StepAsk) { a.More = []api.StepComponent{{Tasks: 1}, {Tasks: -1}} }, negative},
	} {
		a := stepAsk(c.edit)
		err := checkStep(&a)
		if got := errText(err); got != c.want || err != nil && api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("%d: got %s\nwant %s", i, got, c.want)
		}
	}
}

// TestStepFromItsBeginToItsEnd: what its client is told, who may ask for what of it, and that who waits for its end hears of it.
func TestStepFromItsBeginToItsEnd(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id, k := r.runningWith(2, func(s *api.Spec) {
		s.Launch, s.TimeLimit, s.WorkDir, s.SubmitHost, s.Account = api.LaunchBatch, time.Hour, "/home/ada", "login", "vision"
	})
	j := r.view.job(id)
	ask := &api.StepRequest{Key: "k", Ask: stepAsk(func(a *api.StepAsk) { a.Tasks, a.CPUsPerTask, a.Name = 1, 2, "train" })}
	for want, bad := range map[string]*api.StepRequest{
		"a step names 1 to 64 addresses of its client and the SHA-256 of its certificate": {},
		"epoch 9 of job 1 is over": {Epoch: 9, Ask: ask.Ask},
	} {
		if _, err := r.BeginStep(t.Context(), j, bad); errText(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	got, err := r.BeginStep(t.Context(), j, ask)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Secret) != 48 {
		t.Errorf("its secret is %q", got.Secret)
	}
	secret := got.Secret
	got.Secret = ""
	want := &api.StepReply{SchemaVersion: api.SchemaVersion, JobID: id, Epoch: 1, StepID: 0, Tasks: 1, CPUsPerTask: 2, Nodes: []api.StepNode{{Name: "n1", Address: "127.0.0.1", Tasks: []int{0}, CPUs: 2}},
		Allocation: api.Allocation{JobID: id, Name: "job", User: "ada", UID: 1000, GID: 1000, Account: "vision", Partition: "main", StartTime: j.Start, EndTime: j.Start.Add(time.Hour), WorkDir: "/home/ada", SubmitHost: "login", MasterPort: 7000,
			Grace: api.DefaultSettings().Grace, Nodes: []api.StepNode{{Name: "n1", Address: "127.0.0.1", Tasks: []int{0, 1}, CPUs: 2}}}}
	differs(t, "the reply", got, want)
	if again, err := r.BeginStep(t.Context(), j, ask); err != nil || again.StepID != 0 || again.Secret != secret {
		t.Errorf("the same once more: %+v, %v", again, err)
	}

	// A second has to wait, for as long as it says, or for the end of the first.
	second := &api.StepRequest{Key: "l", Ask: ask.Ask}
	if _, err := r.BeginStep(t.Context(), j, second); api.CodeOf(err) != api.CodeBusy {
		t.Errorf("at once: %v", err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	second.Wait = time.Hour
	if _, err := r.BeginStep(gone, j, second); err == nil || api.CodeOf(err) == api.CodeBusy {
		t.Errorf("who went away: %v", err)
	}
	j = r.view.job(id)
	attach, err := r.AttachStep(j, 0)
	if err != nil || attach.SchemaVersion != api.SchemaVersion || !slices.Equal(attach.Hosts, ask.Ask.Hosts) || attach.Fingerprint != ask.Ask.Fingerprint || attach.Secret != secret || attach.Step.Name != "train" || attach.Step.Partition != "main" {
		t.Errorf("%+v, %v", attach, err)
	}
	var told stepSignals
	sent, err := r.SignalStep(t.Context(), j, 0, "USR1", &told)
	if err != nil || *sent != (api.StepSignalReply{SchemaVersion: api.SchemaVersion, Processes: 3, Nodes: 1}) || len(told) != 1 ||
		told[0] != "n1 1.1 USR1 full step 0" {
		t.Errorf("%+v, %v, the node was told %q", sent, err, told)
	}
	for _, c := range []struct {
		step   int
		signal string
		want   string
	}{{0, "usr1", `signal "usr1" is no signal: want a name as TERM or USR1`}, {1, "USR1", "no step 1.1"}, {-1, "USR1", "no step 1.-1"}} {
		if _, err := r.SignalStep(t.Context(), j, c.step, c.signal, &told); errText(err) != c.want {
			t.Errorf("step %d, %s: %v, want %s", c.step, c.signal, err, c.want)
		}
	}
	if _, err := r.SignalStep(t.Context(), j, 0, "USR1", nodesSignalled{"n1": -1}); errText(err) != "no session with n1" {
		t.Errorf("a node that can't be reached: %v", err)
	}
	if _, err := r.StopStep(t.Context(), j, 0, api.CauseCrash, "ada"); errText(err) != "the cause of a step's end is timeout, or none: not crash" {
		t.Errorf("%v", err)
	}
	if _, err := r.StopStep(t.Context(), j, 5, "", "ada"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("a step that there is none of: %v", err)
	}

	begun, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := r.BeginStep(t.Context(), j, second)
		begun <- err
	}()
	go func() { ended <- r.WaitStep(t.Context(), j, 0) }()
	if err := r.WaitStep(gone, j, 0); err != errLeft {
		t.Errorf("who went away: %v", err)
	}
	if reply, err := r.StopStep(t.Context(), j, 0, api.CauseTimeout, "ada"); err != nil || *reply != (api.StepSignalReply{SchemaVersion: api.SchemaVersion}) {
		t.Errorf("%+v, %v", reply, err)
	}
	if s := gang.StepOf(r.view.job(id), 0); s == nil || !s.Stop || !s.Late || s.By != "ada" {
		t.Errorf("the step that is stopped: %+v", s)
	}
	select {
	case err := <-ended:
		t.Fatalf("it is over before its node said so: %v", err)
	default:
	}
	over := api.MemberActual{MemberKey: k, Phase: api.PhaseRunning, Ranks: []api.RankActual{{PID: 100}, {Rank: 1, PID: 101}}, Steps: []api.StepActual{{ID: 0, Over: true, ExitCode: 143}}}
	r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{over}})
	if err := <-ended; err != nil {
		t.Errorf("its end: %v", err)
	}
	if err := <-begun; err != nil {
		t.Errorf("the second, when there is room: %v", err)
	}
	j = r.view.job(id)
	if _, err := r.AttachStep(j, 0); errText(err) != "step 1.0 has already ended" {
		t.Errorf("one that has ended: %v", err)
	}
	if err := r.WaitStep(t.Context(), j, 0); err != nil {
		t.Errorf("one that has ended is waited for: %v", err)
	}
	steps, err := r.Steps(t.Context(), j)
	if names := stepNames(steps); err != nil || !slices.Equal(names, []string{"batch RUNNING", "extern RUNNING", "0 TIMEOUT", "1 RUNNING"}) {
		t.Errorf("%v, %v", names, err)
	}
	old := j.Copy()
	old.Epoch++
	if err := r.WaitStep(t.Context(), old, 1); err != nil {
		t.Errorf("of another epoch: %v", err)
	}
}

// TestStepWaiters: who waits for a job shares one channel, which its next change closes; who waits for any, that of any job.
func TestStepWaiters(t *testing.T) {
	var f stepWaiters
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	one, two, other, all := f.watch(1), f.watch(1), f.watch(2), f.watch(anyJob)
	if f.wake(nil); one != two || closed(one) || closed(all) {
		t.Error("woken by nothing, or each by itself")
	}
	f.wake([]*gang.Job{{ID: 1}, {ID: 3}})
	if !closed(one) || closed(other) || !closed(all) {
		t.Errorf("by a change of job 1: %t, of job 2: %t, of any: %t", closed(one), closed(other), closed(all))
	}
	if again := f.watch(1); closed(again) || len(f.on) != 2 {
		t.Errorf("%d are watched, and what was is woken: %t", len(f.on), closed(again))
	}
}

var errLeft = api.Errorf(api.CodeInvalid, "left")

func stepNames(steps []api.Step) (out []string) {
	for i := range steps {
		out = append(out, steps[i].StepID+" "+string(steps[i].State))
	}
	return out
}

// stepSignals notes what nodes were told; each has three processes.
type stepSignals []string

func (s *stepSignals) Signal(_ context.Context, node string, o api.SignalOrder) (int, error) {
	*s = append(*s, fmt.Sprintf("%s %d.%d %s %s step %d", node, o.Job, o.Epoch, o.Signal, o.Scope, *o.Step))
	return 3, nil
}

// TestAllocation: what a client is told of each node of a job, with its cards by their numbers there.
func TestAllocation(t *testing.T) {
	e := still()
	e.view.putNode(&gang.Node{Name: "n1", Res: &cluster.Node{Has: cluster.Amounts{cluster.CPUs: 64}}, Hello: api.Hello{Address: "10.0.0.1", Cards: []api.CardInfo{{UUID: "a"}, {UUID: "b", Index: 5}}}})
	j := waitingJob(func(j *gang.Job) {
		j.Spec = &api.Spec{Size: 3, CPUsPerRank: 2, Grace: time.Minute, Roles: []api.Role{{Count: 2, CPUsPerRank: 2, Component: &api.Component{}}, {Count: 1, CPUsPerRank: 3, Component: &api.Component{}}}}
		j.Members = []gang.Member{{Node: "n1", Ranks: []int{0, 1}, Port: 9}, {Node: "n2", Ranks: []int{2}}}
		j.Ranks = []gang.Rank{{Slot: cluster.Slot{Node: "n1", Cards: []string{"b", "a"}}}, {Slot: cluster.Slot{Node: "n1", Cards: []string{"b"}}}, {Slot: cluster.Slot{Node: "n2", Cards: []string{"c"}}}}
		j.TimeLimit = time.Hour
	})
	want := api.Allocation{JobID: 7, Name: "job", User: "ada", Partition: "main", MasterPort: 9, Grace: time.Minute, Groups: 2, Nodes: []api.StepNode{
		{Name: "n1", Address: "10.0.0.1", Tasks: []int{0, 1}, CPUs: 4, Cards: []api.StepCard{{UUID: "b", Index: 5}, {UUID: "a"}}},
		{Name: "n2", Index: 1, Group: 1, Tasks: []int{2}, CPUs: 3, Cards: []api.StepCard{{UUID: "c", Index: -1}}}}}
	differs(t, "an allocation", e.allocation(j), want)
	j.Start, j.Spec.Exclusive = noon, true
	want.StartTime, want.EndTime, want.Nodes[0].CPUs = noon, noon.Add(time.Hour), 64
	differs(t, "one by itself, that has begun", e.allocation(j), want)
	e.view.nodes["n1"].Res = nil
	want.Nodes[0].CPUs = 4
	differs(t, "on a node that nothing is known of", e.allocation(j), want)
	if i := cardIndex(e.view.node("n1"), "x"); i != -1 {
		t.Errorf("a card that a node has not has the number %d", i)
	}
}

// TestStepReplyOfWhatWasStopped: between the beginning of a step and the answer its job may end, or begin anew on fewer nodes.
func TestStepReplyOfWhatWasStopped(t *testing.T) {
	e := still()
	s := &gang.Step{ID: 3, Secret: "x", Ports: []int{5, 6}, Parts: []gang.StepPart{{Member: 1, Group: 2, Tasks: []int{0, 1}, CPUs: 4, Cards: []string{"b"}}}}
	for what, edit := range map[string]func(*gang.Job){"ended": func(*gang.Job) {}, "on one node": func(j *gang.Job) { j.Members = []gang.Member{{Node: "n1", Ranks: []int{0}}} }} {
		e.view.putJob(waitingJob(edit))
		if _, err := e.stepReply(7, s); errText(err) != "job 7 has been stopped meanwhile" || api.CodeOf(err) != api.CodeStaleEpoch {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := e.stepReply(8, s); errText(err) != "job 8 has been stopped meanwhile" {
		t.Errorf("%v", err)
	}
	e.view.putJob(waitingJob(func(j *gang.Job) {
		j.Epoch, j.Members = 4, []gang.Member{{Node: "n1", Ranks: []int{0}}, {Node: "n2", Ranks: []int{1}}}
		j.Ranks = []gang.Rank{{Slot: cluster.Slot{Node: "n1"}}, {Slot: cluster.Slot{Node: "n2", Cards: []string{"a", "b"}}}}
	}))
	got, err := e.stepReply(7, s)
	if err != nil || got.Epoch != 4 || got.StepID != 3 || got.Secret != "x" || got.Ports != "5-6" || got.Tasks != 2 || got.CPUsPerTask != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	differs(t, "its nodes", got.Nodes, []api.StepNode{{Name: "n2", Index: 1, Group: 2, Tasks: []int{0, 1}, CPUs: 4, Cards: []api.StepCard{{UUID: "b", Index: -1}}}})
}

// TestAttemptSteps: the script has what the allocation has on its first node, the allocation all of it, and steps come in the order of their numbers.
func TestAttemptSteps(t *testing.T) {
	e := still()
	rank := func(rss int64, cpu float64) *api.RankUse { return &api.RankUse{MaxRSS: rss, CPUSeconds: cpu} }
	slots := []cluster.Slot{{Node: "n1", Cards: []string{"a"}}, {Node: "n1"}, {Node: "n2", Cards: []string{"a", "b"}}}
	row := &gang.EpochRow{Job: 7, Epoch: 2, Slots: slots, Started: noon, ExitCodes: []int{0}}
	of := &api.Attempt{Nodes: []string{"n1", "n2"}, Measures: []api.Measure{{Ranks: rank(5, 1.5)}, {}, {Ranks: rank(4, 2)}}}
	job := func(edit func(*gang.Job)) *gang.Job {
		return waitingJob(func(j *gang.Job) {
			j.Spec = &api.Spec{Size: 3, CPUsPerRank: 2, Launch: api.LaunchBatch}
			j.Epoch, j.Steps, j.Members = 2, []gang.Step{{ID: 10, Parts: []gang.StepPart{{}}}, {ID: 9, Parts: []gang.StepPart{{}}}}, []gang.Member{{Node: "n1"}}
			edit(j)
		})
	}
	ended := []api.Step{{StepID: "8", Epoch: 1}, {StepID: "11", Epoch: 2}, {StepID: "2", Epoch: 2}}
	ids := func(steps []api.Step) (out []string) {
		for i := range steps {
			out = append(out, steps[i].StepID)
		}
		return out
	}
	got := e.attemptSteps(job(func(*gang.Job) {}), row, of, ended)
	if want := []string{api.StepBatch, api.StepExtern, "2", "9", "10", "11"}; !slices.Equal(ids(got), want) {
		t.Fatalf("%v, want %v", ids(got), want)
	}
	frame := api.Step{JobID: 7, Epoch: 2, User: "ada", Partition: "main", StartTime: noon, State: api.JobRunning}
	batch, extern := frame, frame
	batch.StepID, batch.Name, batch.Nodes, batch.Tasks, batch.Layout, batch.CPUs, batch.GPUs = api.StepBatch, api.StepBatch, []string{"n1"}, 1, "1", 4, 1
	extern.StepID, extern.Name, extern.Nodes, extern.Tasks, extern.Layout, extern.CPUs, extern.GPUs = api.StepExtern, api.StepExtern, []string{"n1", "n2"}, 2, "1(x2)", 6, 3
	differs(t, "the script", got[0], batch)
	differs(t, "the allocation", got[1], extern)

	// Of ranks there is no script, and what they used is the allocation's; what runs is of the newest epoch, and of none when the job is over.
	row.Ended, row.Epoch = noon.Add(time.Minute), 1
	got = e.attemptSteps(job(func(j *gang.Job) { j.Spec.Launch = api.LaunchRanks }), row, of, ended)
	extern.Epoch, extern.EndTime, extern.State, extern.ExitCode, extern.CPUTime, extern.MaxRSS = 1, row.Ended, api.JobCompleted, new(int), 3.5, 5
	if len(got) != 2 || got[1].StepID != "8" {
		t.Fatalf("%v", ids(got))
	}
	differs(t, "the allocation of ranks", got[0], extern)
	for what, j := range map[string]*gang.Job{"an allocation": job(func(j *gang.Job) { j.Spec.Allocation, j.Epoch = true, 3 }), "over": job(func(j *gang.Job) { j.Spec.Allocation, j.Steps, j.Verdict = true, nil, &gang.Verdict{} })} {
		if got := ids(e.attemptSteps(j, row, of, ended)); !slices.Equal(got, []string{api.StepExtern, "8"}) {
			t.Errorf("%s: %v", what, got)
		}
	}
	if got := e.attemptSteps(job(func(j *gang.Job) { j.Epoch = 3 }), row, &api.Attempt{}, nil); len(got) != 1 || got[0].StepID != api.StepExtern || got[0].Layout != "" || got[0].Tasks != 0 {
		t.Errorf("of an attempt without nodes: %+v", got)
	}
}

// TestStepIsToldWhatFailsItsJob: its client ends it with its first failing task where that ends the job.
func TestStepIsToldWhatFailsItsJob(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	for _, fail := range []string{"", api.FailAny} {
		id, _ := r.runningWith(1, func(s *api.Spec) { s.Launch, s.Fail = api.LaunchBatch, fail })
		got, err := r.BeginStep(t.Context(), r.view.job(id), &api.StepRequest{Key: "k" + fail, Ask: stepAsk(func(a *api.StepAsk) { a.Tasks = 1 })})
		if err != nil || got.Fail != fail {
			t.Errorf("%q: %+v, %v", fail, got, err)
		}
	}
}
