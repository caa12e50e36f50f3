package shim

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Before the stop of ranks that stalled, their stacks are written to their logs: after it
// nobody can tell any more what they waited for. A process of its own does it (`gshim
// dump`), because a look into a hanging process may hang, and because the log is the user's
// to open. It begins while the cards are still being looked at, keeps what it finds, and
// writes when the stop comes; the stop waits for it no longer than it was told, and what is
// there by then is written.

// dumper is the process that takes the stacks. The zero value is none.
type dumper struct {
	pid      int
	word     int  // write end of a pipe: a byte is the word to write, its end to forget
	released bool // that byte was sent
	over     bool // it has ended, or could not be started, and the stop waits for it
}

// dumpProcesses bounds the processes of one rank that are looked at: data loaders come in
// dozens and are all alike.
const dumpProcesses = 16

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

// takeStacks begins to look at all ranks that live.
func (m *member) takeStacks() {
	if m.dump.pid > 0 {
		return
	}
	m.odd = true
	args := []string{"gshim", "dump"}
	count := map[int]int{}
	for _, p := range m.processes(unix.SIGTERM, m.ofShells) {
		if p.Rank >= 0 && count[p.Rank] < dumpProcesses {
			count[p.Rank]++
			args = append(args, strconv.Itoa(p.Rank)+":"+strconv.Itoa(p.PID))
		}
	}
	var err error
	if m.dump, err = forkDump(args); err != nil {
		logf("stacks not taken: %v", err)
	}
}

// writeStacks says the word. Where there is nobody to hear it the stop goes on at once.
func (m *member) writeStacks() {
	m.takeStacks()
	if m.dump.pid == 0 {
		m.dump.over = true
		return
	}
	m.dump.released = true
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
	pid, err := syscall.ForkExec("/proc/self/exe", args, &syscall.ProcAttr{Dir: "/", Env: nil,
		Files: []uintptr{spec.Fd(), null.Fd(), null.Fd(), uintptr(pipe[0])}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		_ = unix.Close(pipe[1])
		return dumper{}, fmt.Errorf("start gshim dump: %w", err)
	}
	return dumper{pid: pid, word: pipe[1]}, nil
}

// endDump cuts off what is still going on, debuggers included: they are in the process's own
// group. What they were attached to goes on by itself.
func (m *member) endDump() {
	if m.dump.pid > 0 {
		_ = unix.Kill(-m.dump.pid, unix.SIGKILL)
	}
}

func (m *member) dumpEnded() {
	_ = unix.Close(m.dump.word)
	m.dump = dumper{over: m.dump.released}
}
