package sacct

import (
	"strconv"
	"strings"
	"time"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/accttable"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/people"
)

// field is one column of sacct.
type field struct {
	accttable.Column
	text func(*record) string
	note string // what differs from Slurm's; empty: nothing
}

// Why columns are empty.
const (
	ofTheRanks = "of the ranks, once they have ended: on the line of the script, or of the allocation where there is none"
	ofTheCards = "of the cards alone, where their power is known"
	noUsage    = "empty: gangd does not sample it"
	noFeature  = "empty: gangd has nothing of the kind"
)

func blank(*record) string { return "" }

// ofJob is empty on the lines of steps.
func ofJob(fn func(*record) string) func(*record) string {
	return func(r *record) string {
		if !r.isJob() {
			return ""
		}
		return fn(r)
	}
}

// ofStep is empty on the lines of jobs.
func ofStep(fn func(*record) string) func(*record) string {
	return func(r *record) string {
		if r.isJob() {
			return ""
		}
		return fn(r)
	}
}

func col(name string, width int) accttable.Column { return accttable.Column{Name: name, Width: width} }

func number(name string, width int) accttable.Column {
	return accttable.Column{Name: name, Width: width, Fit: accttable.Whole}
}

func date(name string) accttable.Column {
	return accttable.Column{Name: name, Width: 19, Fit: accttable.Chop}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// fields is every column of 22.05, in the order of --helpformat, and behind them what later ones have more.
var fields []field

func init() { fields = append(table(), later()...) } // not in the declaration: the texts of JSON refer to it

// note is a column of what jobs carry as it was asked for; blank as long as they do not.
func note(name string, width int) field {
	f := field{col(name, width), ofJob(func(r *record) string { return jobfield.Note(name, r.job) }), ""}
	if !jobfield.HasNote(name) {
		f.note = noFeature
	}
	return f
}

// later is the columns of 23.11 and 24.11 that 22.05 has not, or has by another name. They are always taken;
// --helpformat and the format "all" have those of 22.05 alone where that is spoken.
func later() []field {
	file := func(name string) field {
		return field{col(name, 20), ofJob(func(r *record) string {
			return jobfield.Squeue.Name(strings.ToLower(name)).Text(&jobfield.Row{Job: r.job})
		}), ""}
	}
	return []field{
		note("Extra", 14),
		{col("FailedNode", 8), blank, noFeature},
		note("Licenses", 10),
		{number("Planned", 10), ofJob(func(r *record) string { return when.Span(r.reserved()) }), ""},
		{number("PlannedCPU", 10), ofJob(func(r *record) string { return when.Span(r.reserved() * time.Duration(r.cpus())) }), ""},
		{number("PlannedCPURAW", 13), ofJob(func(r *record) string { return decimal(seconds(r.reserved()) * r.cpus()) }), ""},
		{col("QOSREQ", 10), blank, noFeature},
		{number("Restarts", 8), ofJob(func(r *record) string { return decimal(int64(r.job.RestartCount)) }), ""},
		file("StdErr"), file("StdIn"), file("StdOut"),
	}
}

func table() []field {
	return []field{
		{col("Account", 10), func(r *record) string { return r.job.Account }, ""},
		{col("AdminComment", 15), blank, noFeature},
		{number("AllocCPUS", 10), func(r *record) string { return decimal(r.cpus()) }, ""},
		{number("AllocNodes", 10), allocNodes, ""},
		{col("AllocTRES", 10), allocTRES, ""},
		{number("AssocID", 7), blank, noFeature},
		{number("AveCPU", 10), ofStep(aveCPU), "processor time of the step, shared out over its tasks, once it has ended"},
		{col("AveCPUFreq", 10), blank, noUsage},
		{col("AveDiskRead", 14), blank, noUsage},
		{col("AveDiskWrite", 14), blank, noUsage},
		{col("AvePages", 10), blank, noUsage},
		{col("AveRSS", 10), ofRanks(aveRSS), ofTheRanks},
		{col("AveVMSize", 10), blank, noUsage},
		{col("BlockID", 16), blank, noFeature},
		{col("Cluster", 10), func(*record) string { return cmdline.Cluster }, "always " + cmdline.Cluster},
		note("Comment", 14),
		{col("Constraints", 19), ofJob(func(r *record) string { return r.job.Constraint }), ""},
		{col("ConsumedEnergy", 14), energy, ofTheCards},
		{number("ConsumedEnergyRaw", 17), energyRaw, ofTheCards},
		{col("Container", 19), blank, noFeature},
		{number("CPUTime", 10), func(r *record) string { return when.Span(r.elapsed() * time.Duration(r.cpus())) }, ""},
		{number("CPUTimeRAW", 10), func(r *record) string { return decimal(seconds(r.elapsed()) * r.cpus()) }, ""},
		{col("DBIndex", -10), func(r *record) string { return decimal(r.job.ID()) }, "the job id"},
		{col("DerivedExitCode", 15), ofJob((*record).derived), ""},
		{number("Elapsed", 10), func(r *record) string { return when.Span(r.elapsed()) }, ""},
		{number("ElapsedRaw", 10), func(r *record) string { return decimal(seconds(r.elapsed())) }, ""},
		{date("Eligible"), eligible, ""},
		{date("End"), func(r *record) string { return slurm.Stamp(r.endTime(), "Unknown") }, ""},
		{col("ExitCode", 8), (*record).exit, "of an earlier attempt of a job that ran again, what its trigger rank ended with"},
		{col("Flags", 19), blank, noFeature},
		{number("GID", 6), ofJob(func(r *record) string { return decimal(int64(r.job.GID)) }), ""},
		{col("Group", 9), ofJob(func(r *record) string { return groupName(r.job.GID) }), ""},
		{col("JobID", -12), (*record).id, ""},
		{col("JobIDRaw", -12), (*record).raw, ""},
		{col("JobName", 10), jobName, ""},
		{col("Layout", 9), blank, noFeature},
		{col("MaxDiskRead", 12), blank, noUsage},
		{col("MaxDiskReadNode", 15), blank, noUsage},
		{col("MaxDiskReadTask", 15), blank, noUsage},
		{col("MaxDiskWrite", 12), blank, noUsage},
		{col("MaxDiskWriteNode", 16), blank, noUsage},
		{col("MaxDiskWriteTask", 16), blank, noUsage},
		{col("MaxPages", 8), blank, noUsage},
		{col("MaxPagesNode", 12), blank, noUsage},
		{col("MaxPagesTask", 14), blank, noUsage},
		{col("MaxRSS", 10), ofStep(maxRSS), "of the step's largest process, once it has ended"},
		{col("MaxRSSNode", 10), ofRanks(maxRSSNode), ofTheRanks},
		{col("MaxRSSTask", 10), ofRanks(maxRSSTask), ofTheRanks},
		{col("MaxVMSize", 10), blank, noUsage},
		{col("MaxVMSizeNode", 14), blank, noUsage},
		{col("MaxVMSizeTask", 14), blank, noUsage},
		{col("McsLabel", 12), blank, noFeature},
		{col("MinCPU", 10), ofRanks(minCPU), ofTheRanks},
		{col("MinCPUNode", 10), ofRanks(minCPUNode), ofTheRanks},
		{col("MinCPUTask", 10), ofRanks(minCPUTask), ofTheRanks},
		{number("NCPUS", 10), func(r *record) string { return decimal(r.cpus()) }, ""},
		{number("NNodes", 8), func(r *record) string { return decimal(r.nodes()) }, ""},
		{col("NodeList", 15), nodeList, ""},
		{number("NTasks", 8), ofStep(func(r *record) string { return strconv.Itoa(r.step.Tasks) }), ""},
		{col("Partition", 10), ofJob(func(r *record) string { return r.job.Partition }), ""},
		{number("Priority", 10), ofJob(func(r *record) string { return decimal(jobfield.SlurmPriority(r.job)) }),
			"the same for all whom nobody raised or lowered"},
		{col("QOS", 10), blank, noFeature},
		{number("QOSRAW", 6), blank, noFeature},
		{col("Reason", 22), ofJob(waitReason), "why it waits now; nothing is kept of why it waited"},
		{col("ReqCPUFreq", 10), ofJob(unknown), noFeature},
		{col("ReqCPUFreqGov", 13), ofJob(unknown), noFeature},
		{col("ReqCPUFreqMax", 13), ofJob(unknown), noFeature},
		{col("ReqCPUFreqMin", 13), ofJob(unknown), noFeature},
		{number("ReqCPUS", 8), func(r *record) string { return decimal(r.cpus()) }, ""},
		{col("ReqMem", 10), ofJob(reqMem), "empty where the job asked for no memory"},
		{number("ReqNodes", 8), ofJob(func(r *record) string { return decimal(r.requested().Nodes) }), ""},
		{col("ReqTRES", 10), ofJob(func(r *record) string { return r.requested().ByName() }), ""},
		{col("Reservation", 20), ofJob(func(r *record) string { return r.job.Reservation }), ""},
		{col("ReservationId", 8), blank, noFeature},
		{number("Reserved", 10), ofJob(func(r *record) string { return when.Span(r.reserved()) }), ""},
		{number("ResvCPU", 10), ofJob(func(r *record) string { return when.Span(r.reserved() * time.Duration(r.cpus())) }), ""},
		{number("ResvCPURAW", 10), ofJob(func(r *record) string { return decimal(seconds(r.reserved()) * r.cpus()) }), ""},
		{date("Start"), start, ""},
		{col("State", 10), (*record).state, ""},
		{date("Submit"), submitted, ""},
		{col("SubmitLine", 20), blank, "empty: the command line of a submission is not kept"},
		{number("Suspended", 10), func(*record) string { return "00:00:00" }, "always 00:00:00: jobs are never suspended"},
		{col("SystemComment", 15), (*record).why, "why the run or the step ended, in the words of gacct"},
		{number("SystemCPU", 10), blank, noUsage},
		{col("Timelimit", 10), ofJob(func(r *record) string { return when.Limit(r.job.TimeLimitSeconds) }), ""},
		{col("TimelimitRaw", 10), ofJob(rawLimit), ""},
		{number("TotalCPU", 10), totalCPU, "of what has ended"},
		{col("TRESUsageInAve", 14), usageAve, ofTheRanks},
		{col("TRESUsageInMax", 14), blank, noUsage},
		{col("TRESUsageInMaxNode", 18), blank, noUsage},
		{col("TRESUsageInMaxTask", 18), blank, noUsage},
		{col("TRESUsageInMin", 14), blank, noUsage},
		{col("TRESUsageInMinNode", 18), blank, noUsage},
		{col("TRESUsageInMinTask", 18), blank, noUsage},
		{col("TRESUsageInTot", 14), usageTot, ofTheRanks},
		{col("TRESUsageOutAve", 15), blank, noUsage},
		{col("TRESUsageOutMax", 15), blank, noUsage},
		{col("TRESUsageOutMaxNode", 19), blank, noUsage},
		{col("TRESUsageOutMaxTask", 19), blank, noUsage},
		{col("TRESUsageOutMin", 15), blank, noUsage},
		{col("TRESUsageOutMinNode", 19), blank, noUsage},
		{col("TRESUsageOutMinTask", 19), blank, noUsage},
		{col("TRESUsageOutTot", 15), blank, noUsage},
		{number("UID", 6), ofJob(func(r *record) string { return decimal(int64(r.job.UID)) }), ""},
		{col("User", 9), ofJob(func(r *record) string { return r.job.User }), ""},
		{number("UserCPU", 10), blank, noUsage},
		{col("WCKey", 10), blank, noFeature},
		{number("WCKeyID", 10), blank, noFeature},
		{col("WorkDir", 20), ofJob(func(r *record) string { return r.job.WorkDir }), ""},
	}
}

// removed are columns of older Slurms, each with what took its place.
var removed = map[string]string{"allocgres": "AllocTRES", "reqgres": "ReqTRES"}

// The formats of -o's shorthands.
const (
	formatDefault = "jobid,jobname,partition,account,alloccpus,state,exitcode"
	formatBrief   = "jobid,state,exitcode"
	formatLong    = "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode," +
		"maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,alloccpus," +
		"elapsed,state,exitcode,avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread," +
		"maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,reqtres,alloctres," +
		"tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,tresusageinmin,tresusageinminnode,tresusageinmintask," +
		"tresusageintot,tresusageoutmax,tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot"
)

// fieldColumns are the columns of the table; of 22.05's alone if old.
func fieldColumns(old bool) []accttable.Column {
	n := len(fields)
	if old {
		n -= len(later())
	}
	out := make([]accttable.Column, n)
	for i := range out {
		out[i] = fields[i].Column
	}
	return out
}

// columns is how each column of sacct is kept, by the name of an option of --format.
func columns() cmdline.Lists {
	c := cmdline.Lists{Name: "sacct --format"}
	for i := range fields {
		o := cmdline.Kept{Name: fields[i].Name, List: cmdline.Exact}
		if fields[i].note != "" {
			o.List, o.Text = cmdline.Partial, fields[i].note
		}
		c.Options = append(c.Options, o)
	}
	return c
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func unknown(*record) string { return "Unknown" }

func allocNodes(r *record) string {
	if r.attempt == nil {
		return "0"
	}
	return decimal(r.nodes())
}

func allocTRES(r *record) string {
	t, ok := r.allocated()
	if !ok {
		return ""
	}
	return t.ByName()
}

func eligible(r *record) string {
	if !r.isJob() {
		return slurm.Stamp(r.start(), "Unknown")
	}
	return slurm.Stamp(r.eligibleTime(), "Unknown")
}

func (r *record) eligibleTime() time.Time {
	if r.job.Held != "" || r.job.Reason == "Dependency" && r.waits() {
		return time.Time{}
	}
	return r.job.EligibleTime
}

// reserved is how long it waited, or has waited, since it might have begun.
func (r *record) reserved() time.Duration {
	from, to := r.eligibleTime(), r.start()
	if to.IsZero() {
		if !r.waits() {
			to = r.endTime()
		} else {
			to = r.now
		}
	}
	if from.IsZero() || to.Before(from) {
		return 0
	}
	return time.Duration(to.Unix()-from.Unix()) * time.Second
}

func start(r *record) string {
	if r.attempt == nil && r.step == nil && r.job.State.Ended() {
		return "None"
	}
	return slurm.Stamp(r.start(), "Unknown")
}

func submitted(r *record) string {
	if r.isJob() {
		return slurm.Stamp(r.job.SubmitTime, "Unknown")
	}
	return slurm.Stamp(r.start(), "Unknown")
}

func jobName(r *record) string {
	if r.isJob() {
		return r.job.Name
	}
	return r.step.Name
}

func nodeList(r *record) string {
	var nodes []string
	switch {
	case r.step != nil:
		nodes = r.step.Nodes
	case r.attempt != nil:
		nodes = r.attempt.Nodes
	}
	if len(nodes) == 0 {
		return "None assigned"
	}
	return hostlist.Compress(nodes)
}

func waitReason(r *record) string {
	if r.waits() {
		return r.job.Reason
	}
	return "None"
}

func reqMem(r *record) string {
	n := r.requested().Memory
	if n == 0 {
		return ""
	}
	return size(n, 'M', r.view)
}

func rawLimit(r *record) string {
	if r.job.TimeLimitSeconds == 0 {
		return "UNLIMITED"
	}
	return decimal((r.job.TimeLimitSeconds + 59) / 60)
}

func maxRSS(r *record) string {
	if r.step.MaxRSS == 0 {
		return ""
	}
	return size(r.step.MaxRSS, 'K', r.view)
}

func aveCPU(r *record) string {
	if r.step.EndTime.IsZero() || r.step.Tasks == 0 {
		return ""
	}
	return when.Span(time.Duration(r.step.CPUTime / float64(r.step.Tasks) * float64(time.Second)))
}

func totalCPU(r *record) string {
	if r.step != nil {
		return when.CPUSpan(r.step.CPUTime)
	}
	if r.attempt == nil {
		return when.CPUSpan(0)
	}
	return when.CPUSpan(usedCPU(r.attempt))
}

// groupName is a group's name, a variable for tests.
var groupName = people.Here.GroupText
