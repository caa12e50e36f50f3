package shim

import (
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
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
	for _, pid := range m.noticeTargets(m.offer.sig, m.offer.scope) {
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

func (m *member) noticeTargets(sig unix.Signal, scope api.SignalScope) []int {
	pids, _ := supervise.NoticeTargets(scope, m.spec.Batch, m.processes(sig, m.ofAll))
	return pids
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
