package shim

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/stacks"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/pystack"
)

// A look at the processes of a member: where the leading ones of each rank and task are, seen several times, so that who moves is
// told from who waits. It is taken by `gshim dump`, which is the user by then, and may hang on any of them: each is
// looked at by itself, and what is there when the time is over is told.

// looks are when a process is looked at, from the first time on.
var looks = []time.Duration{0, 15 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, 130 * time.Millisecond}

// lookTime bounds a look, and askTime what it takes longer to ask others for frames that could not be read.
const (
	lookTime = 700 * time.Millisecond // it is over sooner where the machine is not overloaded
	soonTime = 60 * time.Millisecond  // after which what there is is told, in case that there is no time for more
	askTime  = 250 * time.Millisecond
)

// stacksSignal is the variable by which a program says that Python's faulthandler answers to a signal: "USR1".
const stacksSignal = "GANG_STACKS_SIGNAL"

// candidate is a process of a rank or of a task, as a dump is told of it, that may stand for it.
type candidate struct {
	api.StackProcess
	parent int
	exe    string // base name of its program
	kind   string
}

// looker takes a look.
type looker struct {
	spec *Spec
	mu   sync.Mutex
	all  []*leading
}

// leading is a process that stands for its rank.
type leading struct {
	candidate
	// Under the looker's lock.
	main   []api.ThreadStack
	others map[int][]api.ThreadStack // threads in which Python runs, by number
	order  []int                     // of those
	python bool                      // its program is one
	blind  bool                      // no frames could be read
}

// newLooker finds out who is to be looked at.
func newLooker(spec *Spec, procs []candidate) *looker {
	l := &looker{spec: spec}
	for _, p := range leads(procs) {
		l.all = append(l.all, &leading{candidate: p, others: map[int][]api.ThreadStack{}})
	}
	return l
}

// look takes it; over is closed where it is not to be waited for any longer.
func (l *looker) look() {
	end := time.Now().Add(lookTime)
	var wg sync.WaitGroup
	for _, p := range l.all {
		wg.Go(func() {
			begin := time.Now()
			var py *pystack.Process
			for i, at := range looks {
				time.Sleep(time.Until(begin.Add(at)))
				if i > 0 && time.Now().After(end) {
					return
				}
				l.state(p)
				if i == 0 {
					py = l.interpreter(p)
				}
				l.frames(p, py)
			}
		})
	}
	waitUntil(&wg, end)
}

// waitUntil waits for a group, but not for ever.
func waitUntil(wg *sync.WaitGroup, end time.Time) {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Until(end)):
	}
}

// state begins a look with what the kernel says. It comes before what needs the process's memory: that may be kept from everybody.
func (l *looker) state(p *leading) {
	main := seenThread(p.PID, p.PID)
	l.mu.Lock()
	defer l.mu.Unlock()
	p.main = append(p.main, main)
}

// interpreter finds Python in a process, nil where there is none that can be read.
func (l *looker) interpreter(p *leading) *pystack.Process {
	py, err := pystack.Find(p.PID)
	l.mu.Lock()
	defer l.mu.Unlock()
	p.blind = err != nil
	p.python = strings.HasPrefix(p.exe, "python") || err == nil || !errors.Is(err, pystack.ErrNoPython) && !errors.Is(err, fs.ErrPermission)
	return py
}

// frames adds where Python is to the newest look.
func (l *looker) frames(p *leading, py *pystack.Process) {
	if py == nil {
		return
	}
	threads, err := py.Threads(stacks.Tells)
	if err != nil {
		return
	}
	others := map[int]api.ThreadStack{}
	for i := range threads {
		t := &threads[i]
		if t.TID > 0 && !t.Main && len(others) < dumpThreads {
			others[t.TID] = stacks.ThreadOf(seenThread(p.PID, t.TID), callsOf(t))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range threads {
		if main := &p.main[len(p.main)-1]; threads[i].Main {
			*main = stacks.ThreadOf(*main, callsOf(&threads[i]))
		}
	}
	for tid, s := range others {
		if p.others[tid] == nil {
			p.order = append(p.order, tid)
		}
		p.others[tid] = append(p.others[tid], s)
	}
}

// callsOf are the calls of a thread, nil where they could not be read.
func callsOf(t *pystack.Thread) []stacks.Call {
	if t.Frames == nil {
		return nil
	}
	out := make([]stacks.Call, len(t.Frames))
	for i, f := range t.Frames {
		out[i] = stacks.Call{Frame: stacks.Frame(f.Function, f.File), Line: f.Line}
		for _, v := range f.Values {
			out[i].Values = append(out[i].Values, api.StackValue{Name: v.Name, Value: v.Number})
		}
	}
	return out
}

// seenThread is what the kernel says of a thread.
func seenThread(pid, tid int) api.ThreadStack {
	t := strconv.Itoa(tid)
	b, err := os.ReadFile(taskFile(pid, t, "stat"))
	end := bytes.LastIndexByte(b, ')')
	if err != nil || end < 0 || end+2 >= len(b) {
		return api.ThreadStack{Does: api.DoesOther}
	}
	return stacks.Seen(b[end+2], callName(word(taskFile(pid, t, "syscall"))), strings.TrimPrefix(word(taskFile(pid, t, "wchan")), "-"))
}

// callName is the name of a system call, empty where it can't be told.
func callName(number string) string {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return ""
	}
	return cmp.Or(callNames[n], "call "+number)
}

// put sets frames that somebody else has found for a process of which none could be read.
func (l *looker) put(pid int, threads []stacks.Thread) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.all {
		if p.PID != pid || !p.blind {
			continue
		}
		for i := range threads {
			if t := &threads[i]; (t.Main || len(threads) == 1) && len(t.Frames) > 0 {
				for k := range p.main {
					p.main[k].Frames, p.main[k].Values = t.Frames, nil
					if p.main[k].Lines = t.Lines; p.main[k].Does == api.DoesRun {
						p.main[k].Lines = nil // one look does not show that it stands still
					}
				}
			}
		}
	}
}

// ask asks others for the frames of those of which none could be read: the program itself, where it says that it answers, and
// py-spy, which knows every version of Python.
func (l *looker) ask() {
	end := time.Now().Add(askTime)
	room := make(chan struct{}, max(2, runtime.NumCPU()))
	var wg sync.WaitGroup
	for _, p := range l.all {
		l.mu.Lock()
		blind, python := p.blind, p.python
		l.mu.Unlock()
		if !blind || !python {
			continue
		}
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			if time.Now().After(end) {
				return
			}
			if threads := l.faulthandler(p, end); threads != nil {
				l.put(p.PID, threads)
				return
			}
			if spy := lookPath(l.spec.rankOf(p.Rank), "py-spy"); spy != "" {
				out, _ := runDebugger([]string{spy, "dump", "--nonblocking", "--pid", strconv.Itoa(p.PID)}, l.spec.rankOf(p.Rank).Env)
				l.put(p.PID, stacks.PySpy(string(out)))
			}
		})
	}
	waitUntil(&wg, end)
}

// rankOf is a rank of this node; of tasks, and where there is none, one without an environment.
func (s *Spec) rankOf(rank int) *RankSpec {
	for i := range s.Ranks {
		if s.Ranks[i].Rank == rank {
			return &s.Ranks[i]
		}
	}
	if len(s.Ranks) > 0 {
		return &s.Ranks[0]
	}
	return &RankSpec{}
}

// faulthandler sends a process the signal that it has named, if it has a handler for it just now, and reads what it then
// writes to its error output. Where that is no file of its own nothing is sent.
func (l *looker) faulthandler(p *leading, end time.Time) []stacks.Thread {
	name := proc.Variable(p.PID, stacksSignal)
	sig, ok := proc.Signal(name)
	if name == "" || !ok || !proc.ReadSignals(p.PID).Catches(sig) {
		return nil
	}
	f, err := os.OpenFile("/proc/"+strconv.Itoa(p.PID)+"/fd/2", os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil
	}
	for _, o := range l.all {
		if other, err := os.Stat("/proc/" + strconv.Itoa(o.PID) + "/fd/2"); o != p && err == nil && os.SameFile(st, other) {
			return nil // whose words these are could not be told
		}
	}
	if unix.Kill(p.PID, sig) != nil {
		return nil
	}
	var threads []stacks.Thread
	for size := -1; time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b, _ := io.ReadAll(io.NewSectionReader(f, st.Size(), dumpBytes))
		if len(b) == size && size > 0 { // nothing more came
			if threads = stacks.Faulthandler(string(b)); threads != nil {
				return threads
			}
		}
		size = len(b)
	}
	return threads
}

// result is what there is.
func (l *looker) result() *api.MemberStacks {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []stacks.Process
	for _, p := range l.all {
		if len(p.main) == 0 {
			continue
		}
		one := stacks.Process{StackProcess: p.StackProcess, Kind: p.kind, Threads: []api.ThreadStack{stacks.Join(p.main)}}
		for _, tid := range p.order {
			if len(one.Threads) < api.MaxStackThreads && len(p.others[tid]) > 0 {
				one.Threads = append(one.Threads, stacks.Join(p.others[tid]))
			}
		}
		all = append(all, one)
	}
	return stacks.Pack(all)
}

// leads picks the processes that stand for their ranks and tasks: from each one's own process down through shells,
// launchers and whoever waits for a child.
func leads(procs []candidate) (out []candidate) {
	at := map[int]*candidate{}
	below := map[int][]*candidate{}
	for i := range procs {
		at[procs[i].PID] = &procs[i]
	}
	for i := range procs {
		p := &procs[i]
		if at[p.parent] != nil && p.parent != p.PID {
			below[p.parent] = append(below[p.parent], p)
		}
	}
	depth := 0
	var descend func(p *candidate, kind string) []candidate
	descend = func(p *candidate, kind string) []candidate {
		p.kind = kind + p.exe
		children := below[p.PID]
		if depth > 32 || len(children) == 0 || !waitsForOthers(p) {
			return []candidate{*p}
		}
		depth++
		defer func() { depth-- }()
		var all []candidate
		for _, c := range children {
			all = append(all, descend(c, p.kind+"/")...)
		}
		return all
	}
	for i := range procs {
		p := &procs[i]
		if at[p.parent] != nil {
			continue
		}
		all := descend(p, "")
		if slices.ContainsFunc(all, func(p candidate) bool { return !beside(&p) }) {
			all = slices.DeleteFunc(all, func(p candidate) bool { return beside(&p) })
		}
		out = append(out, all...)
	}
	return out
}

// beside: a process only serves those that work.
func beside(p *candidate) bool {
	if filters[p.exe] || !strings.HasPrefix(p.exe, "python") {
		return filters[p.exe]
	}
	line := commandLine(p.PID)
	return strings.Contains(line, "multiprocessing.resource_tracker") || strings.Contains(line, "multiprocessing.semaphore_tracker") ||
		strings.Contains(line, "multiprocessing.forkserver")
}

// filters are programs that scripts and frameworks run beside the one that works.
var filters = map[string]bool{"tee": true, "cat": true, "sed": true, "grep": true, "awk": true, "gawk": true, "mawk": true, "ts": true,
	"logger": true, "tail": true, "head": true,
	"sleep": true, "nvidia-smi": true, "dcgmi": true, "tr": true, "stdbuf": true, "torch_shm_manager": true, "wandb-core": true,
	"gpu_stats": true, "tensorboard": true}

// launchers only wait for what they have started.
var launchers = map[string]bool{"mpirun": true, "mpiexec": true, "mpiexec.hydra": true, "orterun": true, "orted": true, "prte": true,
	"prted": true, "prterun": true, "hydra_pmi_proxy": true,
	"timeout": true, "time": true, "env": true, "strace": true, "nsys": true, "ncu": true, "script": true, "unbuffer": true, "catchsegv": true,
	"tini": true, "dumb-init": true, "apptainer": true, "starter": true}

// waitsForOthers: what a process does is to wait for its children.
func waitsForOthers(p *candidate) bool {
	if isShell(p.exe) || launchers[p.exe] {
		return true
	}
	main := seenThread(p.PID, p.PID)
	if main.Does == api.DoesChild {
		return true
	}
	if !strings.HasPrefix(p.exe, "python") || main.Does == api.DoesDisk {
		return false
	}
	py, err := pystack.Find(p.PID)
	if err != nil {
		return false
	}
	threads, err := py.Threads(nil)
	if err != nil {
		return false
	}
	for _, c := range callsOf(&threads[0]) {
		if waitingFrames[c.Frame] {
			return true
		}
	}
	return false
}

// waitingFrames are where launchers in Python wait for the workers that they have started.
var waitingFrames = map[string]bool{
	"_invoke_run (api.py)": true,                                     // torchrun
	"join (spawn.py)":      true, "start_processes (spawn.py)": true, // torch.multiprocessing
	"wait (subprocess.py)": true, "_wait (subprocess.py)": true, "communicate (subprocess.py)": true,
}

// exeOf is the name of the program that a process runs, as far as it can be told.
func exeOf(pid int) string {
	exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		s, _ := proc.ReadStat(pid)
		return s.Comm
	}
	return filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
}
