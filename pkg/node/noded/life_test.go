package noded

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
)

func TestWholeLife(t *testing.T) {
	c := newController(t)
	dir := t.TempDir()
	c.run(c.options(dir))
	var work string
	k := c.desire(1, 1, 3, "#!/bin/sh\necho $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT with \"$@\"\nexit $RANK\n",
		func(_ *api.Assignment, s *api.Spec) { work, s.Args = s.WorkDir, []string{"a b", "c"} })
	a := c.untilPhase(k, api.PhaseStopped)
	if len(a.Ranks) != 3 || a.Port < 1024 {
		t.Fatalf("%+v", a)
	}
	for i, r := range a.Ranks {
		if r.Rank != i || !r.Exited || r.ExitCode != i {
			t.Errorf("rank %d: %+v", i, r)
		}
		b, err := os.ReadFile(filepath.Join(work, fmt.Sprintf("gang-1.%d.out", i)))
		if want := fmt.Sprintf("%d of 3 at 127.0.0.1:%d with a b c\n", i, a.Port); string(b) != want {
			t.Errorf("output of rank %d: %q, %v, want %q", i, b, err, want)
		}
	}
	c.mu.Lock()
	phases := c.phases[k]
	c.mu.Unlock()
	if slices.Contains(phases, api.PhaseLost) || phases[len(phases)-1] != api.PhaseStopped || phases[0] != api.PhaseReady {
		t.Errorf("phases %v", phases)
	}
	c.forget(k)
	c.untilGone(k)
	if _, err := os.Stat(filepath.Join(dir, membersDir, "1.1")); !os.IsNotExist(err) {
		t.Errorf("its directory is still there: %v", err)
	}
	if _, gone := c.last(k); gone != 1 {
		t.Errorf("gone %d times", gone)
	}
}

func TestStopAndSignal(t *testing.T) {
	c := newController(t)
	c.run(c.options(t.TempDir()))
	var work string
	k := c.desire(1, 1, 2, "#!/bin/bash\ntrap 'echo usr1 >>got.$RANK' USR1\ntrap 'exit 7' TERM\ntouch up.$RANK\nwhile :; do sleep 0.05; done\n",
		func(_ *api.Assignment, s *api.Spec) { work = s.WorkDir })
	c.untilPhase(k, api.PhaseRunning)
	waitFile(t, filepath.Join(work, "up.0"))
	waitFile(t, filepath.Join(work, "up.1"))
	n, err := c.hub.Signal(context.Background(), "n1", api.SignalOrder{MemberKey: k, Signal: "USR1", Scope: api.ScopeBatch})
	if n != 2 || err != nil {
		t.Errorf("%d processes, %v", n, err)
	}
	waitFile(t, filepath.Join(work, "got.1"))
	_, err = c.hub.Signal(context.Background(), "n1", api.SignalOrder{MemberKey: api.MemberKey{Job: 1, Epoch: 2}, Signal: "USR1"})
	if err == nil || err.Error() != "job 1 epoch 2 has no member on node n1" {
		t.Error(err)
	}
	c.stop(k, 10*time.Second)
	a := c.untilPhase(k, api.PhaseStopped)
	if a.Forced || a.Stopping != api.CauseCancelled || a.Ranks[0].ExitCode != 7 || a.Ranks[1].ExitCode != 7 {
		t.Errorf("%+v", a)
	}
	_, err = c.hub.Signal(context.Background(), "n1", api.SignalOrder{MemberKey: k, Signal: "USR1"})
	if err == nil || err.Error() != "job 1 epoch 1 runs nothing on node n1" {
		t.Error(err)
	}
}

func waitFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %s", path)
		}
	}
}

func TestForgetKills(t *testing.T) {
	c := newController(t)
	c.run(c.options(t.TempDir()))
	k := c.desire(1, 1, 1, "#!/bin/bash\ntrap '' TERM\nwhile :; do sleep 1; done\n")
	a := c.untilPhase(k, api.PhaseRunning)
	c.forget(k)
	c.untilGone(k)
	if syscall.Kill(a.Ranks[0].PID, 0) == nil {
		t.Errorf("process %d of a forgotten member lives", a.Ranks[0].PID)
	}
}

func TestStopBeforeTheGate(t *testing.T) {
	c := newController(t)
	c.autoGo = false
	c.run(c.options(t.TempDir()))
	k := c.desire(1, 1, 2, "#!/bin/sh\ntouch ran\n")
	c.untilPhase(k, api.PhaseReady)
	c.stop(k, time.Second)
	if a := c.untilPhase(k, api.PhaseStopped); len(a.Ranks) != 0 {
		t.Errorf("ranks of a member whose gate stayed shut: %+v", a.Ranks)
	}
	early := c.desire(2, 1, 1, "#!/bin/sh\n", func(a *api.Assignment, _ *api.Spec) { a.Stop = &api.Stop{Signal: "TERM"} })
	c.untilPhase(early, api.PhaseStopped)
}

func TestRefusals(t *testing.T) {
	c := newController(t)
	c.run(c.options(t.TempDir()))
	cases := []struct {
		name   string
		change func(*api.Assignment, *api.Spec)
		whose  api.Blame
		want   string
	}{
		{"missing directory", func(_ *api.Assignment, s *api.Spec) { s.WorkDir = "/nowhere/at/all" }, api.BlameFiles, "/nowhere/at/all"},
		{"another user", func(a *api.Assignment, _ *api.Spec) { a.Body.UID = 4242 }, api.BlameUser, fmt.Sprintf(
			"this node runs everything as uid %d (single-user), the job is of someone (uid 4242)", os.Getuid())},
		{"its script is lost", func(_ *api.Assignment, s *api.Spec) { s.Script = nil }, api.BlameJob, "the controller can't read its script and environment from its store any more"},
		{"not placed here", func(a *api.Assignment, _ *api.Spec) { a.Body.Nodes[0].Name = "n9" }, api.BlameNode, "job 4 epoch 1 is not placed on node n1"},
	}
	for i, x := range cases {
		k := c.desire(int64(i+1), 1, 1, "#!/bin/sh\n", x.change)
		a := c.untilPhase(k, api.PhaseRefused)
		if a.Refusal == nil || a.Refusal.Blame != x.whose || !strings.Contains(a.Refusal.Text, x.want) {
			t.Errorf("%s: %+v", x.name, a.Refusal)
		}
		c.forget(k)
		c.untilGone(k)
	}
}

// TestOldGateIsNotOpened: a member that is not known here is never started by an open gate.
func TestOldGateIsNotOpened(t *testing.T) {
	c := newController(t)
	c.run(c.options(t.TempDir()))
	var work string
	k := c.desire(1, 1, 1, "#!/bin/sh\ntouch ran\n", func(a *api.Assignment, s *api.Spec) { a.Gate, work = &api.Gate{}, s.WorkDir })
	c.untilPhase(k, api.PhaseLost)
	if _, err := os.Stat(filepath.Join(work, "ran")); err == nil {
		t.Error("it ran")
	}
}

// TestAGateThatIsItsOwn: a member that has its gang alone is prepared and started by one word, with the port that its node picked,
// and keeps to the rules of every gate.
func TestAGateThatIsItsOwn(t *testing.T) {
	c := newController(t)
	c.autoGo = false
	c.run(c.options(t.TempDir()))
	alone := func(a *api.Assignment, _ *api.Spec) { a.Gate = &api.Gate{Alone: true, TimeLimit: api.NoLimit} }
	var work string
	k := c.desire(1, 1, 1, "#!/bin/sh\nprintf $MASTER_PORT >port\n", alone, func(_ *api.Assignment, s *api.Spec) { work = s.WorkDir })
	a := c.untilPhase(k, api.PhaseStopped)
	port, err := os.ReadFile(filepath.Join(work, "port"))
	if err != nil || string(port) != strconv.Itoa(a.Port) || a.Port == 0 {
		t.Errorf("its port is %q (%v), told is %d", port, err, a.Port)
	}
	one := c.desire(2, 1, 1, "#!/bin/bash\nexec sleep 1000\n", alone)
	c.untilPhase(one, api.PhaseRunning)
	two := c.desire(2, 2, 1, "#!/bin/sh\nkill -0 $(cat "+filepath.Join(work, "pid")+")\n", alone) // while an older one lives it waits
	if err := os.WriteFile(filepath.Join(work, "pid"), []byte(strconv.Itoa(c.untilPhase(one, api.PhaseRunning).Ranks[0].PID)), 0o600); err != nil {
		t.Fatal(err)
	}
	c.stop(one, time.Second)
	if a := c.untilPhase(two, api.PhaseStopped); len(a.Ranks) != 1 || a.Ranks[0].ExitCode == 0 {
		t.Errorf("beside an older epoch: %+v", a.Ranks)
	}
}

// TestEpochsDoNotMeet: the gate of an epoch stays shut while an older one lives here, and
// that of an old epoch once a newer one is known.
func TestEpochsDoNotMeet(t *testing.T) {
	c := newController(t)
	c.autoGo = false
	c.run(c.options(t.TempDir()))
	one := c.desire(1, 1, 1, "#!/bin/bash\nexec sleep 1000\n")
	c.untilPhase(one, api.PhaseReady)
	open := func(a *api.Assignment) { a.Gate = &api.Gate{} }
	c.order(one, open)
	c.untilPhase(one, api.PhaseRunning)
	two := c.desire(1, 2, 1, "#!/bin/sh\nexit 0\n")
	c.untilPhase(two, api.PhaseReady)
	c.order(two, open)
	time.Sleep(2 * retryWait) // a gate that opened would show at once
	if p := c.untilPhase(two, api.PhaseReady); len(p.Ranks) != 0 {
		t.Fatalf("the second epoch runs beside the first: %+v", p)
	}
	c.stop(one, time.Second)
	c.untilPhase(one, api.PhaseStopped)
	c.untilPhase(two, api.PhaseStopped)

	c.autoGo = false
	newer := c.desire(2, 5, 1, "#!/bin/sh\n")
	older := c.desire(2, 4, 1, "#!/bin/sh\n")
	c.untilPhase(newer, api.PhaseReady)
	c.untilPhase(older, api.PhaseReady)
	c.order(older, open)
	time.Sleep(2 * retryWait)
	if p := c.untilPhase(older, api.PhaseReady); len(p.Ranks) != 0 {
		t.Fatalf("a stale epoch was started: %+v", p)
	}
}

// TestFullSetRemovesTheRest: after a reconnect what is not listed goes, dead or alive.
func TestFullSetRemovesTheRest(t *testing.T) {
	c := newController(t)
	c.run(c.options(t.TempDir()))
	k := c.desire(1, 1, 1, "#!/bin/bash\nexec sleep 1000\n")
	stay := c.desire(2, 1, 1, "#!/bin/bash\nexec sleep 1000\n")
	a := c.untilPhase(k, api.PhaseRunning)
	b := c.untilPhase(stay, api.PhaseRunning)
	c.mu.Lock()
	delete(c.want, k) // without a wake-up: only the next session's full set says so
	c.mu.Unlock()
	c.hub.Kick("n1")
	c.untilGone(k)
	if syscall.Kill(a.Ranks[0].PID, 0) == nil {
		t.Error("it lives")
	}
	if after := c.untilPhase(stay, api.PhaseRunning); after.Ranks[0].PID != b.Ranks[0].PID || syscall.Kill(b.Ranks[0].PID, 0) != nil {
		t.Errorf("the one that was listed suffered: %+v", after)
	}
}

func TestReadLog(t *testing.T) {
	c := newController(t)
	c.run(c.options(t.TempDir()))
	c.until("a session", func() bool { return len(c.hellos) > 0 })
	path := filepath.Join(t.TempDir(), "log")
	q := api.LogRead{Path: path, UID: uint32(os.Getuid())}
	err := c.hub.ReadLog(context.Background(), "n1", q, &bytes.Buffer{})
	if api.CodeOf(err) != api.CodeNotFound || err.Error() != path+": no such file or directory" {
		t.Errorf("missing file: %v", err)
	}
	// Followed, it is waited for and read as it grows.
	q.Follow = true
	ctx, cancel := context.WithCancel(context.Background())
	got := make(lines, 16)
	done := make(chan error, 1)
	go func() { done <- c.hub.ReadLog(ctx, "n1", q, got) }()
	for _, text := range []string{"one\n", "two\n"} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.WriteString(text)
		_ = f.Close()
		select {
		case s := <-got:
			if s != text {
				t.Errorf("got %q, want %q", s, text)
			}
		case <-time.After(patience):
			t.Fatalf("nothing of %q", text)
		}
	}
	cancel()
	<-done
	q.Follow, q.Offset = false, -3
	var b bytes.Buffer
	if err := c.hub.ReadLog(context.Background(), "n1", q, &b); err != nil || b.String() != "wo\n" {
		t.Errorf("tail %q, %v", b.String(), err)
	}
}

func TestAppendLog(t *testing.T) {
	c := newController(t)
	c.run(c.options(t.TempDir()))
	c.until("a session", func() bool { return len(c.hellos) > 0 })
	path := filepath.Join(t.TempDir(), "log")
	a := api.LogAppend{Path: path, UID: uint32(os.Getuid()), Text: "used\n"}
	if err := c.hub.AppendLog(context.Background(), "n1", a); api.CodeOf(err) != api.CodeNotFound || err.Error() != path+": no such file or directory" {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.hub.AppendLog(context.Background(), "n1", a); err != nil {
			t.Error(err)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != "done\nused\n" {
		t.Errorf("it holds %q", got)
	}
	a.Path = "/dev/null"
	if err := c.hub.AppendLog(context.Background(), "n1", a); api.CodeOf(err) != api.CodeConflict || err.Error() != "/dev/null is not a regular file" {
		t.Errorf("a device: %v", err)
	}
}

type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }
