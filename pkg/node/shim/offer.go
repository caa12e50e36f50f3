package shim

import (
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

// A program that installs its handler after the notice was given, because it still imported its modules then, has
// all of the lead that is left to save. So the notice is offered again, each second, to the processes that were
// there and had no handler. One that was started in the lead is none of them: it was not there to be told, and
// may be the save itself.

// offerEvery is how often a notice is offered again.
const offerEvery = time.Second

// offer is a notice that not all have heard. The zero value is none.
type offer struct {
	sig   unix.Signal
	scope api.SignalScope
	deaf  map[int]bool  // processes without a handler when it was given
	at    time.Duration // next look, monotonic
}

// offerAgain looks who has a handler now, while the lead lasts.
func (m *member) offerAgain() {
	t := clock(unix.CLOCK_MONOTONIC)
	if m.offer.deaf == nil || t < m.offer.at {
		return
	}
	if o, ok := m.mach.Outlook(now()); !ok || o.State != supervise.Leading {
		m.offer = offer{}
		return
	}
	m.offer.at = t + offerEvery
	told := false
	procs := m.processes(m.offer.sig, m.ofAll)
	m.hears(m.offer.scope, procs)
	pids, _ := supervise.NoticeTargets(m.offer.scope, m.spec.Batch, procs)
	for _, pid := range pids {
		if !m.offer.deaf[pid] {
			continue
		}
		if !told {
			m.announce() // with what is left of the lead
		}
		told = true
		delete(m.offer.deaf, pid)
		send(pid, m.offer.sig)
	}
}

// hears notes whether anybody can make use of the lead: who has a handler, or looks for the reason of the end without
// one. Where nobody of a gang can, a lead that its owner waits for is waited for in vain. Who has heard once may have told
// the others.
func (m *member) hears(scope api.SignalScope, procs []supervise.Process) {
	m.heard = m.heard || supervise.Listens(scope, m.spec.Batch, procs)
	deaf := !m.heard && !m.watched(procs)
	m.dirty = m.dirty || deaf != m.state.Deaf
	m.state.Deaf = deaf
}

// watched: a process has the directory of [StatusFile], or that file, open, or is told by the kernel of what changes there.
func (m *member) watched(procs []supervise.Process) bool {
	var dir unix.Stat_t
	if err := unix.Stat(".", &dir); err != nil {
		logf("the directory of the member: %v", err)
		return true
	}
	paths := []string{m.spec.Dir, filepath.Join(m.spec.Dir, StatusFile)}
	return slices.ContainsFunc(procs, func(p supervise.Process) bool { return proc.Watches(p.PID, paths, dir.Ino) })
}

// offerLater keeps who did not take the notice just now.
func (m *member) offerLater(sig unix.Signal, scope api.SignalScope, procs []supervise.Process) {
	m.offer = offer{sig: sig, scope: scope, deaf: map[int]bool{}, at: clock(unix.CLOCK_MONOTONIC) + offerEvery}
	for _, p := range procs {
		if !p.Catches && !p.Client && p.PID != m.asker.by.PID {
			m.offer.deaf[p.PID] = true
		}
	}
}
