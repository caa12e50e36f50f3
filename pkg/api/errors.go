package api

import (
	"errors"
	"fmt"
)

// Code is what a program decides on; the message is for people.
type Code string

// The codes on the wire, and the HTTP status each travels with.
const (
	CodeInvalid       Code = "invalid"       // 400: the request itself is wrong
	CodeUnsatisfiable Code = "unsatisfiable" // 422: well formed, but no node could ever meet it
	CodePermission    Code = "permission"    // 403
	CodeNotFound      Code = "not_found"     // 404: unknown, or not yours to know of
	CodeConflict      Code = "conflict"      // 409: the state does not allow it
	CodeBusy          Code = "busy"          // 409: what is asked for is in use now, and will be free
	CodeStaleEpoch    Code = "stale_epoch"   // 409: speaks of an epoch that is not the current one
	CodeAlreadyEnded  Code = "already_ended" // 409
	CodeTooLarge      Code = "too_large"     // 413
	CodeTooMany       Code = "too_many"      // 429: the caller holds or asks as much as one user may
	CodeDiskFull      Code = "disk_full"     // 507: the controller can't keep what it would accept
	CodeNotLeader     Code = "not_leader"    // 421: another controller leads; Word says which
	CodeUnavailable   Code = "unavailable"   // 503: starting, on hold, or nobody leads
	CodeOnHold        Code = "on_hold"       // 503: the store went back in time; a person has to decide
	CodeInternal      Code = "internal"      // 500
)

// HTTPStatus is the status that a code travels with.
func (c Code) HTTPStatus() int {
	switch c {
	case CodeInvalid:
		return 400
	case CodePermission:
		return 403
	case CodeNotFound:
		return 404
	case CodeConflict, CodeBusy, CodeStaleEpoch, CodeAlreadyEnded:
		return 409
	case CodeTooLarge:
		return 413
	case CodeNotLeader:
		return 421
	case CodeUnsatisfiable:
		return 422
	case CodeUnavailable, CodeOnHold:
		return 503
	case CodeTooMany:
		return 429
	case CodeDiskFull:
		return 507
	}
	return 500
}

// Reason is what a refusal is about, where a program has to tell refusals of one code apart.
type Reason string

// The reasons; Subject of the [Error] is the name that it is about.
const (
	ReasonCronLine         Reason = "cron_line"         // subject: its first and last line, as 3-4
	ReasonCronJob          Reason = "cron_job"          // it is changed in its cron table
	ReasonPartition        Reason = "partition"         // there is no such; subject "": none was asked for, and there is no default
	ReasonPartitionState   Reason = "partition_state"   // it takes no jobs now
	ReasonPartitionUsed    Reason = "partition_used"    // jobs are of it
	ReasonNode             Reason = "node"              // there is no such
	ReasonNoReboot         Reason = "no_reboot"         // a node has no program that reboots it
	ReasonFeature          Reason = "feature"           // no node has it, or the constraint can't be read
	ReasonPreferredFeature Reason = "preferred_feature" // no node has it
	ReasonDependency       Reason = "dependency"        // can't be read, or on a job that there is not
	ReasonMemory           Reason = "memory"            // more than any node has
	ReasonShape            Reason = "shape"             // no node has the sockets, cores and threads
	ReasonNodeCount        Reason = "node_count"        // fewer nodes are free than a reservation asks for
	ReasonOwner            Reason = "owner"             // the job is somebody else's
	ReasonReserved         Reason = "reserved"          // a reservation has the nodes, or the name
	ReasonAllocation       Reason = "allocation"        // fewer nodes are allocated than a step asks for
	ReasonOutside          Reason = "outside"           // a node that a step names is not in its allocation
	ReasonComponent        Reason = "component"         // a component that the job does not have; the subject is its last one
	ReasonTimeMin          Reason = "time_min"          // the least time limit leaves no time before the limit or the deadline
	ReasonBegin            Reason = "begin"             // not before the deadline
	ReasonNoRequeue        Reason = "no_requeue"        // the job was submitted not to be requeued
	ReasonPartitionAccess  Reason = "partition_access"  // not open to the user or to his groups
	ReasonPartitionAccount Reason = "partition_account" // not open to the account
	ReasonPartitionNodes   Reason = "partition_nodes"   // more or fewer nodes than it allows a job
	ReasonTimeLimit        Reason = "time_limit"        // above the partition's, or not over before the deadline
	ReasonWithin           Reason = "within"            // a step of the allocation has what is asked for, and who asks is in it
	ReasonPorts            Reason = "ports"             // the site has not so many, or others have them
	ReasonPool             Reason = "pool"              // the site has none of it, or not so many
	ReasonRule             Reason = "rule"              // the site's rule for submissions refused it, or gave no answer
)

// Error is a refusal as it crosses the wire: what, why with the numbers, and what to do.
type Error struct {
	Code    Code   `json:"code" bound:"any"`
	Message string `json:"message" bound:"any"`
	Hint    string `json:"hint,omitempty" bound:"any"` // the nearest valid choice or the command to run
	// RetryAfter, in seconds, is when the same request may be taken; it did nothing. 0: that can't be told.
	RetryAfter int    `json:"retry_after,omitempty"`
	Reason     Reason `json:"reason,omitempty" bound:"any"`
	Subject    string `json:"subject,omitempty" bound:"any"`
	Word       *Word  `json:"word,omitempty"` // of not_leader
}

// About says what a refusal is about, and gives it back.
func (e *Error) About(r Reason, subject string) *Error {
	e.Reason, e.Subject = r, subject
	return e
}

func (e *Error) Error() string {
	if e.Hint != "" {
		return e.Message + "; " + e.Hint
	}
	return e.Message
}

// Errorf makes an [Error] without a hint.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf is the code of the first [Error] in err's chain, CodeInternal when there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// ReasonOf is the reason of the first [Error] in err's chain, "" when there is none.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// The exit codes of the commands, see man pages; --wait and grun give the job's own.
const (
	ExitOK          = 0
	ExitRefused     = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitUnreachable = 4
)

// AlreadyEnded refuses to change a job that is over; ref is how it was called.
func AlreadyEnded(ref any, s JobState) *Error {
	return Errorf(CodeAlreadyEnded, "job %v has already ended: %s", ref, s)
}
