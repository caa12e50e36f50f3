package shim

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

// A rank that is on its way out when the stop comes has ended by itself, though its supervisor sees that only after the stop: on a
// machine that has much to do its peers may have seen it long before. So it is looked before the signal.

// foresee notes who has ended, which was not seen yet, and what can be told of ranks before they get the stop signal: of a process
// that would be ended by it, any other end is its own; and what a shell has run may have failed, which the shell has not acted on yet.
func (m *member) foresee(now, wait []supervise.Process, sig unix.Signal) {
	for i := range m.ranks {
		r := &m.ranks[i]
		if s, ok := proc.ReadStat(r.pid); ok && r.live() && s.Dead() {
			r.gone, r.stopped = true, time.Now()
		}
	}
	for _, list := range [][]supervise.Process{now, wait} {
		for _, p := range list {
			if !p.Main {
				continue
			}
			for i := range m.ranks {
				r := &m.ranks[i]
				if !r.live() || r.pid != p.PID {
					continue
				}
				if s := proc.ReadSignals(p.PID); endsBy(sig) && !s.Takes(sig) && !s.Ignores(sig) && !p.Asks && !p.Saves && !p.Client {
					r.endedBy, r.stopped = sig, time.Now()
				}
				r.failed = p.Shell && proc.ProgramFailed(p.PID)
			}
		}
	}
}

// endsBy tells whether a signal ends who has no handler for it.
func endsBy(sig unix.Signal) bool {
	switch sig {
	case unix.SIGCHLD, unix.SIGCONT, unix.SIGURG, unix.SIGWINCH, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		return false
	}
	return true
}

// decided: the bad end of a rank that came after its stop signal is not of that. KILL is the end of a grace.
func (r *rank) decided(ws syscall.WaitStatus) bool {
	return r.endedBy != 0 && ws != 0 && !(ws.Signaled() && (ws.Signal() == r.endedBy || ws.Signal() == unix.SIGKILL))
}

// before is how long ago an end may have been decided that came after a stop: its peers had the time to see it, to leave, and to be
// reported, which takes as long on a machine with much to do. Whatever ended in that time is as likely the first.
const before = time.Second

// lateness is how long before it was seen a rank may have ended.
func (m *member) lateness(r *rank, ws syscall.WaitStatus) time.Duration {
	late := max(m.order.Late(), r.kept)
	if r.gone || r.decided(ws) {
		late = max(late, time.Since(r.stopped)+before)
	}
	return late
}

// lookAtEnded reads how long the ranks of a gang that have ended were kept waiting for a CPU, before they are waited for. A shell
// sees the end of its program, and ends, when it is let: by then peers may have left, seen a closed socket, and ended. Where
// more wants to run than there are CPUs, so it is with every program: its sockets are closed before it has ended. For how long a
// shell's program was kept on its way out is known to nobody, because the shell has waited for it.
func (m *member) lookAtEnded() {
	if !m.inGang() || proc.EndedChild() == 0 {
		return
	}
	for i := range m.ranks {
		r := &m.ranks[i]
		if !r.live() || r.end != nil {
			continue
		}
		if s, ok := proc.ReadStat(r.pid); ok && s.Dead() {
			r.kept = kept(&s, proc.Crowded(), proc.KeptWaiting(r.pid))
		}
	}
}

// kept is for how long a rank that has ended may have been kept from it, or what it ran, by others that wanted its CPU.
func kept(s *proc.Stat, crowded bool, waited time.Duration) time.Duration {
	shell := isShell(s.Comm)
	switch {
	case shell && crowded && s.Waited:
		return proc.KeptMost
	case shell, crowded:
		return waited
	}
	return 0
}

// inGang: there are ranks elsewhere, or others here.
func (m *member) inGang() bool {
	return !m.spec.Batch && len(m.spec.Ranks) > 0 && (len(m.spec.Ranks) > 1 || !m.spec.Whole)
}
