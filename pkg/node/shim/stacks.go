package shim

import (
	"bytes"
	"encoding/json"
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

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/stacks"
	"gangd/pkg/node/proc"
)

const (
	wordFD      = 3        // where the word to write comes from
	resultFD    = 4        // where the look goes, JSON of [api.MemberStacks]
	dumpThreads = 64       // of one process that are shown
	dumpBytes   = 64 << 10 // of what one debugger says
	// debuggerTime bounds one debugger: py-spy takes 0.1 to 1 s, gdb with the symbols of a
	// framework some seconds.
	debuggerTime = 3 * time.Second
	// debuggerWait is how long the result waits for debuggers, once the word has come.
	debuggerWait = 150 * time.Millisecond
)

// dumpTarget is one process with what only root could read of it.
type dumpTarget struct {
	rank, pid int
	kernel    map[string]string // kernel stack by thread; empty without root
}

// onlyLook, as the first argument of a dump, has it write nothing to logs.
const onlyLook = "look"

// Dump is `gshim dump [look] RANK:PID|sSTEP:PID...`, the spec on its standard input: it looks where the processes are and says it,
// and takes the stacks of ranks, which it writes to their logs when it is told to. As root it reads the kernel's own stacks, which
// no user has a hand in, and then is the user for all the rest.
func Dump(args []string) int {
	s, err := specFromInput()
	if err != nil {
		return fail(err)
	}
	look := len(args) > 0 && args[0] == onlyLook
	if look {
		args = args[1:]
	}
	var all []candidate
	for _, a := range args {
		p, err := dumpArg(a)
		if err != nil {
			return fail(err)
		}
		all = append(all, p)
	}
	var procs []dumpTarget
	if !look {
		procs = dumpTargets(all)
	}
	creds := s.Credentials()
	if err := creds.become(); err != nil {
		return fail(err)
	}
	for i := range all {
		p := &all[i]
		st, _ := proc.ReadStat(p.PID)
		p.parent, p.exe = st.PPID, exeOf(p.PID)
		if p.Rank < 0 {
			p.Task, _ = strconv.Atoi(proc.Variable(p.PID, "SLURM_PROCID"))
		}
	}
	l := newLooker(&s, all)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		l.look() // before debuggers, which stop what they look at
	}()
	select {
	case <-looked:
	case <-time.After(soonTime): // a stop may not wait for more
		if status := sayResult(l.result()); status != 0 {
			return status
		}
		<-looked
	}
	if look {
		l.ask()
		return sayResult(l.result())
	}
	return dumpToLogs(&s, procs, l)
}

// sayResult writes the look where the shim reads it.
func sayResult(m *api.MemberStacks) int {
	b, err := json.Marshal(m)
	if err != nil {
		return fail(err)
	}
	if _, err := unix.Write(resultFD, b); err != nil {
		return fail(err)
	}
	return 0
}

// dumpArg reads RANK:PID, or sSTEP:PID of a process of a step.
func dumpArg(a string) (p candidate, err error) {
	who, pid, ok := strings.Cut(a, ":")
	step, ofStep := strings.CutPrefix(who, "s")
	n, err1 := strconv.Atoi(step)
	p.PID, err = strconv.Atoi(pid)
	if !ok || err1 != nil || err != nil {
		return p, fmt.Errorf("dump: want RANK:PID or sSTEP:PID, got %q", a)
	}
	if p.Rank = n; ofStep {
		p.Rank, p.Step = -1, n
	}
	return p, nil
}

// dumpTargets are the processes of ranks whose stacks are written to logs.
func dumpTargets(all []candidate) (procs []dumpTarget) {
	count := map[int]int{}
	for i := range all {
		p := &all[i]
		if p.Rank < 0 || count[p.Rank] == dumpProcesses {
			continue
		}
		count[p.Rank]++
		d := dumpTarget{rank: p.Rank, pid: p.PID}
		if os.Geteuid() == 0 {
			d.kernel = kernelStacks(p.PID)
		}
		procs = append(procs, d)
	}
	return procs
}

// dumpToLogs takes the stacks, and writes them when the word comes.
func dumpToLogs(s *Spec, procs []dumpTarget, l *looker) int {
	if status := sayResult(l.result()); status != 0 {
		return status
	}
	var logs []*stackLog
	var looking sync.WaitGroup
	looking.Go(l.ask)
	for i := range s.Ranks {
		mine := slices.DeleteFunc(slices.Clone(procs), func(d dumpTarget) bool { return d.rank != s.Ranks[i].Rank })
		if len(mine) == 0 {
			continue
		}
		log := &stackLog{spec: s, rank: &s.Ranks[i]}
		logs = append(logs, log)
		for k := range mine {
			log.say(fromKernel(&mine[k]))
		}
		looking.Go(func() {
			for k := range mine {
				if out := fromDebugger(log, mine[k].pid); out != nil {
					l.put(mine[k].pid, out)
				}
			}
		})
	}
	if n, _ := unix.Read(wordFD, make([]byte, 1)); n != 1 {
		_ = unix.Kill(0, unix.SIGKILL) // nothing is to be written; the debuggers end with this process
	}
	for _, log := range logs {
		log.open()
	}
	waitUntil(&looking, time.Now().Add(debuggerWait))
	status := sayResult(l.result()) // with what debuggers have found by now
	looking.Wait()
	for _, log := range logs {
		log.close()
	}
	return status
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
	b := proc.CommandLine(pid)
	if len(b) == 0 {
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

// fromDebugger asks py-spy for a Python process and eu-stack or gdb for any other, where the rank's own
// PATH has them, and gives the threads that it reads out of the answer. They run as the user; a kernel that lets only
// parents trace says so in their words.
func fromDebugger(l *stackLog, pid int) []stacks.Thread {
	argv := debugger(l.rank, pid)
	if argv == nil {
		return nil
	}
	// gdb must not fetch symbols from the network.
	out, status := runDebugger(argv, append(slices.Clone(l.rank.Env), "DEBUGINFOD_URLS="))
	if len(out) > dumpBytes {
		out = append(out[:dumpBytes:dumpBytes], "\n... cut\n"...)
	}
	l.say("---- " + strings.Join(argv, " ") + "\n" + string(out) + status)
	if filepath.Base(argv[0]) == "py-spy" {
		return stacks.PySpy(string(out))
	}
	return stacks.Native(string(out), pid)
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
		return out, fmt.Sprintf("(cut off after %s)\n", when.Words(debuggerTime))
	}
	if ws.ExitStatus() != 0 {
		return out, fmt.Sprintf("(exit status %d)\n", ws.ExitStatus())
	}
	return out, ""
}

// debugger is the command for one process, nil where there is none. A stopped process can't
// be attached to without waiting for it to be continued: for those py-spy only reads, and
// eu-stack and gdb are left out.
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
	if strings.HasPrefix(state, "T") || strings.HasPrefix(state, "D") {
		return nil
	}
	if eu := lookPath(r, "eu-stack"); eu != "" { // a tenth of what gdb takes
		return []string{eu, "-p", p, "-n", "64"}
	}
	if gdb := lookPath(r, "gdb"); gdb != "" {
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
