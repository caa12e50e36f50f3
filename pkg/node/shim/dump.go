package shim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/api/bound"
)

// Before the stop of ranks that stalled, their stacks are written to their logs: after it
// nobody can tell any more what they waited for. A process of its own does it (`gshim
// dump`), because a look into a hanging process may hang, and because the log is the user's
// to open. It begins while the cards are still being looked at, keeps what it finds, and
// writes when the stop comes; the stop waits for it no longer than it was told, and what is
// there by then is written.
//
// The same process also tells the shim where the leading processes are, in a form in which those of all nodes can be compared. That
// alone is what is asked for shortly before the time limit, and by people.

// dumper is the process that takes the stacks. The zero value is none.
type dumper struct {
	pid      int
	word     int  // write end of a pipe: a byte is the word to write, its end to forget
	released bool // that byte was sent
	over     bool // it has ended, or could not be started, and the stop waits for it
	result   int  // read end of a pipe: what it has seen
	keep     bool // that is kept for the end of the member
}

// dumpProcesses bounds the processes of one rank that are looked at: data loaders come in
// dozens and are all alike.
const dumpProcesses = 16

// lookProcesses bounds those of one rank or step that a look is told of: among them are the ones that lead.
const lookProcesses = 256

// maxResult bounds what a look may say; a pipe holds it, so that nobody waits for somebody to read.
const maxResult = 512 << 10

// Words for [Command.Stacks].
const (
	TakeStacks = "take" // a stop may come: look, and keep it
	DropStacks = "drop" // none comes
)

func (m *member) stacks(what string) {
	switch what {
	case TakeStacks:
		m.takeStacks()
	case DropStacks:
		if !m.dump.released {
			m.endDump()
		}
	}
}

// takeStacks begins to look at all ranks that live, to write their stacks to their logs. A look that is under way is not
// disturbed: the stop begins anew.
func (m *member) takeStacks() {
	if m.dump.pid == 0 {
		m.beginDump(true)
	}
}

// beginDump starts the process.
func (m *member) beginDump(logs bool) {
	m.odd = true
	args := []string{"gshim", "dump"}
	if !logs {
		args = append(args, onlyLook)
	}
	var err error
	if m.dump, err = forkDump(append(args, m.lookedAt()...)); err != nil {
		logf("stacks not taken: %v", err)
	}
	m.dump.keep = logs
}

// lookedAt names the processes of ranks and of tasks.
func (m *member) lookedAt() (args []string) {
	count := map[string]int{}
	add := func(who string, pid int) {
		if count[who]++; count[who] <= lookProcesses {
			args = append(args, who+":"+strconv.Itoa(pid))
		}
	}
	for _, p := range m.processes(unix.SIGTERM, m.ofShells) {
		if p.Rank >= 0 && !p.Step && !p.Client {
			add(strconv.Itoa(p.Rank), p.PID)
		}
	}
	for _, p := range m.steps {
		pids := m.tasksOf(p)
		slices.Sort(pids)
		for _, pid := range pids {
			add("s"+strconv.Itoa(p.id), pid)
		}
	}
	return args
}

// lookBeforeLimit looks where everybody is before the time limit ends it, where there is somebody to be compared with.
func (m *member) lookBeforeLimit() {
	if m.spec.Watch.NoStacks || m.spec.Whole && len(m.spec.Ranks) < 3 && len(m.steps) == 0 {
		return
	}
	if m.dump.pid == 0 {
		m.beginDump(false)
	}
	m.dump.keep = true
}

// lookFor is what a person has asked for. The answer comes when the look is over.
func (m *member) lookFor(number uint64) {
	m.lookers = append(m.lookers, number)
	if m.dump.pid == 0 && !m.over {
		m.beginDump(false)
	}
	if m.dump.pid == 0 {
		m.answerLooks(&api.MemberStacks{Why: "it can't be looked at now"})
	}
}

func (m *member) answerLooks(s *api.MemberStacks) {
	for _, n := range m.lookers {
		m.conns.tell(line(Answer{Look: n, Stacks: s}))
	}
	m.lookers = nil
}

// takeResult reads what a look has said so far. It comes from a process of the user: what is not as it has to be is not believed.
func (m *member) takeResult() {
	if m.dump.result <= 0 {
		return
	}
	var b []byte
	buf := make([]byte, 64<<10)
	for len(b) < maxResult {
		n, err := unix.Read(m.dump.result, buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			break
		}
		b = append(b, buf[:n]...)
	}
	if len(b) == 0 {
		return
	}
	var s *api.MemberStacks
	for all := json.NewDecoder(bytes.NewReader(b)); ; { // the last one is the best
		next := &api.MemberStacks{}
		if err := all.Decode(next); err != nil || bound.Check(next) != nil {
			break
		}
		s = next
	}
	if s == nil {
		s = &api.MemberStacks{Why: "what was seen could not be read"}
	}
	if m.dump.keep {
		m.state.Stacks, m.dirty = s, true
	}
	m.answerLooks(s)
}

// writeStacks says the word. Where there is nobody to hear it the stop goes on at once. A look that is under way is
// as good for what is compared, and has nothing for the logs.
func (m *member) writeStacks() {
	m.takeStacks()
	if m.dump.pid == 0 {
		m.dump.over = true
		return
	}
	m.dump.released, m.dump.keep = true, true
	_, _ = unix.Write(m.dump.word, []byte{1})
}

// forkDump starts the process as root where the shim is root: the kernel shows its own stack
// of a process to nobody else. It becomes the user before it does anything else; see [Dump].
func forkDump(args []string) (dumper, error) {
	spec, err := os.Open(SpecFile) // root's file: the user gets it open, not by name
	if err != nil {
		return dumper{}, err
	}
	defer spec.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return dumper{}, err
	}
	defer null.Close()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return dumper{}, err
	}
	defer unix.Close(pipe[0])
	var result [2]int
	if err := unix.Pipe2(result[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		_ = unix.Close(pipe[1])
		return dumper{}, err
	}
	defer unix.Close(result[1])
	_, _ = unix.FcntlInt(uintptr(result[1]), unix.F_SETPIPE_SZ, maxResult)
	pid, err := syscall.ForkExec("/proc/self/exe", args, &syscall.ProcAttr{Dir: "/", Env: nil,
		Files: []uintptr{spec.Fd(), null.Fd(), null.Fd(), uintptr(pipe[0]), uintptr(result[1])}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		_ = unix.Close(pipe[1])
		_ = unix.Close(result[0])
		return dumper{}, fmt.Errorf("start gshim dump: %w", err)
	}
	return dumper{pid: pid, word: pipe[1], result: result[0]}, nil
}

// endDump cuts off what is still going on, debuggers included: they are in the process's own
// group. What they were attached to goes on by itself.
func (m *member) endDump() {
	if m.dump.pid > 0 {
		_ = unix.Kill(-m.dump.pid, unix.SIGKILL)
	}
}

func (m *member) dumpEnded() {
	m.takeResult()
	_ = unix.Close(m.dump.word)
	_ = unix.Close(m.dump.result)
	m.dump = dumper{over: m.dump.released}
	m.answerLooks(&api.MemberStacks{Why: "the look at it was cut off"})
}
