package sacct

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/cmdline/getopt"
	"gangd/pkg/cmdline/lists"
	"gangd/pkg/hostlist"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/cmdline"
	"gangd/pkg/table/accttable"
)

var sstatOptions = cmdline.Rows{
	cmdline.On('a', "allsteps", getopt.None, lists.Exact, "all steps of jobs given without one"),
	cmdline.On('o', "format", getopt.Required, lists.Exact, "these columns"),
	cmdline.Also(cmdline.On(0, "format", getopt.Required, lists.Own, ""), "fields"),
	cmdline.On('h', "help", getopt.None, lists.Partial, "in gangd's words"),
	cmdline.On('e', "helpformat", getopt.None, lists.Exact, "lists the columns"),
	cmdline.On('j', "jobs", getopt.Required, lists.Exact, "jobs or steps, which have to run"),
	cmdline.On(0, "noconvert", getopt.None, lists.Exact, "sizes as they are"),
	cmdline.On('n', "noheader", getopt.None, lists.Exact, "no header"),
	cmdline.On('p', "parsable", getopt.None, lists.Exact, "a | behind each column"),
	cmdline.On('P', "parsable2", getopt.None, lists.Exact, "a | between columns"),
	cmdline.On('i', "pidformat", getopt.None, lists.Partial, "of each rank its first process"),
	cmdline.On(0, "usage", getopt.None, lists.Exact, "one line of help"),
	cmdline.On('v', "verbose", getopt.None, lists.Exact, "nothing more is known"),
	cmdline.On('V', "version", getopt.None, lists.Partial, "names gangd too"),
}

// SstatLists is how each option of sstat is kept.
func SstatLists() lists.Command { return sstatOptions.Lists("sstat") }

// running is one line of sstat: a step that runs.
type running struct {
	job  *api.Job
	step api.Step
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
func SstatColumns() lists.Command {
	c := lists.Command{Name: "sstat --format"}
	for _, name := range sstatNames {
		o := lists.Option{Name: name, List: lists.Partial, Text: noUsage}
		switch name {
		case "JobID", "Nodelist", "NTasks":
			o.List, o.Text = lists.Exact, ""
		case "Pids":
			o.Text = "of each rank of the script its first process"
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
	jobs     []jobRef
	all      bool
	noHeader bool
	format   string
	style    accttable.Style
}

// Sstat is sstat.
func Sstat(args []string, s slurm.Streams) int {
	if lists.Asked(args) {
		SstatLists().Write(s.Out)
		SstatColumns().Write(s.Out)
		return 0
	}
	return exit(sstat(args, s), "sstat", s)
}

func sstat(args []string, s slurm.Streams) error {
	a := &sstatAsk{}
	if err := read("sstat", sstatOptions, args, s, a.set); err != nil {
		return err
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

func (a *sstatAsk) set(name, v string, s slurm.Streams) (err error) {
	switch name {
	case "allsteps":
		a.all = true
	case "format":
		a.format = v
	case "pidformat":
		a.format = sstatPids
	case "helpformat":
		fmt.Fprint(s.Out, accttable.Names(sstatColumns()))
		return done{0}
	case "jobs":
		a.jobs, err = parseJobs(v)
	case "noheader":
		a.noHeader = true
	case "parsable":
		a.style = accttable.Parsable
	case "parsable2":
		a.style = accttable.Parsable2
	case "usage":
		fmt.Fprint(s.Out, "Usage: sstat [options] -j <job(.stepid)>\n\tUse --help for help\n")
		return done{0}
	case "version":
		fmt.Fprintln(s.Out, slurm.Version())
		return done{0}
	case "help":
		writeOptions(s, "sstat", "what steps that run use, by the name and in the columns of Slurm's sstat", SstatLists())
		return done{0}
	}
	return err
}

// one writes the lines of one reference; what does not run is said on stderr and is no
// failure, as in Slurm.
func (a *sstatAsk) one(t *accttable.Table, ref jobRef, s slurm.Streams) error {
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
		for _, r := range a.steps(&reply.Jobs[i], ref.step) {
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
	all := []running{{j, slurm.BatchStep(j)}}
	for _, s := range j.Steps {
		if s.StepID != api.StepBatch && s.StepID != api.StepExtern {
			all = append(all, running{j, s})
		}
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
	case len(all) > 1:
		return all[1:2]
	}
	return nil
}
