package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
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
python3 hear.py program$RANK &
until [ -e go ]; do sleep .05 & wait $!; done
wait
`

// TestSignalsToRanks: the ranks of a gang are to Slurm's names what the tasks of a step are: a signal is for their
// programs, with --batch for their scripts, with --full for both, and each hears it once.
func TestSignalsToRanks(t *testing.T) {
	t.Parallel()
	needs(t, "python3", "python3")
	c := start(t, "--nodes=2", "--gpus=1x80G")
	c.slurmNames()
	c.script("hear.py", hearerProgram)
	c.script("job.sh", hearingRank)
	job := c.submit("--size=2", "--gpus-per-rank=1", "-o", "/dev/null", "job.sh")
	id := fmt.Sprint(job)
	names := []string{"program0", "program1", "script0", "script1"}
	read := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(c.tmp, name))
		return strings.TrimSpace(string(b))
	}
	c.until("both ranks listen", func() bool { return read("up.program0") != "" && read("up.program1") != "" })
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
	} {
		c.tool(o.command[0], o.command[1:]...)
		for _, n := range o.to {
			want[n] = append(want[n], o.signal)
		}
		c.until(strings.Join(o.command, " "), func() bool {
			return !slices.ContainsFunc(o.to, func(n string) bool { return len(strings.Fields(read("heard."+n))) < len(want[n]) })
		})
	}
	c.script("go", "")
	c.wait(job, api.JobCompleted)
	for _, n := range names {
		if got := strings.Fields(read("heard." + n)); !slices.Equal(got, want[n]) {
			t.Errorf("%s heard %q, want %q", n, got, want[n])
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
	needs(t, "python3", "python3")
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
			seen := func(name string) string {
				b, _ := os.ReadFile(filepath.Join(c.tmp, name))
				return strings.TrimSpace(string(b))
			}
			c.until("both tasks listen", func() bool { return seen("up."+kind+"0") != "" && seen("up."+kind+"1") != "" })
			if kind == "replaced" {
				c.until("it is replaced", func() bool { _, err := os.Stat(filepath.Join(c.tmp, "is.replaced")); return err == nil })
			}
			var want []string
			for _, words := range []string{"-s USR1", "-s HUP", "--full -s USR2", ""} { // the last one ends it
				c.tool("scancel", append(strings.Fields(words), fmt.Sprint(job))...)
				signal := "SIG" + cmp.Or(words[strings.LastIndexByte(words, ' ')+1:], "TERM")
				want = append(want, signal)
				c.until("both hear "+signal, func() bool {
					return strings.Contains(seen("heard."+kind+"0"), signal) && strings.Contains(seen("heard."+kind+"1"), signal)
				})
			}
			c.script("go", "")
			c.wait(job, api.JobCancelled)
			_ = os.Remove(filepath.Join(c.tmp, "go"))
			for _, rank := range []string{"0", "1"} {
				if got := strings.Fields(seen("heard." + kind + rank)); !slices.Equal(got, want) {
					t.Errorf("task %s heard %q, want %q", rank, got, want)
				}
			}
		})
	}
}
