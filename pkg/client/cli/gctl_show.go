package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/client/output"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
)

func newShowJob() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "job [JOB...]", Aliases: []string{"jobs"}, Short: "the fields, attempts and events of jobs",
		Example: `  gctl show job 12           one job, running or ended
  gctl show job @            my last one
  gctl show job 12 --json    the same for a script`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := client.New()
			return showJobs(cmd, c, args, asJSON)
		},
		ValidArgsFunction: completeJobs,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON: the job with its attempts")
	return cmd
}

func showJobs(cmd *cobra.Command, c *client.Client, args []string, asJSON bool) error {
	refs, err := parseRefs(args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		reply, err := c.Jobs(cmd.Context(), &api.JobQuery{NoRanks: true})
		if err != nil {
			return err
		}
		if len(reply.Jobs) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "gctl: no job is in the queue; ended ones: gacct")
		}
		for i := range reply.Jobs {
			refs = append(refs, jobs.Ref(&reply.Jobs[i]))
		}
	}
	var failed []error
	if refs, failed, err = showArrays(cmd, c, refs, asJSON, failed); err != nil {
		return err
	}
	for i, ref := range refs {
		d, err := c.Job(cmd.Context(), ref)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if asJSON {
			if err := WriteJSON(cmd.OutOrStdout(), d); err != nil {
				return err
			}
			continue
		}
		if d.Job.Command == "wrap" {
			if text, err := c.Script(cmd.Context(), api.JobRef{ID: d.Job.JobID, Index: -1}); err == nil { // who may not read it has the word
				d.Job.Command = script.Wrapped(text)
			}
		}
		events, err := c.Events(cmd.Context(), api.JobRef{ID: d.Job.JobID, Index: -1}, 0, 0)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := writeStory(screenOf(cmd.OutOrStdout()), d, events.Events); err != nil {
			return err
		}
	}
	return joinFailures(cmd, failed)
}

// showArrays shows what the ids of arrays mean and gives the other references; as JSON each element
// is one of these.
func showArrays(cmd *cobra.Command, c *client.Client, refs []api.JobRef, asJSON bool, failed []error) (single []api.JobRef, errs []error,
	err error) {
	for _, ref := range refs {
		if ref.Index >= 0 {
			single = append(single, ref)
			continue
		}
		named, err := namedJobs(cmd.Context(), c, ref)
		switch {
		case err != nil:
			failed = append(failed, err)
		case !isArray(named):
			single = append(single, ref)
		case asJSON:
			for i := range named {
				single = append(single, jobs.Ref(&named[i]))
			}
		default:
			if err := writeArray(screenOf(cmd.OutOrStdout()), named); err != nil {
				return nil, nil, err
			}
			fmt.Fprintln(cmd.OutOrStdout())
		}
	}
	return single, failed, nil
}

// writeStory is what scontrol shows of a job, and then what happened to it.
func writeStory(s *screen, d *api.JobDetail, events []api.Event) error {
	writeFields(s, jobFields(&d.Job))
	if d.Job.Verdict != "" {
		fmt.Fprintln(s.w, output.Fold("   Verdict="+column.Printable(d.Job.Verdict), s.width))
	}
	if len(d.Job.Ranks) > 0 {
		fmt.Fprintf(s.w, "\n%s\n", s.paint(bold, "Ranks"))
		if err := rankTable(d.Job.Ranks).write(s); err != nil {
			return err
		}
	}
	if t := taskTable(d.Job.Steps); len(t.rows) > 0 {
		fmt.Fprintf(s.w, "\n%s\n", s.paint(bold, "Tasks"))
		if err := t.write(s); err != nil {
			return err
		}
	}
	if len(d.Attempts) > 0 {
		fmt.Fprintf(s.w, "\n%s\n", s.paint(bold, "Attempts"))
		if err := attemptTable([]*api.JobDetail{d}, false).write(s); err != nil {
			return err
		}
	}
	if starts := startLines(d.Attempts); len(starts) > 0 {
		fmt.Fprintf(s.w, "\n%s\n", s.paint(bold, "Starts"))
		for _, line := range starts {
			fmt.Fprintln(s.w, line)
		}
	}
	if ends := endLines(d.Attempts); len(ends) > 0 {
		fmt.Fprintf(s.w, "\n%s\n", s.paint(bold, "Ends"))
		for _, line := range ends {
			fmt.Fprintln(s.w, output.Fold(column.Printable(line), s.width))
		}
	}
	if hooks := hookLines(d.Attempts); len(hooks) > 0 {
		fmt.Fprintf(s.w, "\n%s\n", s.paint(bold, "Hooks"))
		for _, line := range hooks {
			fmt.Fprintln(s.w, output.Fold(column.Printable(line), s.width))
		}
	}
	if stops := stopLines(events); len(stops) > 0 {
		fmt.Fprintf(s.w, "\n%s\n", s.paint(bold, "Stops"))
		for _, line := range stops {
			fmt.Fprintln(s.w, output.Fold(column.Printable(line), s.width))
		}
	}
	if len(events) > 0 {
		fmt.Fprintf(s.w, "\n%s\n", s.paint(bold, "Events"))
		return writeEvents(s, events, time.Time{}, map[int64]string{d.Job.JobID: jobs.Ref(&d.Job).String()})
	}
	return nil
}

// writeFields prints lines of scontrol's Key=Value, the first one to the left; on a terminal none is wider than that.
func writeFields(s *screen, lines []string) {
	for i, line := range lines {
		if i > 0 {
			line = "   " + line
		}
		fmt.Fprintln(s.w, output.Fold(column.Printable(line), s.width))
	}
}

func switchesAsked(j *api.Job) string {
	if j.Switches == 0 {
		return ""
	}
	return " ReqSwitch=" + strconv.Itoa(j.Switches)
}

// jobFields names what Slurm has as Slurm does, because scripts cut these lines.
func jobFields(j *api.Job) []string {
	r := &jobfield.Row{Job: j}
	id := "JobId=" + strconv.FormatInt(j.JobID, 10)
	if j.ArrayIndex != nil {
		id += " ArrayJobId=" + strconv.FormatInt(j.ArrayJobID, 10) + " ArrayTaskId=" + strconv.Itoa(*j.ArrayIndex)
	}
	lines := []string{
		id + " JobName=" + j.Name,
		fmt.Sprintf("UserId=%s(%d) Account=%s", j.User, j.UID, jobfield.OrNull(j.Account)),
		fmt.Sprintf("Priority=%d Nice=%d", j.Priority, j.Nice),
		fmt.Sprintf("JobState=%s Reason=%s%s", j.State, cmp.Or(r.Reason, "None"), optional(" Held=", j.Held)),
		fmt.Sprintf("Restarts=%d Epoch=%d ExitCode=%s%s", j.RestartCount, j.Epoch, storyExit(j), optional(" Cause=", string(j.Cause))),
		fmt.Sprintf("RunTime=%s TimeLimit=%s Grace=%s%s", jobfield.Elapsed(jobfield.Used(r)), jobfield.TimeLimit(j.TimeLimitSeconds)+timeMin(j)+
			timeTotal(j), jobfield.Elapsed(time.Duration(j.GraceSeconds)*time.Second), noticeText(j.Notice)),
		fmt.Sprintf("SubmitTime=%s EligibleTime=%s", jobfield.Stamp(j.SubmitTime), jobfield.Stamp(j.EligibleTime)),
		fmt.Sprintf("StartTime=%s EndTime=%s", jobfield.Stamp(jobfield.Started(r)), jobfield.Stamp(jobfield.ExpectedEnd(r))) + deadline(j) +
			safe(j),
		fmt.Sprintf("Partition=%s SubmitHost=%s", jobfield.OrNull(j.Partition), jobfield.OrNull(j.SubmitHost)),
		fmt.Sprintf("ReqNodeList=%s ExcNodeList=%s Features=%s", jobfield.OrNull(hostlist.Compress(j.NodeList)),
			jobfield.OrNull(hostlist.Compress(j.Exclude)), jobfield.OrNull(j.Constraint)) + optional(" Prefer=", j.Prefer) +
			optional(" Reservation=", j.Reservation) + switchesAsked(j),
		"NodeList=" + jobfield.OrNull(hostlist.Compress(j.Nodes)),
	}
	if j.Roles == nil {
		lines = append(lines,
			fmt.Sprintf("NumNodes=%d NumCPUs=%d NumTasks=%d CPUs/Task=%d Launch=%s", jobfield.NodeCount(r), jobfield.CPUs(r), j.Size, j.CPUsPerRank,
				j.Launch),
			fmt.Sprintf("GPUs/Rank=%d VRAM/Card=%s Mem/Rank=%s", j.GPUsPerRank, jobfield.BytesText(j.VRAMBytes), jobfield.BytesText(j.MemoryBytes)))
	} else {
		lines = append(lines, fmt.Sprintf("NumNodes=%d NumCPUs=%d NumTasks=%d NumGPUs=%d Launch=%s", jobfield.NodeCount(r), jobfield.CPUs(r),
			j.Size, jobfield.GPUs(r), j.Launch))
	}
	for i := range j.Roles {
		lines = append(lines, roleField(j, i))
	}
	lines = append(lines,
		"Budgets="+jobfield.OrNull(budgetText(j.Budgets)),
		"Command="+jobfield.OrNull(j.Command),
		"WorkDir="+jobfield.OrNull(j.WorkDir),
		"StdErr="+jobfield.OrNull(cmp.Or(j.StdErr, j.StdOut)),
		"StdIn="+cmp.Or(j.StdIn, "/dev/null"),
		"StdOut="+jobfield.OrNull(j.StdOut),
	)
	if j.Image != "" {
		lines = append(lines, "ContainerImage="+j.Image+" ContainerImageDigest="+jobfield.OrNull(j.ImageDigest))
	}
	for i := range jobfield.Notes {
		if text := jobfield.Notes[i].Of(j); text != "" {
			lines = append(lines, jobfield.Notes[i].Name+"="+text)
		}
	}
	if w := watchText(j); w != "" {
		lines = append(lines, w)
	}
	if j.Status != "" {
		lines = append(lines, "Status="+j.Status)
	}
	if r := j.Ready; r != nil {
		line := "Ready=" + jobfield.ReadyText(r)
		if r.TimeoutSeconds > 0 {
			line += " ReadyTimeout=" + jobfield.Elapsed(time.Duration(r.TimeoutSeconds)*time.Second) + " ReadyTime=" + jobfield.Stamp(r.Time)
		}
		lines = append(lines, line)
	}
	if j.Acknowledged > 0 {
		lines = append(lines, fmt.Sprintf("Acknowledged=%d/%d", j.Acknowledged, j.Size))
	}
	if k := j.Checkpoint; k != nil {
		lines = append(lines, fmt.Sprintf("Checkpoint=%s Epoch=%d Time=%s Complete=%t", jobfield.BytesText(k.Bytes), k.Epoch,
			jobfield.Stamp(k.Time), k.Complete))
	}
	if k := j.TaskCheckpoint; k != nil {
		lines = append(lines, fmt.Sprintf("TaskCheckpoint=%s Epoch=%d Step=%s Tasks=%d Time=%s Complete=%t", jobfield.BytesText(k.Bytes), k.Epoch,
			k.StepID, k.Tasks, jobfield.Stamp(k.Time), k.Complete))
	}
	if j.Why != "" {
		lines = append(lines, "Why="+strings.ReplaceAll(told(j.Why), "\n", "; "))
	}
	return lines
}

func timeMin(j *api.Job) string {
	if j.TimeMinSeconds == 0 {
		return ""
	}
	return " TimeMin=" + jobfield.TimeLimit(j.TimeMinSeconds)
}

// timeTotal is what all runs together may take, and took.
func timeTotal(j *api.Job) string {
	if j.MaxTimeTotal == 0 {
		return ""
	}
	return " MaxTimeTotal=" + jobfield.TimeLimit(j.MaxTimeTotal) + " Ran=" + jobfield.Elapsed(time.Duration(j.RanSeconds)*time.Second)
}

func deadline(j *api.Job) string {
	if j.Deadline.IsZero() {
		return ""
	}
	return " Deadline=" + jobfield.Stamp(j.Deadline)
}

// safe says until when a gang is not preempted.
func safe(j *api.Job) string {
	if j.SafeBy == "" {
		return ""
	}
	return " SafeUntil=" + jobfield.SafeUntil(j) + " SafeBy=" + j.SafeBy
}

// watchText is which watchdogs look at a job, and when it last beat.
func watchText(j *api.Job) string {
	var parts []string
	if j.StallTimeoutSeconds > 0 {
		parts = append(parts, "StallTimeout="+secondsText(j.StallTimeoutSeconds))
	}
	if j.GPUWatch {
		parts = append(parts, "GPUWatch=YES")
	}
	if !j.LastBeat.IsZero() {
		parts = append(parts, "LastBeat="+jobfield.Stamp(j.LastBeat))
	}
	return strings.Join(parts, " ")
}

// secondsText is whole seconds as a time, shorter ones (of tests) as they are.
func secondsText(s float64) string {
	if s == float64(int64(s)) {
		return jobfield.Elapsed(time.Duration(s) * time.Second)
	}
	return strconv.FormatFloat(s, 'g', -1, 64) + "s"
}

// roleField is what one role is and asks for: Role=worker Ranks=1-3 CPUs/Task=4 ...
func roleField(j *api.Job, i int) string {
	first := 0
	for _, r := range j.Roles[:i] {
		first += r.Count
	}
	r := &j.Roles[i]
	ranks := strconv.Itoa(first)
	if r.Count > 1 {
		ranks += "-" + strconv.Itoa(first+r.Count-1)
	}
	text := fmt.Sprintf("Role=%s Ranks=%s CPUs/Task=%d GPUs/Rank=%d VRAM/Card=%s Mem/Rank=%s", r.Name, ranks, r.CPUsPerRank, r.GPUsPerRank,
		jobfield.BytesText(r.VRAMBytes), jobfield.BytesText(r.MemoryPerRank)) + optional(" GPUType=", r.GPUType) +
		optional(" Features=", r.Constraint)
	if r.EndsGang {
		text += " Ends=gang"
	}
	return text
}

// storyExit is scontrol's code:signal, 0:0 while there is none.
func storyExit(j *api.Job) string {
	if j.ExitCode == nil && j.Signal == 0 {
		return "0:0"
	}
	return jobfield.ExitCode(j.ExitCode, j.Signal)
}

func optional(lead, value string) string {
	if value == "" {
		return ""
	}
	return lead + value
}

func noticeText(n *api.NoticeView) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf(" Notice=%s@%d(%s)", n.Signal, n.LeadSeconds, n.Scope)
}

// budgetText is what of each budget is used: crash:1/2 preempted:3/unlimited.
func budgetText(b map[api.Cause]api.Budget) string {
	var parts []string
	for _, cause := range api.Causes {
		v, ok := b[cause]
		if !ok {
			continue
		}
		limit := "unlimited"
		if v.Limit >= 0 {
			limit = strconv.Itoa(v.Limit)
		}
		parts = append(parts, fmt.Sprintf("%s:%d/%s", cause, v.Used, limit))
	}
	return strings.Join(parts, " ")
}

func rankTable(ranks []api.Rank) *table {
	t := &table{cols: []tableColumn{{head: "RANK", right: true, keep: true}, {head: "STATE", width: 10, keep: true}, {head: "NODE", width: 6},
		{head: "PID", right: true, spare: 1}, {head: "EXIT", right: true}, {head: "START", keep: true, spare: 2}, {head: "CARDS"}}}
	roles := slices.ContainsFunc(ranks, func(r api.Rank) bool { return r.Role != "" })
	if roles {
		t.cols = slices.Insert(t.cols, 1, tableColumn{head: "ROLE", width: 6, keep: true})
	}
	state := slices.IndexFunc(t.cols, func(c tableColumn) bool { return c.head == "STATE" })
	said := slices.ContainsFunc(ranks, func(r api.Rank) bool { return !r.LastBeat.IsZero() || r.Status != "" })
	if said { // most jobs never do
		t.cols = append(t.cols, tableColumn{head: "BEAT", right: true}, tableColumn{head: "STATUS", wrap: true})
	}
	for i := range ranks {
		r := &ranks[i]
		exit, pid := "-", "-"
		if r.ExitCode != nil || r.Signal != 0 {
			exit = jobfield.ExitCode(r.ExitCode, r.Signal)
		}
		if r.PID != 0 {
			pid = strconv.Itoa(r.PID)
		}
		line := []string{strconv.Itoa(r.Rank), string(r.State), cmp.Or(r.Node, "-"), pid, exit,
			jobfield.Stamp(r.StartTime), cmp.Or(strings.Join(r.Cards, ","), "-")}
		if roles {
			line = slices.Insert(line, 1, r.Role)
		}
		if said {
			line = append(line, jobfield.BeatAge(r.LastBeat), cmp.Or(column.Printable(r.Status), "-"))
		}
		t.rows = append(t.rows, line)
	}
	t.style = func(row, col int) style {
		if col != state {
			return plain
		}
		return rankStyle(ranks[row].State)
	}
	return t
}

// taskTable is what tasks of the steps that run have said; who has said nothing is not in it.
func taskTable(steps []api.Step) *table {
	t := &table{cols: []tableColumn{{head: "TASK", right: true, keep: true}, {head: "PHASE", width: 8, keep: true}, {head: "NODE", width: 6},
		{head: "BEAT", right: true}, {head: "STATUS", wrap: true}}}
	for i := range steps {
		for _, k := range steps[i].TaskList {
			phase := "running"
			switch {
			case k.Ended:
				phase = "ended"
			case k.Stopping:
				phase = "stopping"
			case k.Ready:
				phase = "ready"
			}
			t.rows = append(t.rows, []string{steps[i].StepID + "." + strconv.Itoa(k.Task), phase, cmp.Or(k.Node, "-"), jobfield.BeatAge(k.LastBeat),
				cmp.Or(column.Printable(k.Status), "-")})
		}
	}
	return t
}

func rankStyle(st api.RankState) style {
	switch st {
	case api.RankRunning, api.RankDone:
		return green
	case api.RankFailed:
		return red
	case api.RankBlocked, api.RankCancelled:
		return plain
	}
	return yellow
}

func newShowNode() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "node [NODES]", Aliases: []string{"nodes"}, Short: "everything about nodes and their cards",
		Example: `  gctl show node n3       one node
  gctl show node          all of them
  gctl show node n3 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := expandNodes(args)
			if err != nil {
				return err
			}
			c := client.New()
			reply, err := c.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			if err := (&ginfo{}).known(reply, names); err != nil {
				return err
			}
			reply.Nodes = slices.DeleteFunc(reply.Nodes, func(n api.Node) bool {
				return len(names) > 0 && !slices.Contains(names, n.Name)
			})
			slices.SortFunc(reply.Nodes, func(a, b api.Node) int { return hostlist.Compare(a.Name, b.Name) })
			if asJSON {
				return WriteJSON(cmd.OutOrStdout(), reply)
			}
			return writeNodes(screenOf(cmd.OutOrStdout()), reply.Nodes)
		},
		ValidArgsFunction: completeNodes,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, as ginfo --json")
	return cmd
}

// contact is what the time of a node's contact means: one that is there has a session since then.
func contact(n *api.Node) string {
	switch n.State {
	case api.NodeUp, api.NodeDraining, api.NodeDrained:
		if !n.Silent {
			return "SessionSince"
		}
	}
	return "LastSeen"
}

func writeNodes(s *screen, nodes []api.Node) error {
	for i := range nodes {
		n := &nodes[i]
		if i > 0 {
			fmt.Fprintln(s.w)
		}
		writeFields(s, []string{
			"NodeName=" + n.Name + " State=" + string(n.State) + optional(" Reason=", nodeReason(n)),
			fmt.Sprintf("Address=%s Version=%s Containment=%s CardDevices=%s", jobfield.OrNull(n.Address), jobfield.OrNull(n.Version),
				jobfield.OrNull(n.Containment), jobfield.OrNull(n.Devices)),
			fmt.Sprintf("LimitMem=%s LimitProcesses=%s LimitCPU=%s CPUSets=%s", jobfield.OrNull(n.Limits.Memory),
				jobfield.OrNull(n.Limits.Processes), jobfield.OrNull(n.Limits.CPUs), jobfield.OrNull(n.Limits.CPUSets)) +
				optional(" LimitReason=", n.Limits.Reason),
			fmt.Sprintf("CPUAlloc=%d CPUTot=%d Sockets=%d CoresPerSocket=%d ThreadsPerCore=%d AllocMem=%s RealMemory=%s AllocTmp=%s TmpDisk=%s",
				n.CPUsUsed, n.CPUs,
				n.Shape.Sockets, n.Shape.Cores, n.Shape.Threads, jobfield.BytesText(n.MemoryUsed), jobfield.BytesText(n.MemoryBytes),
				jobfield.BytesText(n.TmpUsed), jobfield.BytesText(n.TmpBytes)),
			fmt.Sprintf("Partitions=%s Features=%s", jobfield.OrNull(strings.Join(n.Partitions, ",")),
				jobfield.OrNull(strings.Join(n.Features, ","))) + optional(" Containers=", strings.Join(n.Containers, ",")),
			fmt.Sprintf("BootId=%s %s=%s", jobfield.OrNull(n.BootID), contact(n), jobfield.Stamp(n.LastSeen)),
			"Jobs=" + jobList(n.Jobs),
		})
		if len(n.Cards) > 0 {
			if err := (&ginfo{}).writeCards(s, nodes[i:i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func newShowPartition() *cobra.Command {
	return &cobra.Command{
		Use: "partition [NAME...]", Aliases: []string{"partitions"}, Short: "partitions with their limits and nodes",
		Example: `  gctl show partition         all of them
  gctl show partition gpu     one
  ginfo -s                    how busy they are`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := client.New()
			reply, err := c.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			g := &ginfo{partitions: args}
			if err := g.known(reply, nil); err != nil {
				return err
			}
			for _, p := range reply.Partitions {
				if len(args) == 0 || slices.Contains(args, p.Name) {
					writeFields(screenOf(cmd.OutOrStdout()), append(partitionFields(&p, reply.Nodes), changedLines(p.Name, reply.Changes)...))
				}
			}
			return nil
		},
		ValidArgsFunction: completePartitions,
	}
}

func partitionFields(p *api.Partition, nodes []api.Node) []string {
	var names []string
	cpus, cards := 0, 0
	for i := range nodes {
		if slices.Contains(nodes[i].Partitions, p.Name) {
			names = append(names, nodes[i].Name)
			cpus += nodes[i].CPUs
			cards += len(nodes[i].Cards)
		}
	}
	isDefault := "NO"
	if p.Default {
		isDefault = "YES"
	}
	who := whoMay(p)
	if who == "" {
		who = "AllowUsers=ALL AllowAccounts=ALL"
	}
	return []string{
		"PartitionName=" + p.Name + " Default=" + isDefault + fmt.Sprintf(" State=%s Tier=%d", partitionState(p), p.Tier),
		fmt.Sprintf("DefaultTime=%s MaxTime=%s", jobfield.TimeLimit(int64(p.DefaultTime/time.Second)),
			jobfield.TimeLimit(int64(p.MaxTime/time.Second))),
		nodeBounds(p), who,
		fmt.Sprintf("Nodes=%s TotalNodes=%d TotalCPUs=%d TotalGPUs=%d", jobfield.OrNull(hostlist.Compress(names)), len(names), cpus, cards),
	}
}
