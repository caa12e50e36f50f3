package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/order"
)

// launches take gangs from the queue to their nodes until their ranks run, or back.
type launches struct {
	set          *api.Settings
	clock        *clock
	record       *record
	jobs         *jobs
	nodes        *nodes
	specs        *specs
	reservations *reservations
	pools        *pools
	queue        *queue
	deps         *dependencies
	books        *books
	stops        *stops
	fleet        *fleet

	refused map[int64]*entry // those that have [Job.Refusals]
}

// admit admits a gang as it was planned, or changes nothing: the plan was made from a
// snapshot, so everything is checked again here.
func (ln *launches) admit(ev Admit) Outcome {
	e := ln.jobs.byID[ev.Job]
	if err := ln.admissible(e, ev); err != nil {
		return refused(err)
	}
	members := group(ev.Slots)
	res, err := ln.takeAll(e, &ev, members)
	if err != nil {
		return refused(err)
	}
	ports, err := ln.gangPorts(e.job, members)
	if err != nil {
		return ln.shortOfPorts(e, err)
	}
	j := ln.jobs.edit(e)
	j.Epoch++
	j.ReservedAt, j.CutTimeLimit, j.Turn = ln.clock.now.Wall, ev.TimeLimit, ev.Turn
	j.BackoffUntil = time.Time{}
	j.Members, j.Ports = members, ports
	ranks := ln.jobs.editRanks(e)
	for i := range ranks {
		ranks[i] = Rank{State: api.RankReserved, Slot: ev.Slots[i]}
	}
	e.allDirty = true
	ln.place(e)
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].Node
		h := ln.nodes.byName[names[i]]
		ln.nodes.edit(h).Res = res[i]
		ln.nodes.wake(names[i])
	}
	ln.queue.countActive(e, 1)
	ln.queue.touch(e)
	ln.extendStart(j)
	ln.record.emitJob(j, api.Event{Type: api.EventReserved, Nodes: names, Size: len(j.Ranks)})
	if ln.opensItself(j) {
		ln.presume(e)
	}
	return applied()
}

func (ln *launches) admissible(e *entry, ev Admit) *api.Error {
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
		return ln.fleet.keptOut(e)
	case e.job.Waits != "":
		return api.Errorf(api.CodeConflict, "job %d waits for %s", ev.Job, e.job.Waits)
	case !ln.reservations.lets(e.job):
		return api.Errorf(api.CodeConflict, "reservation %s is not there for job %d now", e.job.Spec.Reservation, ev.Job)
	case !ln.queue.eligible(e):
		return api.Errorf(api.CodeConflict, "the begin time or back-off of job %d has not passed", ev.Job)
	case !ln.queue.inTurn(e):
		return api.Errorf(api.CodeConflict, "array %d has %d elements admitted, its limit", e.job.ArrayID, ln.queue.arrays[e.job.ArrayID].active)
	case ln.pools.short(e.job) != "":
		return api.Errorf(api.CodeConflict, "job %d: %s", ev.Job, ln.pools.short(e.job))
	case tooLate(e.job, ln.clock.now.Wall):
		return api.Errorf(api.CodeConflict, "job %d %s", ev.Job, missed(e.job))
	case ev.TimeLimit != 0 && (ev.TimeLimit < least(e.job) || e.job.TimeLimit > 0 && ev.TimeLimit >= e.job.TimeLimit):
		return api.Errorf(api.CodeInvalid, "the time limit of job %d can't be cut to %s", ev.Job, when.Words(ev.TimeLimit))
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
func (ln *launches) takeAll(e *entry, ev *Admit, members []Member) ([]*cluster.Node, *api.Error) {
	key := memberKey(e.job.ID, e.job.Epoch+1)
	until := endsBy(ln.set, e.job, cmp.Or(ev.TimeLimit, e.job.TimeLimit), ln.clock.now.Wall)
	at := func(rank int) cluster.Slot { return ev.Slots[rank] }
	res := make([]*cluster.Node, len(members))
	on := make([]*cluster.Node, 0, len(members))
	for i := range members {
		if h := ln.nodes.byName[members[i].Node]; h != nil {
			on = append(on, h.node.Res)
		}
	}
	if !e.asked.ask.MayHave(on, ev.Slots) {
		return nil, api.Errorf(api.CodeConflict, "partition %s does not allow a job on %s", e.job.Partition, api.Count(len(members), "node"))
	}
	for i := range members {
		m := &members[i]
		h := ln.nodes.byName[m.Node]
		if h == nil {
			return nil, api.Errorf(api.CodeConflict, "node %q is not known", m.Node)
		}
		if e.job.Spec.Exclusive {
			m.CPUs = h.node.Res.CPUs()
		}
		if !shared(e.asked.ask.Partitions, h.node.Res.Partitions) {
			return nil, api.Errorf(api.CodeConflict, "node %s is not in partition %s", m.Node, e.job.Partition)
		}
		if err := ln.reservations.barred(e.job, m.Node, until); err != nil {
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

// place makes what is derived from the members of an admitted gang.
func (ln *launches) place(e *entry) {
	j := e.job
	e.epoch = new(epoch)
	for i := range j.Members {
		m := &j.Members[i]
		if m.State == MemberStopped || m.State == MemberFenced {
			continue
		}
		e.alive++
		ln.nodes.byName[m.Node].members[j.key()] = place{e, i}
	}
	for i := range j.Ranks {
		if hasProcess(j, i) && !j.Ranks[i].Exited && !over(j.Ranks[i].State) {
			e.open++
		}
	}
}

// ready: one member is prepared. That is not stored: of a gang on thousands of nodes the row is long, and
// each of them says it again to another controller.
func (ln *launches) ready(e *entry, i int, port int, image string) {
	if e.prepared == nil {
		e.prepared = make(map[int]int, len(e.job.Members))
	}
	if _, known := e.prepared[i]; !known {
		e.ranks += len(e.job.Members[i].Ranks)
	}
	e.prepared[i] = port
	ln.jobs.prepared[e.job.ID] = struct{}{}
	if e.job.Members[i].Importing != (api.Import{}) {
		ln.jobs.edit(e).Members[i].Importing = api.Import{}
		ln.extendStart(e.job) // the others begin together with it to be late
	}
	if e.job.Image == "" && image != "" {
		ln.jobs.edit(e).Image = image
	}
	ln.openPrepared(e)
}

// unprepared takes back that a member is prepared.
func (ln *launches) unprepared(e *entry, i int) {
	delete(e.prepared, i)
	e.ranks -= len(e.job.Members[i].Ranks)
	ln.jobs.prepared[e.job.ID] = struct{}{}
}

// openPrepared opens the gate for all, in the very step in which the last member is known to be prepared. A
// node that has no session now has to say so again.
func (ln *launches) openPrepared(e *entry) {
	if len(e.prepared) == len(e.job.Members) && !slices.ContainsFunc(e.job.Members, ln.nodes.isAway) {
		ln.open(e)
	}
}

func (ln *launches) open(e *entry) {
	if tooLate(e.job, ln.clock.now.Wall) {
		ln.missDeadline(e)
		return
	}
	ln.start(e)
	ln.started(e)
}

// start has a gang run as of now: from here on each of its ranks may be a process.
func (ln *launches) start(e *entry) {
	j := ln.jobs.edit(e)
	ln.clock.timers.cancel(timer{kind: timerDeadline, job: j.ID})
	ln.clock.timers.cancel(timer{kind: timerStart, job: j.ID, epoch: j.Epoch})
	ln.clock.in(ln.set.StartTimeout, timer{kind: timerLaunch, job: j.ID, epoch: j.Epoch})
	if !j.Start.IsZero() {
		j.Restarts++
	}
	ln.queue.retally(j, func() { j.Start = ln.clock.now.Wall })
	j.TimeTold = 0
	j.ReadyAt, e.ready, e.readyTasks, j.Acked = time.Time{}, nil, nil, 0
	ln.jobs.changed(e)
	for i := range j.Ranks {
		r := ln.jobs.editRank(e, i)
		r.State, r.Start = api.RankRunning, ln.clock.now.Wall
	}
	for i := range j.Members {
		m := &j.Members[i]
		m.State, m.Port = MemberStarting, e.prepared[i]
		ln.nodes.wake(m.Node)
	}
	e.prepared, e.ranks = nil, 0
	ln.record.epochs[j.key()] = epochRow(j)
}

// started puts on record that a gang has started, with what others make of that.
func (ln *launches) started(e *entry) {
	j := ln.jobs.edit(e)
	j.Rollbacks, j.Avoid = 0, nil
	ln.startedElsewhere(e)
	ln.armReady(j)
	names := make([]string, len(j.Members))
	for i := range j.Members {
		names[i] = j.Members[i].Node
	}
	ln.books.start(e)
	ln.record.armPart(e)
	ln.record.epochs[j.key()] = epochRow(j)
	ln.record.emitJob(j, api.Event{Type: api.EventPrepared, Nodes: names})
	ln.record.emitJob(j, api.Event{Type: api.EventStarted, Nodes: names, Size: len(j.Ranks), Seconds: seconds(j.Start.Sub(j.Eligible)),
		Text: cutText(j)})
	ln.deps.tell(j)
}

// rollback takes a gang that has no process yet back to blocked, whole; nobody is charged.
// gone says which members are known to have left nothing; the others keep their grants.
func (ln *launches) rollback(e *entry, text string, avoid []string, gone func(i int) bool) {
	j := ln.jobs.edit(e)
	key := j.key()
	ln.clock.timers.cancel(timer{kind: timerStart, job: j.ID, epoch: j.Epoch})
	for i := range j.Members {
		h := ln.nodes.byName[j.Members[i].Node]
		delete(h.members, key)
		ln.nodes.wake(h.node.Name)
		if gone(i) {
			ln.fleet.free(h, key)
		} else {
			ln.fleet.leave(h, Left{MemberKey: key, Text: "rolled back: " + text, Ports: j.Ports})
		}
	}
	ln.record.emitJob(j, api.Event{Type: api.EventRolledBack, Nodes: avoid, Text: text})
	ln.block(e, avoid)
	j.Rollbacks++
	if j.Rollbacks > 1 {
		// The first is free: the next place may do. A gang that no node prepares must not
		// spin through reservations as fast as the nodes refuse.
		ln.backoff(e, j.Rollbacks-1)
	}
	ln.queue.touch(e)
}

// block takes every rank of an admitted gang back to the queue. The caller calls touch.
func (ln *launches) block(e *entry, avoid []string) {
	j := ln.jobs.edit(e)
	ln.queue.countActive(e, -1)
	for i := range j.Ranks {
		ln.jobs.editRank(e, i).State = api.RankBlocked
	}
	j.Members, j.Ports, j.Drain, j.ReservedAt = nil, nil, nil, time.Time{}
	for _, r := range j.Refusals {
		avoid = append(slices.Clip(avoid), r.Node)
	}
	slices.Sort(avoid)
	j.Eligible, j.Avoid, j.CutTimeLimit, j.Turn = ln.clock.now.Wall, slices.Compact(avoid), 0, order.NoTurn
	j.NextStep = 0
	ln.armDeadline(e)
	if e.prepared != nil {
		ln.jobs.prepared[j.ID] = struct{}{} // it may be placed anew in this very batch
	}
	e.epoch = ln.jobs.noEpoch
	ln.deps.tell(j) // an earlier singleton of its name may go now
}

// extendStart gives a reserved gang all of its time to become ready from now on.
func (ln *launches) extendStart(j *Job) {
	ln.clock.in(ln.set.StartTimeout, timer{kind: timerStart, job: j.ID, epoch: j.Epoch})
}

// startTimeout: not every member was ready in time.
func (ln *launches) startTimeout(e *entry) {
	if e == nil || !reserved(e.job) {
		return
	}
	var late, names []string
	for i, m := range e.job.Members {
		_, prepared := e.prepared[i]
		h := ln.nodes.byName[m.Node]
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
		if h.node.Connected && ln.clock.now.Mono-h.since >= ln.set.StartTimeout {
			ln.remember(e, Refusal{m.Node, blameLate, fmt.Sprintf("not ready within %s", when.Words(ln.set.StartTimeout))})
		}
	}
	text := fmt.Sprintf("not ready within %s: %s", when.Words(ln.set.StartTimeout), strings.Join(names, ", "))
	ln.rollback(e, text, late, func(int) bool { return false })
}

// launchTimeout: the gate was opened and a member was not seen running since. Members on
// nodes without a session are not judged: their node comes back or is lost.
func (ln *launches) launchTimeout(e *entry) {
	if e == nil || e.job.Verdict != nil || e.job.Drain != nil {
		return
	}
	waiting := false
	for i := range e.job.Members {
		m := &e.job.Members[i]
		if m.State != MemberStarting {
			continue
		}
		h := ln.nodes.byName[m.Node]
		if !h.node.Connected {
			waiting = true
			continue
		}
		text := fmt.Sprintf("not running %s after the start on %s", when.Words(ln.set.StartTimeout), m.Node)
		ln.remember(e, Refusal{m.Node, blameLate, fmt.Sprintf("not running %s after the start", when.Words(ln.set.StartTimeout))})
		ln.stops.accident(e, Report{Cause: api.CauseLaunch, Trigger: m.Ranks[0], Text: text})
		return
	}
	if waiting {
		ln.clock.in(ln.set.StartTimeout, timer{kind: timerLaunch, job: e.job.ID, epoch: e.job.Epoch})
	}
}
