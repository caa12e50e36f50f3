package launcher

import (
	"os"
	"path/filepath"
	"syscall"

	"gangd/pkg/node/sitehook"
	"gangd/pkg/wire/stepwire"
)

// epilog is what is run when a task has ended, with the task's environment and files.
type epilog struct {
	path     string
	argv     []string
	dir      string
	env      []string
	out, err *os.File
}

// hooks are those around each task here; nil: none.
func (l *launcher) hooks(dir string) *sitehook.Task {
	b := l.body
	if l.start.TaskHooks == nil && b.TaskProlog == "" && b.TaskEpilog == "" {
		return nil
	}
	t := sitehook.Task{Timeout: sitehook.TaskTimeout}
	if l.start.TaskHooks != nil {
		t = *l.start.TaskHooks
	}
	t.UserProlog, t.UserEpilog = below(dir, b.TaskProlog), below(dir, b.TaskEpilog)
	return &t
}

func below(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func newEpilog(hooks *sitehook.Task, dir string, env []string, files *stdio) *epilog {
	path, argv := hooks.After()
	if argv == nil {
		return nil
	}
	e := &epilog{path: path, argv: argv, dir: dir, env: env}
	var err error
	if e.out, err = dup(files.out); err == nil {
		e.err, err = dup(files.err)
	}
	if err != nil {
		e.close()
		return nil
	}
	return e
}

func (e *epilog) close() {
	for _, f := range []*os.File{e.out, e.err} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// start runs it as a child of this process, which waits for it as for a task.
func (e *epilog) start() (pid int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	return syscall.ForkExec(e.path, e.argv, &syscall.ProcAttr{Dir: e.dir, Env: e.env, Sys: &syscall.SysProcAttr{Setsid: true},
		Files: []uintptr{null.Fd(), e.out.Fd(), e.err.Fd()}})
}

func cpuSeconds(ru *syscall.Rusage) float64 { return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9 }

// after takes in the end of a task, or of its epilog. It is true while its epilog runs. l.mu is held.
func (l *launcher) after(t *task, ws syscall.WaitStatus, ru *syscall.Rusage) (more bool) {
	if t.done {
		return false
	}
	t.done = true
	t.rss = ru.Maxrss << 10
	t.cpu = cpuSeconds(ru)
	t.ended = stepwire.Ended{Code: ws.ExitStatus()}
	if ws.Signaled() {
		t.ended = stepwire.Ended{Code: 128 + int(ws.Signal()), Signal: int(ws.Signal()), Core: ws.CoreDump()}
	}
	if t.epilog == nil {
		return false
	}
	defer t.epilog.close()
	pid, err := t.epilog.start()
	if err != nil {
		return false
	}
	t.pid = pid
	return true
}
