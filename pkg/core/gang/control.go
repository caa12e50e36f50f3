package gang

import (
	"slices"
	"time"

	"gangd/pkg/api"
)

func notFound(id int64) *api.Error { return api.Errorf(api.CodeNotFound, "no job %d", id) }

func ended(j *Job) *api.Error {
	return api.AlreadyEnded(j.Ref(), j.Verdict.State)
}

func conflict(hint, format string, args ...any) *api.Error {
	e := api.Errorf(api.CodeConflict, format, args...)
	e.Hint = hint
	return e
}

// living finds a job that has not ended.
func (js *jobs) living(id int64) (*entry, *api.Error) {
	e := js.byID[id]
	if e == nil {
		return nil, notFound(id)
	}
	if e.job.Verdict != nil {
		return nil, ended(e.job)
	}
	return e, nil
}

// by names who wanted something, for the record.
func by(what, who string) string {
	if who == "" {
		return what
	}
	return what + " by " + who
}

// cancel ends a job. Once this is answered no new epoch starts.
func (w *World) cancel(ev Cancel) Outcome {
	e, err := w.jobs.living(ev.Job)
	if err != nil {
		return refused(err)
	}
	text := by("cancelled", ev.By)
	if Recurs(e.job) && ev.Job == e.job.ID {
		w.switchOff(e, ev.By)
	}
	switch {
	case e.job.Drain != nil:
		return w.cancelDraining(e, ev)
	case reserved(e.job):
		w.markCancelled(e, ev.By)
		w.rollback(e, text, nil, func(int) bool { return false })
		w.end(e, verdictOf(e.job, api.CauseCancelled, -1, text))
	case blocked(e.job):
		w.markCancelled(e, ev.By)
		w.end(e, verdictOf(e.job, api.CauseCancelled, -1, text))
	default:
		w.markCancelled(e, ev.By)
		e.asker = ev.Asker
		w.drainAfter(e, api.CauseCancelled, -1, text, lead(e.job, ev.Now))
	}
	return applied()
}

func (w *World) cancelDraining(e *entry, ev Cancel) Outcome {
	if e.job.Drain.Cause == api.CauseCompleted {
		if e.job.Spec.Cron != nil {
			return applied() // it does not come again
		}
		if role := endingRole(e.job); role != "" {
			return ignored("the work is done: role " + role + " is")
		}
		return ignored("every rank has ended by itself")
	}
	hurried := ev.Now && w.cancelLead(e)
	if e.job.Cancelled {
		if hurried {
			return applied()
		}
		return ignored("already being cancelled")
	}
	w.markCancelled(e, ev.By)
	w.drain(e, api.CauseCancelled, -1, "") // recorded as a later cause
	return applied()
}

func (w *World) markCancelled(e *entry, by string) {
	j := w.jobs.edit(e)
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
func (w *World) hold(ev Hold) Outcome {
	e, err := w.jobs.living(ev.Job)
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
	w.jobs.edit(e).Held = who
	w.record.emitJob(e.job, api.Event{Type: api.EventHeld, Text: who})
	w.queue.touch(e)
	return applied()
}

func (w *World) release(ev Release) Outcome {
	e, err := w.jobs.living(ev.Job)
	if err != nil {
		return refused(err)
	}
	switch {
	case e.job.Held == "":
		return ignored("not held")
	case e.job.Held == HeldAdmin && !ev.Admin:
		return refused(api.Errorf(api.CodePermission, "job %s is held by an admin", e.job.Ref()))
	}
	j := w.jobs.edit(e)
	j.Held = ""
	w.queue.eligibleNow(e)
	w.record.emitJob(j, api.Event{Type: api.EventReleased})
	w.queue.touch(e)
	return applied()
}

func (w *World) requeue(ev Requeue) Outcome {
	if e := w.jobs.byID[ev.Job]; ev.Ended && e != nil && e.job.Verdict != nil {
		return w.again(e, ev)
	}
	out := w.putBack(ev.Job, api.CauseRequeued, by("requeued", ev.By), ev.Now)
	if e := w.jobs.byID[ev.Job]; out.Applied && e.job.Drain != nil {
		e.asker = ev.Asker
	}
	if ev.Hold == "" || out.Refused != nil {
		return out
	}
	// Held at once and not when the drain is over: nothing can come in between, and a restart
	// of the controller loses nothing. Being held counts only while a job waits.
	switch e := w.jobs.byID[ev.Job]; e.job.Held {
	case ev.Hold, HeldAdmin:
		return out
	default:
		w.jobs.edit(e).Held = ev.Hold
		w.record.emitJob(e.job, api.Event{Type: api.EventHeld, Text: ev.Hold})
		w.queue.touch(e)
	}
	return applied()
}

func notToBeRequeued(j *Job) *api.Error {
	return conflict("", "job %s was submitted not to be requeued", j.Ref()).About(api.ReasonNoRequeue, "")
}

func (w *World) preempt(ev Preempt) Outcome {
	return w.putBack(ev.Job, api.CausePreempted, "preempted for "+ev.For, false)
}

// putBack stops a gang so that it runs again later; nobody is charged. Preempted it may also
// be when it can't: it ends then. Who may be is for the scheduler to say.
func (w *World) putBack(id int64, c api.Cause, text string, now bool) Outcome {
	e, err := w.jobs.living(id)
	if err != nil {
		return refused(err)
	}
	j := e.job
	done := slices.IndexFunc(j.Ranks, func(r Rank) bool { return r.State == api.RankDone })
	switch {
	case blocked(j) && c == api.CauseRequeued && Recurs(j):
		return w.skip(e, text)
	case blocked(j):
		return ignored("already waiting")
	case j.Drain != nil:
		return ignored("already being stopped: " + string(j.Drain.Cause))
	case c == api.CauseRequeued && done >= 0:
		return refused(conflict("", "rank %d of job %s is done: another run would overwrite its work", done, j.Ref()))
	case c == api.CauseRequeued && limit(&w.set, j.Spec, c) == 0:
		return refused(notToBeRequeued(j))
	case reserved(j):
		w.rollback(e, text, nil, func(int) bool { return false })
	default:
		w.drainAfter(e, c, -1, text, lead(j, now))
	}
	return applied()
}
