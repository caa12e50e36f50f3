package gang

import (
	"slices"
	"time"

	"gangd/pkg/api"
)

// Who holds a job, see [Job.Held].
const (
	HeldUser    = "user"
	HeldAdmin   = "admin"
	HeldSpecial = "special" // its owner's, who wants to look at something first
)

// queue is who may be admitted next: what keeps a job from it, and whose turn in an array it is.
type queue struct {
	clock        *clock
	jobs         *jobs
	reservations *reservations
	pools        *pools

	arrays map[int64]*array
}

// eligible: nothing but room keeps the gang from being admitted. A begin time or back-off
// that has not passed is an armed timer, so that this needs no clock.
func (q *queue) eligible(e *entry) bool {
	j := e.job
	return blocked(j) && j.Held == "" && j.Waits == "" && !j.Cancelled && e.left == 0 && q.reservations.lets(j) && e.asked.open() &&
		!q.clock.timers.armed(timer{kind: timerEligible, job: j.ID})
}

// inTurn: the array that the job is of, if any, lets it be admitted next.
func (q *queue) inTurn(e *entry) bool {
	a := q.arrays[e.job.ArrayID]
	return a == nil || a.limit == 0 || e.offered
}

// touch says that the candidacy of a job may have changed.
func (q *queue) touch(e *entry) {
	q.jobs.changed(e)
	a := q.arrays[e.job.ArrayID]
	if a == nil || a.limit == 0 {
		return
	}
	if e.offered && !q.eligible(e) {
		q.withdraw(a, e)
	}
	for _, e := range q.offer(a) {
		q.eligibleNow(e)
	}
}

// offer fills the free places of a limited array with its first eligible elements: the
// scheduler sees as many of 10,000 as could start, and an event touches only those. It gives
// back the elements that were not offered before.
func (q *queue) offer(a *array) (fresh []*entry) {
	limit := a.limit
	for i := 0; a.active+a.offered < limit && i < len(a.waiting); i++ {
		e := q.jobs.byID[a.waiting[i]]
		if e.offered || !q.eligible(e) {
			continue
		}
		e.offered = true
		a.offered++
		q.jobs.changed(e)
		fresh = append(fresh, e)
	}
	return fresh
}

// eligibleNow notes that nothing but room keeps a job from now on. What kept it before, its
// owner's hold, others or the limit of its array, is no wait for room. One that has nodes
// already, released in time, was not kept.
func (q *queue) eligibleNow(e *entry) {
	if blocked(e.job) && e.job.Eligible.Before(q.clock.now.Wall) {
		q.jobs.edit(e).Eligible = q.clock.now.Wall
	}
}

func (q *queue) withdraw(a *array, e *entry) {
	e.offered = false
	a.offered--
}

// countActive keeps the array's count when an element gets or loses its nodes, before
// touch.
func (q *queue) countActive(e *entry, d int) {
	q.pools.count(e.job, d)
	a := q.arrays[e.job.ArrayID]
	if a == nil {
		return
	}
	if e.offered {
		q.withdraw(a, e)
	}
	a.active += d
	a.above = min(a.above, a.active)
}

func (q *queue) becomeEligible(e *entry) {
	if e == nil || e.job.Verdict != nil {
		return
	}
	// A begin time is a wall time: when that clock was set back meanwhile, wait on.
	if d := e.job.Eligible.Sub(q.clock.now.Wall); d > 0 && begins(e.job) {
		q.clock.in(d, timer{kind: timerEligible, job: e.job.ID})
		return
	}
	q.touch(e)
}

// unlist takes an ended element out of its array's waiting ones.
func (q *queue) unlist(j *Job) {
	a := q.arrays[j.ArrayID]
	if a == nil {
		return
	}
	if at, ok := slices.BinarySearch(a.waiting, j.ID); ok {
		a.waiting = slices.Delete(a.waiting, at, at+1)
	}
}

// array is what the elements of one array have to know of each other.
type array struct {
	limit   int
	waiting []int64   // elements that have not ended, by id
	active  int       // elements that are admitted
	above   int       // so many were admitted when a person lowered the limit below that; fewer as they end
	offered int       // elements that may be admitted next
	live    int       // elements in memory
	begun   int       // elements in memory that have begun, or will not
	start   time.Time // the latest at which one began
	over    int       // elements in memory that have ended
	bad     int       // those of them that did not complete
	due     bool      // the first element's time in memory is over; it stays while others do, with their key
}

// enlist counts an element into its array.
func (q *queue) enlist(e *entry) {
	j := e.job
	if j.ArrayID == 0 {
		return
	}
	a := q.arrays[j.ArrayID]
	if a == nil {
		a = &array{}
		q.arrays[j.ArrayID] = a
	}
	a.live++
	a.tally(j, 1)
	if j.Verdict != nil {
		return
	}
	if j.Array != nil { // an ended element has the limit of its time
		a.limit = j.Array.Limit
	}
	at, _ := slices.BinarySearch(a.waiting, j.ID)
	a.waiting = slices.Insert(a.waiting, at, j.ID)
	if admitted(j) {
		if a.active++; a.active > a.limit {
			a.above = a.active
		}
	}
}

// tally counts an element, or (by -1) counts it out.
func (a *array) tally(j *Job, by int) {
	if j.Verdict != nil || everStarted(j) {
		a.begun += by
	}
	// One that begins again does so later: the latest start never goes back.
	if j.Presumed == nil && j.Start.After(a.start) {
		a.start = j.Start
	}
	if j.Verdict != nil {
		a.over += by
		if j.Verdict.State != api.JobCompleted {
			a.bad += by
		}
	}
}

// retally keeps the count over a change of the job.
func (q *queue) retally(j *Job, change func()) {
	a := q.arrays[j.ArrayID]
	if a == nil {
		change()
		return
	}
	a.tally(j, -1)
	change()
	a.tally(j, 1)
}

func arrayCount(j *Job) int {
	if j.Array == nil {
		return 1
	}
	return j.Array.Count
}
