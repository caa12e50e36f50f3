package sched

import (
	"container/heap"
	"slices"
)

// classCursor is the first candidate of a job class that was not visited yet.
type classCursor struct {
	c     *Candidate
	class *JobClass
	at    int
}

// classCursors gives the job classes of a queue in the order of their first candidates. Of most classes nobody but
// the first is visited, and by those the queue has them in order already: only the others are
// a heap.
type classCursors struct {
	rest   []*JobClass // as the queue has them; it is not written to
	others cursorHeap
	ahead  int // so many of the rest come before the first of the others; -1: not known
}

func (h *classCursors) fill(q *Queue) {
	h.rest, h.others, h.ahead = q.firsts, h.others[:0], len(q.firsts)
}

// first is the next to be visited; false: none is.
func (h *classCursors) first() (classCursor, bool) {
	if h.fromRest() {
		return classCursor{h.rest[0].order[0], h.rest[0], 0}, true
	}
	if len(h.others) == 0 {
		return classCursor{}, false
	}
	return h.others[0], true
}

func (h *classCursors) fromRest() bool {
	if h.ahead < 0 {
		if h.ahead = len(h.rest); len(h.others) > 0 {
			h.ahead, _ = slices.BinarySearchFunc(h.rest, h.others[0].c, compareFirst)
		}
	}
	return h.ahead > 0
}

// pass puts the second of the first class in place of its first.
func (h *classCursors) pass() {
	if !h.fromRest() {
		h.ahead = -1
		top := &h.others[0]
		if top.at++; top.at == len(top.class.order) {
			heap.Pop(&h.others)
			return
		}
		top.c = top.class.order[top.at]
		heap.Fix(&h.others, 0)
		return
	}
	cl := h.rest[0]
	h.rest, h.ahead = h.rest[1:], h.ahead-1
	if len(cl.order) > 1 {
		h.ahead = -1
		heap.Push(&h.others, classCursor{cl.order[1], cl, 1})
	}
}

// drop leaves the rest of the first class out.
func (h *classCursors) drop() {
	if h.fromRest() {
		h.rest, h.ahead = h.rest[1:], h.ahead-1
	} else {
		h.ahead = -1
		heap.Pop(&h.others)
	}
}

// cursorHeap is a heap, by the order of the queue.
type cursorHeap []classCursor

func (h cursorHeap) Len() int           { return len(h) }
func (h cursorHeap) Less(i, j int) bool { return compare(h[i].c, h[j].c) < 0 }
func (h cursorHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *cursorHeap) Push(x any)        { *h = append(*h, x.(classCursor)) }
func (h *cursorHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
