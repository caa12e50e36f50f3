package shim

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	wordFD      = 3        // where the word to write comes from
	dumpThreads = 64       // of one process that are shown
	dumpBytes   = 64 << 10 // of what one debugger says
	// debuggerTime bounds one debugger: py-spy takes 0.1 to 1 s, gdb with the symbols of a
	// framework some seconds.
	debuggerTime = 3 * time.Second
)

// dumpTarget is one process with what only root could read of it.
type dumpTarget struct {
	rank, pid int
	kernel    map[string]string // kernel stack by thread; empty without root
}

// Dump is `gshim dump RANK:PID...`, the spec on its standard input: it takes the stacks of
// the processes, and writes them to the logs of their ranks when it is told to. As root it reads the kernel's own stacks, which
// no user has a hand in, and then is the user for all the rest.
func Dump(args []string) int {
	s, err := specFromInput()
	if err != nil {
		return fail(err)
	}
	var procs []dumpTarget
	for _, a := range args {
		rank, pid, ok := strings.Cut(a, ":")
		r, err1 := strconv.Atoi(rank)
		p, err2 := strconv.Atoi(pid)
		if !ok || err1 != nil || err2 != nil {
			return fail(fmt.Errorf("dump: want RANK:PID, got %q", a))
		}
		d := dumpTarget{rank: r, pid: p}
		if os.Geteuid() == 0 {
			d.kernel = kernelStacks(p)
		}
		procs = append(procs, d)
	}
	creds := s.Credentials()
	if err := creds.become(); err != nil {
		return fail(err)
	}
	var logs []*stackLog
	var looking sync.WaitGroup
	for i := range s.Ranks {
		mine := slices.DeleteFunc(slices.Clone(procs), func(d dumpTarget) bool { return d.rank != s.Ranks[i].Rank })
		if len(mine) == 0 {
			continue
		}
		l := &stackLog{spec: &s, rank: &s.Ranks[i]}
		logs = append(logs, l)
		for k := range mine {
			l.say(fromKernel(&mine[k]))
		}
		looking.Go(func() {
			for k := range mine {
				fromDebugger(l, mine[k].pid)
			}
		})
	}
	if n, _ := unix.Read(wordFD, make([]byte, 1)); n != 1 {
		_ = unix.Kill(0, unix.SIGKILL) // nothing is to be written; the debuggers end with this process
	}
	for _, l := range logs {
		l.open()
	}
	looking.Wait()
	for _, l := range logs {
		l.close()
	}
	return 0
}

// stackLog is what there is to write for one rank: kept until the word comes, written at
// once from then on, so that a process that is cut off has written what it had.
type stackLog struct {
	spec *Spec
	rank *RankSpec
	mu   sync.Mutex
	kept bytes.Buffer
	file *os.File // nil: not yet, or it can't be opened
}

func (l *stackLog) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_, _ = l.file.WriteString(text)
		return
	}
	l.kept.WriteString(text)
}

func (l *stackLog) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.OpenFile(l.rank.Output, os.O_WRONLY|os.O_APPEND|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	l.file = f
	fmt.Fprintf(f, "\n==== gangd: stacks of rank %d on %s before it is stopped (job %d epoch %d, %s) ====\n%s",
		l.rank.Rank, l.spec.Node, l.spec.Job, l.spec.Epoch, time.Now().UTC().Format(time.RFC3339), l.kept.Bytes())
}

func (l *stackLog) close() {
	l.say(fmt.Sprintf("==== gangd: end of the stacks of rank %d ====\n\n", l.rank.Rank))
}

// kernelStacks reads where in the kernel the threads of a process are.
func kernelStacks(pid int) map[string]string {
	out := map[string]string{}
	for _, t := range threads(pid) {
		if b, err := os.ReadFile(taskFile(pid, t, "stack")); err == nil {
			out[t] = strings.TrimSpace(string(b))
		}
	}
	return out
}

func threads(pid int) []string {
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries[:min(len(entries), dumpThreads)] {
		out = append(out, e.Name())
	}
	return out
}

func taskFile(pid int, thread, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), "task", thread, name)
}

// fromKernel is what /proc says of a process and its threads.
func fromKernel(d *dumpTarget) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---- process %d: %s\n", d.pid, commandLine(d.pid))
	for _, t := range threads(d.pid) {
		status := fieldsOf(taskFile(d.pid, t, "status"), "Name", "State")
		fmt.Fprintf(&b, "thread %s %s, state %s, waits in %s, system call %s\n", t, status["Name"], status["State"],
			word(taskFile(d.pid, t, "wchan")), word(taskFile(d.pid, t, "syscall")))
		if k := d.kernel[t]; k != "" {
			b.WriteString("    " + strings.ReplaceAll(k, "\n", "\n    ") + "\n")
		}
	}
	return b.String()
}

// commandLine comes from the process itself: nothing in it may reach a terminal as a command.
func commandLine(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(b) == 0 {
		return "(no command line)"
	}
	text := strings.TrimRight(string(bytes.ReplaceAll(b[:min(len(b), 1024)], []byte{0}, []byte{' '})), " ")
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, text)
}

func fieldsOf(path string, names ...string) map[string]string {
	out := map[string]string{}
	b, _ := os.ReadFile(path)
	for line := range strings.SplitSeq(string(b), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && slices.Contains(names, name) {
			out[name] = strings.TrimSpace(value)
		}
	}
	return out
}

// word is the first word of a small file, - where there is none: wchan is 0 for a thread
// that runs, syscall may be closed to us.
func word(path string) string {
	b, _ := os.ReadFile(path)
	f := strings.Fields(string(b))
	if len(f) == 0 || f[0] == "0" && filepath.Base(path) == "wchan" {
		return "-"
	}
	return f[0]
}

// fromDebugger asks py-spy for a Python process and gdb for any other, where the rank's own
// PATH has them. They run as the user; a kernel that lets only parents trace says so in
// their words.
func fromDebugger(l *stackLog, pid int) {
	argv := debugger(l.rank, pid)
	if argv == nil {
		return
	}
	// gdb must not fetch symbols from the network.
	out, status := runDebugger(argv, append(slices.Clone(l.rank.Env), "DEBUGINFOD_URLS="))
	if len(out) > dumpBytes {
		out = append(out[:dumpBytes:dumpBytes], "\n... cut\n"...)
	}
	l.say("---- " + strings.Join(argv, " ") + "\n" + string(out) + status)
}

// runDebugger runs it in the group of this process, which the shim ends as a whole.
func runDebugger(argv, env []string) (out []byte, status string) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err.Error() + "\n"
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err.Error() + "\n"
	}
	defer r.Close()
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Dir: "/", Env: env, Files: []uintptr{null.Fd(), w.Fd(), w.Fd()}})
	_ = w.Close()
	if err != nil {
		return nil, err.Error() + "\n"
	}
	cut := time.AfterFunc(debuggerTime, func() {
		_ = unix.Kill(pid, unix.SIGKILL)
		_ = r.SetReadDeadline(time.Now()) // something that it started may hold the pipe
	})
	out, _ = io.ReadAll(io.LimitReader(r, 4*dumpBytes))
	_ = r.Close() // a debugger that has more to say than that ends of it
	ws, _ := waitPID(pid)
	if !cut.Stop() {
		return out, fmt.Sprintf("(cut off after %s)\n", debuggerTime)
	}
	if ws.ExitStatus() != 0 {
		return out, fmt.Sprintf("(exit status %d)\n", ws.ExitStatus())
	}
	return out, ""
}

// debugger is the command for one process, nil where there is none. A stopped process can't
// be attached to without waiting for it to be continued: for those py-spy only reads, and
// gdb is left out.
func debugger(r *RankSpec, pid int) []string {
	exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return nil
	}
	p := strconv.Itoa(pid)
	if strings.HasPrefix(filepath.Base(exe), "python") {
		if spy := lookPath(r, "py-spy"); spy != "" {
			return []string{spy, "dump", "--nonblocking", "--pid", p}
		}
	}
	if isShell(filepath.Base(exe)) { // its children are what it waits for
		return nil
	}
	state := fieldsOf(taskFile(pid, p, "status"), "State")["State"]
	if gdb := lookPath(r, "gdb"); gdb != "" && !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "D") {
		return []string{gdb, "-p", p, "-batch", "-nx", "-ex", "set pagination off", "-ex", "thread apply all bt 50"}
	}
	return nil
}

// lookPath finds a program on the PATH of the rank: a virtual environment has its own py-spy.
func lookPath(r *RankSpec, name string) string {
	for _, e := range r.Env {
		path, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for dir := range strings.SplitSeq(path, ":") {
			file := filepath.Join(dir, name)
			if st, err := os.Stat(file); err == nil && filepath.IsAbs(dir) && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
				return file
			}
		}
	}
	return ""
}
