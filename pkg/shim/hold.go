package shim

import (
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/proc"
	"gangd/pkg/supervise"
)

// A shell that has no handler for the stop signal would die of it at once, and the rank
// would be over while its program still saves. So such a shell is stopped (SIGSTOP) before
// anything else is signalled, and stays so until the rest of its rank is gone. Then the
// signal is made pending and the shell is continued: it dies of it in the kernel, before it
// can return to its script and run the next line. The grace bounds all of it: KILL ends
// stopped processes too.

// heldShell is a shell that waits, stopped, for its signal.
type heldShell struct {
	rank, pid int
	sig       unix.Signal
	at        time.Duration // next look, monotonic
	step      time.Duration
}

// Looking costs about 0.05 ms; a program that dies of the signal is gone within the first.
const (
	heldFirst = time.Millisecond
	heldSlow  = 20 * time.Millisecond
)

// isShell knows the programs that run scripts line by line.
func isShell(comm string) bool {
	switch comm {
	case "sh", "bash", "rbash", "dash", "ash", "busybox", "zsh", "ksh", "ksh93", "mksh", "yash", "posh", "fish", "csh", "tcsh":
		return true
	}
	return false
}

// processes lists who lives in the containment, as far as signals are concerned.
func (m *member) processes(sig unix.Signal) []supervise.Process {
	pids, err := m.box.PIDs()
	if err != nil {
		logf("list processes: %v", err)
	}
	stats := make(map[int]proc.Stat, len(pids))
	for _, pid := range pids {
		if s, ok := proc.ReadStat(pid); ok && !s.Dead() {
			stats[pid] = s
		}
	}
	out := make([]supervise.Process, 0, len(stats))
	for _, pid := range pids {
		s, ok := stats[pid]
		if !ok {
			continue
		}
		p := supervise.Process{PID: pid, Rank: m.rankOf(s, stats)}
		p.Main = p.Rank >= 0 && m.mainOf(p.Rank) == pid
		p.Shell = p.Main && isShell(s.Comm)
		p.Catches = p.Shell && proc.Catches(pid, sig)
		p.Client = !p.Main && m.isClient(s)
		out = append(out, p)
	}
	return out
}

// rankOf attributes a process by session, by ancestry, and last by what it was started
// with: a daemon of a rank has left both.
func (m *member) rankOf(s proc.Stat, all map[int]proc.Stat) int {
	if len(m.ranks) == 1 {
		return m.spec.Ranks[0].Rank
	}
	for p, ok := s, true; ok; p, ok = all[p.PPID] {
		for i := range m.ranks {
			if m.ranks[i].pid > 0 && (p.PID == m.ranks[i].pid || p.Session == m.ranks[i].pid) {
				return m.spec.Ranks[i].Rank
			}
		}
	}
	for i := range m.spec.Ranks {
		if proc.Environ(s.PID, "GANG_RANK="+strconv.Itoa(m.spec.Ranks[i].Rank)) {
			return m.spec.Ranks[i].Rank
		}
	}
	return -1
}

func (m *member) mainOf(rank int) int {
	for i := range m.ranks {
		if m.spec.Ranks[i].Rank == rank && m.ranks[i].live() {
			return m.ranks[i].pid
		}
	}
	return 0
}

// stop delivers the stop signal to the default scope. While the list is made nothing may
// fork: where the containment can't freeze, at least the shells are stopped first.
func (m *member) stop(name string) {
	sig, ok := proc.Signal(name)
	if !ok {
		logf("stop signal %q is not known: TERM", name)
		sig = unix.SIGTERM
	}
	m.drainSteps() // before their tasks are told: a client hears why before it hears how they ended
	frozen := m.box.Freeze()
	if !frozen {
		m.stopMains()
	}
	procs := m.processes(sig)
	at := clock(unix.CLOCK_MONOTONIC)
	for _, p := range procs {
		if supervise.Deferred(p, procs) {
			_ = unix.Kill(p.PID, unix.SIGSTOP)
			m.holding = append(m.holding, heldShell{rank: p.Rank, pid: p.PID, sig: sig, at: at + heldFirst, step: heldFirst})
		}
	}
	for _, p := range procs {
		if !m.held(p.PID) && !p.Client {
			deliver(p.PID, sig)
		}
	}
	if frozen {
		m.box.Thaw()
	}
}

// stopWait bounds the wait for a stop to take effect: a process on another CPU takes it
// within microseconds, one in an uninterruptible wait forks nothing.
const stopWait = 20 * time.Millisecond

func (m *member) stopMains() {
	end := time.Now().Add(stopWait)
	for i := range m.ranks {
		if m.ranks[i].live() {
			_ = unix.Kill(m.ranks[i].pid, unix.SIGSTOP)
		}
	}
	for i := range m.ranks {
		for m.ranks[i].live() && time.Now().Before(end) {
			if s, ok := proc.ReadStat(m.ranks[i].pid); !ok || s.State == 'T' || s.Dead() {
				break
			}
			time.Sleep(100 * time.Microsecond)
		}
	}
}

func (m *member) held(pid int) bool {
	for _, h := range m.holding {
		if h.pid == pid {
			return true
		}
	}
	return false
}

// deliver signals first and continues then: a stopped process must find the signal there
// when it wakes.
func deliver(pid int, sig unix.Signal) {
	send(pid, sig)
	if sig != unix.SIGSTOP && sig != unix.SIGTSTP {
		send(pid, unix.SIGCONT)
	}
}

func send(pid int, sig unix.Signal) bool {
	err := unix.Kill(pid, sig)
	if err != nil && err != unix.ESRCH {
		logf("signal %d to process %d: %v", sig, pid, err)
	}
	return err == nil
}

func (m *member) heldWait(t time.Duration) time.Duration {
	d := pollMax
	for _, h := range m.holding {
		d = min(d, h.at-t)
	}
	return d
}

// checkHeld releases the shells whose rank has nobody else left.
func (m *member) checkHeld() {
	if len(m.holding) == 0 {
		return
	}
	t := clock(unix.CLOCK_MONOTONIC)
	due := false
	for _, h := range m.holding {
		due = due || t >= h.at
	}
	if !due {
		return
	}
	procs := m.processes(m.holding[0].sig)
	kept := m.holding[:0]
	for _, h := range m.holding {
		if m.mainOf(h.rank) != h.pid {
			continue // somebody ended it
		}
		if !supervise.Deferred(supervise.Process{PID: h.pid, Rank: h.rank, Main: true, Shell: true}, procs) {
			deliver(h.pid, h.sig)
			continue
		}
		h.step = min(2*h.step, heldSlow)
		h.at = t + h.step
		kept = append(kept, h)
	}
	m.holding = kept
}

// scriptPath is what ranks run.
func (m *member) scriptPath() string { return filepath.Join(m.spec.Dir, ScriptFile) }
