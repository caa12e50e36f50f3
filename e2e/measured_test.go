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

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// What gangd says of a program that uses CPUs and memory is what /usr/bin/time says of it, and a CPU account of the kernel
// that the program is put into by itself, within a fiftieth: of the ranks of a gang, of a batch script, and of the tasks of a step.
func TestRealProgramIsMeasured(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/time")
	c := start(t, "--nodes=1", "--set", "cpus=8")
	names := slurmNames(t, c)
	turns := 15_000_000 // a second
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		turns *= 3
	}
	// The account is one of cgroup v1, beside those that gnoded keeps; what is more of it than of the program is the shell's.
	prog := c.script("prog.sh", fmt.Sprintf(`#!/bin/sh
own=/sys/fs/cgroup/cpuacct/gange2e-$$
mkdir $own 2>/dev/null && echo $$ >$own/cgroup.procs
/usr/bin/time -f '%%U %%S %%M' -o $1 awk 'BEGIN { for (i = 0; i < 1000000; i++) a[i] = i; for (i = 0; i < %d; i++) s += i %% 7 }'
if [ -e $own ]; then
	cat $own/cpuacct.usage >$1.account
	echo $$ >/sys/fs/cgroup/cpuacct/cgroup.procs
	rmdir $own
fi
exit 0
`, turns))
	at := func(name string) string { return filepath.Join(c.tmp, name) }
	gang := c.submit("--size=2", "-o", "/dev/null", "--wrap", prog+" "+at("rank")+"$GANG_RANK")
	batch := c.submit("--nodes=1", "-o", "/dev/null", c.script("batch.sh", "#!/bin/sh\n"+prog+" "+at("batch")+"\n"))
	steps := c.submit("--nodes=1", "--ntasks=2", "-o", at("steps.out"), c.script("steps.sh", "#!/bin/sh\n"+names+"/srun sh -c '"+prog+" "+at("step")+"$SLURM_PROCID'\n"))
	for _, id := range []int64{gang, batch, steps} {
		c.wait(id, api.JobCompleted)
	}

	// used is what the kernel says of a program: its CPU seconds and the largest memory, and the seconds of the account.
	used := func(name string) (seconds float64, memory int64, account float64) {
		f := strings.Fields(readFile(t, at(name)))
		if len(f) != 3 {
			t.Fatalf("%s: %q", name, f)
		}
		for _, text := range f[:2] {
			s, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			seconds += s
		}
		memory, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(at(name) + ".account"); err == nil {
			ns, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
			if err != nil {
				t.Fatal(err)
			}
			account = ns / 1e9
		}
		return seconds, memory << 10, account
	}
	compare := func(what string, got float64, gotMemory int64, programs ...string) {
		t.Helper()
		var seconds, account float64
		memory := int64(0)
		for _, p := range programs {
			s, m, a := used(p)
			seconds, account, memory = seconds+s, account+a, max(memory, m)
		}
		t.Logf("%s: %.3f s of CPU; /usr/bin/time says %.2f, the account %.3f; memory %d, %d", what, got, seconds, account, gotMemory, memory)
		// /usr/bin/time cuts each of two figures to hundredths, and a shell starts it.
		if slack := 0.03 * float64(len(programs)); got < seconds*0.98 || got > seconds*1.02+slack {
			t.Errorf("%s: %.3f s of CPU, and /usr/bin/time says %.2f", what, got, seconds)
		}
		if account > 0 && math.Abs(got-account) > account*0.02 {
			t.Errorf("%s: %.3f s of CPU, and the account %.3f", what, got, account)
		}
		if d := gotMemory - memory; d < -memory/50 || d > memory/50 {
			t.Errorf("%s: %d bytes at most, and /usr/bin/time says %d", what, gotMemory, memory)
		}
	}
	of := func(id int64) (seconds float64, memory int64) {
		var d api.JobDetail
		if err := json.Unmarshal([]byte(c.must("gctl", "show", "job", "--json", fmt.Sprint(id))), &d); err != nil {
			t.Fatal(err)
		}
		m := d.Attempts[0].Measures
		if len(m) != 1 || m[0].CPUSeconds == nil || m[0].Ranks == nil {
			t.Fatalf("job %d: %+v", id, m)
		}
		return *m[0].CPUSeconds, m[0].Ranks.MaxRSS
	}
	seconds, memory := of(gang)
	compare("two ranks", seconds, memory, "rank0", "rank1")
	seconds, memory = of(batch)
	compare("a batch script", seconds, memory, "batch")
	seconds, _ = of(steps)
	lines := map[string][]string{}
	for line := range strings.Lines(c.tool(filepath.Join(names, "sacct"), "-n", "-P", "-j", fmt.Sprint(steps), "-o", "jobid,totalcpu,maxrss")) {
		f := strings.Split(strings.TrimSpace(line), "|")
		lines[f[0]] = f[1:]
	}
	step := lines[fmt.Sprint(steps, ".0")]
	if len(step) != 2 {
		t.Fatalf("sacct says %q", lines)
	}
	var minutes, ofStep float64
	var kib int64
	if _, err := fmt.Sscanf(step[0]+" "+step[1], "%f:%f %dK", &minutes, &ofStep, &kib); err != nil {
		t.Fatalf("%q: %v", step, err)
	}
	compare("the tasks of a step", minutes*60+ofStep, kib<<10, "step0", "step1")
	compare("their job", seconds, kib<<10, "step0", "step1")
}
