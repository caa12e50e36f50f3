package jobfield

import (
	"cmp"
	"fmt"
	"os/user"
	"path/filepath"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/hostlist"
	"gangd/pkg/outpath"
)

// squeues is what squeue alone has, or writes otherwise than gqueue. What gangd has nothing
// of is written as squeue writes it where the feature is not used.
var squeues = []Field{
	{Letter: 'p', Names: names("priority"), Head: "PRIORITY", Text: func(r *Row) string { return fmt.Sprintf("%.14f", float64(slurmPriority(r))/(1<<32-1)) }, Compare: number(slurmPriority)},
	value('Q', names("prioritylong"), "PRIORITY", slurmPriority),
	nodes('R', names("reasonlist"), "NODELIST(REASON)", reasonList),
	text('o', names("command"), "COMMAND", func(r *Row) string { return OrNull(Command(r.Job)) }),
	text('t', names("statecompact"), "ST", code), // ordered by its letters
	text('T', names("state"), "STATE", func(r *Row) string { return SlurmState(r.Job) }),
	value(0, names("exit_code"), "EXIT_CODE", waitStatus),
	value(0, names("derivedec"), "DERIVED_EC", waitStatus),
	value(0, names("ntpernode"), "NTASKS_PER_NODE", func(r *Row) int64 { return int64(r.RanksPerNode) }),
	text(0, names("stderr"), "STDERR", func(r *Row) string { return outputPath(r, cmp.Or(r.StdErr, r.StdOut)) }),
	text(0, names("stdin"), "STDIN", func(r *Row) string { return cmp.Or(r.StdIn, "/dev/null") }),
	text(0, names("stdout"), "STDOUT", func(r *Row) string { return outputPath(r, r.StdOut) }),
	value(0, names("maxcpus"), "MAX_CPUS", CPUs),
	value(0, names("maxnodes"), "MAX_NODES", NodeCount),
	lasting(0, names("mintime"), "TIME_MIN", minTime, func(r *Row) int64 { return r.TimeMinSeconds }),
	text(0, names("tres-alloc"), "TRES_ALLOC", tresAlloc),
	constant(0, names("requeue"), "REQUEUE", "1"),

	constant(0, names("admin_comment"), "ADMIN_COMMENT", "(null)"),
	constant(0, names("allocsid"), "ALLOC_SID", "0"),
	constant(0, names("associd"), "ASSOC_ID", "0"),
	constant(0, names("boardspernode"), "BOARDS_PER_NODE", "0"),
	constant(0, names("burstbuffer"), "BURST_BUFFER", "(null)"),
	constant(0, names("burstbufferstate"), "BURST_BUFFER_STATE", "(null)"),
	constant(0, names("cluster"), "CLUSTER", "gangd"),
	constant(0, names("clusterfeature"), "CLUSTER_FEATURES", "(null)"),
	constant(0, names("container"), "CONTAINER", "(null)"),
	constant(0, names("cpus-per-tres"), "CPUS_PER_TRES", "N/A"),
	constant(0, names("delayboot"), "DELAY_BOOT", "0:00"),
	text(0, names("hetjobid", "packjobid"), "HET_JOB_ID", ofComponent(func(r *Row) string { return decimal(r.JobID) })),
	text(0, names("hetjobidset", "packjobidset"), "HET_JOB_ID_SET", ofComponent(func(r *Row) string { return decimal(r.JobID) })),
	text(0, names("hetjoboffset", "packjoboffset"), "HET_JOB_OFFSET", ofComponent(func(r *Row) string { return strconv.Itoa(*r.Component) })),
	constant(0, names("lastschedeval"), "LAST_SCHED_EVAL", "N/A"),
	constant(0, names("mcslabel"), "MCSLABEL", "(null)"),
	constant(0, names("mem-per-tres"), "MEM_PER_TRES", "N/A"),
	constant(0, names("network"), "NETWORK", "(null)"),
	constant(0, names("ntperboard"), "NTASKS_PER_BOARD", "0"),
	constant(0, names("ntpercore"), "NTASKS_PER_CORE", "N/A"),
	constant(0, names("ntpersocket"), "NTASKS_PER_SOCKET", "N/A"),
	constant(0, names("origin"), "ORIGIN", "NA"),
	constant(0, names("originraw"), "ORIGIN_RAW", "NA"),
	constant(0, names("preempttime"), "PREEMPT_TIME", "N/A"),
	text(0, names("prefer"), "PREFER", func(r *Row) string { return OrNull(r.Prefer) }),
	constant(0, names("profile"), "PROFILE", "NotSet"),
	constant(0, names("reboot"), "REBOOT", "0"),
	constant(0, names("reqswitch"), "REQ_SWITCH", "0"),
	constant(0, names("resizetime"), "RESIZE_TIME", "N/A"),
	constant(0, names("siblingsactive"), "ACTIVE_SIBLINGS", "NA"),
	constant(0, names("siblingsactiveraw"), "ACTIVE_SIBLINGS_RAW", "NA"),
	constant(0, names("siblingsviable"), "VIABLE_SIBLINGS", "NA"),
	constant(0, names("siblingsviableraw"), "VIALBLE_SIBLINGS_RAW", "NA"), // as Slurm spells it
	constant(0, names("sperboard"), "SOCKETS_PER_BOARD", "0"),
	constant(0, names("system_comment"), "SYSTEM_COMMENT", "(null)"),
	constant(0, names("wait4switch"), "WAIT4SWITCH", "0:00"),
	constant(0, names("tres-bind"), "TRES_BIND", "N/A"),
	constant(0, names("tres-freq"), "TRES_FREQ", "N/A"),
	constant(0, names("tres-per-job"), "TRES_PER_JOB", "N/A"),
	constant(0, names("tres-per-socket"), "TRES_PER_SOCKET", "N/A"),
	constant(0, names("tres-per-task"), "TRES_PER_TASK", "N/A"),
}

// Command is the script's path and arguments; nothing of one that was no file.
func Command(j *api.Job) string {
	if j.Command == "wrap" || j.Command == "stdin" {
		return ""
	}
	return j.Command
}

func code(r *Row) string {
	if specialExit(r.Job) {
		return "SE"
	}
	return r.State.Code()
}

func specialExit(j *api.Job) bool {
	return j.State == api.JobPending && j.Reason == api.ReasonSpecialExit
}

// SlurmState is Slurm's word for the state of a job.
func SlurmState(j *api.Job) string {
	switch {
	case j.State == api.JobReserved:
		return "CONFIGURING"
	case specialExit(j):
		return "SPECIAL_EXIT"
	}
	return string(j.State)
}

// reasonList is where a job is, or in parentheses why it waits or how it failed.
func reasonList(r *Row) string {
	switch r.State {
	case api.JobPending, api.JobFailed, api.JobTimeout, api.JobOutOfMemory, api.JobDeadline:
		return "(" + reason(r) + ")"
	}
	return hostlist.Compress(r.Nodes)
}

// waitStatus is the status of wait(2), which squeue prints as it is.
func waitStatus(r *Row) int64 {
	switch {
	case r.Signal != 0:
		return int64(r.Signal)
	case r.ExitCode == nil || !r.State.Ended():
		return 0
	}
	return int64(*r.ExitCode) << 8
}

// outputPath is the file of rank 0, or of the batch script.
func outputPath(r *Row, pattern string) string {
	path := outpath.Expand(pattern, outpath.Vars{Job: r.JobID, ArrayJob: arrayID(r), ArrayIndex: r.ArrayIndex,
		Name: r.Name, User: r.User, Node: batchHost(r)})
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(r.WorkDir, path)
	}
	return path
}

func minTime(r *Row) string {
	if r.TimeMinSeconds == 0 {
		return "0:00"
	}
	return TimeLimit(r.TimeMinSeconds)
}

// tresAlloc is what the job has, or asks for while it waits.
func tresAlloc(r *Row) string {
	out := "cpu=" + decimal(CPUs(r))
	if m := memoryPerNode(r); m > 0 {
		out += ",mem=" + exactly(m*NodeCount(r)>>20)
	}
	out += ",node=" + decimal(NodeCount(r)) + ",billing=" + decimal(CPUs(r))
	if g := GPUs(r); g > 0 {
		out += ",gres/gpu=" + decimal(g)
	}
	return out
}

// GroupName is the name of a group as this host knows it, else its number. A variable for the
// golden tables.
var GroupName = func(gid uint32) string {
	id := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}

// Slurm's numbers of priorities, of which 0 says that a job is held: what every job has with
// priority/basic that nobody raised or lowered, and the largest.
const (
	usualPriority = 4294901760
	mostPriority  = 1<<32 - 2
)

// SlurmPriority is a job's priority on Slurm's scale.
func SlurmPriority(j *api.Job) int64 {
	if j.State == api.JobPending && j.Held != "" {
		return 0
	}
	return min(max(usualPriority+j.Priority, 1), mostPriority)
}

// OwnPriority is a priority that was asked for on Slurm's scale.
func OwnPriority(slurms int64) int64 { return slurms - usualPriority }

func slurmPriority(r *Row) int64 { return SlurmPriority(r.Job) }
