package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cpus"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/sitehook"
	"gangd/pkg/wire/jobapi"
)

// A step is a launcher (gstep), started inside the containment as the user, that gets its
// tasks from the client of the step and is their parent. For the shim it is one more process
// of the member: a stop reaches the tasks as it reaches everything else, and what the
// containment proves empty it proves of steps as well. The shim and the launcher speak over a
// socket pair: orders one way, one [api.StepActual] the other way as its last word.

// LauncherName is the program, beside gshim.
const LauncherName = "gstep"

// LauncherFD is the launcher's end of the socket pair.
const LauncherFD = 3

// LauncherStart is the first line that a launcher is told.
type LauncherStart struct {
	api.MemberKey
	api.StepOrder
	Node    string `json:"node"`
	WorkDir string `json:"work_dir"`
	Umask   int    `json:"umask"`
	// Propagate is which limits of the client the tasks have, where it does not say.
	Propagate string `json:"propagate,omitempty"`
	Marker    string `json:"marker"` // for the environment of every process: NAME=value
	Status    string `json:"status"` // GANG_STATUS_FILE
	// Dir is where each task has its own sockets ([jobapi.TaskName]), and the checkpoint that it
	// starts from where the order has one. NoSockets is why there are none.
	Dir       string `json:"dir,omitempty"`
	NoSockets string `json:"no_sockets,omitempty"`
	// CheckpointDir is GANG_CHECKPOINT_DIR.
	CheckpointDir string        `json:"checkpoint_dir,omitempty"`
	Watchdog      time.Duration `json:"watchdog_ns,omitempty"`  // a task that has begun to beat may be silent for so long
	GraceMax      time.Duration `json:"grace_max_ns,omitempty"` // how far tasks may extend their grace
	// Machine is the CPUs of the step here, and where they are; nil: they are not bound.
	Machine *cpus.Topology `json:"machine,omitempty"`
	// CardNames is what the environment calls cards, by UUID; nil: by their UUIDs.
	CardNames map[string]string `json:"card_names,omitempty"`
	// TaskHooks are the site's, around each task; nil: none.
	TaskHooks *sitehook.Task `json:"task_hooks,omitempty"`
	// InImage is what the launcher and its tasks run in; nil: the machine's root.
	InImage *InImage `json:"in_image,omitempty"`
	// OtherMounts: it is a container that is there, and has other mounts than the step asks for.
	OtherMounts bool `json:"other_mounts,omitempty"`
}

// LauncherWord is a line of a launcher: that a task has ended, any number of times, what it
// wants, and how the step ended, its last.
type LauncherWord struct {
	TaskEnded *int `json:"task_ended,omitempty"`
	// Stop: the tasks are to end, and are sent TERM unless they were told before. The shim does
	// it: of several who end a step only one may tell its tasks, or they would take it for haste.
	Stop  bool          `json:"stop,omitempty"`
	Grace time.Duration `json:"grace_ns,omitempty"` // of Stop: KILL comes then
	// Refused: its container could not be made, and why. Nothing has been started.
	Refused string `json:"refused,omitempty"`
	// Made: its container is made, whose namespace goes with this word.
	Made bool `json:"made,omitempty"`
	// Launched: every task is started. Those that came while the others were told to end are told now.
	Launched bool `json:"launched,omitempty"`
	api.StepActual
}

// LauncherOrder is what it is told later.
type LauncherOrder struct {
	Signal string        `json:"signal,omitempty"`   // to the tasks
	Stop   bool          `json:"stop,omitempty"`     // TERM, Grace, KILL
	Grace  time.Duration `json:"grace_ns,omitempty"` // of Stop
	// Extend: while tasks are being stopped, KILL comes no sooner than so long from now.
	Extend time.Duration `json:"extend_ns,omitempty"`
	// EndLine is why, for the client of the step, where its job has [Spec.LastWords].
	EndLine  string `json:"end_line,omitempty"`
	Draining bool   `json:"draining,omitempty"` // the whole member is being stopped: what tasks leave may use the grace
}

// maxLauncherWord bounds one word of a launcher, wordsPerPoll the pieces of them that are read
// in one go: it is a process of the user.
const (
	maxLauncherWord = 16 << 10
	wordsPerPoll    = 16
)

// stepMarker names the step in the environment of its processes.
const stepMarker = "GANG_STEP_MARK="

// stepProc is a launcher that runs.
type stepProc struct {
	id, tasks int
	pid, ctl  int
	in        []byte
	last      *api.StepActual // nil: not said yet
	stopping  bool
	told      bool      // its tasks were sent their stop signal
	until     time.Time // when they, or all of the member, were to end; zero: they were not
	with      unix.Signal
	heard     []int // the processes that were told
	announced bool  // its status file says that the step alone is to end
	mark      string
	start     LauncherStart
	kills     int    // for want of memory, in the member, before it began
	refused   string // its container could not be made
	makes     string // the name of the container that is made for it; empty: none with a name
	at        *root  // what it runs in; nil: what was made for it alone, or what the member has
}

// selfDir is where this program lives, and with it the launcher.
var selfDir = sync.OnceValue(func() string {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return ""
	}
	return filepath.Dir(exe)
})

// takeSteps makes the steps of the member those that are ordered. A step is started once:
// ids grow, and one below the last that was started is never new.
func (m *member) takeSteps(orders []api.StepOrder) {
	m.ordered = orders
	m.step(supervise.Tick{}) // a lease that ran out while this was on its way
	running := m.mach.State() == supervise.Running && m.mach.Cause() == ""
	for i := range orders {
		o := &orders[i]
		if p := m.stepProc(o.ID); p != nil {
			if o.Stop {
				m.stopStep(p, o.Grace)
			}
		} else if running && (o.ID > m.lastStep || slices.Contains(m.held, o.ID)) {
			m.lastStep = max(m.lastStep, o.ID)
			m.held = slices.DeleteFunc(m.held, func(id int) bool { return id == o.ID })
			if o.Held || !o.Stop && m.isBeingMade(o) {
				m.held = append(m.held, o.ID)
			} else {
				m.startStep(o)
			}
		}
	}
	ordered := func(id int) bool {
		return slices.ContainsFunc(orders, func(o api.StepOrder) bool { return o.ID == id })
	}
	m.held = slices.DeleteFunc(m.held, func(id int) bool { return !ordered(id) })
	for _, p := range m.steps {
		if !ordered(p.id) {
			m.stopStep(p, m.spec.Grace)
		}
	}
	kept := slices.DeleteFunc(slices.Clone(m.state.Steps), func(s api.StepActual) bool { return s.Over && !ordered(s.ID) })
	if len(kept) != len(m.state.Steps) {
		m.state.Steps = kept // nobody is told of that: it was the controller's own word
	}
}

func (m *member) stepProc(id int) *stepProc {
	if i := slices.IndexFunc(m.steps, func(p *stepProc) bool { return p.id == id }); i >= 0 {
		return m.steps[i]
	}
	return nil
}

func (m *member) stopStep(p *stepProc, grace time.Duration) {
	if !p.stopping {
		p.stopping = true
		p.tell(LauncherOrder{Stop: true, Grace: grace})
	}
}

// tell gives an order to a launcher. One that does not read is stuck, and the containment
// ends it.
func (p *stepProc) tell(o any) {
	_, _ = unix.SendmsgN(p.ctl, line(o), nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
}

// startStep forks a launcher. One that can't be started is a step that is over.
func (m *member) startStep(o *api.StepOrder) {
	p := &stepProc{id: o.ID, tasks: o.Tasks, mark: stepMarker + m.spec.Marker + "." + api.StepText(m.spec.Job, o.ID)}
	m.state.Steps = append(m.state.Steps, api.StepActual{ID: o.ID, Started: time.Now()})
	m.dirty = true
	if o.Stop { // before this node had heard of it
		m.stepOver(o.ID, api.StepActual{ExitCode: 128 + int(unix.SIGTERM), Signal: int(unix.SIGTERM)})
		return
	}
	var own *Container
	if o.Container != nil && o.Refused == "" {
		var err error
		if own, err = m.rootOf(p, o.Container); err != nil { // never in another one, nor outside
			o.Refused = "container: " + err.Error()
		}
	}
	start := LauncherStart{MemberKey: m.spec.MemberKey, StepOrder: *o, Node: m.spec.Node, WorkDir: api.Pack(m.spec.WorkDir),
		Umask: m.spec.Umask, Propagate: m.spec.Propagate,
		Marker: m.spec.Marker, Status: filepath.Join(m.spec.Dir, stepStatus(o.ID)), Watchdog: m.spec.Watch.StallTimeout,
		GraceMax: m.spec.GraceMax}
	start.Dir, start.CheckpointDir = m.spec.Dir, m.spec.CheckpointDir
	start.NoSockets = m.jobs.openStep(m.spec, o)
	start.Machine = m.shareCPUs(o.ID, o.Tasks, o.CPUs)
	m.shareStatus(o.ID)
	start.TaskHooks, start.CardNames = m.spec.TaskHooks, m.spec.CardNames
	start.Numbers = nil // its client tells it
	switch {
	case own != nil:
		start.InImage = &own.InImage
	case p.at != nil:
		in := p.at.InImage
		in.Keep, start.InImage = o.Container.Env, &in
		start.OtherMounts = len(o.Container.Mounts) > 0 && !slices.Equal(o.Container.Mounts, p.at.mounts)
	case m.spec.Container != nil:
		start.InImage = &m.spec.Container.InImage
	}
	p.start = start
	m.launch(p, own)
}

// launch starts the launcher of a step, in a container of its own where there is one. What refuses a step is for
// its launcher to say: it knows the client, who is told at once.
func (m *member) launch(p *stepProc, own *Container) {
	if err := m.forkLauncher(p, own); err != nil {
		m.stepOver(p.id, api.StepActual{ExitCode: 1, Error: "start the launcher of the step: " + err.Error()})
		return
	}
	m.countKills(true)
	p.kills = m.kills()
	m.steps = append(m.steps, p)
	for i := range m.state.Steps {
		if m.state.Steps[i].ID == p.id {
			m.state.Steps[i].PID = p.pid
		}
	}
	p.tell(p.start)
}

// forkLauncher forks it: as the user into what the member sees, or as root into what `gshim launch` makes of the
// member's mounts outside of its container.
func (m *member) forkLauncher(p *stepProc, own *Container) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[1])
	var input int
	sys := &syscall.SysProcAttr{Setsid: true}
	path, args, enter := launcherPath(), []string{LauncherName}, m.inPrivate
	if p.at != nil {
		enter = func() (func(), error) { return m.in(p.at.namespace) }
	}
	if own == nil {
		input, err = unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	} else {
		path, args, enter = "/proc/self/exe", []string{"gshim", "launch"}, func() (func(), error) { return m.in(m.outer) }
		sys.Cloneflags = unix.CLONE_NEWNS
		if err = p.knowSenders(pair[0]); err == nil {
			input, err = m.launchInput(own, p.makes != "")
		}
	}
	if err == nil {
		defer unix.Close(input)
		if own == nil {
			m.credential(sys)
		}
		p.pid, err = m.fork(path, args, nil, enter, &syscall.ProcAttr{Dir: "/", Env: m.launcherEnv(p),
			Files: []uintptr{uintptr(input), uintptr(input), 2, uintptr(pair[1])}, Sys: sys})
	}
	if err != nil {
		_ = unix.Close(pair[0])
		return err
	}
	_ = unix.SetNonblock(pair[0], true)
	p.ctl = pair[0]
	return nil
}

func (m *member) launcherEnv(p *stepProc) []string {
	env := []string{"GOMAXPROCS=4", "GOGC=50", "PATH=/usr/local/bin:/usr/bin:/bin", p.mark}
	if m.spec.Marker != "" {
		env = append(env, m.spec.Marker)
	}
	return env
}

func launcherPath() string { return filepath.Join(selfDir(), LauncherName) }

// hearStep takes in what a launcher says, which may come in pieces.
func (m *member) hearStep(p *stepProc) {
	var buf [4096]byte
	for range wordsPerPoll {
		n, err := m.readWord(p, buf[:])
		if err == unix.EINTR {
			continue
		}
		if n == 0 && err == nil { // it says no more, and is polled no more, whether or not it ends
			_ = unix.Close(p.ctl)
			p.ctl = -1
		}
		if n <= 0 || err != nil || len(p.in) > maxLauncherWord {
			return
		}
		p.in = append(p.in, buf[:n]...)
		for {
			line, rest, whole := bytes.Cut(p.in, []byte("\n"))
			if !whole {
				break
			}
			m.stepSaid(p, line)
			p.in = rest
		}
	}
}

func (m *member) stepSaid(p *stepProc, line []byte) {
	var w LauncherWord
	switch err := json.Unmarshal(line, &w); {
	case err != nil || p.last != nil:
	case w.TaskEnded != nil:
		m.jobs.taskEnded(p.id, *w.TaskEnded)
	case w.Stop:
		m.stopTasks(p, w.Grace)
	case w.Launched:
		m.stopLate(p)
	case w.Made: // what came with it has been taken
	case w.Refused != "":
		p.refused = w.Refused
	default:
		p.last = &w.StepActual
	}
}

// ends notes that what comes to an end from now on may be told to.
func (p *stepProc) ends() {
	if p.until.IsZero() {
		p.until = time.Now()
	}
}

// stopTasks tells the tasks of a step to end, unless they were told already.
func (m *member) stopTasks(p *stepProc, grace time.Duration) {
	if p.told {
		return
	}
	m.announceStep(p, grace)
	p.ends()
	p.told, p.with, p.heard = true, unix.SIGTERM, m.tasksOf(p)
	for _, pid := range p.heard {
		deliver(pid, p.with)
	}
}

// stopLate tells the tasks to end that were started while the others were told.
func (m *member) stopLate(p *stepProc) {
	if !p.told {
		return
	}
	for pid, s := range m.stats() {
		if s.PPID == p.pid && !slices.Contains(p.heard, pid) {
			deliver(pid, p.with)
		}
	}
}

// tasksOf lists what lives of a step, but not its launcher.
func (m *member) tasksOf(p *stepProc) (pids []int) {
	all := m.stats()
	for pid, s := range all {
		if pid != p.pid && m.stepOf(s, all) == p {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stepOf is the step that a process belongs to: the launcher is an ancestor of all that its
// tasks start. Nil: of none.
func (m *member) stepOf(s proc.Stat, all map[int]proc.Stat) *stepProc {
	if len(m.steps) == 0 {
		return nil
	}
	for p, ok := s, true; ok; p, ok = all[p.PPID] {
		for _, l := range m.steps {
			if l.pid == p.PID {
				return l
			}
		}
	}
	return nil
}

// stepsLive: a step runs here, or a program that waits for one elsewhere.
func (m *member) stepsLive() bool {
	if len(m.steps) > 0 || !m.spec.Batch {
		return len(m.steps) > 0
	}
	for _, s := range m.stats() {
		if m.isClient(s) {
			return true
		}
	}
	return false
}

// stepEnded takes the exit of a launcher. Without a last word it was killed: then what its
// tasks have left is ended here, by what is in their environment.
func (m *member) stepEnded(i int, ws syscall.WaitStatus, ru *syscall.Rusage) {
	p := m.steps[i]
	m.steps = slices.Delete(m.steps, i, i+1)
	m.hearStep(p)
	m.newRoot = m.newRoot || p.makes != ""
	if p.ctl >= 0 {
		_ = unix.Close(p.ctl)
	}
	if p.refused != "" && p.last == nil && !p.stopping && m.mach.Cause() == "" {
		again := &stepProc{id: p.id, tasks: p.tasks, mark: p.mark, start: p.start}
		again.start.Refused = p.refused
		m.launch(again, nil)
		return
	}
	m.stepsOver = m.stepsOver || len(m.steps) == 0
	var word api.StepActual
	if p.last != nil {
		word = *p.last
		word.Ends = p.own(word.Ends)
	} else {
		word = api.StepActual{ExitCode: max(ws.ExitStatus(), 1), Error: "the launcher of the step died", MaxRSS: ru.Maxrss << 10,
			CPUTime: cpuOf(ru).Seconds()}
		if ws.Signaled() {
			word.Signal, word.ExitCode = int(ws.Signal()), 128+int(ws.Signal())
		}
		m.odd = true
		if m.mach.Cause() == "" {
			_ = proc.KillContainment(proc.Place{Kind: proc.Group, Marker: p.mark}, 0)
		}
	}
	word.OOM = m.mach.Cause() == "" && m.shortOfMemory(p, word.ExitCode != 0)
	m.stepOver(p.id, word)
}

// own are the ends of tasks by themselves of those that the launcher, which is of the user, says are such.
func (p *stepProc) own(ends []api.TaskEnd) []api.TaskEnd {
	ends = slices.DeleteFunc(ends[:min(len(ends), api.MaxTaskEnds)], func(e api.TaskEnd) bool {
		return e.ExitCode == 0 || e.Time.After(time.Now()) || !p.until.IsZero() && e.Time.After(p.until)
	})
	for i := range ends {
		ends[i].Aborted = jobapi.OneLine(ends[i].Aborted) // a frame with anything else ends the node's session
	}
	return ends
}

// shortOfMemory: the kernel has killed something of a step for want of memory, as far as can be told: steps share
// the account of their member. A kill in its time is that of a step that failed, else of each that ran then and
// may have it: what is not known to be right is not shown as such.
func (m *member) shortOfMemory(p *stepProc, failed bool) bool {
	m.countKills(true)
	now := m.kills()
	if now == p.kills || now == m.placed {
		return false
	}
	if failed || len(m.steps) == 0 {
		m.placed = now
	}
	return true
}

func (m *member) kills() int {
	if m.state.Kills == nil {
		return 0
	}
	return m.state.Kills.Count
}

// dropSteps lets go of what was made for the tasks of steps that are over: their sockets, the
// checkpoints that they started from, and their status file.
func (m *member) dropSteps() {
	for _, id := range m.gone {
		m.jobs.closeStep(id)
		names, err := filepath.Glob(jobapi.CheckPrefix + strconv.Itoa(id) + ".*")
		for _, name := range append(names, stepStatus(id), StepContainerFile(id)) {
			if e := os.Remove(name); !errors.Is(e, os.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		if err != nil {
			logf("what step %d had is not removed: %v", id, err)
		}
	}
	m.gone = nil
}

// stepOver records the end of a step. It is a result as a rank's exit is.
func (m *member) stepOver(id int, word api.StepActual) {
	for i := range m.state.Steps {
		if s := &m.state.Steps[i]; s.ID == id {
			word.ID, word.PID, word.Image, word.Started, word.Ended, word.Over = id, s.PID, s.Image, s.Started, time.Now(), true
			*s = word
		}
	}
	m.gone = append(m.gone, id)
	m.giveCPUs(id)
	m.dirty, m.durable = true, true
}

// signalStep passes a signal on to the tasks of a step and says how many it has.
func (m *member) signalStep(id int, signal string) int {
	p := m.stepProc(id)
	if p == nil {
		return 0
	}
	p.tell(LauncherOrder{Signal: signal})
	return p.tasks
}

// extendStep passes on that a task asks for more grace, while there is one. Where the whole member
// is being stopped its own clock has heard of it as well.
func (m *member) extendStep(id int, by time.Duration) {
	if p := m.stepProc(id); p != nil && (p.told || p.stopping) {
		p.tell(LauncherOrder{Extend: by})
	}
}

// drainSteps tells the launchers that the member is being stopped.
func (m *member) drainSteps() {
	cause := m.mach.Cause()
	_, said := dueTo[cause]
	for _, p := range m.steps {
		p.ends()
		o := LauncherOrder{Draining: true}
		if said && m.spec.LastWords {
			o.EndLine = EndLine("STEP "+api.StepText(m.spec.Job, p.id), m.spec.Node, cause)
		}
		p.tell(o)
	}
}

func (m *member) watchSteps(fds []unix.PollFd) []unix.PollFd {
	for _, p := range m.steps {
		fds = append(fds, unix.PollFd{Fd: int32(p.ctl), Events: unix.POLLIN})
	}
	return fds
}

func (m *member) hearSteps(fds []unix.PollFd) {
	for i, p := range m.steps {
		if i < len(fds) && fds[i].Revents != 0 {
			m.hearStep(p)
		}
	}
}

// isClient tells the programs that only wait for tasks from those that work: a launcher, grun
// under its names, and what holds an allocation for one elsewhere. A stop that ended them would
// take the tasks' end with them while these still save; they end when the tasks have.
func (m *member) isClient(s proc.Stat) bool {
	return slices.ContainsFunc(m.steps, func(p *stepProc) bool { return p.pid == s.PID }) || proc.Waits(s.PID)
}
