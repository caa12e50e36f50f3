package shim

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

// A shell that has no handler for the stop signal would die of it at once, and the rank
// would be over while its program still saves. So such a shell is stopped (SIGSTOP) before
// anything else is signalled, and stays so until the rest of its rank is gone. Then the
// signal is made pending and the shell is continued: it dies of it in the kernel, before it
// can return to its script and run the next line. The grace bounds all of it: KILL ends
// stopped processes too.

// heldShell is a process that waits for its signal: a rank's main one, either a shell, which is stopped, or a
// holder; or one that brings bytes to a checkpoint, or is to hear an answer first.
type heldShell struct {
	rank, pid int
	runs      bool // until its bytes are stored, or its answer is heard
	blocked   int  // in so many looks, the last ones, it blocked the signal
	sig       unix.Signal
	at        time.Duration // next look, monotonic
	step      time.Duration
}

// Looking costs about 0.05 ms; a program that dies of the signal is gone within the first.
const (
	heldFirst = time.Millisecond
	heldSlow  = 20 * time.Millisecond
)

// A program that blocks the stop signal may wait for it (sigwait, signalfd), and is told then; but shells, and what starts
// programs, block signals for as long as a fork takes, below a millisecond on a machine that is not overloaded.
// Who was seen to block it in so many looks, 0.2 s, waits for it.
const blockedLooks = 15

// isShell knows the programs that run scripts line by line.
func isShell(comm string) bool {
	switch comm {
	case "sh", "bash", "rbash", "dash", "ash", "busybox", "zsh", "ksh", "ksh93", "mksh", "yash", "posh", "fish", "csh", "tcsh":
		return true
	}
	return false
}

// handlers tell whether a process takes a signal.
type handlers func(p *supervise.Process, sig unix.Signal) bool

// ofShells asks the ranks' shells alone: who else has a handler does not matter to a stop.
func (m *member) ofShells(p *supervise.Process, sig unix.Signal) bool {
	return p.Shell && m.shellCatches(p.PID, sig)
}

func (m *member) ofAll(p *supervise.Process, sig unix.Signal) bool {
	if p.Shell {
		return m.shellCatches(p.PID, sig)
	}
	return proc.ReadSignals(p.PID).Takes(sig)
}

// shellCatches: the script traps a signal. Where the process can't tell, its text does.
func (m *member) shellCatches(pid int, sig unix.Signal) bool {
	s := proc.ReadSignals(pid)
	if !s.Catches(sig) || !s.ToClean() {
		return s.Catches(sig)
	}
	return slices.ContainsFunc(m.spec.Traps, func(name string) bool {
		trapped, ok := proc.Signal(name)
		return ok && trapped == sig
	})
}

// stats are all who live in the containment.
func (m *member) stats() map[int]proc.Stat {
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
	return stats
}

// processes lists who lives in the containment, as far as signals are concerned.
func (m *member) processes(sig unix.Signal, takes handlers) []supervise.Process {
	stats := m.stats()
	out := make([]supervise.Process, 0, len(stats))
	for _, pid := range slices.Sorted(maps.Keys(stats)) {
		s := stats[pid]
		p := supervise.Process{PID: pid, Rank: m.rankOf(s, stats)}
		p.Main = p.Rank >= 0 && m.mainOf(p.Rank) == pid
		p.Shell = p.Main && isShell(s.Comm)
		p.Client = m.isClient(s)
		p.Catches = !p.Client && takes(&p, sig)
		p.Ignores = p.Shell && proc.ReadSignals(pid).Ignores(sig)
		if step := m.stepOf(s, stats); step != nil {
			p.Step, p.Told = true, step.told
		}
		out = append(out, p)
	}
	markSaves(out, stats, sig)
	if m.mach.State() == supervise.Stopping {
		m.markAsks(out, stats, sig)
	}
	return out
}

// checkpointer is the program that stores a checkpoint. It ignores the signals of an end as soon as it runs.
const checkpointer = "gckpt"

// markSaves finds who stores a checkpoint, and who is at the other end of the pipe that it reads: what a stop
// cut off there would be lost, or stored as if it were whole.
func markSaves(procs []supervise.Process, stats map[int]proc.Stat, sig unix.Signal) {
	var pipes []string
	for i := range procs {
		if stats[procs[i].PID].Comm != checkpointer {
			continue
		}
		procs[i].Saves = !proc.ReadSignals(procs[i].PID).Ignores(sig) // it has only just been started
		if pipe := proc.StdinPipe(procs[i].PID); pipe != "" {
			pipes = append(pipes, pipe)
		}
	}
	if pipes == nil {
		return
	}
	for i := range procs {
		if p := &procs[i]; !p.Client && stats[p.PID].Comm != checkpointer {
			s := proc.ReadSignals(p.PID)
			p.Saves = !s.Catches(sig) && !s.Ignores(sig) && proc.WritesTo(p.PID, pipes)
			p.Blocks = p.Saves && s.Blocks(sig)
		}
	}
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
	started, err := strconv.Atoi(proc.Variable(s.PID, "GANG_RANK"))
	if err == nil && slices.ContainsFunc(m.spec.Ranks, func(r RankSpec) bool { return r.Rank == started }) {
		return started
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
	now, wait := supervise.StopTargets(m.processes(sig, m.ofShells))
	at := clock(unix.CLOCK_MONOTONIC)
	for _, p := range wait {
		switch {
		case p.Saves || p.Asks: // it may have been stopped above as a rank's main process
			send(p.PID, unix.SIGCONT)
		case p.Shell: // a holder has to hear that its client is done
			_ = unix.Kill(p.PID, unix.SIGSTOP)
		}
		m.holding = append(m.holding, heldShell{rank: p.Rank, pid: p.PID, runs: p.Saves || p.Asks, blocked: blocks(0, p), sig: sig,
			at: at + heldFirst, step: heldFirst})
	}
	heard := make([]int, len(now))
	m.foresee(now, wait, sig)
	for i, p := range now {
		heard[i] = p.PID
		deliver(p.PID, sig)
	}
	for _, p := range m.steps {
		if !p.told {
			p.told, p.with, p.heard = true, sig, heard
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
		if m.ranks[i].live() {
			awaitStop(m.ranks[i].pid, end)
		}
	}
}

// awaitStop waits until a process that was told to stop stands still or has ended, or it is end.
func awaitStop(pid int, end time.Time) {
	for time.Now().Before(end) {
		if s, ok := proc.ReadStat(pid); !ok || s.State == 'T' || s.Dead() {
			return
		}
		proc.Pause(100 * time.Microsecond)
	}
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

// checkHeld releases the shells whose rank has nobody else left, and those whose checkpoint is stored.
func (m *member) checkHeld() {
	if len(m.holding) == 0 {
		return
	}
	t := clock(unix.CLOCK_MONOTONIC)
	if m.heldWait(t) > 0 {
		return
	}
	procs := m.processes(m.holding[0].sig, m.ofShells)
	kept := m.holding[:0]
	for _, h := range m.holding {
		i := slices.IndexFunc(procs, func(p supervise.Process) bool { return p.PID == h.pid })
		if i < 0 || !h.runs && m.mainOf(h.rank) != h.pid {
			continue // it has ended
		}
		h.blocked = blocks(h.blocked, procs[i])
		wait := (procs[i].Saves || procs[i].Asks) && h.blocked < blockedLooks
		over := h.runs && !wait
		switch {
		case !h.runs:
			wait = supervise.Deferred(supervise.Process{PID: h.pid, Rank: h.rank, Main: true, Client: true}, procs)
		case !wait && supervise.Deferred(procs[i], procs): // a shell like any other from now on
			_ = unix.Kill(h.pid, unix.SIGSTOP)
			h.runs, wait = false, true
		}
		if over {
			m.tellBorn(h.pid, h.sig)
		}
		if !wait {
			deliver(h.pid, h.sig)
			continue
		}
		h.step = min(2*h.step, heldSlow)
		h.at = t + h.step
		kept = append(kept, h)
	}
	m.holding = kept
}

// blocks counts the looks one after the other, at which a process that saves, or asks, blocks the signal.
func blocks(n int, p supervise.Process) int {
	if !p.Blocks {
		return 0
	}
	return n + 1
}

func (m *member) scriptPath() string { return filepath.Join(m.spec.Dir, ScriptFile) }
