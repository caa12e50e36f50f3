package jobs

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
)

// StepRow is one step of a running job.
type StepRow struct {
	*jobfield.Row
	Step api.Step
}

// ID is how a step is called: 12.0, 12.batch.
func (s *StepRow) ID() string { return jobfield.IDText(s.Job) + "." + s.Step.StepID }

type stepField = column.Field[*StepRow]

func stepText(letter byte, names []string, head string, get func(*StepRow) string) stepField {
	return stepField{Letter: letter, Names: names, Head: head, Text: get}
}

func stepNull(name, head string) stepField {
	return stepText(0, []string{name}, head, func(*StepRow) string { return "(null)" })
}

func stepTasks(s *StepRow) string { return strconv.Itoa(max(s.Step.Tasks, 1)) }

// StepFields is what squeue shows of steps.
var StepFields = column.Set[*StepRow]{Fields: []stepField{
	{Letter: 'i', Names: []string{"stepid"}, Head: "STEPID", Text: (*StepRow).ID, Compare: compareSteps},
	stepText('j', []string{"stepname"}, "NAME", func(s *StepRow) string { return s.Step.Name }),
	stepText('A', []string{"numtasks"}, "TASKS", stepTasks),
	stepText('b', []string{"gres", "tres-per-node"}, "TRES_PER_JOB", func(*StepRow) string { return "(null)" }),
	{Letter: 'l', Names: []string{"timelimit"}, Head: "TIME_LIMIT", Wide: true,
		Text: func(s *StepRow) string { return jobfield.TimeLimit(s.Step.TimeLimit) }},
	{Letter: 'M', Names: []string{"timeused"}, Head: "TIME", Wide: true, Text: func(s *StepRow) string { return jobfield.Elapsed(s.used()) },
		Compare: func(a, b *StepRow) int { return cmp.Compare(a.used(), b.used()) }},
	{Letter: 'N', Names: []string{"nodelist"}, Head: "NODELIST", Wide: true, WideHead: true,
		Text: func(s *StepRow) string { return hostlist.Compress(s.Step.Nodes) }},
	stepText('P', []string{"partition"}, "PARTITION", func(s *StepRow) string { return s.Partition }),
	stepText('S', []string{"starttime"}, "START_TIME", func(s *StepRow) string { return jobfield.Squeue.Letter('S').Text(s.Row) }),
	stepText('u', []string{"username"}, "USER", func(s *StepRow) string { return s.User }),
	stepText('U', []string{"userid"}, "UID", func(s *StepRow) string { return strconv.FormatUint(uint64(s.UID), 10) }),
	stepText(0, []string{"jobid"}, "JOB_ID", func(s *StepRow) string { return strconv.FormatInt(s.JobID, 10) }),
	stepText(0, []string{"arrayjobid"}, "ARRAY_JOB_ID", func(s *StepRow) string { return jobfield.Squeue.Letter('F').Text(s.Row) }),
	stepText(0, []string{"arraytaskid"}, "ARRAY_TASK_ID", func(s *StepRow) string { return jobfield.Squeue.Letter('K').Text(s.Row) }),
	stepText(0, []string{"stepstate"}, "STATE", func(s *StepRow) string { return string(s.Step.State) }),
	stepText(0, []string{"numcpus"}, "NUM_CPUS", func(s *StepRow) string { return strconv.Itoa(s.Step.CPUs) }),
	stepText(0, []string{"cluster"}, "CLUSTER", func(*StepRow) string { return "gangd" }),
	stepText(0, []string{"cpufreq"}, "CPU_FREQ", func(*StepRow) string { return "0-0:0" }),
	stepNull("container", "CONTAINER"), stepNull("network", "NETWORK"),
	stepText(0, []string{"resvports"}, "RESERVED_PORTS", func(s *StepRow) string { return cmp.Or(s.Step.Ports, "(null)") }),
	stepNull("cpus-per-tres", "CPUS_PER_TRES"), stepNull("mem-per-tres", "MEM_PER_TRES"), stepNull("tres-bind", "TRES_BIND"),
	stepNull("tres-freq", "TRES_FREQ"), stepNull("tres-per-job", "TRES_PER_STEP"), stepNull("tres-per-step", "TRES_PER_STEP"),
	stepNull("tres-per-socket", "TRES_PER_SOCKET"), stepNull("tres-per-task", "TRES_PER_TASK"),
}}

// OwnStepFields is what gqueue shows of them: how far the import of an image is, beside what squeue shows.
var OwnStepFields = column.Set[*StepRow]{Fields: append(slices.Clip(StepFields.Fields), stepText('r', []string{"status"}, "STATUS",
	func(s *StepRow) string { return s.Step.Status }))}

func compareSteps(a, b *StepRow) int {
	return cmp.Or(jobfield.CompareIDs(a.Row, b.Row), cmp.Compare(stepOrder(a), stepOrder(b)))
}

// stepOrder puts batch behind the steps that it started: Slurm's number of it is that high.
func stepOrder(s *StepRow) int {
	n, err := strconv.Atoi(s.Step.StepID)
	if err != nil {
		return math.MaxInt
	}
	return n
}

func (s *StepRow) used() time.Duration {
	if s.Step.StartTime.IsZero() {
		return jobfield.Used(s.Row)
	}
	return max(jobfield.Now().Sub(s.Step.StartTime), 0)
}

// RunningSteps are a job's script, if it has one of its user's, and the steps that it has started.
func RunningSteps(j *api.Job) (out []api.Step) {
	if !j.Allocation {
		out = append(out, batch(j))
	}
	for _, s := range j.Steps {
		if s.StepID != api.StepBatch && s.StepID != api.StepExtern {
			out = append(out, s)
		}
	}
	return out
}

// batch is the script of a running job as the step that Slurm makes of it; the controller keeps
// no record of it while it runs.
func batch(j *api.Job) api.Step {
	s := api.Step{JobID: j.JobID, StepID: api.StepBatch, Name: api.StepBatch, State: api.JobRunning, Tasks: 1, User: j.User,
		Partition: j.Partition, StartTime: j.StartTime}
	if len(j.Nodes) > 0 {
		s.Nodes = j.Nodes[:1]
	}
	if j.Launch == api.LaunchRanks { // the script runs in every rank
		s.Nodes, s.Tasks = j.Nodes, j.Size
	}
	return s
}

// SignalOOM is Slurm's signal for what ran out of memory.
const SignalOOM = 125

// StepExit is how a step ended, as Slurm counts it.
func StepExit(s *api.Step) (code, signal int) {
	switch {
	case s.State == api.JobOutOfMemory:
		return 0, SignalOOM
	case s.State == api.JobCancelled && s.Signal == 0 && s.ExitCode == nil:
		return 0, int(syscall.SIGTERM)
	case s.Signal != 0:
		return 0, s.Signal
	case s.ExitCode != nil:
		return max(0, *s.ExitCode), 0
	}
	return 0, 0
}

// DerivedExit is the highest exit of the steps that a script has started; any code is higher than a signal.
func DerivedExit(steps []api.Step) (code, signal int) {
	for i := range steps {
		if s := &steps[i]; s.StepID != api.StepBatch && s.StepID != api.StepExtern {
			if c, g := StepExit(s); c > code || code == 0 && g > signal {
				code, signal = c, g
			}
		}
	}
	return code, signal
}

// StepChoice is which steps are meant; an empty list means all.
type StepChoice struct {
	IDs   []string // 12.0, 12_3.0
	Nodes []string
}

// Bad is the job of the first id that names no step.
func (c *StepChoice) Bad() (job string, bad bool) {
	for _, id := range c.IDs {
		if job, step, ok := strings.Cut(id, "."); !ok || step == "" {
			return job, true
		}
	}
	return "", false
}

func (c *StepChoice) means(s *StepRow) bool {
	if len(c.Nodes) > 0 && !slices.ContainsFunc(s.Step.Nodes, func(n string) bool { return slices.Contains(c.Nodes, n) }) {
		return false
	}
	return len(c.IDs) == 0 || slices.Contains(c.IDs, s.ID()) || slices.Contains(c.IDs, strconv.FormatInt(s.JobID, 10)+"."+s.Step.StepID)
}

// Rows is the steps of the jobs that run, in the order of the keys.
func (c *StepChoice) Rows(jobs []api.Job, v *jobfield.View, keys []column.Key[*StepRow]) []*StepRow {
	var rows []*StepRow
	for i := range jobs {
		j := &jobs[i]
		if j.State != api.JobRunning && j.State != api.JobCompleting {
			continue
		}
		r := &jobfield.Row{Job: j, View: v}
		for _, s := range RunningSteps(j) {
			if row := (&StepRow{r, s}); c.means(row) {
				rows = append(rows, row)
			}
		}
	}
	column.Sort(rows, keys)
	return rows
}
