package slurm_test

import (
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sacct"
	"gangd/pkg/slurm/scancel"
	"gangd/pkg/slurm/scontrol"
	"gangd/pkg/slurm/squeue"
)

// TestJobsWithoutScripts: what srun and salloc hold nodes by is shown as no script, and none can be signalled.
func TestJobsWithoutScripts(t *testing.T) {
	for _, allocation := range []bool{true, false} {
		sitetest.Small(t, sitetest.At("11:00:00", func(s *sitetest.Site) {
			spec := sitetest.SmallSpec("hold", 2)
			spec.Launch, spec.Allocation, spec.RanksPerNode = api.LaunchBatch, allocation, 1
			id := s.Submit(sitetest.Ada, spec, nil)
			s.Run(id)
			s.Step(id, api.StepAsk{Name: "sleep", StepComponent: api.StepComponent{Tasks: 2}})
		})).Found()
		for _, o := range []struct {
			run    slurm.Runner
			args   string
			script string // that is shown where there is one
			always string
		}{
			{squeue.Run, "-h -s -o %i", "28.batch", "28.0"},
			{scontrol.Run, "show step 28", "StepId=28.batch", "StepId=28.0"},
			{scontrol.Run, "show job 28", "StdOut=", "WorkDir="},
			{scontrol.Run, "show job 28", "Command=/", "Command="},
			{scontrol.Run, "show job 28", "BatchFlag=1", "JobId=28"},
			{squeue.Run, "--json -j 28", `"batch_flag": true`, `"job_id": 28`},
			{sacct.Sstat, "-n -P -a -o jobid 28", "28.batch", "28.0"},
		} {
			out, errs, status := call(t, o.run, strings.Fields(o.args)...)
			if status != 0 || !strings.Contains(out, o.always) || strings.Contains(out, o.script) == allocation {
				t.Errorf("allocation %v: %s: status %d\n%s%s", allocation, o.args, status, out, errs)
			}
		}
		if out, _, _ := call(t, sacct.Sstat, "-n", "-P", "-o", "jobid", "28"); out != "28.0\n" {
			t.Errorf("allocation %v: sstat of a job alone: %q", allocation, out)
		}
		out, errs, status := call(t, scancel.Run, "--batch", "-s", "USR1", "28")
		if want := "scancel: error: Kill job error on job id 28: Job script not specified\n"; allocation && (errs != want || status != 217) || !allocation && status != 0 {
			t.Errorf("allocation %v: scancel --batch: status %d\n%s%s", allocation, status, out, errs)
		}
	}
}
