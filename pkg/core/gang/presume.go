package gang

import (
	"cmp"
	"fmt"
	"time"

	"gangd/pkg/api"
)

// A gang that one node has alone waits for nobody: its node opens the gate itself when the member is prepared, and says so when the
// ranks run. So from the commit of its admission on it may run. It is on record as started from then on: whatever stops a gang that
// runs stops this one, waits for its node's proof, and gives nothing of it on before. What else a start brings about comes with the
// node's word that there was one, or with the end of a member of which nobody knows.

// Presumed is what a job had before its epoch was taken for started.
type Presumed struct {
	Start    time.Time `json:"start,omitzero"` // of the epoch before; zero: it never started
	Restarts int       `json:"restarts,omitempty"`
}

// everStarted: an epoch of a job is known to have started.
func everStarted(j *Job) bool {
	if j.Presumed != nil {
		return !j.Presumed.Start.IsZero()
	}
	return !j.Start.IsZero()
}

// opensItself: the node of a gang is to open its gate. An image may take its time, which people see as long as the gang is reserved.
func (ln *launches) opensItself(j *Job) bool {
	return len(j.Members) == 1 && ln.nodes.byName[j.Members[0].Node].node.Hello.Opens && j.Spec.Container == nil
}

// presume takes a gang for started whose node opens its gate.
func (ln *launches) presume(e *entry) {
	was := Presumed{e.job.Start, e.job.Restarts}
	ln.jobs.edit(e).Presumed = &was
	ln.start(e)
}

// confirm: a gang that was taken for started has started, or has to count as if it had.
func (ln *launches) confirm(e *entry) {
	if e.job.Presumed == nil {
		return
	}
	j := ln.jobs.edit(e)
	ln.queue.retally(j, func() { j.Presumed = nil })
	if d := j.Drain; d != nil && len(d.Reports) == 0 {
		charge(j, d.Cause)
	}
	ln.started(e)
}

// retract: nothing of a gang that was taken for started has run. It is reserved again, and has to be taken back in the same step.
func (ln *launches) retract(e *entry) {
	j := ln.jobs.edit(e)
	for _, kind := range []timerKind{timerLaunch, timerForce} {
		ln.clock.timers.cancel(timer{kind: kind, job: j.ID, epoch: j.Epoch})
	}
	ln.stops.watchdogs.unguard(e)
	ln.stops.steps.left(e, 0)
	was := j.Presumed
	ln.queue.retally(j, func() { j.Presumed, j.Start, j.Restarts = nil, was.Start, was.Restarts })
	j.Drain, j.Members[0].State = nil, MemberPreparing
	for i := range j.Ranks {
		*ln.jobs.editRank(e, i) = Rank{State: api.RankReserved, Slot: j.Ranks[i].Slot}
	}
	row := epochRow(j)
	row.Started = time.Time{}
	ln.record.epochs[j.key()] = row
}

// extendLaunch gives a gang that its node has to start all of its time for that from now on.
func (ln *launches) extendLaunch(e *entry) {
	if e.job.Drain == nil {
		ln.clock.in(ln.set.StartTimeout, timer{kind: timerLaunch, job: e.job.ID, epoch: e.job.Epoch})
	}
}

// neverRan: by its node's word no rank of a member has ever been started, and none will be.
func neverRan(ma *api.MemberActual) bool {
	return ma.Phase == api.PhaseRefused || ma.Phase == api.PhaseStopped && len(ma.Ranks) == 0
}

// wantedAgain: somebody saw a job run and asked that it be run again, or that its node be emptied. Its next run is told that it
// is one, whatever became of this.
func wantedAgain(j *Job, ma *api.MemberActual) bool {
	return ma.Phase == api.PhaseStopped && j.Drain != nil && j.Drain.Cause == api.CauseRequeued && !j.Spec.NoRequeue
}

// calledOff: the node of a gang that was taken for started says that nothing of it ran, because it could not, or because
// it was stopped before.
func (rp *reports) calledOff(h *host, p place, ma *api.MemberActual) Outcome {
	e, d := p.e, p.e.job.Drain
	rp.launches.retract(e)
	switch {
	case d != nil:
		rp.stops.calledOff(e, d, ma.Epilog != "")
		return applied()
	case ma.Phase == api.PhaseRefused:
		return rp.refusal(h, p, ma)
	}
	return rp.premature(h, p, ma)
}

// calledOff ends the drain of a gang of which nothing ran: it waits again, or is cancelled, as a reserved one would be at once.
func (st *stops) calledOff(e *entry, d *Drain, cleaning bool) {
	j := e.job
	ev := api.Event{Type: api.EventDrainCompleted, Outcome: string(api.RankBlocked), Cause: d.Cause, Trigger: rankPtr(d.Trigger),
		Seconds: seconds(st.clock.now.Mono - e.drainAt)}
	text := "cancelled"
	if j.Cancelled {
		ev.Outcome = "cancelled"
	}
	if d.Cause == api.CauseCancelled {
		text = d.Text
	}
	st.record.emitJob(j, ev)
	st.launches.rollback(e, cmp.Or(d.Text, fmt.Sprintf("stopped: %s", d.Cause)), failedNodes(j, d), func(int) bool { return !cleaning })
	if e.job.Cancelled {
		st.end(e, verdictOf(e.job, api.CauseCancelled, -1, text))
	}
}
