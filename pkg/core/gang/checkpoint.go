package gang

import (
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
)

// Checkpoint is the newest set of checkpoints of a job. The bytes are the store's.
type Checkpoint struct {
	Epoch    int       `json:"epoch"`              // they were put in; within it only the newest are kept
	Time     time.Time `json:"time"`               // of the newest
	Bytes    int64     `json:"bytes"`              // of the newest of each rank
	Complete bool      `json:"complete,omitempty"` // every rank has put one in this epoch
	Before   int       `json:"before,omitempty"`   // the newest complete epoch before this one; 0: none
}

// TaskCheckpoint is the newest set of checkpoints that the tasks of a step have put. It is beside
// that of the batch script, which keeps its own.
type TaskCheckpoint struct {
	StepSet  `json:"set"`
	Time     time.Time `json:"time"`               // of the newest
	Bytes    int64     `json:"bytes"`              // of the newest of each task
	Complete bool      `json:"complete,omitempty"` // every task of the step has put one
	Before   StepSet   `json:"before,omitzero"`    // the newest complete set before this one
}

// CheckpointSaved: a checkpoint of a rank, or of a task, is durable in the store.
type CheckpointSaved struct {
	Job         int64
	Step        *int // of a task; nil: a rank of the gang
	Epoch, Rank int
	Bytes       int64
	SetRanks    int   // of this set that have put one now
	SetBytes    int64 // the newest of each together
}

// Acknowledged: so many ranks of an epoch have said that they heard of its stop. Saved:
// all of them have also said that nothing is left to be saved, so the lead may end.
type Acknowledged struct {
	Job   int64
	Epoch int
	Ranks int
	Saved bool
}

func (CheckpointSaved) event() {}
func (Acknowledged) event()    {}

// MayCheckpoint refuses a checkpoint that must not be stored.
func MayCheckpoint(j *Job, epoch, rank int) *api.Error {
	if err := staleEpoch(j, epoch); err != nil {
		return err
	}
	if rank < 0 || rank >= len(j.Ranks) || !hasProcess(j, rank) {
		return api.Errorf(api.CodeNotFound, "job %d has no rank %d that runs", j.ID, rank)
	}
	switch s := j.Ranks[rank].State; {
	case s == api.RankRunning && j.Spec.Checkpoint == api.CheckpointDrain:
		return notDraining(j)
	case s == api.RankRunning || s == api.RankPreempting:
		return nil
	default:
		return api.Errorf(api.CodeConflict, "rank %d of job %d is %s", rank, j.ID, s)
	}
}

// staleEpoch refuses what an epoch keeps that is not the current one.
func staleEpoch(j *Job, epoch int) *api.Error {
	switch {
	case j == nil || j.Verdict != nil:
		return &api.Error{Code: api.CodeStaleEpoch, Message: fmt.Sprintf("epoch %d is over: the job has ended", epoch)}
	case epoch != j.Epoch || blocked(j) || reserved(j):
		e := api.Errorf(api.CodeStaleEpoch, "epoch %d of job %d is over", epoch, j.ID)
		e.Hint = fmt.Sprintf("the current one is %d; what an earlier one saves must not replace it", j.Epoch)
		return e
	}
	return nil
}

func notDraining(j *Job) *api.Error {
	return conflict("put it when the job is told to stop, or submit without --checkpoint=drain",
		"job %d was submitted with --checkpoint=drain and is not being stopped", j.ID)
}

// MayTaskCheckpoint refuses a checkpoint of a task that must not be stored. Kept are those of
// the widest step alone: a set of fewer tasks would take the place of one that the others need.
func MayTaskCheckpoint(j *Job, epoch int, k api.TaskKey) *api.Error {
	if err := staleEpoch(j, epoch); err != nil {
		return err
	}
	s := StepOf(j, k.Step)
	if s == nil || TaskNode(j, k) == "" {
		return api.Errorf(api.CodeAlreadyEnded, "%s has ended", TaskText(j.ID, k.Step, k.Task))
	}
	mine, widest, newest := s.Size(), Widest(j), NewestTaskSet(j)
	const files = "write it to a file in $GANG_CHECKPOINT_DIR"
	switch {
	case j.Drain == nil && j.Spec.Checkpoint == api.CheckpointDrain:
		return notDraining(j)
	case mine < widest.Tasks:
		return conflict(files, "checkpoints are kept of a job's widest step: step %s has %s, step %s has %d", api.StepText(j.ID, s.ID),
			api.Count(mine, "task"), api.StepText(j.ID, widest.Step), widest.Tasks)
	case mine < newest.Tasks:
		return conflict(files, "checkpoints are kept of a job's widest step: step %s has %s, and attempt %d kept those of %d",
			api.StepText(j.ID, s.ID),
			api.Count(mine, "task"), newest.Epoch, newest.Tasks)
	case s.ID != widest.Step:
		return conflict(files, "checkpoints are kept of one step at a time: those of step %s, which began before step %s and has as many tasks",
			api.StepText(j.ID, widest.Step), api.StepText(j.ID, s.ID))
	}
	return nil
}

// NewestTaskSet is the newest complete set of tasks; the zero value: none.
func NewestTaskSet(j *Job) StepSet {
	switch c := j.TaskCheckpoint; {
	case c == nil:
		return StepSet{}
	case c.Complete:
		return c.StepSet
	default:
		return c.Before
	}
}

// stepFrom is the set that the tasks of a step which begins start from: the newest complete one
// of as many tasks. The zero value: none.
func stepFrom(j *Job, tasks int) StepSet {
	if newest := NewestTaskSet(j); newest.Tasks == tasks {
		return newest
	}
	return StepSet{}
}

// follow is what a set is when one more has put its own, beside what the one before said of itself: the
// newest complete set before it, and whether it is complete.
func follow[K comparable](old, now, before K, wasComplete, isComplete bool) (K, bool) {
	switch {
	case old == now: // two of it may have counted in the other order
		return before, isComplete || wasComplete
	case wasComplete:
		return old, isComplete
	}
	return before, isComplete
}

func (rp *reports) taskCheckpointSaved(e *entry, ev CheckpointSaved) Outcome {
	k := api.TaskKey{Step: *ev.Step, Task: ev.Rank}
	if err := MayTaskCheckpoint(e.job, ev.Epoch, k); err != nil {
		return refused(err)
	}
	j := rp.jobs.edit(e)
	size := StepOf(j, k.Step).Size()
	c := TaskCheckpoint{StepSet: StepSet{Epoch: ev.Epoch, Step: k.Step, Tasks: size}, Time: rp.clock.now.Wall, Bytes: ev.SetBytes,
		Complete: ev.SetRanks >= size}
	if old := j.TaskCheckpoint; old != nil {
		c.Before, c.Complete = follow(old.StepSet, c.StepSet, old.Before, old.Complete, c.Complete)
	}
	j.TaskCheckpoint = &c
	if c.Complete {
		rp.jobs.changed(e)
	}
	rp.record.emitJob(j, api.Event{Type: api.EventCheckpoint, Task: &k, Bytes: ev.Bytes})
	return applied()
}

// LastSaved is when the newest set was put, of the ranks or of the tasks of a step, where it is
// complete and not of an epoch before the given one. Zero: there is none.
func LastSaved(j *Job, epoch int) (at time.Time) {
	if c := j.Checkpoint; c != nil && c.Complete && c.Epoch >= epoch {
		at = c.Time
	}
	if c := j.TaskCheckpoint; c != nil && c.Complete && c.Epoch >= epoch && c.Time.After(at) {
		at = c.Time
	}
	return at
}

// HandOver is the epoch whose checkpoints the current epoch of a job starts from; 0: none.
func HandOver(j *Job) int {
	switch c := j.Checkpoint; {
	case c == nil:
		return 0
	case c.Complete && c.Epoch < j.Epoch:
		return c.Epoch
	default:
		return c.Before
	}
}

// NewestSet is the epoch of the newest complete set of a job; 0: none.
func NewestSet(j *Job) int {
	switch c := j.Checkpoint; {
	case c == nil:
		return 0
	case c.Complete:
		return c.Epoch
	default:
		return c.Before
	}
}

func (rp *reports) checkpointSaved(ev CheckpointSaved) Outcome {
	e := rp.jobs.byID[ev.Job]
	if e == nil {
		return refused(notFound(ev.Job))
	}
	if ev.Step != nil {
		return rp.taskCheckpointSaved(e, ev)
	}
	if err := MayCheckpoint(e.job, ev.Epoch, ev.Rank); err != nil {
		return refused(err)
	}
	j := rp.jobs.edit(e)
	c := Checkpoint{Epoch: ev.Epoch, Time: rp.clock.now.Wall, Bytes: ev.SetBytes, Complete: ev.SetRanks >= Processes(j)}
	if old := j.Checkpoint; old != nil {
		c.Before, c.Complete = follow(old.Epoch, c.Epoch, old.Before, old.Complete, c.Complete)
	}
	j.Checkpoint = &c
	if c.Complete {
		rp.jobs.changed(e)
	}
	rank := ev.Rank
	rp.record.emitJob(j, api.Event{Type: api.EventCheckpoint, Rank: &rank, Bytes: ev.Bytes})
	return applied()
}

// voices is how many a notice is for: the ranks that are processes and the tasks of steps that
// run. A batch script with such steps waits for them and is none.
func voices(j *Job) (n int) {
	for i := range j.Steps {
		n += j.Steps[i].Size()
	}
	if n > 0 && j.Spec.Launch == api.LaunchBatch {
		return n
	}
	return n + Processes(j)
}

func (rp *reports) acknowledged(ev Acknowledged) Outcome {
	e := rp.jobs.byID[ev.Job]
	if e == nil || e.job.Epoch != ev.Epoch || e.job.Drain == nil && !Noticed(e.job) {
		return ignored("nothing to acknowledge")
	}
	if e.job.Drain == nil {
		return rp.acknowledgedEarly(e, ev.Ranks)
	}
	more := ev.Ranks > e.job.Drain.Acked
	if more {
		j := rp.jobs.edit(e)
		j.Drain.Acked = ev.Ranks
		rp.record.emitJob(j, api.Event{Type: api.EventAcknowledged, Acknowledged: ev.Ranks, Size: voices(j)})
	}
	if hurried := ev.Saved && rp.stops.cancelLead(e); !more && !hurried {
		return ignored("acknowledged before")
	}
	return applied()
}

// Noticed reports whether ranks of the current epoch were sent the early signal.
func Noticed(j *Job) bool {
	return slices.ContainsFunc(j.Members, func(m Member) bool { return m.Noticed })
}

// acknowledgedEarly takes what is said of the notice before the time limit: the drain is
// still to come, and ranks that have saved may go on until then.
func (rp *reports) acknowledgedEarly(e *entry, ranks int) Outcome {
	if ranks <= e.job.Acked {
		return ignored("acknowledged before")
	}
	j := rp.jobs.edit(e)
	j.Acked = ranks
	rp.record.emitJob(j, api.Event{Type: api.EventAcknowledged, Acknowledged: ranks, Size: voices(j)})
	return applied()
}
