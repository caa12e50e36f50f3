package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched"
)

func memberKey(job int64, epoch int) api.MemberKey { return api.MemberKey{Job: job, Epoch: epoch} }

// Ref is how people call the job: 12, or 12_3 of an array.
func (j *Job) Ref() api.JobRef {
	if j.ArrayID == 0 || j.ArrayIndex < 0 {
		return api.JobRef{ID: j.ID, Index: -1}
	}
	return api.JobRef{ID: j.ArrayID, Index: j.ArrayIndex}
}

func (j *Job) key() api.MemberKey { return memberKey(j.ID, j.Epoch) }

// admit admits a gang as it was planned, or changes nothing: the plan was made from a
// snapshot, so everything is checked again here.
func (w *World) admit(ev Admit) Outcome {
	e := w.jobs.byID[ev.Job]
	if err := w.admissible(e, ev); err != nil {
		return refused(err)
	}
	members := group(ev.Slots)
	res, err := w.takeAll(e, &ev, members)
	if err != nil {
		return refused(err)
	}
	ports, err := w.gangPorts(e.job, members)
	if err != nil {
		return w.shortOfPorts(e, err)
	}
	j := w.jobs.edit(e)
	j.Epoch++
	j.ReservedAt, j.CutTimeLimit, j.Turn = w.clock.now.Wall, ev.TimeLimit, ev.Turn
	j.BackoffUntil = time.Time{}
	j.Members, j.Ports = members, ports
	ranks := w.jobs.editRanks(e)
	for i := range ranks {
		ranks[i] = Rank{State: api.RankReserved, Slot: ev.Slots[i]}
	}
	e.allDirty = true
	w.place(e)
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].Node
		h := w.nodes.byName[names[i]]
		w.nodes.edit(h).Res = res[i]
		w.nodes.woken = append(w.nodes.woken, names[i])
	}
	w.queue.countActive(e, 1)
	w.queue.touch(e)
	w.extendStart(j)
	w.record.emitJob(j, api.Event{Type: api.EventReserved, Nodes: names, Size: len(j.Ranks)})
	return applied()
}

func (w *World) admissible(e *entry, ev Admit) *api.Error {
	switch {
	case e == nil:
		return notFound(ev.Job)
	case e.job.Verdict != nil:
		return ended(e.job)
	case !blocked(e.job):
		return api.Errorf(api.CodeConflict, "job %d is %s: not every rank waits", ev.Job, phrase(e.job))
	case e.job.Held != "":
		return api.Errorf(api.CodeConflict, "job %d is held", ev.Job)
	case e.left > 0:
		return w.keptOut(e)
	case e.job.Waits != "":
		return api.Errorf(api.CodeConflict, "job %d waits for %s", ev.Job, e.job.Waits)
	case !w.site.reservations.lets(e.job):
		return api.Errorf(api.CodeConflict, "reservation %s is not there for job %d now", e.job.Spec.Reservation, ev.Job)
	case !w.queue.eligible(e):
		return api.Errorf(api.CodeConflict, "the begin time or back-off of job %d has not passed", ev.Job)
	case !w.queue.inTurn(e):
		return api.Errorf(api.CodeConflict, "array %d has %d elements admitted, its limit", e.job.ArrayID, w.queue.arrays[e.job.ArrayID].active)
	case w.site.pools.short(e.job) != "":
		return api.Errorf(api.CodeConflict, "job %d: %s", ev.Job, w.site.pools.short(e.job))
	case tooLate(e.job, w.clock.now.Wall):
		return api.Errorf(api.CodeConflict, "job %d %s", ev.Job, missed(e.job))
	case ev.TimeLimit != 0 && (ev.TimeLimit < least(e.job) || e.job.TimeLimit > 0 && ev.TimeLimit >= e.job.TimeLimit):
		return api.Errorf(api.CodeInvalid, "the time limit of job %d can't be cut to %s", ev.Job, ev.TimeLimit)
	case len(ev.Slots) != len(e.job.Ranks):
		return api.Errorf(api.CodeInvalid, "%d slots for the %d ranks of job %d", len(ev.Slots), len(e.job.Ranks), ev.Job)
	}
	for i, s := range ev.Slots {
		if want := e.job.Spec.FiguresOf(i).GPUs; want > 0 && len(s.Cards) != want && !(cluster.TakesAll(e.job.Spec) && len(s.Cards) > want) {
			return api.Errorf(api.CodeInvalid, "%d cards for rank %d of job %d, which asks for %d", len(s.Cards), i, ev.Job, want)
		}
	}
	return nil
}

// group makes the members in the order of their first rank.
func group(slots []cluster.Slot) []Member {
	var members []Member
	at := map[string]int{}
	for r, s := range slots {
		i, ok := at[s.Node]
		if !ok {
			i = len(members)
			at[s.Node] = i
			members = append(members, Member{Node: s.Node, State: MemberPreparing})
		}
		members[i].Ranks = append(members[i].Ranks, r)
	}
	return members
}

// takeAll is the nodes with the gang's grants on them; one that can't be had refuses all.
func (w *World) takeAll(e *entry, ev *Admit, members []Member) ([]*cluster.Node, *api.Error) {
	key := memberKey(e.job.ID, e.job.Epoch+1)
	until := endsBy(&w.set, e.job, cmp.Or(ev.TimeLimit, e.job.TimeLimit), w.clock.now.Wall)
	at := func(rank int) cluster.Slot { return ev.Slots[rank] }
	res := make([]*cluster.Node, len(members))
	on := make([]*cluster.Node, 0, len(members))
	for i := range members {
		if h := w.nodes.byName[members[i].Node]; h != nil {
			on = append(on, h.node.Res)
		}
	}
	if !e.asked.ask.MayHave(on, ev.Slots) {
		return nil, api.Errorf(api.CodeConflict, "partition %s does not allow a job on %s", e.job.Partition, api.Count(len(members), "node"))
	}
	for i := range members {
		m := &members[i]
		h := w.nodes.byName[m.Node]
		if h == nil {
			return nil, api.Errorf(api.CodeConflict, "node %q is not known", m.Node)
		}
		if e.job.Spec.Exclusive {
			m.CPUs = h.node.Res.CPUs()
		}
		if !shared(e.asked.ask.Partitions, h.node.Res.Partitions) {
			return nil, api.Errorf(api.CodeConflict, "node %s is not in partition %s", m.Node, e.job.Partition)
		}
		if err := w.site.reservations.barred(e.job, m.Node, until); err != nil {
			return nil, err
		}
		var err error
		if res[i], err = h.node.Res.Take(cluster.GrantOf(e.asked.ask, key, m.Ranks, at, until)); err != nil {
			return nil, api.Errorf(api.CodeConflict, "%s", err)
		}
	}
	return res, nil
}

func shared(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// endsBy is when a gang admitted at the instant at has ended at the latest by a time limit
// and its deadline.
func endsBy(set *api.Settings, j *Job, limit time.Duration, at time.Time) time.Time {
	end := j.Deadline
	if by := at.Add(limit); limit > 0 && (end.IsZero() || by.Before(end)) {
		end = by
	}
	if end.IsZero() {
		return end
	}
	return end.Add(graceOf(set, j))
}

func graceOf(set *api.Settings, j *Job) time.Duration {
	if j.Spec.Grace > 0 {
		return j.Spec.Grace
	}
	return set.Grace
}

// place makes what is derived from the members of an admitted gang.
func (w *World) place(e *entry) {
	j := e.job
	e.epoch = new(epoch)
	for i := range j.Members {
		m := &j.Members[i]
		if m.State == MemberStopped || m.State == MemberFenced {
			continue
		}
		e.alive++
		w.nodes.byName[m.Node].members[j.key()] = place{e, i}
	}
	for i := range j.Ranks {
		if hasProcess(j, i) && !j.Ranks[i].Exited && !over(j.Ranks[i].State) {
			e.open++
		}
	}
}

// hasProcess: in a batch launch the ranks but the first are only room.
func hasProcess(j *Job, rank int) bool { return rank == 0 || j.Spec.Launch != api.LaunchBatch }

// over: nothing more will be heard of a rank in this state.
func over(s api.RankState) bool {
	return s == api.RankDone || s == api.RankFailed || s == api.RankPreempted || s == api.RankCancelled
}

// ready: one member is prepared. That is not stored: of a gang on thousands of nodes the row is long, and
// each of them says it again to another controller.
func (w *World) ready(e *entry, i int, port int, image string) {
	if e.prepared == nil {
		e.prepared = make(map[int]int, len(e.job.Members))
	}
	if _, known := e.prepared[i]; !known {
		e.ranks += len(e.job.Members[i].Ranks)
	}
	e.prepared[i] = port
	w.jobs.prepared[e.job.ID] = struct{}{}
	if e.job.Members[i].Importing != (api.Import{}) {
		w.jobs.edit(e).Members[i].Importing = api.Import{}
		w.extendStart(e.job) // the others begin together with it to be late
	}
	if e.job.Image == "" && image != "" {
		w.jobs.edit(e).Image = image
	}
	w.openPrepared(e)
}

// unprepared takes back that a member is prepared.
func (w *World) unprepared(e *entry, i int) {
	delete(e.prepared, i)
	e.ranks -= len(e.job.Members[i].Ranks)
	w.jobs.prepared[e.job.ID] = struct{}{}
}

// openPrepared opens the gate for all, in the very step in which the last member is known to be prepared. A
// node that has no session now has to say so again.
func (w *World) openPrepared(e *entry) {
	if len(e.prepared) == len(e.job.Members) && !slices.ContainsFunc(e.job.Members, w.nodes.isAway) {
		w.open(e)
	}
}

// isAway: the node of a member has no session.
func (ns *nodes) isAway(m Member) bool { return !ns.byName[m.Node].node.Connected }

func (w *World) open(e *entry) {
	j := e.job
	if tooLate(j, w.clock.now.Wall) {
		w.missDeadline(e)
		return
	}
	j = w.jobs.edit(e)
	w.clock.timers.cancel(timer{kind: timerDeadline, job: j.ID})
	w.clock.timers.cancel(timer{kind: timerStart, job: j.ID, epoch: j.Epoch})
	w.clock.in(w.set.StartTimeout, timer{kind: timerLaunch, job: j.ID, epoch: j.Epoch})
	if !j.Start.IsZero() {
		j.Restarts++
	}
	w.queue.retally(j, func() { j.Start = w.clock.now.Wall })
	j.TimeTold = 0
	j.ReadyAt, e.ready, e.readyTasks, j.Acked = time.Time{}, nil, nil, 0
	j.Rollbacks, j.Avoid = 0, nil
	w.startedElsewhere(e)
	w.armReady(j)
	w.jobs.changed(e)
	for i := range j.Ranks {
		r := w.jobs.editRank(e, i)
		r.State, r.Start = api.RankRunning, w.clock.now.Wall
	}
	names := make([]string, len(j.Members))
	for i := range j.Members {
		m := &j.Members[i]
		m.State, m.Port = MemberStarting, e.prepared[i]
		names[i] = m.Node
		w.nodes.woken = append(w.nodes.woken, m.Node)
	}
	e.prepared, e.ranks = nil, 0
	w.books.start(e)
	w.record.armPart(e)
	w.record.epochs[j.key()] = epochRow(j)
	w.record.emitJob(j, api.Event{Type: api.EventPrepared, Nodes: names})
	w.record.emitJob(j, api.Event{Type: api.EventStarted, Nodes: names, Size: len(j.Ranks), Seconds: seconds(j.Start.Sub(j.Eligible)),
		Text: cutText(j)})
	w.tellDependents(j)
}

func seconds(d time.Duration) float64 { return max(d, 0).Seconds() }

// rollback takes a gang that has no process yet back to blocked, whole; nobody is charged.
// gone says which members are known to have left nothing; the others keep their grants.
func (w *World) rollback(e *entry, text string, avoid []string, gone func(i int) bool) {
	j := w.jobs.edit(e)
	key := j.key()
	w.clock.timers.cancel(timer{kind: timerStart, job: j.ID, epoch: j.Epoch})
	for i := range j.Members {
		h := w.nodes.byName[j.Members[i].Node]
		delete(h.members, key)
		w.nodes.woken = append(w.nodes.woken, h.node.Name)
		if gone(i) {
			w.free(h, key)
		} else {
			w.leave(h, Left{MemberKey: key, Text: "rolled back: " + text, Ports: j.Ports})
		}
	}
	w.record.emitJob(j, api.Event{Type: api.EventRolledBack, Nodes: avoid, Text: text})
	w.block(e, avoid)
	j.Rollbacks++
	if j.Rollbacks > 1 {
		// The first is free: the next place may do. A gang that no node prepares must not
		// spin through reservations as fast as the nodes refuse.
		w.backoff(e, j.Rollbacks-1)
	}
	w.queue.touch(e)
}

// block takes every rank of an admitted gang back to the queue. The caller calls touch.
func (w *World) block(e *entry, avoid []string) {
	j := w.jobs.edit(e)
	w.queue.countActive(e, -1)
	for i := range j.Ranks {
		w.jobs.editRank(e, i).State = api.RankBlocked
	}
	j.Members, j.Ports, j.Drain, j.ReservedAt = nil, nil, nil, time.Time{}
	for _, r := range j.Refusals {
		avoid = append(slices.Clip(avoid), r.Node)
	}
	slices.Sort(avoid)
	j.Eligible, j.Avoid, j.CutTimeLimit, j.Turn = w.clock.now.Wall, slices.Compact(avoid), 0, sched.NoTurn
	j.NextStep = 0
	w.armDeadline(e)
	if e.prepared != nil {
		w.jobs.prepared[j.ID] = struct{}{} // it may be placed anew in this very batch
	}
	e.epoch = w.jobs.noEpoch
	w.tellDependents(j) // an earlier singleton of its name may go now
}

// extendStart gives a reserved gang all of its time to become ready from now on.
func (w *World) extendStart(j *Job) {
	w.clock.in(w.set.StartTimeout, timer{kind: timerStart, job: j.ID, epoch: j.Epoch})
}

// startTimeout: not every member was ready in time.
func (w *World) startTimeout(e *entry) {
	if e == nil || !reserved(e.job) {
		return
	}
	var late, names []string
	for i, m := range e.job.Members {
		_, prepared := e.prepared[i]
		h := w.nodes.byName[m.Node]
		switch {
		case !h.node.Connected:
			names = append(names, m.Node+" (went silent)")
		case !prepared:
			names = append(names, m.Node)
		default:
			continue
		}
		late = append(late, m.Node)
		// A node that had no session all that time was not slow, it was away: that is another story.
		if h.node.Connected && w.clock.now.Mono-h.since >= w.set.StartTimeout {
			w.remember(e, Refusal{m.Node, blameLate, fmt.Sprintf("not ready within %s", w.set.StartTimeout)})
		}
	}
	text := fmt.Sprintf("not ready within %s: %s", w.set.StartTimeout, strings.Join(names, ", "))
	w.rollback(e, text, late, func(int) bool { return false })
}

// launchTimeout: the gate was opened and a member was not seen running since. Members on
// nodes without a session are not judged: their node comes back or is lost.
func (w *World) launchTimeout(e *entry) {
	if e == nil || e.job.Verdict != nil || e.job.Drain != nil {
		return
	}
	waiting := false
	for i := range e.job.Members {
		m := &e.job.Members[i]
		if m.State != MemberStarting {
			continue
		}
		h := w.nodes.byName[m.Node]
		if !h.node.Connected {
			waiting = true
			continue
		}
		text := fmt.Sprintf("not running %s after the start on %s", w.set.StartTimeout, m.Node)
		w.remember(e, Refusal{m.Node, blameLate, fmt.Sprintf("not running %s after the start", w.set.StartTimeout)})
		w.accident(e, Report{Cause: api.CauseLaunch, Trigger: m.Ranks[0], Text: text})
		return
	}
	if waiting {
		w.clock.in(w.set.StartTimeout, timer{kind: timerLaunch, job: e.job.ID, epoch: e.job.Epoch})
	}
}
