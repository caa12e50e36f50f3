package sched

import (
	"cmp"
	"slices"
)

// Less orders waiting gangs: priority, then the larger gang, then the earlier
// submission, then the smaller id. It is a total order, the same after a restart.
func Less(a, b *Candidate) bool { return compare(a, b) < 0 }

func compare(a, b *Candidate) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if c := cmp.Compare(b.Size, a.Size); c != 0 {
		return c
	}
	if c := a.Submit.Compare(b.Submit); c != 0 {
		return c
	}
	return cmp.Compare(a.Job, b.Job)
}

// Queue keeps candidates in the order of [Less]. A change costs one binary search and
// one memmove: 100,000 pointers are 800 KB, moved in about 20 us, and the order is one
// slice that a [View] can be given as it is. It is not safe for concurrent use.
type Queue struct {
	order []*Candidate
	byJob map[int64]*Candidate
}

// Len is how many candidates wait.
func (q *Queue) Len() int { return len(q.order) }

// Get is the candidate of a job, nil when it does not wait.
func (q *Queue) Get(job int64) *Candidate { return q.byJob[job] }

// Insert adds a candidate, or replaces the one of the same job.
func (q *Queue) Insert(c *Candidate) {
	if old := q.byJob[c.Job]; old != nil {
		q.Update(c)
		return
	}
	if q.byJob == nil {
		q.byJob = make(map[int64]*Candidate)
	}
	at, _ := slices.BinarySearchFunc(q.order, c, compare)
	q.order = slices.Insert(q.order, at, c)
	q.byJob[c.Job] = c
}

// Remove takes the candidate of a job out and reports whether there was one.
func (q *Queue) Remove(job int64) bool {
	old := q.byJob[job]
	if old == nil {
		return false
	}
	at, _ := slices.BinarySearchFunc(q.order, old, compare)
	q.order = slices.Delete(q.order, at, at+1)
	delete(q.byJob, job)
	return true
}

// Update puts c in the place of the candidate of the same job, or inserts it.
func (q *Queue) Update(c *Candidate) {
	old := q.byJob[c.Job]
	if old != nil && compare(old, c) == 0 {
		at, _ := slices.BinarySearchFunc(q.order, old, compare)
		q.order[at] = c
		q.byJob[c.Job] = c
		return
	}
	q.Remove(c.Job)
	q.Insert(c)
}

// Slice is the queue in order, for a [View]. It must not be written to and is good until
// the next change; who keeps it longer copies it. Copying here, at each plan, would cost
// more than the plan when a hundred thousand wait and one ends.
func (q *Queue) Slice() []*Candidate { return q.order }
