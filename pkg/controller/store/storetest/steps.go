package storetest

import (
	"context"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// testSteps: ended steps are kept with the batch that ended them, in the order of their start,
// and those that run come back with their job.
func testSteps(t *testing.T, p Place) {
	s := mustOpen(t, p)
	j := NewJob(1, 2)
	j.Epoch, j.NextStep = 2, 12
	j.Steps = []gang.Step{{ID: 11, Key: "k", Secret: "s", Ask: api.StepAsk{StepComponent: api.StepComponent{Tasks: 2}, Hosts: []string{"h:1"}},
		Start: T0,
		Parts: []gang.StepPart{{Member: 1, Tasks: []int{0, 1}, CPUs: 2, Cards: []string{"GPU-a"}}}}}
	code := 3
	step := func(epoch int, id string) api.Step {
		return api.Step{JobID: 1, StepID: id, Epoch: epoch, Name: "x", State: api.JobFailed, Nodes: []string{"n1"}, Tasks: 2, StartTime: T0,
			EndTime: T0.Add(time.Second), ExitCode: &code}
	}
	ch := &gang.Changes{Jobs: []*gang.Job{j}, Steps: []api.Step{step(2, "10"), step(2, "9"), step(1, "0")}, NextID: 2, NextSeq: 1}
	mustCommit(t, s, ch)
	got, err := s.Steps(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "steps", got, []api.Step{step(1, "0"), step(2, "9"), step(2, "10")})
	if none, err := s.Steps(context.Background(), 2); err != nil || len(none) != 0 {
		t.Errorf("of another job: %v %v", none, err)
	}
	saved := mustLoad(t, s, T0)
	same(t, "running steps", saved.Jobs[0].Steps, j.Steps)
	mustVerify(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
