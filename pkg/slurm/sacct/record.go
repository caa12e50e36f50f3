package sacct

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/people"
)

// record is one line of sacct.
type record struct {
	job     *api.Job
	attempt *api.Attempt // nil: it never began, or waits
	step    *api.Step    // nil: the job itself
	last    bool         // of the job's records the newest
	folded  []int        // indices of the array's elements that one line stands for
	now     time.Time
	view    view
}

// view is how times and sizes are shown.
type view struct {
	units     byte // 0: as Slurm chooses
	plain     bool // --noconvert
	truncate  bool // --truncate
	from, end time.Time
}

// recordsOf are the lines of a job, oldest first.
func recordsOf(d *api.JobDetail, now time.Time) []*record {
	j := &d.Job
	var out []*record
	for i := range j.Components {
		out = append(out, recordsOf(partOf(d, i), now)...)
	}
	if len(out) > 0 {
		return out
	}
	for i := range d.Attempts {
		a := &d.Attempts[i]
		out = append(out, &record{job: j, attempt: a, now: now})
		for k := range a.Steps {
			out = append(out, &record{job: j, attempt: a, step: &a.Steps[k], now: now})
		}
	}
	waits := j.State == api.JobPending || j.State == api.JobReserved
	if waits || len(d.Attempts) == 0 {
		out = append(out, &record{job: j, now: now})
	}
	newest := out[len(out)-1].attempt
	for _, r := range out {
		r.last = r.attempt == newest
	}
	return out
}

// partOf is a heterogeneous job as if its component i were all of it: of an attempt its nodes, of a step the
// tasks on them, and of all steps only those that ran there.
func partOf(d *api.JobDetail, i int) *api.JobDetail {
	out := &api.JobDetail{Job: d.Job.Part(i)}
	for k := range d.Attempts {
		a := d.Attempts[k]
		a.Nodes = componentNodes(&d.Job, a.Nodes, i)
		a.Steps = nil
		for _, s := range d.Attempts[k].Steps {
			part, ran := partOfStep(s, a.Nodes)
			if s.StepID == api.StepExtern {
				part.CPUs = out.Job.Size * max(1, out.Job.CPUsPerRank)
			}
			if ran {
				a.Steps = append(a.Steps, part)
			}
		}
		out.Attempts = append(out.Attempts, a)
	}
	return out
}

// componentNodes are those of a component among the nodes of an attempt, which stand in the order of the components.
// Of an earlier attempt only their number is known.
func componentNodes(j *api.Job, nodes []string, i int) []string {
	var own []string
	for _, n := range j.Components[i].Nodes {
		if slices.Contains(nodes, n) {
			own = append(own, n)
		}
	}
	if len(own) > 0 {
		return own
	}
	first := 0
	for k := range i {
		first += j.Components[k].MinNodes
	}
	end := first + j.Components[i].MinNodes
	if i == len(j.Components)-1 {
		end = len(nodes)
	}
	return nodes[min(first, len(nodes)):min(end, len(nodes))]
}

func partOfStep(s api.Step, nodes []string) (part api.Step, ran bool) {
	tasks, n, all := api.FromPerNode(s.Layout), 0, s.Nodes
	s.Nodes = nil
	for i, name := range all {
		if slices.Contains(nodes, name) {
			if s.Nodes = append(s.Nodes, name); i < len(tasks) {
				n += tasks[i]
			}
		}
	}
	if s.Tasks > 0 && n > 0 && len(s.Nodes) < len(all) { // CPUs are told of the whole step alone: by its tasks
		s.CPUs, s.GPUs, s.Tasks = s.CPUs*n/s.Tasks, s.GPUs*len(s.Nodes)/len(all), n
	}
	return s, len(s.Nodes) > 0
}

// id is how the record is called: 12, 12_3, 12_[0-3%2], 12.batch.
func (r *record) id() string {
	j := r.job
	id := strconv.FormatInt(j.JobID, 10)
	switch {
	case r.folded != nil:
		most, _ := slurm.IndexLength()
		id = fmt.Sprintf("%d_[%s%s]", j.ArrayJobID, jobfield.CutRanges(jobfield.IndexRanges(r.folded), most), limit(j.ArrayLimit))
	case j.ArrayIndex != nil || j.Component != nil:
		id = jobfield.IDText(j)
	}
	return id + r.stepSuffix()
}

func (r *record) raw() string { return strconv.FormatInt(r.job.ID(), 10) + r.stepSuffix() }

func (r *record) stepSuffix() string {
	if r.step == nil {
		return ""
	}
	return "." + r.step.StepID
}

func limit(n int) string {
	if n == 0 {
		return ""
	}
	return "%" + strconv.Itoa(n)
}

// isJob: the line of the job itself.
func (r *record) isJob() bool { return r.step == nil }

// waits: it has not begun and may.
func (r *record) waits() bool { return r.attempt == nil && !r.job.State.Ended() }

func (r *record) start() time.Time {
	switch {
	case r.step != nil:
		return r.clip(r.step.StartTime)
	case r.attempt != nil:
		return r.clip(r.attempt.StartTime)
	}
	return time.Time{}
}

func (r *record) endTime() time.Time {
	switch {
	case r.step != nil:
		return r.clip(r.step.EndTime)
	case r.attempt != nil:
		return r.clip(r.attempt.EndTime)
	case r.job.State.Ended() && r.job.EndTime.IsZero():
		return r.clip(r.job.SubmitTime)
	}
	return r.clip(r.job.EndTime)
}

// clip keeps a time within the asked window, with --truncate.
func (r *record) clip(t time.Time) time.Time {
	switch {
	case !r.view.truncate || t.IsZero():
	case !r.view.from.IsZero() && t.Before(r.view.from):
		return r.view.from
	case !r.view.end.IsZero() && t.After(r.view.end):
		return r.view.end
	}
	return t
}

func (r *record) elapsed() time.Duration {
	from, to := r.start(), r.endTime()
	if from.IsZero() {
		return 0
	}
	if to.IsZero() {
		to = r.now
	}
	// Slurm counts in whole seconds of both ends.
	return time.Duration(to.Unix()-from.Unix()) * time.Second
}

// state is what the State column says.
func (r *record) state() string {
	s := r.plainState()
	if s == string(api.JobCancelled) && r.isJob() {
		if uid, ok := r.cancelledBy(); ok {
			s += " by " + strconv.FormatUint(uint64(uid), 10)
		}
	}
	return s
}

func (r *record) plainState() string {
	switch {
	case r.step != nil && r.step.State == api.JobFailed && r.step.Signal != 0:
		return string(api.JobCancelled) // Slurm's word for a step that a signal ended
	case r.step != nil:
		return string(r.step.State)
	case !r.last:
		return pastState(r.attempt)
	}
	switch s := r.job.State; s {
	case api.JobReserved:
		return string(api.JobPending)
	case api.JobCompleting:
		return string(api.JobRunning)
	default:
		return string(s)
	}
}

// pastState is the state of an attempt after which the job waited again.
func pastState(a *api.Attempt) string {
	switch a.Cause {
	case api.CausePreempted:
		return string(api.JobPreempted)
	case api.CauseNodeLost:
		return string(api.JobNodeFail)
	case api.CauseOOM:
		return string(api.JobOutOfMemory)
	case api.CauseTimeout:
		return string(api.JobTimeout)
	case api.CauseRequeued, api.CauseNone:
		return "REQUEUED"
	}
	return string(api.JobFailed)
}

// why it ended, in words; empty where it completed or runs.
func (r *record) why() string {
	if r.step != nil {
		return r.step.Text
	}
	if r.last && r.job.Verdict != "" || r.attempt == nil {
		return r.job.Verdict
	}
	return r.attempt.Text
}

// cancelledBy is the number of the user who cancelled.
func (r *record) cancelledBy() (uint32, bool) {
	name := r.job.CancelledBy
	if name == "" || name == r.job.User {
		return r.job.UID, name != ""
	}
	u, err := people.Here.Find(context.Background(), name)
	return u.UID, err == nil
}

// exit is CODE:SIGNAL.
func (r *record) exit() string {
	code, signal := r.exitOf()
	return fmt.Sprintf("%d:%d", code, signal)
}

func (r *record) exitOf() (code, signal int) {
	if r.step != nil {
		return jobs.StepExit(r.step)
	}
	switch state := r.plainState(); {
	case state == string(api.JobOutOfMemory):
		return 0, jobs.SignalOOM
	case state != string(api.JobFailed):
		return 0, 0
	case r.last && r.job.Signal != 0:
		return 0, r.job.Signal
	case r.last && r.job.ExitCode != nil:
		return max(0, *r.job.ExitCode), 0
	case r.attempt != nil:
		if r.attempt.Signal != 0 {
			return 0, r.attempt.Signal
		}
		return max(0, r.attempt.Code), 0
	}
	return 0, 0
}

// derived is the highest exit of the steps of the script.
func (r *record) derived() string {
	if r.attempt == nil {
		return "0:0"
	}
	code, signal := jobs.DerivedExit(r.attempt.Steps)
	return fmt.Sprintf("%d:%d", code, signal)
}
