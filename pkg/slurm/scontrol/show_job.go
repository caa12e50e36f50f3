package scontrol

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/core/table/tres"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/people"
)

// shownJob is one record of show job: a job, or the elements of an array that have not begun.
type shownJob struct {
	jobfield.Row
	alone bool // an element that is shown by itself and has not begun
}

func (c *call) showJob(entity, id string) int {
	jobs, refs, status := c.loadJobs(id)
	if status != 0 {
		return status
	}
	spoken, err := slurm.Spoken(c.ctx, c.client)
	if err != nil {
		c.errorf("%s", err)
		return 1
	}
	c.spoken = spoken
	shown := fold(jobs, refs)
	if len(shown) == 1 && shown[0].alone {
		split, err := c.split(shown[0].Job)
		if err != nil {
			return c.failed("slurm_load_jobs error", err)
		}
		shown[0].alone = !split
	}
	c.records(len(shown))
	if len(shown) == 0 {
		fmt.Fprintln(c.Out, "No jobs in the system")
	}
	for i := range shown {
		c.record(c.jobLines(&shown[i]), true)
	}
	return 0
}

// loadJobs asks for a job, or for all of them; what went wrong is said, and the status not 0.
func (c *call) loadJobs(id string) (jobs []api.Job, refs []api.JobRef, status int) {
	component := -1
	q := &api.JobQuery{All: true, NoRanks: !c.details, Start: true, Cleaning: true}
	if id != "" && id != "0" && !strings.HasPrefix(id, "0_") { // 0 is any job, as in Slurm
		plain, n := slurm.CutComponent(id)
		ref, ok := jobRef(plain)
		if !ok {
			c.say("scontrol_print_job error: Invalid job id specified")
			return nil, nil, 1
		}
		component = n
		q.Refs = []api.JobRef{ref}
	}
	reply, err := c.client.Jobs(c.ctx, q)
	switch {
	case api.CodeOf(err) == api.CodeNotFound && q.Refs != nil && q.Refs[0].Index >= 0 && c.isJob(q.Refs[0].ID):
		fmt.Fprintf(c.Out, "Job %s not found\n", id)
		return nil, nil, 1
	case err != nil:
		return nil, nil, c.failed("slurm_load_jobs error", err)
	}
	jobs = api.WithIDs(api.Split(reply.Jobs), q.Refs)
	if component >= 0 {
		jobs = slices.DeleteFunc(jobs, func(j api.Job) bool { return j.Component == nil || *j.Component != component })
	}
	if component >= 0 && len(jobs) == 0 {
		fmt.Fprintf(c.Out, "Job %s not found\n", id)
		return nil, nil, 1
	}
	return jobs, q.Refs, 0
}

// split reports that an element differs from what is left of its array, which is when Slurm gives it an
// id of its own.
func (c *call) split(j *api.Job) (bool, error) {
	reply, err := c.client.Jobs(c.ctx, &api.JobQuery{Refs: []api.JobRef{{ID: j.ArrayJobID, Index: -1}}, NoRanks: true})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc((jobfield.Fold{Records: true}).Rows(reply.Jobs), func(r jobfield.Row) bool {
		return r.Folded == nil &&
			r.Job.JobID == j.JobID
	}), nil
}

// jobRef reads 12 or 12_3; anything else scontrol does not take here.
func jobRef(s string) (api.JobRef, bool) {
	if strings.HasPrefix(s, "@") {
		return api.JobRef{}, false
	}
	ref, err := api.ParseJobRef(slurm.Own(s))
	return ref, err == nil
}

// jobRefs reads also 12_[1-3,7], by which what changes jobs names elements.
func jobRefs(s string) ([]api.JobRef, bool) {
	if strings.Contains(s, "_[") {
		refs, err := api.ParseJobRefs(s)
		return refs, err == nil
	}
	ref, ok := jobRef(s)
	return []api.JobRef{ref}, ok
}

// fold makes one record of elements of an array that wait alike, at its array's place. One
// that is asked for by itself has the array's id as long as it has not begun, as in Slurm.
func fold(jobs []api.Job, refs []api.JobRef) []shownJob {
	element := len(refs) == 1 && refs[0].Index >= 0
	var out []shownJob
	for _, r := range (jobfield.Fold{Expand: element, Records: true}).Rows(jobs) {
		out = append(out, shownJob{Row: r, alone: element && r.ArrayIndex != nil && r.State == api.JobPending && r.Epoch == 0})
	}
	slices.SortStableFunc(out, func(a, b shownJob) int { return cmp.Compare(a.id(), b.id()) })
	return out
}

// id is the array's where the record stands for what is left of it.
func (s *shownJob) id() int64 {
	if s.Folded != nil || s.alone {
		return s.ArrayJobID
	}
	return s.ID()
}

func (c *call) jobLines(s *shownJob) []string {
	j := s.Job
	pending := j.State == api.JobPending
	field := func(name string) string { return jobfield.Squeue.Name(name).Text(&s.Row) }
	lines := []string{
		fmt.Sprintf("JobId=%d %sJobName=%s", s.id(), s.arrayText(), j.Name),
	}
	if j.Component != nil {
		lines = append(lines, "HetJobIdSet="+cmp.Or(j.ComponentIDs, strconv.FormatInt(j.JobID, 10)))
	}
	lines = append(lines,
		fmt.Sprintf("UserId=%s(%d) GroupId=%s(%d) MCS_label=N/A", j.User, j.UID, groupName(j.GID), j.GID),
		fmt.Sprintf("Priority=%d Nice=%d Account=%s QOS=(null)", jobfield.SlurmPriority(j), j.Nice, jobfield.OrNull(j.Account)),
		fmt.Sprintf("JobState=%s Reason=%s Dependency=%s", jobfield.SlurmState(j), jobfield.Reason(j), jobfield.OrNull(j.Dependency)),
		fmt.Sprintf("Requeue=%s Restarts=%d BatchFlag=%s Reboot=0 ExitCode=%s", field("requeue"), j.RestartCount, field("batchflag"), s.exit()),
	)
	if c.details {
		lines = append(lines, "DerivedExitCode="+c.derivedExit(j))
	}
	lines = append(lines,
		fmt.Sprintf("RunTime=%s TimeLimit=%s TimeMin=%s", when.Span(jobfield.Used(&s.Row)), when.Limit(j.TimeLimitSeconds), timeMin(j)),
		fmt.Sprintf("SubmitTime=%s EligibleTime=%s", slurm.Stamp(j.SubmitTime, "Unknown"), s.eligible()),
		"AccrueTime="+s.eligible(),
		fmt.Sprintf("StartTime=%s EndTime=%s Deadline=%s", slurm.Stamp(jobfield.Started(&s.Row), "Unknown"),
			slurm.Stamp(jobfield.ExpectedEnd(&s.Row), "Unknown"), slurm.Stamp(j.Deadline, "N/A")),
	)
	if j.Cron != nil {
		lines = append(lines, fmt.Sprintf("CronJob=Yes CrontabSpec=\"%s\"", j.Cron.Schedule))
	}
	lines = append(lines,
		"SuspendTime=None SecsPreSuspend=0 LastSchedEval=Unknown Scheduler=Main",
		fmt.Sprintf("Partition=%s AllocNode:Sid=%s:0", j.Partition, jobfield.OrNull(j.SubmitHost)),
		fmt.Sprintf("ReqNodeList=%s ExcNodeList=%s", jobfield.OrNull(hostlist.Compress(j.NodeList)),
			jobfield.OrNull(hostlist.Compress(j.Exclude))),
		"NodeList="+hostlist.Compress(j.Nodes),
	)
	if len(j.Nodes) > 0 {
		lines = append(lines, "BatchHost="+j.Nodes[0])
	}
	lines = append(lines, c.resourceLines(s)...)
	lines = append(lines, fmt.Sprintf("Features=%s DelayBoot=00:00:00", jobfield.OrNull(j.Constraint)))
	if j.Prefer != "" {
		lines = append(lines, "Prefer="+j.Prefer)
	}
	if j.Reservation != "" {
		lines = append(lines, "Reservation="+j.Reservation)
	}
	lines = append(lines,
		fmt.Sprintf("OverSubscribe=%s Contiguous=0 Licenses=%s Network=(null)", jobfield.OverSubscribe(&s.Row),
			jobfield.OrNull(jobfield.Note("Licenses", j))),
		"Command="+jobfield.OrNull(command(j)),
		"WorkDir="+j.WorkDir,
	)
	for i := range jobfield.Notes {
		if n := &jobfield.Notes[i]; n.Line && n.Of(j) != "" {
			lines = append(lines, n.Name+"="+n.Of(j)+n.End)
		}
	}
	if !j.Allocation {
		file := func(pattern string) string { return jobfield.OutputPath(&s.Row, s.id(), pattern) }
		out := file(j.StdOut)
		lines = append(lines, "StdErr="+cmp.Or(file(j.StdErr), out), "StdIn="+cmp.Or(file(j.StdIn), "/dev/null"), "StdOut="+out)
	}
	if c.spoken.Version < "24.05" {
		lines = append(lines, "Power=")
	}
	lines = append(lines, c.cardLines(j)...)
	lines = append(lines, mailLines(j)...)
	if pending && j.Why != "" && c.details {
		lines = append(lines, "Why="+strings.ReplaceAll(j.Why, "\n", "; "))
	}
	return lines
}

// mailLines are those of who is told by mail, one an address, in the order of Slurm's words.
func mailLines(j *api.Job) (lines []string) {
	order := []api.NotifyType{api.NotifyArrayTasks, api.NotifyInvalidDepend, api.NotifyBegin, api.NotifyEnd, api.NotifyFail, api.NotifyRequeue,
		api.NotifyStageOut,
		api.NotifyTimeLimit, api.NotifyTimeLimit90, api.NotifyTimeLimit80, api.NotifyTimeLimit50, api.NotifyStall, api.NotifyIdle,
		api.NotifyPreempt}
	for i := range j.Notify {
		n := &j.Notify[i]
		if n.Target != "" {
			continue
		}
		var types []string
		for _, t := range order {
			if n.Wants(t) {
				types = append(types, string(t))
			}
		}
		lines = append(lines, fmt.Sprintf("MailUser=%s MailType=%s", n.To, strings.Join(types, ",")))
	}
	return lines
}

// cardLines are the words in which cards were asked for.
func (c *call) cardLines(j *api.Job) (lines []string) {
	words := jobfield.TRES(j, c.gres())
	for _, name := range []string{"CpusPerTres", "MemPerTres", "TresBind", "TresFreq", "TresPerJob", "TresPerNode", "TresPerSocket",
		"TresPerTask"} {
		if w := words[name]; w != "" {
			lines = append(lines, name+"="+w)
		}
	}
	return lines
}

// gres is what cards are called in what was asked for.
func (c *call) gres() string {
	if c.spoken.Version == "22.05" {
		return "gres:gpu"
	}
	return "gres/gpu"
}

func (c *call) resourceLines(s *shownJob) []string {
	j := s.Job
	amount := tres.Of(j, tres.Nodes(j))
	perNode := j.RanksPerNode
	allocated := "(null)"
	if len(j.Nodes) > 0 {
		allocated = amount.InOrder()
	}
	lines := []string{
		fmt.Sprintf("NumNodes=%d NumCPUs=%d NumTasks=%d CPUs/Task=%d ReqB:S:C:T=0:0:*:*", amount.Nodes, amount.CPUs, j.Tasks(),
			max(1, j.CPUsPerRank)),
		"ReqTRES=" + amount.InOrder(), "AllocTRES=" + allocated,
		fmt.Sprintf("Socks/Node=%s NtasksPerN:B:S:C=%d:0:*:* CoreSpec=*", jobfield.Least(j.Shape.Sockets), perNode),
	}
	if c.spoken.Version == "22.05" {
		lines = slices.Replace(lines, 1, 3, "TRES="+amount.InOrder())
	}
	if c.details && len(j.Nodes) > 0 {
		lines = append(lines, jobCards(j, amount.GPUs)...)
	}
	memory := "MinMemoryNode=" + tres.Size(j.MemoryPerNode, 'M')
	tmp := "0"
	if j.TmpPerNode > 0 {
		tmp = tres.Size(j.TmpPerNode, 'M')
	}
	switch {
	case j.Asked != nil && j.Asked.MemoryPerNode > 0:
		memory = "MinMemoryNode=" + tres.Size(j.Asked.MemoryPerNode, 'M')
	case j.MemoryBytes > 0:
		memory = "MinMemoryCPU=" + tres.Size(j.MemoryBytes/int64(max(1, j.CPUsPerRank)), 'M')
	}
	return append(lines, fmt.Sprintf("MinCPUsNode=%d %s MinTmpDiskNode=%s", max(1, perNode)*max(1, j.CPUsPerRank), memory, tmp))
}

// jobCards is which cards a job has on each node, of --details. Cards are named by UUID
// where Slurm writes their numbers.
func jobCards(j *api.Job, cards int64) []string {
	lines := []string{"JOB_GRES=(null)"}
	held := 0
	for _, n := range j.Nodes {
		var uuids []string
		ranks := 0
		for i := range j.Ranks {
			if j.Ranks[i].Node == n {
				ranks++
				for _, u := range j.Ranks[i].Cards {
					if !slices.Contains(uuids, u) {
						uuids = append(uuids, u)
					}
				}
			}
		}
		mem := j.MemoryPerNode + int64(ranks)*j.MemoryBytes
		gres := ""
		if len(uuids) > 0 {
			gres = fmt.Sprintf("gpu:%d(UUID:%s)", len(uuids), strings.Join(uuids, ","))
			held += len(uuids)
		}
		lines = append(lines, fmt.Sprintf("  Nodes=%s CPU_IDs=(null) Mem=%d GRES=%s", n, mem>>20, gres))
	}
	if held = max(held, int(cards)); held > 0 {
		lines[0] = fmt.Sprintf("JOB_GRES=gpu:%d", held)
	}
	return lines
}

func (s *shownJob) arrayText() string {
	j := s.Job
	if j.Component != nil {
		return fmt.Sprintf("HetJobId=%d HetJobOffset=%d ", j.JobID, *j.Component)
	}
	if j.ArrayIndex == nil {
		return ""
	}
	task := strconv.Itoa(*j.ArrayIndex)
	throttle := ""
	if s.Folded != nil {
		most, _ := slurm.IndexLength()
		task = jobfield.CutRanges(jobfield.IndexRanges(s.Folded), most)
	}
	if j.ArrayLimit > 0 {
		throttle = fmt.Sprintf("ArrayTaskThrottle=%d ", j.ArrayLimit)
		if s.Folded != nil {
			task += "%" + strconv.Itoa(j.ArrayLimit)
		}
	}
	return fmt.Sprintf("ArrayJobId=%d ArrayTaskId=%s %s", j.ArrayJobID, task, throttle)
}

// derivedExit is the highest exit of the job's steps of its last run.
func (c *call) derivedExit(j *api.Job) string {
	if j.StartTime.IsZero() {
		return "0:0"
	}
	reply, err := c.client.Steps(c.ctx, api.JobRef{ID: j.JobID, Index: -1})
	if err != nil {
		return "0:0"
	}
	code, signal := jobs.DerivedExit(slices.DeleteFunc(reply.Steps, func(s api.Step) bool { return s.Epoch != j.Epoch }))
	return fmt.Sprintf("%d:%d", code, signal)
}

// exit is CODE:SIGNAL as scontrol has it: what stopped the script counts as its end.
func (s *shownJob) exit() string {
	j := s.Job
	switch {
	case j.State == api.JobOutOfMemory:
		return "0:125"
	case j.State == api.JobCancelled && j.StartTime.IsZero(), !j.State.Ended(), j.State == api.JobCompleted:
		return "0:0"
	case j.State != api.JobFailed:
		return "0:15"
	case j.Signal != 0:
		return "0:" + strconv.Itoa(j.Signal)
	case j.ExitCode != nil:
		return strconv.Itoa(*j.ExitCode) + ":0"
	}
	return "0:0"
}

// eligible is when it could have begun; nobody knows while it is held or waits for others.
func (s *shownJob) eligible() string {
	if s.State == api.JobPending && s.Reason == "Dependency" {
		return "Unknown"
	}
	return slurm.Stamp(jobfield.Eligible(&s.Row), "Unknown")
}

// isJob reports whether there is a job or an array of this number; of an array that there is a missing element
// is another thing to Slurm than of one that there is not.
func (c *call) isJob(id int64) bool {
	_, err := c.client.Jobs(c.ctx, &api.JobQuery{All: true, NoRanks: true, Refs: []api.JobRef{{ID: id, Index: -1}}})
	return err == nil
}

func timeMin(j *api.Job) string {
	if j.TimeMinSeconds == 0 {
		return "N/A"
	}
	return when.Limit(j.TimeMinSeconds)
}

// command is the script's path in full.
func command(j *api.Job) string {
	c := jobfield.Command(j)
	if c == "" || path.IsAbs(c) || j.Allocation { // srun's is looked for in PATH
		return c
	}
	return path.Join(j.WorkDir, c)
}

// groupName is a group's name, a variable for tests.
var groupName = people.Here.GroupText
