package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// hearerProgram writes down each signal that it is sent, in heard.NAME, and says in up.NAME that it does so.
const hearerProgram = `import os, signal, sys, time
log = os.open("heard." + sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
def hear(n, frame): os.write(log, (signal.Signals(n).name + "\n").encode())
for s in ("HUP", "INT", "USR1", "USR2", "TERM"): signal.signal(getattr(signal, "SIG" + s), hear)
open("up." + sys.argv[1], "w").write("up\n")
while not os.path.exists("go"): time.sleep(0.02)
`

const hearingRank = `#!/bin/bash
for s in HUP INT USR1 USR2 TERM; do trap "echo SIG$s >>heard.script$RANK" $s; done
python3 hear.py program$RANK & p=$!
until [ -e go ]; do sleep .05 & wait $!; done
wait $p
echo $? >ended$RANK
`

var gangHearers = []string{"program0", "program1", "script0", "script1"}

// hearing is a gang of two ranks whose scripts and programs listen, in a directory of its own.
func (c *cluster) hearing(dir string) (id int64, heard func(name string) []string) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Join(c.tmp, dir), 0o755); err != nil {
		c.t.Fatal(err)
	}
	c.script(filepath.Join(dir, "hear.py"), hearerProgram)
	id = c.submit("--size=2", "--gpus-per-rank=1", "--chdir="+filepath.Join(c.tmp, dir), "-o", "/dev/null", c.script(filepath.Join(dir, "job.sh"), hearingRank))
	c.until("both ranks listen", func() bool {
		return c.grown(filepath.Join(dir, "up.program0")) != "" && c.grown(filepath.Join(dir, "up.program1")) != ""
	})
	return id, func(name string) []string { return strings.Fields(c.grown(filepath.Join(dir, "heard."+name))) }
}

// grown is what a file has by now, nothing while there is none.
func (c *cluster) grown(name string) string {
	b, _ := os.ReadFile(filepath.Join(c.tmp, name))
	return strings.TrimSpace(string(b))
}

// TestSignalsToRanks: the ranks of a gang are to Slurm's names what the tasks of a step are: a signal is for their
// programs, with --batch for their scripts, with --full for both, and each hears it once.
func TestSignalsToRanks(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, "--nodes=2", "--gpus=1x80G")
	c.slurmNames()
	job, heard := c.hearing("gang")
	id, names := fmt.Sprint(job), gangHearers
	programs, scripts := names[:2], names[2:]
	want := map[string][]string{}
	for _, o := range []struct {
		command []string
		signal  string
		to      []string
	}{
		{[]string{"scancel", "-s", "USR1", id}, "SIGUSR1", programs},
		{[]string{"scancel", "-s", "HUP", id}, "SIGHUP", programs},
		{[]string{"scancel", "-s", "INT", id}, "SIGINT", programs},
		{[]string{"scancel", "-s", "TERM", id}, "SIGTERM", programs},
		{[]string{"scancel", "--batch", "-s", "USR1", id}, "SIGUSR1", scripts},
		{[]string{"scancel", "--batch", "-s", "TERM", id}, "SIGTERM", scripts},
		{[]string{"scancel", "--full", "-s", "USR2", id}, "SIGUSR2", names},
		{[]string{"scancel", "--batch", "--full", "-s", "HUP", id}, "SIGHUP", names},
		{[]string{filepath.Join(c.bin, "gcancel"), "--signal=USR2", id}, "SIGUSR2", programs},
		{[]string{filepath.Join(c.bin, "gcancel"), "--signal=USR1", id + ":1"}, "SIGUSR1", programs[1:]},
		{[]string{filepath.Join(c.bin, "gcancel"), "--signal=HUP", id + ":0-1"}, "SIGHUP", programs},
	} {
		c.tool(o.command[0], o.command[1:]...)
		for _, n := range o.to {
			want[n] = append(want[n], o.signal)
		}
		c.until(strings.Join(o.command, " "), func() bool {
			return !slices.ContainsFunc(o.to, func(n string) bool { return len(heard(n)) < len(want[n]) })
		})
	}
	c.script("gang/go", "")
	c.wait(job, api.JobCompleted)
	for _, n := range names {
		if got := heard(n); !slices.Equal(got, want[n]) {
			t.Errorf("%s heard %q, want %q", n, got, want[n])
		}
	}
}

// TestKillToRanks: by Slurm's name KILL to a gang is a cancel: all hear TERM, once. By gangd's own it
// is the signal: to the programs, with --batch to the scripts, with --full to both.
func TestKillToRanks(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, "--nodes=2", "--gpus=1x80G")
	c.slurmNames()
	for _, o := range []struct {
		command string
		state   api.JobState
		heard   []string // by each
		ended   string   // how a script saw its program end; empty: it saw nothing
	}{
		{"scancel -s KILL", api.JobCancelled, []string{"SIGTERM"}, "0"},
		{"scancel --batch -s KILL", api.JobCancelled, []string{"SIGTERM"}, "0"},
		{"scancel --full -s KILL", api.JobCancelled, []string{"SIGTERM"}, "0"},
		{"gcancel --signal=KILL", api.JobCompleted, nil, "137"},
		{"gcancel --batch --signal=KILL", api.JobFailed, nil, ""},
		{"gcancel --full --signal=KILL", api.JobFailed, nil, ""},
	} {
		dir := strings.ReplaceAll(o.command, " ", "")
		job, heard := c.hearing(dir)
		words := strings.Fields(o.command)
		if words[0] == "gcancel" {
			words[0] = filepath.Join(c.bin, words[0])
		}
		c.tool(words[0], append(words[1:], fmt.Sprint(job))...)
		c.until("all hear "+o.command, func() bool {
			return !slices.ContainsFunc(gangHearers, func(n string) bool { return len(heard(n)) < len(o.heard) })
		})
		if o.state != api.JobFailed {
			c.script(filepath.Join(dir, "go"), "")
		}
		if j := c.wait(job, api.JobCancelled, api.JobCompleted, api.JobFailed); j.State != o.state || o.state == api.JobFailed && j.Signal != 9 {
			t.Errorf("%s: job is %s, signal %d, want %s", o.command, j.State, j.Signal, o.state)
		}
		for _, n := range gangHearers {
			if got := heard(n); !slices.Equal(got, o.heard) {
				t.Errorf("%s: %s heard %q, want %q", o.command, n, got, o.heard)
			}
		}
		for _, rank := range []string{"0", "1"} {
			if got := c.grown(filepath.Join(dir, "ended"+rank)); got != o.ended {
				t.Errorf("%s: program %s ended with %q, want %q", o.command, rank, got, o.ended)
			}
		}
	}
}

// TestCtrlCBesideRanks: Ctrl-C to a step beside the ranks of a gang is for its tasks, and the ranks hear nothing.
// The first one is passed on with -X alone, a second one within a second always, and ends them.
func TestCtrlCBesideRanks(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, "--nodes=2", "--gpus=1x80G")
	job, ranks := c.hearing("gang")
	for name, o := range map[string]struct {
		option string
		twice  bool
		heard  []string
	}{
		"once":      {"--label", false, []string{"SIGUSR1"}},
		"twice":     {"--label", true, []string{"SIGINT", "SIGTERM"}},
		"once, -X":  {"-X", false, []string{"SIGINT", "SIGUSR1"}},
		"twice, -X": {"-X", true, []string{"SIGINT", "SIGTERM"}},
	} {
		dir := "step " + name
		c.script("hear "+name, hearerProgram)
		if err := os.Mkdir(filepath.Join(c.tmp, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		f := c.follow("grun", "--jobid="+fmt.Sprint(job), "--overlap", o.option, "-N2", "-n2", "--chdir="+filepath.Join(c.tmp, dir),
			"sh", "-c", `exec python3 "../hear `+name+`" $SLURM_PROCID`)
		heard := func(task string) []string { return strings.Fields(c.grown(filepath.Join(dir, "heard."+task))) }
		both := func(what string, ok func(task string) bool) {
			c.until(name+": both tasks "+what, func() bool { return ok("0") && ok("1") })
		}
		hear := func(signal string) func(string) bool {
			return func(task string) bool { return slices.Contains(heard(task), signal) }
		}
		send := func(s syscall.Signal) {
			if err := f.cmd.Process.Signal(s); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		both("listen", func(task string) bool { return c.grown(filepath.Join(dir, "up."+task)) != "" })
		send(syscall.SIGINT)
		forced := func() bool { return strings.Contains(f.errs.String(), "the step is being ended already") }
		if o.twice {
			// Again, once the one before is answered: on a machine that stands still for a second the next one is a first
			// one. One after grun ends the step ends it at once, and then a task may hear no TERM.
			answered := 0
			both("are ended", func(task string) bool {
				said := f.errs.String()
				got := strings.Count(said, "once more within a second") + strings.Count(said, "sending Ctrl-C")
				if got > answered && !strings.Contains(said, "grun: ending the step\n") {
					answered = got
					send(syscall.SIGINT)
				}
				return forced() || hear("SIGTERM")(task) && hear("SIGINT")(task)
			})
		} else {
			if o.option == "-X" {
				both("hear SIGINT", hear("SIGINT"))
			}
			send(syscall.SIGUSR1) // who hears it has heard what came before
			both("hear SIGUSR1", hear("SIGUSR1"))
		}
		c.script(filepath.Join(dir, "go"), "")
		select {
		case <-f.ended:
		case <-time.After(patience):
			t.Fatalf("%s: grun does not end", name)
		}
		for _, task := range []string{"0", "1"} {
			// How often, and which first, is not said: a second one is passed on while the tasks are ended.
			if got := slices.Compact(slices.Sorted(slices.Values(heard(task)))); !slices.Equal(got, o.heard) && !forced() {
				t.Errorf("%s: task %s heard %q, want %q", name, task, got, o.heard)
			}
		}
		if said := f.errs.String(); strings.Contains(said, "grun: ending the step\n") != o.twice || strings.Contains(said, "once more within a second ends the step") != (o.option != "-X") {
			t.Errorf("%s: grun said\n%s", name, said)
		}
	}
	c.script("gang/go", "")
	c.wait(job, api.JobCompleted)
	for _, n := range gangHearers {
		if got := ranks(n); len(got) > 0 {
			t.Errorf("%s of the gang heard %q", n, got)
		}
	}
}

// TestSignalsOnceWhereverSrunLies: a signal to a job is for the tasks of its step, not for the srun that waits for
// them and would pass it on, though that is a copy, is mounted elsewhere, or was replaced while it runs.
func TestSignalsOnceWhereverSrunLies(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	tool.Need(t, "python3")
	c := start(t, "--nodes=1")
	c.slurmNames()
	c.script("hear.py", hearerProgram)
	step := " -Q -n2 sh -c 'exec python3 hear.py $KIND$SLURM_PROCID'\n"
	for kind, script := range map[string]string{
		"copied":   "cp $S srun.copied; ./srun.copied" + step,
		"mounted":  "touch srun; exec unshare -m sh -c 'mount --bind '$S' srun && exec sh step.sh'\n",
		"replaced": "cp $S srun.replaced; ./srun.replaced" + step[:len(step)-1] + " &\nuntil [ -e up.replaced0 ]; do sleep .05; done\ncp $S new; mv new srun.replaced; touch is.replaced; wait\n",
	} {
		t.Run(kind, func(t *testing.T) {
			c.script("step.sh", "exec ./srun"+step)
			c.script(kind+".sh", "#!/bin/bash\nexport KIND="+kind+" S="+filepath.Join(c.bin, "grun")+"\n"+script)
			job := c.submit("-n", "2", "-o", "out."+kind, kind+".sh")
			c.until("both tasks listen", func() bool { return c.grown("up."+kind+"0") != "" && c.grown("up."+kind+"1") != "" })
			if kind == "replaced" {
				c.until("it is replaced", func() bool { _, err := os.Stat(filepath.Join(c.tmp, "is.replaced")); return err == nil })
			}
			var want []string
			for _, words := range []string{"-s USR1", "-s HUP", "--full -s USR2", ""} { // the last one ends it
				c.tool("scancel", append(strings.Fields(words), fmt.Sprint(job))...)
				signal := "SIG" + cmp.Or(words[strings.LastIndexByte(words, ' ')+1:], "TERM")
				want = append(want, signal)
				c.until("both hear "+signal, func() bool {
					return strings.Contains(c.grown("heard."+kind+"0"), signal) && strings.Contains(c.grown("heard."+kind+"1"), signal)
				})
			}
			c.script("go", "")
			c.wait(job, api.JobCancelled)
			_ = os.Remove(filepath.Join(c.tmp, "go"))
			for _, rank := range []string{"0", "1"} {
				if got := strings.Fields(c.grown("heard." + kind + rank)); !slices.Equal(got, want) {
					t.Errorf("task %s heard %q, want %q", rank, got, want)
				}
			}
		})
	}
}
