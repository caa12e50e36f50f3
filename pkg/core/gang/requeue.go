package gang

import (
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/sched"
)

// again queues a job that has ended under its own number, as if it were submitted now. Its attempts stay on
// record; what it was charged, what it saved and what it waited for do not count any more. Who was told of its
// end, others that depend on it too, is not told otherwise.
func (cl *control) again(e *entry, ev Requeue) Outcome {
	j := e.job
	switch {
	case j.Spec.Cron != nil:
		return refused(conflict("put its line back: gcron -e", "job %s was of a line that is not in the cron table any more", j.Ref()).About(api.ReasonCronJob, ""))
	case j.Spec.NoRequeue || limit(cl.set, j.Spec, api.CauseRequeued) == 0:
		return refused(notToBeRequeued(j))
	case j.Waits != "":
		return refused(conflict("submit it again", "job %s waited for %s when it ended, and can't be run again", j.Ref(), j.Waits))
	case !j.Deadline.IsZero() && !j.Deadline.After(cl.clock.now.Wall):
		return refused(conflict("submit it again", "the deadline of job %s, %s, has passed", j.Ref(), j.Deadline.Format(time.RFC3339)))
	}
	j = cl.waitAgain(e)
	j.Held = ev.Hold
	cl.jobs.revived = append(cl.jobs.revived, j.ID)
	cl.record.emitJob(j, api.Event{Type: api.EventRequeued, Text: by("queued again", ev.By)})
	if j.Held != "" {
		cl.record.emitJob(j, api.Event{Type: api.EventHeld, Text: j.Held})
	}
	cl.launches.armDeadline(e)
	cl.deps.watch(e)
	cl.launches.backoff(e, 1) // who queues again whatever fails, by a hook, must not do so as fast as it fails
	cl.queue.touch(e)
	cl.deps.tell(j)
	return applied()
}

// waitAgain takes an end back: the job waits as if it were submitted now.
func (cl *control) waitAgain(e *entry) *Job {
	j := e.job
	e.leaves = 0
	if j.Elsewhere {
		cl.launches.changeAsk(e, func(j *Job) { j.Elsewhere = false })
	}
	j = cl.jobs.edit(e)
	cl.queue.retally(j, func() { j.Verdict, j.End = nil, time.Time{} })
	for i := range j.Ranks {
		cl.jobs.editRank(e, i).State = api.RankBlocked
		j.Ranks[i].Own = false
	}
	j.Members, j.Ports, j.Steps, j.NextStep, j.ReservedAt = nil, nil, nil, 0, time.Time{}
	j.Cancelled, j.CancelledBy, j.Held = false, "", ""
	j.Used, j.Refusals, j.Avoid, j.Rollbacks, j.BackoffUntil = nil, nil, nil, 0, time.Time{}
	j.Checkpoint, j.TaskCheckpoint, j.Acked, j.Kept, j.Ran = nil, nil, 0, 0, 0
	j.CutTimeLimit, j.Turn = 0, sched.NoTurn
	j.Queued, j.Eligible = cl.clock.now.Wall, cl.clock.now.Wall
	if a := cl.queue.arrays[j.ArrayID]; a != nil {
		a.due = a.due && j.ID != j.ArrayID
		if len(a.waiting) > 0 {
			j.Array = cl.jobs.byID[a.waiting[0]].job.Array // its limit may have been changed since
		} else {
			a.limit = j.Array.Limit
		}
		at, _ := slices.BinarySearch(a.waiting, j.ID)
		a.waiting = slices.Insert(a.waiting, at, j.ID)
	}
	cl.holdings.count(j)
	return j
}
