package jobfield

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/outpath"
)

// squeues is what squeue alone has, or writes otherwise than gqueue. What gangd has nothing
// of is written as squeue writes it where the feature is not used.
var squeues = []Field{
	{Letter: 'p', Names: names("priority"), Head: "PRIORITY", Text: func(r *Row) string {
		return fmt.Sprintf("%.14f",
			float64(slurmPriority(r))/(1<<32-1))
	}, Compare: number(slurmPriority)},
	value('Q', names("prioritylong"), "PRIORITY", slurmPriority),
	nodes('R', names("reasonlist"), "NODELIST(REASON)", reasonList),
	text('o', names("command"), "COMMAND", func(r *Row) string { return OrNull(Command(r.Job)) }),
	text('t', names("statecompact"), "ST", code), // ordered by its letters
	text('T', names("state"), "STATE", func(r *Row) string { return SlurmState(r.Job) }),
	text('b', names("gres", "tres-per-node"), "TRES_PER_NODE", tresPerNode),
	value(0, names("exit_code"), "EXIT_CODE", waitStatus),
	value(0, names("derivedec"), "DERIVED_EC", waitStatus),
	value(0, names("ntpernode"), "NTASKS_PER_NODE", func(r *Row) int64 { return int64(r.RanksPerNode) }),
	text(0, names("stderr"), "STDERR", func(r *Row) string { return OutputPath(r, JobID(r), cmp.Or(r.StdErr, r.StdOut)) }),
	text(0, names("stdin"), "STDIN", func(r *Row) string { return cmp.Or(r.StdIn, "/dev/null") }),
	text(0, names("stdout"), "STDOUT", func(r *Row) string { return OutputPath(r, JobID(r), r.StdOut) }),
	value(0, names("maxcpus"), "MAX_CPUS", CPUs),
	value(0, names("maxnodes"), "MAX_NODES", NodeCount),
	lasting(0, names("mintime"), "TIME_MIN", minTime, func(r *Row) int64 { return r.TimeMinSeconds }),
	text(0, names("tres-alloc"), "TRES_ALLOC", func(r *Row) string { return amount(r).InOrder() }),
	value(0, names("requeue"), "REQUEUE", func(r *Row) int64 { return bit(Requeues(r.Job)) }),

	constant(0, names("admin_comment"), "ADMIN_COMMENT", "(null)"),
	constant(0, names("allocsid"), "ALLOC_SID", "0"),
	constant(0, names("associd"), "ASSOC_ID", "0"),
	constant(0, names("boardspernode"), "BOARDS_PER_NODE", "0"),
	constant(0, names("burstbuffer"), "BURST_BUFFER", "(null)"),
	constant(0, names("burstbufferstate"), "BURST_BUFFER_STATE", "(null)"),
	constant(0, names("cluster"), "CLUSTER", "gangd"),
	constant(0, names("clusterfeature"), "CLUSTER_FEATURES", "(null)"),
	constant(0, names("container"), "CONTAINER", "(null)"),
	text(0, names("cpus-per-tres"), "CPUS_PER_TRES", tresWord("CpusPerTres")),
	constant(0, names("delayboot"), "DELAY_BOOT", "0:00"),
	text(0, names("hetjobid", "packjobid"), "HET_JOB_ID", ofComponent(func(r *Row) string { return decimal(r.JobID) })),
	text(0, names("hetjobidset", "packjobidset"), "HET_JOB_ID_SET", ofComponent(func(r *Row) string {
		return cmp.Or(r.ComponentIDs,
			decimal(r.JobID))
	})),
	text(0, names("hetjoboffset", "packjoboffset"), "HET_JOB_OFFSET", ofComponent(func(r *Row) string { return strconv.Itoa(*r.Component) })),
	constant(0, names("lastschedeval"), "LAST_SCHED_EVAL", "N/A"),
	constant(0, names("mcslabel"), "MCSLABEL", "(null)"),
	text(0, names("mem-per-tres"), "MEM_PER_TRES", tresWord("MemPerTres")),
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
	value(0, names("reqswitch"), "REQ_SWITCH", func(r *Row) int64 { return int64(r.Switches) }),
	constant(0, names("resizetime"), "RESIZE_TIME", "N/A"),
	constant(0, names("siblingsactive"), "ACTIVE_SIBLINGS", "NA"),
	constant(0, names("siblingsactiveraw"), "ACTIVE_SIBLINGS_RAW", "NA"),
	constant(0, names("siblingsviable"), "VIABLE_SIBLINGS", "NA"),
	constant(0, names("siblingsviableraw"), "VIALBLE_SIBLINGS_RAW", "NA"), // as Slurm spells it
	constant(0, names("sperboard"), "SOCKETS_PER_BOARD", "0"),
	constant(0, names("system_comment"), "SYSTEM_COMMENT", "(null)"),
	constant(0, names("wait4switch"), "WAIT4SWITCH", "0:00"),
	text(0, names("tres-bind"), "TRES_BIND", tresWord("TresBind")),
	text(0, names("tres-freq"), "TRES_FREQ", tresWord("TresFreq")),
	text(0, names("tres-per-job"), "TRES_PER_JOB", tresWord("TresPerJob")),
	text(0, names("tres-per-socket"), "TRES_PER_SOCKET", tresWord("TresPerSocket")),
	text(0, names("tres-per-task"), "TRES_PER_TASK", tresWord("TresPerTask")),
}

// Requeues reports whether a job may be queued again by who asks for it.
func Requeues(j *api.Job) bool {
	b, ok := j.Budgets[api.CauseRequeued]
	return !ok || b.Limit != 0
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// TRES are the words in which cards were asked for, or, of a job that has none, how they are counted, by scontrol's
// names for them; gres is what a card is called there.
func TRES(j *api.Job, gres string) map[string]string {
	a := cmp.Or(j.Asked, &api.Asked{})
	out := map[string]string{}
	counted := func(name, count string) {
		if count != "" && count != "0" {
			out[name] = gres + ":" + count
		}
	}
	counted("CpusPerTres", strconv.Itoa(a.CPUsPerGPU))
	counted("MemPerTres", decimal(a.MemoryPerGPU>>20))
	counted("TresPerJob", a.GPUs)
	counted("TresPerSocket", a.GPUsPerSocket)
	counted("TresPerTask", a.GPUsPerTask)
	switch {
	case a.GPUsPerNode != "":
		counted("TresPerNode", a.GPUsPerNode)
	case a.GPUs != "" || a.GPUsPerTask != "" || a.GPUsPerSocket != "":
	case j.GPUsPerNode > 0:
		counted("TresPerNode", strconv.Itoa(j.GPUsPerNode))
	case a.CardsBy == "gres":
		counted("TresPerNode", strconv.Itoa(j.GPUsPerRank))
	default:
		counted("TresPerTask", strconv.Itoa(j.GPUsPerRank))
	}
	if a.GPUBind != "" {
		out["TresBind"] = "gpu:" + a.GPUBind
	}
	if a.GPUFreq != "" {
		out["TresFreq"] = "gpu:" + a.GPUFreq
	}
	return out
}

// tresWord is one of [TRES], as 22.05 calls cards.
func tresWord(name string) func(*Row) string {
	return func(r *Row) string { return orNA(TRES(r.Job, "gres:gpu")[name]) }
}

// tresPerNode is the cards of a node, where they were asked for so. Of a job of gsubmit's own words they are counted.
func tresPerNode(r *Row) string {
	if r.Asked != nil {
		return tresWord("TresPerNode")(r)
	}
	return cardsOfNode(r)
}

// Command is the script's path; nothing of one that was no file.
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

// noTask is what Slurm writes for %a of an array's elements together.
const noTask = 4294967294

// OutputPath is the file of rank 0, or of the batch script, that a pattern of a job names; id is the job's, or its
// array's. None of no pattern.
func OutputPath(r *Row, id int64, pattern string) string {
	v := outpath.Vars{Job: id, ArrayJob: r.ArrayJobID, ArrayIndex: r.ArrayIndex, Name: r.Name, User: r.User, Restarts: r.RestartCount}
	if r.Folded != nil {
		v.ArrayIndex = new(int(noTask))
	}
	if len(r.Nodes) > 0 {
		v.Node = r.Nodes[0]
	}
	path := outpath.Expand(pattern, v)
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

// GroupName is the name of a group as the host of a command knows it, which sets this; its number otherwise.
var GroupName = func(gid uint32) string { return strconv.FormatUint(uint64(gid), 10) }

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
