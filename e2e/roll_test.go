package e2e

import (
	"strings"
	"testing"
)

// TestRollRequeuesWhatRunsThere: a roll that has jobs run elsewhere stops those of its node, and of an array no other element; the node is
// back in service, and the command knew its name.
func TestRollRequeuesWhatRunsThere(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--gpus=1x80G")
	id := strings.TrimSpace(c.must("gsubmit", "--parsable", "--array=0-1", "--gpus-per-rank=1", "--requeue", "--wrap", "sleep 600"))
	c.until("both run", func() bool { return c.must("gqueue", "-h", "-t", "RUNNING", "-o", "%T") == "RUNNING\nRUNNING\n" })
	at := strings.TrimSpace(c.must("gqueue", "-h", "-j", id+"_0", "-o", "%N"))
	if out := c.must("gctl", "node", "roll", "--nodes="+at, "--jobs=requeue", "echo done at $GANG_NODE"); !strings.Contains(out, at+": done at "+at+"\n") {
		t.Errorf("%q", out)
	}
	if out := c.must("gctl", "events", id+"_1"); strings.Contains(out, "requeued") {
		t.Errorf("the element on the other node:\n%s", out)
	}
	if out := c.must("gctl", "events", id+"_0"); !strings.Contains(out, "requeued by") {
		t.Errorf("the element on %s:\n%s", at, out)
	}
	if out := c.must("ginfo", "--json"); strings.Count(out, `"state": "up"`) != 2 {
		t.Errorf("nodes:\n%s", out)
	}
}
