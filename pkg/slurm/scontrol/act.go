package scontrol

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
)

// jobsIn cuts the job list of a command: JobId=1,2 3 or Name=foo.
func jobsIn(args []string) (jobs []string, names []string) {
	for _, a := range args {
		key, value, given := strings.Cut(a, "=")
		switch {
		case given && cmdline.Short(key, "name", 1), given && cmdline.Short(key, "jobname", 4):
			names = append(names, strings.Split(value, ",")...)
			continue
		case given && cmdline.Short(key, "jobid", 3):
			a = value
		}
		jobs = append(jobs, cmdline.SplitIDs(a)...)
	}
	return jobs, names
}

// An operator's hold is one that only operators release, also of a job of his own; uhold is
// the owner's, whoever says it.
func (c *call) hold(args []string) int {
	return c.holdOrRelease("hold", api.ActionRequest{As: api.HoldAdmin}, args)
}

func (c *call) uhold(args []string) int {
	return c.holdOrRelease("hold", api.ActionRequest{As: api.HoldUser}, args)
}

func (c *call) release(args []string) int {
	return c.holdOrRelease("release", api.ActionRequest{}, args)
}

func (c *call) holdOrRelease(action string, how api.ActionRequest, args []string) int {
	jobs, names := jobsIn(args)
	status := 0
	for _, j := range jobs {
		if err := c.actOn(action, j, how); err != nil {
			status = 1
			c.saySuspended(j, err)
		}
	}
	if len(names) > 0 {
		// A name that nothing has is no error, as in Slurm.
		how.JobQuery = api.JobQuery{Names: names}
		if _, err := c.client.Act(c.ctx, action, &how); err != nil {
			return c.failed("slurm_suspend error", err)
		}
		over, err := c.client.Jobs(c.ctx, &api.JobQuery{Names: names, All: true, NoRanks: true})
		if err != nil {
			return c.failed("slurm_suspend error", err)
		}
		for i := range over.Jobs {
			if over.Jobs[i].State.Ended() {
				status = 1
				c.say("%s for job %s", slurmErrors[errFinished], jobfield.IDText(&over.Jobs[i]))
			}
		}
		if status != 0 {
			c.say("slurm_suspend error: %s", slurmErrors[errFinished])
		}
	}
	return status
}

// saySuspended says what became of hold and release; Slurm's scontrol calls both suspend.
func (c *call) saySuspended(job string, err error) {
	if !slurms(err) {
		c.errorf("%v", err)
		return
	}
	text := words(err)
	if api.ReasonOf(err) == api.ReasonOwner {
		text = notOwner
	}
	if strings.Contains(job, "_") {
		c.say("%s: %s", job, text)
		return
	}
	c.say("%s for job %s\nslurm_suspend error: %s", text, job, text)
}

// notOwner is what Slurm says to who may not touch a job, a node or a partition at all.
const notOwner = "Invalid user id"

// oneComponent refuses to do something to one component of a heterogeneous job: all of them are one gang.
func oneComponent(job string) error {
	if _, n := slurm.CutComponent(job); n >= 0 {
		return api.Errorf(api.CodeConflict, "%s: %s", job, slurm.NotOneComponent).About(api.ReasonComponent, job)
	}
	return nil
}

// actOn does one thing to one job; an array means all of it.
func (c *call) actOn(action, job string, how api.ActionRequest) error {
	if err := oneComponent(job); err != nil {
		return err
	}
	refs, ok := jobRefs(job)
	if !ok {
		return api.Errorf(api.CodeNotFound, "no job %s", job)
	}
	how.JobQuery = api.JobQuery{Refs: refs}
	reply, err := c.client.Act(c.ctx, action, &how)
	return firstError(reply, err)
}

// firstError is the error of the first job that had one, where no job had none.
func firstError(reply *api.CancelReply, err error) error {
	if err != nil {
		return err
	}
	var first *api.Error
	for i := range reply.Results {
		e := reply.Results[i].Error
		if e == nil {
			return nil // of an array some elements may be over
		}
		if first == nil {
			first = e
		}
	}
	if first == nil {
		return nil
	}
	return first
}

// The lead of a notice is the limit's and preemption's, as in Slurm. A hold its owner may release, whoever did it.
func (c *call) requeue(args []string) int {
	return c.requeues(args, api.ActionRequest{Now: true, Ended: true})
}

func (c *call) requeuehold(args []string) int {
	return c.requeues(args, api.ActionRequest{Now: true, Ended: true, Hold: true, As: api.HoldUser})
}

func (c *call) requeues(args []string, how api.ActionRequest) int {
	status := 0
	jobs, _ := jobsIn(args)
	for _, j := range jobs {
		key, value, given := strings.Cut(j, "=")
		switch {
		case cmdline.Short(j, "incomplete", 1):
			how.Ended = false
			continue
		case given && cmdline.Short(key, "state", 1):
			if !how.Hold || !cmdline.Short(value, "specialexit", 1) {
				c.say("Invalid state %s: only requeuehold has one, SpecialExit", value)
				return 1
			}
			how.As = api.HoldSpecial
			continue
		}
		if err := c.requeueOne(j, how); err != nil {
			c.sayUpdated(j, err)
			status = 1
		}
	}
	return status
}

// requeueOne queues one job or all of an array again, also what has ended, unless only what is incomplete is
// meant.
func (c *call) requeueOne(job string, how api.ActionRequest) error {
	ref, ok := jobRef(job)
	if !ok {
		return api.Errorf(api.CodeNotFound, "no job %s", job)
	}
	reply, err := c.client.Jobs(c.ctx, &api.JobQuery{Refs: []api.JobRef{ref}, All: true, NoRanks: true})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(reply.Jobs, func(j api.Job) bool { return j.State != api.JobPending }) {
		return &inSlurmsWords{slurmErrors[errPending]}
	}
	err = c.actOn("requeue", job, how)
	if api.CodeOf(err) == api.CodeAlreadyEnded && how.Ended { // it has left the controller's memory
		return &inSlurmsWords{fmt.Sprintf("%s (a new run is a new job: gctl rerun %s)", words(err), job)}
	}
	return err
}

// notify is "notify JOB MESSAGE...".
func (c *call) notify(args []string) int {
	ref, ok := jobRef(args[0])
	if !ok {
		c.say("job notify failure: %s", slurmErrors[errJob])
		return 1
	}
	text := strings.Join(args[1:], " ")
	err := firstError(c.client.Update(c.ctx, &api.UpdateRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{ref}}, Message: &text}))
	if err != nil {
		return c.failed("job notify failure", err)
	}
	return 0
}

// top is "top JOB,...": in front of what else waits of their user, in this order.
func (c *call) top(args []string) int {
	words, _ := jobsIn(args)
	reply, err := c.client.Jobs(c.ctx, &api.JobQuery{States: []api.JobState{api.JobPending}, NoRanks: true})
	if err != nil {
		return c.failed("slurm_top_job error", err)
	}
	var refs []api.JobRef
	var highest int64
	for _, w := range words {
		ref, ok := jobRef(w)
		i := slices.IndexFunc(reply.Jobs, func(j api.Job) bool { return ok && (j.JobID == ref.ID || j.ArrayJobID == ref.ID) })
		if i < 0 {
			c.say("slurm_top_job error: %s", slurmErrors[errJob])
			return 1
		}
		for k := range reply.Jobs {
			if j := &reply.Jobs[k]; j.User == reply.Jobs[i].User {
				highest = max(highest, j.Priority)
			}
		}
		refs = append(refs, ref)
	}
	for i, ref := range refs {
		priority := highest + int64(len(refs)-i)
		if err := firstError(c.client.Update(c.ctx, &api.UpdateRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{ref}},
			Priority: &priority})); err != nil {
			return c.failed("slurm_top_job error", err)
		}
	}
	return 0
}

// write is "write batch_script JOB [FILE]".
func (c *call) write(args []string) int {
	switch {
	case cmdline.Short(args[0], "batch_script", 1):
		return c.writeScript(args[1:])
	case cmdline.Short(args[0], "config", 1):
		c.errorf("write config is refused: the configuration is gangd's own, gangd.toml(5)")
		return 1
	}
	c.say("invalid write argument:%s", args[0])
	return 1
}

// writeScript ends with 0 whatever happens, as Slurm's does.
func (c *call) writeScript(args []string) int {
	if len(args) == 0 {
		c.say("too few arguments for keyword:write")
		return 1
	}
	if len(args) > 2 {
		c.say("too many arguments for keyword:write")
		return 1
	}
	ref, ok := jobRef(args[0])
	if !ok {
		c.say("job script retrieval failed: %s", slurmErrors[errJob])
		return 0
	}
	text, err := c.client.Script(c.ctx, ref)
	if err != nil {
		c.say("job script retrieval failed: %s", words(err))
		return 0
	}
	file := fmt.Sprintf("slurm-%s.sh", args[0])
	if len(args) > 1 {
		file = args[1]
	}
	if file == "-" {
		_, err := c.Out.Write(text)
		if err != nil {
			return 1
		}
		return 0
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		c.say("failed to open file `%s`: %s", file, reasonOf(err))
		return 0
	}
	fmt.Fprintf(c.Out, "batch script for job %s written to %s\n", args[0], file)
	return 0
}

// waitJob waits until a job has its nodes.
func (c *call) waitJob(args []string) int {
	ref, ok := jobRef(args[0])
	if !ok {
		c.errorf("Invalid job_id %s", args[0])
		return 1
	}
	for {
		after, state, err := c.stateNow(ref)
		switch {
		case err != nil:
			return c.failed("slurm_job_node_ready", err)
		case state.Ended():
			c.say("scontrol: Job %s no longer running", args[0])
			return 1
		case state == api.JobRunning, state == api.JobCompleting:
			return 0
		}
		if err := c.nextEvent(ref, after); err != nil {
			return c.failed("slurm_job_node_ready", err)
		}
	}
}
