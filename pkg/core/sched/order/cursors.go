package order

import (
	"container/heap"
	"slices"
)

// Cursor is the first candidate of a job class that was not visited yet.
type Cursor struct {
	Candidate *Candidate
	Class     *JobClass
	at        int
}

// Cursors gives the job classes of a queue in the order of their first candidates. Of most classes nobody but
// the first is visited, and by those the queue has them in order already: only the others are
// a heap.
type Cursors struct {
	rest   []*JobClass // as the queue has them; it is not written to
	others cursorHeap
	ahead  int // so many of the rest come before the first of the others; -1: not known
}

// Fill begins with the queue as it is.
func (h *Cursors) Fill(q *Queue) {
	h.rest, h.others, h.ahead = q.firsts, h.others[:0], len(q.firsts)
}

// First is the next to be visited; false: none is.
func (h *Cursors) First() (Cursor, bool) {
	if h.fromRest() {
		return Cursor{h.rest[0].order[0], h.rest[0], 0}, true
	}
	if len(h.others) == 0 {
		return Cursor{}, false
	}
	return h.others[0], true
}

func (h *Cursors) fromRest() bool {
	if h.ahead < 0 {
		if h.ahead = len(h.rest); len(h.others) > 0 {
			h.ahead, _ = slices.BinarySearchFunc(h.rest, h.others[0].Candidate, compareFirst)
		}
	}
	return h.ahead > 0
}

// Pass puts the second of the first class in place of its first.
func (h *Cursors) Pass() {
	if !h.fromRest() {
		h.ahead = -1
		top := &h.others[0]
		if top.at++; top.at == len(top.Class.order) {
			heap.Pop(&h.others)
			return
		}
		top.Candidate = top.Class.order[top.at]
		heap.Fix(&h.others, 0)
		return
	}
	cl := h.rest[0]
	h.rest, h.ahead = h.rest[1:], h.ahead-1
	if len(cl.order) > 1 {
		h.ahead = -1
		heap.Push(&h.others, Cursor{cl.order[1], cl, 1})
	}
}

// Drop leaves the rest of the first class out.
func (h *Cursors) Drop() {
	if h.fromRest() {
		h.rest, h.ahead = h.rest[1:], h.ahead-1
	} else {
		h.ahead = -1
		heap.Pop(&h.others)
	}
}

// cursorHeap is a heap, by the order of the queue.
type cursorHeap []Cursor

func (h cursorHeap) Len() int           { return len(h) }
func (h cursorHeap) Less(i, j int) bool { return Compare(h[i].Candidate, h[j].Candidate) < 0 }
func (h cursorHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *cursorHeap) Push(x any)        { *h = append(*h, x.(Cursor)) }
func (h *cursorHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
