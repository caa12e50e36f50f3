package shim

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cpus"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

const (
	commandFD = 3                // the first connection, given at start
	byeWait   = 60 * time.Second // after the end, for somebody to come and record what could not be written
	// pollMax bounds a sleep, so that an orphan whose SIGCHLD arrived between the last reap
	// and the poll, and a lease that ran out while the machine slept, are seen all the same.
	pollMax = 10 * time.Second
)

// member is the whole of a running shim.
type member struct {
	spec      *Spec
	mach      *supervise.Machine
	box       proc.Containment
	files     []rankFiles
	ranks     []rank
	port      int
	conns     conns
	state     State
	file      stateFile
	holding   []heldShell
	asker     asker
	offer     offer
	heard     bool // somebody here could hear the notice
	orders    orders
	jobs      jobSockets
	empty     *emptyDir // of this process; nil: it serves no other member
	dump      dumper
	lookers   []uint64 // who waits for a look, by number
	look      limitLook
	log       int // where the script's errors go, kept for its last line; 0: nowhere
	order     proc.EndOrder
	exits     []int // reaped, not yet fed to the stop sequence
	steps     []*stepProc
	namespace int             // open, with the mounts that ranks see; -1: the machine's
	outer     int             // open, the same without the container; -1: none of its own
	cpus      *cpus.Pool[int] // of steps that have a part of the member's CPUs; nil: none had yet
	// lastStep is the highest step that was started, -1: none. The state forgets steps that are
	// recorded; this is what keeps them from being started again.
	lastStep  int
	ordered   []api.StepOrder  // what was ordered last
	roots     map[string]*root // that steps have made, by their names
	newRoot   bool             // one was made, or could not be: who waits for it may start
	held      []int            // of those, what waits for its image
	placed    int              // of the kills for want of memory, those of which a step has been said
	stepsOver bool             // the last step has ended, not yet fed to the stop sequence
	gone      []int            // steps that are over, whose sockets are still there

	dirty   bool // state has changed since it was last told
	durable bool // the change is a result
	bye     bool
	over    bool // stopped or refused
	odd     bool // something happened that is no part of a plain life
	stopped bool // a stop has begun, and what the kernel had killed before it is counted
	exitAt  time.Duration

	reapedBefore time.Duration // CPU time of others that this process has served
}

// Main runs the shim of the one member in dir and returns its exit status.
func Main(dir string) int {
	if err := begin(); err != nil {
		return fail(err)
	}
	if _, err := serve(dir, firstConn(), nil); err != nil {
		return fail(err)
	}
	return 0
}

// kernelSlack is the timer slack that processes have unless somebody asked for another, in nanoseconds.
const kernelSlack = 50_000

// begin makes this process a shim. It happens once: what it finds of the starter's signals
// is its own setting the second time.
func begin() error {
	// The main thread forks and polls: SIGCHLD goes first to the thread that forked, and so
	// ends the poll of the one that has to know.
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, kernelSlack, 0, 0, 0) // see [quietMonitor]; ranks inherit this thread's
	ignoreSignals()
	if os.Geteuid() == 0 { // else all of it is one person's, who may have wanted it so
		if err := proc.LeaveDaemon(); err != nil {
			fmt.Fprintf(os.Stderr, "gshim: ranks start %v\n", err)
		}
	}
	_, _ = syscall.Setsid() // fails when the starter did it already
	unix.Umask(0o077)
	return proc.KeepFiles() // the connection of the daemon above all
}

// bootID does not change while this process lives.
var bootID = sync.OnceValue(proc.BootID)

// serve is the whole life of a member.
func serve(dir string, first *conn, empty *emptyDir) (*member, error) {
	if err := os.Chdir(dir); err != nil { // every file of the member is named relative to it
		return nil, err
	}
	m, err := load(dir, first)
	if err != nil {
		return nil, err
	}
	m.empty = empty
	if refusal := m.prepare(); refusal != nil {
		m.refuse(refusal)
	} else {
		m.ready()
	}
	m.loop()
	m.dropCheckpointDir()
	return m, nil
}

func fail(err error) int {
	fmt.Fprintf(os.Stderr, "gshim: %v\n", err)
	return 1
}

// load makes the member of dir, which the process is in. A record that is damaged, or that of another
// member, is not obeyed: gnoded finds that nobody serves the member.
func load(dir string, first *conn) (*member, error) {
	s, err := ReadSpec(".")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if s.Dir != dir {
		return nil, fmt.Errorf("%s: %s is that of %s", dir, SpecFile, s.Dir)
	}
	m := &member{spec: s, conns: newConns(first), lastStep: -1, order: proc.NewEndOrder()}
	m.state = State{MemberActual: api.MemberActual{MemberKey: s.MemberKey, Phase: api.PhasePreparing},
		ShimPID: os.Getpid(), BootID: bootID()}
	cfg := supervise.Config{TimeLimit: s.TimeLimit, Look: !s.Watch.NoStacks, Notice: s.Notice, StopSignal: s.StopSignal, Grace: s.Grace,
		GraceMax: s.GraceMax, Lease: s.Lease}
	for _, r := range s.Ranks {
		cfg.Ranks = append(cfg.Ranks, r.Rank)
	}
	m.mach = supervise.New(cfg, now())
	return m, nil
}

func (m *member) ready() {
	m.jobs.open(m.spec)
	m.state.Phase = api.PhaseReady
	m.dirty = true
	m.flush()
}

func (m *member) refuse(r *api.Refusal) {
	m.state.Phase, m.state.Refusal = api.PhaseRefused, r
	m.over, m.dirty, m.durable, m.bye = true, true, true, true // nobody needs to record it: it exits by itself
	m.flush()
}

// loop is the life of the shim after prepare.
func (m *member) loop() {
	for !m.finished() {
		commands := m.poll(m.wait())
		m.takeExits()
		for _, c := range commands {
			m.command(c)
		}
		m.step(supervise.Tick{})
		m.checkHeld()
		m.offerAgain()
		m.lookAtLimits()
		m.takeExits()
		m.flush()
		m.listen()
		m.tellNotes()
	}
}

// finished: what became of the member is on disk and was told, or is recorded. Whoever comes later reads the file.
func (m *member) finished() bool {
	if !m.over {
		return false
	}
	return (m.bye || !m.file.unsaved) && m.conns.drained() || clock(unix.CLOCK_MONOTONIC) >= m.exitAt
}

// wait is how long the poll may sleep.
func (m *member) wait() time.Duration {
	t := now()
	d := pollMax
	if w, ok := m.mach.Wait(t); ok {
		d = min(d, w)
	}
	if m.over {
		d = min(d, m.exitAt-t.Mono)
	}
	if len(m.holding) > 0 {
		d = min(d, m.heldWait(t.Mono))
	}
	if m.offer.deaf != nil {
		d = min(d, m.offer.at-t.Mono)
	}
	d = min(d, m.jobs.wait(t.Mono))
	d = min(d, m.look.wait(m, t.Mono))
	if m.file.unsaved {
		d = min(d, stateRetry)
	}
	for i := range m.ranks {
		if m.ranks[i].live() && m.ranks[i].pidfd < 0 { // a kernel without pidfd
			d = min(d, 50*time.Millisecond)
		}
	}
	return max(d, 0)
}

// step feeds the stop sequence and does what it answers, also what those acts lead to.
func (m *member) step(in supervise.Input) {
	for _, act := range m.mach.Step(now(), in) {
		m.do(act)
	}
}

func (m *member) do(act supervise.Act) {
	switch act.Kind {
	case supervise.Notify, supervise.Dump, supervise.Stop, supervise.Kill:
		m.countBefore()
	}
	switch act.Kind {
	case supervise.Start:
		m.start()
	case supervise.Notify:
		m.announce()
		m.notify(act.Signal, act.Scope)
	case supervise.Look:
		m.lookBeforeLimit()
	case supervise.Dump:
		m.writeStacks()
	case supervise.Stop:
		m.takeResult()
		m.endDump()
		m.announce()
		m.lastWords()
		m.stop(act.Signal)
	case supervise.Kill:
		m.kill()
	case supervise.Prove:
		m.prove()
	case supervise.Stuck:
		m.stuck()
	case supervise.Finish:
		m.finish()
	case supervise.Recant:
		m.heard, m.state.Deaf = false, false
		m.recant()
	case supervise.Tell:
		m.dirty = true
	}
}

func (m *member) kill() {
	m.holding, m.offer = nil, offer{}
	m.takeResult()
	m.endDump()
	m.lastWords() // of an end without a grace
	// Without a cgroup, what a killed member leaves is proven gone by looking for it only.
	m.odd = m.odd || m.spec.Containment == proc.Group
	if err := m.box.Kill(); err != nil {
		logf("kill: %v", err)
	}
}

// takeExits reaps and feeds what ended. Reaping alone happens in other places too, where the
// stop sequence is in the middle of a step.
func (m *member) takeExits() {
	m.reap()
	m.dropSteps()
	if m.dump.over {
		m.dump.over = false
		m.step(supervise.Dumped{})
	}
	if m.newRoot {
		m.newRoot = false
		m.takeSteps(m.ordered)
	}
	if m.stepsOver {
		m.stepsOver = false
		m.step(supervise.StepsOver{})
	}
	for len(m.exits) > 0 {
		rank := m.exits[0]
		m.exits = m.exits[1:]
		m.step(supervise.Exited{Rank: rank})
	}
}

func (m *member) prove() {
	m.reap() // zombies of ours would count as children
	if m.ranks != nil {
		m.countKills(m.mach.Cause() == "")
		m.count()
	}
	gone, err := m.box.Remove()
	if err != nil {
		logf("prove empty: %v", err)
	}
	if gone {
		m.step(supervise.Empty{})
	} else {
		m.step(supervise.Occupied{Steps: m.stepsLive()})
	}
}

func (m *member) stuck() {
	m.state.Phase, m.odd = api.PhaseStuck, true
	m.state.Survivors = nil
	pids, err := m.box.PIDs()
	if err != nil {
		logf("list survivors: %v", err)
	}
	for _, pid := range pids {
		if s, ok := proc.ReadStat(pid); ok && !s.Dead() {
			m.state.Survivors = append(m.state.Survivors, api.Survivor{PID: pid, Command: s.Comm, State: string(s.State)})
		}
	}
}

func (m *member) finish() {
	m.state.Phase, m.state.Survivors = api.PhaseStopped, nil
	m.over, m.dirty, m.durable = true, true, true
	m.exitAt = clock(unix.CLOCK_MONOTONIC) + byeWait
	m.order.Close()
	m.files = closeFiles(m.files)
	m.closePrivate()
	m.dropLog()
	m.tellNotes()
	m.jobs.close()
}

// flush writes the state and then tells it, once for all that has changed.
func (m *member) flush() {
	if !m.dirty && !m.file.retry() {
		return
	}
	m.state.Stopping, m.state.Text = m.mach.Cause(), m.mach.Text()
	m.state.Noticed, m.state.Forced = m.mach.Noticed(), m.mach.Forced()
	b, err := json.Marshal(&m.state)
	if err != nil {
		panic("state does not marshal: " + err.Error())
	}
	m.file.save(b, m.durable || m.file.unsaved)
	if !m.dirty {
		return
	}
	m.conns.state = append(append([]byte(`{"state":`), b...), '}', '\n')
	m.conns.tell(m.conns.state)
	m.dirty, m.durable = false, false
}
