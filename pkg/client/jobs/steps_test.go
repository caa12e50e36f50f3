package jobs

import (
	"fmt"
	"strings"
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

// TestStatusOfSteps: gqueue says behind the nodes of a step how far the import of its image is; squeue says what Slurm's does.
func TestStatusOfSteps(t *testing.T) {
	job := api.Job{JobID: 12, Partition: "main", State: api.JobRunning, Launch: api.LaunchBatch, Nodes: []string{"n1"},
		Steps: []api.Step{{StepID: "0", Nodes: []string{"n1"}, Status: "importing its image: 1M on n1"}}}
	for format, want := range map[string]string{FormatOwn: "NODELIST STATUS|n1 |n1 importing its image: 1M on n1", FormatSteps: "NODELIST|n1|n1"} {
		line := OwnStepFields.Letters(format, func(what string) { t.Error(what) })
		head := string(line.AppendHead(nil))
		got := head[strings.Index(head, "NODELIST"):]
		for _, s := range (&StepChoice{}).Rows([]api.Job{job}, nil, nil) {
			text := string(line.Append(nil, s))
			got += "|" + text[strings.Index(text, "n1"):]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
	if StepFields.Name("status") != nil || StepFields.Letter('r') != nil {
		t.Error("squeue of Slurm has no such field of steps")
	}
}

// TestDerivedExit: of several steps a code counts more than a signal, whatever number the shell would make of that.
func TestDerivedExit(t *testing.T) {
	exited := func(id string, code, signal int) api.Step {
		return api.Step{StepID: id, State: api.JobFailed, ExitCode: &code, Signal: signal}
	}
	killed, three := exited("0", 137, 9), exited("1", 3, 0)
	for want, steps := range map[string][]api.Step{
		"0 0":   {exited(api.StepBatch, 7, 0), exited(api.StepExtern, 8, 0), {StepID: "0", State: api.JobRunning}},
		"0 9":   {killed},
		"3 0":   {killed, three, exited("2", 2, 0)},
		"0 15":  {{StepID: "0", State: api.JobCancelled}},
		"0 125": {{StepID: "0", State: api.JobOutOfMemory}, killed},
	} {
		if got := fmt.Sprint(DerivedExit(steps)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
