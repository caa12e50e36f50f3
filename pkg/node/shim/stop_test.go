package shim

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// saver takes two seconds to save after TERM, as training programs do.
const saver = `
import signal, sys, time, os
def save(*a):
    with open("saved", "w") as f:
        for i in range(10):
            f.write("line %d\n" % i); f.flush(); time.sleep(0.2)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
open("up", "w").close()
while True: time.sleep(0.1) # a signal that comes between two bytecodes does not end a sleep that begins behind it
`

// TestShellWaitsForItsProgram: the file is whole, the next line does not run, and the shell
// died of the signal, after its program.
func TestShellWaitsForItsProgram(t *testing.T) {
	tool.Need(t, python())
	forms := map[string]string{
		"foreground": python() + " saver.py\n",
		"pipeline":   python() + " saver.py | cat\n",
		"subshell":   "( cd .; " + python() + " saver.py; echo next line )\n",
		"nested":     "sh -c '" + python() + " saver.py; echo next line'\n",
	}
	for kind, base := range kinds(t) {
		for name, form := range forms {
			for _, shell := range []string{"/bin/bash", "/bin/sh"} {
				if shell == "/bin/sh" && name != "foreground" {
					continue
				}
				t.Run(kind+"/"+name+shell, func(t *testing.T) {
					t.Parallel()
					s := specIn(t, base, 1)
					write(t, filepath.Join(s.WorkDir, "saver.py"), saver)
					c := startShim(t, s, "#!"+shell+"\n"+form+"echo next line\n")
					_ = c.Send(Command{Go: &Go{}})
					until(t, c, api.PhaseRunning)
					await(t, filepath.Join(s.WorkDir, "up"))
					_ = c.Send(Command{Stop: &api.Stop{Cause: api.CausePreempted, Signal: "TERM", Grace: 60 * time.Second}})
					st := until(t, c, api.PhaseStopped)
					saved, _ := os.ReadFile(filepath.Join(s.WorkDir, "saved"))
					if n := strings.Count(string(saved), "\n"); n != 10 {
						t.Errorf("%d of 10 lines saved", n)
					}
					if out := output(t, s, 0); strings.Contains(out, "next line") {
						t.Errorf("the next line ran: %q", out)
					}
					if r := st.Ranks[0]; r.Signal != int(syscall.SIGTERM) || st.Forced {
						t.Errorf("rank %+v forced %v", r, st.Forced)
					}
					if f, err := os.Stat(filepath.Join(s.WorkDir, "saved")); err != nil || st.Ranks[0].Ended.Before(f.ModTime()) {
						t.Errorf("the shell died before its program: %v, last save %v", st.Ranks[0].Ended, f.ModTime())
					}
				})
			}
		}
	}
}

// TestTrapGetsTheSignal: a shell that catches the signal is told at once.
func TestTrapGetsTheSignal(t *testing.T) {
	s := testSpec(t, 1)
	c := startShim(t, s, "#!/bin/bash\ntrap 'echo caught; exit 7' TERM\ntouch up\nwhile :; do sleep 0.05; done\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	await(t, filepath.Join(s.WorkDir, "up"))
	_ = c.Send(Command{Stop: &api.Stop{Cause: api.CausePreempted, Signal: "TERM", Grace: 60 * time.Second}})
	st := until(t, c, api.PhaseStopped)
	if st.Ranks[0].ExitCode != 7 || st.Forced {
		t.Errorf("state %+v", st)
	}
	if out := output(t, s, 0); !strings.HasSuffix(out, "caught\n") {
		t.Errorf("output %q", out)
	}
}

// TestProgramItselfGetsTheSignal: after exec there is no shell to spare.
func TestProgramItselfGetsTheSignal(t *testing.T) {
	tool.Need(t, "python3")
	s := testSpec(t, 1)
	c := startShim(t, s, "#!/bin/bash\nexec python3 -c 'import time\nopen(\"up\",\"w\"); time.sleep(1000)'\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	await(t, filepath.Join(s.WorkDir, "up"))
	_ = c.Send(Command{Stop: &api.Stop{Cause: api.CausePreempted, Signal: "INT", Grace: 60 * time.Second}})
	st := until(t, c, api.PhaseStopped)
	if st.Ranks[0].Signal != int(syscall.SIGINT) || st.Forced {
		t.Errorf("state %+v", st)
	}
}

func TestGraceThenKill(t *testing.T) {
	const grace = 500 * time.Millisecond
	for kind, base := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			s := specIn(t, base, 2)
			c := startShim(t, s, "#!/bin/bash\ntrap '' TERM\ntouch up.$GANG_RANK\nwhile :; do sleep 0.05; done\n")
			_ = c.Send(Command{Go: &Go{}})
			await(t, filepath.Join(s.WorkDir, "up.0"))
			await(t, filepath.Join(s.WorkDir, "up.1"))
			start := time.Now()
			order := &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: grace}
			_ = c.Send(Command{Stop: order})
			time.Sleep(grace / 2)
			_ = c.Send(Command{Stop: order}) // a repeat must not restart the clock
			st := until(t, c, api.PhaseStopped)
			if took := time.Since(start); took < grace || took > 10*grace {
				t.Errorf("took %v of a grace of %v", took, grace)
			}
			if !st.Forced || st.Stopping != api.CauseCancelled || st.Ranks[0].Signal != 9 || st.Ranks[1].ExitCode != 137 {
				t.Errorf("state %+v", st)
			}
		})
	}
}

func TestTimeLimitWithNotice(t *testing.T) {
	s := testSpec(t, 1)
	s.TimeLimit, s.Grace = 1500*time.Millisecond, 20*time.Second
	s.Notice = &api.Notice{Signal: "USR1", Lead: 1200 * time.Millisecond, Scope: api.ScopeBatch}
	c := startShim(t, s, "#!/bin/bash\ntrap 'echo noticed' USR1\nwhile :; do sleep 0.05; done\n")
	_ = c.Send(Command{Go: &Go{}})
	st := until(t, c, api.PhaseStopped)
	if st.Stopping != api.CauseTimeout || !st.Noticed || st.Forced || st.Text != "time limit of 1 s reached" {
		t.Errorf("state %+v", st)
	}
	if out := output(t, s, 0); out != "noticed\n" {
		t.Errorf("output %q", out)
	}
}

func TestLeaseExpires(t *testing.T) {
	s := testSpec(t, 1)
	s.Lease = 700 * time.Millisecond
	c := startShim(t, s, "#!/bin/sh\nexec sleep 1000\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	_ = c.Close()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		st, err := ReadState(s.Dir)
		if err == nil && st.Phase == api.PhaseStopped {
			if st.Stopping != api.CauseNodeLost || st.Text != "no controller was reached until the lease ran out" {
				t.Errorf("state %+v", st)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("the lease ran out, and nothing happened")
		}
	}
	_, _ = waitPID(c.PID) // whoever comes later reads that
}

func TestSignalOrders(t *testing.T) {
	tool.Need(t, "python3")
	s := testSpec(t, 1)
	c := startShim(t, s, "#!/bin/bash\ntrap 'echo shell' USR1\npython3 -c '\nimport signal, time\nsignal.signal(signal.SIGUSR1, lambda *a: print(\"program\", flush=True))\nopen(\"up\",\"w\").close()\nwhile True: time.sleep(1000)' &\nwhile :; do wait; done\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	await(t, filepath.Join(s.WorkDir, "up"))
	// After each order its lines are awaited before the repeat is sent: two signals that are
	// pending at once would be one.
	scopes := []api.SignalScope{api.ScopeRanks, api.ScopeBatch, api.ScopeFull, api.ScopeFull}
	for i, scope := range scopes {
		o := &api.SignalOrder{Number: uint64(i + 1), MemberKey: s.MemberKey, Signal: "USR1", Scope: scope}
		want, lines := []int{1, 1, 2, 2}[i], []int{1, 2, 4, 6}[i]
		for range 2 { // the repeat is answered and not applied
			_ = c.Send(Command{Signal: o})
			if a := <-c.Answers(); a.Signal != o.Number || a.Processes != want {
				t.Errorf("%s: %+v, want %d processes", scope, a, want)
			}
			for end := time.Now().Add(10 * time.Second); strings.Count(output(t, s, 0), "\n") < lines && time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
	time.Sleep(50 * time.Millisecond) // for what must not come: a repeat that was applied
	out := output(t, s, 0)
	if strings.Count(out, "shell\n") != 3 || strings.Count(out, "program\n") != 3 {
		t.Errorf("output %q", out)
	}
}

// TestSignalOrdersCross: two orders that were given at the same time may come in either
// order, and neither may be dropped.
func TestSignalOrdersCross(t *testing.T) {
	s := testSpec(t, 1)
	c := startShim(t, s, "#!/bin/sh\nsleep 1000\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	for _, number := range []uint64{8, 7, 7} {
		_ = c.Send(Command{Signal: &api.SignalOrder{Number: number, MemberKey: s.MemberKey, Signal: "WINCH", Scope: api.ScopeFull}})
		if a := <-c.Answers(); a.Signal != number || a.Processes == 0 {
			t.Errorf("order %d: %+v", number, a)
		}
	}
}

func TestAdoption(t *testing.T) {
	s := testSpec(t, 5)
	c := startShim(t, s, "#!/bin/sh\nread x < "+filepath.Join(s.WorkDir, "gate")+".$GANG_RANK\nexit $((GANG_RANK + 40))\n")
	for i := range 5 {
		if err := syscall.Mkfifo(filepath.Join(s.WorkDir, "gate."+strconv.Itoa(i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Send(Command{Go: &Go{}})
	first := until(t, c, api.PhaseRunning)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := syscall.Kill(c.PID, sig); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	for i := range 3 { // exits while nobody is there
		write(t, filepath.Join(s.WorkDir, "gate."+strconv.Itoa(i)), "go\n")
	}
	a, err := Attach(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	st := untilState(t, a, func(s *State) bool {
		n := 0
		for _, r := range s.Ranks {
			if r.Exited {
				n++
			}
		}
		return n == 3
	})
	for i, r := range st.Ranks {
		if r.PID != first.Ranks[i].PID || r.Exited != (i < 3) || r.Exited && r.ExitCode != 40+i {
			t.Errorf("rank %d: %+v, was %+v", i, r, first.Ranks[i])
		}
	}
	if st.ShimPID != c.PID {
		t.Errorf("shim %d, was %d", st.ShimPID, c.PID)
	}
	for i := 3; i < 5; i++ {
		write(t, filepath.Join(s.WorkDir, "gate."+strconv.Itoa(i)), "go\n")
	}
	until(t, a, api.PhaseStopped)
	endShim(a)
	_, _ = waitPID(c.PID)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestLastWords: the log of a script that is ended says so in Slurm's line, ahead of what the
// script itself says at the signal, once, and only where somebody ended it.
func TestLastWords(t *testing.T) {
	const trap = "#!/bin/bash\ntrap 'echo caught; exit 7' TERM\ntouch up\nwhile :; do sleep 0.05; done\n"
	for name, c := range map[string]struct {
		stop api.Stop
		want string
	}{
		"cancelled":       {api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: time.Minute}, "CANCELLED AT T ***\ncaught\n"},
		"requeued":        {api.Stop{Cause: api.CauseRequeued, Signal: "TERM", Grace: time.Minute}, "CANCELLED AT T DUE TO JOB REQUEUE ***\ncaught\n"},
		"preempted":       {api.Stop{Cause: api.CausePreempted, Signal: "TERM", Grace: time.Minute}, "CANCELLED AT T DUE TO PREEMPTION ***\ncaught\n"},
		"without a grace": {api.Stop{Cause: api.CauseCancelled}, "CANCELLED AT T ***\n"},
		"another's crash": {api.Stop{Cause: api.CauseCrash, Signal: "TERM", Grace: time.Minute}, "caught\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testSpec(t, 1)
			s.LastWords = true
			cn := startShim(t, s, trap)
			_ = cn.Send(Command{Go: &Go{}})
			until(t, cn, api.PhaseRunning)
			await(t, filepath.Join(s.WorkDir, "up"))
			_ = cn.Send(Command{Stop: &c.stop})
			until(t, cn, api.PhaseStopped)
			got := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]{8}`).ReplaceAllString(output(t, s, 0), "T")
			got = strings.ReplaceAll(got, "Terminated\n", "") // the shell's, of its sleep
			got = strings.TrimPrefix(got, "slurmstepd: error: *** JOB "+strconv.FormatInt(s.Job, 10)+" ON "+s.Node+" ")
			if got != c.want {
				t.Errorf("output %q, want %q", got, c.want)
			}
		})
	}
}

// TestMessage: what people tell a job stands in its script's errors, each time, also ahead of the
// line about its end; not in those of a job that has no such lines.
func TestMessage(t *testing.T) {
	for name, wanted := range map[string]bool{"with last words": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			s := testSpec(t, 1)
			s.LastWords = wanted
			cn := startShim(t, s, "#!/bin/bash\ntouch up\nwhile :; do sleep 0.05; done\n")
			_ = cn.Send(Command{Go: &Go{}})
			until(t, cn, api.PhaseRunning)
			await(t, filepath.Join(s.WorkDir, "up"))
			for i, text := range []string{"the disk is full", "it still is"} {
				_ = cn.Send(Command{Signal: &api.SignalOrder{Number: uint64(i + 1), MemberKey: s.MemberKey, Message: text}})
			}
			_ = cn.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled}})
			until(t, cn, api.PhaseStopped)
			line := "slurmstepd-" + s.Node + ": error: "
			want := line + "the disk is full\n" + line + "it still is\nslurmstepd: error: *** JOB"
			if got := output(t, s, 0); strings.HasPrefix(got, want) != wanted || wanted == (got == "") {
				t.Errorf("output %q, want %v: %q", got, wanted, want)
			}
		})
	}
}

// TestStopSparesASave: what writes into a gckpt put that is under way is told when its bytes are stored, with a
// shell that traps the signal and with one that does not; also what forks just then, and blocks the signal for that long.
// What blocks the signal because it waits for it is told.
func TestStopSparesASave(t *testing.T) {
	tool.Need(t, python())
	sh, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	writes := func(then string) string {
		return "trap 'echo told' TERM\n" + python() + " -c '\nimport signal, time, os\nsignal.pthread_sigmask(signal.SIG_BLOCK, {15})\n" +
			"while not os.path.exists(\"saves\"): time.sleep(0.001)\n" +
			"open(\"up\", \"w\"); open(\"writes\", \"w\")\nwhile not os.path.exists(os.environ[\"GANG_STATUS_FILE\"]): time.sleep(0.001)\n" + then + "\nprint(\"new\")\n' |" +
			" ./gckpt -c 'trap \"\" TERM; touch saves; cat >saved' & p=$!\nwait $p; wait $p; echo put $?\n"
	}
	for kind, base := range kinds(t) {
		for name, script := range map[string]string{
			"trap":    "trap 'echo told' TERM\n(touch writes; sleep 1.5; echo new) | ./gckpt -c 'trap \"\" TERM; touch up; cat >saved' & p=$!\nwait $p; wait $p; echo put $?\n",
			"no trap": "(touch writes; sleep 1.5; echo new) | ./gckpt -c 'trap \"\" TERM; touch up; cat >saved'\necho next line\n",
			// Its program has only just been started.
			"forks": writes("time.sleep(0.05); signal.pthread_sigmask(signal.SIG_UNBLOCK, {15}); time.sleep(1)"),
			"waits": writes("signal.sigwait({15})"),
			"early": "trap 'echo told' TERM\n(touch writes; sleep 1.5; echo new) | ./gckpt -c 'touch up; sleep 0.5; trap \"\" TERM; cat >saved' & p=$!\nwait $p; wait $p; echo put $?\n",
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := specIn(t, base, 1)
				if err := os.WriteFile(filepath.Join(s.WorkDir, "gckpt"), sh, 0o755); err != nil {
					t.Fatal(err)
				}
				c := startShim(t, s, "#!/bin/bash\n"+script)
				_ = c.Send(Command{Go: &Go{}})
				until(t, c, api.PhaseRunning)
				await(t, filepath.Join(s.WorkDir, "writes")) // a shell that has only just been forked has the handlers of the one above
				await(t, filepath.Join(s.WorkDir, "up"))
				_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseRequeued, Signal: "TERM", Grace: 60 * time.Second}})
				st := until(t, c, api.PhaseStopped)
				if b, _ := os.ReadFile(filepath.Join(s.WorkDir, "saved")); string(b) != "new\n" || st.Forced {
					t.Errorf("stored %q, forced %v", b, st.Forced)
				}
				out := output(t, s, 0)
				if name == "no trap" && strings.Contains(out, "next line") || name != "no trap" && (!strings.Contains(out, "told\n") || !strings.HasSuffix(out, "put 0\n")) {
					t.Errorf("output %q", out)
				}
			})
		}
	}
}

// TestShellThatIgnoresTheSignalRunsOn: it has made its choice; only one that would die of the signal is held.
func TestShellThatIgnoresTheSignalRunsOn(t *testing.T) {
	for kind, base := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := specIn(t, base, 1)
			c := startShim(t, s, "#!/bin/bash\ntrap '' TERM\nsleep 1000 &\nwhile [ ! -e \"$GANG_STATUS_FILE\" ]; do touch up; sleep 0.05; done\nsleep 0.2; echo ran on; kill -9 $!\nexit 5\n")
			_ = c.Send(Command{Go: &Go{}})
			until(t, c, api.PhaseRunning)
			await(t, filepath.Join(s.WorkDir, "up"))
			_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: 60 * time.Second}})
			st := until(t, c, api.PhaseStopped)
			if out := output(t, s, 0); st.Ranks[0].ExitCode != 5 || st.Forced || !strings.Contains(out, "ran on\n") {
				t.Errorf("state %+v, output %q", st, out)
			}
		})
	}
}

// TestNoticeIsOfferedAgain: a program that was not ready for the notice gets it when it is, once; one that was
// started after it does not.
func TestNoticeIsOfferedAgain(t *testing.T) {
	tool.Need(t, python())
	s := testSpec(t, 1)
	s.Notice = &api.Notice{Signal: "USR1", Lead: time.Minute, Scope: api.ScopeRanks}
	write(t, filepath.Join(s.WorkDir, "late.py"), `
import os, signal, subprocess, sys, time
n = 0
def told(*a):
    global n
    n += 1
open("up", "w").close()
while not os.path.exists(os.environ["GANG_STATUS_FILE"]): time.sleep(0.05)
time.sleep(0.3)
signal.signal(signal.SIGUSR1, told)
child = subprocess.Popen([sys.executable, "-c", "import signal, time\nsignal.signal(signal.SIGUSR1, lambda *a: print('child told', flush=True))\nopen('child', 'w')\nfor i in range(70): time.sleep(0.05)"])
while n == 0: time.sleep(0.05)
for i in range(70): time.sleep(0.05)
child.wait()
print("told", n, flush=True)
`)
	c := startShim(t, s, "#!/bin/bash\n"+python()+" late.py\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	await(t, filepath.Join(s.WorkDir, "up"))
	_ = c.Send(Command{Stop: &api.Stop{Cause: api.CausePreempted, Signal: "TERM", Lead: time.Minute, Grace: time.Minute}})
	st := until(t, c, api.PhaseStopped)
	if out := output(t, s, 0); st.Ranks[0].ExitCode != 0 || out != "told 1\n" {
		t.Errorf("state %+v, output %q", st.Ranks[0], out)
	}
}

// TestWhoCanHearTheNotice: a member says that it is deaf to its notice where no process has a handler for it and none watches for its
// reason, and takes that back when one has.
func TestWhoCanHearTheNotice(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		deaf   bool
		late   bool // it hears after all
	}{
		"nobody":          {"touch up; sleep 1000\n", true, false},
		"a trap":          {"trap 'echo told' USR1; touch up; sleep 1000\n", false, false},
		"open directory":  {"exec 9<\"${GANG_STATUS_FILE%/*}\"; touch up; sleep 1000\n", false, false},
		"a trap, later":   {"touch up; while [ ! -e \"$GANG_STATUS_FILE\" ]; do sleep 0.05; done; sleep 0.2; trap 'echo told' USR1; while :; do sleep 0.1; done\n", true, true},
		"open dir, later": {"touch up; while [ ! -e \"$GANG_STATUS_FILE\" ]; do sleep 0.05; done; sleep 0.2; exec 9<\"${GANG_STATUS_FILE%/*}\"; sleep 1000\n", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testSpec(t, 1)
			s.Notice = &api.Notice{Signal: "USR1", Lead: time.Minute, Scope: api.ScopeRanks}
			conn := startShim(t, s, "#!/bin/bash\n"+c.script)
			_ = conn.Send(Command{Go: &Go{}})
			until(t, conn, api.PhaseRunning)
			await(t, filepath.Join(s.WorkDir, "up"))
			_ = conn.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Lead: time.Minute, Grace: time.Minute}})
			if st := untilState(t, conn, func(st *State) bool { return st.Noticed }); st.Deaf != c.deaf {
				t.Errorf("deaf: %v", st.Deaf)
			}
			if c.late {
				untilState(t, conn, func(st *State) bool { return !st.Deaf })
			}
			_ = conn.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "TERM"}})
			until(t, conn, api.PhaseStopped)
		})
	}
}
