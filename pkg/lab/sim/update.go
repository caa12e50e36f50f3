package sim

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// updates is how many things a person can change of a job.
const updates = 9

// update is what a person changes of a job: N says which, For with which time.
func (r *run) update(f *Fault, id int64) gang.Update {
	u := gang.Update{Job: id, By: "ada"}
	at := r.instant().Wall.Add(f.For)
	switch f.N % updates {
	case 0:
		u.TimeLimit = &f.For
	case 1:
		u.TimeLimit = new(time.Duration)
	case 2:
		u.Deadline = &at
	case 3:
		u.Deadline = new(time.Time)
	case 4:
		u.Priority = new(int64(f.For.Milliseconds() % 7))
	case 5:
		u.Begin = &at
	case 6:
		u.Dependency = &api.Dependency{}
	case 7:
		u.Dependency = &api.Dependency{On: []api.Condition{{Kind: api.AfterAny, Job: max(1, id-1)}}}
	case 8:
		u.ArrayLimit = new(int(f.For.Milliseconds() % 4))
	}
	return u
}
