// Package row is how a store writes gang's types down: JSON objects of their own, so that
// renaming a Go field never loses what is on a disk. A round trip changes the monotonic reading
// and the location pointer of a time, nothing else.
//
// Invariant: every field of the gang types is carried, but a job's Spec (with TextBytes) and Ranks,
// which have rows of their own, and Hopeless, which is judged anew; a test fills every field by reflection and compares.
//
// Failure rules: a row that can't be read names the row; nothing is guessed.
//
// Begin with Job and DecodeJob; the checks before a write are in check.go. It must not know SQL or a
// database.
package row

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unique"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
)

type job struct {
	ArrayID      int64             `json:"array_id,omitempty"`
	ArrayIndex   int               `json:"array_index"`
	Array        *array            `json:"array,omitempty"`
	User         string            `json:"user"`
	UID          uint32            `json:"uid"`
	GID          uint32            `json:"gid"`
	Size         int               `json:"size"` // ranks; those without a row are blocked
	Key          string            `json:"key,omitempty"`
	Name         string            `json:"name"`
	Partition    string            `json:"partition"`
	Priority     int64             `json:"priority"`
	Held         string            `json:"held,omitempty"`
	Comment      *string           `json:"comment,omitempty"`
	Nice         *int64            `json:"nice,omitempty"`
	Constraint   *string           `json:"constraint,omitempty"`
	Prefer       *string           `json:"prefer,omitempty"`
	Dependency   *api.Dependency   `json:"dependency,omitempty"`
	Waits        string            `json:"waits,omitempty"`
	TimeLimit    time.Duration     `json:"time_limit,omitempty"`
	Deadline     time.Time         `json:"deadline,omitzero"`
	CutTo        time.Duration     `json:"cut_to,omitempty"`
	Turn         order.Turn        `json:"turn,omitempty"`
	Submit       time.Time         `json:"submit,omitzero"`
	Eligible     time.Time         `json:"eligible,omitzero"`
	Start        time.Time         `json:"start,omitzero"`
	End          time.Time         `json:"end,omitzero"`
	ReadyAt      time.Time         `json:"ready_at,omitzero"`
	Acked        int               `json:"acked,omitempty"`
	Epoch        int               `json:"epoch,omitempty"`
	Restarts     int               `json:"restarts,omitempty"`
	Members      []member          `json:"members,omitempty"`
	ReservedAt   time.Time         `json:"reserved_at,omitzero"`
	Drain        *drain            `json:"drain,omitempty"`
	Presumed     *presumed         `json:"presumed,omitempty"`
	Used         map[api.Cause]int `json:"used,omitempty"`
	BackoffUntil time.Time         `json:"backoff_until,omitzero"`
	Avoid        []string          `json:"avoid,omitempty"`
	Refusals     []refusal         `json:"refusals,omitempty"`
	Elsewhere    bool              `json:"elsewhere,omitempty"`
	Cancelled    bool              `json:"cancelled,omitempty"`
	CancelledBy  string            `json:"cancelled_by,omitempty"`
	Rollbacks    int               `json:"rollbacks,omitempty"`
	Image        string            `json:"image,omitempty"`
	StepImages   []stepImage       `json:"step_images,omitempty"`
	StepFault    *stepFault        `json:"step_fault,omitempty"`
	Verdict      *verdict          `json:"verdict,omitempty"`
	Checkpoint   *checkpoint       `json:"checkpoint,omitempty"`
	TaskSet      *taskCheckpoint   `json:"task_checkpoint,omitempty"`
	Kept         time.Duration     `json:"kept,omitempty"`
	Ran          time.Duration     `json:"ran,omitempty"`
	Queued       time.Time         `json:"queued,omitzero"`
	Steps        []step            `json:"steps,omitempty"`
	Ports        []int             `json:"ports,omitempty"`
	NextStep     int               `json:"next_step,omitempty"`
	Widest       stepSet           `json:"widest,omitzero"`
	LastRun      bool              `json:"last_run,omitempty"`
	TimeTold     int               `json:"time_told,omitempty"`
	Booking      *booking          `json:"booking,omitempty"`
}

type presumed struct {
	Start    time.Time `json:"start,omitzero"`
	Restarts int       `json:"restarts,omitempty"`
}

type refusal struct {
	Node  string    `json:"node"`
	Blame api.Blame `json:"blame"`
	Text  string    `json:"text"`
}

// each converts a list; an empty one is nil.
func each[A, B any](in []A, convert func(A) B) (out []B) {
	for _, x := range in {
		out = append(out, convert(x))
	}
	return out
}

type checkpoint struct {
	Epoch    int       `json:"epoch"`
	Time     time.Time `json:"time"`
	Bytes    int64     `json:"bytes"`
	Complete bool      `json:"complete,omitempty"`
	Before   int       `json:"before,omitempty"`
}

type stepSet struct {
	Epoch int `json:"epoch"`
	Step  int `json:"step"`
	Tasks int `json:"tasks"`
}

type taskCheckpoint struct {
	Set      stepSet   `json:"set"`
	Time     time.Time `json:"time"`
	Bytes    int64     `json:"bytes"`
	Complete bool      `json:"complete,omitempty"`
	Before   stepSet   `json:"before,omitzero"`
}

func encodeTasks(c *gang.TaskCheckpoint) *taskCheckpoint {
	if c == nil {
		return nil
	}
	return &taskCheckpoint{Set: stepSet(c.StepSet), Time: c.Time, Bytes: c.Bytes, Complete: c.Complete, Before: stepSet(c.Before)}
}

func decodeTasks(c *taskCheckpoint) *gang.TaskCheckpoint {
	if c == nil {
		return nil
	}
	return &gang.TaskCheckpoint{StepSet: gang.StepSet(c.Set), Time: c.Time, Bytes: c.Bytes, Complete: c.Complete,
		Before: gang.StepSet(c.Before)}
}

type array struct {
	Count int `json:"count"`
	Min   int `json:"min"`
	Max   int `json:"max"`
	Step  int `json:"step"`
	Limit int `json:"limit,omitempty"`
}

type member struct {
	Node   string           `json:"node"`
	State  gang.MemberState `json:"state"`
	Ranks  []int            `json:"ranks,omitempty"`
	Port   int              `json:"port,omitempty"`
	Forced bool             `json:"forced,omitempty"`

	Noticed bool `json:"noticed,omitempty"`
	Passed  bool `json:"passed,omitempty"`

	Importing api.Import `json:"import,omitzero"`
	CPUs      int        `json:"cpus,omitempty"`

	Heeded   bool   `json:"heeded,omitempty"`
	Killed   int    `json:"killed,omitempty"`
	Kills    int    `json:"kills,omitempty"`
	KillText string `json:"kill_text,omitempty"`
}

// wasReady is the state of a member that was prepared, which was stored once. Now its node is asked.
const wasReady gang.MemberState = "ready"

func decodeMember(m member) gang.Member {
	if m.State == wasReady {
		m.State = gang.MemberPreparing
	}
	return gang.Member(m)
}

type drain struct {
	Cause   api.Cause     `json:"cause"`
	Trigger int           `json:"trigger"`
	Text    string        `json:"text,omitempty"`
	Started time.Time     `json:"started,omitzero"`
	Lead    time.Duration `json:"lead,omitempty"`
	Spent   time.Duration `json:"spent,omitempty"`
	Moved   int           `json:"moved,omitempty"`
	Later   []api.Cause   `json:"later,omitempty"`
	Acked   int           `json:"acked,omitempty"`
	Reports []report      `json:"reports,omitempty"`
	Stacks  *api.Stacks   `json:"stacks,omitempty"`
	Over    time.Time     `json:"over,omitzero"`
}

type report struct {
	Evidence gang.Evidence `json:"evidence,omitempty"`
	Cause    api.Cause     `json:"cause"`
	Trigger  int           `json:"trigger"`
	Text     string        `json:"text,omitempty"`
	Late     time.Duration `json:"late,omitempty"`
}

func encodeDrain(d *gang.Drain) *drain {
	if d == nil {
		return nil
	}
	return &drain{d.Cause, d.Trigger, d.Text, d.Started, d.Lead, d.Spent, d.Moved, d.Later, d.Acked,
		each(d.Reports, func(r gang.Report) report { return report(r) }), d.Stacks, d.Over}
}

func decodeDrain(d *drain) *gang.Drain {
	if d == nil {
		return nil
	}
	return &gang.Drain{Cause: d.Cause, Trigger: d.Trigger, Text: d.Text, Started: d.Started, Lead: d.Lead, Spent: d.Spent, Moved: d.Moved,
		Later: d.Later, Acked: d.Acked,
		Reports: each(d.Reports, func(r report) gang.Report { return gang.Report(r) }), Stacks: d.Stacks, Over: d.Over}
}

type verdict struct {
	State    api.JobState `json:"state"`
	Cause    api.Cause    `json:"cause,omitempty"`
	Trigger  int          `json:"trigger"`
	ExitCode int          `json:"exit_code,omitempty"`
	Signal   int          `json:"signal,omitempty"`
	Text     string       `json:"text,omitempty"`
}

// Job encodes the header of a job: all but ID, SpecHash, Spec, TextBytes, Hopeless and Ranks.
func Job(j *gang.Job) ([]byte, error) {
	r := job{
		ArrayID: j.ArrayID, ArrayIndex: j.ArrayIndex, Array: (*array)(j.Array),
		User: j.User, UID: j.UID, GID: j.GID, Size: len(j.Ranks), Key: j.Key,
		Name: j.Name, Partition: j.Partition, Priority: j.Priority, Held: j.Held, Comment: j.Comment, Nice: j.Nice, Constraint: j.Constraint,
		Prefer: j.Prefer, Dependency: j.Dependency, Waits: j.Waits, TimeLimit: j.TimeLimit,
		Deadline: j.Deadline, CutTo: j.CutTimeLimit, Turn: j.Turn,
		Submit: j.Submit, Eligible: j.Eligible, Start: j.Start, End: j.End, ReadyAt: j.ReadyAt, Acked: j.Acked,
		Epoch: j.Epoch, Restarts: j.Restarts, Members: each(j.Members, func(m gang.Member) member { return member(m) }), ReservedAt: j.ReservedAt,
		Drain: encodeDrain(j.Drain), Presumed: (*presumed)(j.Presumed), Used: j.Used,
		BackoffUntil: j.BackoffUntil, Avoid: j.Avoid, Refusals: each(j.Refusals, func(x gang.Refusal) refusal { return refusal(x) }),
		Elsewhere: j.Elsewhere, Cancelled: j.Cancelled, CancelledBy: j.CancelledBy, Rollbacks: j.Rollbacks, Image: j.Image,
		StepImages: each(j.StepImages, func(x gang.StepImage) stepImage { return stepImage(x) }),
		StepFault:  (*stepFault)(j.StepFault), Verdict: (*verdict)(j.Verdict),
		Checkpoint: (*checkpoint)(j.Checkpoint), TaskSet: encodeTasks(j.TaskCheckpoint), Kept: j.Kept, Ran: j.Ran, Queued: j.Queued,
		Steps: encodeSteps(j.Steps), Ports: j.Ports, NextStep: j.NextStep, Widest: stepSet(j.Widest), LastRun: j.LastRun, TimeTold: j.TimeTold,
		Booking: encodeBooking(j.Booking),
	}
	return json.Marshal(&r)
}

// JobKey is the key in a header, of which nothing else is decoded: it stands before the name, and what is before it has none.
func JobKey(data []byte) (key string) {
	before, _, _ := bytes.Cut(data, []byte(`,"name":`))
	if _, text, has := bytes.Cut(before, []byte(`,"key":`)); has {
		_ = json.Unmarshal(text, &key) // what can't be read is none
	}
	return key
}

// DecodeJob decodes a header. Its ranks are all blocked and shared with others, for the
// caller to own and overwrite with those that have a row; Spec is the caller's too.
func DecodeJob(id int64, specHash string, data []byte) (*gang.Job, error) {
	var r job
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("row of job %d: %w", id, err)
	}
	if r.Size > api.MaxGangSize {
		return nil, fmt.Errorf("row of job %d: size %d: want at most %d", id, r.Size, api.MaxGangSize)
	}
	j := &gang.Job{
		ID: id, ArrayID: r.ArrayID, ArrayIndex: r.ArrayIndex, Array: (*gang.ArrayInfo)(r.Array),
		User: unique.Make(r.User).Value(), UID: r.UID, GID: r.GID, SpecHash: specHash, Ranks: gang.BlankRanks(r.Size), Key: r.Key,
		Name: r.Name, Partition: unique.Make(r.Partition).Value(), Priority: r.Priority,
		TimeLimit: r.TimeLimit, Submit: r.Submit, Eligible: r.Eligible,
		Wishes: &gang.Wishes{Held: r.Held, Deadline: r.Deadline, Dependency: r.Dependency, Waits: r.Waits, Comment: r.Comment, Nice: r.Nice,
			Constraint: r.Constraint, Prefer: r.Prefer},
		Past: &gang.Past{
			Attempt: gang.Attempt{Start: r.Start, End: r.End, ReadyAt: r.ReadyAt, Epoch: r.Epoch, Restarts: r.Restarts,
				Members: each(r.Members, decodeMember), ReservedAt: r.ReservedAt, CutTimeLimit: r.CutTo, Turn: r.Turn, Drain: decodeDrain(r.Drain),
				Presumed: (*gang.Presumed)(r.Presumed)},
			Setbacks: gang.Setbacks{Used: r.Used, BackoffUntil: r.BackoffUntil, Avoid: r.Avoid,
				Refusals:  each(r.Refusals, func(x refusal) gang.Refusal { return gang.Refusal(x) }),
				Elsewhere: r.Elsewhere, Cancelled: r.Cancelled, CancelledBy: r.CancelledBy, Rollbacks: r.Rollbacks,
				Verdict: (*gang.Verdict)(r.Verdict)},
			Progress: gang.Progress{Checkpoint: (*gang.Checkpoint)(r.Checkpoint), TaskCheckpoint: decodeTasks(r.TaskSet), Acked: r.Acked,
				Kept: r.Kept, Ran: r.Ran, Queued: r.Queued},
			Allocation: gang.Allocation{Steps: decodeSteps(r.Steps), Ports: r.Ports, NextStep: r.NextStep, Widest: gang.StepSet(r.Widest),
				LastRun: r.LastRun, TimeTold: r.TimeTold, Image: r.Image,
				StepImages: each(r.StepImages, func(x stepImage) gang.StepImage { return gang.StepImage(x) }),
				StepFault:  (*gang.StepFault)(r.StepFault), Booking: decodeBooking(r.Booking)},
		},
	}
	j.Share()
	return j, nil
}
