package gang

import (
	"gangd/pkg/api"
	"gangd/pkg/core/sched/order"
)

// Running is an admitted gang as the scheduler sees it, nil for one that holds no nodes.
func (w *World) Running(id int64) *order.Running {
	e := w.jobs.byID[id]
	if e == nil || !admitted(e.job) {
		return nil
	}
	j := e.job
	done := AnyDone(j)
	r := &order.Running{Job: id, Epoch: j.Epoch, Priority: j.Priority, Nice: NiceOf(j), User: j.User, Account: j.Spec.Account,
		Name: j.Name, Cards: heldCards(j), Pools: j.Spec.Pools, Submit: queuedAt(j), TimeLimit: TimeLimit(j),
		Attained: j.Kept, KeepsWork: keepsWork(j), Turn: j.Turn, Ending: order.Ending{Done: done, MinRun: j.Spec.MinRun,
			Final: done || limit(&w.set, j.Spec, api.CausePreempted) == 0,
			Lead:  lead(j, false), Stop: lead(j, false) + graceOf(&w.set, j)}}
	if !reserved(j) {
		r.Start = j.Start
	}
	r.Saved = LastSaved(j, j.Epoch)
	if d := j.Drain; d != nil {
		r.Stopping, r.StopBy = true, d.Started.Add(drainTime(&w.set, j))
	}
	return r
}

// heldCards counts the cards of all members; the ranks of a member that shares its cards
// name the same ones.
func heldCards(j *Job) int {
	n := 0
	for i := range j.Members {
		for k, r := range j.Members[i].Ranks {
			if k == 0 || j.Spec.PartAt(r).GPUsPerNode == 0 {
				n += len(j.Ranks[r].Slot.Cards)
			}
		}
	}
	return n
}

// keepsWork: told to stop, the gang hands its work over. It must have asked for the notice
// in which to do so, and have said or shown that it checkpoints.
func keepsWork(j *Job) bool {
	return j.Spec.Notice != nil && (j.Spec.Checkpoint == api.CheckpointDrain || NewestSet(j) > 0 || NewestTaskSet(j).Tasks > 0)
}
