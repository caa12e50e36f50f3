package shim

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/proc"
)

// asks has a call under way, as a command that asks for the end of its job, and ends well when it has its answer.
const asks = `
import os, socket, sys, time
a, b = socket.socketpair()
with open("pid.new", "w") as f: f.write(str(os.getpid()))
os.rename("pid.new", "pid")
if sys.argv[1] == "ends": sys.exit()
for i in range(200):
    if os.path.exists("told") and sys.argv[1] == "answered": break
    time.sleep(0.05)
time.sleep(0.1)
`

// bystander is told at once.
const bystander = `
import os, signal, time
def told(*a): open("told", "w").close()
signal.signal(signal.SIGTERM, told)
open("by", "w").close()
while not os.path.exists("over"): time.sleep(0.05)
`

// TestWhoAsksForTheStopHearsItsAnswer: others are told at once, who asked when it has its answer, and who waits for it
// and would die of the signal after that.
func TestWhoAsksForTheStopHearsItsAnswer(t *testing.T) {
	tool.Need(t, python())
	for kind, base := range kinds(t) {
		for name, c := range map[string]struct {
			script, want string
			boot         string
		}{
			"ended before the stop": {"echo $$ >above; " + python() + " asks.py ends; rc=$?; sleep 0.1; echo rc $rc; sleep 1000\n", "rc 0\n", bootID()},
			"script":                {python() + " asks.py answered; echo rc $?; sleep 1000\n", "rc 0\n", bootID()},
			"trap":                  {"trap 'echo trap; exit 3' TERM\n" + python() + " asks.py answered; echo rc $?; sleep 1000\n", "trap\n", bootID()},
			"in a program":          {python() + " -c 'import subprocess,time; print(\"rc\", subprocess.call([\"" + python() + "\", \"asks.py\", \"answered\"]), flush=True); time.sleep(1000)'\n", "rc 0\n", bootID()},
			"no answer":             {python() + " asks.py never; echo rc $?\n", "", bootID()},
			"other machine":         {python() + " asks.py answered; echo rc $?\n", "", "another"},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := specIn(t, base, 1)
				write(t, filepath.Join(s.WorkDir, "asks.py"), asks)
				write(t, filepath.Join(s.WorkDir, "by.py"), bystander)
				conn := startShim(t, s, "#!/bin/bash\n"+python()+" by.py &\nwhile [ ! -e by ]; do sleep 0.05; done\n"+c.script)
				_ = conn.Send(Command{Go: &Go{}})
				until(t, conn, api.PhaseRunning)
				await(t, filepath.Join(s.WorkDir, "pid"))
				b, _ := os.ReadFile(filepath.Join(s.WorkDir, "pid"))
				pid, err := strconv.Atoi(string(b))
				if err != nil {
					t.Fatal(err)
				}
				above, _ := os.ReadFile(filepath.Join(s.WorkDir, "above"))
				for len(above) > 0 && processLives(pid) { // its answer has come, and who waited for it knows
					time.Sleep(time.Millisecond)
				}
				_ = conn.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: 60 * time.Second, Asker: api.Asker{PID: pid, Boot: c.boot, Above: strings.TrimSpace(string(above))}}})
				await(t, filepath.Join(s.WorkDir, "told"))
				time.AfterFunc(2*time.Second, func() { _ = os.WriteFile(filepath.Join(s.WorkDir, "over"), nil, 0o644) })
				st := until(t, conn, api.PhaseStopped)
				if out := output(t, s, 0); !strings.HasSuffix(out, c.want) || c.want == "" && strings.Contains(out, "rc 0") || st.Forced {
					t.Errorf("forced %v, output %q", st.Forced, out)
				}
			})
		}
	}
}

func processLives(pid int) bool {
	s, ok := proc.ReadStat(pid)
	return ok && !s.Dead()
}
