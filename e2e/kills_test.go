package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// hogPython takes memory until it is killed for it.
const hogPython = "/usr/bin/python3 -c 'a = []\nwhile True: a.append(bytearray(b\"x\" * 4000000))'"

// poolProgram loses a worker, and starts another in its place, as pools do.
const poolProgram = `
import subprocess, sys
hog = "a = []\nwhile True: a.append(bytearray(b'x' * 4000000))"
for work in [hog, "pass", "pass"]:
    subprocess.call([sys.executable, "-c", work])
print("pool done", flush=True)
`

// TestKillsForMemoryAreSeen: whatever those made of it who waited for a process that the kernel killed for want of memory, or if nobody
// did, the job is out of memory, by every name, in its output, its events and its efficiency.
func TestKillsForMemoryAreSeen(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/python3")
	c := start(t, "--nodes=1", "--set", "cpus=8", "--set", "memory=8G")
	names := c.slurmNames()
	if l := c.nodes()[0].Limits; l.Memory != api.LimitEnforced {
		t.Skipf("no memory account here: %+v", l)
	}
	c.script("pool.py", poolProgram)
	scripts := map[string]string{
		"a pool":                      "/usr/bin/python3 pool.py\n",
		"in the background":           hogPython + " & wait\ntrue\n",
		"disowned":                    "(setsid " + hogPython + " & echo $! >hog.$GANG_JOB_ID)\nwhile kill -0 $(cat hog.$GANG_JOB_ID) 2>/dev/null; do sleep 0.05; done\n",
		"in a pipe":                   hogPython + " | cat\n",
		"its own code is kept":        hogPython + "\nexit 5\n",
		"a step":                      names + "/srun " + hogPython + "\ntrue\n",
		"a step of which one goes on": names + "/srun -n2 sh -c '[ $SLURM_PROCID = 0 ] || " + strings.ReplaceAll(hogPython, "'", `'\''`) + "; true'\n",
	}
	type one struct {
		name string
		id   int64
		out  string
	}
	var all []one
	for round := range trial.Rounds(1) {
		for name, script := range scripts {
			for _, by := range []string{"sbatch", "gsubmit"} {
				if by == "gsubmit" && strings.Contains(script, "srun") {
					continue
				}
				o := one{name: by + ", " + name, out: filepath.Join(c.tmp, fmt.Sprint("out", len(all), ".", round))}
				program, args := "gsubmit", []string{"--mem=60M", "-o", o.out, "--parsable"}
				if by == "sbatch" {
					program, args = c.fromBin(names, "sbatch"), append(args, "-n2")
				}
				text := strings.TrimSpace(c.must(program, append(args, c.script("job.sh", "#!/bin/bash\n"+script))...))
				id, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				o.id = id
				all = append(all, o)
			}
		}
		for _, o := range all[len(all)-len(all)/(round+1):] {
			j := c.client().Wait(o.id, api.JobOutOfMemory, api.JobCompleted, api.JobFailed)
			if j.State != api.JobOutOfMemory || j.Cause != api.CauseOOM || !strings.Contains(j.Verdict, "for want of memory") && !strings.Contains(j.Verdict, "out of memory") {
				t.Errorf("%s: %s (%s): %s\n%s", o.name, j.State, j.Cause, j.Verdict, c.story(o.id))
				continue
			}
			if got := c.must(c.fromBin(names, "sacct"), "-nPo", "state,exitcode", "-X", "-j", fmt.Sprint(o.id)); got != "OUT_OF_MEMORY|0:125\n" {
				t.Errorf("%s: sacct says %q", o.name, got)
			}
			if evs := c.eventsOf(o.id, api.EventMemoryKills); len(evs) != 1 {
				t.Errorf("%s: events %+v", o.name, evs)
			}
			if out := readFile(t, o.out); !strings.Contains(out, "want of memory") && !strings.Contains(out, "oom_kill event") {
				t.Errorf("%s: its output is %q", o.name, out)
			}
			if got := c.must(c.fromBin(names, "seff"), fmt.Sprint(o.id)); !strings.Contains(got, "OUT_OF_MEMORY") {
				t.Errorf("%s: seff says\n%s", o.name, got)
			}
			if got := c.must("gacct", "-e", fmt.Sprint(o.id)); !strings.Contains(got, "--mem") {
				t.Errorf("%s: no advice:\n%s", o.name, got)
			}
		}
	}
	t.Logf("%d jobs of which something was killed", len(all))
}

// usesProgram takes so many megabytes, computes, and says what it has used of both by the kernel's word. Then it ends as it is told.
const usesProgram = `
import os, resource, signal, sys, time
name, megabytes, how, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
if int(os.environ.get("GANG_RESTART_COUNT", "0")): sys.exit(0)
a = bytearray(megabytes << 20)
for i in range(0, len(a), 4096): a[i] = 1
end = time.process_time() + seconds
while time.process_time() < end: pass
def say():
    peak = [l.split()[1] for l in open("/proc/self/status") if l.startswith("VmHWM")][0]
    with open(name + ".new", "w") as f: f.write("%f %d" % (time.process_time(), int(peak) << 10))
    os.rename(name + ".new", name)
say()
if how == "oom":
    more = []
    while True:
        more.append(bytearray(b"x" * 500000))
        say()
if how == "signal": os.kill(os.getpid(), signal.SIGKILL)
if how == "exit": sys.exit(0)
while True: time.sleep(1)
`

// TestWhatWasUsedHoweverItEnded: the largest memory and the CPU time of a batch script, and of a gang, are those of its program, however
// that came to its end.
func TestWhatWasUsedHoweverItEnded(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/python3")
	c := start(t, "--nodes=1", "--set", "cpus=8", "--set", "memory=8G", "--set", "retry_backoff=50ms")
	names := c.slurmNames()
	c.script("uses.py", usesProgram)
	seconds, ways := "0.5", []string{"signal", "requeue"}
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		seconds, ways = "3", []string{"exit", "signal", "limit", "cancel", "oom", "requeue"}
	}
	type one struct {
		name, how, truth string
		batch            bool
		id               int64
	}
	var all []one
	for round := range trial.Rounds(1) {
		for _, how := range ways {
			if how == "oom" && c.nodes()[0].Limits.Memory != api.LimitEnforced {
				continue
			}
			for _, batch := range []bool{true, false} {
				o := one{how: how, batch: batch, truth: filepath.Join(c.tmp, fmt.Sprintf("%s.%v.%d", how, batch, round)), name: fmt.Sprintf("%s, batch %v", how, batch)}
				args := []string{"--mem=150M", "-o", "/dev/null", "--requeue"}
				if batch {
					args = append(args, "--nodes=1")
				}
				o.id = c.submit(append(args, c.script("job.sh", fmt.Sprintf("#!/bin/bash\n/usr/bin/python3 uses.py %s 100 %s %s\nexit $?\n", o.truth, how, seconds)))...)
				all = append(all, o)
			}
		}
	}
	for _, o := range all {
		c.client().Until(5*time.Minute, "the program of "+o.name, func() bool {
			s := c.job(o.id).State // before the look: the program says it, and ends
			_, err := os.Stat(o.truth)
			if err != nil && s == api.JobFailed {
				t.Fatalf("%s has failed\n%s", o.name, c.story(o.id))
			}
			return err == nil
		})
		switch o.how {
		case "limit":
			c.must("gctl", "update", fmt.Sprint(o.id), "--time=0:01")
		case "cancel":
			c.must("gcancel", fmt.Sprint(o.id))
		case "requeue":
			c.must("gctl", "requeue", fmt.Sprint(o.id))
		}
	}
	for _, o := range all {
		c.client().Until(2*time.Minute, "the end of "+o.name, func() bool {
			s := c.job(o.id).State
			return s != api.JobRunning && s != api.JobCompleting && s != api.JobPending && s != api.JobReserved
		})
		var cpu float64
		var peak int64
		if _, err := fmt.Sscan(readFile(t, o.truth), &cpu, &peak); err != nil {
			t.Fatal(err)
		}
		var d api.JobDetail
		if err := json.Unmarshal([]byte(c.must("gctl", "show", "job", "--json", fmt.Sprint(o.id))), &d); err != nil {
			t.Fatal(err)
		}
		m := d.Attempts[0].Measures
		if len(m) != 1 || m[0].CPUSeconds == nil || m[0].Ranks == nil {
			t.Errorf("%s: %+v", o.name, m)
			continue
		}
		compare := func(who string, seconds float64, memory int64) {
			t.Helper()
			t.Logf("%s, %s: %.3f s of CPU, truth %.3f; %d bytes, truth %d", o.name, who, seconds, cpu, memory, peak)
			if math.Abs(float64(memory-peak)) > float64(peak)/50 {
				t.Errorf("%s, %s: MaxRSS %d, truth %d", o.name, who, memory, peak)
			}
			if math.Abs(seconds-cpu) > cpu/50+0.05 { // what starts and ends the interpreter is the job's too
				t.Errorf("%s, %s: %.3f s of CPU, truth %.3f", o.name, who, seconds, cpu)
			}
		}
		compare("measured", *m[0].CPUSeconds, m[0].Ranks.MaxRSS)
		if !o.batch {
			continue
		}
		for line := range strings.Lines(c.must(c.fromBin(names, "sacct"), "-nPDo", "jobid,totalcpu,maxrss", "--units=K", "-j", fmt.Sprint(o.id))) {
			f := strings.Split(strings.TrimSpace(line), "|")
			if f[0] != fmt.Sprintf("%d.batch", o.id) {
				continue
			}
			var minutes, seconds float64
			var kib int64
			if _, err := fmt.Sscanf(f[1]+" "+f[2], "%f:%f %dK", &minutes, &seconds, &kib); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			compare("sacct", 60*minutes+seconds, kib<<10)
			break
		}
	}
}
