package shim

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// lastWordsWait bounds the wait for the line to be in the file before the script is told. A
// disk takes microseconds; a file server that hangs must not hold up the stop.
const lastWordsWait = 50 * time.Millisecond

// dueTo is what Slurm's line says of a cause; a cause that is not here has no line.
var dueTo = map[api.Cause]string{
	api.CauseCancelled: "",
	api.CauseTimeout:   " DUE TO TIME LIMIT",
	api.CausePreempted: " DUE TO PREEMPTION",
	api.CauseRequeued:  " DUE TO JOB REQUEUE",
	api.CauseNodeLost:  " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
}

// EndLine is Slurm's line about a job ("JOB 12") or a step ("STEP 12.0") that is ended from
// outside, in the node's local time as there.
func EndLine(what, node string, cause api.Cause) string {
	return fmt.Sprintf("slurmstepd: error: *** %s ON %s CANCELLED AT %s%s ***", what, node, time.Now().Format("2006-01-02T15:04:05"),
		dueTo[cause])
}

// keepLog keeps the file that the script's errors go to, for the line about its end and for messages.
// What is no file is not kept: a FIFO would never see its end, and could block.
func (m *member) keepLog() {
	if !m.spec.LastWords || len(m.files) == 0 {
		return
	}
	var st unix.Stat_t
	fd := m.files[0].err
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	if kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err == nil {
		m.log = kept
	}
}

// lastWords writes why a running script is ended, once, ahead of the signal as in Slurm.
func (m *member) lastWords() {
	cause := m.mach.Cause()
	if _, ok := dueTo[cause]; !ok {
		return
	}
	m.say(EndLine(fmt.Sprintf("JOB %d", m.spec.Job), m.spec.Node, cause))
	m.dropLog()
}

// say writes a line to the errors of a script that runs. The write has a thread and a descriptor
// of its own: one that hangs keeps the file open, and so this process from being used again, and
// nothing else.
func (m *member) say(line string) {
	if len(m.ranks) > 0 && m.ranks[0].live() {
		m.write(line)
	}
}

// write is say where nothing runs yet.
func (m *member) write(line string) {
	if m.log <= 0 {
		return
	}
	fd, err := unix.FcntlInt(uintptr(m.log), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = unix.Write(fd, []byte(line+"\n"))
		_ = unix.Close(fd)
	}()
	select {
	case <-done:
	case <-time.After(lastWordsWait):
	}
}

func (m *member) dropLog() {
	if m.log > 0 {
		_ = unix.Close(m.log)
		m.log = 0
	}
}
