package sim

import (
	"container/heap"
	"time"
)

// loop is the virtual clock and the queue of what is to happen. Events at the same instant
// happen in the order in which they were planned.
type loop struct {
	now  time.Duration
	seq  uint64
	heap events
	hash uint64
	done int // events that happened
}

type planned struct {
	at  time.Duration
	seq uint64
	fn  func()
}

type events []planned

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(planned)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	old[len(old)-1] = planned{}
	*e = old[:len(old)-1]
	return x
}

// fnv are the constants of the 64 bit FNV-1a hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// mix puts what happened into the hash of the run.
func (l *loop) mix(x uint64) {
	for range 8 {
		l.hash = (l.hash ^ x&0xff) * fnvPrime
		x >>= 8
	}
}

func (l *loop) mixText(s string) {
	for i := range len(s) {
		l.hash = (l.hash ^ uint64(s[i])) * fnvPrime
	}
}

func (l *loop) after(d time.Duration, fn func()) {
	l.seq++
	heap.Push(&l.heap, planned{l.now + max(d, 0), l.seq, fn})
}

// next does the next event, false when there is none.
func (l *loop) next() bool {
	if len(l.heap) == 0 {
		return false
	}
	p := heap.Pop(&l.heap).(planned)
	l.now = p.at
	l.done++
	l.mix(uint64(p.at))
	l.mix(p.seq)
	p.fn()
	return true
}

// owner is whoever events belong to: a process, or a machine as the parent of its
// processes. The events of one that is gone do not happen; those of one that stands still
// happen when it goes on, in the order in which they were due.
type owner struct {
	l      *loop
	parent *owner
	dead   bool
	stops  int
	held   []func()
}

func (o *owner) gone() bool   { return o.dead || o.parent != nil && o.parent.gone() }
func (o *owner) frozen() bool { return o.stops > 0 || o.parent != nil && o.parent.frozen() }

func (o *owner) after(d time.Duration, fn func()) { o.l.after(d, func() { o.do(fn) }) }

// do does something that has come to the owner.
func (o *owner) do(fn func()) {
	switch {
	case o.gone():
	case o.frozen():
		o.held = append(o.held, fn)
	default:
		fn()
	}
}

// wake does what was held back, unless something still stops it.
func (o *owner) wake() {
	for len(o.held) > 0 && !o.frozen() && !o.gone() {
		fn := o.held[0]
		o.held = o.held[1:]
		fn()
	}
}
