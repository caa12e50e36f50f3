package jobfield

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/tres"
)

// Field is one thing that can be shown of a job.
type Field = column.Field[*Row]

// Squeue is squeue's fields as squeue writes them.
var Squeue = column.Set[*Row]{Fields: append(append([]Field(nil), common...), squeues...)}

// Gqueue is what gqueue shows: squeue's fields, and what squeue has no word for.
var Gqueue = column.Set[*Row]{Fields: append(append([]Field(nil), common...), gqueues...)}

func names(n ...string) []string { return n }

func number(get func(*Row) int64) func(a, b *Row) int {
	return func(a, b *Row) int { return cmp.Compare(get(a), get(b)) }
}

func moment(get func(*Row) time.Time) func(a, b *Row) int {
	return func(a, b *Row) int { return compareTimes(get(a), get(b)) }
}

// value is a field that is a number.
func value(letter byte, n []string, head string, get func(*Row) int64) Field {
	return Field{Letter: letter, Names: n, Head: head, Text: func(r *Row) string { return decimal(get(r)) }, Compare: number(get)}
}

// at is a field that is a time.
func at(letter byte, n []string, head string, get func(*Row) time.Time) Field {
	return Field{Letter: letter, Names: n, Head: head, Text: func(r *Row) string { return r.stamp(get(r)) }, Compare: moment(get)}
}

// text is a field that is a word.
func text(letter byte, n []string, head string, get func(*Row) string) Field {
	return Field{Letter: letter, Names: n, Head: head, Text: get}
}

// constant is a field whose value is the same for every job because nothing can ask for
// it here; squeue prints the same for a job that did not ask.
func constant(letter byte, n []string, head, s string) Field {
	return Field{Letter: letter, Names: n, Head: head, Text: func(*Row) string { return s }}
}

// lasting is a field that is a span of time, which squeue does not cut on the right.
func lasting(letter byte, n []string, head string, get func(*Row) string, compare func(*Row) int64) Field {
	return Field{Letter: letter, Names: n, Head: head, Text: get, Wide: true, Compare: number(compare)}
}

// nodes is a field that is a list of nodes, which squeue does not cut on the right, nor its
// heading.
func nodes(letter byte, n []string, head string, get func(*Row) string) Field {
	return Field{Letter: letter, Names: n, Head: head, Text: get, Wide: true, WideHead: true}
}

// common is what squeue and gqueue write alike, by letter and then by name.
var common = []Field{
	text('a', names("account"), "ACCOUNT", func(r *Row) string { return OrNull(r.Account) }),
	value('A', names("jobid"), "JOBID", JobID),
	text('B', names("batchhost"), "EXEC_HOST", batchHost),
	value('c', names("mincpus"), "MIN_CPUS", minCPUs),
	value('C', names("numcpus"), "CPUS", CPUs),
	text('d', names("mintmpdisk"), "MIN_TMP_DISK", func(r *Row) string { return tres.Size(r.TmpPerNode, 'M') }),
	value('D', names("numnodes"), "NODES", NodeCount),
	{Letter: 'e', Names: names("endtime"), Head: "END_TIME", Text: endTime, Compare: moment(ExpectedEnd)},
	text('E', names("dependency"), "DEPENDENCY", func(r *Row) string { return OrNull(r.Dependency) }),
	text('f', names("feature"), "FEATURES", func(r *Row) string { return OrNull(r.Constraint) }),
	value('F', names("arrayjobid"), "ARRAY_JOB_ID", arrayID),
	text('g', names("groupname"), "GROUP", func(r *Row) string { return GroupName(r.GID) }),
	value('G', names("groupid"), "GROUP", func(r *Row) int64 { return int64(r.GID) }),
	text('h', names("oversubscribe", "shared"), "OVER_SUBSCRIBE", OverSubscribe),
	text('H', names("sockets"), "SOCKETS_PER_NODE", func(r *Row) string { return Least(r.Shape.Sockets) }),
	{Letter: 'i', Names: names("jobarrayid"), Head: "JOBID", Text: ID, Compare: CompareIDs},
	text('I', names("cores"), "CORES_PER_SOCKET", func(r *Row) string { return Least(r.Shape.Cores) }),
	text('j', names("name"), "NAME", func(r *Row) string { return r.Name }),
	text('J', names("threads"), "THREADS_PER_CORE", func(r *Row) string { return Least(r.Shape.Threads) }),
	note('k', names("comment"), "COMMENT", "Comment"),
	{Letter: 'K', Names: names("arraytaskid"), Head: "ARRAY_TASK_ID", Text: arrayTask, Compare: number(arrayIndex)},
	lasting('l', names("timelimit"), "TIME_LIMIT", func(r *Row) string { return TimeLimit(r.TimeLimitSeconds) }, limitOrder),
	lasting('L', names("timeleft"), "TIME_LEFT", timeLeft, timeLeftOrder),
	{Letter: 'm', Names: names("minmemory"), Head: "MIN_MEMORY", Text: minMemory, Compare: number(MemoryPerNode)},
	lasting('M', names("timeused"), "TIME", func(r *Row) string { return Elapsed(Used(r)) }, func(r *Row) int64 { return int64(Used(r)) }),
	text('n', names("reqnodes"), "REQ_NODES", func(r *Row) string { return hostlist.Compress(r.NodeList) }),
	nodes('N', names("nodelist"), "NODELIST", func(r *Row) string { return hostlist.Compress(r.Nodes) }),
	constant('O', names("contiguous"), "CONTIGUOUS", "0"),
	text('P', names("partition"), "PARTITION", func(r *Row) string { return r.Partition }),
	constant('q', names("qos"), "QOS", "(null)"),
	text('r', names("reason"), "REASON", reason),
	constant('s', names("selectjobinfo"), "", ""),
	at('S', names("starttime"), "START_TIME", Started),
	text('u', names("username"), "USER", func(r *Row) string { return r.User }),
	value('U', names("userid"), "UID", func(r *Row) int64 { return int64(r.UID) }),
	text('v', names("reservation"), "RESERVATION", func(r *Row) string { return OrNull(r.Reservation) }),
	at('V', names("submittime"), "SUBMIT_TIME", func(r *Row) time.Time { return r.SubmitTime }),
	constant('w', names("wckey"), "WCKEY", "(null)"),
	note('W', names("licenses"), "LICENSES", "Licenses"),
	text('x', names("excnodes"), "EXC_NODES", func(r *Row) string { return hostlist.Compress(r.Exclude) }),
	constant('X', names("corespec"), "CORE_SPEC", "N/A"),
	value('y', names("nice"), "NICE", func(r *Row) int64 { return r.Nice }),
	nodes('Y', names("schednodes"), "SCHEDNODES", func(*Row) string { return "(null)" }),
	text('z', names("sct"), "S:C:T", shape),
	text('Z', names("workdir"), "WORK_DIR", func(r *Row) string { return r.WorkDir }),

	at(0, names("accruetime"), "ACCRUE_TIME", Eligible),
	text(0, names("allocnodes"), "ALLOC_NODES", func(r *Row) string { return orNA(r.SubmitHost) }),
	value(0, names("batchflag"), "BATCH_FLAG", func(r *Row) int64 { return bit(!r.Allocation) }),
	text(0, names("cpus-per-task", "cpuspertask"), "CPUS_PER_TASK", func(r *Row) string { return strconv.Itoa(max(r.CPUsPerRank, 1)) }),
	at(0, names("deadline"), "DEADLINE", func(r *Row) time.Time { return r.Deadline }),
	at(0, names("eligibletime"), "ELIGIBLE_TIME", Eligible),
	value(0, names("numtasks"), "TASKS", func(r *Row) int64 { return int64(r.Tasks()) }),
	value(0, names("pendingtime"), "PENDING_TIME", pendingSeconds),
	value(0, names("restartcnt"), "RESTART_COUNT", func(r *Row) int64 { return int64(r.RestartCount) }),
}

// gqueues is what gqueue alone has, or writes otherwise than squeue.
var gqueues = []Field{
	{Letter: 'p', Names: names("priority"), Head: "PRIORITY", Text: func(r *Row) string {
		return fmt.Sprintf("%.14f",
			float64(r.Priority)/(1<<32-1))
	}, Compare: number(priority)},
	value('Q', names("prioritylong"), "PRIORITY", priority),
	nodes('R', names("reasonlist"), "NODELIST(REASON)", everyReason),
	text('o', names("command"), "COMMAND", func(r *Row) string { return OrNull(r.Command) }),
	{Letter: 't', Names: names("statecompact"), Head: "ST", Text: code, Compare: number(stateOrder)},
	{Letter: 'T', Names: names("state"), Head: "STATE", Text: func(r *Row) string { return string(r.State) }, Compare: number(stateOrder)},
	text('b', names("gres", "tres-per-node"), "TRES_PER_NODE", cardsOfNode),
	text(0, names("exit_code"), "EXIT_CODE", func(r *Row) string { return ExitCode(r.ExitCode, r.Signal) }),
	text(0, names("ntpernode"), "NTASKS_PER_NODE", func(r *Row) string { return orNumberNA(r.RanksPerNode) }),
	text(0, names("stderr"), "STDERR", func(r *Row) string { return cmp.Or(r.StdErr, r.StdOut) }),
	text(0, names("stdin"), "STDIN", func(r *Row) string { return cmp.Or(r.StdIn, "/dev/null") }),
	text(0, names("stdout"), "STDOUT", func(r *Row) string { return r.StdOut }),

	{Names: names("beatage"), Head: "BEAT_AGE", Text: func(r *Row) string { return BeatAge(r.LastBeat) },
		Compare: moment(func(r *Row) time.Time { return r.LastBeat })},
	text(0, names("cause"), "CAUSE", func(r *Row) string { return orNA(string(r.Cause)) }),
	value(0, names("epoch"), "EPOCH", func(r *Row) int64 { return int64(r.Epoch) }),
	value(0, names("gpus"), "GPUS", GPUs),
	at(0, names("lastbeat"), "LAST_BEAT", func(r *Row) time.Time { return r.LastBeat }),
	text(0, names("safeuntil"), "SAFE_UNTIL", func(r *Row) string { return SafeUntil(r.Job) }),
	text(0, names("ready"), "READY", func(r *Row) string { return ReadyText(r.Ready) }),
	text(0, names("roles"), "ROLES", func(r *Row) string { return orNA(roleList(r.Roles)) }),
	value(0, names("size"), "SIZE", func(r *Row) int64 { return int64(r.Size) }),
	text(0, names("status"), "STATUS", func(r *Row) string { return r.Status }),
	{Names: names("vram"), Head: "VRAM", Text: func(r *Row) string { return BytesText(r.VRAMBytes) },
		Compare: number(func(r *Row) int64 { return r.VRAMBytes })},
}
