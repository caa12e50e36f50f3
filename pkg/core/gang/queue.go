package gang

import (
	"slices"

	"gangd/pkg/api"
)

// Who holds a job, see [Job.Held].
const (
	HeldUser    = "user"
	HeldAdmin   = "admin"
	HeldSpecial = "special" // its owner's, who wants to look at something first
)

// blocked: every rank waits for admission. By all-or-nothing one rank speaks for all.
func blocked(j *Job) bool { return j.Verdict == nil && j.Ranks[0].State == api.RankBlocked }

// admitted: the gang has nodes.
func admitted(j *Job) bool { return j.Verdict == nil && !blocked(j) }

// reserved: the gang has nodes and no process yet.
func reserved(j *Job) bool { return j.Verdict == nil && j.Ranks[0].State == api.RankReserved }

// eligible: nothing but room keeps the gang from being admitted. A begin time or back-off
// that has not passed is an armed timer, so that this needs no clock.
func (w *World) eligible(e *entry) bool {
	j := e.job
	return blocked(j) && j.Held == "" && j.Waits == "" && !j.Cancelled && e.left == 0 && w.inReservation(j) && e.asked.open() &&
		!w.timers.armed(timer{kind: timerEligible, job: j.ID})
}

// inTurn: the array that the job is of, if any, lets it be admitted next.
func (w *World) inTurn(e *entry) bool {
	a := w.arrays[e.job.ArrayID]
	return a == nil || a.limit == 0 || e.offered
}

// touch says that the candidacy of a job may have changed.
func (w *World) touch(e *entry) {
	w.queue = append(w.queue, e.job.ID)
	a := w.arrays[e.job.ArrayID]
	if a == nil || a.limit == 0 {
		return
	}
	if e.offered && !w.eligible(e) {
		w.withdraw(a, e)
	}
	for _, e := range w.offer(a) {
		w.eligibleNow(e)
	}
}

// offer fills the free places of a limited array with its first eligible elements: the
// scheduler sees as many of 10,000 as could start, and an event touches only those. It gives
// back the elements that were not offered before.
func (w *World) offer(a *array) (fresh []*entry) {
	limit := a.limit
	for i := 0; a.active+a.offered < limit && i < len(a.waiting); i++ {
		e := w.jobs[a.waiting[i]]
		if e.offered || !w.eligible(e) {
			continue
		}
		e.offered = true
		a.offered++
		w.queue = append(w.queue, e.job.ID)
		fresh = append(fresh, e)
	}
	return fresh
}

// eligibleNow notes that nothing but room keeps a job from now on. What kept it before, its
// owner's hold, others or the limit of its array, is no wait for room. One that has nodes
// already, released in time, was not kept.
func (w *World) eligibleNow(e *entry) {
	if blocked(e.job) && e.job.Eligible.Before(w.now.Wall) {
		w.edit(e).Eligible = w.now.Wall
	}
}

func (w *World) withdraw(a *array, e *entry) {
	e.offered = false
	a.offered--
}

// countActive keeps the array's count when an element gets or loses its nodes, before
// touch.
func (w *World) countActive(e *entry, d int) {
	w.countPools(e.job, d)
	a := w.arrays[e.job.ArrayID]
	if a == nil {
		return
	}
	if e.offered {
		w.withdraw(a, e)
	}
	a.active += d
	a.above = min(a.above, a.active)
}

func (w *World) becomeEligible(e *entry) {
	if e == nil || e.job.Verdict != nil {
		return
	}
	// A begin time is a wall time: when that clock was set back meanwhile, wait on.
	if d := e.job.Eligible.Sub(w.now.Wall); d > 0 && begins(e.job) {
		w.in(d, timer{kind: timerEligible, job: e.job.ID})
		return
	}
	w.touch(e)
}

// unlist takes an ended element out of its array's waiting ones.
func (w *World) unlist(j *Job) {
	a := w.arrays[j.ArrayID]
	if a == nil {
		return
	}
	if at, ok := slices.BinarySearch(a.waiting, j.ID); ok {
		a.waiting = slices.Delete(a.waiting, at, at+1)
	}
}
