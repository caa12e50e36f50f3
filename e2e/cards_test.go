package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// steer says what the simulated cards of a node are seen doing.
func (c *cluster) steer(node, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, "sim", node+".json")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) card(node string, index int) api.Card {
	c.t.Helper()
	for _, n := range c.nodes() {
		if n.Name == node {
			return n.Cards[index]
		}
	}
	c.t.Fatalf("no node %s", node)
	return api.Card{}
}

// idleScript is a script that waits to be stopped.
const idleScript = "#!/bin/bash\nexec sleep 1000\n"

// bystander is a process of this test that lives until it is ended.
func bystander(t *testing.T) *exec.Cmd {
	t.Helper()
	p := exec.Command("sleep", "1000")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endProcess(p) })
	return p
}

func endProcess(p *exec.Cmd) {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// TestGangLandsWhereEachCardFits: VRAM is counted for each card, strangers' apart, and --why
// says the arithmetic.
func TestGangLandsWhereEachCardFits(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=3", "--gpus=2x24G,2x40G,2x80G")
	c.steer("n3", `{"0":{"used_by_strangers":"50G"}}`)
	c.until("the stranger is seen", func() bool { return c.card("n3", 0).StrangersBytes == 50<<30 })
	id := c.submit("--size=4", "--gpus-per-rank=1", "--vram=40G", c.script("s.sh", idleScript))
	// Which node has what free is of interest here, not when that may change.
	why := strings.Join(slices.DeleteFunc(slices.Collect(strings.Lines(c.must("gqueue", "--why", fmt.Sprint(id)))),
		func(line string) bool { return strings.HasPrefix(line, "  expected to start") }), "")
	want := fmt.Sprintf(`job %d is PENDING (Resources)
  1st of 1 in the queue; room for 3 of 4 ranks now, each needs 1 card with 40G and 1 CPU
  n2: room for 2 ranks: 2 of 2 cards free
  n3: room for 1 rank: 1 of 2 cards free, needs 40G on each, card 0 has 30G free after 50G held by strangers
  n1: 0 of 2 cards free, needs 40G on each, card 0 has 24G in all, card 1 has 24G in all
  --vram=30G or --size=3 would start now
`, id)
	if why != want {
		t.Errorf("got\n%s\nwant\n%s", why, want)
	}
	c.steer("n3", `{"0":{"used_by_strangers":"40G"}}`)
	j := c.wait(id, api.JobRunning)
	var at []string
	for _, r := range j.Ranks {
		at = append(at, r.Node+" "+r.Cards[0])
	}
	slices.Sort(at)
	if got := strings.Join(at, ", "); got != "n2 GPU-sim-n2-0, n2 GPU-sim-n2-1, n3 GPU-sim-n3-0, n3 GPU-sim-n3-1" {
		t.Errorf("on %s", got)
	}
}

// TestRankOverItsShareIsStopped: two gangs share a card; the one that takes more than it asked
// for is named, warned through its status file and stopped, and the other goes on.
func TestRankOverItsShareIsStopped(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1", "--gpus=1x80G", "--set", "shared_vram_grace=2s")
	script := c.script("s.sh", "#!/bin/bash\nwhile [ ! -e \"$GANG_STATUS_FILE\" ]; do sleep 0.05; done\ncat $GANG_STATUS_FILE >warned.$GANG_JOB_ID\nexec sleep 1000\n")
	greedy := c.submit("--share", "--gpus-per-rank=1", "--vram=40G", script)
	good := c.submit("--share", "--gpus-per-rank=1", "--vram=30G", script)
	third := c.submit("--share", "--gpus-per-rank=1", "--vram=20G", script)
	var pid, other int
	c.until("both run", func() bool {
		pid, other = c.job(greedy).Ranks[0].PID, c.job(good).Ranks[0].PID
		return pid != 0 && other != 0
	})
	if j := c.job(third); j.State != api.JobPending {
		t.Errorf("90G asked of a card with 80G, and the third is %s", j.State)
	}
	c.steer("n1", fmt.Sprintf(`{"0":{"processes":[{"pid":%d,"used":"43.1G"},{"pid":%d,"used":"30G"}]}}`, pid, other))
	j := c.wait(greedy, api.JobOutOfMemory)
	if j.Cause != api.CauseOOM || j.TriggerRank == nil || *j.TriggerRank != 0 || j.Verdict != "n1: rank 0 used 43.1G of 40G asked on card 0, for 2 s" {
		t.Errorf("%s: %s", j.Cause, j.Verdict)
	}
	status := lines(t, filepath.Join(c.tmp, fmt.Sprint("warned.", greedy)))
	if len(status) != 7 || status[0] != "state=warning" || status[1] != "cause=oom" || status[3] != "text=rank 0 uses 43.1G of 40G asked on card 0 of n1, which others share" || status[4] != "seconds_left=2.000" {
		t.Errorf("status file %q", status)
	}
	var types []string
	for _, ev := range c.events(greedy) {
		types = append(types, string(ev.Type))
	}
	if got := strings.Join(types, " "); got != "submitted reserved prepared started warned drain_started rank_exited member_stopped drain_completed ended" {
		t.Errorf("events %s", got)
	}
	c.wait(third, api.JobRunning)
	c.wait(good, api.JobRunning)
}

// TestHeldCardIsNotGivenOn: a process that holds VRAM after its job keeps its card alone out
// of service, named with pid and owner, also over a restart of the daemons; when it is gone
// the card is back by itself.
func TestHeldCardIsNotGivenOn(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1", "--gpus=2x80G")
	script := c.script("s.sh", idleScript)
	first := c.submit("--gpus-per-rank=1", script)
	card := c.wait(first, api.JobRunning).Ranks[0].Cards[0]
	if card != "GPU-sim-n1-0" {
		t.Fatal(card)
	}
	c.until("it has started", func() bool {
		return slices.ContainsFunc(c.events(first), func(ev api.Event) bool { return ev.Type == api.EventStarted })
	})
	left := bystander(t)
	c.steer("n1", fmt.Sprintf(`{"0":{"processes":[{"pid":%d,"used":"30G"}]}}`, left.Process.Pid))
	c.until("its VRAM is seen", func() bool { return c.card("n1", 0).UsedBytes == 30<<30 })
	c.must("gcancel", fmt.Sprint(first))
	c.wait(first, api.JobCancelled)
	want := fmt.Sprintf("30G of its VRAM not given back after job %d epoch 1: held by pid %d (sleep, user ", first, left.Process.Pid)
	held := func() {
		t.Helper()
		if k := c.card("n1", 0); k.State != api.CardQuarantined || !strings.HasPrefix(k.Reason, want) {
			t.Errorf("card 0 is %s: %q, want %q", k.State, k.Reason, want)
		}
	}
	held()
	second, third := c.submit("--gpus-per-rank=1", script), c.submit("--gpus-per-rank=1", script)
	if got := c.wait(second, api.JobRunning).Ranks[0].Cards[0]; got != "GPU-sim-n1-1" {
		t.Errorf("the second got %s", got)
	}
	c.kill("n1")
	c.kill("gangd")
	c.restart("gangd")
	c.restart("n1")
	c.until("the node is up", func() bool { return c.nodes()[0].State == api.NodeUp })
	held()
	out, errs, code := c.run("gctl", "card", "resume", "n1", "0")
	if code != 1 || out != "" || !strings.HasPrefix(errs, "gctl: node n1: card 0 stays out of service: "+want) {
		t.Errorf("resume: exit %d, %s%s", code, out, errs)
	}
	if j := c.job(third); j.State != api.JobPending {
		t.Errorf("the third is %s", j.State)
	}
	endProcess(left)
	freed := time.Now()
	j := c.wait(third, api.JobRunning)
	within(t, "the card is back", j.StartTime.Sub(freed), 2*time.Second)
	if j.Ranks[0].Cards[0] != "GPU-sim-n1-0" || c.card("n1", 0).State != api.CardOK {
		t.Errorf("on %s, card 0 is %s", j.Ranks[0].Cards[0], c.card("n1", 0).State)
	}
}

// TestCardGoesBadUnderAGang: the gang is drained and runs elsewhere, charged for lost
// hardware; the card is never given again before a person says so. An Xid of the clean-up
// after a kill changes nothing.
func TestCardGoesBadUnderAGang(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--gpus=2x80G", "--set", "retry_backoff=50ms")
	script := c.script("s.sh", idleScript)
	id := c.submit("--size=3", "--gpus-per-rank=1", "--max-retries=0", script)
	c.wait(id, api.JobRunning)
	c.steer("n1", `{"1":{"xid":45}}`)
	time.Sleep(1500 * time.Millisecond) // a heartbeat in which it would be seen
	if j := c.job(id); j.State != api.JobRunning || j.Epoch != 1 {
		t.Fatalf("Xid 45: %s in epoch %d", j.State, j.Epoch)
	}
	c.steer("n1", `{"1":{"xid":79}}`)
	c.until("it runs again", func() bool { j := c.job(id); return j.Epoch == 2 && j.State == api.JobRunning })
	j := c.job(id)
	for _, r := range j.Ranks {
		if slices.Contains(r.Cards, "GPU-sim-n1-1") {
			t.Errorf("rank %d is on the bad card", r.Rank)
		}
	}
	for cause, b := range j.Budgets {
		if want := map[api.Cause]int{api.CauseNodeLost: 1}[cause]; b.Used != want {
			t.Errorf("budget of %s: %d used, want %d", cause, b.Used, want)
		}
	}
	if d := c.eventsOf(id, api.EventDrainStarted); len(d) != 1 || d[0].Cause != api.CauseNodeLost || d[0].Text != "card 1 of n1: Xid 79, fell off the bus" {
		t.Errorf("%+v", d)
	}
	c.kill("n1")
	c.restart("n1")
	c.until("the node is up", func() bool { return c.nodes()[0].State == api.NodeUp })
	more := c.submit("--gpus-per-rank=1", script)
	time.Sleep(1500 * time.Millisecond)
	if k := c.job(more); k.State != api.JobPending {
		t.Errorf("on the bad card: %s", k.State)
	}
	if k := c.card("n1", 1); k.State != api.CardQuarantined || k.Reason != "Xid 79, fell off the bus" || len(k.Jobs) != 0 {
		t.Errorf("%+v", k)
	}
	c.must("gctl", "card", "resume", "n1", "1")
	if k := c.wait(more, api.JobRunning); k.Ranks[0].Cards[0] != "GPU-sim-n1-1" {
		t.Errorf("on %s", k.Ranks[0].Cards[0])
	}
}

// TestCUDAOutOfMemory: a program that says so at its end is out of memory, not crashed; one
// that said so in an earlier attempt is not.
func TestCUDAOutOfMemory(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1", "--gpus=1x80G", "--set", "retry_backoff=50ms")
	script := c.script("s.sh", "#!/bin/bash\nif [ $GANG_RESTART_COUNT = 0 ]; then echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 MiB'; fi\nexit 1\n")
	id := c.submit("--gpus-per-rank=1", "--max-retries=1", script)
	j := c.wait(id, api.JobFailed)
	d := c.eventsOf(id, api.EventDrainStarted)
	if len(d) != 2 || d[0].Cause != api.CauseOOM || d[1].Cause != api.CauseCrash ||
		d[0].Text != "rank 0 ran out of VRAM (exit code 1, and its output ends with a CUDA out of memory)" {
		t.Errorf("%s\n%+v", j.Verdict, d)
	}
}

// TestHealthProgram: the site's own check takes a node out of service with its words, and back
// in when it is content; what runs goes on.
func TestHealthProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check := filepath.Join(dir, "check")
	body := "#!/bin/sh\n[ -e " + dir + "/$1 ] || exit 0\ncat " + dir + "/$1\nexit 1\n"
	if err := os.WriteFile(check, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, "--nodes=2", "--gpus=1x80G", "--set", "health_program="+check, "--set", "health_interval=200ms")
	script := c.script("s.sh", idleScript)
	running := c.submit("--gpus-per-rank=1", "--nodelist=n1", script)
	c.wait(running, api.JobRunning)
	node := func() string {
		n := c.nodes()[0]
		return strings.TrimSpace(string(n.State) + " " + n.Reason)
	}
	if err := os.WriteFile(filepath.Join(dir, "n1"), []byte("ib0 is down\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.until("n1 drains", func() bool { return node() == "draining health: ib0 is down" })
	waiting := c.submit("--nodelist=n1", script)
	if j := c.job(waiting); j.State != api.JobPending || j.Reason != "ReqNodeNotAvail" {
		t.Errorf("%s (%s): %s", j.State, j.Reason, j.Why)
	}
	if j := c.job(running); j.State != api.JobRunning {
		t.Errorf("what ran is %s", j.State)
	}
	c.kill("gangd")
	c.restart("gangd")
	c.until("n1 is back in session", func() bool { return node() == "draining health: ib0 is down" })
	if err := os.Remove(filepath.Join(dir, "n1")); err != nil {
		t.Fatal(err)
	}
	c.wait(waiting, api.JobRunning)
}
