package api

import "time"

// Where the processes of a gang were seen; the rules by which they are compared are in package stacks of core.

// What a thread was seen doing.
const (
	DoesRun   = "runs"    // it had a CPU, or waited for one
	DoesStop  = "stopped" // by a signal, or by a debugger
	DoesDisk  = "disk"    // it waits in the kernel and no signal wakes it: for a disk, a file server or a driver
	DoesSleep = "sleeps"  // for a time that it has named
	DoesLock  = "lock"    // for another thread
	DoesPoll  = "poll"    // for one of several descriptors
	DoesRead  = "reads"
	DoesWrite = "writes"
	DoesChild = "child" // for the end of a process
	DoesMove  = "moves" // now this, now that
	DoesOther = "waits"
)

// Bounds of what is told of a member, and of what is kept of an attempt.
const (
	MaxStackFrames    = 32  // of one thread: the innermost ones, and the outermost
	MaxStackFrame     = 160 // bytes of one
	MaxStackThreads   = 8   // of one process that are told
	MaxStackGroups    = 64  // of a member
	MaxStackBytes     = 64 << 10
	MaxStackProcesses = 1024 // of a member
	MaxStackValues    = 8    // of one thread
	MaxStackNamed     = 16   // processes of one large group of a gang that are named, and ranks that were not seen
)

// ThreadStack is where a thread was seen.
type ThreadStack struct {
	Does   string   `json:"does" bound:"len=16"`
	In     string   `json:"in,omitempty" bound:"len=64"`                // system call, or function of the kernel; empty: not known
	Frames []string `json:"frames,omitempty" bound:"n=32 len=160 text"` // innermost first, "all_reduce (distributed_c10d.py)"; none: not known
	// Lines are where the frames are in their files, as many as there are frames; 0: not known, or another one each time. None: the
	// thread was not seen to stand still, or is not the main one.
	Lines []int `json:"lines,omitempty" bound:"n=32 0.."`
	// Values are the tags that its calls were given.
	Values []StackValue `json:"values,omitempty" bound:"n=8"`
}

// StackValue is a variable of a call.
type StackValue struct {
	Frame int    `json:"frame" bound:"0..31"` // which call: its place in the frames
	Name  string `json:"name" bound:"len=16 text"`
	Value int64  `json:"value" bound:"-9007199254740992.."`
}

// StackProcess is a process of a rank, or of a task of a step.
type StackProcess struct {
	Rank int `json:"rank" bound:"-1.."` // -1: of a task
	Step int `json:"step,omitempty"`    // with Rank -1
	Task int `json:"task,omitempty"`
	PID  int `json:"pid" bound:"0.."`
}

// StackGroup is processes that are in the same place.
type StackGroup struct {
	// Kind is the programs between the rank's own process and these, theirs last: "bash/python3.11".
	Kind      string         `json:"kind" bound:"len=160 text"`
	Count     int            `json:"count" bound:"1..1048576"`
	Processes []StackProcess `json:"processes" bound:"n=1024"` // the first ones, where there are more
	// Threads are the main one first, then others in which Python runs.
	Threads []ThreadStack `json:"threads" bound:"n=8"`
}

// MemberStacks is where the processes of one member were seen.
type MemberStacks struct {
	Groups []StackGroup `json:"groups,omitempty" bound:"n=64"`
	// More is how many processes are in no group, because there was no room.
	More int `json:"more,omitempty" bound:"0.."`
	// Why is set where nothing could be seen.
	Why string `json:"why,omitempty" bound:"len=256 text"`
}

// OddProcess is one that is not where the others of its kind are.
type OddProcess struct {
	StackProcess
	Node  string `json:"node"`
	Role  string `json:"role,omitempty"`
	Group int    `json:"group"` // its place in the groups
}

// Stacks is what a comparison showed, and is kept with the attempt.
type Stacks struct {
	Time time.Time `json:"time"` // of the comparison
	// Kind is what most of those are that were compared; empty: there was nothing to compare.
	Kind string `json:"kind,omitempty"`
	// who are in the same place, the largest first; in what is shown of attempts they are left out
	Groups []StackGroup `json:"groups,omitempty"`
	// Odd are those that are named, by rank and task; none: nobody.
	Odd []OddProcess `json:"odd,omitempty"`
	// Missing are ranks of which nothing was seen, Unreached the nodes that did not answer.
	Missing   []int    `json:"missing,omitempty"`
	Unreached []string `json:"unreached,omitempty"`
	// More is how many processes are in no group, because there was no room.
	More int `json:"more,omitempty"`
	// Text says it in one sentence.
	Text string `json:"text"`
}

// StacksReply is `gctl stacks --json`: of a job that runs what was seen just now, else what was kept of its last attempt of
// which anything was.
type StacksReply struct {
	SchemaVersion int    `json:"schema_version"`
	JobID         int64  `json:"job_id"`
	Epoch         int    `json:"epoch"`
	Live          bool   `json:"live"`
	Stacks        Stacks `json:"stacks"`
}
