package session

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime is CLOCK_BOOTTIME: it runs on while the machine sleeps, so that a lease that ran
// out during a suspend has run out, and no jump of the wall clock moves it.
func BootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // Linux has it since 2.6.39
	}
	return time.Duration(ts.Nano())
}

// contact remembers when the controller was last known to hear this node.
type contact struct {
	clock     func() time.Duration // nil: BootTime
	connected atomic.Bool
	last      atomic.Int64

	mu    sync.Mutex
	beats uint64                   // number of the last beat
	sent  map[uint64]time.Duration // beats under way, by number
}

func (c *contact) now() time.Duration {
	if c.clock == nil {
		return BootTime()
	}
	return c.clock()
}

// maxBeats bounds the beats under way: more than SilentBeats never are for long.
const maxBeats = 16

// beat gives the number of a beat that is about to be sent.
func (c *contact) beat() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent == nil || len(c.sent) >= maxBeats {
		c.sent = map[uint64]time.Duration{}
	}
	c.beats++
	c.sent[c.beats] = c.now()
	return c.beats
}

// echo counts the contact from when the beat was sent: the controller counts its patience
// from a time after that, so the node's lease always ends first.
func (c *contact) echo(n uint64) {
	c.mu.Lock()
	at, ok := c.sent[n]
	delete(c.sent, n)
	c.mu.Unlock()
	if ok {
		c.at(at)
	}
}

func (c *contact) at(t time.Duration) {
	for {
		old := c.last.Load()
		if int64(t) <= old || c.last.CompareAndSwap(old, int64(t)) {
			return
		}
	}
}
