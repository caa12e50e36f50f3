package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestPrologOfABadNode: a gang whose prolog fails on one of its nodes runs on others at once, nobody is
// charged, and the node is drained with the prolog's word before long.
func TestPrologOfABadNode(t *testing.T) {
	prolog := filepath.Join(t.TempDir(), "prolog")
	if err := os.WriteFile(prolog, []byte("#!/bin/sh\n[ $GANG_NODE != n1 ] || { echo looking; echo no IB link; exit 1; }\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, "--nodes=4", "--set", "cpus=4", "--set", "prolog="+prolog)
	rank := c.script("rank", "#!/bin/sh\nexec sleep 1000\n")
	for n := range 20 {
		began := time.Now()
		id := c.submit("--size=2", "--ranks-per-node=1", rank)
		j := c.wait(id, api.JobRunning)
		t.Logf("job %d runs after %v", id, time.Since(began).Round(time.Millisecond))
		for _, node := range j.Nodes {
			if node == "n1" {
				t.Fatalf("job %d runs on n1:\n%s", id, c.story(id))
			}
		}
		if n == 0 {
			if story := c.story(id); !strings.Contains(story, "n1: prolog: "+prolog+": exit status 1: no IB link") {
				t.Errorf("the first job was not tried on n1, or its events don't say why:\n%s", story)
			}
		}
		if j.RestartCount != 0 {
			t.Errorf("job %d was charged: %d restarts", id, j.RestartCount)
		}
		c.must("gcancel", fmt.Sprint(id))
		c.wait(id, api.JobCancelled)
		if n1 := c.node("n1"); n1.State != api.NodeUp {
			if !strings.Contains(n1.Reason, "no IB link") {
				t.Errorf("n1 is out for %q", n1.Reason)
			}
			return
		}
	}
	t.Errorf("n1 is in service: %+v", c.node("n1"))
}
