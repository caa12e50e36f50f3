package shim

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

// Limits that no controller holds are held by looking: at what the processes have in memory,
// and how many they are. Who is above is ended without a grace, because the neighbours pay for
// each moment.
const (
	lookEvery = time.Second
	// lookShare bounds what looking costs to this part of a core: on a machine with many
	// processes it happens less often, but not seldom.
	lookShare = 50
	lookMost  = 10 * time.Second
)

// limitLook is when limits are looked at next.
type limitLook struct {
	at   time.Duration // monotonic
	used int64         // memory in use when it was looked at last
}

// looks: there is a limit that only looking can hold.
func (m *member) looks() bool {
	if m.box == nil || m.over || m.mach.State() == supervise.Holding || m.mach.State() == supervise.Killing {
		return false
	}
	held := m.box.Held()
	return m.spec.MemoryMax > 0 && !held.Memory || m.spec.PidsMax > 0 && !held.PIDs
}

func (l *limitLook) wait(m *member, now time.Duration) time.Duration {
	if !m.looks() {
		return pollMax
	}
	return max(l.at-now, 0)
}

// lookAtLimits ends the member when it uses more than it may.
func (m *member) lookAtLimits() {
	now := clock(unix.CLOCK_MONOTONIC)
	if !m.looks() || now < m.look.at {
		return
	}
	cost := clock(unix.CLOCK_THREAD_CPUTIME_ID)
	held := m.box.Held()
	pids, err := m.box.PIDs()
	if err != nil {
		logf("look at limits: %v", err)
	}
	var over string
	if limit := m.spec.PidsMax; limit > 0 && !held.PIDs && int64(len(pids)) > limit {
		over = fmt.Sprintf("%d processes of %d allowed", len(pids), limit)
	}
	if limit := m.spec.MemoryMax; limit > 0 && !held.Memory {
		m.look.used = proc.MemoryUsed(pids, limit)
		if m.look.used > limit {
			over = fmt.Sprintf("used %s of %s of memory asked", cluster.Size(m.look.used), cluster.Size(limit))
		}
	}
	cost = clock(unix.CLOCK_THREAD_CPUTIME_ID) - cost
	m.look.at = now + min(max(lookEvery, lookShare*cost), lookMost)
	if over != "" {
		m.command(Command{Stop: &api.Stop{Cause: api.CauseOOM, Text: over}})
	}
}

// shortage says of a rank that has failed whether memory or processes had run out. A worker
// that the kernel killed shows in its parent as any failure: python ends with 1. The count is of
// this containment alone.
func (m *member) shortage(rec *api.RankActual) {
	if n := m.box.Forks(); n > 0 {
		rec.ForksRefused, rec.ProcessesMax = n, m.spec.PidsMax
	}
	m.countKills(m.mach.Cause() == "")
	k := m.state.Kills
	if rec.ExitCode == 0 || m.mach.Cause() != "" || k == nil {
		return
	}
	rec.OOM, rec.HostOOM, rec.MemoryAsked, rec.MemoryUsed = true, k.Host, k.Asked, k.Used
}

// countKills reads how many processes the kernel has killed for want of memory: whoever waited for one may have gone
// on as if nothing was. Before: no stop of the member had begun, so that its own doing has brought it about.
func (m *member) countKills(before bool) {
	s := m.box.Shortage()
	if k := m.state.Kills; s.Kills == 0 || k != nil && s.Kills <= k.Count {
		return
	}
	k := api.MemoryKills{Count: s.Kills, Asked: m.spec.MemoryMax, Used: s.Peak, Host: !s.Own}
	switch old := m.state.Kills; {
	case before:
		k.Before = k.Count
	case old != nil:
		k.Before = old.Before
	}
	m.state.Kills, m.dirty = &k, true
}

// countBefore is countKills at the moment at which a stop begins: what is counted later may be of its making.
func (m *member) countBefore() {
	if !m.stopped && m.mach.Cause() != "" {
		m.stopped = true
		m.countKills(true)
	}
}

// forFork is [defaultForFork], with the limits and the niceness of a login of the user. Where no controller limits
// processes, the user gets that limit too: it counts all that he has on this machine.
func (m *member) forFork() (restore func()) {
	signals, limits := defaultForFork(), proc.Limited(m.spec.LoginLimits)
	if m.spec.Nice != 0 {
		if err := proc.SetNice(m.spec.Nice); err != nil {
			logf("nice: %v", err)
		}
	}
	restore = func() {
		if m.spec.Nice != 0 {
			_ = proc.SetNice(0)
		}
		limits()
		signals()
	}
	var old unix.Rlimit
	if m.spec.PidsMax <= 0 || !m.spec.SwitchUser || m.box.Held().PIDs || unix.Getrlimit(unix.RLIMIT_NPROC, &old) != nil {
		return restore
	}
	lim := unix.Rlimit{Cur: min(uint64(m.spec.PidsMax), old.Cur), Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &lim); err != nil {
		logf("limit of processes: %v", err)
	}
	return func() {
		_ = unix.Setrlimit(unix.RLIMIT_NPROC, &old)
		restore()
	}
}
