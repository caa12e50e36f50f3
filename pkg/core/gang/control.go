package gang

import (
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/sched/order"
)

// control is what people want of jobs that are there.
type control struct {
	set          *api.Settings
	clock        *clock
	record       *record
	jobs         *jobs
	nodes        *nodes
	specs        *specs
	site         *site
	reservations *reservations
	holdings     *holdings
	queue        *queue
	deps         *dependencies
	memory       *memory
	launches     *launches
	stops        *stops
	submissions  *submissions
}

// cancel ends a job. Once this is answered no new epoch starts.
func (cl *control) cancel(ev Cancel) Outcome {
	e, err := cl.jobs.living(ev.Job)
	if err != nil {
		return refused(err)
	}
	text := by("cancelled", ev.By)
	if Recurs(e.job) && ev.Job == e.job.ID {
		cl.submissions.switchOff(e, ev.By)
	}
	switch {
	case e.job.Drain != nil:
		return cl.cancelDraining(e, ev)
	case reserved(e.job):
		cl.markCancelled(e, ev.By)
		cl.launches.rollback(e, text, nil, func(int) bool { return false })
		cl.stops.end(e, verdictOf(e.job, api.CauseCancelled, -1, text))
	case blocked(e.job):
		cl.markCancelled(e, ev.By)
		cl.stops.end(e, verdictOf(e.job, api.CauseCancelled, -1, text))
	default:
		cl.markCancelled(e, ev.By)
		e.asker = ev.Asker
		cl.stops.drainAfter(e, api.CauseCancelled, -1, text, lead(e.job, ev.Now))
		cl.stops.endUnheard(e) // the notice before the time limit may have been given
	}
	return applied()
}

func (cl *control) cancelDraining(e *entry, ev Cancel) Outcome {
	if e.job.Drain.Cause == api.CauseCompleted {
		if e.job.Spec.Cron != nil {
			return applied() // it does not come again
		}
		if role := endingRole(e.job); role != "" {
			return ignored("the work is done: role " + role + " is")
		}
		return ignored("every rank has ended by itself")
	}
	hurried := ev.Now && cl.stops.cancelLead(e)
	if e.job.Cancelled {
		if hurried {
			return applied()
		}
		return ignored("already being cancelled")
	}
	cl.markCancelled(e, ev.By)
	cl.stops.drain(e, api.CauseCancelled, -1, "") // recorded as a later cause
	cl.stops.endUnheard(e)
	return applied()
}

func (cl *control) markCancelled(e *entry, by string) {
	j := cl.jobs.edit(e)
	j.Cancelled, j.CancelledBy = true, by
}

// lead is the notice that a job asked for before it is stopped for others' reasons.
func lead(j *Job, now bool) time.Duration {
	if j.Spec.Notice == nil || now {
		return 0
	}
	return max(j.Spec.Notice.Lead, 0)
}

// hold keeps a job from starting. What runs goes on: it is held when it waits again.
func (cl *control) hold(ev Hold) Outcome {
	e, err := cl.jobs.living(ev.Job)
	if err != nil {
		return refused(err)
	}
	who := HeldUser
	if ev.Admin {
		who = HeldAdmin
	}
	switch {
	case e.job.Held == who || e.job.Held == HeldAdmin && !ev.Lower:
		return ignored("already held")
	}
	cl.jobs.edit(e).Held = who
	cl.record.emitJob(e.job, api.Event{Type: api.EventHeld, Text: who})
	cl.queue.touch(e)
	return applied()
}

func (cl *control) release(ev Release) Outcome {
	e, err := cl.jobs.living(ev.Job)
	if err != nil {
		return refused(err)
	}
	switch {
	case e.job.Held == "":
		return ignored("not held")
	case e.job.Held == HeldAdmin && !ev.Admin:
		return refused(api.Errorf(api.CodePermission, "job %s is held by an admin", e.job.Ref()))
	}
	j := cl.jobs.edit(e)
	j.Held = ""
	cl.queue.eligibleNow(e)
	cl.record.emitJob(j, api.Event{Type: api.EventReleased})
	cl.queue.touch(e)
	return applied()
}

func (cl *control) requeue(ev Requeue) Outcome {
	if e := cl.jobs.byID[ev.Job]; ev.Ended && e != nil && e.job.Verdict != nil {
		return cl.again(e, ev)
	}
	out := cl.putBack(ev.Job, api.CauseRequeued, by("requeued", ev.By), ev.Now)
	if e := cl.jobs.byID[ev.Job]; out.Applied && e.job.Drain != nil {
		e.asker = ev.Asker
	}
	if ev.Hold == "" || out.Refused != nil {
		return out
	}
	// Held at once and not when the drain is over: nothing can come in between, and a restart
	// of the controller loses nothing. Being held counts only while a job waits.
	switch e := cl.jobs.byID[ev.Job]; e.job.Held {
	case ev.Hold, HeldAdmin:
		return out
	default:
		cl.jobs.edit(e).Held = ev.Hold
		cl.record.emitJob(e.job, api.Event{Type: api.EventHeld, Text: ev.Hold})
		cl.queue.touch(e)
	}
	return applied()
}

func (cl *control) preempt(ev Preempt) Outcome {
	return cl.putBack(ev.Job, api.CausePreempted, "preempted for "+ev.For, false)
}

// putBack stops a gang so that it runs again later; nobody is charged. Preempted it may also
// be when it can't: it ends then. Who may be is for the scheduler to say.
func (cl *control) putBack(id int64, c api.Cause, text string, now bool) Outcome {
	e, err := cl.jobs.living(id)
	if err != nil {
		return refused(err)
	}
	j := e.job
	done := slices.IndexFunc(j.Ranks, func(r Rank) bool { return r.State == api.RankDone })
	switch {
	case blocked(j) && c == api.CauseRequeued && Recurs(j):
		return cl.submissions.skip(e, text)
	case blocked(j):
		return ignored("already waiting")
	case j.Drain != nil:
		return ignored("already being stopped: " + string(j.Drain.Cause))
	case c == api.CauseRequeued && done >= 0:
		return refused(conflict("", "rank %d of job %s is done: another run would overwrite its work", done, j.Ref()))
	case c == api.CauseRequeued && limit(cl.set, j.Spec, c) == 0:
		return refused(notToBeRequeued(j))
	case reserved(j):
		cl.launches.rollback(e, text, nil, func(int) bool { return false })
	default:
		cl.stops.drainAfter(e, c, -1, text, lead(j, now))
		cl.stops.endUnheard(e)
	}
	return applied()
}

// again queues a job that has ended under its own number, as if it were submitted now. Its attempts stay on
// record; what it was charged, what it saved and what it waited for do not count any more. Who was told of its
// end, others that depend on it too, is not told otherwise.
func (cl *control) again(e *entry, ev Requeue) Outcome {
	j := e.job
	switch {
	case j.Spec.Cron != nil:
		return refused(conflict("put its line back: gcron -e", "job %s was of a line that is not in the cron table any more",
			j.Ref()).About(api.ReasonCronJob, ""))
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
	j.CutTimeLimit, j.Turn = 0, order.NoTurn
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
