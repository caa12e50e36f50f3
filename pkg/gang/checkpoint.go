package gang

import (
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
)

// Checkpoint is the newest set of checkpoints of a job. The bytes are the store's.
type Checkpoint struct {
	Epoch    int       // they were put in; within it only the newest are kept
	Time     time.Time // of the newest
	Bytes    int64     // of the newest of each rank
	Complete bool      // every rank has put one in this epoch
	Before   int       // the newest complete epoch before this one; 0: none
}

// CheckpointSaved: a checkpoint of a rank is durable in the store.
type CheckpointSaved struct {
	Job         int64
	Epoch, Rank int
	Bytes       int64
	SetRanks    int   // of this epoch that have put one now
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
	switch {
	case j == nil || j.Verdict != nil:
		return &api.Error{Code: api.CodeStaleEpoch, Message: fmt.Sprintf("epoch %d is over: the job has ended", epoch)}
	case epoch != j.Epoch || blocked(j) || reserved(j):
		e := api.Errorf(api.CodeStaleEpoch, "epoch %d of job %d is over", epoch, j.ID)
		e.Hint = fmt.Sprintf("the current one is %d; what an earlier one saves must not replace it", j.Epoch)
		return e
	case rank < 0 || rank >= len(j.Ranks) || !hasProcess(j, rank):
		return api.Errorf(api.CodeNotFound, "job %d has no rank %d that runs", j.ID, rank)
	}
	switch s := j.Ranks[rank].State; {
	case s == api.RankRunning && j.Spec.Checkpoint == api.CheckpointDrain:
		return conflict("put it when the job is told to stop, or submit without --checkpoint=drain",
			"job %d was submitted with --checkpoint=drain and is not being stopped", j.ID)
	case s == api.RankRunning || s == api.RankPreempting:
		return nil
	default:
		return api.Errorf(api.CodeConflict, "rank %d of job %d is %s", rank, j.ID, s)
	}
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

func (w *World) checkpointSaved(ev CheckpointSaved) Outcome {
	e := w.jobs[ev.Job]
	if e == nil {
		return refused(notFound(ev.Job))
	}
	if err := MayCheckpoint(e.job, ev.Epoch, ev.Rank); err != nil {
		return refused(err)
	}
	j := w.edit(e)
	c := Checkpoint{Epoch: ev.Epoch, Time: w.now.Wall, Bytes: ev.SetBytes, Complete: ev.SetRanks >= Processes(j)}
	if old := j.Checkpoint; old != nil {
		c.Before = old.Before
		switch {
		case old.Epoch == ev.Epoch: // two ranks may have counted in the other order
			c.Complete = c.Complete || old.Complete
		case old.Complete:
			c.Before = old.Epoch
		}
	}
	j.Checkpoint = &c
	if c.Complete {
		w.told(e)
	}
	rank := ev.Rank
	w.emitJob(j, api.Event{Type: api.EventCheckpoint, Rank: &rank, Bytes: ev.Bytes})
	return applied()
}

// Processes is how many ranks of a gang are processes.
func Processes(j *Job) int {
	if j.Spec.Launch == api.LaunchBatch {
		return 1
	}
	return len(j.Ranks)
}

func (w *World) acknowledged(ev Acknowledged) Outcome {
	e := w.jobs[ev.Job]
	if e == nil || e.job.Epoch != ev.Epoch || e.job.Drain == nil && !Noticed(e.job) {
		return ignored("nothing to acknowledge")
	}
	if e.job.Drain == nil {
		return w.acknowledgedEarly(e, ev.Ranks)
	}
	more := ev.Ranks > e.job.Drain.Acked
	if more {
		j := w.edit(e)
		j.Drain.Acked = ev.Ranks
		w.emitJob(j, api.Event{Type: api.EventAcknowledged, Acknowledged: ev.Ranks, Size: Processes(j)})
	}
	if hurried := ev.Saved && w.hurry(e); !more && !hurried {
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
func (w *World) acknowledgedEarly(e *entry, ranks int) Outcome {
	if ranks <= e.job.Acked {
		return ignored("acknowledged before")
	}
	j := w.edit(e)
	j.Acked = ranks
	w.emitJob(j, api.Event{Type: api.EventAcknowledged, Acknowledged: ranks, Size: Processes(j)})
	return applied()
}
