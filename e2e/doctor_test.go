package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// doctor is what gctl doctor finds, by id, and its exit status.
func (c *cluster) doctor(args ...string) (ids []string, code int) {
	c.t.Helper()
	out, errs, code := c.run("gctl", append([]string{"doctor", "--json"}, args...)...)
	var found api.FindingsReply
	if err := json.Unmarshal([]byte(out), &found); err != nil || found.Checked < 40 {
		c.t.Fatalf("gctl doctor: exit %d, %v\n%s%s", code, err, out, errs)
	}
	for _, f := range found.Findings {
		ids = append(ids, f.ID)
		if f.Subject == "" || f.Evidence == "" || f.Remedy == "" {
			c.t.Errorf("%+v", f)
		}
	}
	return ids, code
}

// finds waits until the doctor finds something.
func (c *cluster) finds(id string, args ...string) {
	c.t.Helper()
	c.until("the doctor finds "+id, func() bool {
		ids, code := c.doctor(args...)
		return slices.Contains(ids, id) && code == 1
	})
}

// TestDoctor: nothing is found of a healthy cluster, and what is broken in it is found by its id, that of a node's own host too.
func TestDoctor(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=3", "--gpus=2x80G", "--set", "node_timeout=2s", "--set", "heartbeat=200ms")
	if ids, code := c.doctor(); len(ids) > 0 || code != 0 {
		t.Fatalf("of a healthy cluster: %v, exit %d", ids, code)
	}
	if out, _, code := c.run("gctl", "doctor"); code != 0 || !strings.HasPrefix(out, "nothing found, of ") {
		t.Errorf("exit %d, %q", code, out)
	}
	c.steer("n1", `{"1":{"unhealthy":"broken","used_by_strangers":8589934592}}`)
	c.finds("card-unhealthy", "--node=n1")
	c.finds("card-strangers")
	if ids, code := c.doctor("--node=n[2-3]"); len(ids) > 0 || code != 0 {
		t.Errorf("of the others: %v, exit %d", ids, code)
	}
	c.must("gctl", "node", "drain", "n2", "--reason=fan")
	if ids, _ := c.doctor("--node=n2"); len(ids) > 0 {
		t.Errorf("what a person did is found without --notes: %v", ids)
	}
	if ids, code := c.doctor("--node=n2", "--notes"); !slices.Contains(ids, "node-drained") || code != 0 {
		t.Errorf("with --notes: %v, exit %d", ids, code)
	}
	c.kill("n3")
	c.finds("node-lost")
	if _, errs, code := c.run("gctl", "doctor", "--node=n9"); code != 3 || !strings.Contains(errs, "there is no node n9") {
		t.Errorf("exit %d, %q", code, errs)
	}
	bundle := filepath.Join(c.tmp, "b.zip")
	if out := c.must("gctl", "bundle", bundle); out != bundle+"\n" {
		t.Errorf("%q", out)
	}
	if _, errs, code := c.run("gctl", "bundle", bundle); code != 1 || !strings.Contains(errs, "file exists") {
		t.Errorf("over one that is there: exit %d, %q", code, errs)
	}
	c.kill("gangd")
	c.must("gctl", "bundle", bundle+"2", "--timeout=2s") // all the more when it does not answer
	if ids, code := c.doctor("--timeout=2s"); code != 4 || !slices.Equal(ids, []string{"controller-unreachable"}) {
		t.Errorf("without a controller: %v, exit %d", ids, code)
	}
}
