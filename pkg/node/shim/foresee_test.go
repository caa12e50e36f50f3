package shim

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/proc"
)

// TestEndsThatWereDecidedBeforeTheStop: a shell that is stopped in the moment in which its program has failed, and who fails in that in
// which he would be ended.
func TestEndsThatWereDecidedBeforeTheStop(t *testing.T) {
	tool.Need(t, python())
	for name, c := range map[string]struct {
		script string
		failed bool
	}{
		// Stopped, as by a machine that gives it no CPU, it does not see how its program ends.
		"a program that fails":     {"(while [ ! -e stopped ]; do sleep 0.02; done; exit 3) & echo $$ >shell; kill -STOP $$; wait $!; exit $?\n", true},
		"a program that ends well": {"(while [ ! -e stopped ]; do sleep 0.02; done; exit 0) & echo $$ >shell; kill -STOP $$; wait $!; exit $?\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testSpec(t, 1)
			conn := startShim(t, s, "#!/bin/bash\n"+c.script)
			_ = conn.Send(Command{Go: &Go{}})
			st := until(t, conn, api.PhaseRunning)
			shell := st.Ranks[0].PID
			await(t, filepath.Join(s.WorkDir, "shell"))
			for {
				if p, ok := proc.ReadStat(shell); ok && p.State == 'T' {
					break
				}
				time.Sleep(time.Millisecond)
			}
			write(t, filepath.Join(s.WorkDir, "stopped"), "")
			for live := true; live; time.Sleep(time.Millisecond) { // until its child is one that it has not waited for
				live = false
				pids, err := proc.Descendants(shell, func(proc.Stat) bool { return false })
				if err != nil {
					t.Fatal(err)
				}
				for _, pid := range pids {
					p, ok := proc.ReadStat(pid)
					live = live || ok && pid != shell && !p.Dead()
				}
			}
			_ = conn.Send(Command{Stop: &api.Stop{Cause: api.CauseCrash, Signal: "TERM", Grace: time.Minute}})
			if st := until(t, conn, api.PhaseStopped); st.Ranks[0].ProgramFailed != c.failed || st.Ranks[0].Own || st.Ranks[0].Signal != int(unix.SIGTERM) {
				t.Errorf("%+v", st.Ranks[0])
			}
		})
	}
	status := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	for _, c := range []struct {
		by   unix.Signal
		ws   syscall.WaitStatus
		want bool
	}{
		{unix.SIGTERM, status(3), true}, {unix.SIGTERM, syscall.WaitStatus(unix.SIGABRT), true}, {unix.SIGTERM, status(0), false},
		{unix.SIGTERM, syscall.WaitStatus(unix.SIGTERM), false}, {unix.SIGTERM, syscall.WaitStatus(unix.SIGKILL), false}, {0, status(3), false},
	} {
		if r := (&rank{endedBy: c.by}); r.decided(c.ws) != c.want {
			t.Errorf("%v", c)
		}
	}
}

// TestKept: how long before it was seen a rank may have ended, of a process and of a shell, on machines with much and with little to do.
func TestKept(t *testing.T) {
	const waited = 7 * time.Millisecond
	for _, c := range []struct {
		comm     string
		program  bool // it has waited for one
		quiet    time.Duration
		withMuch time.Duration
	}{
		{"python3", false, 0, waited},
		{"python3", true, 0, waited},
		{"bash", false, waited, waited},
		{"bash", true, waited, proc.KeptMost},
	} {
		s := &proc.Stat{Comm: c.comm, Waited: c.program}
		if quiet, much := kept(s, false, waited), kept(s, true, waited); quiet != c.quiet || much != c.withMuch {
			t.Errorf("%s, of a program %t: %s and %s, want %s and %s", c.comm, c.program, quiet, much, c.quiet, c.withMuch)
		}
	}
}
