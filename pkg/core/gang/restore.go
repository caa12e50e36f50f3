package gang

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"gangd/pkg/api"
)

// Restore is the world after a restart. Every node is unknown until it says hello (a lost
// one stays lost), and timers run on with what was left of them by the wall clock. Four
// are armed in full, because while no controller ran nobody could be late: the silence of
// nodes, the launch of gangs and their readiness, and the leases (a node that finds no controller at its
// address renews them).
func Restore(now Instant, s api.Settings, saved *Snapshot) *World {
	w := New(s)
	w.clock.now = now
	w.jobs.nextID, w.record.nextSeq = max(saved.NextID, 1), max(saved.NextSeq, 1)
	for _, n := range saved.Nodes {
		w.fleet.restoreNode(n)
	}
	jobs := slices.Clone(saved.Jobs)
	slices.SortFunc(jobs, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	for _, j := range jobs {
		w.memory.bring(j)
	}
	for _, key := range slices.Sorted(maps.Keys(saved.Keys)) {
		if first := saved.Keys[key]; w.jobs.byID[first] == nil {
			w.memory.keepKey(key, first)
		}
	}
	for _, r := range saved.Reservations {
		w.site.reservations.put(&reservation{r: r, active: !r.Start.After(now.Wall)})
	}
	clear(w.site.reservations.dirty)
	for _, c := range saved.Partitions {
		w.site.partitions.changes[c.Name] = c
	}
	for _, t := range saved.Crontabs {
		w.site.crontabs.byUser[t.User] = t
	}
	w.record.outbox.restore(saved.Letters)
	for _, h := range w.nodes.byName {
		w.fleet.restoreGrants(h)
	}
	for _, e := range w.jobs.byID {
		w.rearm(e)
	}
	slices.SortFunc(w.memory.leaving, func(a, b leaver) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job)) })
	w.memory.arm()
	for _, j := range jobs {
		w.deps.watch(w.jobs.byID[j.ID])
	}
	for _, a := range w.queue.arrays {
		if a.limit > 0 {
			w.queue.offer(a) // again: a restart is not when they could first start
		}
	}
	// All of it is as it was stored: nodes are told when they come, and who plans begins with every job.
	w.jobs.touched, w.nodes.woken = slices.Collect(maps.Keys(w.jobs.byID)), nil
	return w
}

// rearm sets the timers of a job.
func (w *World) rearm(e *entry) {
	j := e.job
	w.launches.armDeadline(e)
	w.record.armPart(e)
	if running(j) {
		began := j.Start
		if b := j.Booking; b != nil && b.Epoch == j.Epoch {
			began = b.Until
		}
		w.clock.remaining(began, bookEvery, bookTimer(j))
	}
	switch {
	case j.Verdict != nil:
		w.memory.leaveIn(e, min(w.set.KeepEnded-w.clock.now.Wall.Sub(j.End), w.set.KeepEnded))
	case j.Drain != nil:
		// How long it has lasted only the wall clock knows, which may have jumped.
		e.drainAt = w.clock.now.Mono - min(max(w.clock.now.Wall.Sub(j.Drain.Started), 0), drainTime(&w.set, j))
		w.stops.armForce(e)
		if e.alive == 0 {
			w.stops.held[j.ID] = e
		}
	case reserved(j):
		if slices.ContainsFunc(j.Members, func(m Member) bool { return m.Importing != api.Import{} }) {
			w.launches.extendStart(j)
		} else {
			w.clock.remaining(j.ReservedAt, w.set.StartTimeout, timer{kind: timerStart, job: j.ID, epoch: j.Epoch})
		}
	case admitted(j):
		w.launches.armReady(j)
		starting := func(m Member) bool { return m.State == MemberStarting }
		if slices.ContainsFunc(j.Members, starting) {
			w.clock.in(w.set.StartTimeout, timer{kind: timerLaunch, job: j.ID, epoch: j.Epoch})
		}
	case begins(j):
		if d := j.Eligible.Sub(w.clock.now.Wall); d > 0 {
			w.clock.in(d, timer{kind: timerEligible, job: j.ID})
		}
	case j.BackoffUntil.After(w.clock.now.Wall):
		d := min(j.BackoffUntil.Sub(w.clock.now.Wall), w.set.RetryBackoffMax)
		w.clock.in(d, timer{kind: timerEligible, job: j.ID})
	}
}

// remaining arms what is left of a duration that began at a wall time: within [0, full]
// whatever that clock did.
func (c *clock) remaining(began time.Time, full time.Duration, k timer) {
	c.in(min(full-c.now.Wall.Sub(began), full), k)
}
