package engine

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
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
