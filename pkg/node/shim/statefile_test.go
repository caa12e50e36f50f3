package shim

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

func TestStateFile(t *testing.T) {
	t.Chdir(t.TempDir())
	var f stateFile
	save := func(text string, result bool) {
		t.Helper()
		b, err := json.Marshal(State{MemberActual: api.MemberActual{Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		f.save(b, result)
		if s, err := ReadState("."); !f.unsaved && (err != nil || s.Text != text) {
			t.Fatalf("%q came back as %+v, %v", text, s, err)
		}
	}
	inode := func() uint64 {
		var st unix.Stat_t
		if err := unix.Stat(StateFile, &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	save("a longer text", false)
	first := inode()
	save("short", false)
	save("first result", true)
	if inode() != first {
		t.Error("the first result of a page was not written in place")
	}
	save("change after it", false)
	if inode() == first {
		t.Error("a result was written over")
	}
	save(strings.Repeat("x", 2*pageSize), true)
	if err := os.Mkdir(StateFile+".new", 0o700); err != nil { // no disk is full like a name that is taken
		t.Fatal(err)
	}
	save("not on disk", true)
	if !f.unsaved || f.retry() {
		t.Errorf("unsaved %v, retry at once %v", f.unsaved, f.retry())
	}
	f.tryAt = 0
	if !f.retry() {
		t.Error("is never tried again")
	}
	_ = os.Remove(StateFile + ".new")
	save("on disk at last", true)
	if f.unsaved {
		t.Error("still unsaved")
	}
}

// TestExitsWithoutBye: with its result on disk, or when nobody came to record it within the bounded wait.
func TestExitsWithoutBye(t *testing.T) {
	now := clock(unix.CLOCK_MONOTONIC)
	m := &member{over: true, exitAt: now + byeWait}
	if !m.finished() {
		t.Error("waits although the result is on disk")
	}
	m.file.unsaved = true
	if m.finished() {
		t.Error("exits before the wait is over")
	}
	m.bye = true
	if !m.finished() {
		t.Error("waits although the result is recorded")
	}
	m.bye = false
	m.exitAt = now - 1
	if !m.finished() {
		t.Error("waits for ever")
	}
	if (&member{exitAt: now - 1}).finished() {
		t.Error("exits although its member is not over")
	}
}

// TestExitsWhenAnswersAreWritten: a bye ends the shim when gnoded has been given what it was told.
func TestExitsWhenAnswersAreWritten(t *testing.T) {
	slow := &conn{out: []byte("\n")}
	m := &member{over: true, bye: true, exitAt: clock(unix.CLOCK_MONOTONIC) + byeWait, conns: conns{list: []*conn{{}, slow}}}
	if m.finished() {
		t.Error("exits while an answer is unwritten")
	}
	slow.out = nil
	if !m.finished() {
		t.Error("waits though all is written")
	}
}

// TestByeWhileRanksRun: results would be lost with the shim.
func TestByeWhileRanksRun(t *testing.T) {
	s := testSpec(t, 1)
	c := startShim(t, s, "#!/bin/sh\nread x < gate; exit 5\n")
	if err := unix.Mkfifo(s.WorkDir+"/gate", 0o600); err != nil {
		t.Fatal(err)
	}
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	_ = c.Send(Command{Bye: true})
	write(t, s.WorkDir+"/gate", "go\n")
	if st := until(t, c, api.PhaseStopped); st.Ranks[0].ExitCode != 5 {
		t.Errorf("%+v", st.Ranks[0])
	}
}

// TestHolder: a member without ranks lives until it is told to end.
func TestHolder(t *testing.T) {
	for _, bye := range []bool{false, true} {
		s := testSpec(t, 0)
		c := startShim(t, s, "#!/bin/sh\n")
		_ = c.Send(Command{Go: &Go{}})
		until(t, c, api.PhaseRunning)
		if bye {
			_ = c.Send(Command{Bye: true})
		} else {
			_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseCompleted, Signal: "TERM", Grace: 30e9}})
		}
		if st := until(t, c, api.PhaseStopped); st.Forced || len(st.Ranks) != 0 {
			t.Errorf("bye %v: %+v", bye, st)
		}
	}
}
