package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// features gives some of a dev cluster's nodes features of their own.
func (c *cluster) features(of map[string]string) {
	c.t.Helper()
	for name, features := range of {
		path := filepath.Join(c.dir, "etc", name+".toml")
		text, err := os.ReadFile(path)
		if err != nil {
			c.t.Fatal(err)
		}
		c.kill(name)
		if err := os.WriteFile(path, []byte(string(text)+"features = \""+features+"\"\n"), 0o644); err != nil {
			c.t.Fatal(err)
		}
		c.restart(name)
	}
	c.until("the nodes say their features", func() bool {
		return !slices.ContainsFunc(c.nodes(), func(n api.Node) bool { return strings.Join(n.Features, ",") != of[n.Name] || n.State != api.NodeUp })
	})
}

// TestConstraintsOnAllNodes: what --constraint says of a gang's nodes together holds on a live
// cluster, when it starts at once, when it waits, and when others make room for it.
func TestConstraintsOnAllNodes(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=4", "--gpus=2x24G", "--set=preempt=tier", "--set=grace=1s")
	c.features(map[string]string{"n1": "rack1", "n2": "rack1,fast", "n3": "rack2", "n4": "rack2"})
	sleep := func(args ...string) int64 {
		return c.submit(append(args, "-o", "/dev/null", "--gpus-per-rank=1", "--wrap", "sleep 600")...)
	}
	num := func(id int64) string { return strconv.FormatInt(id, 10) }
	nodes := func(id int64) string { return strings.Join(c.wait(id, api.JobRunning).Nodes, ",") }

	counted := sleep("-C", "[rack1*1&(rack2)*2]")
	if got := nodes(counted); got != "n1,n3,n4" && got != "n2,n3,n4" {
		t.Errorf("one node of rack1 and two of rack2: %s", got)
	}
	preferred := sleep("-C", "rack2", "--prefer=fast")
	if got := nodes(preferred); got != "n2" {
		t.Errorf("runs on %s, n2 is preferred", got)
	}
	c.must("gcancel", num(counted), num(preferred))
	c.wait(counted, api.JobCancelled)
	c.wait(preferred, api.JobCancelled)

	first, low := sleep("-w", "n1"), sleep("-w", "n3", "--size=2")
	nodes(first)
	nodes(low)
	waits := sleep("-C", "[rack1|rack2]", "-N2", "--size=4")
	if why := c.must("gqueue", "--why", num(waits)); !strings.Contains(why, "no alternative has it all now: rack1 has room for 3 of 4 ranks; rack2 has room for 2 of 4 ranks; each rank needs 1 card") {
		t.Errorf("why:\n%s", why)
	}
	c.must("gctl", "update", num(waits), "--constraint=rack2")
	c.must("gcancel", num(first))
	c.wait(first, api.JobCancelled)
	if state := c.job(waits).State; state != api.JobPending {
		t.Errorf("%s without two nodes of rack2", state)
	}
	c.must("gctl", "update", num(waits), "--constraint=[rack1|rack2]", "--priority=1")
	if got := nodes(waits); got != "n1,n2" {
		t.Errorf("two nodes of one rack: %s", got)
	}
	// The cheaper of the two racks is emptied, and nobody on the other is touched.
	urgent := sleep("-C", "[rack1|rack2]", "-N2", "--size=4", "--priority=1")
	if got := nodes(urgent); got != "n3,n4" {
		t.Errorf("the urgent gang is on %s", got)
	}
	if c.job(low).State == api.JobRunning || c.job(waits).State != api.JobRunning {
		t.Errorf("%s and %s, want only what was on n3 to make room", c.job(low).State, c.job(waits).State)
	}
	_, stderr, code := c.run("gsubmit", "-C", "[rack1|rakc2]", "-o", "/dev/null", "--wrap", "true")
	if want := "gsubmit: unknown feature \"rakc2\"; did you mean \"rack2\"? features: fast, rack1, rack2\n"; code != 1 || stderr != want {
		t.Errorf("exit %d: %q, want %q", code, stderr, want)
	}
}
