package noded

import (
	"bytes"
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
			u := d.readUsage(k, d.usageOf)
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
	return bytes.HasPrefix(proc.CommandLine(s.PID), []byte("gshim\x00dump\x00"))
}

// hostWait is how long a reading of processes may take. The kernel can make it wait for a
// process that hangs in the middle of an exec, and this daemon's other work must not.
const hostWait = time.Second

// readUsage is what a reading of a member's processes gives, unknown where it does not come.
func (d *daemon) readUsage(k api.MemberKey, of func(api.MemberKey) proc.Usage) proc.Usage {
	u, ok := d.hosts.Take(k, hostWait, func() proc.Usage { return of(k) })
	if !ok {
		return proc.UnknownUsage
	}
	return u
}
