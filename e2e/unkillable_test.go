package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// freezer holds processes back from everything, KILL too: a v1 freezer cgroup.
type freezer struct {
	t   *testing.T
	dir string
}

func newFreezer(t *testing.T) freezer {
	t.Helper()
	f := freezer{t, fmt.Sprintf("/sys/fs/cgroup/freezer/gange2e%d", os.Getpid())}
	if err := os.Mkdir(f.dir, 0o755); err != nil {
		t.Skipf("no cgroup v1 freezer to make a process unkillable with: %v", err)
	}
	t.Cleanup(func() { os.Remove(f.dir) })
	return f
}

func (f freezer) set(file, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, file), []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// Ten ranks that KILL does not end: each is named at its node and at its card, the cards are
// quarantined and not given on, everything else is freed, the gang is not started a second
// time; and when they go, all of it heals by itself.
func TestUnkillable(t *testing.T) {
	t.Parallel()
	const n = 10
	f := newFreezer(t)
	c := start(t, "--nodes=4", "--gpus=4x80G", "--cpus=16", "--set", "drain_slack=1s")
	id := c.submit(fmt.Sprintf("--size=%d", n), "--gpus-per-rank=1", c.script("s.sh", strings.NewReplacer("GAP", "1000", " --ranks-per-node=1", "").Replace(sleeper)))
	j := c.wait(id, api.JobRunning)
	c.until("all pids are known", func() bool {
		j = c.job(id)
		return !slices.ContainsFunc(j.Ranks, func(r api.Rank) bool { return r.PID == 0 })
	})
	defer f.set("freezer.state", "THAWED")
	for _, r := range j.Ranks {
		f.set("tasks", strconv.Itoa(r.PID))
	}
	f.set("freezer.state", "FROZEN")
	began := time.Now()
	c.must("gctl", "requeue", fmt.Sprint(id))
	c.until("the drain is over", func() bool { return c.job(id).State == api.JobPending })
	within(t, "order to the end of the drain, beyond grace and slack", time.Since(began)-2*time.Second, 500*time.Millisecond)

	stuck := map[string]string{} // pid by card
	for _, r := range j.Ranks {
		pid := fmt.Sprintf("pid %d ", r.PID)
		c.until("rank "+strconv.Itoa(r.Rank)+" is named", func() bool { return strings.Contains(c.node(r.Node).Reason+" ", pid) })
		stuck[r.Cards[0]] = pid
	}
	for _, node := range c.nodes() {
		if node.State != api.NodeUp {
			t.Errorf("node %s is %s because %q: want it up", node.Name, node.State, node.Reason)
		}
		t.Logf("node %s: %s", node.Name, node.Reason)
		for _, card := range node.Cards {
			pid, held := stuck[card.UUID]
			healthy := c.metric(fmt.Sprintf(`gang_gpu_healthy{gpu="%d",node="%s"}`, card.Index, node.Name))
			switch {
			case held && (card.State != api.CardQuarantined || !strings.Contains(card.Reason+" ", pid) || healthy != 0):
				t.Errorf("card %d of %s is %s because %q, gang_gpu_healthy %v: want it quarantined because of %s", card.Index, node.Name, card.State, card.Reason, healthy, pid)
			case !held && (card.State != api.CardOK || healthy != 1):
				t.Errorf("card %d of %s is %s because %q, gang_gpu_healthy %v: want it ok", card.Index, node.Name, card.State, card.Reason, healthy)
			}
		}
	}
	j = c.job(id)
	if j.Epoch != 1 || !strings.Contains(j.Why, "n") {
		t.Errorf("the gang is in epoch %d and waits because %q", j.Epoch, j.Why)
	}
	t.Logf("the gang waits because %q", j.Why)
	// 6 of 16 cards are free for others: all of them run, and on no other card; a seventh waits.
	other := c.submit("--size=6", "--gpus-per-rank=1", "-o", "/dev/null", "--wrap", "sleep 600")
	for _, r := range c.wait(other, api.JobRunning).Ranks {
		if pid, held := stuck[r.Cards[0]]; held {
			t.Errorf("card %s of %swas given on", r.Cards[0], pid)
		}
	}
	seventh := c.submit("--gpus-per-rank=1", "-o", "/dev/null", "--wrap", "true")
	time.Sleep(300 * time.Millisecond)
	if j := c.job(seventh); j.State != api.JobPending {
		t.Errorf("a job for a card that nobody may have is %s", j.State)
	}

	f.set("freezer.state", "THAWED")
	c.wait(seventh, api.JobCompleted)
	c.until("the gang runs again", func() bool { j = c.job(id); return j.State == api.JobRunning && j.Epoch == 2 })
	if first, second := c.life(id, 1), c.life(id, 2); !second.first.IsZero() && !first.last.Before(second.first) {
		t.Errorf("the epochs overlap by %s", first.last.Sub(second.first))
	}
	c.until("nodes and cards are fine", func() bool {
		return !slices.ContainsFunc(c.nodes(), func(n api.Node) bool {
			return n.Reason != "" || slices.ContainsFunc(n.Cards, func(k api.Card) bool { return k.State != api.CardOK })
		})
	})
}
