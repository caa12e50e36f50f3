package api

import (
	"reflect"
	"time"
)

// JobQuery selects jobs (GET /v1/jobs as URL parameters of the same names; POST
// /v1/cancel in its body). Empty fields select all; several values of one field are
// alternatives, fields together narrow.
type JobQuery struct {
	Refs       []JobRef   `json:"refs,omitempty"`
	Users      []string   `json:"users,omitempty" bound:"n=1000"`
	Names      []string   `json:"names,omitempty" bound:"n=1000"`
	Accounts   []string   `json:"accounts,omitempty" bound:"n=1000"`
	Partitions []string   `json:"partitions,omitempty" bound:"n=1000"`
	Nodes      []string   `json:"nodes,omitempty" bound:"n=1000"` // jobs with a member on one of these
	States     []JobState `json:"states,omitempty" bound:"n=64"`  // empty: all that have not ended
	All        bool       `json:"all,omitempty"`                  // ended ones that are still in memory too
	Past       bool       `json:"past,omitempty"`                 // of Refs, those of the history too
	NoRanks    bool       `json:"no_ranks,omitempty"`             // leave ranks[] out
	// those that have ended and on a node of which the site's epilog still runs are COMPLETING
	Cleaning bool `json:"cleaning,omitempty"`
	Start    bool `json:"start,omitempty"` // say of waiting jobs when they are expected to start
	Lines    bool `json:"lines,omitempty"` // only what the usual table shows, as [LinesType]
}

// HistoryQuery is the body of POST /v1/history: jobs with their attempts, ended ones too.
// The answer is one [JobDetail] a line ([HistoryType]), by id, without ranks. A reference that
// names nothing gives nothing.
type HistoryQuery struct {
	Refs  []JobRef  `json:"refs,omitempty"`                 // an array's id means all of it; empty: all jobs
	Users []string  `json:"users,omitempty" bound:"n=1000"` // empty: of everybody
	Since time.Time `json:"since,omitzero"`                 // jobs that have not ended, or ended after; zero: from the beginning
	Until time.Time `json:"until,omitzero"`                 // jobs that were submitted before or then; zero: no limit
}

// HistoryType is what a history is answered with: one JSON object a line.
const HistoryType = "application/jsonl"

// CancelRequest is the body of POST /v1/cancel. A selection of nothing at all is refused.
type CancelRequest struct {
	JobQuery
	// Signal: deliver this signal and change no state; empty: cancel.
	Signal string      `json:"signal,omitempty"`
	Scope  SignalScope `json:"scope,omitempty"` // default ScopeRanks
	Now    bool        `json:"now,omitempty"`   // skip the notice
	// Ranks, and those of Role, alone get the signal; none of both: all ranks.
	Ranks []int  `json:"ranks,omitempty" bound:"n=65536"`
	Role  string `json:"role,omitempty" bound:"len=32"`
}

// CancelReply has one result for each job selected, and one with an Error for each
// reference that named nothing.
type CancelReply struct {
	SchemaVersion int            `json:"schema_version"`
	Results       []CancelResult `json:"results"`
}

// CancelResult is what became of one job.
type CancelResult struct {
	Ref       string    `json:"ref"` // "12" or "12_3"
	JobID     int64     `json:"job_id,omitempty"`
	Processes int       `json:"processes,omitempty"` // that got the signal
	Nodes     int       `json:"nodes,omitempty"`
	Idle      string    `json:"idle,omitempty"` // why there was nothing to do
	Stop      *Stopping `json:"stop,omitempty"` // of a cancel: how what runs is brought to its end
	Error     *Error    `json:"error,omitempty"`
}

// Stopping is how a gang that runs is brought to its end: what its ranks are told now, and by when they are killed.
type Stopping struct {
	Signal string    `json:"signal"` // "TERM": without SIG
	Notice bool      `json:"notice"` // it is the one that the job asked for, before the stop itself
	EndsBy time.Time `json:"ends_by"`
}

// ActionRequest is the body of POST /v1/hold, /v1/release and /v1/requeue; the answer is a
// CancelReply.
type ActionRequest struct {
	JobQuery
	Hold bool `json:"hold,omitempty"` // of a requeue: it waits, held, until it is released
	Now  bool `json:"now,omitempty"`  // of a requeue: skip the notice
	// Ended, of a requeue: also jobs that have ended and that the controller still has in memory (keep_ended).
	Ended bool `json:"ended,omitempty"`
	// As says whose the hold of a hold or requeue is: [HoldAdmin], which counts where the caller is
	// one, or [HoldUser], which its owner may release and which takes the place of an admin's when
	// an admin says so. Empty: an admin's on somebody else's job, else the owner's.
	As string `json:"as,omitempty"`
}

// Whose a hold is, see [ActionRequest.As].
const (
	HoldAdmin = "admin"
	HoldUser  = "user"
	// ReasonSpecialExit is why a job waits that is held so.
	ReasonSpecialExit = "JobHeldSpecial"
	HoldSpecial       = "special" // of a requeue: as HoldUser, marked as one that looks at its output first
)

// NodeAction is the body of POST /v1/nodes/{name}/drain, /resume, /fence and /forget.
type NodeAction struct {
	Reason   string     `json:"reason,omitempty" bound:"len=1024 text"`
	Deadline time.Time  `json:"deadline,omitzero"`                // of a drain: what is still there is stopped then, to run elsewhere
	Down     bool       `json:"down,omitempty"`                   // of a drain: what runs there is lost with the node, and stopped at once
	Asap     bool       `json:"asap,omitempty"`                   // of a reboot: the node takes no new work until then
	Then     RebootThen `json:"then,omitempty" bound:"len=16"`    // of a reboot: empty, as it was before
	Features []string   `json:"features,omitempty" bound:"n=256"` // of features: in place of those of the node's configuration
}

// LogQuery selects what GET /v1/log streams (as URL parameters).
type LogQuery struct {
	Ref     JobRef
	Rank    int   // -1: rank 0, or with Follow of several files the first
	Attempt int   // the Nth that started, 0: the newest
	Stderr  bool  // the error file where it is another one
	Follow  bool  // on and on until the job ends, across requeues, from before the start
	Tail    int64 // bytes from the end, 0: all
	// From goes on with a followed log where an earlier call broke off.
	From LogPosition
}

// LogPosition is a place in the output of a rank.
type LogPosition struct {
	Epoch  int   // 0: none
	Offset int64 // in the file of that epoch
}

// LogPiece is an event of GET /v1/logs: output of one rank, or (of event over) that there is no more
// of it, with the reason where that is not its end.
type LogPiece struct {
	Rank   int    `json:"rank"`
	Epoch  int    `json:"epoch,omitempty"`
	Offset int64  `json:"offset,omitempty"` // of the next byte in the file of that epoch
	Data   []byte `json:"data,omitempty"`
	Error  string `json:"error,omitempty"`
}

// WebReply is `gctl web`: a link that logs its caller in at the page, once.
type WebReply struct {
	SchemaVersion int       `json:"schema_version"`
	URL           string    `json:"url"`
	Expires       time.Time `json:"expires"`
}

// TokenReply is `gangd token new`.
type TokenReply struct {
	SchemaVersion int    `json:"schema_version"`
	Line          string `json:"line"` // what `gnoded join` takes
}

// TokenRequest is the body of POST /v1/tokens.
type TokenRequest struct {
	Node       string `json:"node,omitempty"`        // only this node may use it; empty: any
	Login      bool   `json:"login,omitempty"`       // it makes a login host, which vouches for its users and runs nothing
	Controller bool   `json:"controller,omitempty"`  // it makes another controller, which shares the database
	Uses       int    `json:"uses,omitempty"`        // default 1
	TTLSeconds int64  `json:"ttl_seconds,omitempty"` // default one hour
}

// TokensReply is the answer of GET /v1/tokens: those with which somebody can still join.
type TokensReply struct {
	SchemaVersion int     `json:"schema_version"`
	Tokens        []Token `json:"tokens"`
}

// Token is a join token as far as anybody but who got it may know: not what it is.
type Token struct {
	ID         string    `json:"id"`                   // for [TokenWithdrawal]
	Node       string    `json:"node,omitempty"`       // only this node may use it
	Login      bool      `json:"login,omitempty"`      // it makes a login host
	Controller bool      `json:"controller,omitempty"` // it makes a controller
	Uses       int       `json:"uses"`                 // that are left
	Expires    time.Time `json:"expires"`
}

// TokenWithdrawal is the body of POST /v1/tokens/withdraw: nobody joins with it any more.
type TokenWithdrawal struct {
	ID string `json:"id"`
}

// RevokeRequest is the body of POST /v1/revoke: the node's certificates count no more.
type RevokeRequest struct {
	Node string `json:"node"`
}

// WhyReply is `gqueue --why --json` for one job.
type WhyReply struct {
	SchemaVersion int      `json:"schema_version"`
	JobID         int64    `json:"job_id"`
	State         JobState `json:"state"`
	Reason        string   `json:"reason"` // Slurm's word
	Why           string   `json:"why"`    // lines of plain words
}

// BackupRequest is the body of POST /v1/backup.
type BackupRequest struct {
	Path string `json:"path" bound:"text"` // absolute, on the controller's host; must not exist
}

// BackupReply is `gangd backup`.
type BackupReply struct {
	SchemaVersion int    `json:"schema_version"`
	Path          string `json:"path"`
	Bytes         int64  `json:"bytes"` // of the store's copy
}

// VerifyReply is `gangd verify --json`: what a recount of memory and store disagrees on.
type VerifyReply struct {
	SchemaVersion int      `json:"schema_version"`
	Findings      []string `json:"findings"`
}

// UpdateRequest is the body of POST /v1/update: what is different from now on of the jobs
// selected. Fields that are not there stay; the answer is a CancelReply.
type UpdateRequest struct {
	JobQuery
	Name       *string        `json:"name,omitempty" bound:"len=1024"`
	TimeLimit  *time.Duration `json:"time_limit_ns,omitempty"` // 0: what the partition allows
	Priority   *int64         `json:"priority,omitempty" bound:"-4294967296..2147483647"`
	Nice       *int64         `json:"nice,omitempty" bound:"-2147483648..2147483647"`
	Begin      *time.Time     `json:"begin,omitempty"`    // zero: now
	Deadline   *time.Time     `json:"deadline,omitempty"` // zero: none
	Partition  *string        `json:"partition,omitempty"`
	Constraint *string        `json:"constraint,omitempty"`  // empty: none
	Prefer     *string        `json:"prefer,omitempty"`      // empty: nothing
	ArrayLimit *int           `json:"array_limit,omitempty"` // 0: no limit
	Dependency *Dependency    `json:"dependency,omitempty"`  // without conditions: none
	Comment    *string        `json:"comment,omitempty" bound:"text"`
	Message    *string        `json:"message,omitempty" bound:"text"` // becomes an event of the job, for those who follow it
	// Ask is what a job that waits asks for from now on, in the parts that Parts names; the rest of it says nothing.
	Ask   *Spec      `json:"ask,omitempty"`
	Parts []SpecPart `json:"parts,omitempty" bound:"n=16"`
}

// SpecPart is a part of a spec that can be changed while its job waits.
type SpecPart string

// The parts.
const (
	PartResources   SpecPart = "resources" // size, nodes, CPUs, memory, cards, and the words for them
	PartAccount     SpecPart = "account"
	PartReservation SpecPart = "reservation"
	PartOutput      SpecPart = "output"
	PartError       SpecPart = "error"
	PartInput       SpecPart = "input"
	PartWorkDir     SpecPart = "work_dir"
	PartNotify      SpecPart = "notify"
	PartRequeue     SpecPart = "requeue"
	PartTimeMin     SpecPart = "time_min"
)

// SpecParts is how each part is taken over from another spec.
var SpecParts = map[SpecPart]func(to, from *Spec){
	PartResources: func(to, from *Spec) {
		to.Size, to.CPUsPerRank, to.MemoryPerRank, to.MemoryPerNode, to.TmpPerNode =
			from.Size, from.CPUsPerRank, from.MemoryPerRank, from.MemoryPerNode, from.TmpPerNode
		to.GPUsPerRank, to.GPUsPerNode, to.GPUType, to.MinCompute, to.VRAMBytes, to.Share =
			from.GPUsPerRank, from.GPUsPerNode, from.GPUType, from.MinCompute, from.VRAMBytes, from.Share
		to.CPUBind, to.ThreadsPerCore, to.Shape, to.Asked, to.Words = from.CPUBind, from.ThreadsPerCore, from.Shape, from.Asked, from.Words
		to.RanksPerNode, to.MinNodes, to.MaxNodes, to.Exclusive = from.RanksPerNode, from.MinNodes, from.MaxNodes, from.Exclusive
		to.Pools = from.Pools
		to.NodeList, to.Exclude, to.Switches, to.SwitchWait = from.NodeList, from.Exclude, from.Switches, from.SwitchWait
	},
	PartAccount:     func(to, from *Spec) { to.Account = from.Account },
	PartReservation: func(to, from *Spec) { to.Reservation = from.Reservation },
	PartOutput:      func(to, from *Spec) { to.Output = from.Output },
	PartError:       func(to, from *Spec) { to.Error = from.Error },
	PartInput:       func(to, from *Spec) { to.Input = from.Input },
	PartWorkDir:     func(to, from *Spec) { to.WorkDir = from.WorkDir },
	PartNotify:      func(to, from *Spec) { to.Notify = from.Notify },
	PartRequeue: func(to, from *Spec) {
		to.NoRequeue, to.RequeueCauses, to.MaxTimeTotal = from.NoRequeue, from.RequeueCauses, from.MaxTimeTotal
	},
	PartTimeMin: func(to, from *Spec) { to.TimeMin = from.TimeMin },
}

// Changes reports whether it asks for anything to be different.
func (r *UpdateRequest) Changes() bool {
	changes := *r
	changes.JobQuery = JobQuery{}
	return !reflect.DeepEqual(changes, UpdateRequest{})
}

// RerunRequest is the body of POST /v1/rerun: submit a job once more, as it was. The answer
// is a SubmitReply.
type RerunRequest struct {
	Key    string `json:"key" bound:"len=256"` // as in [SubmitRequest]
	Ref    JobRef `json:"ref"`
	Failed bool   `json:"failed,omitempty"` // of an array only the elements that did not complete
}
