package engine

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// stepOf is a running batch job on n1 and a step of so many tasks in it.
func (r *rig) stepOf(tasks int) (k api.MemberKey, step int) {
	r.t.Helper()
	id, k := r.runningWith(1, func(s *api.Spec) { s.Launch = api.LaunchBatch })
	return k, r.beginStep(id, tasks)
}

func (r *rig) beginStep(id int64, tasks int) int {
	r.t.Helper()
	reply, err := r.BeginStep(r.t.Context(), r.view.job(id), &api.StepRequest{Key: fmt.Sprint(tasks, time.Now()), Ask: api.StepAsk{StepComponent: api.StepComponent{Tasks: tasks, Overcommit: true,
		NoGPUs: true}, Overlap: true, Hosts: []string{"h:1"}, Fingerprint: strings.Repeat("f", 64)}})
	if err != nil {
		r.t.Fatal(err)
	}
	return reply.StepID
}

func (r *rig) says(k api.MemberKey, tasks ...api.TaskNote) {
	r.NodeNotes("n1", []api.MemberNote{{MemberKey: k, Tasks: tasks}})
}

func note(step, task int, edit func(*api.TaskNote)) api.TaskNote {
	n := api.TaskNote{Step: step, RankNote: api.RankNote{Rank: task}}
	edit(&n)
	return n
}

func ready(n *api.TaskNote) { n.Ready = true }
func gone(n *api.TaskNote)  { n.Ended = true }

// A barrier is one of its step: the tasks of another with the same name do not count, and who has ended
// will not come.
func TestBarrierOfTasks(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	k, a := r.stepOf(2)
	b := r.beginStep(k.Job, 2)
	call := func(step, task int, edit func(*api.Call)) <-chan error {
		done := make(chan error, 1)
		c := &api.Call{MemberKey: k, Step: &step, Rank: task}
		edit(c)
		go func() {
			_, err := r.NodeCall(r.t.Context(), "n1", c, nil, nil)
			done <- err
		}()
		return done
	}
	come := func(step, task int) <-chan error {
		return call(step, task, func(c *api.Call) { c.Barrier = &api.Barrier{Name: "x"} })
	}
	waits := func(what string, c <-chan error) {
		t.Helper()
		select {
		case err := <-c:
			t.Errorf("%s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	a0, b1 := come(a, 0), come(b, 1) // two tasks, of two steps
	waits("released with a task of another step", a0)
	for _, c := range []<-chan error{come(a, 1), a0, come(b, 0), b1} {
		if err := <-c; err != nil {
			t.Error(err)
		}
	}
	a0 = come(a, 0)
	waits("released alone", a0)
	until := call(a, 0, func(c *api.Call) { c.Ready = &api.ReadyWait{} })
	r.says(k, note(a, 0, ready), note(b, 0, ready), note(b, 1, ready))
	waits("ready with a task of another step", until)
	r.says(k, note(a, 1, gone))
	if err := <-a0; err == nil || err.Error() != "barrier x: task 1 of step 1.0 has ended and will not come" {
		t.Errorf("barrier: %v", err)
	}
	if err := <-until; err == nil || err.Error() != "step 1.0 will not be ready: task 1 of step 1.0 has ended" {
		t.Errorf("ready: %v", err)
	}
	r.says(k, note(a, 1, ready))
	if err := <-call(a, 0, func(c *api.Call) { c.Ready = &api.ReadyWait{} }); err != nil {
		t.Errorf("all are ready: %v", err)
	}
}

// A node is believed only about tasks that run on it, and a task gets no other's checkpoint by mistake.
func TestCheckpointsOfTasks(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	r.node("n2", 4)
	k, step := r.stepOf(2)
	put := func(node string, step, task int, data string) error {
		_, err := r.NodeCall(t.Context(), node, &api.Call{MemberKey: k, Step: &step, Rank: task, Put: &api.CheckpointPut{}}, strings.NewReader(data), nil)
		return err
	}
	get := func(step, task int, ask api.CheckpointGet) string {
		var b bytes.Buffer
		if _, err := r.NodeCall(context.Background(), "n1", &api.Call{MemberKey: k, Step: &step, Rank: task, Get: &ask}, nil, &b); err != nil {
			return err.Error()
		}
		return b.String()
	}
	for _, c := range []struct {
		node       string
		step, task int
		code       api.Code
	}{{"n2", step, 0, api.CodePermission}, {"n1", step, 2, api.CodePermission}, {"n1", 7, 0, api.CodeAlreadyEnded}} {
		if err := put(c.node, c.step, c.task, "x"); api.CodeOf(err) != c.code {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := r.put(k, 0, "script"); err != nil {
		t.Fatal(err)
	}
	for task, data := range []string{"a", "b"} {
		if err := put("n1", step, task, data); err != nil {
			t.Fatal(err)
		}
	}
	for task, want := range []string{"a", "b"} {
		if got := get(step, task, api.CheckpointGet{Rank: task, Own: true}); got != want {
			t.Errorf("task %d: %q", task, got)
		}
	}
	if got := r.got(k, 0); got != "script" {
		t.Errorf("the script has %q", got)
	}
	wide := r.beginStep(k.Job, 3)
	if got := get(wide, 0, api.CheckpointGet{Rank: 0, Own: true}); got != "the newest checkpoints of job 1 are of 2 tasks, and step 1.1 has 3; take one by its number: gckpt get --rank=N" {
		t.Errorf("a step of another width: %q", got)
	}
	if got := get(wide, 0, api.CheckpointGet{Rank: 1}); got != "b" {
		t.Errorf("by number: %q", got)
	}
}

// TestAcknowledged: all that lives has saved, and who does; what is over saves nothing any more. Ranks beside a step's tasks count, a script's own rank does not.
func TestAcknowledged(t *testing.T) {
	saved, stopping, silent := api.RankNote{Saved: true}, api.RankNote{Stopping: true}, api.RankNote{}
	for name, tt := range map[string]struct {
		launch   api.Launch
		ranks    []api.RankNote
		exited   int // the last so many ranks
		tasks    []api.RankNote
		ended    int // the last so many tasks
		stopping int
		saved    bool
	}{
		"all have saved":             {api.LaunchRanks, []api.RankNote{saved, saved}, 0, nil, 0, 2, true},
		"one still saves":            {api.LaunchRanks, []api.RankNote{saved, stopping}, 0, nil, 0, 2, false},
		"the other is over":          {api.LaunchRanks, []api.RankNote{saved, silent}, 1, nil, 0, 1, true},
		"nobody has saved":           {api.LaunchRanks, []api.RankNote{silent, silent}, 2, nil, 0, 0, false},
		"tasks of a script":          {api.LaunchBatch, []api.RankNote{silent}, 0, []api.RankNote{saved, saved}, 0, 2, true},
		"a task of it is over":       {api.LaunchBatch, []api.RankNote{silent}, 0, []api.RankNote{saved, silent}, 1, 1, true},
		"tasks beside ranks":         {api.LaunchRanks, []api.RankNote{silent}, 0, []api.RankNote{saved}, 0, 1, false},
		"ranks and tasks have saved": {api.LaunchRanks, []api.RankNote{saved}, 0, []api.RankNote{saved}, 0, 2, true},
		"a script without steps":     {api.LaunchBatch, []api.RankNote{saved}, 0, nil, 0, 1, true},
	} {
		j := &gang.Job{ID: 7, Spec: &api.Spec{Launch: tt.launch}, Ranks: make([]gang.Rank, len(tt.ranks)), Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Epoch: 1}}}
		var s rankNotes
		x := s.at(j)
		for r, n := range tt.ranks {
			x.ranks[r] = rankNote{RankNote: n}
			j.Ranks[r].Exited = r >= len(tt.ranks)-tt.exited
		}
		part := gang.StepPart{}
		for i, n := range tt.tasks {
			part.Tasks = append(part.Tasks, i)
			x.tasks[api.TaskKey{Step: 3, Task: i}] = taskNote{rankNote: rankNote{RankNote: n}, ended: i >= len(tt.tasks)-tt.ended}
		}
		if len(tt.tasks) > 0 {
			j.Steps = []gang.Step{{ID: 3, Parts: []gang.StepPart{part}}}
		}
		if n, all := s.acknowledged(j); n != tt.stopping || all != tt.saved {
			t.Errorf("%s: %d, %t, want %d, %t", name, n, all, tt.stopping, tt.saved)
		}
	}
}

// TestNewsOfAWatch: the core is told of what a node sees once, and again when that changes.
func TestNewsOfAWatch(t *testing.T) {
	var s rankNotes
	s.at(&gang.Job{ID: 7, Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Epoch: 2}}})
	for i, c := range []struct {
		w    gang.Watched
		want bool
	}{
		{gang.Watched{Epoch: 2}, false}, // nothing is seen
		{gang.Watched{Epoch: 2, Silent: []int{1}}, true}, {gang.Watched{Epoch: 2, Silent: []int{1}}, false},
		{gang.Watched{Epoch: 2, Silent: []int{1}, Watch: api.WatchNote{Hung: true}}, true}, {gang.Watched{Epoch: 1}, false}, {gang.Watched{Epoch: 2}, true},
	} {
		c.w.Job, c.w.Node = 7, "n1"
		if got := s.news(&c.w); got != c.want {
			t.Errorf("%d: %+v is news: %t", i, c.w, got)
		}
	}
}

// TestReadinessOfTasks: while a script says nothing its widest step's tasks answer for it.
func TestReadinessOfTasks(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	k, step := r.stepOf(3)
	r.says(k, note(step, 0, ready), note(step, 2, ready))
	if got := r.show(r.view.job(k.Job), true).Ready; got == nil || got.Ranks != 2 || got.Size != 3 {
		t.Errorf("%+v", got)
	}
	r.NodeNotes("n1", []api.MemberNote{{MemberKey: k, Ranks: []api.RankNote{{Rank: 0, Ready: true}}}})
	if got := r.show(r.view.job(k.Job), true).Ready; got == nil || got.Ranks != 1 || got.Size != 1 {
		t.Errorf("the script itself: %+v", got)
	}
}

// TestStepsOfAJob: the script, the allocation and the steps that run, of an end nothing but what is over.
func TestStepsOfAJob(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	k, step := r.stepOf(2)
	steps, err := r.Steps(t.Context(), r.view.job(k.Job))
	var got []string
	for _, s := range steps {
		got = append(got, fmt.Sprint(s.StepID, " ", s.State, " ", s.Tasks, " ", s.ExitCode == nil))
	}
	if want := []string{"batch RUNNING 1 true", "extern RUNNING 1 true", fmt.Sprint(step) + " RUNNING 2 true"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, want %v, %v", got, want, err)
	}
	begin := &api.StepRequest{Key: "x", Ask: api.StepAsk{StepComponent: api.StepComponent{Tasks: 1000, NoGPUs: true}, Hosts: []string{"h:1"}, Fingerprint: strings.Repeat("f", 64)}}
	if reply, err := r.BeginStep(t.Context(), r.view.job(k.Job), begin); err == nil {
		t.Errorf("a step of 1000 tasks on one node: %+v", reply)
	}
	if a := r.allocation(r.view.job(k.Job)); !a.EndTime.IsZero() || a.StartTime.IsZero() {
		t.Errorf("without a limit it ends at %s", a.EndTime)
	}
}

// TestStepsOfAnAttemptThatIsOver: its allocation has ended well, however its script did.
func TestStepsOfAnAttemptThatIsOver(t *testing.T) {
	r := newRig(t, disk.Open(t))
	j := &gang.Job{ID: 7, Spec: &api.Spec{Launch: api.LaunchBatch}, Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Epoch: 1}}}
	row := &gang.EpochRow{Job: 7, Epoch: 1, Started: time.Unix(1e9, 0), Ended: time.Unix(1e9+1, 0), ExitCodes: []int{3}}
	steps := r.attemptSteps(j, row, &api.Attempt{Nodes: []string{"n1"}, Cause: api.CauseCrash}, []api.Step{{StepID: "0", Epoch: 1}, {StepID: "0", Epoch: 2}})
	if len(steps) != 3 || steps[0].StepID != api.StepBatch || *steps[0].ExitCode != 3 || steps[1].StepID != api.StepExtern || steps[1].State != api.JobCompleted || steps[1].ExitCode == nil || *steps[1].ExitCode != 0 {
		t.Errorf("%+v", steps)
	}
}

// TestNextEpochWakesWhoWaits: who waits for the ranks of an epoch that is over learns so.
func TestNextEpochWakesWhoWaits(t *testing.T) {
	var s rankNotes
	x := s.at(&gang.Job{ID: 7, Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Epoch: 1}}})
	more := make(chan struct{})
	x.more = more
	s.at(&gang.Job{ID: 7, Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Epoch: 1}}})
	select {
	case <-more:
		t.Fatal("woken in its own epoch")
	default:
	}
	s.at(&gang.Job{ID: 7, Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Epoch: 2}}})
	select {
	case <-more:
	default:
		t.Error("still waits")
	}
}

// TestBatchStep: the step of a script ends as its attempt did, in Slurm's words.
func TestBatchStep(t *testing.T) {
	started, ended := time.Unix(1e9, 0), time.Unix(1e9+60, 0)
	for _, c := range []struct {
		row  gang.EpochRow
		of   api.Attempt
		want string
	}{
		{gang.EpochRow{Started: started}, api.Attempt{}, "RUNNING <nil> 0 "},
		{gang.EpochRow{Ended: ended, ExitCodes: []int{0, 9}}, api.Attempt{Cause: api.CauseCompleted}, "COMPLETED 0 0 "},
		{gang.EpochRow{Ended: ended, ExitCodes: []int{3}}, api.Attempt{Cause: api.CauseCrash}, "FAILED 3 0 "},
		{gang.EpochRow{Ended: ended, ExitCodes: []int{0}, Signals: []int{9, 1}}, api.Attempt{Cause: api.CauseOOM}, "OUT_OF_MEMORY 0 9 " + string(api.CauseOOM)},
		{gang.EpochRow{Ended: ended, ExitCodes: []int{-1}}, api.Attempt{Cause: api.CauseNodeLost}, "NODE_FAIL <nil> 0 " + string(api.CauseNodeLost)},
		{gang.EpochRow{Ended: ended}, api.Attempt{Cause: api.CauseTimeout}, "CANCELLED <nil> 0 " + string(api.CauseTimeout)},
	} {
		s := batchStep(api.Step{State: api.JobRunning, Nodes: []string{"n1", "n2"}}, &c.row, &c.of)
		code := "<nil>"
		if s.ExitCode != nil {
			code = fmt.Sprint(*s.ExitCode)
		}
		if got := fmt.Sprint(s.State, " ", code, " ", s.Signal, " ", s.Cause); got != c.want || len(s.Nodes) != 1 {
			t.Errorf("%+v by %s: %s on %v, want %s", c.row, c.of.Cause, got, s.Nodes, c.want)
		}
	}
}

// TestImporting: a step is said to import its image on the nodes where it does, not where its part is over.
func TestImporting(t *testing.T) {
	j := &gang.Job{Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Members: []gang.Member{{Node: "a"}, {Node: "b"}, {Node: "c"}}}}}
	far := api.Import{Bytes: 1 << 30, Total: 2 << 30}
	s := &gang.Step{Parts: []gang.StepPart{{Member: 0, Importing: far}, {Member: 1, Importing: far, Over: true}, {Member: 2}, {Member: 2, Importing: api.Import{Bytes: 1 << 30, Unpacking: true}}}}
	if got, want := stepImporting(j, s), "importing its image: 1G of 2G on a, unpacking 1G on c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := stepImporting(j, &gang.Step{Parts: []gang.StepPart{{Member: 1}, {Member: 3, Importing: far}}}); got != "" { // of another epoch
		t.Errorf("%q", got)
	}
}

// TestStepImageNeedsANode: a step whose image no node of the allocation can run is refused, with what lets one.
func TestStepImageNeedsANode(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id, _ := r.running(1)
	j := r.view.job(id)
	for image, want := range map[string]string{
		"":                "",
		"::":              `"::" is no name of an image: want [HOST/]NAME[:TAG] or [HOST/]NAME@sha256:DIGEST`,
		"docker://alpine": fmt.Sprintf("n1 of job %d can't run the image docker://alpine: it needs a node with container-podman or container-enroot or container-apptainer; start the job with --constraint=container-podman", id),
	} {
		var c *api.Container
		if image != "" {
			c = &api.Container{Image: image}
		}
		err := r.checkImages(j, c)
		if got := errText(err); got != want {
			t.Errorf("%q: %s, want %s", image, got, want)
		}
	}
}
