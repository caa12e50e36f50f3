package api

import "time"

// What ranks say and ask while they run, on its way from the node to the controller. Each task
// of a step is a rank in all of this, of its step and not of the gang.

// MaxCheckpointBytes is the largest checkpoint of one rank. More belongs into files.
const MaxCheckpointBytes = 16 << 20

// TooLarge refuses a checkpoint beyond that.
func TooLarge() *Error {
	return &Error{Code: CodeTooLarge, Message: "the checkpoint is larger than the 16 MiB that one rank may store",
		Hint: "write large state to files in $GANG_CHECKPOINT_DIR"}
}

// MaxBarrierName bounds the name of a barrier and the key of an arrival, in bytes.
const MaxBarrierName = 128

// MaxCheckpointEnv is the longest CHECKPOINT_DATA: the kernel takes no single string of an
// environment above 128 KiB.
const MaxCheckpointEnv = 96 << 10

// MaxStatusBytes is how much of a STATUS= is kept: a line in gqueue.
const MaxStatusBytes = 256

// CheckpointDrain in [Spec.Checkpoint] refuses checkpoints while the gang is not being stopped.
const CheckpointDrain = "drain"

// RankNote is what a rank has said about itself. None of it is state: it is shown and
// judged, and forgotten with the controller until the node says it again.
type RankNote struct {
	Rank    int           `json:"rank"`
	Beats   uint64        `json:"beats,omitempty"`              // WATCHDOG=1 so far
	BeatAge time.Duration `json:"beat_age_ns,omitempty"`        // since the last of them, when this was sent
	Silent  bool          `json:"silent,omitempty"`             // it has beaten, and not for the stall time-out
	Status  string        `json:"status,omitempty" bound:"any"` // the newest STATUS=
	Ready   bool          `json:"ready,omitempty"`              // READY=1
	// Stopping: STOPPING=1. Saved: X_GANG_CHECKPOINT=done, the stop need not wait for it.
	Stopping bool `json:"stopping,omitempty"`
	Saved    bool `json:"saved,omitempty"`
}

// TaskNote is what a task of a step has said; its number is [RankNote.Rank].
type TaskNote struct {
	Step int `json:"step"`
	RankNote
	Ended bool `json:"ended,omitempty"` // its process has: it says nothing more
}

// TaskKey names a task of the current epoch.
type TaskKey struct {
	Step int `json:"step"`
	Task int `json:"task"`
}

// MemberNote is what the ranks of one member, and the tasks of its steps, have said: the
// newest of each.
type MemberNote struct {
	MemberKey
	Ranks []RankNote `json:"ranks"`
	Tasks []TaskNote `json:"tasks,omitempty"`
	Watch *WatchNote `json:"watch,omitempty"` // of its cards; added by gnoded
	// Measure is what was seen of it up to now, about once a minute; added by gnoded.
	Measure *Measure `json:"measure,omitempty"`
}

// Call is what a rank, or a task of a step, asks of the controller. The node vouches for the
// key, the step and the rank. Only one field besides them is set.
type Call struct {
	MemberKey
	Step    *int           `json:"step,omitempty"` // of a task; nil: a rank of the gang
	Rank    int            `json:"rank"`           // or the number of the task
	Put     *CheckpointPut `json:"put,omitempty"`  // the call's data is the checkpoint
	Get     *CheckpointGet `json:"get,omitempty"`  // the answer's data is
	Barrier *Barrier       `json:"barrier,omitempty"`
	Ready   *ReadyWait     `json:"ready,omitempty"`
}

// CheckpointPut stores a checkpoint. A repeat with the Key of the put before changes nothing.
type CheckpointPut struct {
	Key string `json:"key,omitempty" bound:"any"`
}

// CheckpointGet reads the checkpoint of a rank from a set.
type CheckpointGet struct {
	Rank  int  `json:"rank"`
	Own   bool `json:"own,omitempty"`   // the caller's, and not by number
	Epoch int  `json:"epoch,omitempty"` // 0: the newest complete set
	// From is the set, for a task that starts; nil: as Epoch says, or the newest complete one.
	From *TaskSet `json:"from,omitempty"`
}

// Barrier waits until every rank of the epoch has come to the same name. A repeat with the
// same Key is the same arrival.
type Barrier struct {
	Name string `json:"name" bound:"any"`
	Key  string `json:"key,omitempty" bound:"any"`
}

// ReadyWait waits until every rank of a role, or of the gang, has said READY=1 in this epoch.
type ReadyWait struct {
	Role string `json:"role,omitempty" bound:"any"`
}

// CallResult is how a call ended well.
type CallResult struct {
	Epoch    int   `json:"epoch,omitempty"`    // of the checkpoint
	Bytes    int64 `json:"bytes,omitempty"`    // of the checkpoint
	Complete bool  `json:"complete,omitempty"` // every rank has put one in this epoch
	Size     int   `json:"size,omitempty"`     // ranks that a barrier waited for
}

// CallPiece is one piece of a call, in either direction. The node opens it with Call; then
// both sides send Data within the credit they were given (a call begins with
// [StreamWindow]) and end their half with EOF. The controller's last piece has Result or
// Error. Cancel ends all of it.
type CallPiece struct {
	ID     uint64      `json:"id"`
	Call   *Call       `json:"call,omitempty"`
	Data   []byte      `json:"data,omitempty"`
	EOF    bool        `json:"eof,omitempty"`
	Cancel bool        `json:"cancel,omitempty"`
	Credit int64       `json:"credit,omitempty"`
	Result *CallResult `json:"result,omitempty"`
	Error  *Error      `json:"error,omitempty"`
}

// Checkpoint is the newest set of checkpoints as `gqueue --json` prints it.
type Checkpoint struct {
	Epoch    int       `json:"epoch"`
	Time     time.Time `json:"time"`
	Bytes    int64     `json:"bytes"`    // of the newest of each rank
	Complete bool      `json:"complete"` // every rank has put one in this epoch
	// Of the tasks of a step: its name, and how many tasks it has.
	StepID string `json:"step_id,omitempty"`
	Tasks  int    `json:"tasks,omitempty"`
}
