package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

const (
	// spin has 8 processes that want a CPU each for some seconds, and says how long they had by the machine's
	// clock, and how much they got.
	spin = `#!/bin/sh
read began rest </proc/uptime
for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & pids="$pids $!"; done
touch $1/spinning
sleep $2
kill $pids
wait
read ended rest </proc/uptime
echo $began $ended >$1/spun.new
times >>$1/spun.new
mv $1/spun.new $1/spun
`
	// work counts, and says how long that took, and how much of a CPU it got.
	work = `#!/bin/sh
read began rest </proc/uptime
i=0
while [ $i -lt $2 ]; do i=$((i+1)); done
read ended rest </proc/uptime
echo $began $ended >$1/worked.new
times >>$1/worked.new
mv $1/worked.new $1/worked
`
	spinners = 8
	// mostOfOne is the most that they may use of their CPU; mostLost the part of its CPU that work beside them
	// may lose.
	mostOfOne, mostLost = 1.05, 0.05
	// lostTries: a machine that does other things too takes of it as well.
	lostTries = 3
)

// TestSpinners: 8 processes in a rank of one CPU use that one and no other, by cpuset or by affinity, and who
// works beside them does not notice.
func TestSpinners(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	for name, base := range bases(t) {
		if name == "v1" && !strict() {
			continue // for the time that it takes
		}
		t.Run(name, func(t *testing.T) { spinBeside(t, base) })
	}
}

func spinBeside(t *testing.T, base string) {
	c := bring(t, base, "--cpus=2", "--set=cpu_bind=cores", "--set=cpu_list=0,1")
	for name, text := range map[string]string{"spin": spin, "work": work} {
		if err := os.WriteFile(filepath.Join(c.Tmp, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	node := c.Nodes()[0]
	want := api.LimitEnforced
	if os.Getenv(wantEnv) == api.LimitSampled || base == noCgroups || node.Limits.Memory == api.LimitSampled { // nobody but root may write cgroups
		want = api.LimitAdvised
	}
	if node.Limits.CPUSets != want {
		t.Errorf("CPUs are %s, want %s (%+v)", node.Limits.CPUSets, want, node.Limits)
	}
	seconds := 1
	if strict() {
		seconds = 5
	}
	count := 20_000
	count = int(float64(count*seconds) * 0.8 / max(0.05, worked(c, count).had))
	lost := 0.0
	for try := range lostTries {
		alone := worked(c, count)
		c.Submit("-c1", filepath.Join(c.Tmp, "spin"), c.Tmp, strconv.Itoa(seconds))
		appears(c, "spinning")
		beside := worked(c, count)
		appears(c, "spun")
		spun := spent(t, filepath.Join(c.Tmp, "spun.seen"), 1)
		lost = 1 - beside.share()/alone.share()
		t.Logf("%s, %s: %d processes used %.3f CPUs over %.2f s; the work beside them had %.3f of its CPU over %.2f s, alone %.3f over %.2f s: %.1f %% lost",
			node.Containment, node.Limits.CPUSets, spinners, spun.share(), spun.had, beside.share(), beside.had, alone.share(), alone.had, 100*lost)
		if spun.share() > mostOfOne || spun.used == 0 {
			t.Errorf("%.2f s of CPU in %.2f s", spun.used, spun.had)
		}
		if lost <= mostLost || !strict() {
			return
		}
		if os.Getenv(wantEnv) != "" {
			return // emulated processors wait for those of the machine around them, which nobody in here sees
		}
		t.Logf("try %d", try+2)
	}
	t.Errorf("who works beside them loses %.1f %% of its CPU", 100*lost)
}

// strict: nothing else runs on the machine, and what is measured of others counts.
func strict() bool { return os.Getenv("GANG_E2E_CHAOS") != "" || os.Getenv(wantEnv) != "" }

// cpuTime is what processes had of a CPU, in seconds, and in how many by the machine's clock.
type cpuTime struct{ used, had float64 }

func (c cpuTime) share() float64 { return c.used / c.had }

// worked is what a job of one CPU needs to count so far.
func worked(c *trial.Client, count int) cpuTime {
	c.T.Helper()
	c.Submit("-c1", filepath.Join(c.Tmp, "work"), c.Tmp, strconv.Itoa(count))
	appears(c, "worked")
	return spent(c.T, filepath.Join(c.Tmp, "worked.seen"), 0)
}

// appears waits for a job's file: who asks a controller meanwhile takes of the CPUs that are measured.
func appears(c *trial.Client, name string) {
	c.T.Helper()
	path := filepath.Join(c.Tmp, name)
	c.Until(c.Patience, name, func() bool {
		time.Sleep(20 * time.Millisecond)
		return os.Rename(path, path+".seen") == nil
	})
}

// spent reads two times of the machine's clock, and a line of what the shell's times says: 0 of itself, 1 of its
// children.
func spent(t *testing.T, path string, line int) (c cpuTime) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	var from, to float64
	if _, err := fmt.Sscan(lines[0], &from, &to); err != nil || to <= from || len(lines) != 3 {
		t.Fatalf("%q are no two times and times: %v", b, err)
	}
	for _, f := range strings.Fields(lines[1+line]) {
		d, err := time.ParseDuration(f)
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		c.used += d.Seconds()
	}
	c.had = to - from
	return c
}
