package squeue

import (
	"fmt"
	"slices"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/table/column"
	"gangd/pkg/table/jobfield"
)

// A line for each partition of a job that waits in several, as Slurm 22.05 was seen to print them.
func TestEachPartition(t *testing.T) {
	rows := []*jobfield.Row{{Job: &api.Job{JobID: 1, Partition: "short"}}, {Job: &api.Job{JobID: 3, Partition: "big,short,main"}}}
	for _, c := range []struct {
		of   []string
		want string
	}{
		{nil, "[1 short 3 main 3 short 3 big]"},
		{[]string{"short"}, "[1 short 3 short]"}, // what is in none of them was left out before
		{[]string{"short", "big"}, "[1 short 3 short 3 big]"},
	} {
		q := &squeue{choices: choices{partitions: c.of}}
		var got []string
		for _, r := range q.eachPartition(rows) {
			got = append(got, fmt.Sprint(r.JobID, " ", r.Partition))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("of %v: %v, want %s", c.of, got, c.want)
		}
	}
	if rows[1].Partition != "big,short,main" {
		t.Error("the job itself was changed")
	}
}

// Steps are chosen by their own nodes, and batch stands behind the steps of its job.
func TestStepsAreChosenAndOrdered(t *testing.T) {
	row := func(id string, nodes ...string) *stepRow {
		return &stepRow{&jobfield.Row{Job: &api.Job{JobID: 12, Partition: "main"}}, api.Step{StepID: id, Nodes: nodes}}
	}
	all := []*stepRow{row("batch", "n1"), row("10", "n2"), row("2", "n1", "n2")}
	for _, c := range []struct {
		nodes, steps []string
		want         string
	}{
		{nil, nil, "[12.2 12.10 12.batch]"},
		{[]string{"n2"}, nil, "[12.2 12.10]"},
		{[]string{"n1"}, []string{"12.2", "12.10"}, "[12.2]"},
	} {
		q := &squeue{choices: choices{steps: c.steps}, onNodes: c.nodes}
		kept := slices.DeleteFunc(slices.Clone(all), func(s *stepRow) bool { return !q.wantsStep(s) })
		keys, _ := stepFields.Keys("P,i")
		column.Sort(kept, keys)
		var got []string
		for _, s := range kept {
			got = append(got, s.id())
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("on %v, of %v: %v, want %s", c.nodes, c.steps, got, c.want)
		}
	}
}
