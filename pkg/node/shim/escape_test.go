package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/proc"
)

// The witness of an escape is in its command line, which survives `env -i`: a path that
// nobody else on the machine names.
func survivors(t testing.TB, witness string) []int {
	pids, err := proc.All()
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, pid := range pids {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if s, ok := proc.ReadStat(pid); ok && !s.Dead() && strings.Contains(string(b), witness) {
			out = append(out, pid)
		}
	}
	return out
}

// Ways of a process to outlive its rank; W is the witness. Each tells by a file that it is
// really there, so that a test can't pass on a process that never existed.
var escapes = map[string]string{
	"setsid":      `setsid sh -c 'echo > W.up; sleep 1000; : W' &`,
	"double fork": `( setsid sh -c '( echo > W.up; sleep 1000; : W ) & ( sleep 1000; : W ) &' & ) `,
	"ignore term": `sh -c 'trap "" TERM INT HUP; echo > W.up; while :; do sleep 1; done; : W' &`,
	"nohup":       `nohup sh -c 'echo > W.up; sleep 1000; : W' >/dev/null 2>&1 &`,
	"env -i":      `env -i setsid /bin/sh -c '/bin/echo > W.up; ( /bin/sleep 1000; : W ) & exec /bin/sh -c "trap \"\" TERM; /bin/sleep 1000; : W"' &`,
	"stopped":     `setsid sh -c 'echo > W.up; kill -STOP $$; : W' &`,
	"daemon": python() + ` -c 'import os,time,signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.posix_spawn("/bin/sh", ["sh","-c","setsid sh -c \"echo > W.up; sleep 1000; : W\" &"], {}): os._exit(0)' &`,
}

// python is the system's: one that is found by PATH may be a script that takes ten times as long to start.
func python() string {
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		return "/usr/bin/python3"
	}
	return "python3"
}

const tries = 50

func TestNothingEscapes(t *testing.T) {
	n := tries
	if testing.Short() {
		n = 5
	}
	for kind, base := range kinds(t) {
		for name, how := range escapes {
			t.Run(kind+"/"+name, func(t *testing.T) {
				if strings.Contains(how, python()) {
					tool.Need(t, python())
				}
				t.Parallel()
				p := testPool(t) // what comes next in a shim meets what was left before
				for i := range n {
					// Half of them end by themselves, half are cancelled.
					escapeOnce(t, p, base, how, i%2 == 0)
				}
			})
		}
	}
}

func escapeOnce(t *testing.T, p *Pool, base proc.Cgroups, how string, cancel bool) {
	s := specIn(t, base, 1)
	w := filepath.Join(s.WorkDir, "witness")
	script := "#!/bin/sh\n" + strings.ReplaceAll(how, "W", w) + "\nwhile [ ! -e " + w + ".up ]; do sleep 0.005; done\n"
	if cancel {
		script += "sleep 1000\n"
	}
	c := startIn(t, p, s, script)
	_ = c.Send(Command{Go: &Go{}})
	if cancel {
		until(t, c, api.PhaseRunning)
		await(t, w+".up")
		_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: 20 * time.Millisecond}})
	}
	until(t, c, api.PhaseStopped)
	if left := survivors(t, w); len(left) > 0 {
		t.Errorf("survivors %v", left)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if _, err := os.Stat(w + ".up"); err != nil {
		t.Errorf("nobody tried to escape: %v", err)
	}
	endShim(c)
	_ = os.RemoveAll(s.Dir)
}

func await(t testing.TB, path string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	t.Fatalf("%s did not come", path)
}

// TestKilledShim: what a shim leaves that was killed is emptied from outside. In group mode
// a process that has also cleared its environment can't be told from a stranger's.
func TestKilledShim(t *testing.T) {
	for kind, base := range kinds(t) {
		for name, how := range escapes {
			if kind == proc.Group && (name == "env -i" || name == "daemon") {
				continue
			}
			t.Run(kind+"/"+name, func(t *testing.T) {
				if strings.Contains(how, python()) {
					tool.Need(t, python())
				}
				t.Parallel()
				s := specIn(t, base, 1)
				w := filepath.Join(s.WorkDir, "witness")
				c := startShim(t, s, "#!/bin/sh\n"+strings.ReplaceAll(how, "W", w)+"\nsleep 1000; : W\n")
				_ = c.Send(Command{Go: &Go{}})
				st := until(t, c, api.PhaseRunning)
				await(t, w+".up")
				_ = syscall.Kill(c.PID, syscall.SIGKILL)
				for range c.Answers() {
				}
				if err := syscall.Kill(st.Ranks[0].PID, 0); err != nil {
					t.Errorf("the rank died with its shim: %v", err)
				}
				if err := proc.KillContainment(s.Place(), 10*time.Second); err != nil {
					t.Fatal(err)
				}
				if left := survivors(t, w); len(left) > 0 {
					t.Errorf("survivors %v", left)
				}
				if _, err := Attach(s.Dir); err == nil {
					t.Error("attached to a dead shim")
				}
				if last, err := ReadState(s.Dir); err != nil || last.Phase != api.PhaseRunning || last.Ranks[0].PID != st.Ranks[0].PID {
					t.Errorf("last word %+v, %v", last, err)
				}
			})
		}
	}
}
