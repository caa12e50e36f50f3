package gang

import (
	"fmt"
	"maps"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/order"
)

// Verify recounts every cross reference of the world and names each disagreement. It
// walks everything: for tests, and for `gangd verify`.
func (w *World) Verify() []string {
	v := &verifier{w: w}
	for _, id := range slices.Sorted(maps.Keys(w.jobs.byID)) {
		v.job(w.jobs.byID[id])
	}
	away := 0
	for i, h := range w.nodes.sorted {
		v.check(w.nodes.byName[h.node.Name] == h && w.nodes.at(h.node.Name) == i, "node %s is not where its name belongs", h.node.Name)
		if !h.node.Connected {
			away++
		}
		v.node(h)
	}
	v.check(len(w.nodes.sorted) == len(w.nodes.byName), "%d nodes, listed %d", len(w.nodes.byName), len(w.nodes.sorted))
	v.check(away == w.nodes.away, "%d nodes away, counted %d", away, w.nodes.away)
	v.shared()
	v.arrays()
	v.holdings()
	v.pools()
	v.dependencies()
	v.outbox()
	v.crontabs()
	return v.found
}

type verifier struct {
	w     *World
	found []string
}

func (v *verifier) check(ok bool, format string, args ...any) {
	if !ok {
		v.found = append(v.found, fmt.Sprintf(format, args...))
	}
}

// shared: nobody wrote to what all waiting gangs share.
func (v *verifier) shared() {
	v.check(isZero(noPast) && isZero(noWishes), "the past and the wishes of the gangs that have none are %+v, %+v", *noPast, *noWishes)
	v.check(isZero(v.w.jobs.noEpoch), "the epoch of the gangs that have none is %+v", *v.w.jobs.noEpoch)
	for i := range blank {
		r := &blank[i]
		if r.State == api.RankBlocked && r.Slot.Node == "" && r.Slot.Cards == nil && r.PID == 0 && !r.Exited && !r.Own && r.Start.IsZero() &&
			r.End.IsZero() {
			continue // without a copy of it for the words
		}
		v.check(false, "rank %d of the gangs that never had nodes is %+v", i, *r)
	}
}

func (v *verifier) pools() {
	again := map[api.PoolKey]int{}
	for _, e := range v.w.jobs.byID {
		if admitted(e.job) {
			for i := range e.job.Spec.Pools {
				again[e.job.Spec.Pools[i].Key()] += e.job.Spec.Pools[i].Count
			}
		}
	}
	v.check(maps.Equal(v.w.site.pools.held, again), "of pools %v are held, counted %v", again, v.w.site.pools.held)
}

func (v *verifier) outbox() {
	o, again := &v.w.record.outbox, newOutbox()
	for id, l := range o.letters {
		v.check(l.ID == id, "letter %d has the id %d", id, l.ID)
		again.put(id, l)
	}
	v.check(maps.Equal(o.waiting, again.waiting) && maps.Equal(o.drafts, again.drafts) && maps.Equal(o.more, again.more),
		"letters of users, drafts and letters for many are %v %v %v, counted %v %v %v", again.waiting, again.drafts, again.more, o.waiting,
		o.drafts, o.more)
}

func (v *verifier) job(e *entry) {
	j := e.job
	v.check(j.ID < v.w.jobs.nextID, "job %d: id not below the next one, %d", j.ID, v.w.jobs.nextID)
	key := v.w.specs.keyOfAsk(j)
	v.check(e.asked.key == key && v.w.specs.asks[key] == e.asked, "job %d asks for %+v, judged anew %+v", j.ID, e.asked.key, key)
	states := map[api.RankState]int{}
	for i := range j.Ranks {
		states[j.Ranks[i].State]++
	}
	n := len(j.Ranks)
	switch {
	case j.Verdict != nil:
		v.check(states[api.RankDone]+states[api.RankFailed]+states[api.RankCancelled] == n, "job %d: over, but ranks are %v", j.ID, states)
		v.check(j.Drain == nil, "job %d: over and draining", j.ID)
		v.check(j.Verdict.State != api.JobCompleted || allDone(j), "job %d: completed, but ranks are %v", j.ID, states)
	case blocked(j):
		v.check(states[api.RankBlocked] == n, "job %d: part of it is blocked: %v", j.ID, states)
		v.check(len(j.Members) == 0 && j.Drain == nil, "job %d: blocked with %d members", j.ID, len(j.Members))
		v.check(!j.Cancelled, "job %d: cancelled and waiting", j.ID)
	case reserved(j):
		v.check(states[api.RankReserved] == n, "job %d: part of it is reserved: %v", j.ID, states)
	case j.Drain == nil:
		v.check(states[api.RankRunning]+states[api.RankDone]+states[api.RankPreempted] == n, "job %d: running, but ranks are %v", j.ID, states)
		v.check(states[api.RankRunning] > 0, "job %d: running without a running rank", j.ID)
	default:
		v.check(states[api.RankRunning]+states[api.RankBlocked]+states[api.RankReserved] == 0, "job %d: draining, but ranks are %v", j.ID, states)
	}
	if admitted(j) {
		v.members(e)
	}
	if p := j.Presumed; p != nil {
		m := j.Members
		v.check(len(m) == 1 && (m[0].State == MemberStarting || m[0].State == MemberStopping) && (j.Booking == nil || j.Booking.Epoch < j.Epoch),
			"job %d: taken for started, and %s with %+v", j.ID, phrase(j), m)
	}
	v.deadline(j)
	left := 0
	for _, h := range v.w.nodes.byName {
		for _, l := range h.node.Left {
			if l.Job == j.ID && l.KeepsOut() {
				left++
			}
		}
	}
	v.check(left == int(e.left), "job %d: %d members left, counted %d", j.ID, left, e.left)
}

// deadline checks that a gang runs no longer than its deadline allows, and no shorter than
// it takes.
func (v *verifier) deadline(j *Job) {
	armed := v.w.clock.timers.armed(timer{kind: timerDeadline, job: j.ID})
	v.check(armed == (!j.Deadline.IsZero() && (blocked(j) || reserved(j))), "job %d: %s, deadline watched: %t", j.ID, JobState(j), armed)
	if blocked(j) {
		v.check(j.CutTimeLimit == 0, "job %d: waits with a limit of %s", j.ID, when.Words(j.CutTimeLimit))
		v.check(j.Turn == order.NoTurn, "job %d: waits and has turn %d", j.ID, j.Turn)
	}
	if !admitted(j) || TimeLimit(j) == 0 {
		return
	}
	v.check(TimeLimit(j) >= least(j), "job %d: may run for %s, takes %s", j.ID, when.Words(TimeLimit(j)), when.Words(least(j)))
	v.check(j.Deadline.IsZero() || !begun(j).Add(TimeLimit(j)).After(j.Deadline), "job %d: may run until after its deadline", j.ID)
}

// members checks an admitted gang.
func (v *verifier) members(e *entry) {
	j := e.job
	seen := make([]int, len(j.Ranks))
	alive, open := 0, 0
	for i := range j.Members {
		m := &j.Members[i]
		for _, r := range m.Ranks {
			seen[r]++
			v.check(j.Ranks[r].Slot.Node == m.Node, "job %d rank %d: slot on %s, member on %s", j.ID, r, j.Ranks[r].Slot.Node, m.Node)
			v.check(memberFits(m.State, j.Ranks[r].State), "job %d rank %d: %s in a member that is %s", j.ID, r, j.Ranks[r].State, m.State)
		}
		h := v.w.nodes.byName[m.Node]
		p, live := h.members[j.key()]
		if m.State == MemberStopped || m.State == MemberFenced {
			v.check(!live, "job %d: %s member on %s is listed", j.ID, m.State, m.Node)
			continue
		}
		alive++
		v.check(live && p.e == e && p.i == i, "job %d: member on %s is not listed", j.ID, m.Node)
	}
	for r, n := range seen {
		v.check(n == 1, "job %d rank %d: in %d members", j.ID, r, n)
		if s := j.Ranks[r].State; hasProcess(j, r) && !j.Ranks[r].Exited && !over(s) {
			open++
		}
	}
	v.check(alive == e.alive && open == e.open, "job %d: %d alive %d open, counted %d %d", j.ID, alive, open, e.alive, e.open)
	v.check(reserved(j) || e.prepared == nil, "job %d: %s, and %d of its members count as prepared", j.ID, phrase(j), len(e.prepared))
	preparedRanks := 0
	for i := range e.prepared {
		preparedRanks += len(j.Members[i].Ranks)
	}
	v.check(preparedRanks == e.ranks, "job %d: %d of its ranks are prepared, counted %d", j.ID, preparedRanks, e.ranks)
	v.check(len(e.prepared) < len(j.Members) || slices.ContainsFunc(j.Members, v.w.nodes.isAway), "job %d: prepared, and its gate is not open",
		j.ID)
	_, held := v.w.stops.held[j.ID]
	v.check(held || alive > 0, "job %d: admitted without a member", j.ID)
	if held {
		v.check(alive == 0, "job %d: %d of its members live, and its verdict waits", j.ID, alive)
		r, ok := v.w.stops.struckDown(j)
		timers, node := &v.w.clock.timers, j.Ranks[r].Slot.Node
		v.check(ok && (timers.armed(timer{kind: timerUnsure, job: j.ID, epoch: j.Epoch}) || timers.armed(timer{kind: timerLost, node: node})),
			"job %d: its verdict waits for nothing", j.ID)
	}
}

func memberFits(m MemberState, r api.RankState) bool {
	switch m {
	case MemberPreparing:
		return r == api.RankReserved
	case MemberStarting:
		return r == api.RankRunning
	case MemberRunning:
		return r == api.RankRunning || r == api.RankDone || r == api.RankPreempted
	case MemberStopping:
		return r == api.RankPreempting || r == api.RankPreempted || r == api.RankDone || r == api.RankFailed
	}
	return r == api.RankPreempted || r == api.RankDone || r == api.RankFailed
}

func (v *verifier) node(h *host) {
	n := h.node
	held := map[api.MemberKey]bool{}
	for k, p := range h.members {
		held[k] = true
		v.check(v.w.jobs.byID[k.Job] == p.e && p.e.job.Epoch == k.Epoch, "node %s: lists epoch %d of job %d, which is at %d", n.Name, k.Epoch,
			k.Job, p.e.job.Epoch)
	}
	for _, l := range n.Left {
		v.check(!held[l.MemberKey], "node %s: job %d epoch %d is both live and left", n.Name, l.Job, l.Epoch)
		held[l.MemberKey] = true
	}
	v.check(len(held) == len(n.Res.Grants), "node %s: %d members, %d grants", n.Name, len(held), len(n.Res.Grants))
	for _, g := range n.Res.Grants {
		v.check(held[g.MemberKey], "node %s: grant of job %d epoch %d without a member", n.Name, g.Job, g.Epoch)
	}
	v.check(n.DrainUser == "" && n.DrainTime.IsZero() || n.Admin != "", "node %s: in service, drained by %s at %s", n.Name, n.DrainUser,
		when.Stamp(n.DrainTime, "-"))
	v.check(n.DrainBy.IsZero() || n.Admin != "", "node %s: in service, to be empty by %s", n.Name, when.Stamp(n.DrainBy, "-"))
	v.check(!n.Down || !n.DrainBy.IsZero(), "node %s: down, and nothing says since when", n.Name)
	v.check(!Rebooting(n) || len(n.Res.Grants) == 0 && !n.Res.Ready, "node %s: told to reboot with %d grants, ready %t",
		n.Name, len(n.Res.Grants), n.Res.Ready)
	v.check(n.Reboot == nil || n.Reboot.Boot == n.BootID, "node %s: to be rebooted from another boot than it is in", n.Name)
	v.check(!v.w.clock.timers.armed(rebootTimer(h)) || Rebooting(n), "node %s: a reboot is waited for, and none was ordered", n.Name)
	for _, p := range h.members {
		armed := v.w.clock.timers.armed(timer{kind: timerClear, node: n.Name})
		v.check(n.DrainBy.IsZero() || armed || p.e.job.Drain != nil, "node %s: to be empty, and nobody will tell job %d", n.Name, p.e.job.ID)
	}
	v.check(n.Res.Ready == (n.State == api.NodeUp), "node %s: %s, ready %t", n.Name, n.State, n.Res.Ready)
	v.ports(h)
	v.check(n.Connected || n.State == api.NodeLost || n.State == api.NodeSuspect || n.State == api.NodeUnknown ||
		n.State == api.NodeRebooting,
		"node %s: %s without a session", n.Name, n.State)
}

// holdings recounts what users hold.
func (v *verifier) holdings() {
	again := New(api.Settings{})
	for _, e := range v.w.jobs.byID {
		k := e.job.specKey()
		if again.specs.byKey[k] == nil {
			again.specs.byKey[k] = &sharedSpec{}
		}
		again.specs.byKey[k].jobs++
		if e.job.Verdict == nil {
			again.site.holdings.count(e.job)
		}
	}
	for k, s := range v.w.specs.byKey {
		is := again.specs.byKey[k]
		v.check(is != nil && is.jobs == s.jobs && is.live == s.live, "jobs with the spec of %v: %+v, counted %+v", k, is, s)
	}
	v.check(len(again.specs.byKey) == len(v.w.specs.byKey), "%d specs, counted %d", len(again.specs.byKey), len(v.w.specs.byKey))
	v.check(again.site.holdings.live == v.w.site.holdings.live, "%d jobs have not ended, counted %d", again.site.holdings.live,
		v.w.site.holdings.live)
	for uid, h := range v.w.site.holdings.byUser {
		is := again.site.holdings.byUser[uid]
		v.check(is != nil && is.jobs == h.jobs && is.bytes == h.bytes, "user %d holds %+v, counted %+v", uid, is, h)
	}
	v.check(len(again.site.holdings.byUser) == len(v.w.site.holdings.byUser), "%d users hold jobs, counted %d",
		len(again.site.holdings.byUser), len(v.w.site.holdings.byUser))
}

func (v *verifier) arrays() {
	type counts struct{ active, offered, live, waiting, begun, over, bad int }
	real := map[int64]counts{}
	for _, e := range v.w.jobs.byID {
		c := real[e.job.ArrayID]
		c.live++
		if admitted(e.job) {
			c.active++
		}
		if e.offered {
			c.offered++
		}
		if e.job.Verdict == nil {
			c.waiting++
		}
		t := array{}
		t.tally(e.job, 1)
		c.begun, c.over, c.bad = c.begun+t.begun, c.over+t.over, c.bad+t.bad
		real[e.job.ArrayID] = c
	}
	for _, id := range slices.Sorted(maps.Keys(v.w.queue.arrays)) {
		a := v.w.queue.arrays[id]
		got := counts{a.active, a.offered, a.live, len(a.waiting), a.begun, a.over, a.bad}
		v.check(got == real[id], "array %d: is %+v, counted %+v", id, real[id], got)
		v.check(a.limit == 0 || a.active <= max(a.limit, a.above), "array %d: %d admitted, limit %d", id, a.active, a.limit)
	}
}

// dependencies recounts who waits for whom, and that nobody waits for what is met.
func (v *verifier) dependencies() {
	watched := map[int64]int{}
	for _, id := range slices.Sorted(maps.Keys(v.w.jobs.byID)) {
		e := v.w.jobs.byID[id]
		j := e.job
		v.check(j.Waits == "" || blocked(j) || j.Verdict != nil, "job %d: admitted, and waits for %s", id, j.Waits)
		v.check(e.waiting == (j.Waits != "" && j.Verdict == nil), "job %d: waits for %q, watching: %t", id, j.Waits, e.waiting)
		if !e.waiting {
			continue
		}
		fulfilled, d := 0, j.Dependency
		targets := map[int64]bool{}
		for i := range d.On {
			c := &d.On[i]
			if c.Kind != api.AfterSingle {
				t, _ := v.w.deps.target(j, c)
				targets[t] = true
			}
			if c.Delay == 0 && v.w.deps.stand(j, c) == met {
				fulfilled++
			}
		}
		for t := range targets {
			watched[t]++
			_, listed := v.w.deps.on[t][id]
			v.check(listed, "job %d: waits for %d, which does not know", id, t)
		}
		v.check(fulfilled < len(d.On) && !(d.Any && fulfilled > 0), "job %d: waits for %s, all of which is met", id, j.Waits)
	}
	for _, t := range slices.Sorted(maps.Keys(v.w.deps.on)) {
		v.check(len(v.w.deps.on[t]) == watched[t], "job %d: %d wait for it, listed %d", t, watched[t], len(v.w.deps.on[t]))
	}
}

// ports checks that none is given out twice on a node.
func (v *verifier) ports(h *host) {
	times := map[int]int{}
	h.eachPort(func(port int) { times[port]++ })
	for port, n := range times {
		v.check(n == 1, "node %s: port %d is given out %d times", h.node.Name, port, n)
	}
}

// crontabs: each job that comes again is of one line, and each line has one.
func (v *verifier) crontabs() {
	of := map[int64]string{}
	for _, user := range slices.Sorted(maps.Keys(v.w.site.crontabs.byUser)) {
		for _, l := range v.w.site.crontabs.byUser[user].Lines {
			e := v.w.jobs.byID[l.JobID]
			v.check(e != nil && Recurs(e.job) && e.job.User == user && of[l.JobID] == "",
				"the cron table of %s has job %d, which is not its own, or does not come again", user, l.JobID)
			of[l.JobID] = user
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.w.jobs.byID)) {
		j := v.w.jobs.byID[id].job
		v.check(!Recurs(j) || of[id] != "", "job %d comes again, and is of no cron table", id)
	}
}
