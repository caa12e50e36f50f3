package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// beats is a rank that beats for a while from a child process, the way a Python program
// does without any library, and then hangs. It writes when the last beat was, before
// it beats: no measured silence is shorter than the real one.
const beats = `#!/bin/bash
/usr/bin/env python3 - "$WITNESS.$GANG_RANK" "$BEATS" "$LOAD" <<'PY'
import os, socket, sys, time
def notify(text):
    address = os.environ["NOTIFY_SOCKET"]
    if address[0] == "@":
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(text.encode(), address)
time.sleep(float(sys.argv[3]))
for i in range(int(sys.argv[2])):
    with open(sys.argv[1], "w") as f:
        f.write(repr(time.time()))
    notify("WATCHDOG=1\nSTATUS=step %d" % i)
    time.sleep(0.2)
time.sleep(600)
PY
`

// The watchdogs of these tests are quick; what they end is not run again unless asked for.
var quickWatch = []string{"--set", "stall_timeout=1500ms", "--set", "stall_confirm_interval=200ms", "--set", "retry_backoff=100ms",
	"--set", "heartbeat=200ms", "--set", "node_timeout=5s"}

// slowBeats is quickWatch for those whose every beat is a program that starts: seconds on a machine that others use.
var slowBeats = slices.Concat(quickWatch, []string{"--set", "stall_timeout=6s"})

// confirmed is the earliest that a stall may be confirmed after the last beat.
const confirmed = 1500*time.Millisecond + 2*200*time.Millisecond

func (c *cluster) beating(load string, count int, args ...string) (id int64, witness string) {
	c.t.Helper()
	witness = filepath.Join(c.tmp, "beat."+strconv.Itoa(time.Now().Nanosecond()))
	c.setenv("WITNESS", witness)
	c.setenv("BEATS", strconv.Itoa(count))
	c.setenv("LOAD", load)
	return c.submit(append(append([]string{"--launch=ranks", "--gpus-per-rank=1"}, args...), c.script("beats.sh", beats))...), witness
}

func lastBeat(t *testing.T, witness string) time.Time {
	t.Helper()
	b, err := os.ReadFile(witness)
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.UnixMicro(int64(at * 1e6))
}

func (c *cluster) attempts(id int64) []api.Attempt {
	c.t.Helper()
	var d api.JobDetail
	out := c.must("gctl", "show", "job", "--json", strconv.FormatInt(id, 10))
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	return d.Attempts
}

func (c *cluster) event(id int64, epoch int, kind api.EventType) *api.Event {
	c.t.Helper()
	evs := c.events(id)
	if i := slices.IndexFunc(evs, func(ev api.Event) bool { return ev.Type == kind && ev.Epoch == epoch }); i >= 0 {
		return &evs[i]
	}
	return nil
}

// A gang of two nodes falls silent with idle cards: it is stopped, run again with the stacks
// of its ranks in its log, and after the last re-run it has failed, class 76.
func TestStallEndsTheGang(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, append([]string{"--nodes=2", "--gpus=1x80G"}, quickWatch...)...)
	id, witness := c.beating("0", 3, "--size=2", "--ranks-per-node=1", "--stall-retries=2")
	never := c.submit("--dependency=afterok:"+strconv.FormatInt(id, 10), "--wrap", "true")
	cleanUp := c.submit("--dependency=afternotok:"+strconv.FormatInt(id, 10), "--wrap", "true")
	j := c.wait(id, api.JobFailed)
	c.wait(never, api.JobCancelled)
	c.wait(cleanUp, api.JobCompleted)
	if j.Cause != api.CauseStalled || *j.ExitCode != 76 || j.Reason != "Stalled" || j.Budgets[api.CauseStalled] != (api.Budget{Used: 3, Limit: 2}) {
		t.Errorf("cause %s, exit code %d, reason %s, budget %+v", j.Cause, *j.ExitCode, j.Reason, j.Budgets[api.CauseStalled])
	}
	all := c.attempts(id)
	if len(all) != 3 {
		t.Fatalf("%d attempts, want 3\n%s", len(all), c.story(id))
	}
	for _, a := range all {
		if a.Cause != api.CauseStalled || a.Code != 76 {
			t.Errorf("attempt %d: cause %s code %d", a.Epoch, a.Cause, a.Code)
		}
		if c.event(id, a.Epoch, api.EventStallSuspected) == nil {
			t.Errorf("attempt %d was not suspected", a.Epoch)
		}
	}
	drained := c.event(id, 3, api.EventDrainStarted)
	after := drained.Time.Sub(lastBeat(t, witness+".0"))
	if r1 := drained.Time.Sub(lastBeat(t, witness+".1")); r1 > after {
		after = r1
	}
	if after < confirmed || after > 10*confirmed {
		t.Errorf("stopped %v after the last beat, want %v and little more\n%s", after, confirmed, c.story(id))
	}
	for _, rank := range []string{"0", "1"} {
		log, err := os.ReadFile(filepath.Join(c.tmp, "gang-"+strconv.FormatInt(id, 10)+"."+rank+".out"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(log), "==== gangd: stacks of rank "+rank+" on n"); n != 3 || !strings.Contains(string(log), "python3") {
			t.Errorf("the log of rank %s has %d dumps:\n%s", rank, n, log)
		}
	}
	for _, n := range c.nodes() {
		for _, card := range n.Cards {
			if card.UsedBytes != 0 || card.Utilization != 0 || len(card.Jobs) != 0 {
				t.Errorf("a busy ghost on %s: %+v", n.Name, card)
			}
		}
	}
}

// Silence alone ends nothing: not with a busy card, not while memory moves, not when the
// cards can't be read; and who never beat, or still loads, is not judged at all.
func TestSilenceAloneEndsNothing(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, append([]string{"--nodes=5", "--gpus=1x80G"}, quickWatch...)...)
	steer := func(node, text string) {
		t.Helper()
		path := filepath.Join(c.dir, "sim", node+".json")
		if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	steer("n1", `{"0": {"utilization": 90}}`)
	steer("n3", `{"0": {"utilization": -1}}`)
	quit, moved := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(moved)
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			case <-time.After(110 * time.Millisecond):
			}
			steer("n2", `{"0": {"used": "`+strconv.Itoa(10+10*(i%2))+`G"}}`)
		}
	}()
	defer func() { close(quit); <-moved }()
	busy, _ := c.beating("0", 3, "--nodelist=n1")
	moving, _ := c.beating("0", 3, "--nodelist=n2")
	unknown, _ := c.beating("0", 3, "--nodelist=n3")
	loading, witness := c.beating("4", 5, "--nodelist=n4", "--stall-retries=0") // far beyond the time-out before the first beat
	never := c.submit("--launch=ranks", "--gpus-per-rank=1", "--nodelist=n5", "--wrap", "sleep 600")
	for id, want := range map[int64]string{busy: "not idle: n1 GPU-sim-n1-0 was used at 90%", moving: "not still: the memory of n2 GPU-sim-n2-0 moved by 10.0G",
		unknown: "not known: n3 GPU-sim-n3-0 could not be read"} {
		var ev *api.Event
		c.until("the stall is dismissed", func() bool { ev = c.event(id, 1, api.EventStallDismissed); return ev != nil })
		if !strings.HasPrefix(ev.Text, want) || len(ev.Samples) != 1 {
			t.Errorf("dismissed: %s, want %s", ev.Text, want)
		}
	}
	j := c.wait(loading, api.JobFailed)
	drained := c.event(loading, 1, api.EventDrainStarted)
	if d := drained.Time.Sub(j.StartTime); d < 4*time.Second+confirmed || j.Cause != api.CauseStalled {
		t.Errorf("the job that loads was stopped %v after its start, cause %s", d, j.Cause)
	}
	if after := drained.Time.Sub(lastBeat(t, witness+".0")); after < confirmed {
		t.Errorf("stopped %v after its last beat", after)
	}
	if ev := c.event(loading, 1, api.EventStallSuspected); ev.Time.Before(j.StartTime.Add(4 * time.Second)) {
		t.Error("suspected while it loaded")
	}
	for _, id := range []int64{busy, moving, unknown, never} {
		if j := c.job(id); j.State != api.JobRunning || j.Epoch != 1 {
			t.Errorf("job %d is %s in epoch %d\n%s", id, j.State, j.Epoch, c.story(id))
		}
	}
	if evs := c.events(never); slices.ContainsFunc(evs, func(ev api.Event) bool { return ev.Type == api.EventStallSuspected }) {
		t.Error("a rank that never beat was suspected")
	}
	// Idle at last: what was dismissed is looked at again.
	steer("n1", `{}`)
	c.until("the dismissed gang is stopped", func() bool { return c.job(busy).Epoch > 1 || c.job(busy).State == api.JobPending })
}

// Every thread of the rank is stopped, which no watchdog inside it could survive.
func TestFrozenRankIsFound(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, append([]string{"--nodes=1", "--gpus=1x80G"}, quickWatch...)...)
	id, _ := c.beating("0", 3000, "--stall-retries=0")
	c.until("it beats", func() bool { return !c.job(id).LastBeat.IsZero() })
	c.must("gcancel", "--full", "--signal=STOP", strconv.FormatInt(id, 10))
	if j := c.wait(id, api.JobFailed); j.Cause != api.CauseStalled || *j.ExitCode != 76 {
		t.Errorf("cause %s, exit code %d", j.Cause, *j.ExitCode)
	}
}

// With --gpu-watch cards that do nothing are enough, beats or not, but never before the load
// grace and a whole window have passed; and the cards of a gang that works save it.
func TestGPUHang(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, "--nodes=2", "--gpus=1x80G", "--set", "gpu_hang_window=1s", "--set", "gpu_hang_load_grace=1500ms", "--set", "heartbeat=200ms", "--set", "node_timeout=5s")
	if err := os.WriteFile(filepath.Join(c.dir, "sim", "n2.json"), []byte(`{"0": {"utilization": 60}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	works := c.submit("--gpu-watch", "--size=2", "--ranks-per-node=1", "--gpus-per-rank=1", "--share", "--vram=10G", "--wrap", "sleep 600")
	hangs := c.submit("--gpu-watch", "--stall-retries=0", "--nodelist=n1", "--gpus-per-rank=1", "--share", "--vram=10G", "--wrap", "sleep 600")
	j := c.wait(hangs, api.JobFailed)
	if d := c.event(hangs, 1, api.EventDrainStarted).Time.Sub(j.StartTime); d < 2500*time.Millisecond || j.Cause != api.CauseGPUHang || *j.ExitCode != 78 {
		t.Errorf("ended %v after its start, cause %s, exit code %d", d, j.Cause, *j.ExitCode)
	}
	if a := c.attempts(hangs); a[0].Code != 78 {
		t.Errorf("code %d", a[0].Code)
	}
	if j := c.job(works); j.State != api.JobRunning {
		t.Errorf("the gang with a busy card is %s", j.State)
	}
	_, errs, code := c.run("gsubmit", "--gpu-watch", "--wrap", "true")
	if want := "gsubmit: --gpu-watch: the job asks for no cards that could be watched; ask for some with --gpus-per-rank, or leave --gpu-watch out\n"; code != 1 || errs != want {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// The site's idle limit warns, tells the hook and ends; and the time limit has its class too.
func TestIdleAndBudget(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	told := filepath.Join(t.TempDir(), "told")
	hook := told + ".sh"
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho \"$1 $2 $3 $GANG_TEXT\" >> "+told+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, "--nodes=1", "--gpus=2x80G", "--set", "idle_limit=1s", "--set", "idle_end=1s", "--set", "idle_hook="+hook, "--set", "heartbeat=200ms", "--set", "node_timeout=5s")
	id := c.submit("--gpus-per-rank=1", "--wrap", "sleep 600")
	j := c.wait(id, api.JobFailed)
	if j.Cause != api.CauseIdle || *j.ExitCode != 77 || c.event(id, 1, api.EventIdleWarned) == nil {
		t.Errorf("cause %s, exit code %d\n%s", j.Cause, *j.ExitCode, c.story(id))
	}
	if d := c.event(id, 1, api.EventDrainStarted).Time.Sub(j.StartTime); d < 2*time.Second {
		t.Errorf("ended after %v", d)
	}
	c.until("the hook is told", func() bool { return len(lines(t, told)) == 2 })
	for i, want := range []string{"warn", "end"} {
		if l := lines(t, told)[i]; !strings.HasPrefix(l, want+" "+strconv.FormatInt(id, 10)+" "+j.User+" its cards ") {
			t.Errorf("told %q", l)
		}
	}
	out, errs, code := c.run("gsubmit", "--wait", "--time=1s", "--wrap", "sleep 600")
	if code != 75 {
		t.Errorf("gsubmit --wait of a job at its time limit: exit %d\n%s%s", code, out, errs)
	}
}

// What systemd ships counts as a beat, from a child that is gone a moment later.
func TestSystemdNotifyBeats(t *testing.T) {
	t.Parallel()
	c := start(t, append([]string{"--nodes=1", "--gpus=1x80G"}, quickWatch...)...)
	id := c.submit("--gpus-per-rank=1", "--stall-retries=0", c.script("notify.sh",
		"#!/bin/bash\nfor i in 1 2 3 4 5 6 7 8; do (setsid bash -c \""+strings.ReplaceAll(beatWith(t), `"`, `\"`)+"\"); sleep 0.5; done\nexec sleep 600\n"))
	j := c.wait(id, api.JobFailed)
	if d := c.event(id, 1, api.EventDrainStarted).Time.Sub(j.StartTime); j.Cause != api.CauseStalled || d < 3500*time.Millisecond+confirmed {
		t.Errorf("cause %s, %v after the start: its beats did not count\n%s", j.Cause, d, c.story(id))
	}
}
