package jobs

import (
	"fmt"
	"testing"

	"gangd/pkg/api"
)

// Steps are chosen by their own nodes, and batch stands behind the steps of its job.
func TestStepsAreChosenAndOrdered(t *testing.T) {
	job := api.Job{JobID: 12, Partition: "main", State: api.JobRunning, Launch: api.LaunchBatch, Nodes: []string{"n1", "n2"},
		Steps: []api.Step{{StepID: "10", Nodes: []string{"n2"}}, {StepID: "2", Nodes: []string{"n1", "n2"}}}}
	waits := api.Job{JobID: 13, State: api.JobPending}
	for _, c := range []struct {
		nodes, steps []string
		want         string
	}{
		{nil, nil, "[12.2 12.10 12.batch]"},
		{[]string{"n2"}, nil, "[12.2 12.10]"},
		{[]string{"n1"}, []string{"12.2", "12.10"}, "[12.2]"},
	} {
		keys, _ := StepFields.Keys(SortSteps)
		var got []string
		for _, s := range (&StepChoice{IDs: c.steps, Nodes: c.nodes}).Rows([]api.Job{job, waits}, nil, keys) {
			got = append(got, s.ID())
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("on %v, of %v: %v, want %s", c.nodes, c.steps, got, c.want)
		}
	}
}
