package proc

import (
	"bytes"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Stat is one line of /proc/PID/stat.
type Stat struct {
	PID, PPID, PGRP, Session int
	Comm                     string
	State                    byte          // R S D T t Z X
	Start                    uint64        // clock ticks since boot; with the pid it names a process for ever
	CPU                      time.Duration // its own, and of the children that it waited for
	Exit                     int           // how it ended, as wait(2) gives it; 0: well, or it has not
	Waited                   bool          // for a child, once at least
}

// tick is what the kernel counts times of processes in, on every architecture: USER_HZ.
const tick = time.Second / 100

// Dead reports a process that runs no more, whether or not its parent has noticed.
func (s Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' || s.State == 'x' }

// ReadStat reads one process; ok is false when it is gone.
func ReadStat(pid int) (s Stat, ok bool) {
	var buf [512]byte // a stat line is at most about 350 bytes
	n := readFile("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	return parseStat(pid, buf[:n])
}

// pfExiting is the kernel's flag of a process that is on its way out (PF_EXITING of include/linux/sched.h): its status stands from
// there on.
const pfExiting = 0x4

// parseStat reads "pid (comm) S ppid pgrp session ..."; comm may hold blanks and brackets,
// so the fields are counted from the last bracket.
func parseStat(pid int, b []byte) (s Stat, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return Stat{}, false
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 {
		return Stat{}, false
	}
	s = Stat{PID: pid, Comm: string(b[open+1 : end]), State: f[0][0]}
	s.PPID, s.PGRP, s.Session = atoi(f[1]), atoi(f[2]), atoi(f[3])
	s.Start, _ = strconv.ParseUint(string(f[19]), 10, 64)
	s.Waited = atoi(f[8])+atoi(f[10]) > 0 // no process lives without faults of pages
	s.CPU = time.Duration(atoi(f[11])+atoi(f[12])+atoi(f[13])+atoi(f[14])) * tick
	if (s.State == 'Z' || atoi(f[6])&pfExiting != 0) && len(f) >= 50 {
		s.Exit = atoi(f[49])
	}
	return s, true
}

func atoi(b []byte) int {
	n, _ := strconv.Atoi(string(b))
	return n
}

// Signals are what a process does about signals, each a mask by number less one. Blocked has those that it waits for in
// sigwait and its like, too: the kernel lets them in for as long as that call lasts, so that its own mask lacks them.
type Signals struct{ Blocked, Ignored, Caught uint64 }

// ReadSignals is zero where the process is gone.
func ReadSignals(pid int) (s Signals) {
	var buf [4096]byte
	n := readFile("/proc/"+strconv.Itoa(pid)+"/status", buf[:])
	mask := func(name string) uint64 {
		_, rest, _ := bytes.Cut(buf[:n], []byte(name))
		hex, _, _ := bytes.Cut(rest, []byte("\n"))
		m, _ := strconv.ParseUint(string(hex), 16, 64)
		return m
	}
	return Signals{Blocked: mask("\nSigBlk:\t") | awaited(pid), Ignored: mask("\nSigIgn:\t"), Caught: mask("\nSigCgt:\t")}
}

func bit(sig syscall.Signal) uint64 {
	if sig <= 0 {
		return 0
	}
	return 1 << (uint(sig) - 1)
}

// Catches reports whether the process has its own handler for a signal.
func (s Signals) Catches(sig syscall.Signal) bool { return s.Caught&bit(sig) != 0 }

// Ignores reports whether a signal does nothing to the process by its own choice, or by that of who started it.
func (s Signals) Ignores(sig syscall.Signal) bool { return s.Ignored&bit(sig) != 0 }

// Blocks reports whether a signal waits until the process lets it in.
func (s Signals) Blocks(sig syscall.Signal) bool { return s.Blocked&bit(sig) != 0 }

// Takes reports whether a signal comes to the program itself: caught, or blocked, which is how
// programs wait for one (sigwait, signalfd).
func (s Signals) Takes(sig syscall.Signal) bool { return (s.Caught|s.Blocked)&bit(sig) != 0 }

// ToClean: the process is a bash with a trap on EXIT. That has a handler of bash's own for
// every signal that would end it, also for those that nobody sends to a script, so that a
// handler says nothing of what the script traps.
func (s Signals) ToClean() bool {
	own := bit(syscall.SIGTRAP) | bit(syscall.SIGFPE) | bit(syscall.SIGVTALRM)
	return s.Caught&own == own
}

// All lists the pids of the machine as this process sees them.
func All() ([]int, error) {
	names, err := readNames("/proc")
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(names))
	for _, n := range names {
		if n[0] >= '1' && n[0] <= '9' {
			if pid, err := strconv.Atoi(n); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// BootID names this run of the kernel.
func BootID() string {
	var buf [64]byte
	n := readFile("/proc/sys/kernel/random/boot_id", buf[:])
	return string(bytes.TrimSpace(buf[:n]))
}

// Scheduled is for how long a process was on a CPU, and for how long it could run and had none, since it was started; known is
// false where the kernel does not say.
func Scheduled(pid int) (ran, starved time.Duration, known bool) {
	var buf [80]byte
	f := bytes.Fields(buf[:readFile("/proc/"+strconv.Itoa(pid)+"/schedstat", buf[:])]) // on the CPU, waiting for it, slices
	if len(f) < 2 {
		return 0, 0, false
	}
	return time.Duration(atoi(f[0])), time.Duration(atoi(f[1])), true
}

// KeptMost bounds for how long a process is believed to have been kept waiting for a CPU at its end: what is known is how long
// it was in all of its life, of which it slept the most.
const KeptMost = 200 * time.Millisecond

// KeptWaiting is how long a process that has ended may have been kept from it by others that wanted its CPU.
func KeptWaiting(pid int) time.Duration {
	_, starved, _ := Scheduled(pid)
	return min(starved, KeptMost)
}

// Crowded: in the last ten seconds something waited for a CPU of this machine for a twentieth of the time. A kernel that does not say so
// says how much was ready to run in the last minute.
func Crowded() bool {
	var buf [256]byte
	f := bytes.Fields(buf[:readFile("/proc/pressure/cpu", buf[:])])
	if len(f) > 1 {
		share, err := strconv.ParseFloat(string(bytes.TrimPrefix(f[1], []byte("avg10="))), 64)
		return err == nil && share >= 5
	}
	f = bytes.Fields(buf[:readFile("/proc/loadavg", buf[:])])
	if len(f) == 0 {
		return false
	}
	ready, err := strconv.ParseFloat(string(f[0]), 64)
	return err == nil && ready > float64(machineCPUs())
}

// machineCPUs is how many the machine has; those of this process may be fewer.
func machineCPUs() (n int) {
	all, _ := readNames("/sys/devices/system/cpu")
	for _, name := range all {
		if number, is := strings.CutPrefix(name, "cpu"); is && number != "" && strings.Trim(number, "0123456789") == "" {
			n++
		}
	}
	return max(1, n)
}
