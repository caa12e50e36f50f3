package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestStepsSeePrivateDirectories: what the script puts into a private directory its steps find there, and
// the machine does not. The cluster's own files lie below it and are seen.
func TestStepsSeePrivateDirectories(t *testing.T) {
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
