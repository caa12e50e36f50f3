package slurm

import (
	"os/user"
	"strconv"

	"gangd/pkg/api"
)

// Group is a group's name on this host, its number where it has none.
func Group(gid uint32) string {
	id := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}

// BatchStep is the script of a running job as the step that Slurm makes of it.
func BatchStep(j *api.Job) api.Step {
	s := api.Step{JobID: j.JobID, StepID: api.StepBatch, Name: api.StepBatch, State: api.JobRunning, Tasks: 1, User: j.User, Partition: j.Partition, StartTime: j.StartTime}
	if len(j.Nodes) > 0 {
		s.Nodes = j.Nodes[:1]
	}
	if j.Launch == api.LaunchRanks { // the script runs in every rank
		s.Nodes, s.Tasks = j.Nodes, j.Size
	}
	return s
}
