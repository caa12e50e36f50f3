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
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
)

// beating is a gang whose ranks write the clock while they live, so that two epochs of one
// rank that overlap show in the files.
const beating = `#!/bin/bash
#GANG --size=3 --ranks-per-node=1 --output=/dev/null --grace=1
w=w.$SLURM_JOB_ID.$GANG_RANK
trap 'echo "term $GANG_EPOCH $EPOCHREALTIME" >> $w; exit 0' TERM
while :; do echo "live $GANG_EPOCH $EPOCHREALTIME" >> $w; sleep 0.02; done
`

// seen is what the files of one job say: when each rank lived and was told, by epoch.
type seen struct {
	first, last, term map[int]map[int]time.Time // epoch -> rank
}

func (c *cluster) seen(id int64) seen {
	c.t.Helper()
	s := seen{map[int]map[int]time.Time{}, map[int]map[int]time.Time{}, map[int]map[int]time.Time{}}
	put := func(m map[int]map[int]time.Time, epoch, rank int, at time.Time) {
		if m[epoch] == nil {
			m[epoch] = map[int]time.Time{}
		}
		m[epoch][rank] = at
	}
	for rank := range 3 {
		for _, l := range lines(c.t, filepath.Join(c.tmp, fmt.Sprintf("w.%d.%d", id, rank))) {
			f := strings.Fields(l)
			epoch, err := strconv.Atoi(f[1])
			if err != nil || len(f) != 3 {
				c.t.Fatalf("witness line %q", l)
			}
			at := clockOf(c.t, f[2])
			if f[0] == "term" {
				put(s.term, epoch, rank, at)
			}
			if _, ok := s.first[epoch][rank]; !ok {
				put(s.first, epoch, rank, at)
			}
			put(s.last, epoch, rank, at)
		}
	}
	return s
}

// overlap is how long processes of two epochs lived at the same time, 0 when they did not.
func (s seen) overlap(epoch int) time.Duration {
	var last, first time.Time
	for _, at := range s.last[epoch] {
		if at.After(last) {
			last = at
		}
	}
	for _, at := range s.first[epoch+1] {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if first.IsZero() || last.Before(first) {
		return 0
	}
	return last.Sub(first)
}

// running waits until all ranks of an epoch have written.
func (c *cluster) epochRuns(id int64, epoch int) {
	c.t.Helper()
	c.until(fmt.Sprintf("epoch %d of job %d runs", epoch, id), func() bool { return len(c.seen(id).first[epoch]) == 3 })
	// The ranks speak before their pids have reached the controller.
	c.until("their pids are known", func() bool {
		j := c.job(id)
		return j.Epoch > epoch || !slices.ContainsFunc(j.Ranks, func(r api.Rank) bool { return r.PID == 0 })
	})
}

// onNode are the shim and the ranks of a member, and the daemon in front.
func (c *cluster) onNode(id int64, node string) []int {
	c.t.Helper()
	j := c.job(id)
	b, err := os.ReadFile(filepath.Join(c.dir, "state", node, "m", fmt.Sprintf("%d.%d", id, j.Epoch), "state.json"))
	if err != nil {
		c.t.Fatal(err)
	}
	var s struct {
		ShimPID int `json:"shim_pid"`
	}
	if err := json.Unmarshal(b, &s); err != nil || s.ShimPID == 0 {
		c.t.Fatalf("%v: %s", err, b)
	}
	pids := []int{c.pid(node), s.ShimPID}
	for _, r := range j.Ranks {
		if r.Node == node {
			pids = append(pids, r.PID)
		}
	}
	return pids
}

func (c *cluster) node(name string) api.Node {
	c.t.Helper()
	nodes := c.nodes()
	i := slices.IndexFunc(nodes, func(n api.Node) bool { return n.Name == name })
	if i < 0 {
		c.t.Fatalf("no node %s", name)
	}
	return nodes[i]
}

// A node dies under a gang of 3 with a spare one: the siblings are told within node_timeout
// and a second, and the gang runs again as soon as the node is known gone, by a person's word
// or because it came back. The node is flagged once, and no more when it is back.
func TestNodeDies(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=4", "--set", "node_timeout=3s")
	job := c.script("b.sh", beating)
	id := c.submit(job)
	for epoch, known := range []string{"fenced", "back"} {
		epoch++
		c.epochRuns(id, epoch)
		dead := c.job(id).Ranks[1].Node
		pids := c.onNode(id, dead)
		killed := time.Now()
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		c.until("the siblings are told", func() bool { return len(c.seen(id).term[epoch]) == 2 })
		for rank, at := range c.seen(id).term[epoch] {
			within(t, fmt.Sprintf("kill to TERM in rank %d, beyond node_timeout", rank), at.Sub(killed)-3*time.Second, time.Second)
		}
		c.until("the drain is complete", func() bool { return c.job(id).State == api.JobPending })
		if out, _, code := c.run("ginfo", "--lost"); code != 1 || !strings.Contains(out, dead) {
			t.Errorf("ginfo --lost: exit %d, want 1 and the name of %s:\n%s", code, dead, out)
		}
		if n := c.node(dead); n.State != api.NodeLost || n.LostSince.IsZero() {
			t.Errorf("node %s is %s, lost since %v", dead, n.State, n.LostSince)
		}
		time.Sleep(300 * time.Millisecond)
		if j := c.job(id); j.Epoch != epoch || !strings.Contains(j.Why, dead) {
			t.Errorf("epoch %d, waits because %q: want it to wait for %s", j.Epoch, j.Why, dead)
		}
		began := time.Now()
		if known == "fenced" {
			c.must("gctl", "node", "fence", dead)
		} else {
			c.restart(dead)
		}
		c.epochRuns(id, epoch+1)
		within(t, "known gone ("+known+") to running again", time.Since(began), 3*time.Second)
		if known == "fenced" {
			c.restart(dead)
		}
		if n := c.node(dead); n.State != api.NodeUp || !n.LostSince.IsZero() {
			t.Errorf("node %s is back, but %s, lost since %v", dead, n.State, n.LostSince)
		}
		if out, _, code := c.run("ginfo", "--lost"); code != 0 {
			t.Errorf("ginfo --lost: exit %d, want 0:\n%s", code, out)
		}
		if got := strings.Count(c.log("gangd"), `msg="DEAD NODE" node=`+dead+" jobs="+fmt.Sprint(id)); got != 1 {
			t.Errorf("%d DEAD NODE lines for %s, want 1", got, dead)
		}
		if d := c.seen(id).overlap(epoch); d > 0 {
			t.Errorf("epochs %d and %d overlap by %s", epoch, epoch+1, d)
		}
	}
	j := c.job(id)
	if b := j.Budgets[api.CauseNodeLost]; b.Used != 2 {
		t.Errorf("node-lost %d used, want 2", b.Used)
	}
}

// A node is frozen for longer than node_timeout, then thawed: the gang is not started again
// before the node has said that its part is gone, so that the two epochs never overlap, and
// what the old one says counts for nothing.
func TestFrozenMemberComesBack(t *testing.T) {
	t.Parallel()
	chaos(t)
	c := start(t, "--nodes=4", "--set", "node_timeout=1s", "--set", "heartbeat=200ms", "--set", "node_lost_retries=1000")
	id := c.submit(c.script("b.sh", beating))
	for epoch := 1; epoch <= rounds(3); epoch++ {
		c.epochRuns(id, epoch)
		node := c.job(id).Ranks[1].Node
		pids := c.onNode(id, node)
		freeze(t, pids...)
		c.until("the drain is complete", func() bool { return c.job(id).State == api.JobPending })
		time.Sleep(500 * time.Millisecond)
		if j := c.job(id); j.Epoch != epoch {
			t.Errorf("epoch %d began while node %s was frozen", j.Epoch, node)
		}
		thaw(pids...)
		c.epochRuns(id, epoch+1)
		if d := c.seen(id).overlap(epoch); d > 0 {
			t.Errorf("epochs %d and %d overlap by %s", epoch, epoch+1, d)
		}
		c.until("all nodes are up", func() bool { return c.node(node).State == api.NodeUp })
		for _, pid := range pids[2:] {
			if running(pid) {
				t.Errorf("process %d of epoch %d lives", pid, epoch)
			}
		}
	}
	for _, r := range c.job(id).Ranks {
		if r.State != api.RankRunning || r.ExitCode != nil {
			t.Errorf("rank %d took a result of an old epoch: %+v", r.Rank, r)
		}
	}
}

// Nobody answers (the controller is frozen, which to its nodes is a cut line): the ranks end
// by themselves when the lease does, and the gang is started again only after that.
func TestCutLongerThanTheLease(t *testing.T) {
	t.Parallel()
	chaos(t)
	const lease = 3 * time.Second
	c := start(t, "--nodes=3", "--set", "lease=3s", "--set", "drain_slack=1s", "--set", "node_timeout=2s", "--set", "heartbeat=200ms", "--set", "node_lost_retries=1000")
	id := c.submit(c.script("b.sh", beating))
	for epoch := 1; epoch <= rounds(1); epoch++ {
		c.epochRuns(id, epoch)
		pid := c.pid("gangd")
		freeze(t, pid)
		cut := time.Now()
		for give := cut.Add(patience); len(c.seen(id).term[epoch]) < 3; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(give) {
				thaw(pid)
				t.Fatal("the ranks did not end by themselves")
			}
		}
		for rank, at := range c.seen(id).term[epoch] {
			took := at.Sub(cut)
			t.Logf("rank %d: cut to TERM %s (lease %s)", rank, took.Round(time.Millisecond), lease)
			if took > lease+time.Second || took < lease/2 {
				t.Errorf("rank %d was told %s after the cut, the lease is %s", rank, took, lease)
			}
		}
		thaw(pid)
		c.epochRuns(id, epoch+1)
		if d := c.seen(id).overlap(epoch); d > 0 {
			t.Errorf("epochs %d and %d overlap by %s", epoch, epoch+1, d)
		}
	}
}

// Most nodes vanish at once: the controller is the likely victim, so nothing is started
// again, not even when the leases are over, before they come back.
func TestMostNodesVanish(t *testing.T) {
	t.Parallel()
	chaos(t)
	c := start(t, "--nodes=6", "--set", "lease=2s", "--set", "grace=500ms", "--set", "drain_slack=500ms", "--set", "node_timeout=1s", "--set", "heartbeat=200ms")
	id := c.submit(c.script("b.sh", beating))
	c.epochRuns(id, 1)
	away := c.job(id).Nodes
	for _, n := range c.nodes() {
		if len(away) < 4 && !slices.Contains(away, n.Name) {
			away = append(away, n.Name)
		}
	}
	for _, n := range away { // the daemons alone: shims and ranks live on until their lease ends
		c.kill(n)
	}
	c.until("the ranks have ended by themselves", func() bool { return len(c.seen(id).term[1]) == 3 })
	time.Sleep(3 * time.Second) // lease, grace and slack are long over
	if j := c.job(id); j.State != api.JobPending || j.Epoch != 1 {
		t.Errorf("job is %s in epoch %d, want PENDING in 1\n%s", j.State, j.Epoch, c.story(id))
	}
	for _, n := range away {
		c.restart(n)
	}
	c.epochRuns(id, 2)
	if d := c.seen(id).overlap(1); d > 0 {
		t.Errorf("the epochs overlap by %s", d)
	}
}

// spawn starts a killed node daemon by itself: gangd dev waits until the controller has seen
// it, which is not there. It ends with the test.
func (c *cluster) spawn(name string) {
	c.t.Helper()
	cmd := exec.Command(filepath.Join(c.bin, "gnoded"), "--config", filepath.Join(c.dir, "etc", name+".toml"))
	log, err := os.OpenFile(filepath.Join(c.dir, "log", name+".log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// The site's fence hook frees a gang of a node that is gone, without a person. A hook that
// fails is not believed. What comes back from a fenced node is stopped at first contact and
// what it says counts for nothing.
func TestFenceHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hook := filepath.Join(dir, "fence")
	body := "#!/bin/sh\necho \"$1 $GANG_NODE\" >> " + dir + "/asked\n[ -e " + dir + "/works ]\n"
	if err := os.WriteFile(hook, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, "--nodes=4", "--set", "node_timeout=1s", "--set", "heartbeat=200ms", "--set", "fence_hook="+hook, "--set", "fence_timeout=1s")
	id := c.submit(c.script("b.sh", beating))
	c.epochRuns(id, 1)
	node := c.job(id).Ranks[1].Node
	old := c.onNode(id, node)
	freeze(t, old...)
	c.until("the hook was asked", func() bool { return len(lines(t, filepath.Join(dir, "asked"))) == 1 })
	if got := lines(t, filepath.Join(dir, "asked"))[0]; got != node+" "+node {
		t.Errorf("the hook was asked %q, want the node %s", got, node)
	}
	time.Sleep(500 * time.Millisecond)
	if j := c.job(id); j.Epoch != 1 {
		t.Errorf("a hook that failed was believed: epoch %d", j.Epoch)
	}
	if err := os.WriteFile(filepath.Join(dir, "works"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.epochRuns(id, 2) // the hook is asked again
	if !strings.Contains(c.log("gangd"), "fence hook done") {
		t.Error("the log does not tell of the hook")
	}
	for _, n := range c.job(id).Nodes {
		if n == node {
			t.Errorf("placed on the lost node %s", node)
		}
	}
	// This hook has lied: the processes still exist. They are stopped as soon as the node
	// speaks, and nothing of theirs is taken.
	thaw(old...)
	c.until("the node is back", func() bool { return c.node(node).State == api.NodeUp })
	for _, pid := range old[2:] {
		c.until("the old rank is gone", func() bool { return !running(pid) })
	}
	t.Logf("thawed after a hook that lied, the old rank lived on for at most %s", c.seen(id).overlap(1).Round(time.Millisecond))
	j := c.job(id)
	if j.State != api.JobRunning || j.Epoch != 2 {
		t.Errorf("the gang is %s in epoch %d, want RUNNING in 2\n%s", j.State, j.Epoch, c.story(id))
	}
	for _, r := range j.Ranks {
		if r.State != api.RankRunning || r.ExitCode != nil {
			t.Errorf("rank %d took a result of the old epoch: %+v", r.Rank, r)
		}
	}
}
