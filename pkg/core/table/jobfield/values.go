package jobfield

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/tres"
)

// BeatAge is how long ago a rank beat, N/A for one that never did.
func BeatAge(at time.Time) string {
	if at.IsZero() {
		return "N/A"
	}
	return Elapsed(max(Now().Sub(at), 0))
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// OrNull is text, or what Slurm writes where there is none.
func OrNull(s string) string { return cmp.Or(s, "(null)") }

func orNA(s string) string { return cmp.Or(s, "N/A") }

func orNumberNA(n int) string {
	if n == 0 {
		return "N/A"
	}
	return strconv.Itoa(n)
}

func priority(r *Row) int64 { return r.Priority }

// ID is the id in the first column: 12, 12_3, or 12_[0-15%4].
func ID(r *Row) string {
	if r.Folded == nil {
		return IDText(r.Job)
	}
	id := decimal(r.ArrayJobID) + "_[" + arrayTask(r) + "]"
	if r.View != nil && r.View.Cut > 0 && len(id) > r.View.Cut {
		return id[:r.View.Cut]
	}
	return id
}

func arrayID(r *Row) int64 {
	if r.ArrayIndex != nil {
		return r.ArrayJobID
	}
	return r.ID()
}

func arrayIndex(r *Row) int64 {
	if r.ArrayIndex == nil {
		return -1
	}
	return int64(*r.ArrayIndex)
}

// CompareIDs orders by job, then by array index.
func CompareIDs(a, b *Row) int {
	return cmp.Or(cmp.Compare(arrayID(a), arrayID(b)), cmp.Compare(arrayIndex(a), arrayIndex(b)), cmp.Compare(component(a), component(b)))
}

func component(r *Row) int {
	if r.Component == nil {
		return -1
	}
	return *r.Component
}

// ofComponent is a text about a component of a heterogeneous job.
func ofComponent(get func(*Row) string) func(*Row) string {
	return func(r *Row) string {
		if r.Component == nil {
			return "N/A"
		}
		return get(r)
	}
}

func batchHost(r *Row) string {
	if len(r.Nodes) == 0 {
		return "n/a"
	}
	return r.Nodes[0]
}

// Least is a figure of the shape that a job asks for.
func Least(n int) string {
	if n == 0 {
		return "*"
	}
	return strconv.Itoa(n)
}

// shape is the sockets, cores and threads that its nodes have at least.
func shape(r *Row) string {
	return Least(r.Shape.Sockets) + ":" + Least(r.Shape.Cores) + ":" + Least(r.Shape.Threads)
}

// minCPUs is the fewest CPUs of a node.
func minCPUs(r *Row) int64 { return int64(max(r.CPUsPerRank, 1) * max(r.RanksPerNode, 1)) }

// MemoryPerNode is the memory of a node that is asked for, as far as the ranks of a node are
// known.
func MemoryPerNode(r *Row) int64 {
	return r.MemoryBytes*int64(max(r.RanksPerNode, 1)) + r.Job.MemoryPerNode
}

func minMemory(r *Row) string {
	if r.View != nil && r.View.NoConvert {
		return tres.InUnit(MemoryPerNode(r), 'M')
	}
	return tres.Size(MemoryPerNode(r), 'M')
}

// cardsOfNode is the cards that a job has, or asks for, of each node.
func cardsOfNode(r *Row) string {
	if n := GPUs(r); n > 0 {
		return "gres:gpu:" + decimal(max(n/NodeCount(r), 1))
	}
	return "N/A"
}

// endTime is when a job ends by its time limit at the latest; NONE where that is never.
func endTime(r *Row) string {
	if !r.State.Ended() && r.TimeLimitSeconds == 0 && !Started(r).IsZero() {
		return "NONE"
	}
	return r.stamp(ExpectedEnd(r))
}

// amount is what a job has or asks for.
func amount(r *Row) tres.Amount { return tres.Of(r.Job, NodeCount(r)) }

// CPUs is how many CPUs a job has or asks for.
func CPUs(r *Row) int64 { return amount(r).CPUs }

// GPUs is how many cards a job has or asks for.
func GPUs(r *Row) int64 { return amount(r).GPUs }

// ReadyText is how many ranks are ready: 3/4.
func ReadyText(r *api.Readiness) string {
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

// NodeCount is how many nodes a job has, or the fewest on which it can start.
func NodeCount(r *Row) int64 { return tres.Nodes(r.Job) }

// ExpectedEnd is when the job ended, or when its time limit ends it.
func ExpectedEnd(r *Row) time.Time {
	start := Started(r)
	if isOver(r) || start.IsZero() || r.TimeLimitSeconds == 0 {
		return r.EndTime
	}
	return start.Add(time.Duration(r.TimeLimitSeconds) * time.Second)
}

// OverSubscribe is whether others may be on its nodes, or on its cards.
func OverSubscribe(r *Row) string {
	switch {
	case r.Exclusive:
		return "NO"
	case r.Share:
		return "YES"
	}
	return "OK"
}

// Used is the time since the current attempt started, 0 for one that waits. As Slurm does it counts in whole
// seconds of both ends.
func Used(r *Row) time.Duration {
	start, end := Started(r), Now()
	switch {
	case start.IsZero(), r.State == api.JobPending, r.State == api.JobReserved: // an expected start is no start
		return 0
	case isOver(r):
		end = r.EndTime
	}
	return time.Duration(max(end.Unix()-start.Unix(), 0)) * time.Second
}

// Eligible is since when a job could start, or not before when by --begin or after a run; of one that is held there
// is only the second.
func Eligible(r *Row) time.Time {
	if r.Held != "" && !r.EligibleTime.After(r.SubmitTime) {
		return time.Time{}
	}
	return r.EligibleTime
}

func timeLeft(r *Row) string {
	if r.TimeLimitSeconds == 0 {
		return "UNLIMITED"
	}
	return Elapsed(max(time.Duration(timeLeftOrder(r))*time.Second, 0))
}

// limitOrder puts a job without a limit behind all that have one.
func limitOrder(r *Row) int64 {
	if r.TimeLimitSeconds == 0 {
		return 1<<63 - 1
	}
	return r.TimeLimitSeconds
}

func timeLeftOrder(r *Row) int64 {
	if r.TimeLimitSeconds == 0 {
		return 1<<63 - 1
	}
	return r.TimeLimitSeconds - int64(Used(r)/time.Second)
}

func pendingSeconds(r *Row) int64 {
	end := Started(r)
	if end.IsZero() {
		end = Now()
	}
	return int64(max(end.Sub(r.SubmitTime), 0) / time.Second)
}

func reason(r *Row) string {
	if len(r.Reasons) > 1 {
		return strings.Join(r.Reasons, ",")
	}
	return Reason(r.Job)
}

const noReason = "None"

// Reason is why a job waits, or would if it were queued again: one that runs may be held.
func Reason(j *api.Job) string {
	if (j.Reason == "" || j.Reason == noReason) && !j.State.Ended() {
		switch j.Held {
		case api.HoldUser:
			return "JobHeldUser"
		case api.HoldAdmin:
			return "JobHeldAdmin"
		}
	}
	return cmp.Or(j.Reason, noReason)
}

// everyReason is where a job is, or in parentheses why it waits or how it failed.
func everyReason(r *Row) string {
	switch r.State {
	case api.JobPending, api.JobFailed, api.JobTimeout, api.JobNodeFail, api.JobOutOfMemory, api.JobCancelled, api.JobPreempted:
		return "(" + reason(r) + ")"
	}
	return hostlist.Compress(r.Nodes)
}

// stateOrder is the order of squeue's -S t: waiting before running before ended.
func stateOrder(r *Row) int64 { return int64(slices.Index(api.JobStates, r.State)) }

// ExitCode is Slurm's code:signal.
func ExitCode(code *int, signal int) string {
	switch {
	case signal != 0:
		return "0:" + strconv.Itoa(signal)
	case code == nil:
		return "N/A"
	}
	return strconv.Itoa(*code) + ":0"
}

// Started is the start of the current attempt; a job that waits has none, though it may
// have had one before.
func Started(r *Row) time.Time {
	if r.State == api.JobPending && r.ExpectedStart.IsZero() && r.EligibleTime.After(Now()) {
		return r.EligibleTime // of --begin: not before
	}
	if r.State == api.JobPending || r.State == api.JobReserved {
		return r.ExpectedStart
	}
	return r.StartTime
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

// JobID is the job's own id; of folded elements the array's.
func JobID(r *Row) int64 {
	if r.Folded != nil {
		return r.ArrayJobID
	}
	return r.ID()
}

// isOver: it has ended, though the site's epilog may still run after it.
func isOver(r *Row) bool { return r.State.Ended() || !r.EndTime.IsZero() }
