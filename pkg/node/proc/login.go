package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Processes of users start as those of a login do, whatever the daemon was started with: a service manager's unit, or
// a person, may have given it a niceness, a weight for the kernel's choice when memory runs out, CPUs, a class of I/O
// and limits, all of which children inherit.

// LeaveDaemon has the calling thread, which is locked to its goroutine, start processes as a login does, but
// for limits: with the niceness, scheduling, I/O class and CPUs that the machine's first process has for others. What
// this process has no right to change stays, and is named.
func LeaveDaemon() error {
	var failed []string
	try := func(what string, err error) {
		if err != nil {
			failed = append(failed, what+": "+err.Error())
		}
	}
	if attr, err := unix.SchedGetAttr(0, 0); err == nil && attr.Policy != unix.SCHED_NORMAL {
		try("scheduling", unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0))
	}
	if nice, err := Nice(); err != nil || nice != 0 {
		try("nice", SetNice(0))
	}
	if class, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_GET, ioprioProcess, 0, 0); errno == 0 && class>>ioprioShift != 0 {
		if _, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_SET, ioprioProcess, 0, 0); errno != 0 {
			try("ionice", errno)
		}
	}
	if all, err := Affinity(1); err == nil {
		if have, err := Affinity(0); err != nil || have.String() != all.String() {
			try("CPUs", SetAffinity(0, all))
		}
	}
	const oom = "/proc/self/oom_score_adj"
	if b, err := os.ReadFile(oom); err == nil && strings.TrimSpace(string(b)) != "0" {
		try("oom_score_adj", os.WriteFile(oom, []byte("0"), 0))
	}
	if len(failed) > 0 {
		return fmt.Errorf("as a login: %s", strings.Join(failed, "; "))
	}
	return nil
}

const (
	ioprioProcess = 1  // IOPRIO_WHO_PROCESS
	ioprioShift   = 13 // of the class, 0: none
)

// Nice is the niceness of the calling thread.
func Nice() (int, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the kernel's call gives 20 - nice
	return 20 - n, err
}

// SetNice changes it.
func SetNice(n int) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, n) }

// Rlimit is a limit of a process by its name, as in limits.conf(5).
type Rlimit struct {
	Name string `json:"name"`
	Soft uint64 `json:"soft"` // [NoRlimit]: none
	Hard uint64 `json:"hard"`
}

// NoRlimit is the figure of a limit that there is not.
const NoRlimit = unix.RLIM_INFINITY

// rlimit says how limits.conf(5) and the kernel call a limit.
type rlimit struct {
	name   string
	kernel string // in /proc/PID/limits
	number int
	unit   uint64 // of a figure in limits.conf
}

var rlimits = []rlimit{
	{"core", "Max core file size", unix.RLIMIT_CORE, 1 << 10},
	{"data", "Max data size", unix.RLIMIT_DATA, 1 << 10},
	{"fsize", "Max file size", unix.RLIMIT_FSIZE, 1 << 10},
	{"memlock", "Max locked memory", unix.RLIMIT_MEMLOCK, 1 << 10},
	{"nofile", "Max open files", unix.RLIMIT_NOFILE, 1},
	{"rss", "Max resident set", unix.RLIMIT_RSS, 1 << 10},
	{"stack", "Max stack size", unix.RLIMIT_STACK, 1 << 10},
	{"cpu", "Max cpu time", unix.RLIMIT_CPU, 60},
	{"nproc", "Max processes", unix.RLIMIT_NPROC, 1},
	{"as", "Max address space", unix.RLIMIT_AS, 1 << 10},
	{"locks", "Max file locks", unix.RLIMIT_LOCKS, 1},
	{"sigpending", "Max pending signals", unix.RLIMIT_SIGPENDING, 1},
	{"msgqueue", "Max msgqueue size", unix.RLIMIT_MSGQUEUE, 1},
	{"nice", "Max nice priority", unix.RLIMIT_NICE, 1},
	{"rtprio", "Max realtime priority", unix.RLIMIT_RTPRIO, 1},
}

func rlimitOf(name string) *rlimit {
	for i := range rlimits {
		if rlimits[i].name == name {
			return &rlimits[i]
		}
	}
	return nil
}

// firstLimits are those that a login begins with: what the first process of the machine has. A systemd has raised
// two for itself, which are not what it starts others with.
var firstLimits = sync.OnceValue(func() []Rlimit {
	text, err := os.ReadFile("/proc/1/limits")
	if err != nil {
		return nil
	}
	limits := readLimits(string(text))
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		limits = merge(limits, []Rlimit{{"nofile", 1 << 10, 1 << 19}, {"memlock", 8 << 20, 8 << 20}})
	}
	return limits
})

// readLimits reads /proc/PID/limits.
func readLimits(text string) (limits []Rlimit) {
	number := func(s string) (uint64, bool) {
		if s == "unlimited" {
			return NoRlimit, true
		}
		n, err := strconv.ParseUint(s, 10, 64)
		return n, err == nil
	}
	for line := range strings.Lines(text) {
		for i := range rlimits {
			rest, ok := strings.CutPrefix(line, rlimits[i].kernel+" ")
			f := strings.Fields(rest)
			if !ok || len(f) < 2 {
				continue
			}
			soft, ok1 := number(f[0])
			hard, ok2 := number(f[1])
			if ok1 && ok2 {
				limits = append(limits, Rlimit{rlimits[i].name, soft, hard})
			}
		}
	}
	return limits
}

// merge puts limits in the place of those of the same name.
func merge(limits, over []Rlimit) []Rlimit {
	out := append([]Rlimit{}, limits...)
next:
	for _, o := range over {
		for i := range out {
			if out[i].Name == o.Name {
				out[i] = o
				continue next
			}
		}
		out = append(out, o)
	}
	return out
}

// Limited gives this process these limits, for what it starts, until restore. A hard limit that it has no right to
// raise stays, and bounds what is wanted. Those of what it has mapped itself are not touched: see [LimitStarted].
func Limited(limits []Rlimit) (restore func()) {
	type kept struct {
		number int
		old    unix.Rlimit
	}
	var olds []kept
	for _, l := range limits {
		r := rlimitOf(l.Name)
		if r == nil || mapped(r) {
			continue
		}
		var old unix.Rlimit
		if unix.Getrlimit(r.number, &old) != nil {
			continue
		}
		if old != (unix.Rlimit{Cur: l.Soft, Max: l.Hard}) || r.number == unix.RLIMIT_NOFILE { // the runtime has raised its own and gives it back
			if setLimit(0, r.number, l, old.Max) == nil {
				olds = append(olds, kept{r.number, old})
			}
		}
	}
	return func() {
		for _, k := range olds {
			_ = unix.Setrlimit(k.number, &k.old)
		}
	}
}

// LimitStarted gives a process that was just started those limits that [Limited] leaves out: a daemon that had them
// itself might not find the memory to start anything.
func LimitStarted(pid int, limits []Rlimit) {
	for _, l := range limits {
		if r := rlimitOf(l.Name); r != nil && mapped(r) {
			var old unix.Rlimit
			if unix.Prlimit(pid, r.number, nil, &old) == nil && old != (unix.Rlimit{Cur: l.Soft, Max: l.Hard}) {
				_ = setLimit(pid, r.number, l, old.Max)
			}
		}
	}
}

// mapped limits count what a process has mapped.
func mapped(r *rlimit) bool { return r.number == unix.RLIMIT_AS || r.number == unix.RLIMIT_DATA }

func setLimit(pid, number int, l Rlimit, most uint64) error {
	err := unix.Prlimit(pid, number, &unix.Rlimit{Cur: min(l.Soft, l.Hard), Max: l.Hard}, nil)
	if err == nil || l.Hard <= most {
		return err
	}
	// No right to raise it, or more than the kernel lets anybody have open (fs.nr_open).
	return unix.Prlimit(pid, number, &unix.Rlimit{Cur: min(l.Soft, most), Max: most}, nil)
}

// ReadLimit reads one of them from the text of /proc/PID/limits.
func ReadLimit(text, name string) (Rlimit, bool) {
	for _, l := range readLimits(text) {
		if l.Name == name {
			return l, true
		}
	}
	return Rlimit{}, false
}
