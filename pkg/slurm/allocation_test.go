package slurm_test

import (
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/cli/fake"
	"gangd/pkg/lab/clitest"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sacct"
	"gangd/pkg/slurm/scancel"
	"gangd/pkg/slurm/scontrol"
	"gangd/pkg/slurm/squeue"
)

// TestJobsWithoutScripts: what srun and salloc hold nodes by is shown as no script, and none can be signalled.
func TestJobsWithoutScripts(t *testing.T) {
	for _, allocation := range []bool{true, false} {
		c := fake.Small()
		for i := range c.Jobs {
			if j := &c.Jobs[i]; j.JobID == 12 {
				j.Allocation, j.Launch, j.Command = allocation, api.LaunchBatch, "train.sh"
				j.Steps = []api.Step{{JobID: 12, StepID: "0", Name: "sleep", State: api.JobRunning, Nodes: j.Nodes, Tasks: 2, StartTime: j.StartTime}}
			}
		}
		clitest.Serve(t, c)
		for _, o := range []struct {
			run    slurm.Runner
			args   string
			script string // that is shown where there is one
			always string
		}{
			{squeue.Run, "-h -s -o %i", "12.batch", "12.0"},
			{scontrol.Run, "show step 12", "StepId=12.batch", "StepId=12.0"},
			{scontrol.Run, "show job 12", "StdOut=", "WorkDir="},
			{scontrol.Run, "show job 12", "Command=/", "Command="},
			{scontrol.Run, "show job 12", "BatchFlag=1", "JobId=12"},
			{squeue.Run, "--json -j 12", `"batch_flag": true`, `"job_id": 12`},
			{sacct.Sstat, "-n -P -a -o jobid 12", "12.batch", "12.0"},
		} {
			out, errs, status := call(t, o.run, strings.Fields(o.args)...)
			if status != 0 || !strings.Contains(out, o.always) || strings.Contains(out, o.script) == allocation {
				t.Errorf("allocation %v: %s: status %d\n%s%s", allocation, o.args, status, out, errs)
			}
		}
		if out, _, _ := call(t, sacct.Sstat, "-n", "-P", "-o", "jobid", "12"); out != "12.0\n" {
			t.Errorf("allocation %v: sstat of a job alone: %q", allocation, out)
		}
		out, errs, status := call(t, scancel.Run, "--batch", "-s", "USR1", "12")
		if want := "scancel: error: Kill job error on job id 12: Job script not specified\n"; allocation && (errs != want || status != 217) || !allocation && status != 0 {
			t.Errorf("allocation %v: scancel --batch: status %d\n%s%s", allocation, status, out, errs)
		}
	}
}
