package session

import "sync"

// writer runs what writes to a line only while there is something to write: a goroutine that waits for that
// would keep its stack, on each of ten thousand lines.
type writer struct {
	write func() error // writes all that is due; after an error it is not called again

	mu           sync.Mutex
	open, closed bool
	busy         bool
	again        bool          // more came since a busy one looked
	over         chan struct{} // closed when the last write is over; nil: nobody waits
}

// begin writes what is due for the first time.
func (w *writer) begin() {
	w.mu.Lock()
	w.open = true
	w.mu.Unlock()
	w.poke()
}

// poke has what is due written. It never blocks.
func (w *writer) poke() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.open || w.closed: // the first write finds it, or nobody does
	case w.busy:
		w.again = true
	default:
		w.busy = true
		go w.run()
	}
}

func (w *writer) run() {
	for more := true; more; {
		err := w.write()
		w.mu.Lock()
		w.closed = w.closed || err != nil
		more = w.again && !w.closed
		w.again, w.busy = false, more
		if !more && w.over != nil {
			close(w.over)
		}
		w.mu.Unlock()
	}
}

// end keeps anything more from being written, and waits for the write that is under way.
func (w *writer) end() {
	w.mu.Lock()
	w.closed = true
	if w.busy {
		w.over = make(chan struct{})
	}
	over := w.over
	w.mu.Unlock()
	if over != nil {
		<-over
	}
}
