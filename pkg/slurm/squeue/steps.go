package squeue

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cmdline"
	"gangd/pkg/hostlist"
	"gangd/pkg/table/column"
	"gangd/pkg/table/jobfield"
)

const formatSteps = "%.15i %.8j %.9P %.8u %.9M %N"

// stepRow is one step of a running job.
type stepRow struct {
	*jobfield.Row
	step api.Step
}

func (s *stepRow) id() string { return jobfield.IDText(s.Job) + "." + s.step.StepID }

type stepField = column.Field[*stepRow]

func stepText(letter byte, names []string, head string, get func(*stepRow) string) stepField {
	return stepField{Letter: letter, Names: names, Head: head, Text: get}
}

func stepNull(name, head string) stepField {
	return stepText(0, []string{name}, head, func(*stepRow) string { return "(null)" })
}

func stepTasks(s *stepRow) string { return strconv.Itoa(max(s.step.Tasks, 1)) }

// stepFields is what squeue shows of steps.
var stepFields = column.Set[*stepRow]{Fields: []stepField{
	{Letter: 'i', Names: []string{"stepid"}, Head: "STEPID", Text: (*stepRow).id, Compare: compareSteps},
	stepText('j', []string{"stepname"}, "NAME", func(s *stepRow) string { return s.step.Name }),
	stepText('A', []string{"numtasks"}, "TASKS", stepTasks),
	stepText('b', []string{"gres", "tres-per-node"}, "TRES_PER_JOB", func(*stepRow) string { return "(null)" }),
	{Letter: 'l', Names: []string{"timelimit"}, Head: "TIME_LIMIT", Wide: true, Text: func(s *stepRow) string { return jobfield.TimeLimit(s.step.TimeLimit) }},
	{Letter: 'M', Names: []string{"timeused"}, Head: "TIME", Wide: true, Text: func(s *stepRow) string { return jobfield.Elapsed(s.used()) },
		Compare: func(a, b *stepRow) int { return cmp.Compare(a.used(), b.used()) }},
	{Letter: 'N', Names: []string{"nodelist"}, Head: "NODELIST", Wide: true, WideHead: true, Text: func(s *stepRow) string { return hostlist.Compress(s.step.Nodes) }},
	stepText('P', []string{"partition"}, "PARTITION", func(s *stepRow) string { return s.Partition }),
	stepText('S', []string{"starttime"}, "START_TIME", func(s *stepRow) string { return jobfield.Squeue.Letter('S').Text(s.Row) }),
	stepText('u', []string{"username"}, "USER", func(s *stepRow) string { return s.User }),
	stepText('U', []string{"userid"}, "UID", func(s *stepRow) string { return strconv.FormatUint(uint64(s.UID), 10) }),
	stepText(0, []string{"jobid"}, "JOB_ID", func(s *stepRow) string { return strconv.FormatInt(s.JobID, 10) }),
	stepText(0, []string{"arrayjobid"}, "ARRAY_JOB_ID", func(s *stepRow) string { return jobfield.Squeue.Letter('F').Text(s.Row) }),
	stepText(0, []string{"arraytaskid"}, "ARRAY_TASK_ID", func(s *stepRow) string { return jobfield.Squeue.Letter('K').Text(s.Row) }),
	stepText(0, []string{"stepstate"}, "STATE", func(s *stepRow) string { return string(s.step.State) }),
	stepText(0, []string{"numcpus"}, "NUM_CPUS", func(s *stepRow) string { return strconv.Itoa(s.step.CPUs) }),
	stepText(0, []string{"cluster"}, "CLUSTER", func(*stepRow) string { return "gangd" }),
	stepText(0, []string{"cpufreq"}, "CPU_FREQ", func(*stepRow) string { return "0-0:0" }),
	stepNull("container", "CONTAINER"), stepNull("network", "NETWORK"),
	stepText(0, []string{"resvports"}, "RESERVED_PORTS", func(s *stepRow) string { return cmp.Or(s.step.Ports, "(null)") }),
	stepNull("cpus-per-tres", "CPUS_PER_TRES"), stepNull("mem-per-tres", "MEM_PER_TRES"), stepNull("tres-bind", "TRES_BIND"),
	stepNull("tres-freq", "TRES_FREQ"), stepNull("tres-per-job", "TRES_PER_STEP"), stepNull("tres-per-step", "TRES_PER_STEP"),
	stepNull("tres-per-socket", "TRES_PER_SOCKET"), stepNull("tres-per-task", "TRES_PER_TASK"),
}}

func compareSteps(a, b *stepRow) int {
	return cmp.Or(jobfield.CompareIDs(a.Row, b.Row), cmp.Compare(stepOrder(a), stepOrder(b)))
}

// stepOrder puts batch behind the steps that it started: Slurm's number of it is that high.
func stepOrder(s *stepRow) int {
	n, err := strconv.Atoi(s.step.StepID)
	if err != nil {
		return math.MaxInt
	}
	return n
}

func (s *stepRow) used() time.Duration {
	if s.step.StartTime.IsZero() {
		return jobfield.Used(s.Row)
	}
	return max(jobfield.Now().Sub(s.step.StartTime), 0)
}

// stepsOf is the batch step, which the controller keeps no record of while it runs, and the
// steps that were started in the job.
func (q *squeue) stepsOf(j *api.Job) []*stepRow {
	r := &jobfield.Row{Job: j, View: q.view}
	batch := api.Step{StepID: api.StepBatch, Name: "batch", State: api.JobRunning, Tasks: 1, StartTime: j.StartTime}
	if len(j.Nodes) > 0 {
		batch.Nodes = j.Nodes[:1]
	}
	if j.Launch != api.LaunchBatch { // the script runs in every rank
		batch.Nodes, batch.Tasks = j.Nodes, j.Size
	}
	out := []*stepRow{{r, batch}}
	for _, s := range j.Steps {
		out = append(out, &stepRow{r, s})
	}
	return out
}

// wantsStep: it is named, where any is, and on one of the nodes, where these are.
func (q *squeue) wantsStep(s *stepRow) bool {
	if len(q.onNodes) > 0 && !slices.ContainsFunc(s.step.Nodes, func(n string) bool { return slices.Contains(q.onNodes, n) }) {
		return false
	}
	return len(q.steps) == 0 || slices.Contains(q.steps, s.id()) || slices.Contains(q.steps, strconv.FormatInt(s.JobID, 10)+"."+s.step.StepID)
}

// writeSteps is --steps.
func (q *squeue) writeSteps(out *bufio.Writer, jobs []api.Job) error {
	for _, id := range q.steps {
		if job, step, ok := strings.Cut(id, "."); !ok || step == "" {
			return fmt.Errorf("Invalid job_step id: %s.??", job)
		}
	}
	bad := func(what string) { q.Errorf("squeue", "Invalid job step format specification: %s", what) }
	line := stepFields.Letters(formatSteps, bad)
	switch {
	case q.longFormat != nil:
		line = stepFields.Names(*q.longFormat, func(what string) { q.Errorf("squeue", "Invalid job step format specification: %s", what) })
	case q.format != nil:
		line = stepFields.Letters(*q.format, bad)
	}
	var rows []*stepRow
	for i := range jobs {
		if jobs[i].State != api.JobRunning && jobs[i].State != api.JobCompleting {
			continue
		}
		for _, s := range q.stepsOf(&jobs[i]) {
			if q.wantsStep(s) {
				rows = append(rows, s)
			}
		}
	}
	order := "P,i"
	if q.sort != nil {
		order = *q.sort
	}
	keys, wrong := stepFields.Keys(order)
	if !q.noHeader {
		writeLine(out, line.AppendHead(nil))
	}
	if wrong != "" {
		return cmdline.Status(1)
	}
	column.Sort(rows, keys)
	for _, s := range rows {
		writeLine(out, line.Append(nil, s))
	}
	return nil
}
