package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gangd/e2e/trial"
)

// What make install puts below a PREFIX is whole, and its names run.
func TestInstallBelowAPrefix(t *testing.T) {
	t.Parallel()
	prefix := t.TempDir()
	if out, err := exec.Command("../scripts/install", prefix).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"bin/gangd", "bin/gnoded", "bin/gsubmit", "libexec/gangd/gshim", "libexec/gangd/gstep", "libexec/gangd/gpmix", "libexec/gangd/gadopt", "share/man/man1/gsubmit.1", "share/man/man8/gangd.8",
		"share/bash-completion/completions/gqueue", "share/bash-completion/completions/grun", "share/zsh/site-functions/_gangd", "share/fish/vendor_completions.d/gqueue.fish"} {
		if _, err := os.Stat(filepath.Join(prefix, name)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"gshim", "gstep", "gpmix", "gadopt"} {
		if _, err := os.Stat(filepath.Join(prefix, "bin", name)); err == nil {
			t.Errorf("%s is in everybody's PATH", name)
		}
	}
	for _, name := range []string{"gqueue", "gctl", "gsubmit"} {
		b, err := os.ReadFile(filepath.Join(prefix, "share/zsh/site-functions/_"+name))
		if err != nil || !strings.HasPrefix(string(b), "#compdef "+name+"\n") || strings.Count(string(b), "#compdef ") != 1 {
			t.Errorf("%s for zsh: %v, %.80q", name, err, b)
		}
	}
	out, err := exec.Command(filepath.Join(prefix, "lib/gangd/slurm/sbatch"), "--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "slurm ") {
		t.Errorf("sbatch: %v %s", err, out)
	}
}

// What is installed runs jobs in each way: gstep lies in no directory of the PATH.
func TestInstalledProgramsRunJobs(t *testing.T) {
	t.Parallel()
	prefix := t.TempDir()
	if out, err := exec.Command("../scripts/install", prefix).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir, err := os.MkdirTemp("", "gi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &trial.Client{T: t, Bin: filepath.Join(prefix, "bin"), Dir: dir, Tmp: t.TempDir(), Env: []string{"PATH=" + filepath.Join(prefix, "bin") + ":/usr/bin:/bin"}}
	t.Cleanup(func() { _, _, _ = c.Run("gangd", "dev", "--stop", "--dir="+dir) })
	c.Must("gangd", "dev", "--detach", "--isolate=false", "--nodes=1", "--dir="+dir)
	if out := c.Must("grun", "-n2", "echo", "step"); out != "step\nstep\n" {
		t.Errorf("grun by itself: %q", out)
	}
	if out := c.Must("gsubmit", "-f", "-n2", "--wrap", "grun echo of a job"); out != "of a job\nof a job\n" && !strings.HasSuffix(out, "of a job\nof a job\n") {
		t.Errorf("grun in a job: %q", out)
	}
}
