package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// witnessProgram writes each signal, with the clock and the reason it finds, into w.NAME. It
// goes on after USR1 and ends after TERM.
const witnessProgram = `#!/bin/bash
w=w.$1
say() { echo "$1 $EPOCHREALTIME $(tr '\n' ';' < $GANG_STATUS_FILE)" >> $w; }
trap 'say USR1' USR1
trap 'say TERM; exit 0' TERM
[ -e $GANG_STATUS_FILE ] && echo "status before its time" >> $w
echo "start $EPOCHREALTIME" >> $w
while :; do sleep 0.02; done
`

// heard is one line of the witness program.
type heard struct {
	at     time.Time
	status map[string]string
}

func (c *cluster) witness(name string) map[string][]heard {
	c.t.Helper()
	out := map[string][]heard{}
	for _, l := range lines(c.t, filepath.Join(c.tmp, "w."+name)) {
		f := strings.SplitN(l, " ", 3)
		if len(f) < 2 || strings.HasPrefix(l, "status") {
			c.t.Fatalf("witness %s: %q", name, l)
		}
		h := heard{at: clockOf(c.t, f[1]), status: map[string]string{}}
		if len(f) == 3 {
			for _, kv := range strings.Split(f[2], ";") {
				if k, v, ok := strings.Cut(kv, "="); ok {
					h.status[k] = v
				}
			}
		}
		out[f[0]] = append(out[f[0]], h)
	}
	return out
}

// reason checks what the status file said when a signal came.
func (h heard) reason(t *testing.T, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if k == "seconds_left" && about(h.status[k], v) {
			continue
		}
		if h.status[k] != v {
			t.Errorf("the status file says %s=%q, want %q: %v", k, h.status[k], v, h.status)
		}
	}
}

// about holds for what is left a moment later, on a machine that is busy.
func about(got, want string) bool {
	g, err1 := strconv.ParseFloat(got, 64)
	w, err2 := strconv.ParseFloat(want, 64)
	return err1 == nil && err2 == nil && g <= w && g >= 0 && g > w-10
}

// The notice comes at limit - lead, the stop signal at the limit, with gnoded killed in
// between; B: reaches the shell alone, no B: all but the shell.
func TestNoticeBeforeTheLimit(t *testing.T) {
	t.Parallel()
	limit, lead := 4*time.Second, 2*time.Second
	if rounds(1) > 1 {
		limit, lead = 30*time.Second, 10*time.Second
	}
	// The daemon is away until the end: no reason to count its node as lost at 30 s.
	c := start(t, "--nodes=1", "--set", "node_timeout=10m")
	c.script("prog", witnessProgram)
	args := []string{"-o", "/dev/null", fmt.Sprintf("--time=0:%d", int(limit.Seconds()))}
	notice := fmt.Sprintf("USR1@%d", int(lead.Seconds()))
	// A shell that does not catch USR1 would die of it.
	program := c.submit(append(args, "--signal="+notice, c.script("outer.sh", "#!/bin/bash\n./prog program\ntouch next-line-ran\n"))...)
	// A program that does not ignore USR1 would die of it.
	shell := c.submit(append(args, "--signal=B:"+notice, c.script("batch.sh", strings.NewReplacer("w.$1", "w.shell", "do sleep 0.02", "do sleep 600 & wait").Replace(witnessProgram)))...)
	for _, name := range []string{"program", "shell"} {
		c.until(name+" has started", func() bool { return len(lines(t, filepath.Join(c.tmp, "w."+name))) == 1 })
	}
	c.kill("n1")
	c.until("both have ended", func() bool {
		return len(c.witness("program")["TERM"]) == 1 && len(c.witness("shell")["TERM"]) == 1
	})
	c.restart("n1")
	for name, id := range map[string]int64{"program": program, "shell": shell} {
		j := c.wait(id, api.JobTimeout)
		w := c.witness(name)
		if len(w["USR1"]) != 1 || len(w["TERM"]) != 1 {
			t.Fatalf("%s: %d USR1 and %d TERM, want one of each", name, len(w["USR1"]), len(w["TERM"]))
		}
		began := j.Ranks[0].StartTime
		within(t, name+": USR1, error", (w["USR1"][0].at.Sub(began) - (limit - lead)).Abs(), 100*time.Millisecond)
		within(t, name+": TERM, error", (w["TERM"][0].at.Sub(began) - limit).Abs(), 100*time.Millisecond)
		w["USR1"][0].reason(t, map[string]string{"state": "notice", "cause": "timeout", "signal": "USR1", "epoch": "1",
			"text": fmt.Sprintf("the time limit of %s comes near", when.Words(limit))})
		w["TERM"][0].reason(t, map[string]string{"state": "stopping", "cause": "timeout", "signal": "TERM", "seconds_left": "15.000",
			"text": fmt.Sprintf("time limit of %s reached", when.Words(limit))})
		evs := c.eventsOf(id, api.EventNotice)
		if len(evs) != 1 || evs[0].Signal != "USR1" || evs[0].LeadSeconds != int64(lead.Seconds()) {
			t.Errorf("%s: notice events %+v", name, evs)
		}
	}
	if _, err := os.Stat(filepath.Join(c.tmp, "next-line-ran")); err == nil {
		t.Error("the next line of the script ran")
	}
}

// Requeue and cancel give the same notice and say why; --now skips it. A clean exit after the
// notice of a requeue is requeued all the same.
func TestNoticeBeforeRequeueAndCancel(t *testing.T) {
	t.Parallel()
	const lead = time.Second
	c := start(t, "--nodes=1")
	c.script("prog", witnessProgram)
	job := c.script("j.sh", "#!/bin/bash\n#GANG --signal=USR1@1 --output=/dev/null\nexec ./prog $SLURM_JOB_ID.$GANG_EPOCH\n")
	id := c.submit(job)
	run := func(epoch int) string {
		c.until(fmt.Sprintf("epoch %d runs", epoch), func() bool { return len(c.witness(fmt.Sprintf("%d.%d", id, epoch))["start"]) == 1 })
		return fmt.Sprintf("%d.%d", id, epoch)
	}
	check := func(name, cause, text string) {
		t.Helper()
		w := c.witness(name)
		if len(w["USR1"]) != 1 || len(w["TERM"]) != 1 {
			t.Fatalf("%s: %d USR1 and %d TERM, want one of each\n%s", name, len(w["USR1"]), len(w["TERM"]), c.story(id))
		}
		within(t, cause+": from USR1 to TERM, error", (w["TERM"][0].at.Sub(w["USR1"][0].at) - lead).Abs(), 100*time.Millisecond)
		w["USR1"][0].reason(t, map[string]string{"state": "notice", "cause": cause, "text": text, "signal": "USR1", "seconds_left": "1.000"})
		w["TERM"][0].reason(t, map[string]string{"state": "stopping", "cause": cause, "text": text, "signal": "TERM", "seconds_left": "15.000"})
	}
	first := run(1)
	c.must("gctl", "requeue", fmt.Sprint(id))
	second := run(2)
	check(first, "requeued", "requeued by "+c.job(id).User)
	c.must("gcancel", fmt.Sprint(id))
	j := c.wait(id, api.JobCancelled)
	check(second, "cancelled", "cancelled by "+j.User)

	id = c.submit(job)
	name := run(1)
	began := time.Now()
	c.must("gcancel", "--now", fmt.Sprint(id))
	c.wait(id, api.JobCancelled)
	if w := c.witness(name); len(w["USR1"]) != 0 || len(w["TERM"]) != 1 {
		t.Errorf("--now: %d USR1 and %d TERM, want TERM alone", len(w["USR1"]), len(w["TERM"]))
	}
	t.Logf("gcancel --now to the end: %s", time.Since(began).Round(time.Millisecond))

	// --now also cuts a notice short that is under way.
	id = c.submit("--signal=USR1@60", job)
	name = run(1)
	c.must("gcancel", fmt.Sprint(id))
	c.until("it was noticed", func() bool { return len(c.witness(name)["USR1"]) == 1 })
	time.Sleep(500 * time.Millisecond)
	began = time.Now()
	c.must("gcancel", "--now", fmt.Sprint(id))
	c.wait(id, api.JobCancelled)
	within(t, "gcancel --now in a notice of 60 s to the end", time.Since(began), 100*time.Millisecond)

	id = c.submit("--signal=B:USR1@30", "-o", "/dev/null", c.script("polite.sh", `#!/bin/bash
[ $GANG_RESTART_COUNT = 1 ] && exit 0
trap 'exit 0' USR1
touch up
while :; do sleep 0.02; done
`))
	c.until("it runs", func() bool { _, err := os.Stat(filepath.Join(c.tmp, "up")); return err == nil })
	c.must("gctl", "requeue", fmt.Sprint(id))
	if j := c.wait(id, api.JobCompleted); j.Epoch != 2 || j.RestartCount != 1 {
		t.Errorf("a clean exit after the notice: epoch %d, %d restarts, want 2 and 1\n%s", j.Epoch, j.RestartCount, c.story(id))
	}
}
