package api

import (
	"slices"
	"time"
)

// NotifyType is a kind of event of which people ask to be told.
type NotifyType string

// The kinds: those of Slurm's --mail-type, and the last three of our own.
const (
	NotifyBegin         NotifyType = "BEGIN"
	NotifyEnd           NotifyType = "END"
	NotifyFail          NotifyType = "FAIL"
	NotifyRequeue       NotifyType = "REQUEUE"
	NotifyInvalidDepend NotifyType = "INVALID_DEPEND"
	NotifyStageOut      NotifyType = "STAGE_OUT" // never happens: there are no burst buffers
	NotifyTimeLimit     NotifyType = "TIME_LIMIT"
	NotifyTimeLimit90   NotifyType = "TIME_LIMIT_90"
	NotifyTimeLimit80   NotifyType = "TIME_LIMIT_80"
	NotifyTimeLimit50   NotifyType = "TIME_LIMIT_50"
	NotifyArrayTasks    NotifyType = "ARRAY_TASKS" // not an event: each element of an array is told of by itself
	NotifyStall         NotifyType = "STALL"       // a watchdog stops it: it stalled, or its cards hang
	NotifyIdle          NotifyType = "IDLE"        // its cards have been idle for the site's limit
	NotifyPreempt       NotifyType = "PREEMPT"
	// NotifyMore stands on a letter in place of many: the user has too many that wait. Nobody asks for it.
	NotifyMore NotifyType = "MORE"
	// NotifyReport is that of a report, which goes into the job's output on the node that To names. It is asked for
	// with [Spec.Report].
	NotifyReport NotifyType = "REPORT"
)

// NotifyTypes are those that may be asked for, in the order in which they are kept.
var NotifyTypes = []NotifyType{NotifyBegin, NotifyEnd, NotifyFail, NotifyRequeue, NotifyInvalidDepend, NotifyStageOut, NotifyTimeLimit,
	NotifyTimeLimit90, NotifyTimeLimit80, NotifyTimeLimit50, NotifyArrayTasks, NotifyStall, NotifyIdle, NotifyPreempt}

// NotifyAll is what ALL stands for, as in Slurm.
var NotifyAll = []NotifyType{NotifyBegin, NotifyEnd, NotifyFail, NotifyRequeue, NotifyInvalidDepend, NotifyStageOut}

// NotifyDefault are the kinds of a --notify that names none.
var NotifyDefault = []NotifyType{NotifyEnd, NotifyFail}

// Percent of the time limit that a kind is about, 0: none.
func (t NotifyType) Percent() int {
	switch t {
	case NotifyTimeLimit90:
		return 90
	case NotifyTimeLimit80:
		return 80
	case NotifyTimeLimit50:
		return 50
	}
	return 0
}

// MaxNotify bounds the addresses of one job.
const MaxNotify = 8

// Notify is one address that is told of some events of a job.
type Notify struct {
	Target string       `json:"target,omitempty" bound:"len=64"` // name of a target of the site; empty: mail
	To     string       `json:"to,omitempty" bound:"len=254"`    // mail address; empty: the user's own
	Types  []NotifyType `json:"types" bound:"n=16 len=32"`
}

// Wants reports whether it is told of a kind.
func (n *Notify) Wants(t NotifyType) bool { return slices.Contains(n.Types, t) }

// Letter is what one address is to be told of one event of a job, or of an array as a whole. It is in the
// store from the commit of the event until it was delivered.
type Letter struct {
	ID  int64 `json:"id"`  // the event's Seq and the address's place; the same in each delivery
	Rev int   `json:"rev"` // counts what was added to it

	User   string `json:"user"`
	Target string `json:"target,omitempty"` // as in [Notify]
	To     string `json:"to,omitempty"`     // of a report the node

	Type    NotifyType `json:"type"`
	Time    time.Time  `json:"time"`
	JobID   int64      `json:"job_id"`
	Ref     string     `json:"ref"` // 12, 12_3, of an array as a whole 12_*
	JobName string     `json:"job_name"`

	State     JobState      `json:"state,omitempty"` // of an end
	Cause     Cause         `json:"cause,omitempty"`
	ExitCode  int           `json:"exit_code,omitempty"`
	Queued    time.Duration `json:"queued_ns,omitempty"` // before the last start
	Ran       time.Duration `json:"ran_ns,omitempty"`    // since then
	TimeLimit time.Duration `json:"time_limit_ns,omitempty"`
	Text      string        `json:"text,omitempty"`

	Array *LetterArray       `json:"array,omitempty"` // of an array as a whole
	More  map[NotifyType]int `json:"more,omitempty"`  // of [NotifyMore]: what it stands for

	// Draft: its array is not over; it waits for that.
	Draft bool `json:"draft,omitempty"`
	// GivenUp is when it was given up, with the last error; zero: it was not.
	GivenUp time.Time `json:"given_up,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// LetterArray is how an array did so far.
type LetterArray struct {
	Count    int              `json:"count"` // elements
	States   map[JobState]int `json:"states,omitempty"`
	Requeued int              `json:"requeued,omitempty"`
	MinExit  int              `json:"min_exit,omitempty"`
	MaxExit  int              `json:"max_exit,omitempty"`
	Failed   []int            `json:"failed,omitempty"` // indices that failed, the first [MaxFailedListed]
	Sent     []NotifyType     `json:"sent,omitempty"`   // kinds of which it was told once, which is enough
}

// MaxFailedListed bounds the indices that a letter about an array names.
const MaxFailedListed = 20

// GivenUpKept is how long what was given up stays on record.
const GivenUpKept = 7 * 24 * time.Hour

// OutboxReply is `gctl outbox --json`: what waits to be delivered, and what was given up.
type OutboxReply struct {
	SchemaVersion int          `json:"schema_version"`
	Lines         []OutboxLine `json:"lines"`
	GivenUp       []Letter     `json:"given_up"`
}

// OutboxLine is what waits for one address of a user.
type OutboxLine struct {
	User    string    `json:"user"`
	Target  string    `json:"target,omitempty"`
	To      string    `json:"to,omitempty"`
	Report  bool      `json:"report,omitempty"` // reports, which are written behind the output of jobs on the node To
	Waiting int       `json:"waiting"`
	Oldest  time.Time `json:"oldest"`
	Tries   int       `json:"tries,omitempty"` // that failed since the last that did not
	Next    time.Time `json:"next,omitzero"`   // not before
	Error   string    `json:"error,omitempty"`
}
