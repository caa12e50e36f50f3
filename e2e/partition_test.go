package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPartitionsByHand: gctl makes, changes and deletes partitions; what was changed outlives gangd, is
// shown beside the file's values, and gives way to a file that was edited since.
func TestPartitionsByHand(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--gpus=1x80G")
	file := filepath.Join(c.dir, "etc", "gangd.toml")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	configured := func(gpu string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(string(before)+"[[partition]]\nname = \"main\"\ndefault = true\n[[partition]]\nname = \"gpu\"\n"+gpu), 0o600); err != nil {
			t.Fatal(err)
		}
		c.must("gangd", "dev", "--restart=gangd", "--dir="+c.dir)
	}
	shows := func(name string, want ...string) {
		t.Helper()
		out := c.must("gctl", "show", "partition", name)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%q is not in\n%s", w, out)
			}
		}
	}
	configured("max_time = \"1d\"\n")
	shows("gpu", "State=UP Tier=0", "MaxTime=1-00:00:00")

	c.must("gctl", "partition", "create", "course", "--nodes=n2", "--max-time=2:00:00", "--default-time=30", "--tier=-1", "--state=down")
	c.must("gctl", "partition", "update", "gpu", "--state=drain", "--max-time=4:00:00")
	id := strings.TrimSpace(c.must("gsubmit", "-p", "course", "--parsable", "--wrap", "true"))
	if _, errs, code := c.run("gsubmit", "-p", "gpu", "--wrap", "true"); code != 1 || !strings.Contains(errs, "gpu") {
		t.Errorf("a partition that drains took a job: %d %s", code, errs)
	}
	if _, errs, code := c.run("gctl", "partition", "delete", "course"); code != 1 || !strings.Contains(errs, "course") {
		t.Errorf("a partition with a job was deleted: %d %s", code, errs)
	}
	c.must("gangd", "dev", "--restart=gangd", "--dir="+c.dir)
	shows("course", "State=DOWN Tier=-1", "DefaultTime=30:00 MaxTime=2:00:00", "Nodes=n2", "ChangedBy=", "Configured: (none)")
	shows("gpu", "State=DRAIN", "MaxTime=4:00:00", "Configured: State=UP DefaultTime=UNLIMITED MaxTime=1-00:00:00 Tier=0 Nodes=ALL")

	configured("max_time = \"2d\"\n") // the newer word
	shows("gpu", "State=UP", "MaxTime=2-00:00:00")
	if out := c.must("gctl", "show", "partition", "gpu"); strings.Contains(out, "Configured:") {
		t.Errorf("still shown as changed:\n%s", out)
	}
	shows("course", "State=DOWN")

	c.must("gctl", "partition", "update", "course", "--state=up")
	c.until("the job has run", func() bool { return c.must("gqueue", "-h", "-j", id, "-t", "all", "-o", "%T") == "COMPLETED\n" })
	c.must("gctl", "partition", "reset")
	if _, _, code := c.run("gctl", "show", "partition", "course"); code != 3 {
		t.Errorf("course is left: exit %d", code)
	}

	c.must("gctl", "node", "features", "n1", "a100,nvlink")
	if out := c.must("gsubmit", "--wait", "--parsable", "-C", "nvlink", "-o", "where", "--wrap", "echo $SLURMD_NODENAME"); out == "" || c.file("where") != "n1\n" {
		t.Errorf("a job for nvlink ran on %q", c.file("where"))
	}
	if _, errs, code := c.run("gctl", "create", "reservation", "talk", "starttime=now", "duration=60", "nodes=n1", "users=nosuchuser"); code != 1 || !strings.Contains(errs, `knows no user "nosuchuser"`) {
		t.Errorf("a reservation for nobody: %d %s", code, errs)
	}
}
