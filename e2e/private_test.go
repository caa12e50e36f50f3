package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// TestStepsSeePrivateDirectories: what the script puts into a private directory its steps find there, and
// the machine does not. The cluster's own files lie below it and are seen.
func TestStepsSeePrivateDirectories(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "x", dir).CombinedOutput(); err != nil {
		t.Skipf("no mounts may be made here: %s", out)
	}
	c := start(t, "--nodes=1", "--set", "cpus=4", "--set", "private_dirs="+dir, "--set", "private_size=8M")
	slurmNames(t, c)
	f := filepath.Join(dir, "f")
	script := "echo of the script > " + f + "\nsrun -n1 cat " + f + "\nsrun -n2 sh -c 'echo $SLURM_PROCID >> " + f + "'\nwc -l < " + f + "\nsqueue -h -o %A | wc -l\n"
	if got, want := c.batch(script, "-n2"), "1\n3\nof the script\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("the machine sees %v", left)
	}
}

// TestTemporarySpaceIsCounted: what jobs ask for by --tmp is counted on each node, shown, and refused where no
// node has it.
func TestTemporarySpaceIsCounted(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1", "--set", "cpus=4")
	has := c.node("n1").TmpBytes
	if has <= 0 {
		t.Fatalf("n1 offers %d bytes", has)
	}
	rank := c.script("rank", "#!/bin/sh\nexec sleep 1000\n")
	most := fmt.Sprintf("--tmp=%dK", has*6/10>>10)
	first, second := c.submit(most, rank), c.submit(most, rank)
	c.wait(first, api.JobRunning)
	why := c.must("gqueue", "--why", fmt.Sprint(second))
	if !strings.Contains(why, "temporary space free, needs ") {
		t.Errorf("the second waits for %s", why)
	}
	if got := c.node("n1").TmpUsed; got != has*6/10>>10<<10 {
		t.Errorf("%d of %d are taken", got, has)
	}
	if out := c.must("gctl", "show", "node", "n1"); !strings.Contains(out, " AllocTmp=") || strings.Contains(out, " TmpDisk=0") {
		t.Errorf("gctl shows %s", out)
	}
	out, errs, code := c.run("gsubmit", fmt.Sprintf("--tmp=%dK", has*2>>10), rank)
	if code != 1 || !strings.Contains(errs, "temporary space (--tmp): the most is ") {
		t.Errorf("twice what there is: exit %d, %s%s", code, out, errs)
	}
	c.must("gcancel", fmt.Sprint(first))
	c.wait(second, api.JobRunning)
}
