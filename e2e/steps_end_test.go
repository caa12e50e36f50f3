package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// saver is a task that saves for some seconds when it is told to end, and writes down all that
// it is told.
const saver = `
import os, signal, sys, time
where, seconds = sys.argv[1], float(sys.argv[2])
name = os.environ["GANG_EPOCH"] + "." + os.environ["SLURM_PROCID"]
log = open(os.path.join(where, "log." + name), "a", 1)
told = []
def hear(sig, frame):
    log.write("heard %d\n" % sig)
    told.append(sig)
for s in (signal.SIGTERM, signal.SIGUSR1): signal.signal(s, hear)
log.write("up\n")
while not told: time.sleep(0.02)
with open(os.path.join(where, "save." + name), "w", 1) as f:
    for i in range(10):
        f.write("line %d\n" % i)
        time.sleep(seconds / 10)
log.write("saved %.6f\n" % time.time())
`

// savers is a job whose steps run savers, two on each node.
type savers struct {
	c     *cluster
	id    int64
	dir   string // where they write
	nodes int
}

// startSavers submits a script that has the command $SAVERS to run, and waits until all are up.
func (c *cluster) startSavers(nodes int, seconds float64, script string, args ...string) *savers {
	c.t.Helper()
	tool.Need(c.t, "python3")
	s := &savers{c: c, nodes: nodes}
	var err error
	if s.dir, err = os.MkdirTemp(c.tmp, "s"); err != nil {
		c.t.Fatal(err)
	}
	body := fmt.Sprintf("#!/bin/bash\ncd %s\n[ \"$GANG_RESTART_COUNT\" = 0 ] || exit 0\nexport PATH=%s:$PATH\nSAVERS='srun --ntasks-per-node=2 python3 %s %s %g'\n%s",
		s.dir, filepath.Join(c.tmp, "slurm"), c.script("saver.py", saver), s.dir, seconds, script)
	path := c.script(filepath.Base(s.dir)+".sh", body)
	s.id = c.submit(append([]string{fmt.Sprintf("-N%d", nodes), "--ntasks-per-node=2", "--gpus-per-node=1", "--output=" + s.dir + "/out", "--requeue"}, append(args, path)...)...)
	c.until("every task is up", func() bool { return strings.Count(s.logs(), "up\n") == 2*nodes })
	return s
}

// logs are those of all tasks of the first epoch.
func (s *savers) logs() string {
	var all strings.Builder
	paths, _ := filepath.Glob(filepath.Join(s.dir, "log.1.*"))
	for _, p := range paths {
		b, _ := os.ReadFile(p)
		all.Write(b)
	}
	return all.String()
}

// check holds what became of the tasks against what must: each told once, by this signal, and
// whole; nobody killed.
func (s *savers) check(t *testing.T, signal int) {
	t.Helper()
	for task := range 2 * s.nodes {
		b, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("log.1.%d", task)))
		if err != nil {
			t.Errorf("task %d: %v", task, err)
			continue
		}
		heard := strings.Split(string(b), "\n")
		if len(heard) != 4 || heard[1] != fmt.Sprintf("heard %d", signal) || !strings.HasPrefix(heard[2], "saved ") {
			t.Errorf("task %d: %q, want one signal %d and all saved", task, heard, signal)
		}
		if b, _ := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("save.1.%d", task))); strings.Count(string(b), "\n") != 10 {
			t.Errorf("task %d saved %q", task, b)
		}
	}
	for _, e := range s.c.events(s.id) {
		if e.Forced {
			t.Errorf("killed on %s, epoch %d", e.Node, e.Epoch)
		}
	}
	if t.Failed() {
		out, _ := os.ReadFile(filepath.Join(s.dir, "out"))
		t.Logf("%s\n%s", s.c.story(s.id), out)
	}
}

// lastSave is when the last of them was done.
func (s *savers) lastSave(t *testing.T) time.Time {
	t.Helper()
	var last float64
	for _, l := range strings.Split(s.logs(), "\n") {
		var at float64
		if n, _ := fmt.Sscanf(l, "saved %f", &at); n == 1 {
			last = max(last, at)
		}
	}
	return time.UnixMicro(int64(last * 1e6))
}

// How a script ends. The first are what it does when it is told to, or by itself.
var scriptEnds = []struct{ name, how string }{
	{"exit 0", "exit 0"},
	{"exit 3", "exit 3"},
	{"TERM", "trap - TERM; kill -TERM $$"},
	{"KILL", "kill -KILL $$"},
	{"notice", ""}, // that it does not take
}

var endedBy = []string{"none", "limit", "requeue", "cancel", "preemption", "drain"}

// TestEndOfAScriptIsAStopOfItsSteps: however a script ends, and whatever ended it, the tasks
// of its steps are told once on every node and have the time to save.
func TestEndOfAScriptIsAStopOfItsSteps(t *testing.T) {
	t.Parallel()
	whole := os.Getenv("GANG_E2E_CHAOS") != ""
	seconds := 0.5
	if whole {
		seconds = 5
	}
	for _, nodes := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			t.Parallel() // mostly, they wait
			c := start(t, fmt.Sprintf("--nodes=%d", nodes), "--gpus=1x80G", "--set", "cpus=4", "--set", "preempt=tier", "--set", "grace=30s")
			slurmNames(t, c)
			for i, end := range scriptEnds {
				for k, by := range endedBy {
					// Each way to end meets each cause; the whole table is for the long run.
					if end.how == "" && by == "none" || !whole && (i+k+nodes)%3 != 0 {
						continue
					}
					t.Run(end.name+" "+by, func(t *testing.T) {
						c := *c
						c.t = t
						endSavers(t, &c, nodes, seconds, end.how, by)
					})
				}
			}
		})
	}
}

func endSavers(t *testing.T, c *cluster, nodes int, seconds float64, how, by string) {
	lead := int(seconds) + 3
	var s *savers
	switch {
	case how == "":
		s = c.startSavers(nodes, seconds, "$SAVERS\n", fmt.Sprintf("--signal=B:TERM@%d", lead), fmt.Sprintf("--grace=%d", lead), "--time=60")
	case by == "none":
		s = c.startSavers(nodes, seconds, "$SAVERS &\nwhile [ ! -e go ]; do sleep 0.05; done\n"+how+"\n")
	default:
		s = c.startSavers(nodes, seconds, "trap '"+how+"' TERM\n$SAVERS &\nwhile :; do sleep 0.1 & wait $!; done\n", "--time=60")
	}
	id := fmt.Sprint(s.id)
	want := api.JobCompleted
	switch by {
	case "none":
		if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if how != "exit 0" {
			want = api.JobFailed
		}
	case "limit":
		c.must("gctl", "update", id, fmt.Sprintf("--time=0:%02d", lead+1))
		if how != "" {
			want = api.JobTimeout
		}
	case "requeue":
		c.must("gctl", "requeue", id)
	case "cancel":
		c.must("gcancel", id)
		want = api.JobCancelled
	case "preemption":
		taker := c.submit("--priority=10", fmt.Sprintf("-N%d", nodes), "--gpus-per-node=1", "-o", "/dev/null", "--wrap", "true")
		defer c.wait(taker, api.JobCompleted)
	case "drain":
		c.must("gctl", "node", "drain", "n1", "--reason=test", fmt.Sprintf("--deadline=now+%dseconds", lead+1))
		defer c.wait(s.id, want)
		defer c.must("gctl", "node", "resume", "n1")
		c.until("it has stopped", func() bool { st := c.job(s.id).State; return st == api.JobPending || st.Ended() })
	}
	if by != "drain" {
		c.wait(s.id, want)
	}
	s.check(t, 15)
}

// A lead lasts no longer than somebody uses it: with the last task the job is over, on one
// node and on many. How soon is held against what is promised on a quiet machine only; the
// lead is 120 s everywhere.
func TestLeadEndsWithTheLastTask(t *testing.T) {
	t.Parallel()
	bound := map[string]time.Duration{"requeue": 500 * time.Millisecond, "cancel": 300 * time.Millisecond, "preemption": 500 * time.Millisecond}
	widths := []int{1, 2, 8}
	if os.Getenv("GANG_E2E_CHAOS") == "" {
		widths = []int{2}
		for by := range bound {
			bound[by] = 5 * time.Second
		}
	}
	for _, nodes := range widths {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			c := start(t, fmt.Sprintf("--nodes=%d", nodes), "--gpus=1x80G", "--set", "cpus=4", "--set", "preempt=tier")
			slurmNames(t, c)
			for _, notice := range []string{"TERM@120", "B:TERM@120"} {
				for _, by := range []string{"requeue", "cancel", "preemption"} {
					t.Run(notice+" "+by, func(t *testing.T) {
						c := *c
						c.t = t
						s := c.startSavers(nodes, 0.1, "$SAVERS\n", "--signal="+notice)
						var then func() time.Time
						switch id := fmt.Sprint(s.id); by {
						case "requeue":
							c.must("gctl", "requeue", id)
							then = func() time.Time { return c.wait(s.id, api.JobCompleted).StartTime }
						case "cancel":
							c.must("gcancel", id)
							then = func() time.Time { return c.wait(s.id, api.JobCancelled).EndTime }
						case "preemption":
							taker := c.submit("--priority=10", fmt.Sprintf("-N%d", nodes), "--gpus-per-node=1", "-o", "/dev/null", "--wrap", "true")
							then = func() time.Time { return c.wait(taker, api.JobCompleted).StartTime }
							defer c.wait(s.id, api.JobCompleted)
						}
						at := then()
						s.check(t, 15)
						took := at.Sub(s.lastSave(t))
						t.Logf("%s after the last task", took)
						if took > bound[by] {
							t.Errorf("%s after the last task, want at most %s", took, bound[by])
						}
					})
				}
			}
		})
	}
}

// By Slurm's names the lead is the limit's and preemption's: who cancels or requeues by hand
// means now, with the grace.
func TestSlurmsNamesStopAtOnce(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--gpus=1x80G", "--set", "cpus=4", "--set", "grace=30s")
	names, err := filepath.Rel(c.bin, slurmNames(t, c))
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range [][]string{{filepath.Join(names, "scancel")}, {filepath.Join(names, "scontrol"), "requeue"}, {"gctl", "requeue", "--now"}, {"gcancel", "--now"}} {
		s := c.startSavers(2, 0.1, "$SAVERS\n", "--signal=USR1@300")
		c.must(how[0], append(how[1:], fmt.Sprint(s.id))...)
		c.wait(s.id, api.JobCancelled, api.JobCompleted)
		s.check(t, 15)
	}
	s := c.startSavers(2, 0.1, "$SAVERS\n", "--signal=USR1@300")
	c.must("gctl", "requeue", fmt.Sprint(s.id))
	c.wait(s.id, api.JobCompleted)
	s.check(t, 10)
}

// TestAnyFailingStepEndsItsJob: one task of one of two steps fails, and with it the job ends, by whichever name it was made.
func TestAnyFailingStepEndsItsJob(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--gpus=1x80G", "--set", "cpus=4")
	names, err := filepath.Rel(c.bin, slurmNames(t, c))
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf("#!/bin/sh\n#GANG --fail=any\nexport PATH=%s:$PATH\nsrun -N2 --overlap sh -c '[ $SLURM_PROCID = 0 ] || exit 7; sleep 600' &\n"+
		"srun -N1 -n1 --overlap sleep 600 &\nwait\nexit 0\n", filepath.Join(c.tmp, "slurm"))
	ends := func(id int64) {
		t.Helper()
		if j := c.wait(id, api.JobFailed); j.ExitCode == nil || *j.ExitCode != 7 || !strings.HasSuffix(j.Verdict, " failed: task 1 exited with code 7 on n2") {
			t.Errorf("job %d: code %v, %q", id, j.ExitCode, j.Verdict)
		}
	}
	script := c.script("any.sh", body)
	ends(c.submit("-N2", "--output="+c.tmp+"/out", script))
	var id int64
	if _, err := fmt.Sscanf(c.must(filepath.Join(names, "sbatch"), "--parsable", "-N2", "-o", c.tmp+"/out", script), "%d", &id); err != nil {
		t.Fatal(err)
	}
	ends(id)
	// Its own status is that of a command that was killed, or had just ended.
	c.run(filepath.Join(names, "salloc"), "--fail=any", "-N2", "--kill-command", "sh", "-c", filepath.Join(c.tmp, "slurm", "srun")+" -N2 sh -c '[ $SLURM_PROCID = 0 ] || exit 7; sleep 600'; true")
	ends(id + 1)
}
