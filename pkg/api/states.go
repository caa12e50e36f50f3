package api

// SchemaVersion stands at the top of every JSON object that a command prints.
const SchemaVersion = 1

// RankState is the state of one rank of a gang.
type RankState string

// The states of a rank, see docs/architecture.md for the picture.
const (
	RankBlocked    RankState = "blocked"    // waits for admission
	RankReserved   RankState = "reserved"   // has a node and cards, no process yet
	RankRunning    RankState = "running"    // the start gate was opened for this epoch
	RankPreempting RankState = "preempting" // this execution attempt is being stopped
	RankPreempted  RankState = "preempted"  // stopped by a drain, the drain not complete yet
	RankDone       RankState = "done"       // exited 0
	RankFailed     RankState = "failed"     // exited otherwise, or was lost
	RankCancelled  RankState = "cancelled"  // ended by a cancel or time limit
)

// RankStates lists every rank state, in the order of a normal life.
var RankStates = []RankState{RankBlocked, RankReserved, RankRunning, RankPreempting, RankPreempted, RankDone, RankFailed, RankCancelled}

// JobState is the state people see. It is derived from the ranks, never stored by itself.
type JobState string

// The job states, spelled as Slurm spells them.
const (
	JobPending     JobState = "PENDING"
	JobReserved    JobState = "RESERVED"
	JobRunning     JobState = "RUNNING"
	JobCompleting  JobState = "COMPLETING"
	JobSuspended   JobState = "SUSPENDED"
	JobCompleted   JobState = "COMPLETED"
	JobFailed      JobState = "FAILED"
	JobCancelled   JobState = "CANCELLED"
	JobTimeout     JobState = "TIMEOUT"
	JobPreempted   JobState = "PREEMPTED"
	JobNodeFail    JobState = "NODE_FAIL"
	JobOutOfMemory JobState = "OUT_OF_MEMORY"
	JobDeadline    JobState = "DEADLINE" // it could not have ended by its deadline, or had not
)

// JobStates lists every job state in the order in which tables and help name them.
var JobStates = []JobState{JobPending, JobReserved, JobRunning, JobCompleting, JobSuspended, JobCompleted,
	JobFailed, JobCancelled, JobTimeout, JobPreempted, JobNodeFail, JobOutOfMemory, JobDeadline}

// Code is Slurm's short code of the state: PD R CG S CD F CA TO PR NF OOM DL; RESERVED is CF
// (Slurm's CONFIGURING), which is what its users know for "has nodes, does not run yet".
func (s JobState) Code() string {
	switch s {
	case JobPending:
		return "PD"
	case JobReserved:
		return "CF"
	case JobRunning:
		return "R"
	case JobCompleting:
		return "CG"
	case JobSuspended:
		return "S"
	case JobCompleted:
		return "CD"
	case JobFailed:
		return "F"
	case JobCancelled:
		return "CA"
	case JobTimeout:
		return "TO"
	case JobPreempted:
		return "PR"
	case JobNodeFail:
		return "NF"
	case JobOutOfMemory:
		return "OOM"
	case JobDeadline:
		return "DL"
	}
	return "?"
}

// Ended reports whether the state is final.
func (s JobState) Ended() bool {
	switch s {
	case JobCompleted, JobFailed, JobCancelled, JobTimeout, JobPreempted, JobNodeFail, JobOutOfMemory, JobDeadline:
		return true
	}
	return false
}

// Cause says why an attempt ended.
type Cause string

// The causes. A drain has exactly one; later ones are recorded beside it.
const (
	CauseNone      Cause = ""
	CauseCrash     Cause = "crash"
	CauseOOM       Cause = "oom"
	CauseLaunch    Cause = "launch"
	CauseNodeLost  Cause = "node-lost"
	CausePreempted Cause = "preempted"
	CauseRequeued  Cause = "requeued"
	CauseStalled   Cause = "stalled"
	CauseGPUHang   Cause = "gpu-hang"
	CauseIdle      Cause = "idle" // its cards did nothing for the site's limit
	CauseTimeout   Cause = "timeout"
	CauseDeadline  Cause = "deadline" // it waited until it could not have ended in time any more
	CauseCancelled Cause = "cancelled"
	CauseCompleted Cause = "completed"
)

// Causes lists every cause that an attempt can end with.
var Causes = []Cause{CauseCrash, CauseOOM, CauseLaunch, CauseNodeLost, CausePreempted, CauseRequeued,
	CauseStalled, CauseGPUHang, CauseIdle, CauseTimeout, CauseDeadline, CauseCancelled, CauseCompleted}

// ExitClass is the exit code by which operators tell apart the ends that a watchdog
// brought: 75 budget, 76 stall, 77 idle, 78 gpu-hang. It is 0 for every other cause.
func (c Cause) ExitClass() int {
	switch c {
	case CauseTimeout:
		return 75
	case CauseStalled:
		return 76
	case CauseIdle:
		return 77
	case CauseGPUHang:
		return 78
	}
	return 0
}

// Launch says what runs when the gate opens.
type Launch string

const (
	// LaunchRanks runs the script once in every rank.
	LaunchRanks Launch = "ranks"
	// LaunchBatch runs the script once, as rank 0 on the first node; the other ranks are
	// the allocation in which it starts steps. The end of rank 0 is the end of the gang.
	LaunchBatch Launch = "batch"
)
