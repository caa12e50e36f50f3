package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// slack is how much longer than promised a measured time may be before a test fails: the
// machine is shared. What was measured is logged.
const slack = 10

// clockOf reads bash's $EPOCHREALTIME.
func clockOf(t *testing.T, s string) time.Time {
	t.Helper()
	sec, frac, ok := strings.Cut(s, ".")
	a, err := strconv.ParseInt(sec, 10, 64)
	b, err2 := strconv.ParseInt(frac, 10, 64)
	if !ok || err != nil || err2 != nil {
		t.Fatalf("%q is no time of bash", s)
	}
	return time.Unix(a, b*1000)
}

// within logs what was measured and fails beyond ten times what was promised.
func within(t *testing.T, what string, took, promised time.Duration) {
	t.Helper()
	t.Logf("%-50s %8s (promised %s)", what, took.Round(100*time.Microsecond), promised)
	if took > slack*promised {
		t.Errorf("%s took %s, promised %s", what, took, promised)
	}
}

// eventsOf are the events of one type, in order.
func (c *cluster) eventsOf(id int64, typ api.EventType) []api.Event {
	c.t.Helper()
	return slices.DeleteFunc(c.events(id), func(e api.Event) bool { return e.Type != typ })
}

// metric reads one figure of /metrics, 0 when the line is not there.
func (c *cluster) metric(line string) float64 {
	c.t.Helper()
	for _, l := range strings.Split(c.metrics(), "\n") {
		if v, ok := strings.CutPrefix(l, line+" "); ok {
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			return f
		}
	}
	return 0
}

func (c *cluster) metrics() string {
	c.t.Helper()
	tr := &http.Transport{DialContext: unixDial(filepath.Join(c.dir, "run", "gangd.sock"))}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("http://gangd/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// One of 3 ranks fails: the siblings are told at once, the gang is blocked when the last of
// them has ended, and it runs again after the back-off. The story is in the log, in the
// metrics and in gctl show job.
func TestOneRankFails(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=3", "--set", "retry_backoff=200ms")
	witness := filepath.Join(c.tmp, "w")
	job := c.script("f.sh", `#!/bin/bash
#GANG --size=3 --ranks-per-node=1 --max-retries=1 --output=/dev/null
[ $GANG_RESTART_COUNT = 0 ] || exit 0
if [ $GANG_RANK = 1 ]; then
	while [ ! -e go ]; do sleep 0.02; done
	echo "exit $EPOCHREALTIME" >> `+witness+`
	exit 1
fi
trap 'echo "term $EPOCHREALTIME" >> `+witness+`; kill %1; exit 0' TERM
sleep 600 &
echo ready >> `+witness+`
wait
`)
	id := c.submit(job)
	c.until("both siblings wait", func() bool { return len(lines(t, witness)) == 2 })
	c.touch("go")
	j := c.wait(id, api.JobCompleted)

	var failed time.Time
	var told []time.Time
	for _, l := range lines(t, witness) {
		word, at, _ := strings.Cut(l, " ")
		switch word {
		case "exit":
			failed = clockOf(t, at)
		case "term":
			told = append(told, clockOf(t, at))
		}
	}
	if len(told) != 2 {
		t.Fatalf("%d of 2 siblings were told\n%s", len(told), c.story(id))
	}
	last := slices.MaxFunc(told, time.Time.Compare)
	blocked := c.eventsOf(id, api.EventDrainCompleted)[0]
	again := c.eventsOf(id, api.EventStarted)[1]
	within(t, "exit of the rank to TERM in its siblings", last.Sub(failed), 100*time.Millisecond)
	within(t, "exit of the last rank to blocked", blocked.Time.Sub(last), 250*time.Millisecond)
	within(t, "blocked to running again, less the back-off", again.Time.Sub(blocked.Time)-200*time.Millisecond, 500*time.Millisecond)

	d := c.eventsOf(id, api.EventDrainStarted)
	if len(d) != 1 || d[0].Cause != api.CauseCrash || d[0].Trigger == nil || *d[0].Trigger != 1 || d[0].Moved != 2 {
		t.Errorf("drain_started is %+v", d)
	}
	if b := j.Budgets[api.CauseCrash]; b.Used != 1 || b.Limit != 1 {
		t.Errorf("crash budget %+v, want 1 of 1", b)
	}
	log := c.log("gangd")
	for _, want := range []string{
		fmt.Sprintf(`msg="gang drain started" job=%d epoch=1 trigger=1 cause=crash moved=2`, id),
		fmt.Sprintf(`msg="member stopped" job=%d epoch=1 node=`, id),
		fmt.Sprintf(`msg="gang drain completed" job=%d epoch=1 outcome=blocked cause=crash seconds=`, id),
		fmt.Sprintf(`msg="gang reserved" job=%d epoch=2 size=3`, id),
	} {
		if !strings.Contains(log, want) {
			t.Errorf("gangd's log has no %q", want)
		}
	}
	for line, want := range map[string]float64{
		`gang_gangs_drained_total{cause="crash"}`:                        1,
		`gang_drains_completed_total{outcome="blocked"}`:                 1,
		`gang_requeues_total{cause="crash"}`:                             1,
		`gang_drain_duration_seconds_count`:                              1,
		`gang_jobs_finished_total{cause="completed",result="COMPLETED"}`: 1,
		`gang_members_forced_total`:                                      0,
	} {
		if got := c.metric(line); got != want {
			t.Errorf("%s is %v, want %v", line, got, want)
		}
	}
}

// Siblings that ignore TERM get KILL when the grace is over, and the members are counted
// as forced.
func TestGraceThenKill(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=3")
	witness := filepath.Join(c.tmp, "w")
	job := c.script("g.sh", `#!/bin/bash
#GANG --size=3 --ranks-per-node=1 --grace=1 --output=/dev/null
if [ $GANG_RANK = 1 ]; then
	while [ ! -e go ]; do sleep 0.02; done
	exit 3
fi
trap 'echo "$GANG_RANK $EPOCHREALTIME" >> `+witness+`' TERM
echo ready >> `+witness+`
while :; do sleep 0.005; echo "$GANG_RANK $EPOCHREALTIME" >> alive.$GANG_RANK; done
`)
	id := c.submit(job)
	c.until("both siblings wait", func() bool { return len(lines(t, witness)) == 2 })
	c.touch("go")
	j := c.wait(id, api.JobFailed)
	if j.ExitCode == nil || *j.ExitCode != 3 || j.TriggerRank == nil || *j.TriggerRank != 1 {
		t.Errorf("ended with %v by rank %v, want 3 by rank 1", j.ExitCode, j.TriggerRank)
	}
	for _, l := range lines(t, witness)[2:] {
		rank, at, _ := strings.Cut(l, " ")
		signs := lines(t, filepath.Join(c.tmp, "alive."+rank))
		alive := strings.Fields(signs[len(signs)-1])
		took := clockOf(t, alive[1]).Sub(clockOf(t, at))
		within(t, "rank "+rank+": KILL after the grace, error", (took - time.Second).Abs(), 100*time.Millisecond)
	}
	if got := c.metric("gang_members_forced_total"); got != 2 {
		t.Errorf("gang_members_forced_total is %v, want 2", got)
	}
}

// A gang whose rank 1 always fails ends after the documented number of runs, names it, and
// charges its siblings nothing.
func TestRetriesAreBounded(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=3", "--set", "retry_backoff=20ms")
	witness := filepath.Join(c.tmp, "runs")
	job := c.script("r.sh", `#!/bin/bash
#GANG --size=3 --ranks-per-node=1 --max-retries=2 --output=/dev/null
echo $GANG_RANK.$GANG_EPOCH.$GANG_RESTART_COUNT.$SLURM_RESTART_COUNT >> `+witness+`
[ $GANG_RANK = 1 ] && { sleep 0.1; exit 9; }
exec sleep 600
`)
	id := c.submit(job)
	j := c.wait(id, api.JobFailed)
	runs := map[string]int{}
	for _, l := range lines(t, witness) {
		runs[l]++
	}
	for epoch := 1; epoch <= 3; epoch++ {
		for rank := range 3 {
			key := fmt.Sprintf("%d.%d.%d.%d", rank, epoch, epoch-1, epoch-1)
			if runs[key] != 1 {
				t.Errorf("rank.epoch.restarts.slurm %s ran %d times, want once", key, runs[key])
			}
		}
	}
	if len(runs) != 9 {
		t.Errorf("runs %v, want 3 of 3 ranks", runs)
	}
	want := "rank 1 exited with code 9; crash for the 3rd time, of 2 re-runs none is left"
	if j.Verdict != want || j.Cause != api.CauseCrash || *j.TriggerRank != 1 || *j.ExitCode != 9 {
		t.Errorf("ended %s, cause %s, trigger %v, code %v: %q, want %q", j.State, j.Cause, *j.TriggerRank, *j.ExitCode, j.Verdict, want)
	}
	for cause, b := range j.Budgets {
		if want := map[bool]int{true: 3}[cause == api.CauseCrash]; b.Used != want {
			t.Errorf("%s: %d used, want %d", cause, b.Used, want)
		}
	}
	var d api.JobDetail
	if err := json.Unmarshal([]byte(c.must("gctl", "show", "job", fmt.Sprint(id), "--json")), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Attempts) != 3 {
		t.Errorf("%d attempts on record, want 3", len(d.Attempts))
	}
	story := c.must("gctl", "show", "job", fmt.Sprint(id))
	for _, want := range []string{"rank 1 exited with code 9", "drain started: crash of rank 1, 2 ranks stopped", "drain completed in", "Budgets=crash:3/2", "3rd time"} {
		if !strings.Contains(story, want) {
			t.Errorf("gctl show job does not say %q:\n%s", want, story)
		}
	}
}

// Requeues charge nothing, however often: only the job that fails by itself runs out.
func TestRequeuesAreFree(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2")
	job := c.script("q.sh", "#!/bin/bash\n#GANG --size=2 --ranks-per-node=1 --output=/dev/null\nexec sleep 600\n")
	id := c.submit(job)
	n := rounds(20)
	for i := range n {
		c.wait(id, api.JobRunning)
		c.must("gctl", "requeue", fmt.Sprint(id))
		c.until("it runs again", func() bool { j := c.job(id); return j.State == api.JobRunning && j.Epoch == i+2 })
	}
	j := c.job(id)
	if j.RestartCount != n {
		t.Errorf("restart count %d, want %d", j.RestartCount, n)
	}
	for cause, b := range j.Budgets {
		if b.Used != 0 {
			t.Errorf("%s is charged %d", cause, b.Used)
		}
	}
	if got := c.metric(`gang_requeues_total{cause="requeued"}`); got != float64(n) {
		t.Errorf("gang_requeues_total is %v, want %d", got, n)
	}
	c.must("gcancel", fmt.Sprint(id))
	c.wait(id, api.JobCancelled)
}

// kill -9 of gangd at a random moment of each of many drains changes no count: every run
// that started is charged once, and the job ends after exactly the promised number.
func TestControllerKilledInDrain(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=3", "--set", "retry_backoff=20ms", "--set", "retry_backoff_max=50ms", "--set", "grace=500ms")
	witness := filepath.Join(c.tmp, "runs")
	n := rounds(6)
	job := c.script("k.sh", `#!/bin/bash
#GANG --size=3 --ranks-per-node=1 --output=/dev/null
echo $GANG_RANK.$GANG_EPOCH >> `+witness+`
if [ $GANG_RANK = 1 ]; then
	while [ ! -e go.$GANG_EPOCH ]; do sleep 0.01; done
	exit 9
fi
# One sibling goes at once, the other takes its time: the drain has a middle.
trap '[ $GANG_RANK = 2 ] && sleep 0.2; kill %1; exit 0' TERM
sleep 600 &
wait
`)
	id := c.submit("--max-retries="+strconv.Itoa(n), job)
	for epoch := 1; epoch <= n+1; epoch++ {
		c.until(fmt.Sprintf("epoch %d runs", epoch), func() bool { return len(lines(t, witness)) == 3*epoch })
		c.touch("go." + strconv.Itoa(epoch))
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // any phase: before, in, after
		c.kill("gangd")
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // acks come while nobody listens
		c.restart("gangd")
	}
	j := c.wait(id, api.JobFailed)
	if b := j.Budgets[api.CauseCrash]; b.Used != n+1 || j.RestartCount != n || j.Epoch != n+1 {
		t.Errorf("crash %d used, %d restarts, epoch %d; want %d, %d, %d\n%s", b.Used, j.RestartCount, j.Epoch, n+1, n, n+1, c.story(id))
	}
	if got := len(lines(t, witness)); got != 3*(n+1) {
		t.Errorf("%d ranks ran, want %d", got, 3*(n+1))
	}
	for _, typ := range []api.EventType{api.EventDrainStarted, api.EventDrainCompleted} {
		if got := len(c.eventsOf(id, typ)); got != n+1 {
			t.Errorf("%d %s events, want %d", got, typ, n+1)
		}
	}
}

// Rank 0 is done, then rank 1 fails: the gang ends at once, and rank 0 keeps its end and
// its code.
func TestDoneRankIsKept(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2")
	job := c.script("d.sh", `#!/bin/bash
#GANG --size=2 --ranks-per-node=1 --max-retries=5 --output=/dev/null
[ $GANG_RANK = 0 ] && exit 0
while [ ! -e go ]; do sleep 0.02; done
exit 4
`)
	id := c.submit(job)
	c.until("rank 0 is done", func() bool { j := c.job(id); return j.State == api.JobRunning && j.Ranks[0].State == api.RankDone })
	before := c.job(id).Ranks[0]
	time.Sleep(50 * time.Millisecond)
	c.touch("go")
	began := time.Now()
	j := c.wait(id, api.JobFailed)
	within(t, "failure to FAILED", time.Since(began), time.Second)
	r := j.Ranks[0]
	if r.State != api.RankDone || r.ExitCode == nil || *r.ExitCode != 0 || !r.EndTime.Equal(before.EndTime) || j.Epoch != 1 {
		t.Errorf("rank 0 is %+v after %+v, epoch %d", r, before, j.Epoch)
	}
	want := "rank 1 exited with code 4; not run again: 1 of 2 ranks were done"
	if j.Verdict != want {
		t.Errorf("verdict %q, want %q", j.Verdict, want)
	}
}

// A job that requeues itself comes back once. Its log is kept across the restart, a log
// with %r is one for each run, and --open-mode=truncate begins anew.
func TestRequeueFromInside(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--set", "grace=2s")
	body := `#!/bin/bash
#GANG --size=2 --ranks-per-node=1
echo "run $GANG_RESTART_COUNT $SLURM_RESTART_COUNT"
[ $GANG_RANK = 1 ] && touch spoke.$GANG_JOB_ID
if [ $GANG_RANK = 0 ] && [ $GANG_RESTART_COUNT = 0 ]; then
	while [ ! -e spoke.$GANG_JOB_ID ]; do sleep 0.02; done
	` + c.bin + `/gctl requeue $GANG_JOB_ID && ` + c.bin + `/gctl requeue @ ; sleep 600
fi
[ $GANG_RESTART_COUNT = 0 ] && sleep 600
exit 0
`
	job := c.script("i.sh", body)
	for _, mode := range []struct{ output, open, want0, want1 string }{
		{"app.%t", "append", "run 0 0\nrun 1 1\n", ""},
		{"trunc.%t", "truncate", "run 1 1\n", ""},
		{"r%r.%t", "append", "run 0 0\n", "run 1 1\n"},
	} {
		id := c.submit("-o", mode.output, "--open-mode="+mode.open, job)
		j := c.wait(id, api.JobCompleted)
		if j.RestartCount != 1 || j.Epoch != 2 || len(c.eventsOf(id, api.EventDrainStarted)) != 1 {
			t.Errorf("%s: %d restarts, epoch %d, want 1 and 2\n%s", mode.output, j.RestartCount, j.Epoch, c.story(id))
		}
		read := func(restart string) string {
			name := strings.NewReplacer("%t", "1", "%r", restart).Replace(mode.output)
			b, _ := os.ReadFile(filepath.Join(c.tmp, name))
			return string(b)
		}
		if got := read("0"); got != mode.want0 {
			t.Errorf("%s: %q, want %q", mode.output, got, mode.want0)
		}
		if mode.want1 != "" && read("1") != mode.want1 {
			t.Errorf("%s: second run %q, want %q", mode.output, read("1"), mode.want1)
		}
	}
}

// What people write: a script whose program saves for a while after TERM. The file is
// whole, the next line of the script does not run, and the shell does not die first.
func TestShellOutlivesItsProgram(t *testing.T) {
	t.Parallel()
	tool.Need(t, "ps")
	c := start(t, "--nodes=1", "--set", "grace=30s")
	save := 2 * time.Second
	if rounds(1) > 1 {
		save = 5 * time.Second
	}
	c.script("save.sh", fmt.Sprintf(`#!/bin/bash
trap 'echo term $EPOCHREALTIME; for i in $(seq 50); do echo line $i; sleep %.3f; done > saved; echo end $EPOCHREALTIME; ps -o stat= -p $PPID; exit 0' TERM
echo up
while :; do sleep 0.05; done
`, save.Seconds()/50))
	id := c.submit("-o", "out", "--wrap", "./save.sh\ntouch next-line-ran\n")
	c.until("the program runs", func() bool { return len(lines(t, filepath.Join(c.tmp, "out"))) == 1 })
	began := time.Now()
	c.must("gcancel", fmt.Sprint(id))
	c.wait(id, api.JobCancelled)
	t.Logf("cancel to the end %s, the program saved for %s", time.Since(began).Round(time.Millisecond), save)
	if got := len(lines(t, filepath.Join(c.tmp, "saved"))); got != 50 {
		t.Errorf("the file has %d lines of 50", got)
	}
	if _, err := os.Stat(filepath.Join(c.tmp, "next-line-ran")); err == nil {
		t.Error("the next line of the script ran")
	}
	out := lines(t, filepath.Join(c.tmp, "out"))
	if !strings.HasPrefix(out[len(out)-1], "T") {
		t.Errorf("output %q: want at its end the state T of the shell that waits", out)
	}

	// A shell with a handler runs it at once.
	id = c.submit("-o", "trap", c.script("trap.sh", `#!/bin/bash
trap 'echo trap $EPOCHREALTIME; exit 0' TERM
sleep 600 &
echo up
wait
touch next-line-ran
`))
	c.until("it waits", func() bool { return len(lines(t, filepath.Join(c.tmp, "trap"))) == 1 })
	asked := time.Now()
	c.must("gcancel", fmt.Sprint(id))
	c.wait(id, api.JobCancelled)
	out = lines(t, filepath.Join(c.tmp, "trap"))
	if len(out) != 2 {
		t.Fatalf("output %q, want up and trap", out)
	}
	within(t, "gcancel to the trap", clockOf(t, strings.Fields(out[1])[1]).Sub(asked), 200*time.Millisecond)
}

func (c *cluster) touch(name string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.tmp, name), nil, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// log is what a daemon has logged.
func (c *cluster) log(name string) string {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "log", name+".log"))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// freeze stops processes, thaw lets them go on. The signal is taken by one thread after
// another, and on a busy machine that takes a while: it returns when all of them stand still.
func freeze(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatalf("freeze %d: %v", pid, err)
		}
	}
	for _, pid := range pids {
		for give := time.Now().Add(patience); moves(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(give) {
				t.Fatalf("process %d does not stand still", pid)
			}
		}
	}
}

// moves says whether some thread of a process is not stopped.
func moves(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(tasks, func(name string) bool {
		b, err := os.ReadFile(name)
		state := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		return err == nil && state[0] != "T" && state[0] != "Z" && state[0] != "X"
	})
}

func thaw(pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}
