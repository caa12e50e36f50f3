package sched

import "container/heap"

// head is the first candidate of a class that was not visited yet.
type head struct {
	c     *Candidate
	class *Class
	at    int
}

// heads gives the classes of a queue in the order of their heads. Of most classes nobody but
// the first is visited, and by those the queue has them in order already: only the others are
// a heap.
type heads struct {
	rest []*Class // as the queue has them; it is not written to
	more moreHeads
}

func (h *heads) fill(q *Queue) { h.rest, h.more = q.firsts, h.more[:0] }

// first is the next to be visited; false: none is.
func (h *heads) first() (head, bool) {
	if h.fromRest() {
		return head{h.rest[0].order[0], h.rest[0], 0}, true
	}
	if len(h.more) == 0 {
		return head{}, false
	}
	return h.more[0], true
}

func (h *heads) fromRest() bool {
	return len(h.rest) > 0 && (len(h.more) == 0 || compare(h.rest[0].order[0], h.more[0].c) < 0)
}

// pass puts the second of the first class in place of its first.
func (h *heads) pass() {
	if !h.fromRest() {
		top := &h.more[0]
		if top.at++; top.at == len(top.class.order) {
			heap.Pop(&h.more)
			return
		}
		top.c = top.class.order[top.at]
		heap.Fix(&h.more, 0)
		return
	}
	cl := h.rest[0]
	if h.rest = h.rest[1:]; len(cl.order) > 1 {
		heap.Push(&h.more, head{cl.order[1], cl, 1})
	}
}

// drop leaves the rest of the first class out.
func (h *heads) drop() {
	if h.fromRest() {
		h.rest = h.rest[1:]
	} else {
		heap.Pop(&h.more)
	}
}

// moreHeads is a heap, by the order of the queue.
type moreHeads []head

func (h moreHeads) Len() int           { return len(h) }
func (h moreHeads) Less(i, j int) bool { return compare(h[i].c, h[j].c) < 0 }
func (h moreHeads) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *moreHeads) Push(x any)        { *h = append(*h, x.(head)) }
func (h *moreHeads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
