package gang

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
)

// drain begins the one coordinated stop of an epoch, for every cause, in one step. Of a drain that is under
// way already the cause is only recorded. What went wrong by itself comes by [World.accident].
func (w *World) drain(e *entry, cause api.Cause, trigger int, text string) {
	w.drainAfter(e, cause, trigger, text, 0)
}

// drainAfter is drain with a notice before the stop signal.
func (w *World) drainAfter(e *entry, cause api.Cause, trigger int, text string, lead time.Duration) {
	if d := e.job.Drain; d != nil {
		if cause != d.Cause && !slices.Contains(d.Later, cause) {
			j := w.jobs.edit(e)
			j.Drain.Later = append(j.Drain.Later, cause)
		}
		return
	}
	w.beginDrain(e, &Drain{Cause: cause, Trigger: trigger, Text: text, Lead: lead})
}

// beginDrain stops what runs of an epoch.
func (w *World) beginDrain(e *entry, d *Drain) {
	j := w.jobs.edit(e)
	w.clock.timers.cancel(timer{kind: timerLaunch, job: j.ID, epoch: j.Epoch})
	w.unguard(e)
	w.clock.timers.cancel(timer{kind: timerReady, job: j.ID, epoch: j.Epoch})
	d.Started, d.Acked = w.clock.now.Wall, j.Acked
	j.Drain = d
	e.drainAt = w.clock.now.Mono
	for i := range j.Ranks {
		if j.Ranks[i].State == api.RankRunning {
			w.jobs.editRank(e, i).State = api.RankPreempting
			j.Drain.Moved++
		}
	}
	for i := range j.Members {
		if m := &j.Members[i]; m.State == MemberStarting || m.State == MemberRunning {
			m.State = MemberStopping
			if stopOrder(&w.set, j, m) != nil {
				w.nodes.woken = append(w.nodes.woken, m.Node)
			}
		}
	}
	if len(d.Reports) == 0 {
		charge(j, d.Cause)
	}
	w.armForce(e)
	w.jobs.changed(e)
	if announces(j) {
		w.record.emitJob(j, api.Event{Type: api.EventDrainStarted, Cause: d.Cause, Trigger: rankPtr(d.Trigger), Moved: d.Moved,
			LeadSeconds: int64(d.Lead.Seconds()), Text: d.Text})
	}
	w.maybeComplete(e)
}

// told: the drain is an event of its own. The proof that follows ranks which ended by
// themselves is none.
func announces(j *Job) bool {
	return j.Drain.Cause != api.CauseCompleted || j.Drain.Moved > 0 && j.Spec.Launch != api.LaunchBatch
}

func rankPtr(rank int) *int {
	if rank < 0 {
		return nil
	}
	return &rank
}

// armForce sets the last moment of the drain, counted from its start.
func (w *World) armForce(e *entry) {
	j := e.job
	full := drainTime(&w.set, j)
	w.clock.in(e.drainAt+full-w.clock.now.Mono, timer{kind: timerForce, job: j.ID, epoch: j.Epoch})
}

// drainTime is the longest that a drain may take.
func drainTime(set *api.Settings, j *Job) time.Duration {
	return j.Drain.Spent + j.Drain.Lead + max(graceOf(set, j), j.Spec.GraceMax) + set.DrainSlack
}

// cancelLead ends the notice of a drain now.
func (w *World) cancelLead(e *entry) bool {
	d := e.job.Drain
	spent := w.clock.now.Mono - e.drainAt
	if spent >= d.Lead {
		return false
	}
	j := w.jobs.edit(e)
	j.Drain.Lead, j.Drain.Spent = 0, spent
	w.armForce(e)
	for i := range j.Members {
		if j.Members[i].State == MemberStopping {
			w.nodes.woken = append(w.nodes.woken, j.Members[i].Node)
		}
	}
	return true
}

// lost marks the ranks of a member that never said how they ended, and gives the first.
func (w *World) lost(e *entry, i int) (first int) {
	first = -1
	for _, r := range e.job.Members[i].Ranks {
		if e.job.Ranks[r].State != api.RankRunning {
			continue
		}
		rank := w.jobs.editRank(e, r)
		rank.State, rank.End = api.RankFailed, w.clock.now.Wall
		if hasProcess(e.job, r) {
			e.open--
		}
		if first < 0 {
			first = r
		}
	}
	return first
}

// stopped: nothing of a member lives any more. This is the ack of a drain, or the proof
// after a normal end. What it has is free then, or, where the site is still cleaning up there, after that.
func (w *World) stopped(e *entry, i int, forced bool, text string, cleaning bool) {
	j := w.jobs.edit(e)
	m := &j.Members[i]
	h := w.nodes.byName[m.Node]
	m.State, m.Forced = MemberStopped, forced
	if cleaning {
		w.leave(h, Left{MemberKey: j.key(), Epilog: true, Member: i, Text: epilogText, Ports: portsOn(j, i)})
	} else {
		w.free(h, j.key())
	}
	w.leaveMember(e, i, text)
}

// fence lets the gang go on without proof that a member is gone: the grant stays.
func (w *World) fence(e *entry, i int, text string) {
	j := w.jobs.edit(e)
	m := &j.Members[i]
	m.State, m.Forced = MemberFenced, true
	w.leave(w.nodes.byName[m.Node], Left{MemberKey: j.key(), Ran: true, Text: text, Ports: portsOn(j, i)})
	w.leaveMember(e, i, text)
}

// leaveMember is what stopped and fence have in common.
func (w *World) leaveMember(e *entry, i int, text string) {
	j := e.job
	m := &j.Members[i]
	codes := map[int]int{}
	for _, r := range m.Ranks {
		if j.Ranks[r].State == api.RankPreempting {
			rank := w.jobs.editRank(e, r)
			rank.State = api.RankPreempted
			if hasProcess(j, r) && !rank.Exited {
				e.open--
			}
			if rank.End.IsZero() {
				rank.End = w.clock.now.Wall
			}
		}
		if hasProcess(j, r) {
			codes[r] = exitCode(&j.Ranks[r])
		}
	}
	w.stepsLeft(e, i)
	delete(w.nodes.byName[m.Node].members, j.key())
	w.nodes.woken = append(w.nodes.woken, m.Node)
	e.alive--
	w.record.emitJob(j, api.Event{Type: api.EventMemberStopped, Node: m.Node, Forced: m.Forced, ExitCodes: codes, Text: text})
	w.maybeComplete(e)
}

// exitCode is -1 where it is not known.
func exitCode(r *Rank) int {
	if !r.Exited {
		return -1
	}
	return r.ExitCode
}

// force: what has not acked by now is given up, whoever it is; the rest never waits longer.
func (w *World) force(e *entry) {
	if e == nil || e.job.Drain == nil {
		return
	}
	epoch := e.job.Epoch
	for i := 0; e.job.Drain != nil && e.job.Epoch == epoch && i < len(e.job.Members); i++ {
		if e.job.Members[i].State != MemberStopping {
			continue
		}
		text := e.stuck[i]
		if text == "" {
			text = fmt.Sprintf("not stopped within %s", e.job.Drain.Lead+graceOf(&w.set, e.job)+w.set.DrainSlack)
		}
		if node := e.job.Members[i].Node; !w.nodes.byName[node].node.Connected {
			w.missing(e, i, fmt.Sprintf("node %s is silent", node))
		}
		w.fence(e, i, text)
	}
}

// maybeComplete decides the verdict in the same step as the last ack or force.
func (w *World) maybeComplete(e *entry) {
	if e.job.Drain == nil || e.alive > 0 {
		return
	}
	j := w.jobs.edit(e)
	shown := announces(j)
	w.clock.timers.cancel(timer{kind: timerForce, job: j.ID, epoch: j.Epoch})
	if slices.ContainsFunc(j.Ranks, func(r Rank) bool { return r.Own }) {
		w.workIsDone(e)
	}
	w.compare(e, true)
	d, why := *j.Drain, w.culprit(j)
	d.Cause, d.Trigger, d.Text = why.Cause, why.Trigger, withStacks(j.Drain, why.Text)
	j.Drain = &d
	if len(d.Reports) > 0 {
		charge(j, d.Cause)
	}
	v := verdict(&w.set, j, w.clock.now.Wall)
	cause := d.Cause
	outcome := string(api.RankBlocked)
	if v != nil {
		cause = v.Cause
		outcome = strings.ToLower(string(v.State))
	}
	w.books.end(e, cause)
	row := epochRow(j)
	row.Ended, row.Cause, row.Trigger, row.Stacks = w.clock.now.Wall, cause, d.Trigger, d.Stacks
	if len(d.Reports) > 0 {
		row.Text, row.Ends = d.Text, w.ends(j)
		if by := d.Reports[0]; by.Cause != why.Cause || by.Trigger != why.Trigger {
			row.StartedBy = &by
		}
	}
	w.record.epochs[j.key()] = row
	if shown {
		ev := api.Event{Type: api.EventDrainCompleted, Outcome: outcome, Cause: d.Cause, Trigger: rankPtr(d.Trigger), Seconds: seconds(w.clock.now.Mono - e.drainAt)}
		if len(d.Reports) > 0 && d.Text != d.Reports[0].Text {
			ev.Text = d.Text
		}
		w.record.emitJob(j, ev)
	}
	if v != nil {
		w.end(e, v)
		return
	}
	if keep(j); j.Spec.MaxTimeTotal > 0 {
		j.Ran = ranInAll(j, w.clock.now.Wall)
	}
	if d.Cause == api.CauseTimeout {
		// It had its turn. Behind others it is what has just been submitted: what it did
		// brings no end of it nearer that anybody knows of.
		j.Kept, j.Queued = 0, w.clock.now.Wall
	}
	w.block(e, failedNodes(j, &d))
	switch {
	case backsOff(d.Cause):
		w.backoff(e, j.Used[budgetOf(d.Cause)])
	case d.Cause == api.CauseRequeued && Recurs(j):
		w.dueAt(e, w.site.crontabs.due(j.Spec.Cron, w.clock.now.Wall))
	}
	w.queue.touch(e)
}

// failedNodes are those to avoid next time: only where the node may be at fault.
func failedNodes(j *Job, d *Drain) []string {
	if (d.Cause != api.CauseNodeLost && d.Cause != api.CauseLaunch) || d.Trigger < 0 {
		return nil
	}
	return []string{j.Ranks[d.Trigger].Slot.Node}
}

// end gives a job its one verdict.
func (w *World) end(e *entry, v *Verdict) {
	j := w.jobs.edit(e)
	if admitted(j) {
		w.queue.countActive(e, -1)
	} else if a := w.queue.arrays[j.ArrayID]; a != nil && e.offered {
		w.queue.withdraw(a, e)
	}
	for i := range j.Ranks {
		if s := j.Ranks[i].State; s != api.RankDone && s != api.RankFailed {
			w.jobs.editRank(e, i).State = rankEnd(j, i, v.State)
		}
	}
	w.clock.timers.cancel(timer{kind: timerEligible, job: j.ID})
	w.clock.timers.cancel(timer{kind: timerDeadline, job: j.ID})
	w.queue.retally(j, func() { j.Drain, j.Verdict, j.End = nil, v, w.clock.now.Wall })
	e.epoch = w.jobs.noEpoch
	delete(w.refusedJobs, j.ID)
	w.queue.unlist(j)
	w.site.holdings.uncount(j)
	w.queue.touch(e)
	w.leaveIn(e, w.set.KeepEnded)
	code := v.ExitCode
	again := j.Spec.Cron != nil && !j.LastRun
	w.record.emitJob(j, api.Event{Type: api.EventEnded, State: v.State, Cause: v.Cause, Trigger: rankPtr(v.Trigger), ExitCode: &code, Text: v.Text})
	w.unwatch(e)
	w.tellDependents(j)
	if again {
		w.comeAgain(e)
	}
	w.makeRoom()
}

// rankEnd is what becomes of a rank without a result of its own when its gang ends. Of those
// that were stopped because others had done the work, who returned 0 is done.
func rankEnd(j *Job, rank int, s api.JobState) api.RankState {
	r := &j.Ranks[rank]
	switch s {
	case api.JobCompleted:
		if hasProcess(j, rank) && (!r.Exited || r.ExitCode != 0) {
			return api.RankCancelled
		}
		return api.RankDone
	case api.JobCancelled, api.JobTimeout, api.JobPreempted, api.JobDeadline:
		return api.RankCancelled
	}
	return api.RankFailed
}

// epochRow is the attempt of the current epoch as it stands.
func epochRow(j *Job) EpochRow {
	row := EpochRow{Job: j.ID, Epoch: j.Epoch, Started: j.Start, Trigger: -1, Booking: j.Booking}
	for i := range j.Ranks {
		row.Slots = append(row.Slots, j.Ranks[i].Slot)
		row.ExitCodes = append(row.ExitCodes, exitCode(&j.Ranks[i]))
		row.Signals = append(row.Signals, j.Ranks[i].Signal)
		row.OutStarts = append(row.OutStarts, j.Ranks[i].OutStart)
		row.ErrStarts = append(row.ErrStarts, j.Ranks[i].ErrStart)
		row.VRAMPeak = max(row.VRAMPeak, j.Ranks[i].VRAMPeak)
	}
	row.Signals, row.OutStarts, row.ErrStarts = unlessZero(row.Signals), unlessZero(row.OutStarts), unlessZero(row.ErrStarts)
	return row
}

// unlessZero leaves out what says nothing: most ranks end by themselves and write files of their own.
func unlessZero[T int | int64](all []T) []T {
	if slices.ContainsFunc(all, func(n T) bool { return n != 0 }) {
		return all
	}
	return nil
}
