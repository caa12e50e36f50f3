package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// Silence begins with the first beat, ends with the next one, and is told at once both times.
func TestSilenceIsTold(t *testing.T) {
	s := testSpec(t, 2)
	s.Watch.StallTimeout = 300 * time.Millisecond
	c := startShim(t, s, "#!/bin/sh\nexec sleep 600\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	time.Sleep(2 * s.Watch.StallTimeout) // rank 0 never beats: that is not silence
	beat := time.Now()
	tell(t, s, 1, "WATCHDOG=1")
	n := untilNote(t, c, func(n api.RankNote) bool { return n.Silent })
	if n.Rank != 1 || n.BeatAge < s.Watch.StallTimeout || time.Since(beat) < s.Watch.StallTimeout {
		t.Errorf("note %+v after %v", n, time.Since(beat))
	}
	tell(t, s, 1, "WATCHDOG=1")
	if n = untilNote(t, c, func(n api.RankNote) bool { return !n.Silent }); n.Rank != 1 || n.Beats != 2 {
		t.Errorf("note %+v", n)
	}
}

// A rank that has exited has nothing more to say, and is not silent.
func TestEndedRankIsNotSilent(t *testing.T) {
	s := testSpec(t, 2)
	s.Watch.StallTimeout = 300 * time.Millisecond
	c := startShim(t, s, "#!/bin/sh\n[ $GANG_RANK = 1 ] && exec sleep 600\nread x < "+s.WorkDir+"/end; exit 0\n")
	if err := unix.Mkfifo(s.WorkDir+"/end", 0o600); err != nil {
		t.Fatal(err)
	}
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	tell(t, s, 0, "WATCHDOG=1")
	if err := os.WriteFile(s.WorkDir+"/end", []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	untilState(t, c, func(st *State) bool { return len(st.Ranks) == 2 && st.Ranks[0].Exited })
	tell(t, s, 1, "WATCHDOG=1")
	if n := untilNote(t, c, func(n api.RankNote) bool { return n.Silent }); n.Rank != 1 {
		t.Errorf("rank %d is silent, which has ended", n.Rank)
	}
}

// The stacks of every rank are in its log before it is stopped, in every containment and
// also of ranks all of whose threads are stopped; the stop does not wait for more than it
// was told, and a second order does not bring them twice.
func TestStacksBeforeTheStop(t *testing.T) {
	for kind, base := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			s := specIn(t, base, 2)
			c := startShim(t, s, `#!/bin/bash
trap 'echo stopped; kill $!; exit 3' TERM
[ $GANG_RANK = 0 ] || (until grep -q '^State:.T' /proc/$$/status; do sleep 0.02; done; echo halted) &
sleep 600 &
echo up
[ $GANG_RANK = 1 ] && kill -STOP $$
wait
`)
			_ = c.Send(Command{Go: &Go{}})
			until(t, c, api.PhaseRunning)
			untilFile(t, s.Ranks[0].Output, "up")
			untilFile(t, s.Ranks[1].Output, "halted")
			stop := &api.Stop{Cause: api.CauseStalled, Signal: "TERM", Grace: 20 * time.Second, Dump: 10 * time.Second}
			_ = c.Send(Command{Stop: stop})
			_ = c.Send(Command{Stop: stop})
			st := until(t, c, api.PhaseStopped)
			if st.Forced || st.Stopping != api.CauseStalled {
				t.Errorf("%+v", st)
			}
			for i := range s.Ranks {
				b, err := os.ReadFile(s.Ranks[i].Output)
				if err != nil {
					t.Fatal(err)
				}
				log := string(b)
				head := "==== gangd: stacks of rank " + s.Ranks[i].Env[2][len("GANG_RANK="):] + " on n1 before it is stopped"
				if strings.Count(log, head) != 1 || !strings.Contains(log, "/script\nthread ") || !strings.Contains(log, "==== gangd: end of the stacks") {
					t.Errorf("rank %d:\n%s", i, log)
				}
				if strings.Index(log, head) > strings.Index(log, "stopped\n") || !strings.Contains(log, "stopped\n") {
					t.Errorf("rank %d was stopped before its stacks were written:\n%s", i, log)
				}
				if i == 1 && !strings.Contains(log, "state T (stopped)") {
					t.Errorf("rank 1 does not show as stopped:\n%s", log)
				}
			}
		})
	}
}

// Stacks that were taken and are not wanted are not written.
func TestStacksAreDropped(t *testing.T) {
	s := testSpec(t, 1)
	c := startShim(t, s, "#!/bin/sh\necho up\nexec sleep 600\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	untilFile(t, s.Ranks[0].Output, "up")
	_ = c.Send(Command{Stacks: TakeStacks})
	_ = c.Send(Command{Stacks: DropStacks})
	_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: 20 * time.Second}})
	until(t, c, api.PhaseStopped)
	if b, _ := os.ReadFile(s.Ranks[0].Output); string(b) != "up\n" {
		t.Errorf("log:\n%s", b)
	}
}

// A debugger that hangs is cut off when the stop has waited long enough; what was found by
// then is in the log.
func TestHangingDebugger(t *testing.T) {
	s := testSpec(t, 1)
	bin := t.TempDir()
	if err := os.WriteFile(bin+"/gdb", []byte("#!/bin/sh\necho began > "+bin+"/began\nexec sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Ranks[0].Env[0] = "PATH=" + bin + ":" + os.Getenv("PATH")
	c := startShim(t, s, "#!/bin/sh\necho up\nexec sleep 600\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	untilFile(t, s.Ranks[0].Output, "up")
	_ = c.Send(Command{Stacks: TakeStacks})
	untilFile(t, bin+"/began", "began")
	asked := time.Now()
	_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseStalled, Signal: "TERM", Grace: 20 * time.Second, Dump: 200 * time.Millisecond}})
	until(t, c, api.PhaseStopped)
	if d := time.Since(asked); d < 200*time.Millisecond {
		t.Errorf("stopped after %v: it did not wait", d)
	}
	b, _ := os.ReadFile(s.Ranks[0].Output)
	if log := string(b); !strings.Contains(log, "sleep 600\nthread ") || strings.Contains(log, "end of the stacks") {
		t.Errorf("log:\n%s", log)
	}
}

// Root reads the kernel's stacks; everything else, and above all the opening of the log, is
// done as the user, and so are debuggers.
func TestStacksAsTheUser(t *testing.T) {
	s := asNobody(t, 1)
	bin := filepath.Dir(s.Dir)
	if err := os.WriteFile(bin+"/gdb", []byte("#!/bin/sh\necho debugger runs as $(id -u) $(id -g) $(grep NoNewPrivs /proc/self/status)\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Ranks[0].Env[0] = "PATH=" + bin + ":" + os.Getenv("PATH")
	c := startShim(t, s, "#!/bin/sh\nsleep 600 &\necho up\nwait\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	untilFile(t, s.Ranks[0].Output, "up")
	_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseStalled, Signal: "TERM", Grace: 20 * time.Second, Dump: 20 * time.Second}})
	until(t, c, api.PhaseStopped)
	b, _ := os.ReadFile(s.Ranks[0].Output)
	if log := string(b); !strings.Contains(log, "debugger runs as 65534 65534 NoNewPrivs: 1\n") || !strings.Contains(log, "    [<0>] ") {
		t.Errorf("log:\n%s", log)
	}
}

func untilFile(t *testing.T, path, text string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if b, _ := os.ReadFile(path); strings.Contains(string(b), text) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not say %q within 30 s", path, text)
		}
	}
}
