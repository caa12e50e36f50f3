package shim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cpus"
	"gangd/pkg/core/rankenv"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
	"gangd/pkg/wire/limits"
)

// rank is one started rank; its record is the one of the same index in the state.
type rank struct {
	pid   int // 0: could not be started
	pidfd int // -1: the kernel has none
	ended bool
	end   *rankEnd // how it ended, before its epilog; nil: it has not
	// What was seen of it before the stop signal, see [member.foresee].
	endedBy unix.Signal   // that which it has no handler for, 0: it has, or had none
	failed  bool          // what its shell ran
	gone    bool          // it had ended
	stopped time.Time     // when that was seen
	kept    time.Duration // for how long its shell could run and had no CPU, when it had ended
	left    used          // by processes of its session that came to this process, because their parent had ended
}

// rankEnd is the end of a rank's own process.
type rankEnd struct {
	ws   syscall.WaitStatus
	at   time.Time
	late time.Duration // it may have ended so much earlier
	own  bool
	used used
}

type used api.RankUsed

func (r *rank) live() bool { return r.pid > 0 && !r.ended }

// Exit codes of a rank whose program could not be started, as shells have them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// start forks every rank. It runs with the gate open: what differs between ranks was made
// before, so that only fork and exec lie between the first and the last.
func (m *member) start() {
	m.state.Phase = api.PhaseRunning
	m.reapedBefore = reaped()
	argv, err := scriptCommand(m.scriptPath(), m.spec.Args)
	sys := &syscall.SysProcAttr{Setsid: true}
	if err == nil {
		err = m.box.Enter(sys)
	}
	m.credential(sys)
	m.ranks = make([]rank, len(m.spec.Ranks))
	m.state.Ranks = make([]api.RankActual, len(m.spec.Ranks))
	m.truncate()
	starts := m.outputStarts()
	unix.Umask(m.spec.Umask)
	restore := m.forFork()
	back, inErr := m.inPrivate()
	if err == nil {
		err = inErr
	}
	for i := range m.spec.Ranks {
		m.startRank(i, argv, *sys, err)
		m.state.Ranks[i].OutStart, m.state.Ranks[i].ErrStart = starts[i][0], starts[i][1]
	}
	back()
	restore()
	unix.Umask(0o077)
	m.box.Leave()
	m.keepLog()
	if m.spec.Batch && len(m.ranks) > 0 && m.ranks[0].pid == 0 && m.state.Ranks[0].ExitCode == exitNotFound {
		m.write("slurmstepd: error: execve(): bad interpreter(" + argv[0] + "): No such file or directory")
	}
	if _, after := m.spec.TaskHooks.After(); after == nil {
		m.files = closeFiles(m.files)
	}
	for i, r := range m.ranks {
		if r.pid == 0 {
			m.step(supervise.Exited{Rank: m.spec.Ranks[i].Rank})
		}
	}
}

func (m *member) startRank(i int, argv []string, sys syscall.SysProcAttr, err error) {
	spec, r, rec := &m.spec.Ranks[i], &m.ranks[i], &m.state.Ranks[i]
	*rec = api.RankActual{Rank: spec.Rank}
	r.pidfd = -1
	defer func() { m.order.Add(i, r.pidfd) }()
	if err == nil {
		sys.PidFD = &r.pidfd
		f := m.files[i]
		unbind := m.bind(spec.CPUs)
		attr := &syscall.ProcAttr{Dir: cmp.Or(m.spec.StartDir, m.spec.WorkDir), Env: m.environ(spec),
			Files: []uintptr{uintptr(f.in), uintptr(f.out), uintptr(f.err)}, Sys: &sys}
		path, argv := m.spec.TaskHooks.Before(argv[0], argv)
		told := m.spec.Batch || m.spec.Limits != nil
		limits.Around(m.spec.Limits, func() {
			if told {
				r.pid, err = proc.ForkExecTold(path, argv, attr, rankenv.TaskPID, func(pid int) {
					proc.LimitStarted(pid, m.spec.LoginLimits)
					limits.Set(m.spec.Limits, pid) // Over the login's, as these were asked for.
				})
			} else {
				r.pid, err = syscall.ForkExec(path, argv, attr)
			}
		})
		unbind()
		m.bindAgain(r.pid, spec.CPUs, err)
		if err == nil && !told {
			proc.LimitStarted(r.pid, m.spec.LoginLimits)
		}
	}
	rec.Started = time.Now()
	if err == nil {
		rec.PID = r.pid
		return
	}
	r.pid, r.ended = 0, true
	rec.Exited, rec.Ended = true, rec.Started
	rec.ExitCode, rec.Error = startError(argv, cmp.Or(m.spec.StartDir, m.spec.WorkDir), err)
	m.durable = true
}

// environ adds the rendezvous port, where reasons and checkpoints are, and the marker where the maker of the spec left it out:
// without it a member whose shim dies could not be found.
func (m *member) environ(r *RankSpec) []string {
	env := make([]string, len(r.Env), len(r.Env)+8)
	copy(env, r.Env)
	env = append(env, statusEnv+"="+filepath.Join(m.spec.Dir, StatusFile))
	if m.spec.CheckpointDir != "" {
		env = append(env, checkpointEnv+"="+m.spec.CheckpointDir)
	}
	if m.spec.Batch {
		env = append(env, rankenv.ProgramsName+"="+selfDir())
	}
	if m.port > 0 {
		env = append(env, "MASTER_PORT="+strconv.Itoa(m.port))
	}
	started := time.Now()
	env = append(env, "SLURM_JOB_START_TIME="+strconv.FormatInt(started.Unix(), 10))
	if m.spec.TimeLimit > 0 {
		env = append(env, "SLURM_JOB_END_TIME="+strconv.FormatInt(started.Add(m.spec.TimeLimit).Unix(), 10))
	}
	if m.spec.Marker != "" && !slices.Contains(env, m.spec.Marker) {
		env = append(env, m.spec.Marker)
	}
	return env
}

func (m *member) credential(sys *syscall.SysProcAttr) {
	if !m.spec.SwitchUser {
		return
	}
	sys.Credential = &syscall.Credential{Uid: m.spec.UID, Gid: m.spec.GID, Groups: m.spec.Groups}
	// Of this thread and so of all that it forks: a set-uid program of the user gains nothing.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		logf("no_new_privs: %v", err)
	}
}

// scriptCommand is what the kernel would run for the script, taken apart here: a script that
// was written a moment ago can't be executed while another fork still has it open for
// writing (ETXTBSY), nor from a file system mounted noexec.
func scriptCommand(path string, args []string) ([]string, error) {
	f, err := openFile(path, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var buf [512]byte
	n, _ := f.Read(buf[:]) // nothing of an empty script: the shell runs it, and ends with 0
	return append(append(shebang(string(buf[:n])), path), args...), nil
}

// Interpreter is the program that a script is run by.
func Interpreter(script string) string { return shebang(script)[0] }

// shebang reads "#! interpreter [one argument]" as the kernel does.
func shebang(text string) []string {
	line, _, _ := strings.Cut(text, "\n")
	line, ok := strings.CutPrefix(line, "#!")
	line = strings.Trim(line, " \t\r")
	if !ok || line == "" {
		return []string{"/bin/sh"}
	}
	i := strings.IndexAny(line, " \t")
	if i < 0 {
		return []string{line}
	}
	return []string{line[:i], strings.Trim(line[i:], " \t")}
}

func startError(argv []string, dir string, err error) (code int, text string) {
	if len(argv) == 0 {
		return exitNotExecutable, fmt.Sprintf("read the script: %v", err)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return exitNotFound, fmt.Sprintf("interpreter %s of the script, or working directory %s, does not exist", argv[0], dir)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return exitNotExecutable, fmt.Sprintf("interpreter %s of the script can not be executed: %v", argv[0], err)
	}
	return exitNotExecutable, fmt.Sprintf("start %s: %v", argv[0], err)
}

// reap takes every ended child: ranks, and orphans that came to us as their subreaper. The
// exits that lie here together become one state.
func (m *member) reap() {
	for {
		var ws syscall.WaitStatus
		var ru syscall.Rusage
		next, session := m.nextEnded()
		m.lookAtEnded()
		pid, err := syscall.Wait4(next, &ws, syscall.WNOHANG, &ru)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
		if pid == m.dump.pid {
			m.dumpEnded()
			continue
		}
		if i := slices.IndexFunc(m.steps, func(p *stepProc) bool { return p.pid == pid }); i >= 0 {
			m.stepEnded(i, ws, &ru)
			continue
		}
		if !slices.ContainsFunc(m.ranks, func(r rank) bool { return r.live() && r.pid == pid }) {
			m.orphanEnded(session, &ru)
			continue
		}
		for i := range m.ranks {
			r := &m.ranks[i]
			if !r.live() || r.pid != pid {
				continue
			}
			if r.pidfd >= 0 {
				_ = unix.Close(r.pidfd)
				r.pidfd = -1
			}
			if r.end == nil {
				r.end = &rankEnd{ws: ws, at: time.Now(), late: m.lateness(r, ws), own: m.mach.Cause() == "" || r.gone ||
					r.decided(ws) && !m.mach.Noticed()}
				r.end.used.add(&ru)
				if m.startEpilog(i) {
					continue // the rank is over with that
				}
			}
			m.ended(i)
		}
	}
}

// nextEnded is the child to wait for now, -1: any. Of ranks that have ended the one that did first comes first. Where
// there are several ranks its session says which of them a process belonged to that none of them has waited for;
// when it was waited for here nothing says it any more.
func (m *member) nextEnded() (pid, session int) {
	if len(m.ranks) < 2 {
		return -1, 0
	}
	if i := m.order.Next(); i >= 0 && m.ranks[i].live() {
		return m.ranks[i].pid, 0
	}
	if pid = proc.EndedChild(); pid == 0 {
		return -1, 0
	}
	s, _ := proc.ReadStat(pid)
	return pid, s.Session
}

// orphanEnded counts what a process has used that came here because its parent ended first: a shell that a signal
// ends has not waited for the program that it ran, whose figures would be nowhere.
func (m *member) orphanEnded(session int, ru *syscall.Rusage) {
	if len(m.ranks) == 0 {
		return
	}
	of := 0 // what has made a session of its own is somebody's
	for i := range m.state.Ranks {
		if session > 0 && m.state.Ranks[i].PID == session {
			of = i
		}
	}
	m.ranks[of].left.add(ru)
}

func (u *used) add(ru *syscall.Rusage) {
	u.CPU += cpuOf(ru)
	u.MaxRSS = max(u.MaxRSS, ru.Maxrss<<10)
}

func cpuOf(ru *syscall.Rusage) time.Duration {
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// reaped is the CPU time of all that this process has ever waited for, and of what they had.
func reaped() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ru); err != nil {
		return 0
	}
	return cpuOf(&ru)
}

// count reads what the member has used, while its groups are there. What ended was reaped: with
// the kernel's count or without, nothing of it is missing.
func (m *member) count() {
	u := proc.AccountOf(m.spec.Place())
	if u.CPU < 0 {
		u.CPU = reaped() - m.reapedBefore
	}
	m.state.Used = &api.MemberUsed{CPU: u.CPU, MemoryPeak: u.Peak}
	for i := range m.ranks {
		if r := &m.ranks[i]; r.end != nil && m.state.Ranks[i].Used != nil {
			m.state.Ranks[i].Used = &api.RankUsed{CPU: r.end.used.CPU + r.left.CPU, MaxRSS: max(r.end.used.MaxRSS, r.left.MaxRSS)}
		}
	}
}

// startEpilog runs the site's programs after a rank, as its process from now on; false: there are none.
func (m *member) startEpilog(i int) bool {
	path, argv := m.spec.TaskHooks.After()
	if argv == nil || len(m.files) == 0 {
		return false
	}
	spec, r, f := &m.spec.Ranks[i], &m.ranks[i], m.files[i]
	sys := &syscall.SysProcAttr{Setsid: true, PidFD: &r.pidfd}
	m.credential(sys)
	pid, err := m.fork(path, argv, spec.CPUs, m.inPrivate, &syscall.ProcAttr{Dir: cmp.Or(m.spec.StartDir, m.spec.WorkDir),
		Env:   m.environ(spec),
		Files: []uintptr{uintptr(f.in), uintptr(f.out), uintptr(f.err)}, Sys: sys})
	if err != nil {
		logf("task epilog of rank %d: %v", spec.Rank, err)
		return false
	}
	r.pid = pid
	m.order.Add(i, r.pidfd)
	return true
}

// fork starts a process of the member on these CPUs (none: all of the member's), with the mounts that enter shows.
func (m *member) fork(path string, argv []string, on cpus.Set, enter func() (back func(), err error), attr *syscall.ProcAttr) (pid int,
	err error) {
	if err := m.box.Enter(attr.Sys); err != nil {
		return 0, err
	}
	defer m.box.Leave()
	defer m.forFork()()
	defer m.bind(on)()
	back, err := enter()
	if err == nil {
		pid, err = syscall.ForkExec(path, argv, attr)
	}
	back()
	m.bindAgain(pid, on, err)
	if err == nil {
		proc.LimitStarted(pid, m.spec.LoginLimits)
	}
	return pid, err
}

func (m *member) ended(i int) {
	r, rec := &m.ranks[i], &m.state.Ranks[i]
	r.ended = true
	ws := r.end.ws
	rec.Late = r.end.late
	rec.Exited, rec.Ended, rec.ExitCode, rec.Used = true, r.end.at, ws.ExitStatus(), (*api.RankUsed)(&r.end.used)
	if ws.Signaled() {
		rec.Signal = int(ws.Signal())
		rec.ExitCode = 128 + rec.Signal
	}
	m.shortage(rec)
	rec.Own, rec.ProgramFailed = r.end.own, r.failed && !r.end.own
	m.durable = true
	m.exits = append(m.exits, rec.Rank)
}
