package replay

import (
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/trace"
)

// Filled is how much of a cluster's cards was given out when so much had been asked for,
// both as a share of all.
type Filled struct {
	Asked     float64 `json:"asked"`
	Allocated float64 `json:"allocated"`
}

// Fill lets jobs arrive one by one on an empty cluster that none of them leaves; one that
// does not start at once is cancelled. It reads the allocation when what was asked for
// passes each of the marks.
func Fill(jobs []trace.Job, c *Cluster, p Planner, s api.Settings, unit func(*trace.Job) int64, capacity int64, marks []float64) ([]Filled,
	error) {
	t := &trace.Trace{Jobs: jobs}
	for i := range jobs {
		jobs[i].Submit = time.Duration(i) * time.Second
		jobs[i].Duration = 1 << 60
	}
	sim, err := New(t, c, p, Options{Settings: s})
	if err != nil {
		return nil, err
	}
	var out []Filled
	asked, placed := int64(0), int64(0)
	read := func() {
		out = append(out, Filled{float64(asked) / float64(capacity), float64(placed) / float64(capacity)})
	}
	for i := range jobs {
		sim.now = jobs[i].Submit
		sim.submitDue()
		sim.plan()
		if sim.err != nil {
			return nil, sim.err
		}
		asked += unit(&jobs[i])
		if sim.lives[i].began >= 0 {
			placed += unit(&jobs[i])
		} else if out := sim.step(gang.Cancel{Job: int64(i + 1), By: "gangsim"}); !out.Applied {
			return nil, fmt.Errorf("cancel of job %s: %s", jobs[i].ID, why(out))
		}
		for len(out) < len(marks) && float64(asked) >= marks[len(out)]*float64(capacity) {
			read()
		}
	}
	if len(out) < len(marks) {
		read()
	}
	return out, nil
}
