package gang

import (
	"cmp"
	"fmt"
	"slices"

	"gangd/pkg/api"
)

// reports are what nodes say of the members of gangs.
type reports struct {
	set      *api.Settings
	clock    *clock
	record   *record
	jobs     *jobs
	nodes    *nodes
	queue    *queue
	books    *books
	launches *launches
	stops    *stops
	steps    *steps
	fleet    *fleet
}

// report takes what changed on a node. It is compared with what is known: a repeat
// changes nothing, and a late answer of another epoch is refused.
func (rp *reports) report(ev NodeReport) Outcome {
	h := rp.nodes.byName[ev.Node]
	if h == nil {
		return refused(api.Errorf(api.CodeNotFound, "node %q is not known", ev.Node))
	}
	if !h.node.Connected {
		// Its next hello says all of it again.
		return ignored("no session: a hello comes first")
	}
	if ev.Actual.Clock.Within > 0 {
		h.clock = ev.Actual.Clock
	}
	out := merge(rp.fleet.rebootSaid(h, ev.Actual.Reboot), rp.fleet.health(h, ev.Actual.Health))
	for i := range ev.Actual.Members {
		out = merge(out, rp.member(h, &ev.Actual.Members[i]))
	}
	for _, k := range ev.Actual.Gone {
		out = merge(out, rp.gone(h, k, "gone from the node"))
	}
	return out
}

// member compares one member with what is known of it. From here on its phase is that of its end also while the site's
// epilog runs.
func (rp *reports) member(h *host, ma *api.MemberActual) Outcome {
	if ma.Epilog != "" {
		end := *ma
		end.Phase = ma.Epilog
		ma = &end
	}
	rp.found(h, ma)
	seen := rp.fleet.cardsSeen(h, ma.Cards) // may have begun the drain that the rest belongs to
	out := rp.memberSays(h, ma)
	if seen && out.Refused == nil {
		return applied()
	}
	return out
}

// found puts on record, once, that a node's own record of a member is not whole.
func (rp *reports) found(h *host, ma *api.MemberActual) {
	if _, told := h.found[ma.MemberKey]; told || ma.Found == "" {
		return
	}
	if h.found == nil {
		h.found = map[api.MemberKey]struct{}{}
	}
	h.found[ma.MemberKey] = struct{}{}
	ev := api.Event{Type: api.EventMemberFound, Node: h.node.Name, ClaimedEpoch: ma.Epoch, Text: fmt.Sprintf("%s, %s", ma.Phase, ma.Found)}
	if e := rp.jobs.byID[ma.Job]; e != nil {
		ev.JobID, ev.Epoch = e.job.ID, e.job.Epoch
	} else {
		ev.Text = fmt.Sprintf("%s, of job %d which is not known", ev.Text, ma.Job)
	}
	rp.record.emit(ev)
}

func (rp *reports) memberSays(h *host, ma *api.MemberActual) Outcome {
	p, ok := h.members[ma.MemberKey]
	if !ok {
		return rp.stray(h, ma)
	}
	if p.e.job.Presumed != nil {
		if neverRan(ma) && !wantedAgain(p.e.job, ma) {
			return rp.calledOff(h, p, ma)
		}
		if ma.Phase != api.PhasePreparing && ma.Phase != api.PhaseReady {
			rp.jobs.edit(p.e).Members[p.i].Port = ma.Port
			rp.launches.confirm(p.e)
		}
	}
	m := &p.e.job.Members[p.i]
	switch ma.Phase {
	case api.PhasePreparing:
		return rp.importing(p, ma.Importing)
	case api.PhaseReady:
		return rp.readyAgain(h, p, ma)
	case api.PhaseRefused:
		return rp.refusal(h, p, ma)
	case api.PhaseRunning, api.PhaseStopped, api.PhaseStuck, api.PhaseLost:
		if m.State == MemberPreparing {
			return rp.premature(h, p, ma)
		}
		return rp.processes(h, p, ma)
	}
	return ignored("unknown phase")
}

// importing: the time to become ready does not run while an image is being imported and more of it comes, and
// begins anew when that is done.
func (rp *reports) importing(p place, far api.Import) Outcome {
	m := &p.e.job.Members[p.i]
	_, was := p.e.prepared[p.i]
	switch {
	case was: // its daemon started again, and what it had prepared is gone
		rp.launches.unprepared(p.e, p.i)
	case m.State != MemberPreparing || m.Importing == far:
		return ignored("known to be preparing")
	}
	if m.Importing != far {
		rp.jobs.edit(p.e).Members[p.i].Importing = far
		rp.launches.extendStart(p.e.job)
	}
	return applied()
}

// readyAgain is ready, unless that is known; a daemon that restarted while the others were
// being prepared may have had to pick another port.
func (rp *reports) readyAgain(h *host, p place, ma *api.MemberActual) Outcome {
	m := &p.e.job.Members[p.i]
	was, prepared := p.e.prepared[p.i]
	switch {
	case m.State != MemberPreparing || prepared && was == ma.Port:
		return ignored("known to be ready")
	case !prepared && ma.Image != "" && p.e.job.Image != "" && p.e.job.Image != ma.Image:
		// Its tag was moved while the gang was being prepared. The next epoch names the digest.
		rp.launches.refuse(h, p.e, p.i, &api.Refusal{Blame: api.BlameUnknown, Text: fmt.Sprintf("the image is %s here and %s elsewhere", ma.Image,
			p.e.job.Image)}, false)
	default:
		rp.launches.ready(p.e, p.i, ma.Port, ma.Image)
	}
	return applied()
}

// stray is a member that is not one of a current epoch's live ones.
func (rp *reports) stray(h *host, ma *api.MemberActual) Outcome {
	over := ma.Phase == api.PhaseStopped || ma.Phase == api.PhaseRefused || ma.Phase == api.PhaseLost
	at, left := findLeft(h.node, ma.MemberKey)
	if over {
		rp.stops.lateResult(ma)
	}
	cleaning := ma.Epilog != ""
	if over && !cleaning {
		rp.fleet.strayGone(h, ma.MemberKey)
	}
	switch {
	case left && cleaning:
		if !rp.fleet.leftCleaned(h, at) {
			return ignored("its epilog is known to run")
		}
		return applied()
	case left && over:
		rp.books.hooksRan(h, at, ma.Measure)
		rp.fleet.leftGone(h, ma.MemberKey)
		return applied()
	case over && !rp.outdated(ma.MemberKey):
		rp.nodes.wake(h.node.Name)
		return ignored("recorded already")
	case left && ma.Phase == api.PhaseStuck:
		text := survivors(ma)
		if h.node.Left[at].Text == text {
			return ignored("known to be stuck")
		}
		rp.nodes.edit(h).Left[at].Text = text
		return applied()
	}
	rp.nodes.wake(h.node.Name)
	return rp.stale(h, ma)
}

// outdated: the job is in another epoch now, which an ack of this one must not touch: it is
// refused by name. While the gang waits, or is over, it is a repeat as any reconnect brings.
func (rp *reports) outdated(k api.MemberKey) bool {
	e := rp.jobs.byID[k.Job]
	return e != nil && admitted(e.job) && e.job.Epoch != k.Epoch
}

// stale refuses a claim of an epoch that is not current; once a session is enough for the
// record, but the node is told each time, by its desired set.
func (rp *reports) stale(h *host, ma *api.MemberActual) Outcome {
	e := rp.jobs.byID[ma.Job]
	err := api.Errorf(api.CodeStaleEpoch, "stale epoch %d of job %d", ma.Epoch, ma.Job)
	if _, told := h.staleLogged[ma.MemberKey]; told {
		return refused(err)
	}
	if h.staleLogged == nil {
		h.staleLogged = map[api.MemberKey]struct{}{}
	}
	h.staleLogged[ma.MemberKey] = struct{}{}
	ev := api.Event{Type: api.EventStaleRefused, Node: h.node.Name, ClaimedEpoch: ma.Epoch, Text: string(ma.Phase)}
	if e != nil {
		ev.JobID, ev.Epoch = e.job.ID, e.job.Epoch
	} else {
		ev.Text = fmt.Sprintf("%s, of job %d which is not known", ma.Phase, ma.Job)
	}
	rp.record.emit(ev)
	return refused(err)
}

// refusal: a member could not be prepared, and nothing of it is left.
func (rp *reports) refusal(h *host, p place, ma *api.MemberActual) Outcome {
	r := ma.Refusal
	if r == nil {
		r = &api.Refusal{Blame: api.BlameUnknown, Text: "no reason given"}
	}
	e, text := p.e, h.node.Name+": "+r.Text
	switch m := &e.job.Members[p.i]; m.State {
	case MemberPreparing:
		rp.launches.refuse(h, e, p.i, r, ma.Epilog != "")
	default:
		// The gate was open: to its peers this is a member that vanished.
		if e.job.Drain == nil {
			if first := rp.stops.lost(e, p.i); first >= 0 {
				rp.stops.accident(e, Report{Cause: api.CauseLaunch, Trigger: first, Text: text})
			}
		}
		rp.stops.stopped(e, p.i, false, text, ma.Epilog != "")
	}
	return applied()
}

// premature: a member has, or had, processes though its gate was never opened, or its
// preparation is gone. The gang rolls back; where something may live, that is remembered.
func (rp *reports) premature(h *host, p place, ma *api.MemberActual) Outcome {
	alive := ma.Phase == api.PhaseRunning || ma.Phase == api.PhaseStuck
	key, node := p.e.job.key(), h.node.Name
	text := fmt.Sprintf("%s: %s before the start", node, ma.Phase)
	switch ma.Phase {
	case api.PhaseStopped: // by a stop of ours, or of the node's own: nobody's fault
	case api.PhaseLost:
		rp.launches.refuse(h, p.e, p.i, &api.Refusal{Blame: api.BlameUnknown, Text: "its supervisor died before the start"}, ma.Epilog != "")
		return applied()
	}
	rp.launches.rollback(p.e, text, []string{node}, func(i int) bool { return i == p.i && !alive && ma.Epilog == "" })
	if alive {
		rp.fleet.leftRan(h, key)
		rp.queue.touch(p.e)
		rp.launches.strike(h, Strike{Job: key.Job, User: p.e.job.User, Blame: api.BlameNode, Text: string(ma.Phase) + " before the start"})
	}
	return applied()
}

// processes takes what became of the processes of a member whose gate is open.
func (rp *reports) processes(h *host, p place, ma *api.MemberActual) Outcome {
	e, i := p.e, p.i
	if ma.Phase == api.PhaseStopped || ma.Phase == api.PhaseLost {
		rp.books.measured(e, i, ma.Measure)
	}
	changed := rp.noticed(e, i, ma)
	changed = rp.ownStop(e, i, ma) || changed
	changed = rp.stops.deaf(e, i, ma) || changed
	changed = rp.stops.heeds(e, i, ma) || changed
	changed = rp.stops.killed(e, i, ma) || changed
	changed = seenAt(e, i, ma) || changed
	changed = rp.steps.said(e, i, ma.Steps) || changed
	failed, exits := rp.exits(e, i, ma)
	changed = rp.seen(h, e, i) || exits || changed
	if f := endingStep(e.job); f != nil && e.job.Drain == nil {
		rp.stops.accident(e, f.report()) // before what the script does of it, in the same word
	}
	switch {
	case e.job.Drain == nil && endingRole(e.job) != "":
		// Before a failure that came with the same word: ranks that lose their coordinator
		// fail of it.
		rp.stops.drain(e, api.CauseCompleted, -1, "role "+endingRole(e.job)+" is done")
	case len(failed) > 0:
		e.endAt = rp.clock.now.Mono
		for _, ra := range failed {
			rp.stops.accident(e, endReport(e.job, ra))
		}
	case e.job.Drain == nil && e.open == 0 && count(e.job, api.RankPreempted) > 0:
		rp.stops.drain(e, api.CauseTimeout, -1, "ended in the lead of its "+limitName(e.job))
	case e.job.Drain == nil && (e.open == 0 || batchDone(e.job)):
		rp.stops.drain(e, api.CauseCompleted, -1, "every rank is done")
	}
	if exits {
		rp.launches.passReady(e)
	}
	rp.stops.compare(e, false)
	if e.job.Drain != nil && scriptOver(e.job) {
		rp.stops.cancelLead(e) // a notice that nobody is left to use: the end of the script is the end of its steps
	}
	switch ma.Phase {
	case api.PhaseStopped:
		if e.job.Drain == nil {
			rp.stops.missing(e, i, fmt.Sprintf("%s: the member ended without its results", h.node.Name))
		}
		rp.stops.stopped(e, i, ma.Forced, "", ma.Epilog != "")
		return applied()
	case api.PhaseLost:
		return rp.vanished(h, p, cmp.Or(ma.Found, "its supervisor died, its processes were killed"), ma.Epilog != "")
	case api.PhaseStuck:
		if text := survivors(ma); e.stuck[i] != text {
			if e.stuck == nil {
				e.stuck = map[int]string{}
			}
			e.stuck[i] = text
			changed = true
		}
	}
	if !changed {
		return ignored("nothing new")
	}
	return applied()
}

// noticed puts the early signal on record, once for the gang however many members send it.
func (rp *reports) noticed(e *entry, i int, ma *api.MemberActual) bool {
	n := e.job.Spec.Notice
	passed := rp.passed(e, i, ma)
	if !ma.Noticed || n == nil || e.job.Members[i].Noticed {
		return passed
	}
	first := !Noticed(e.job)
	j := rp.jobs.edit(e)
	j.Members[i].Noticed = true
	if first {
		ev := api.Event{Type: api.EventNotice, Node: j.Members[i].Node, Signal: n.Signal, LeadSeconds: int64(n.Lead.Seconds()),
			Cause: api.CauseTimeout}
		if j.Drain != nil {
			ev.Cause, ev.LeadSeconds = j.Drain.Cause, int64(j.Drain.Lead.Seconds())
		}
		rp.record.emitJob(j, ev)
	}
	return true
}

// passed: the script does not take the notice that was for it alone. The other nodes are told.
func (rp *reports) passed(e *entry, i int, ma *api.MemberActual) bool {
	if !ma.Passed || e.job.Spec.Launch != api.LaunchBatch || e.job.Members[i].Passed {
		return false
	}
	j := rp.jobs.edit(e)
	j.Members[i].Passed = true
	for k := range j.Members {
		if k != i && working(j.Members[k].State) {
			rp.nodes.wake(j.Members[k].Node)
		}
	}
	return true
}

// ownStop: the member stops by the node's own decision (its time limit, its lease, its
// memory). That comes before the exits it brought about.
func (rp *reports) ownStop(e *entry, i int, ma *api.MemberActual) bool {
	if ma.Stopping == "" || e.job.Drain != nil && (ma.Stopping == e.job.Drain.Cause || slices.Contains(e.job.Drain.Later, ma.Stopping)) {
		return false
	}
	node := e.job.Members[i].Node
	switch {
	case e.job.Drain != nil && ma.Stopping == api.CauseOOM: // it had begun before the order came
		rp.stops.accident(e, Report{Evidence: EvidenceMemory, Cause: ma.Stopping, Trigger: ownTrigger(e, i, ma),
			Text: fmt.Sprintf("%s: %s", node, cmp.Or(ma.Text, string(ma.Stopping)))})
		return true
	case e.job.Drain != nil && ma.Stopping == api.CauseTimeout && rp.stops.atLimit(e.job):
		rp.stops.accident(e, Report{Evidence: EvidenceLimit, Cause: ma.Stopping, Trigger: ownTrigger(e, i, ma), Text: limitReached(e.job)})
		return true
	case e.job.Drain != nil && ma.Stopping == api.CauseNodeLost:
		rp.stops.accident(e, stoppedAlone(e.job, i, ma))
		return true
	case e.job.Drain != nil:
		rp.stops.drain(e, ma.Stopping, -1, "") // recorded as a later cause
		return true
	}
	switch ma.Stopping {
	case api.CauseTimeout:
		rp.stops.drain(e, api.CauseTimeout, -1, limitReached(e.job))
	case api.CauseOOM, api.CauseStalled, api.CauseGPUHang:
		r := Report{Cause: ma.Stopping, Trigger: ownTrigger(e, i, ma), Text: fmt.Sprintf("%s: %s", node, cmp.Or(ma.Text, string(ma.Stopping)))}
		if ma.Stopping == api.CauseOOM {
			r.Evidence = EvidenceMemory
		}
		rp.stops.accident(e, r)
	case api.CauseRequeued: // it can't start with what was prepared
		rp.stops.drain(e, ma.Stopping, -1, fmt.Sprintf("%s: %s", node, cmp.Or(ma.Text, "stopped by the node")))
	default:
		// A stop that was not ordered here: the lease, or another controller's order.
		rp.stops.accident(e, stoppedAlone(e.job, i, ma))
	}
	return true
}

// stoppedAlone is the report on a member that its node has stopped, as it does when its lease is over.
func stoppedAlone(j *Job, i int, ma *api.MemberActual) Report {
	m := &j.Members[i]
	return Report{Evidence: EvidenceLost, Cause: api.CauseNodeLost, Trigger: m.Ranks[0], Text: fmt.Sprintf("%s: stopped by the node (%s)",
		m.Node, ma.Stopping)}
}

// ownTrigger is the rank that a stop of the node's own is about.
func ownTrigger(e *entry, i int, ma *api.MemberActual) int {
	ranks := e.job.Members[i].Ranks
	if ma.Trigger != nil && slices.Contains(ranks, *ma.Trigger) {
		return *ma.Trigger
	}
	return ranks[0]
}

// exits records how ranks ended, each once, and gives those that failed by themselves, the first of them
// first. A rank that ended before the stop reached it keeps its true result.
func (rp *reports) exits(e *entry, i int, ma *api.MemberActual) (failed []*api.RankActual, changed bool) {
	for k := range ma.Ranks {
		ra := asShell(ma.Ranks[k])
		if !slices.Contains(e.job.Members[i].Ranks, ra.Rank) || !hasProcess(e.job, ra.Rank) {
			continue
		}
		changed = rp.started(e, ra) || changed
		changed = rp.warned(e, ra) || changed
		if !ra.Exited || e.job.Ranks[ra.Rank].Exited {
			continue
		}
		changed = true
		// One word may carry both an end and the stop that came after it.
		rp.exited(e, i, ra, ownEnd(ma, ra))
		switch {
		case ra.ExitCode == 0:
		case e.job.Drain == nil || ownEnd(ma, ra):
			failed = append(failed, ra)
		case ra.ProgramFailed:
			rp.stops.accident(e, Report{Evidence: EvidenceShell, Cause: api.CauseCrash, Trigger: ra.Rank, Text: exitText(e.job, ra)})
		}
	}
	slices.SortFunc(failed, earlier)
	return failed, changed
}

func earlier(a, b *api.RankActual) int {
	return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Rank, b.Rank))
}

func (rp *reports) started(e *entry, ra *api.RankActual) bool {
	r := &e.job.Ranks[ra.Rank]
	if ra.PID == 0 || r.PID == ra.PID || r.Exited {
		return false
	}
	r = rp.jobs.editRank(e, ra.Rank)
	r.PID, r.OutStart, r.ErrStart = ra.PID, ra.OutStart, ra.ErrStart
	if !ra.Started.IsZero() {
		r.Start = ra.Started
	}
	return true
}

// warned puts on record that a rank does what it will be stopped for.
func (rp *reports) warned(e *entry, ra *api.RankActual) bool {
	if ra.Warning == e.warned[ra.Rank] || ra.Exited {
		return false
	}
	if e.warned == nil {
		e.warned = map[int]string{}
	}
	e.warned[ra.Rank] = ra.Warning
	text := ra.Warning
	if text == "" {
		text = "no longer"
	}
	rp.record.emitJob(e.job, api.Event{Type: api.EventWarned, Rank: rankPtr(ra.Rank), Node: e.job.Ranks[ra.Rank].Slot.Node, Text: text})
	return true
}

func (rp *reports) exited(e *entry, i int, ra *api.RankActual, byItself bool) {
	r := rp.jobs.editRank(e, ra.Rank)
	r.Exited, r.ExitCode, r.Signal, r.End, r.VRAMPeak = true, ra.ExitCode, ra.Signal, ra.Ended, ra.VRAMPeak
	if r.End.IsZero() {
		r.End = rp.clock.now.Wall
	}
	e.open--
	if byItself || r.State == api.RankRunning {
		r.State = api.RankFailed
		switch {
		case ra.ExitCode == 0 && savesInLead(rp.set, e.job, i):
			r.State = api.RankPreempted
		case ra.ExitCode == 0:
			r.State = api.RankDone
			rp.jobs.changed(e)
		}
	}
	rp.record.emitExit(e.job, ra)
}

// seen: the node says that the member runs, so the launch was a success.
func (rp *reports) seen(h *host, e *entry, i int) bool {
	if e.job.Members[i].State != MemberStarting {
		return false
	}
	rp.jobs.edit(e).Members[i].State = MemberRunning
	rp.launches.forgive(h, e.job.User)
	return true
}

// vanished: a member whose gate was open is known gone without having said how it ended.
func (rp *reports) vanished(h *host, p place, text string, cleaning bool) Outcome {
	text = h.node.Name + ": " + text
	rp.stops.missing(p.e, p.i, text)
	rp.stops.stopped(p.e, p.i, false, text, cleaning)
	return applied()
}

// gone: the node has nothing of a member any more.
func (rp *reports) gone(h *host, k api.MemberKey, text string) Outcome {
	delete(h.found, k)
	p, ok := h.members[k]
	if !ok {
		rp.fleet.strayGone(h, k)
		if _, left := findLeft(h.node, k); !left {
			return ignored("known to be gone")
		}
		rp.fleet.leftGone(h, k)
		return applied()
	}
	switch p.e.job.Members[p.i].State {
	case MemberPreparing:
		rp.launches.rollback(p.e, h.node.Name+": "+text, []string{h.node.Name}, func(i int) bool { return i == p.i })
		return applied()
	}
	return rp.vanished(h, p, text, false)
}

// savesInLead reports whether a rank of a member that ends well now has been told of the time
// limit and is to go on in another run.
func savesInLead(set *api.Settings, j *Job, member int) bool {
	return j.Members[member].Noticed && (j.Drain == nil || j.Drain.Cause == api.CauseTimeout) && limit(set, j.Spec, api.CauseTimeout) != 0
}
