package gang

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// stops take gangs from their nodes, back to the queue or to their end.
type stops struct {
	set         *api.Settings
	clock       *clock
	record      *record
	jobs        *jobs
	nodes       *nodes
	crontabs    *crontabs
	holdings    *holdings
	queue       *queue
	deps        *dependencies
	memory      *memory
	books       *books
	launches    *launches
	steps       *steps
	watchdogs   *watchdogs
	fleet       *fleet
	submissions *submissions

	held map[int64]*entry // whose drain is complete, and whose verdict waits, see [stops.unsure]
}

// drain begins the one coordinated stop of an epoch, for every cause, in one step. Of a drain that is under
// way already the cause is only recorded. What went wrong by itself comes by [stops.accident].
func (st *stops) drain(e *entry, cause api.Cause, trigger int, text string) {
	st.drainAfter(e, cause, trigger, text, 0)
}

// drainAfter is drain with a notice before the stop signal.
func (st *stops) drainAfter(e *entry, cause api.Cause, trigger int, text string, lead time.Duration) {
	if d := e.job.Drain; d != nil {
		if cause != d.Cause && !slices.Contains(d.Later, cause) {
			j := st.jobs.edit(e)
			j.Drain.Later = append(j.Drain.Later, cause)
		}
		return
	}
	st.beginDrain(e, &Drain{Cause: cause, Trigger: trigger, Text: text, Lead: lead})
}

// beginDrain stops what runs of an epoch.
func (st *stops) beginDrain(e *entry, d *Drain) {
	j := st.jobs.edit(e)
	st.clock.timers.cancel(timer{kind: timerLaunch, job: j.ID, epoch: j.Epoch})
	st.watchdogs.unguard(e)
	st.clock.timers.cancel(timer{kind: timerReady, job: j.ID, epoch: j.Epoch})
	d.Started, d.Acked = st.clock.now.Wall, j.Acked
	j.Drain = d
	e.drainAt = st.clock.now.Mono
	for i := range j.Ranks {
		if j.Ranks[i].State == api.RankRunning {
			st.jobs.editRank(e, i).State = api.RankPreempting
			j.Drain.Moved++
		}
	}
	for i := range j.Members {
		if m := &j.Members[i]; m.State == MemberStarting || m.State == MemberRunning {
			m.State = MemberStopping
			if stopOrder(st.set, j, m) != nil {
				st.nodes.wake(m.Node)
			}
		}
	}
	if len(d.Reports) == 0 && j.Presumed == nil {
		charge(j, d.Cause)
	}
	st.armForce(e)
	st.jobs.changed(e)
	if announces(j) {
		st.record.emitJob(j, api.Event{Type: api.EventDrainStarted, Cause: d.Cause, Trigger: rankPtr(d.Trigger), Moved: d.Moved,
			LeadSeconds: int64(d.Lead.Seconds()), Text: d.Text})
	}
	st.maybeComplete(e)
}

// told: the drain is an event of its own. The proof that follows ranks which ended by
// themselves is none.
func announces(j *Job) bool {
	return j.Drain.Cause != api.CauseCompleted || j.Drain.Moved > 0 && j.Spec.Launch != api.LaunchBatch
}

// armForce sets the last moment of the drain, counted from its start.
func (st *stops) armForce(e *entry) {
	j := e.job
	full := drainTime(st.set, j)
	st.clock.in(e.drainAt+full-st.clock.now.Mono, timer{kind: timerForce, job: j.ID, epoch: j.Epoch})
}

// drainTime is the longest that a drain may take.
func drainTime(set *api.Settings, j *Job) time.Duration {
	return j.Drain.Spent + j.Drain.Lead + max(graceOf(set, j), j.Spec.GraceMax) + set.DrainSlack
}

// cancelLead ends the notice of a drain now.
func (st *stops) cancelLead(e *entry) bool {
	d := e.job.Drain
	spent := st.clock.now.Mono - e.drainAt
	if spent >= d.Lead {
		return false
	}
	j := st.jobs.edit(e)
	j.Drain.Lead, j.Drain.Spent = 0, spent
	st.armForce(e)
	for i := range j.Members {
		if j.Members[i].State == MemberStopping {
			st.nodes.wake(j.Members[i].Node)
		}
	}
	return true
}

// lost marks the ranks of a member that never said how they ended, and gives the first.
func (st *stops) lost(e *entry, i int) (first int) {
	first = -1
	for _, r := range e.job.Members[i].Ranks {
		if e.job.Ranks[r].State != api.RankRunning {
			continue
		}
		rank := st.jobs.editRank(e, r)
		rank.State, rank.End = api.RankFailed, st.clock.now.Wall
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
func (st *stops) stopped(e *entry, i int, forced bool, text string, cleaning bool) {
	j := st.jobs.edit(e)
	m := &j.Members[i]
	h := st.nodes.byName[m.Node]
	m.State, m.Forced = MemberStopped, forced
	if cleaning {
		st.fleet.leave(h, Left{MemberKey: j.key(), Epilog: true, Member: i, Text: epilogText, Ports: portsOn(j, i)})
	} else {
		st.fleet.free(h, j.key())
	}
	st.leaveMember(e, i, text)
}

// fence lets the gang go on without proof that a member is gone: the grant stays.
func (st *stops) fence(e *entry, i int, text string) {
	j := st.jobs.edit(e)
	m := &j.Members[i]
	m.State, m.Forced = MemberFenced, true
	st.fleet.leave(st.nodes.byName[m.Node], Left{MemberKey: j.key(), Ran: true, Text: text, Ports: portsOn(j, i)})
	st.leaveMember(e, i, text)
}

// leaveMember is what stopped and fence have in common.
func (st *stops) leaveMember(e *entry, i int, text string) {
	st.launches.confirm(e) // without a word of its node that nothing ran, it may have
	j := e.job
	m := &j.Members[i]
	codes := map[int]int{}
	for _, r := range m.Ranks {
		if j.Ranks[r].State == api.RankPreempting {
			rank := st.jobs.editRank(e, r)
			rank.State = api.RankPreempted
			if hasProcess(j, r) && !rank.Exited {
				e.open--
			}
			if rank.End.IsZero() {
				rank.End = st.clock.now.Wall
			}
		}
		if hasProcess(j, r) {
			codes[r] = exitCode(&j.Ranks[r])
		}
	}
	st.steps.left(e, i)
	delete(st.nodes.byName[m.Node].members, j.key())
	st.nodes.wake(m.Node)
	e.alive--
	st.record.emitJob(j, api.Event{Type: api.EventMemberStopped, Node: m.Node, Forced: m.Forced, ExitCodes: codes, Text: text})
	st.maybeComplete(e)
}

// force: what has not acked by now is given up, whoever it is; the rest never waits longer.
func (st *stops) force(e *entry) {
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
			text = fmt.Sprintf("not stopped within %s", when.Words(e.job.Drain.Lead+graceOf(st.set, e.job)+st.set.DrainSlack))
		}
		if node := e.job.Members[i].Node; !st.nodes.byName[node].node.Connected {
			st.missing(e, i, fmt.Sprintf("node %s is silent", node))
		}
		st.fence(e, i, text)
	}
}

// maybeComplete decides the verdict in the same step as the last ack or force.
func (st *stops) maybeComplete(e *entry) {
	if e.job.Drain == nil || e.alive > 0 {
		return
	}
	j := st.jobs.edit(e)
	shown := announces(j)
	st.clock.timers.cancel(timer{kind: timerForce, job: j.ID, epoch: j.Epoch})
	if slices.ContainsFunc(j.Ranks, func(r Rank) bool { return r.Own }) {
		st.workIsDone(e)
	}
	if st.unsure(e) {
		return
	}
	st.compare(e, true)
	d := *j.Drain
	why, tied := st.culprit(j)
	begun := d.Cause
	d.Cause, d.Trigger, d.Text = why.Cause, why.Trigger, withStacks(j.Drain, why.Text)
	j.Drain = &d
	if len(d.Reports) > 0 || begun == api.CauseCompleted && endedByStep(j) {
		charge(j, d.Cause)
	}
	over := d.Over
	if over.IsZero() {
		over = st.clock.now.Wall
	}
	v := verdict(st.set, j, st.clock.now.Wall)
	cause := d.Cause
	outcome := string(api.RankBlocked)
	if v != nil {
		cause = v.Cause
		outcome = strings.ToLower(string(v.State))
	}
	st.books.end(e, cause, over)
	row := epochRow(j)
	row.Ended, row.Cause, row.Trigger, row.Stacks = over, cause, d.Trigger, d.Stacks
	if len(d.Reports) > 0 {
		row.Text, row.Tied, row.Ends = d.Text, tied, st.ends(j)
		if by := d.Reports[0]; by.Cause != why.Cause || by.Trigger != why.Trigger {
			row.StartedBy = &by
		}
	}
	st.record.epochs[j.key()] = row
	if shown {
		ev := api.Event{Type: api.EventDrainCompleted, Outcome: outcome, Cause: d.Cause, Trigger: rankPtr(d.Trigger),
			Seconds: seconds(st.clock.now.Mono - e.drainAt)}
		// Why it ended is in the event of the end where there is one, and in that of the drain's start where it is the same.
		if outcome == string(api.RankBlocked) || len(d.Reports) > 0 && d.Text != d.Reports[0].Text {
			ev.Text = d.Text
		}
		st.record.emitJob(j, ev)
	}
	if v != nil {
		st.endSince(e, v, over)
		return
	}
	if keep(j); j.Spec.MaxTimeTotal > 0 {
		j.Ran = ranInAll(j, st.clock.now.Wall)
	}
	if d.Cause == api.CauseTimeout {
		// It had its turn. Behind others it is what has just been submitted: what it did
		// brings no end of it nearer that anybody knows of.
		j.Kept, j.Queued = 0, st.clock.now.Wall
	}
	st.launches.block(e, failedNodes(j, &d))
	switch {
	case backsOff(d.Cause):
		st.launches.backoff(e, j.Used[budgetOf(d.Cause)])
	case d.Cause == api.CauseRequeued && Recurs(j):
		st.submissions.dueAt(e, st.crontabs.due(j.Spec.Cron, st.clock.now.Wall))
	}
	st.queue.touch(e)
}

// failedNodes are those to avoid next time: only where the node may be at fault.
func failedNodes(j *Job, d *Drain) []string {
	if (d.Cause != api.CauseNodeLost && d.Cause != api.CauseLaunch) || d.Trigger < 0 {
		return nil
	}
	return []string{j.Ranks[d.Trigger].Slot.Node}
}

// end gives a job its one verdict.
func (st *stops) end(e *entry, v *Verdict) { st.endSince(e, v, st.clock.now.Wall) }

// endSince is end for what was over by then.
func (st *stops) endSince(e *entry, v *Verdict, at time.Time) {
	j := st.jobs.edit(e)
	if admitted(j) {
		st.queue.countActive(e, -1)
	} else if a := st.queue.arrays[j.ArrayID]; a != nil && e.offered {
		st.queue.withdraw(a, e)
	}
	for i := range j.Ranks {
		if s := j.Ranks[i].State; s != api.RankDone && s != api.RankFailed {
			st.jobs.editRank(e, i).State = rankEnd(j, i, v.State)
		}
	}
	st.clock.timers.cancel(timer{kind: timerEligible, job: j.ID})
	st.clock.timers.cancel(timer{kind: timerDeadline, job: j.ID})
	st.queue.retally(j, func() { j.Drain, j.Verdict, j.End = nil, v, at })
	e.epoch = st.jobs.noEpoch
	delete(st.launches.refused, j.ID)
	st.queue.unlist(j)
	st.holdings.uncount(j)
	st.queue.touch(e)
	st.memory.leaveIn(e, st.set.KeepEnded)
	code := v.ExitCode
	again := j.Spec.Cron != nil && !j.LastRun
	st.record.emitJob(j, api.Event{Type: api.EventEnded, State: v.State, Cause: v.Cause, Trigger: rankPtr(v.Trigger), ExitCode: &code,
		Text: v.Text})
	st.deps.unwatch(e)
	st.deps.tell(j)
	if again {
		st.submissions.comeAgain(e)
	}
	st.memory.makeRoom()
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
