package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStepsRunInTheContainer: the script and its steps run in the image; a checkpoint is put from inside, and
// where no node runs containers the job is refused when it is submitted.
func TestStepsRunInTheContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "x", t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("no mounts may be made here: %s", out)
	}
	image := t.TempDir()
	for _, d := range []string{"etc", "usr", "bin"} {
		if err := os.Mkdir(filepath.Join(image, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(image, "etc/os-release"), []byte("ID=lab\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// The machine's own programs, mounted into it.
	args := []string{"--container-image=" + image, "--container-mounts=/usr:/usr:ro,/bin:/bin:ro,/lib:/lib:ro"}
	for _, d := range []string{"/lib64", "/etc/alternatives", "/etc/nsswitch.conf"} {
		if _, err := os.Stat(d); err == nil {
			args[1] += "," + d + ":" + d + ":ro"
		}
	}
	c := start(t, "--nodes=2", "--set", "cpus=4", "--set", "containers=true")
	slurmNames(t, c)
	script := "cat /etc/os-release\nsrun -N2 -n2 --ntasks-per-node=1 sh -c 'grep -c lab /etc/os-release; touch /etc/of.step && echo writable'\n[ -e /root ] || echo contained\n" +
		"echo saved | gckpt put - && echo saved\n"
	if got, want := c.batch(script, append(args, "-N2")...), "1\n1\nID=lab\ncontained\nsaved\nwritable\nwritable\n"; !strings.Contains(got, "ID=lab") || got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(image, "etc/of.step")); err == nil {
		t.Error("the image was written to")
	}
	none := start(t, "--nodes=1", "--set", "cpus=4")
	out, errs, code := none.run("gsubmit", append(args, none.script("s", "#!/bin/sh\n"))...)
	if code == 0 || !strings.Contains(errs, "no node of the cluster runs jobs in containers") && !strings.Contains(errs, "runs jobs in containers") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
