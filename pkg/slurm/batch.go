package slurm

import "gangd/pkg/api"

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
