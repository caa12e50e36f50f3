package watchdog

import (
	"time"

	"gangd/pkg/api"
)

// Host is the processes of a member on their machine at one instant; -1 is unknown.
type Host struct {
	MemoryBytes int64 // that they hold
	IOBytes     int64 // that they have read and written so far
}

// unknownHost is a reading that could not be had.
var unknownHost = Host{MemoryBytes: -1, IOBytes: -1}

// host is what readings of the processes amount to.
type host struct {
	memory, io flow
	looked     bool
}

func (h *host) add(now time.Duration, r Host, floor int64) {
	h.looked = true
	h.memory.add(now, r.MemoryBytes, floor)
	// A process that ended takes its bytes along: less than before is nothing that was moved.
	if r.IOBytes >= 0 && r.IOBytes < h.io.last {
		h.io.last = r.IOBytes
	}
	h.io.add(now, r.IOBytes, floor)
}

// state is quiet also of what was not looked at.
func (h *host) state() api.CardsState {
	switch {
	case h.memory.over || h.io.over:
		return api.CardsMoving
	case h.memory.unknown || h.io.unknown:
		return api.CardsUnknown
	}
	return api.CardsQuiet
}

func (h *host) finding() api.HostFinding {
	f := api.HostFinding{State: h.state(), MemoryBytes: h.memory.moved, IOBytes: h.io.moved}
	if h.memory.unknown {
		f.MemoryBytes = -1
	}
	if h.io.unknown {
		f.IOBytes = -1
	}
	return f
}

// flow is a figure that moves a little by itself: a log line, a monitor, a collector of
// garbage. It is a bucket that loses the floor each second and holds as much; what runs over
// is work. Neither the length of a window nor the pace of the readings changes what that is.
type flow struct {
	last    int64
	at      time.Duration
	seen    bool // last and at are set
	level   float64
	moved   int64 // both ways, in all
	over    bool
	unknown bool
}

func (f *flow) add(now time.Duration, v, floor int64) {
	if v < 0 {
		f.unknown = true
		return
	}
	if f.seen {
		d := max(v-f.last, f.last-v)
		f.moved += d
		f.level = max(0, f.level+float64(d)-float64(floor)*(now-f.at).Seconds())
		f.over = f.over || f.level > float64(floor)
	}
	f.last, f.at, f.seen = v, now, true
}
