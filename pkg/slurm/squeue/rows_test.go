package squeue

import (
	"fmt"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/table/jobfield"
)

// A line for each partition of a job that waits in several, as Slurm 22.05 was seen to print them.
func TestEachPartition(t *testing.T) {
	rows := []*jobfield.Row{{Job: &api.Job{JobID: 1, Partition: "short"}}, {Job: &api.Job{JobID: 3, Partition: "big,short,main"}}}
	tiers := map[string]int{"short": 1, "main": 2, "big": 3}
	for _, c := range []struct {
		of    []string
		tiers map[string]int
		sort  *string
		want  string
	}{
		{nil, nil, nil, "[1 short 3 main 3 short 3 big]"},
		{[]string{"short"}, nil, nil, "[1 short 3 short]"}, // what is in none of them was left out before
		{[]string{"short", "big"}, nil, nil, "[1 short 3 short 3 big]"},
		{nil, tiers, nil, "[1 short 3 big 3 main 3 short]"},
		{nil, tiers, new("p,i"), "[1 short 3 short 3 main 3 big]"},
		{nil, tiers, new("-p"), "[1 short 3 big 3 main 3 short]"},
	} {
		q := &squeue{choices: choices{partitions: c.of, sort: c.sort}, tiers: c.tiers}
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
