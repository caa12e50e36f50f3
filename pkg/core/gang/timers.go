package gang

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// maxFire bounds the timers of one Tick: a thousand gangs that time out together are
// several steps, between which the engine commits and answers others.
const maxFire = 256

type timerKind uint8

const (
	timerStart       timerKind = iota // a reserved gang must be ready
	timerLaunch                       // a started gang must be seen running
	timerForce                        // a draining gang must have stopped
	timerEligible                     // begin time or back-off passes
	timerLeave                        // the next of those that have ended leaves memory
	timerLost                         // a silent node is lost
	timerReady                        // a started gang must be ready
	timerLease                        // a member on a lost node has fenced itself
	timerWatch                        // a watchdog's question was not answered, or it may ask again
	timerDepend                       // a delay after the start of another job passes
	timerClear                        // a gang on a node that is to be empty has to be told
	timerReservation                  // one begins or ends; node is its name
	timerDeadline                     // a gang that starts later could not end by its deadline
	timerNotify                       // a part of its time limit, of which somebody wants to hear, is over
	timerBook                         // what a gang has used goes into the ledger
	timerReboot                       // a node that was told to reboot must be back
	timerUnsure                       // a node is in contact long enough after an end that looked like that of its machine
)

// timer names one timer; setting it again moves it.
type timer struct {
	kind  timerKind
	job   int64
	epoch int
	node  string
}

type timerItem struct {
	at time.Duration
	timer
}

// timers is a heap in which moved and cancelled timers stay until they come up: due says
// which items count.
type timers struct {
	heap timerHeap
	due  map[timer]time.Duration
}

func (t *timers) set(k timer, at time.Duration) {
	t.due[k] = at
	heap.Push(&t.heap, timerItem{at, k})
	if len(t.heap) > 2*len(t.due)+64 {
		t.compact()
	}
}

func (t *timers) cancel(k timer) { delete(t.due, k) }

func (t *timers) armed(k timer) bool {
	_, ok := t.due[k]
	return ok
}

// compact drops what does not count any more, so that the heap stays within twice of what does.
func (t *timers) compact() {
	t.heap = t.heap[:0]
	for k, at := range t.due {
		t.heap = append(t.heap, timerItem{at, k})
	}
	heap.Init(&t.heap) // Less is a total order: what the map's order was does not show
}

// delay moves all timers of these kinds.
func (t *timers) delay(d time.Duration, kinds ...timerKind) {
	for k, at := range t.due {
		if slices.Contains(kinds, k.kind) {
			t.due[k] = at + d
		}
	}
	t.compact()
}

func (t *timers) next() (time.Duration, bool) {
	for len(t.heap) > 0 {
		top := t.heap[0]
		if at, ok := t.due[top.timer]; ok && at == top.at {
			return at, true
		}
		heap.Pop(&t.heap)
	}
	return 0, false
}

// pop takes the next timer that is due at now.
func (t *timers) pop(now time.Duration) (timer, bool) {
	at, ok := t.next()
	if !ok || at > now {
		return timer{}, false
	}
	k := heap.Pop(&t.heap).(timerItem).timer
	delete(t.due, k)
	return k, true
}

type timerHeap []timerItem

func (h timerHeap) Len() int      { return len(h) }
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h timerHeap) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.job, b.job),
		cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.node, b.node)) < 0
}
func (h *timerHeap) Push(x any) { *h = append(*h, x.(timerItem)) }
func (h *timerHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// clock is the moment of the step, and what becomes due.
type clock struct {
	now    Instant
	timers timers
}

// in arms a timer after d.
func (c *clock) in(d time.Duration, k timer) { c.timers.set(k, c.now.Mono+max(d, 0)) }
