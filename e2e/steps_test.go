package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// slurmNames puts srun and its like into a cluster's jobs.
func slurmNames(t *testing.T, c *cluster) string {
	dir := filepath.Join(c.tmp, "slurm")
	c.must("gangd", "slurm-links", dir)
	return dir
}

// batch runs a script in an allocation and gives what it printed, its lines sorted.
func (c *cluster) batch(script string, args ...string) string {
	c.t.Helper()
	path := c.script("batch.sh", "#!/bin/bash\nexport PATH="+filepath.Join(c.tmp, "slurm")+":$PATH\n"+script)
	id := c.submit(append(args, "--output=batch.out", "--open-mode=truncate", path)...)
	c.wait(id, api.JobCompleted, api.JobFailed)
	b, err := os.ReadFile(filepath.Join(c.tmp, "batch.out"))
	if err != nil {
		c.t.Fatal(err)
	}
	return sortLines(string(b))
}

func sortLines(s string) string {
	lines := strings.SplitAfter(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Steps of a script, as people write them.
func TestSteps(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=4", "--gpus=2x80G", "--set", "cpus=16")
	slurmNames(t, c)
	two := []string{"-N2", "--ntasks-per-node=2"}
	for _, x := range []struct{ name, script, want string }{
		{"tasks of the allocation", `srun -l sh -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_STEP_ID $SLURM_NTASKS $SLURM_TASKS_PER_NODE'`,
			"0: 0 0 0 0 4 2(x2)\n1: 1 1 0 0 4 2(x2)\n2: 2 0 1 0 4 2(x2)\n3: 3 1 1 0 4 2(x2)\n"},
		{"exit codes", `srun sh -c 'exit $SLURM_PROCID'; echo rc $?`,
			"rc 3\nsrun: error: n1: task 1: Exited with exit code 1\nsrun: error: n2: task 2: Exited with exit code 2\nsrun: error: n2: task 3: Exited with exit code 3\n"},
		{"side by side, in the background", `for i in 1 2 3 4; do srun --exact -n1 -N1 sh -c "echo in $i" & done; wait; echo all`, "all\nin 1\nin 2\nin 3\nin 4\n"},
		{"head and workers", `srun --overlap -N1 -n1 sh -c 'while [ ! -e go ]; do sleep 0.02; done; echo head' & srun --overlap -n4 sh -c 'echo worker'; touch go; wait; rm go`,
			"head\nworker\nworker\nworker\nworker\n"},
		{"several programs", "printf '0 echo head\\n* echo worker %%t\\n' > multi; srun -n3 --multi-prog multi",
			"head\nsrun: Warning: can't honor --ntasks-per-node set to 2 which doesn't match the requested tasks 3 with the number of requested nodes 2. Ignoring --ntasks-per-node.\nworker 1\nworker 2\n"},
		{"a failing task ends its step", `srun -K -Q sh -c '[ $SLURM_PROCID != 1 ] || exit 5; exec sleep 600'; echo rc $?`, ""},
		{"exported functions and quotes", `f() { echo "f of $1"; }; export -f f; srun -n1 -N1 bash -c 'f "a  b"'`, "f of a  b\n"},
		{"standard input", `echo word | srun -n2 cat`, "word\nword\n"},
		{"a file for all nodes", `echo data > src; chmod 640 src; rm -f copy; gcp -f -p src $PWD/copy && srun -N2 -n2 --ntasks-per-node=1 stat -c %a copy; gcp -p src $PWD/copy || echo there; gcp src; echo rc $?`, ""},
		{"no more than there is", `srun -n9 -N2 true; echo rc $?`, ""},
	} {
		got := c.batch(x.script, two...)
		switch x.name {
		case "a failing task ends its step":
			if !strings.Contains(got, "rc 143\n") {
				t.Errorf("%s:\n%s", x.name, got)
			}
		case "a file for all nodes":
			for _, want := range []string{"640\n640\n", "gcp: error: ", "copy is there on ", "-f replaces it\n", "\nthere\n", "gcp: error: Need two file names, have 1 names\n", "rc 1\n"} {
				if !strings.Contains(got, want) {
					t.Errorf("%s: no %q in\n%s", x.name, want, got)
				}
			}
		case "no more than there is":
			if !strings.Contains(got, "rc 1\n") || !strings.Contains(got, "srun: error: Unable to create step for job ") || !strings.Contains(got, ": More processors requested than permitted") {
				t.Errorf("%s:\n%s", x.name, got)
			}
		default:
			if got != x.want {
				t.Errorf("%s:\n%swant:\n%s", x.name, got, x.want)
			}
		}
	}
	// The first that fails ends the other, so each waits until both have spoken.
	out, errs, code := c.run("grun", "-n2", "-N2", "sh", "-c", "echo $SLURMD_NODENAME; : > said.$SLURM_PROCID; until [ -e said.0 ] && [ -e said.1 ]; do sleep 0.02; done; exit 7")
	if code != 7 || len(strings.Fields(out)) != 2 {
		t.Errorf("outside of a job: %d\n%s%s", code, out, errs)
	}
	var said, talk strings.Builder
	alloc := exec.Command(filepath.Join(c.tmp, "slurm", "salloc"), "-N2", filepath.Join(c.tmp, "slurm", "srun"), "-l", "echo", "x")
	alloc.Dir, alloc.Env, alloc.Stdout, alloc.Stderr = c.tmp, append(os.Environ(), "GANG_DIR="+c.dir), &said, &talk
	err := alloc.Run()
	out, errs = said.String(), talk.String()
	if err != nil || sortLines(out) != "0: x\n1: x\n" || !strings.Contains(errs, "salloc: Granted job allocation ") || !strings.Contains(errs, "salloc: Relinquishing job allocation ") {
		t.Errorf("salloc: %v\n%s%s", err, out, errs)
	}
	id := strings.TrimSpace(strings.TrimPrefix(strings.SplitN(errs, "\n", 2)[0], "salloc: Granted job allocation "))
	if steps := c.tool(filepath.Join(c.tmp, "slurm", "sacct"), "-n", "-P", "-j", id, "-o", "jobid"); steps != id+"\n"+id+".extern\n"+id+".0\n" {
		t.Errorf("steps of salloc's job, which has no script: %q", steps)
	}
}

// A signal to a job is for the tasks of its steps once, whatever started them: a copy of grun that is
// gone from its path passes nothing on, and what holds the allocation of a grun of its own lives on.
func TestClientsOfStepsHearNoSignal(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1", "--set", "cpus=4")
	grun := filepath.Join(c.bin, "grun")
	task := c.script("hear.sh", `#!/bin/bash
trap 'echo usr1 >> heard.$1.$SLURM_PROCID' USR1
trap 'echo term >> heard.$1.$SLURM_PROCID' TERM
echo up > up.$1.$SLURM_PROCID
until [ -e go ]; do sleep 0.05 & wait $!; done
`)
	inside := c.submit("-n2", "-o", "/dev/null", c.script("job.sh", "#!/bin/bash\ncp "+grun+" here\n./here "+task+" inside &\nwait\nwait\n"))
	alone := exec.Command(grun, "-n2", task, "alone")
	alone.Dir, alone.Env = c.tmp, append(os.Environ(), "GANG_DIR="+c.dir)
	if err := alone.Start(); err != nil {
		t.Fatal(err)
	}
	each := func(kind, of, text string) {
		for _, rank := range []string{"0", "1"} {
			c.until(kind+" of "+of+" "+rank, func() bool { return strings.HasSuffix(c.read(kind+"."+of+"."+rank), text) })
		}
	}
	each("up", "inside", "up\n")
	each("up", "alone", "up\n")
	if err := os.Remove(filepath.Join(c.tmp, "here")); err != nil {
		t.Fatal(err)
	}
	for _, job := range []struct {
		id int64
		of string
	}{{inside, "inside"}, {inside + 1, "alone"}} {
		for _, sig := range []string{"usr1", "term"} {
			c.must("gcancel", "--signal="+strings.ToUpper(sig), strconv.FormatInt(job.id, 10))
			each("heard", job.of, sig+"\n")
		}
	}
	c.touch("go")
	c.wait(inside, api.JobCompleted)
	c.wait(inside+1, api.JobCompleted)
	if err := alone.Wait(); err != nil {
		t.Errorf("grun: %v", err)
	}
	for _, of := range []string{"inside.0", "inside.1", "alone.0", "alone.1"} {
		if got := c.read("heard." + of); got != "usr1\nterm\n" {
			t.Errorf("%s heard %q", of, got)
		}
	}
}

// A step lives on while the daemons are killed, and is recorded once with its code; one that
// is cancelled ends, and its job goes on. Its ports are then another's: the site has four.
func TestStepsThroughKills(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--set", "cpus=4", "--set", "ports=12000-12003")
	slurmNames(t, c)
	path := c.script("kill.sh", "#!/bin/bash\nsrun() { "+filepath.Join(c.tmp, "slurm", "srun")+` "$@"; }
srun -N2 -n2 --resv-ports=3 sh -c 'echo up >> up.$SLURM_PROCID; while [ ! -e go ]; do sleep 0.05; done; exit 4'; echo first $?
srun -N2 -n2 --resv-ports=4 sh -c 'echo $GANG_PORTS $SLURM_STEP_RESV_PORTS > ports.$SLURM_PROCID; trap "echo usr1 >> usr1.$SLURM_PROCID" USR1; echo up >> up2.$SLURM_PROCID; while :; do sleep 0.05; done'; echo second $?
exit 3
`)
	id := c.submit("-N2", "-n2", "--output=kill.out", path)
	at := func(name string) string { return filepath.Join(c.tmp, name) }
	there := func(names ...string) func() bool {
		return func() bool {
			for _, n := range names {
				if _, err := os.Stat(at(n)); err != nil {
					return false
				}
			}
			return true
		}
	}
	c.until("the first step", there("up.0", "up.1"))
	for _, d := range []string{"gangd", "n1", "n2"} {
		c.kill(d)
	}
	for _, d := range []string{"gangd", "n1", "n2"} {
		c.restart(d)
	}
	if err := os.WriteFile(at("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.until("the second step", there("up2.0", "up2.1"))
	if out := c.must("gcancel", "--signal=USR1", fmt.Sprintf("%d.1", id)); out != "signal USR1 delivered to 2 tasks on 2 nodes\n" {
		t.Errorf("%q", out)
	}
	c.until("the signal", there("usr1.0", "usr1.1"))
	c.must("gcancel", fmt.Sprintf("%d.1", id))
	j := c.wait(id, api.JobFailed)
	b, _ := os.ReadFile(at("kill.out"))
	if out := string(b); !strings.Contains(out, "first 4\n") || !strings.Contains(out, "second 143\n") || *j.ExitCode != 3 {
		t.Errorf("%s", out)
	}
	for _, name := range []string{"ports.0", "ports.1"} {
		if b, _ := os.ReadFile(at(name)); string(b) != "12000-12003 12000-12003\n" {
			t.Errorf("%s: %q", name, b)
		}
	}
	got := map[string]string{}
	for _, s := range c.steps(id) {
		n := 0
		for _, part := range strings.Split(s.Ports, ",") {
			if first, last, ok := strings.Cut(part, "-"); ok {
				a, _ := strconv.Atoi(first)
				b, _ := strconv.Atoi(last)
				n += b - a + 1
			}
		}
		got[s.StepID] = fmt.Sprint(s.State, " ", s.Tasks, " ", len(s.Nodes), " ", n)
	}
	want := map[string]string{"batch": "FAILED 1 1 0", "extern": "COMPLETED 2 2 0", "0": "FAILED 2 2 3", "1": "CANCELLED 2 2 4"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("steps %v, want %v", got, want)
	}
}

func (c *cluster) steps(id int64) []api.Step {
	c.t.Helper()
	var d api.JobDetail
	if err := json.Unmarshal([]byte(c.must("gctl", "show", "job", fmt.Sprint(id), "--json")), &d); err != nil {
		c.t.Fatal(err)
	}
	var all []api.Step
	for _, a := range d.Attempts {
		all = append(all, a.Steps...)
	}
	return all
}

// A drain reaches the tasks of steps on every node, which have their grace; nothing of them is
// left, and the next epoch starts clean.
func TestDrainReachesSteps(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--set", "cpus=4", "--set", "grace=20s")
	slurmNames(t, c)
	// Each task holds a lock of its own for its life: a second epoch that overlapped would find it taken.
	path := c.script("drain.sh", "#!/bin/bash\n"+filepath.Join(c.tmp, "slurm", "srun")+` -N2 -n4 bash -c '
exec 9> lock.$SLURM_PROCID; flock -n 9 || { echo overlap >> witness; exit 1; }
trap "sleep 0.5; echo saved $SLURM_PROCID $GANG_EPOCH >> witness; exit 0" TERM
(setsid sleep 600 9>&- &) ; echo up $SLURM_PROCID $GANG_EPOCH >> witness; while :; do sleep 0.05; done'
echo after >> witness
`)
	id := c.submit("-N2", "-n4", "--requeue", "--output=drain.out", path)
	count := func(word string) int {
		n := 0
		for _, l := range lines(t, filepath.Join(c.tmp, "witness")) {
			if strings.HasPrefix(l, word) {
				n++
			}
		}
		return n
	}
	up := func(n int) func() bool {
		return func() bool {
			_, err := os.Stat(filepath.Join(c.tmp, "witness"))
			return err == nil && count("up") == n
		}
	}
	c.until("the first epoch", up(4))
	c.must("gctl", "requeue", fmt.Sprint(id))
	c.until("the second epoch", up(8))
	if n := count("saved"); n != 4 {
		t.Errorf("%d tasks saved in the first epoch", n)
	}
	c.must("gcancel", fmt.Sprint(id))
	c.wait(id, api.JobCancelled)
	if count("saved") != 8 || count("overlap") != 0 || count("after") != 0 {
		t.Errorf("witness: %d saved, %d overlaps, %d lines after", count("saved"), count("overlap"), count("after"))
	}
	c.until("nothing left", func() bool {
		return len(processesIn(c.tmp)) == 0
	})
}

// processesIn are those whose working directory is in a cluster's, its daemons apart.
func processesIn(dir string) (out []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, p := range all {
		if d, err := os.Readlink(p); err == nil && d == dir {
			b, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "comm"))
			if comm := strings.TrimSpace(string(b)); comm == "sleep" || comm == "bash" || comm == "gstep" {
				out = append(out, comm)
			}
		}
	}
	return out
}

// Who waits for room gets it when the step before has ended; who is killed leaves nothing.
func TestKilledClientLeavesNothing(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--set", "cpus=4")
	slurmNames(t, c)
	path := c.script("client.sh", "#!/bin/bash\nsrun="+filepath.Join(c.tmp, "slurm", "srun")+`
$srun -N2 -n2 sh -c 'echo up >> up; exec sleep 600' & victim=$!
while [ "$(wc -l < up 2>/dev/null)" != 2 ]; do sleep 0.05; done
kill -9 $victim
$srun -N2 -n2 sh -c 'echo free >> free'
`)
	began := time.Now()
	id := c.submit("-N2", "-n2", "--grace=5s", "--output=client.out", path)
	c.wait(id, api.JobCompleted)
	b, _ := os.ReadFile(filepath.Join(c.tmp, "free"))
	if string(b) != "free\nfree\n" || time.Since(began) > 60*time.Second {
		t.Errorf("%q", b)
	}
	for _, s := range c.steps(id) {
		if s.StepID == "0" && s.State != api.JobFailed {
			t.Errorf("the killed step is %s", s.State)
		}
	}
}
