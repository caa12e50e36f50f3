package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/hostlist"
)

// row is one line of gqueue: a job, or the pending elements of an array folded into one.
type row struct {
	*api.Job
	folded []int // array indices, when more than this job are meant
}

// field is one thing that can be shown of a job: squeue's letter for -o, its name for -O.
type field struct {
	letter byte   // 0: by name only
	name   string // of -O, lower case; "" : by letter only
	head   string
	text   func(*row) string
	// compare orders by the value where its text would order wrongly; nil: by text.
	compare func(a, b *row) int
}

func number(get func(*row) int64) func(a, b *row) int {
	return func(a, b *row) int { return cmp.Compare(get(a), get(b)) }
}

func moment(get func(*row) time.Time) func(a, b *row) int {
	return func(a, b *row) int { return compareTimes(get(a), get(b)) }
}

// compareTimes puts an unknown time last: it is not early, it is not known.
func compareTimes(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}

// constant is a field whose value is the same for every job because nothing can ask for
// it here; squeue prints the same for a job that did not ask.
func constant(s string) func(*row) string { return func(*row) string { return s } }

// fields is every field of squeue that gqueue shows, in the order of %all.
var fields = []field{
	{'a', "account", "ACCOUNT", func(r *row) string { return orNull(r.Account) }, nil},
	{'A', "jobid", "JOBID", func(r *row) string { return decimal(r.JobID) }, number(func(r *row) int64 { return r.JobID })},
	{'B', "batchhost", "EXEC_HOST", batchHost, nil},
	{'c', "mincpus", "MIN_CPUS", func(r *row) string { return decimal(minCPUs(r)) }, number(minCPUs)},
	{'C', "numcpus", "CPUS", func(r *row) string { return decimal(cpus(r)) }, number(cpus)},
	{'d', "mintmpdisk", "MIN_TMP_DISK", constant("0"), nil},
	{'D', "numnodes", "NODES", func(r *row) string { return decimal(nodeCount(r)) }, number(nodeCount)},
	{'e', "endtime", "END_TIME", func(r *row) string { return stamp(expectedEnd(r)) }, moment(expectedEnd)},
	{'E', "dependency", "DEPENDENCY", func(r *row) string { return orNull(r.Dependency) }, nil},
	{'f', "feature", "FEATURES", func(r *row) string { return orNull(r.Constraint) }, nil},
	{'F', "arrayjobid", "ARRAY_JOB_ID", func(r *row) string { return decimal(arrayID(r)) }, number(arrayID)},
	{'h', "oversubscribe", "OVER_SUBSCRIBE", overSubscribe, nil},
	{'H', "sockets", "SOCKETS_PER_NODE", constant("*"), nil},
	{'i', "jobarrayid", "JOBID", rowID, compareIDs},
	{'I', "cores", "CORES_PER_SOCKET", constant("*"), nil},
	{'j', "name", "NAME", func(r *row) string { return r.Name }, nil},
	{'J', "threads", "THREADS_PER_CORE", constant("*"), nil},
	{'k', "comment", "COMMENT", func(r *row) string { return orNull(r.Comment) }, nil},
	{'K', "arraytaskid", "ARRAY_TASK_ID", arrayTask, number(func(r *row) int64 { return arrayIndex(r) })},
	{'l', "timelimit", "TIME_LIMIT", func(r *row) string { return timeLimit(r.TimeLimitSeconds) }, number(limitOrder)},
	{'L', "timeleft", "TIME_LEFT", timeLeft, number(timeLeftOrder)},
	{'m', "minmemory", "MIN_MEMORY", func(r *row) string { return bytesText(r.MemoryBytes) }, number(func(r *row) int64 { return r.MemoryBytes })},
	{'M', "timeused", "TIME", func(r *row) string { return elapsed(used(r)) }, number(func(r *row) int64 { return int64(used(r)) })},
	{'n', "reqnodes", "REQ_NODES", func(r *row) string { return hostlist.Compress(r.NodeList) }, nil},
	{'N', "nodelist", "NODELIST", func(r *row) string { return hostlist.Compress(r.Nodes) }, nil},
	{'o', "command", "COMMAND", func(r *row) string { return orNull(r.Command) }, nil},
	{'O', "contiguous", "CONTIGUOUS", constant("0"), nil},
	{'p', "priority", "PRIORITY", func(r *row) string { return fmt.Sprintf("%.14f", float64(r.Priority)/(1<<32-1)) }, number(priority)},
	{'P', "partition", "PARTITION", func(r *row) string { return r.Partition }, nil},
	{'q', "qos", "QOS", constant("(null)"), nil},
	{'Q', "prioritylong", "PRIORITY", func(r *row) string { return decimal(r.Priority) }, number(priority)},
	{'r', "reason", "REASON", func(r *row) string { return reason(r) }, nil},
	{'R', "reasonlist", "NODELIST(REASON)", reasonList, nil},
	{'S', "starttime", "START_TIME", func(r *row) string { return stamp(started(r)) }, moment(started)},
	{'t', "statecompact", "ST", func(r *row) string { return r.State.Code() }, number(stateOrder)},
	{'T', "state", "STATE", func(r *row) string { return string(r.State) }, number(stateOrder)},
	{'u', "username", "USER", func(r *row) string { return r.User }, nil},
	{'U', "userid", "UID", func(r *row) string { return decimal(int64(r.UID)) }, number(func(r *row) int64 { return int64(r.UID) })},
	{'v', "reservation", "RESERVATION", func(r *row) string { return orNull(r.Reservation) }, nil},
	{'V', "submittime", "SUBMIT_TIME", func(r *row) string { return stamp(r.SubmitTime) }, moment(func(r *row) time.Time { return r.SubmitTime })},
	{'w', "wckey", "WCKEY", constant("(null)"), nil},
	{'W', "licenses", "LICENSES", constant("(null)"), nil},
	{'x', "", "EXC_NODES", func(r *row) string { return hostlist.Compress(r.Exclude) }, nil},
	{'X', "corespec", "CORE_SPEC", constant("N/A"), nil},
	{'y', "nice", "NICE", func(r *row) string { return decimal(r.Nice) }, number(func(r *row) int64 { return r.Nice })},
	{'Y', "schednodes", "SCHEDNODES", constant("(null)"), nil},
	{'z', "sct", "S:C:T", constant("*:*:*"), nil},
	{'Z', "workdir", "WORK_DIR", func(r *row) string { return r.WorkDir }, nil},

	{0, "accruetime", "ACCRUE_TIME", func(r *row) string { return stamp(r.EligibleTime) }, moment(func(r *row) time.Time { return r.EligibleTime })},
	{0, "allocnodes", "ALLOC_NODES", func(r *row) string { return orNA(r.SubmitHost) }, nil},
	{0, "batchflag", "BATCH_FLAG", constant("1"), nil},
	{0, "cpus-per-task", "CPUS_PER_TASK", func(r *row) string { return strconv.Itoa(r.CPUsPerRank) }, nil},
	{0, "deadline", "DEADLINE", func(r *row) string { return stamp(r.Deadline) }, moment(func(r *row) time.Time { return r.Deadline })},
	{0, "eligibletime", "ELIGIBLE_TIME", func(r *row) string { return stamp(r.EligibleTime) }, moment(func(r *row) time.Time { return r.EligibleTime })},
	{0, "exit_code", "EXIT_CODE", func(r *row) string { return exitCode(r.ExitCode, r.Signal) }, nil},
	{0, "ntpernode", "NTASKS_PER_NODE", func(r *row) string { return orNumberNA(r.RanksPerNode) }, nil},
	{0, "numtasks", "TASKS", func(r *row) string { return strconv.Itoa(r.Size) }, number(func(r *row) int64 { return int64(r.Size) })},
	{0, "pendingtime", "PENDING_TIME", func(r *row) string { return decimal(pendingSeconds(r)) }, number(pendingSeconds)},
	{0, "restartcnt", "RESTART_COUNT", func(r *row) string { return strconv.Itoa(r.RestartCount) }, number(func(r *row) int64 { return int64(r.RestartCount) })},
	{0, "stderr", "STDERR", func(r *row) string { return cmp.Or(r.StdErr, r.StdOut) }, nil},
	{0, "stdin", "STDIN", func(r *row) string { return cmp.Or(r.StdIn, "/dev/null") }, nil},
	{0, "stdout", "STDOUT", func(r *row) string { return r.StdOut }, nil},

	// What squeue has no word for.
	{0, "beatage", "BEAT_AGE", func(r *row) string { return beatAge(r.LastBeat) }, moment(func(r *row) time.Time { return r.LastBeat })},
	{0, "cause", "CAUSE", func(r *row) string { return orNA(string(r.Cause)) }, nil},
	{0, "epoch", "EPOCH", func(r *row) string { return strconv.Itoa(r.Epoch) }, number(func(r *row) int64 { return int64(r.Epoch) })},
	{0, "gpus", "GPUS", func(r *row) string { return decimal(gpus(r)) }, number(gpus)},
	{0, "lastbeat", "LAST_BEAT", func(r *row) string { return stamp(r.LastBeat) }, moment(func(r *row) time.Time { return r.LastBeat })},
	{0, "ready", "READY", func(r *row) string { return readyText(r.Ready) }, nil},
	{0, "roles", "ROLES", func(r *row) string { return orNA(roleList(r.Roles)) }, nil},
	{0, "size", "SIZE", func(r *row) string { return strconv.Itoa(r.Size) }, number(func(r *row) int64 { return int64(r.Size) })},
	{0, "status", "STATUS", func(r *row) string { return r.Status }, nil},
	{0, "vram", "VRAM", func(r *row) string { return bytesText(r.VRAMBytes) }, number(func(r *row) int64 { return r.VRAMBytes })},
}

// beatAge is how long ago a rank beat, N/A for one that never did.
func beatAge(at time.Time) string {
	if at.IsZero() {
		return "N/A"
	}
	return elapsed(max(now().Sub(at), 0))
}

// refusedLetters are squeue's letters that gqueue can't answer truly, with the reason.
var refusedLetters = map[byte]string{
	'g': "gangd keeps a job's user, not its group: use %u or %U",
	'G': "gangd keeps a job's user, not its group: use %u or %U",
	's': "gangd has no node selection plugin",
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func orNull(s string) string { return cmp.Or(s, "(null)") }

func orNA(s string) string { return cmp.Or(s, "N/A") }

func orNumberNA(n int) string {
	if n == 0 {
		return "N/A"
	}
	return strconv.Itoa(n)
}

func priority(r *row) int64 { return r.Priority }

func rowID(r *row) string {
	if r.folded == nil {
		return idText(r.Job)
	}
	return decimal(r.ArrayJobID) + "_[" + arrayTask(r) + "]"
}

func arrayID(r *row) int64 {
	if r.ArrayIndex != nil {
		return r.ArrayJobID
	}
	return r.JobID
}

func arrayIndex(r *row) int64 {
	if r.ArrayIndex == nil {
		return -1
	}
	return int64(*r.ArrayIndex)
}

func compareIDs(a, b *row) int {
	return cmp.Or(cmp.Compare(arrayID(a), arrayID(b)), cmp.Compare(arrayIndex(a), arrayIndex(b)))
}

// arrayTask is 3 for an element, 0-15%4 for folded ones.
func arrayTask(r *row) string {
	switch {
	case r.folded != nil && r.ArrayLimit > 0:
		return indexRanges(r.folded) + "%" + strconv.Itoa(r.ArrayLimit)
	case r.folded != nil:
		return indexRanges(r.folded)
	case r.ArrayIndex != nil:
		return strconv.Itoa(*r.ArrayIndex)
	}
	return "N/A"
}

// indexRanges writes sorted numbers as 0-3,7.
func indexRanges(v []int) string {
	var b strings.Builder
	for i := 0; i < len(v); {
		j := i
		for j+1 < len(v) && v[j+1] == v[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(v[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(v[j]))
		}
		i = j + 1
	}
	return b.String()
}

func batchHost(r *row) string {
	if len(r.Nodes) == 0 {
		return "n/a"
	}
	return r.Nodes[0]
}

func minCPUs(r *row) int64 { return int64(max(r.CPUsPerRank, 1) * max(r.RanksPerNode, 1)) }

func cpus(r *row) int64 {
	if r.Roles == nil {
		return int64(max(r.CPUsPerRank, 1) * r.Size)
	}
	sum := 0
	for i := range r.Roles {
		sum += r.Roles[i].Count * max(r.Roles[i].CPUsPerRank, 1)
	}
	return int64(sum)
}

func gpus(r *row) int64 {
	if r.Roles == nil {
		return int64(r.Size * r.GPUsPerRank)
	}
	sum := 0
	for i := range r.Roles {
		sum += r.Roles[i].Count * r.Roles[i].GPUsPerRank
	}
	return int64(sum)
}

// readyText is how many ranks are ready: 3/4.
func readyText(r *api.Readiness) string {
	if r == nil {
		return "n/a"
	}
	return fmt.Sprintf("%d/%d", r.Ranks, r.Size)
}

// roleList is "coordinator:1,worker:3".
func roleList(roles []api.Role) string {
	parts := make([]string, len(roles))
	for i := range roles {
		parts[i] = roles[i].Name + ":" + strconv.Itoa(roles[i].Count)
	}
	return strings.Join(parts, ",")
}

// nodeCount is how many nodes a job has, or the fewest on which it can start.
func nodeCount(r *row) int64 { return int64(max(len(distinct(r.Nodes)), r.MinNodes, 1)) }

// distinct is the nodes without repetition, whatever order they came in.
func distinct(nodes []string) []string {
	for i := 1; i < len(nodes); i++ {
		if slices.Contains(nodes[:i], nodes[i]) {
			return slices.Compact(slices.Sorted(slices.Values(nodes)))
		}
	}
	return nodes
}

// expectedEnd is when the job ended, or when its time limit ends it.
func expectedEnd(r *row) time.Time {
	start := started(r)
	if r.State.Ended() || start.IsZero() || r.TimeLimitSeconds == 0 {
		return r.EndTime
	}
	return start.Add(time.Duration(r.TimeLimitSeconds) * time.Second)
}

func overSubscribe(r *row) string {
	switch {
	case r.Exclusive:
		return "NO"
	case r.Share:
		return "YES"
	}
	return "OK"
}

// used is the time since the current attempt started, 0 for one that waits.
func used(r *row) time.Duration {
	start := started(r)
	switch {
	case start.IsZero():
		return 0
	case r.State.Ended():
		return max(r.EndTime.Sub(start), 0)
	}
	return max(now().Sub(start), 0)
}

func timeLeft(r *row) string {
	if r.TimeLimitSeconds == 0 {
		return "UNLIMITED"
	}
	return elapsed(max(time.Duration(timeLeftOrder(r))*time.Second, 0))
}

// limitOrder puts a job without a limit behind all that have one.
func limitOrder(r *row) int64 {
	if r.TimeLimitSeconds == 0 {
		return 1<<63 - 1
	}
	return r.TimeLimitSeconds
}

func timeLeftOrder(r *row) int64 {
	if r.TimeLimitSeconds == 0 {
		return 1<<63 - 1
	}
	return r.TimeLimitSeconds - int64(used(r)/time.Second)
}

func pendingSeconds(r *row) int64 {
	end := started(r)
	if end.IsZero() {
		end = now()
	}
	return int64(max(end.Sub(r.SubmitTime), 0) / time.Second)
}

func reason(r *row) string { return cmp.Or(r.Reason, "None") }

// reasonList is where a job is, or in parentheses why it waits or how it failed.
func reasonList(r *row) string {
	switch r.State {
	case api.JobPending, api.JobFailed, api.JobTimeout, api.JobNodeFail, api.JobOutOfMemory, api.JobCancelled, api.JobPreempted:
		return "(" + reason(r) + ")"
	}
	return hostlist.Compress(r.Nodes)
}

// stateOrder is the order of squeue's -S t: waiting before running before ended.
func stateOrder(r *row) int64 { return int64(slices.Index(api.JobStates, r.State)) }

// exitCode is Slurm's code:signal.
func exitCode(code *int, signal int) string {
	switch {
	case signal != 0:
		return "0:" + strconv.Itoa(signal)
	case code == nil:
		return "N/A"
	}
	return strconv.Itoa(*code) + ":0"
}

// started is the start of the current attempt; a job that waits has none, though it may
// have had one before.
func started(r *row) time.Time {
	if r.State == api.JobPending || r.State == api.JobReserved {
		return r.ExpectedStart
	}
	return r.StartTime
}
