package noded

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/watchdog"
	"gangd/pkg/node/proc"
)

// sight is how the watchdogs of a member look at it now. What they have read once they see
// again: each rule has the same before it.
func (d *daemon) sight(k api.MemberKey) watchdog.Sight {
	read := map[string]watchdog.Reading{}
	return watchdog.Sight{
		Card: func(uuid string) watchdog.Reading {
			r, done := read[uuid]
			if !done {
				r = d.cards.reading(k, uuid)
				read[uuid] = r
			}
			return r
		},
		Host: sync.OnceValue(func() watchdog.Host {
			u := d.hosts.read(func() proc.Usage { return d.usageOf(k) })
			return watchdog.Host{MemoryBytes: u.MemoryBytes, IOBytes: u.IOBytes}
		}),
	}
}

// usageOf reads what the processes of a member hold and have moved.
func (d *daemon) usageOf(k api.MemberKey) proc.Usage {
	m := d.find(k)
	if m == nil {
		return proc.UnknownUsage
	}
	spec := m.known.Load()
	if spec == nil {
		return proc.UnknownUsage
	}
	return proc.UsageOf(spec.Place(), int(m.shimPID.Load()), takesStacks)
}

// takesStacks: a child of a shim is the one that looks at its ranks before a stop, debuggers
// and all. What that moves is not the gang's, and it runs while the gang is judged.
func takesStacks(s proc.Stat) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID) + "/cmdline")
	return err == nil && bytes.HasPrefix(b, []byte("gshim\x00dump\x00"))
}

// hostWait is how long a reading of processes may take. The kernel can make it wait for a
// process that hangs in the middle of an exec, and this daemon's other work must not.
const hostWait = time.Second

// hostReader takes one reading at a time. One that does not come back is unknown, and so are
// all others until it does.
type hostReader struct {
	turn chan struct{} // holds the right to read
	wait time.Duration
}

func newHostReader() *hostReader {
	h := &hostReader{turn: make(chan struct{}, 1), wait: hostWait}
	h.turn <- struct{}{}
	return h
}

func (h *hostReader) read(look func() proc.Usage) proc.Usage {
	select {
	case <-h.turn:
	default:
		return proc.UnknownUsage
	}
	got := make(chan proc.Usage, 1)
	go func() {
		r := look()
		h.turn <- struct{}{} // before the word: the next member is read at once
		got <- r
	}()
	late := time.NewTimer(h.wait)
	defer late.Stop()
	select {
	case r := <-got:
		return r
	case <-late.C:
		return proc.UnknownUsage
	}
}
