package sacct

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/accttable"
	"gangd/pkg/slurm"
)

var sstatCommand = &cmdline.Command[sstatAsk]{Name: "sstat", Terse: true, Usage: "Usage: sstat [options] -j <job(.stepid)>\n\tUse " +
	"--help for help\n",
	Does: "what steps that run use, by the name and in the columns of Slurm's sstat",
	More: func() []cmdline.Lists { return []cmdline.Lists{SstatColumns()} }, Options: []cmdline.Option[sstatAsk]{
		{Long: "allsteps", Short: 'a', List: cmdline.Exact, Help: "all steps of jobs given without one",
			Set: cmdline.Flag(func(a *sstatAsk) *bool { return &a.all })},
		{Long: "format", Short: 'o', Names: "format fields", Kind: cmdline.Required, List: cmdline.Exact, Help: "these columns",
			Set: cmdline.Word(func(a *sstatAsk) *string { return &a.format })},
		{Long: "help", Short: 'h', List: cmdline.Partial, Help: "in gangd's words"},
		{Long: "helpformat", Short: 'e', List: cmdline.Exact, Help: "lists the columns", Set: func(a *sstatAsk, _ string) error {
			fmt.Fprint(a.Out, accttable.Names(sstatColumns()))
			return cmdline.ErrDone
		}},
		{Long: "jobs", Short: 'j', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs or steps, which have to run",
			Set: func(a *sstatAsk, v string) (err error) { a.jobs, err = parseJobs(v); return err }},
		{Long: "noconvert", List: cmdline.Exact, Help: "sizes as they are", Set: cmdline.Flag(func(a *sstatAsk) *bool { return &a.plain })},
		{Long: "noheader", Short: 'n', List: cmdline.Exact, Help: "no header", Set: cmdline.Flag(func(a *sstatAsk) *bool { return &a.noHeader })},
		{Long: "parsable", Short: 'p', List: cmdline.Exact, Help: "a | behind each column",
			Set: func(a *sstatAsk, _ string) error { a.style = accttable.Parsable; return nil }},
		{Long: "parsable2", Short: 'P', List: cmdline.Exact, Help: "a | between columns",
			Set: func(a *sstatAsk, _ string) error { a.style = accttable.Parsable2; return nil }},
		{Long: "pidformat", Short: 'i', List: cmdline.Partial, Help: "of each rank its first process",
			Set: func(a *sstatAsk, _ string) error { a.format = sstatPids; return nil }},
		{Long: "usage", List: cmdline.Exact, Help: "one line of help"},
		{Long: "verbose", Short: 'v', List: cmdline.Exact, Help: "nothing more is known"},
		slurm.VersionRow[sstatAsk](),
	}}

// running is one line of sstat: a step that runs.
type running struct {
	job     *api.Job
	step    api.Step
	attempt *api.Attempt // nil: nothing is known of it
	plain   bool         // --noconvert
}

// sstatOwn are the columns that sacct does not have, or has with another width.
var sstatOwn = map[string]accttable.Column{
	"jobid":             col("JobID", -12),
	"nodelist":          col("Nodelist", 20),
	"pids":              col("Pids", 20),
	"consumedenergyraw": number("ConsumedEnergyRaw", 17),
}

// sstatNames are the columns in the order of --helpformat.
var sstatNames = strings.Fields(`AveCPU AveCPUFreq AveDiskRead AveDiskWrite AvePages AveRSS AveVMSize ConsumedEnergy ConsumedEnergyRaw JobID
	MaxDiskRead MaxDiskReadNode MaxDiskReadTask MaxDiskWrite MaxDiskWriteNode MaxDiskWriteTask MaxPages MaxPagesNode MaxPagesTask
	MaxRSS MaxRSSNode MaxRSSTask MaxVMSize MaxVMSizeNode MaxVMSizeTask MinCPU MinCPUNode MinCPUTask Nodelist NTasks Pids ReqCPUFreq
	ReqCPUFreqMin ReqCPUFreqMax ReqCPUFreqGov TRESUsageInAve TRESUsageInMax TRESUsageInMaxNode TRESUsageInMaxTask TRESUsageInMin
	TRESUsageInMinNode TRESUsageInMinTask TRESUsageInTot TRESUsageOutAve TRESUsageOutMax TRESUsageOutMaxNode TRESUsageOutMaxTask
	TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask TRESUsageOutTot`)

const (
	sstatDefault = "jobid,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,maxpages,maxpagesnode," +
		"maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov," +
		"consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask," +
		"avediskwrite,tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,tresusageinmin,tresusageinminnode," +
		"tresusageinmintask,tresusageintot,tresusageoutave,tresusageoutmax,tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutmin," +
		"tresusageoutminnode,tresusageoutmintask,tresusageouttot"
	sstatPids = "jobid,nodelist,pids"
)

func sstatColumns() []accttable.Column {
	var out []accttable.Column
	for _, name := range sstatNames {
		if c, own := sstatOwn[strings.ToLower(name)]; own {
			out = append(out, c)
			continue
		}
		for i := range fields {
			if fields[i].Name == name {
				out = append(out, fields[i].Column)
			}
		}
	}
	return out
}

// SstatColumns is how each column of sstat is kept.
func SstatColumns() cmdline.Lists {
	c := cmdline.Lists{Name: "sstat --format"}
	for _, name := range sstatNames {
		o := cmdline.Kept{Name: name, List: cmdline.Partial, Text: noUsage}
		switch name {
		case "JobID", "Nodelist", "NTasks":
			o.List, o.Text = cmdline.Exact, ""
		case "Pids":
			o.Text = "of each rank of the script its first process"
		default:
			if sstatUses[name] != nil {
				o.Text = ofTheParts
			}
		}
		c.Options = append(c.Options, o)
	}
	return c
}

func (r *running) text(column string) string {
	switch column {
	case "JobID":
		return (&record{job: r.job, step: &r.step}).id()
	case "Nodelist":
		return hostlist.Compress(r.step.Nodes)
	case "NTasks":
		return strconv.Itoa(r.step.Tasks)
	case "Pids":
		return r.pids()
	}
	if of := sstatUses[column]; of != nil && r.step.StepID == api.StepBatch && r.attempt != nil && len(r.attempt.Measures) > 0 {
		return of(r.attempt, view{plain: r.plain})
	}
	return ""
}

func (r *running) pids() string {
	if r.step.StepID != api.StepBatch {
		return ""
	}
	var out []string
	for i := range r.job.Ranks {
		if p := r.job.Ranks[i].PID; p != 0 {
			out = append(out, strconv.Itoa(p))
		}
	}
	return strings.Join(out, ",")
}

// sstatAsk is a call of sstat.
type sstatAsk struct {
	cmdline.Streams
	jobs     []jobRef
	all      bool
	plain    bool
	noHeader bool
	format   string
	style    accttable.Style
}

// Sstat is sstat.
func Sstat(args []string, s cmdline.Streams) int {
	return cmdline.Exit(sstatCommand.Print(sstat(args, s), s))
}

func sstat(args []string, s cmdline.Streams) error {
	a := &sstatAsk{Streams: s}
	rest, err := sstatCommand.Parse(a, args, s)
	if err != nil {
		return err
	}
	for _, r := range rest { // as behind --jobs
		more, err := parseJobs(r)
		if err != nil {
			return err
		}
		a.jobs = append(a.jobs, more...)
	}
	chosen, err := chooseColumns(a.format, sstatDefault, sstatColumns())
	if err != nil {
		return err
	}
	if len(a.jobs) == 0 {
		return fmt.Errorf("You didn't give me any jobs to stat.") //nolint:staticcheck // Slurm's words
	}
	t := &accttable.Table{Columns: chosen, Style: a.style}
	if !a.noHeader {
		fmt.Fprint(s.Out, t.Header())
	}
	for _, ref := range a.jobs {
		if err := a.one(t, ref, s); err != nil {
			return err
		}
	}
	return nil
}

// one writes the lines of one reference; what does not run is said on stderr and is no
// failure, as in Slurm.
func (a *sstatAsk) one(t *accttable.Table, ref jobRef, s cmdline.Streams) error {
	reply, err := client.New().Jobs(context.Background(), &api.JobQuery{Refs: []api.JobRef{ref.JobRef}, All: true})
	if api.CodeOf(err) == api.CodeNotFound {
		s.Errorf("sstat", "couldn't get steps for job %s", ref.JobRef)
		return nil
	}
	if err != nil {
		return err
	}
	shown := 0
	for i := range reply.Jobs {
		steps := a.steps(&reply.Jobs[i], ref.step)
		if len(steps) > 0 && steps[0].step.StepID == api.StepBatch {
			d, err := client.New().Job(context.Background(), api.JobRef{ID: reply.Jobs[i].JobID, Index: -1})
			if err != nil {
				return err
			}
			if n := len(d.Attempts); n > 0 && d.Attempts[n-1].EndTime.IsZero() {
				steps[0].attempt = &d.Attempts[n-1]
			}
		}
		for _, r := range steps {
			values := make([]string, len(t.Columns))
			for k := range t.Columns {
				values[k] = r.text(t.Columns[k].Name)
			}
			fmt.Fprint(s.Out, t.Row(values))
			shown++
		}
	}
	switch {
	case shown > 0:
	case ref.step != "":
		s.Errorf("sstat", "StepId=%s.%s not found running.", ref.JobRef, ref.step)
	default:
		s.Errorf("sstat", "No steps running for job %s", ref.JobRef)
	}
	return nil
}

// steps are those of a job that are shown: the one named, all, or the first that is not the
// script.
func (a *sstatAsk) steps(j *api.Job, step string) []running {
	if j.State != api.JobRunning && j.State != api.JobCompleting {
		return nil
	}
	var all []running
	for _, s := range jobs.RunningSteps(j) {
		all = append(all, running{job: j, step: s, plain: a.plain})
	}
	switch {
	case step != "":
		for _, r := range all {
			if r.step.StepID == step {
				return []running{r}
			}
		}
		return nil
	case a.all:
		return all
	}
	i := slices.IndexFunc(all, func(r running) bool { return r.step.StepID != api.StepBatch })
	if i < 0 {
		return nil
	}
	return all[i : i+1]
}
