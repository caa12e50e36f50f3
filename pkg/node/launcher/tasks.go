package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api/rlimit"
	"gangd/pkg/core/container"
	"gangd/pkg/core/rankenv"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/jobapi"
	"gangd/pkg/wire/limits"
	"gangd/pkg/wire/stepwire"
)

// task is one process slot of the step.
type task struct {
	number, local int
	pid           int // 0: could not be started
	pidfd         int // until its end was seen, -1: none
	seen          seen
	in            *feeder
	pty           *os.File
	gone          bool
	ended         stepwire.Ended
	rss           int64
	cpu           float64
	aborted       string    // what it said when it aborted the step; empty: it did not
	abortedAt     time.Time // when
	done          bool      // the task itself has ended
	epilog        *epilog   // to be run when it has ended; nil: none
}

// seen is when a task ended, as far as this process can tell.
type seen struct {
	at   time.Time // zero: not yet
	late time.Duration
	own  bool // nothing of the step was told to end before
}

func (l *launcher) launch() {
	b := l.body
	node := &b.Reply.Nodes[b.Part]
	if l.start.Container == nil && valueOf(b.Env, "TMPDIR") != "" {
		var why string
		if b.Env, why = shim.Temporary(b.Env); why != "" {
			for line := range strings.SplitSeq(why, "\n") {
				_ = l.conn.Send(stepwire.Say, 0, []byte(line))
			}
		}
	}
	env := rankenv.Step{Reply: &b.Reply, Part: b.Part, Env: b.Env, Host: b.Client.Host, Port: b.Client.Port, Name: b.Client.JobName,
		Extra: b.Client.Extra, Marker: l.start.Marker, Status: l.start.Status, PerTask: b.PerTask, CardsOf: b.CardsOf, Sockets: l.sockets,
		Watchdog:      l.start.Watchdog,
		CheckpointDir: l.start.CheckpointDir, Checkpoints: l.handed(node.Tasks), CardNames: l.start.CardNames}
	if in := l.start.InImage; in != nil {
		if env.Image = in.Name; valueOf(b.Env, container.EnvName) != in.Name { // else the client runs in it, too
			env.Env = container.Environ(b.Env, in.Env, in.Keep)
		}
	}
	sets, bindEnv, bad := l.bindings(len(node.Tasks))
	env.Extra = append(slices.Clone(env.Extra), bindEnv...)
	envs := env.Environ()
	if why := l.start.NoSockets; why != "" {
		_ = l.conn.Send(stepwire.Say, 0, fmt.Appendf(nil, "gstep: warning: the tasks on %s have no sockets: %s; beats, checkpoints and "+
			"barriers fail there", l.start.Node, why))
	}
	if l.start.OtherMounts {
		_ = l.conn.Send(stepwire.Say, 0, fmt.Appendf(nil, "gstep: %s: the container %s is there, with the mounts of the step that made it: "+
			"--container-mounts is ignored", l.start.Node, l.start.InImage.Container))
	}
	unix.Umask(b.Umask)
	dir := l.enter(b.Dir)
	l.servePMI()
	l.mu.Lock()
	defer l.mu.Unlock()
	for local, number := range node.Tasks {
		t := &task{number: number, local: local, pidfd: -1}
		l.tasks = append(l.tasks, t)
		if l.stopping || l.draining { // the others have been told to end: nobody would tell this one

			t.ended, t.gone = stepwire.Ended{Code: 128 + 15, Signal: 15}, true
		} else if err := l.startBound(t, sets, bad, dir, append(envs[local], stepMark())); err != nil {
			t.ended, t.gone = startError(err), true
			_ = l.conn.Send(stepwire.Errors, uint32(number), []byte(l.errorLine(t.ended.Error)))
		}
		if t.gone {
			_ = l.conn.SendJSON(stepwire.Exit, uint32(number), t.ended)
			l.tellEnded(number)
		}
	}
	if !slices.ContainsFunc(l.tasks, func(t *task) bool { return !t.gone }) {
		l.pmix.close()
	}
	l.say(shim.LauncherWord{Launched: true})
	_ = l.conn.Send(stepwire.Started, 0, nil)
}

// errorLine is a mistake as the client's words have it: tools of Slurm's read the beginning.
func (l *launcher) errorLine(text string) string {
	if l.body.Own {
		return l.start.Node + ": error: " + strings.TrimPrefix(text, "execve(): ") + "\n"
	}
	return "slurmstepd: error: " + text + "\n"
}

// sockets are those that the shim made for a task.
func (l *launcher) sockets(task int) (notify, http string) {
	if l.start.Dir == "" || l.start.NoSockets != "" {
		return "", ""
	}
	return jobapi.Reachable(l.start.Dir, jobapi.TaskName(jobapi.NotifyPrefix, l.start.ID, task)),
		jobapi.Reachable(l.start.Dir, jobapi.TaskName(jobapi.SocketPrefix, l.start.ID, task))
}

// handed are the checkpoints that tasks start from. The node has them before the step begins.
func (l *launcher) handed(tasks []int) map[int]rankenv.Checkpoint {
	if l.start.From == nil {
		return nil
	}
	out := map[int]rankenv.Checkpoint{}
	for _, t := range tasks {
		c := rankenv.Checkpoint{File: filepath.Join(l.start.Dir, jobapi.TaskName(jobapi.CheckPrefix, l.start.ID, t))}
		if data, err := jobapi.ReadSmall(c.File); err == nil {
			c.Data = data
		}
		out[t] = c
	}
	return out
}

// tellEnded has the shim know that nobody is to wait for a word of a task any more.
func (l *launcher) tellEnded(task int) {
	if l.start.Dir != "" && l.start.NoSockets == "" {
		l.say(shim.LauncherWord{TaskEnded: &task})
	}
}

// stepMark is the mark that the shim gave: it finds what a killed launcher leaves.
func stepMark() string { return "GANG_STEP_MARK=" + os.Getenv("GANG_STEP_MARK") }

// enter is where the tasks run. A directory that is not on this node is no reason to fail,
// as in Slurm.
func (l *launcher) enter(dir string) string {
	if err := os.Chdir(dir); err != nil && l.body.Own {
		_ = l.conn.Send(stepwire.Say, 0, fmt.Appendf(nil, "%s: error: the working directory %s can't be entered: %s; the tasks run in /tmp",
			l.start.Node, dir, capital(err)))
		return "/tmp"
	} else if err != nil {
		_ = l.conn.Send(stepwire.Say, 0, fmt.Appendf(nil, "slurmstepd: error: couldn't chdir to `%s': %s: going to /tmp instead", dir,
			capital(err)))
		return "/tmp"
	}
	return dir
}

// capital is an error as libc writes it.
func capital(err error) string {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return err.Error()
	}
	s := no.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}

// startError is how Slurm ends a task that it could not start: with the error's number.
func startError(err error) stepwire.Ended {
	var no syscall.Errno
	code := 1
	if errors.As(err, &no) {
		code = int(no)
	}
	var s *startFailure
	text := err.Error()
	if errors.As(err, &s) {
		text = fmt.Sprintf("execve(): %s: %s", s.path, capital(err))
	}
	return stepwire.Ended{Code: code, Error: text}
}

type startFailure struct {
	path string
	err  error
}

func (s *startFailure) Error() string { return s.path + ": " + s.err.Error() }
func (s *startFailure) Unwrap() error { return s.err }

// argv is what a task runs, with %t and %o of --multi-prog filled in.
func (l *launcher) argv(number int) []string {
	for i := range l.body.Programs {
		p := &l.body.Programs[i]
		at := slices.Index(p.Tasks, number)
		if len(p.Tasks) > 0 && at < 0 {
			continue
		}
		if !p.Expand {
			return p.Argv
		}
		if at < 0 {
			at = number // of all tasks
		}
		out := make([]string, len(p.Argv))
		r := strings.NewReplacer("%t", fmt.Sprint(number), "%o", fmt.Sprint(at))
		for i, a := range p.Argv {
			out[i] = r.Replace(a)
		}
		return out
	}
	return nil
}

// startTask forks one task; l.mu is held.
func (l *launcher) startTask(t *task, dir string, env []string) error {
	argv := l.argv(t.number)
	if len(argv) == 0 {
		return errors.New("no program is given for this task")
	}
	path, err := lookUp(argv[0], dir, env)
	if err != nil {
		return &startFailure{argv[0], err}
	}
	files, err := l.open(t)
	if err != nil {
		return err
	}
	defer files.close()
	sys := &syscall.SysProcAttr{Setsid: true}
	if files.terminal {
		sys.Setctty, sys.Ctty = true, 0
		env = setEnv(env, l.body.Term)
	}
	if l.body.RemapRoot {
		remapRoot(sys)
		if l.start.InImage != nil && (l.start.Container == nil || !l.start.Container.Home) && unix.Access(rootsHome, unix.W_OK|unix.X_OK) == nil {
			env = setEnv(env, []string{"HOME=" + rootsHome})
		}
	}
	inherited := []uintptr{files.in.Fd(), files.out.Fd(), files.err.Fd()}
	if l.pmi != nil {
		f, more, err := l.pmi.Task(t.number, len(inherited))
		if err != nil {
			files.abandon()
			return err
		}
		defer f.Close()
		inherited, env = append(inherited, f.Fd()), setEnv(env, more)
	}
	if l.pmix != nil {
		env = setEnv(env, l.pmix.envs[t.local])
	}
	hooks := l.hooks(dir)
	path, argv = hooks.Before(path, argv)
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Sys: sys, Files: inherited}
	soft := l.limits()
	var pid int
	set := func(pid int) { limits.Set(soft, pid) }
	limits.Around(soft, func() {
		pid, err = proc.ForkExecTold(path, argv, attr, rankenv.TaskPID, set)
		if errors.Is(err, syscall.ENOEXEC) { // a script without a first line: the shell's, as execvp has it
			argv = append([]string{"/bin/sh", path}, argv[1:]...)
			pid, err = proc.ForkExecTold(argv[0], argv, attr, rankenv.TaskPID, set)
		}
	})
	if err != nil {
		files.abandon()
		return &startFailure{argv[0], l.remapFailure(err)}
	}
	t.pid = pid
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		t.pidfd = fd
		l.order.Add(len(l.tasks)-1, fd)
	}
	t.epilog = newEpilog(hooks, dir, env, files)
	l.wire(t, files)
	return nil
}

// rootsHome is the home of one who is root, in an image that is its user's.
const rootsHome = "/root"

// remapRoot has a task be root where its user is the only one: it changes modes and owners of what is its user's anyway, as
// installers of packages want it, and may do nothing else that the user may not.
func remapRoot(sys *syscall.SysProcAttr) {
	sys.Cloneflags |= unix.CLONE_NEWUSER
	sys.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
}

// remapFailure says of an error that may be the node's word on user namespaces that it may be.
func (l *launcher) remapFailure(err error) error {
	if l.body.RemapRoot && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOSYS)) {
		return fmt.Errorf("as root in a user namespace, which this node may not allow (user.max_user_namespaces, AppArmor): %w", err)
	}
	return err
}

// limits are the soft limits of a task: of the client's those that its user or the site passes on.
func (l *launcher) limits() rlimit.Soft {
	if l.body.LimitsAsked {
		return l.body.Limits
	}
	some, err := l.body.Limits.Choose(l.start.Propagate)
	if err != nil { // which the site's configuration was checked for
		return nil
	}
	return some
}

// lookUp finds a program as a shell in the task's place would.
func lookUp(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, executable(name)
	}
	err := error(syscall.ENOENT)
	for _, d := range filepath.SplitList(valueOf(env, "PATH")) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		p := filepath.Join(d, name)
		e := executable(p)
		if e == nil {
			return p, nil
		}
		if errors.Is(e, syscall.EACCES) {
			err = e
		}
	}
	return "", err
}

func executable(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return syscall.EACCES
	}
	return unix.Access(path, unix.X_OK)
}

func valueOf(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

func setEnv(env, more []string) []string {
	for _, kv := range more {
		name, _, _ := strings.Cut(kv, "=")
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		env = append(env, kv)
	}
	return env
}

// lingerFor is how long what tasks have left may go on before it is ended, so that a child
// that was just about to exit does so by itself.
const lingerFor = 100 * time.Millisecond

// reap waits for all children, those that tasks have left among them, and closes children
// when there is none.
func (l *launcher) reap() {
	defer close(l.children)
	runtime.LockOSThread() // which is the one that waits for a CPU
	for {
		var ws syscall.WaitStatus
		var ru syscall.Rusage
		l.order.Sleeps()
		_ = unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil) // an error is that of the next call too
		l.look()
		pid, err := syscall.Wait4(-1, &ws, 0, &ru)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return
		}
		if ws.Exited() || ws.Signaled() {
			l.ended(pid, ws, &ru)
		}
	}
}

// look notes which tasks have ended, first to last; wait(2) gives them in the order in which they were started. On a machine with
// more to do than it has CPUs the sockets of a task are closed long before it has ended: peers may see that, and leave sooner.
func (l *launcher) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := l.order.Next(); at >= 0; at = l.order.Next() {
		t := l.tasks[at]
		if t.pidfd < 0 {
			continue // listed before it was closed
		}
		t.seen = seen{time.Now(), l.order.Late(), !l.stopping && !l.draining}
		if proc.Crowded() {
			t.seen.late = max(t.seen.late, proc.KeptWaiting(t.pid))
		}
		_ = unix.Close(t.pidfd)
		t.pidfd = -1
		l.sequence = append(l.sequence, t)
	}
}

func (l *launcher) ended(pid int, ws syscall.WaitStatus, ru *syscall.Rusage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	running, own := 0, false
	for _, t := range l.tasks {
		if t.pid == pid && !t.gone {
			own = true
			if l.after(t, ws, ru) {
				running++
				continue
			}
			t.gone = true
			if t.in != nil {
				t.in.close()
			}
			number, end := t.number, t.ended
			l.tellEnded(number)
			l.outputs.Go(func() { _ = l.conn.SendJSON(stepwire.Exit, uint32(number), end) }) // the client may be slow to read
		}
		if !t.gone {
			running++
		}
	}
	if !own && !l.pmix.is(pid) { // what came here because the process that should have waited for it had ended
		l.leftRSS = max(l.leftRSS, ru.Maxrss<<10)
		l.leftCPU += cpuSeconds(ru)
	}
	if running == 0 {
		l.pmix.close()
	}
	if running == 0 && l.killer == nil && !l.draining {
		l.killer = time.AfterFunc(lingerFor, l.kill)
	}
}
