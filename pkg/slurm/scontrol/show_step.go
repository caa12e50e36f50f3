package scontrol

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/core/table/tres"
	"gangd/pkg/slurm"
)

// showStep shows the steps that run, each job's script as one.
func (c *call) showStep(_, id string) int {
	q := &api.JobQuery{States: []api.JobState{api.JobRunning, api.JobCompleting}}
	step := ""
	if id != "" {
		var job string
		job, step, _ = strings.Cut(id, ".")
		ref, ok := jobRef(job)
		if !ok {
			c.say("Invalid job id specified: %s", id)
			return 1
		}
		q.Refs = []api.JobRef{ref}
	}
	reply, err := c.client.Jobs(c.ctx, q)
	if err != nil && (id == "" || api.CodeOf(err) != api.CodeNotFound) {
		return c.failed("slurm_get_job_steps error", err)
	}
	shown := 0
	if err == nil {
		for i := range reply.Jobs {
			for _, s := range jobs.RunningSteps(&reply.Jobs[i]) {
				if step == "" || step == s.StepID {
					c.record(stepLines(&reply.Jobs[i], &s), false)
					shown++
				}
			}
		}
	}
	switch {
	case shown > 0:
		return 0
	case id == "":
		fmt.Fprintln(c.Out, "No job steps in the system")
		return 0
	}
	if err != nil {
		return c.failed("slurm_get_job_steps error", err)
	}
	fmt.Fprintf(c.Out, "Job step %s not found\n", id)
	return 1
}

func stepLines(j *api.Job, s *api.Step) []string {
	job := strconv.FormatInt(j.JobID, 10)
	if j.ArrayIndex != nil {
		job = fmt.Sprintf("%d_%d", j.ArrayJobID, *j.ArrayIndex)
	}
	amount, client := "(null)", "(null):0"
	dist := ""
	if s.StepID != api.StepBatch {
		n := int64(len(s.Nodes))
		amount = tres.Amount{CPUs: int64(s.CPUs), Nodes: n, GPUs: int64(s.GPUs), Memory: s.Memory * n}.InOrder()
		client = cmp.Or(s.Client, client)
		dist = " Dist=Block"
	}
	return []string{
		fmt.Sprintf("StepId=%s.%s UserId=%d StartTime=%s TimeLimit=%s", job, s.StepID, j.UID, slurm.Stamp(s.StartTime, "Unknown"),
			when.Limit(s.TimeLimit)),
		fmt.Sprintf("State=%s Partition=%s NodeList=%s", s.State, j.Partition, jobfield.OrNull(hostlist.Compress(s.Nodes))),
		fmt.Sprintf("Nodes=%d CPUs=%d Tasks=%d Name=%s Network=(null)", len(s.Nodes), s.CPUs, s.Tasks, jobfield.OrNull(s.Name)),
		"TRES=" + amount,
		"ResvPorts=" + jobfield.OrNull(s.Ports),
		"CPUFreqReq=Default" + dist,
		"SrunHost:Pid=" + client,
	}
}

// listpids shows what runs of a job, of one of its steps, or of all.
func (c *call) listpids(args []string) int {
	step := ""
	q := &api.JobQuery{States: []api.JobState{api.JobRunning, api.JobCompleting}}
	if len(args) > 0 {
		var job string
		job, step, _ = strings.Cut(args[0], ".")
		ref, ok := jobRef(job)
		if !ok {
			c.errorf("Invalid job id: %s", args[0])
			return 1
		}
		q.Refs = []api.JobRef{ref}
	}
	reply, err := c.client.Jobs(c.ctx, q)
	if err != nil {
		return c.failed("slurm_load_jobs error", err)
	}
	on := "(null)"
	if len(args) > 1 {
		on = args[1]
	}
	runs := func(s api.Step) bool { return s.StepID == step }
	if step != "" && !slices.ContainsFunc(reply.Jobs, func(j api.Job) bool { return slices.ContainsFunc(jobs.RunningSteps(&j), runs) }) {
		c.say("StepId=%s does not exist on node %s.", args[0], on)
		fmt.Fprintf(c.Out, pidRow, "PID", "JOBID", "STEPID", "LOCALID", "GLOBALID")
		return 1
	}
	fmt.Fprintf(c.Out, pidRow, "PID", "JOBID", "STEPID", "LOCALID", "GLOBALID")
	for i := range reply.Jobs {
		j := &reply.Jobs[i]
		local := map[string]int{}
		for k := range j.Ranks {
			r := &j.Ranks[k]
			if r.PID != 0 && (step == "" || step == api.StepBatch) && (len(args) < 2 || r.Node == args[1]) {
				fmt.Fprintf(c.Out, pidRow, strconv.Itoa(r.PID), strconv.FormatInt(j.JobID, 10), api.StepBatch, strconv.Itoa(local[r.Node]),
					strconv.Itoa(r.Rank))
			}
			local[r.Node]++
		}
	}
	return 0
}

// pidRow is a line of listpids.
const pidRow = "%-8s %-8s %-8s %-7s %-8s\n"

// pidinfo finds the job of a process.
func (c *call) pidinfo(args []string) int {
	pid, err := strconv.Atoi(args[0])
	if err != nil || pid <= 0 {
		c.say("Failed to locate job for requested pid")
		return 1
	}
	reply, err := c.client.Jobs(c.ctx, &api.JobQuery{States: []api.JobState{api.JobRunning, api.JobCompleting}})
	if err != nil {
		return c.failed("slurm_load_jobs error", err)
	}
	for i := range reply.Jobs {
		j := &reply.Jobs[i]
		if slices.ContainsFunc(j.Ranks, func(r api.Rank) bool { return r.PID == pid }) {
			end := jobfield.ExpectedEnd(&jobfield.Row{Job: j})
			fmt.Fprintf(c.Out, "Slurm JobId=%d ends at %s\n", j.JobID, slurm.Stamp(end, "Unknown"))
			if !end.IsZero() {
				fmt.Fprintf(c.Out, "Job remaining time is %d seconds\n", int64(max(end.Sub(c.now), 0)/time.Second))
			}
			return 0
		}
	}
	c.say("Failed to locate job for requested pid")
	return 1
}

// completing shows jobs that are being stopped.
func (c *call) completing([]string) int {
	reply, err := c.client.Jobs(c.ctx, &api.JobQuery{States: []api.JobState{api.JobCompleting}, NoRanks: true})
	if err != nil {
		return c.failed("slurm_load_jobs error", err)
	}
	for i := range reply.Jobs {
		j := &reply.Jobs[i]
		fmt.Fprintf(c.Out, "JobId=%d Nodes(COMPLETING)=%s \n", j.JobID, hostlist.Compress(j.Nodes))
	}
	return 0
}

// runningOn gives the jobs that run, or those of them on the node that is named.
func (c *call) runningOn(args []string) ([]api.Job, error) {
	reply, err := c.client.Jobs(c.ctx, &api.JobQuery{States: []api.JobState{api.JobRunning, api.JobCompleting}})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(reply.Jobs, func(j api.Job) bool { return len(args) > 0 && !slices.Contains(j.Nodes, args[0]) }), nil
}

// listjobs is "listjobs [NODE]".
func (c *call) listjobs(args []string) int {
	found, err := c.runningOn(args)
	if err != nil {
		return c.failed("slurm_load_jobs error", err)
	}
	fmt.Fprintln(c.Out, "JOBID")
	for i := range found {
		fmt.Fprintf(c.Out, "%-8d\n", found[i].JobID)
	}
	return 0
}

// liststeps is "liststeps [NODE]".
func (c *call) liststeps(args []string) int {
	found, err := c.runningOn(args)
	if err != nil {
		return c.failed("slurm_load_jobs error", err)
	}
	const row = "%-8v %-8s\n"
	fmt.Fprintf(c.Out, row, "JOBID", "STEPID")
	for i := range found {
		for _, s := range jobs.RunningSteps(&found[i]) {
			if len(args) == 0 || slices.Contains(s.Nodes, args[0]) {
				fmt.Fprintf(c.Out, row, found[i].JobID, s.StepID)
			}
		}
	}
	return 0
}

// getaddrs is "getaddrs NODES".
func (c *call) getaddrs(args []string) int {
	names, err := hostlist.Expand(args[0])
	if err != nil {
		c.errorf("hostlist_create error for %s", args[0])
		return 1
	}
	return c.addresses(names, "%[2]s: %[1]s\n")
}

func (c *call) gethost(args []string) int { return c.addresses(args, "%s %s\n") }

// addresses writes the address and the name of each node.
func (c *call) addresses(args []string, form string) int {
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return c.failed("slurm_load_nodes error", err)
	}
	status := 0
	for _, name := range args {
		i := slices.IndexFunc(reply.Nodes, func(n api.Node) bool { return n.Name == name })
		if i < 0 {
			c.errorf("%s is no node of this cluster", name)
			status = 1
			continue
		}
		fmt.Fprintf(c.Out, form, cmp.Or(reply.Nodes[i].Address, name), name)
	}
	return status
}
