package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gangd/pkg/lab/tool"
)

// TestStepsRunInTheContainer: the script and its steps run in the image; a checkpoint is put from inside, and
// where no node runs containers the job is refused when it is submitted.
func TestStepsRunInTheContainer(t *testing.T) {
	t.Parallel()
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
	// A file that is sent to all nodes of the job is where its steps see it, in the container.
	script += "echo sent > src\ngcp src /etc/sent && srun -N2 -n2 --ntasks-per-node=1 cat /etc/sent\n"
	if got, want := c.batch(script, append(args, "-N2")...), "1\n1\nID=lab\ncontained\nsaved\nsent\nsent\nwritable\nwritable\n"; !strings.Contains(got, "ID=lab") || got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, name := range []string{"etc/of.step", "etc/sent"} {
		if _, err := os.Stat(filepath.Join(image, name)); err == nil {
			t.Errorf("the image was written to: %s", name)
		}
	}
	none := start(t, "--nodes=1", "--set", "cpus=4")
	out, errs, code := none.run("gsubmit", append(args, none.script("s", "#!/bin/sh\n"))...)
	if code == 0 || !strings.Contains(errs, "no node of the cluster runs jobs in containers") && !strings.Contains(errs, "runs jobs in containers") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// machineImage is an image that has nothing but a name of its own, and what has the machine's programs shown in it.
func machineImage(t *testing.T, id string) (image, mounts string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "x", t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("no mounts may be made here: %s", out)
	}
	image = t.TempDir()
	for _, d := range []string{"etc", "usr", "bin"} {
		if err := os.Mkdir(filepath.Join(image, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(image, "etc/os-release"), []byte("ID="+id+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mounts = "/usr:/usr:ro,/bin:/bin:ro,/lib:/lib:ro"
	for _, d := range []string{"/lib64", "/etc/alternatives", "/etc/nsswitch.conf"} {
		if _, err := os.Stat(d); err == nil {
			mounts += "," + d + ":" + d + ":ro"
		}
	}
	return image, mounts
}

// TestStepInAnImage: a step runs in an image of its own inside a job that has none, or another; what it can't have
// is refused by name before a task runs, and nothing of it ever runs outside.
func TestStepInAnImage(t *testing.T) {
	t.Parallel()
	tool.Need(t, "pgrep")
	a, mounts := machineImage(t, "first")
	b, _ := machineImage(t, "second")
	c := start(t, "--nodes=2", "--set", "cpus=4", "--set", "containers=true", "--set", "private_dirs=/var/tmp")
	slurmNames(t, c)
	box := func(image string) string { return "--container-image=" + image + " --container-mounts=" + mounts + " " }
	of := func(image string) []string { return append(strings.Fields(box(image)), "-N2", "--ntasks-per-node=2") }
	show := "sh -c 'grep ID= /etc/os-release; ls /var/tmp; [ -e /root ] && echo host; [ -S $GANG_SOCKET ] && touch /etc/of.step && echo $SLURM_PROCID $PWD $GANG_CONTAINER_IMAGE'\n"
	want := func(id, image string) string {
		lines := ""
		for task := range 4 {
			lines += fmt.Sprintln(task, c.tmp, image)
		}
		return lines + strings.Repeat("ID="+id+"\n", 4) + strings.Repeat("of.job\n", 4)
	}
	mark := fmt.Sprint(800000 + os.Getpid()) // seconds that what is left behind sleeps
	place := "srun touch /var/tmp/of.job\n"
	for _, x := range []struct {
		name, script string
		args         []string
		want         string
	}{
		{"in a job without one", place + "srun " + box(a) + show, []string{"-N2", "--ntasks-per-node=2"}, want("first", a)},
		{"in a job with another", place + "srun " + box(b) + show, of(a), want("second", b)},
		{"in that of the job", place + "srun " + show, of(a), want("first", a)},
		{"by a variable", place + "export PYXIS_CONTAINER_IMAGE=" + a + " PYXIS_CONTAINER_MOUNTS=" + mounts + "\nsrun " + show, []string{"-N2", "--ntasks-per-node=2"}, want("first", a)},
		{"a variable that is the job's", place + "export PYXIS_CONTAINER_IMAGE=/none\nsrun " + show, of(a), want("first", a)},
		{"nothing that is left of it lives on", "srun -n1 -N1 " + box(a) + "sh -c 'setsid sleep " + mark + " & (setsid sleep " + mark + " &) & echo done'\nsleep 0.3; pgrep -c -f '^sleep " + mark + "' || true", []string{"-N1"}, "0\ndone\n"},
		{"a directory of its own", "mkdir -p sub; srun -n1 -N1 -D $PWD/sub " + box(a) + "sh -c 'pwd; touch here'; ls sub", []string{"-N1"}, c.tmp + "/sub\nhere\n"},
		{"in the container", "srun -n1 -N1 --container-workdir=/usr " + box(a) + "pwd", []string{"-N1"}, "/usr\n"},
		{"read-only", "srun -n1 -N1 --container-readonly " + box(a) + "sh -c 'touch /etc/x 2>/dev/null || echo read-only'", []string{"-N1"}, "read-only\n"},
		{"a file is sent to where the job runs", "echo sent > src; PYXIS_CONTAINER_IMAGE=/none gcp -f src $PWD/copy; cat copy", []string{"-N1"}, "sent\n"},
		{"no such image", "srun --container-image=" + a + "/none touch ran", []string{"-N2"}, "srun: error: task launch for StepId=ID.0 failed: n: container image: " + a + "/none: no such file or directory\n"},
		{"no such mount", "srun --container-image=" + a + " --container-mounts=/none:/x touch ran", []string{"-N2"}, "srun: error: task launch for StepId=ID.0 failed: n: container mount: /none: no such file or directory\n"},
		{"no driver", "srun --container-image=debian:12 touch ran", []string{"-N2"}, "srun: error: n[1-2] of job ID can't run the image docker://docker.io/library/debian:12: it needs a node with container-podman or container-enroot or container-apptainer; start the job with --constraint=container-podman\n"},
		{"an option without an image", "srun --container-readonly touch ran", []string{"-N2"}, "srun: --container-readonly: speaks of a container, and none is asked for; name one: --container-image=IMAGE\n"},
		{"a refused option", "srun --container-name=x touch ran", []string{"-N2"}, "srun: --container-name: containers are not kept after their end; use --container-image\n"},
		{"a bundle", "srun --container=" + a + " touch ran", []string{"-N2"}, "srun: --container: OCI bundles are not run: no runtime reads their config.json; use --container-image with the directory of their root\n"},
		{"no name of an image", "srun --container-image=images/../x touch ran", []string{"-N2"}, ""},
	} {
		got := c.batch(x.script, x.args...)
		got = regexp.MustCompile(`StepId=\d+`).ReplaceAllString(got, "StepId=ID")
		got = regexp.MustCompile(`of job \d+`).ReplaceAllString(got, "of job ID")
		got = regexp.MustCompile(`failed: n\d`).ReplaceAllString(got, "failed: n")
		got = strings.NewReplacer("Try \"srun --help\" for more information\n", "", "\n\n", "\n").Replace(strings.TrimPrefix(got, "\n"))
		if got != x.want && x.want != "" || x.want == "" && !strings.Contains(got, "is no name of an image") {
			t.Errorf("%s:\n%s\nwant\n%s", x.name, got, x.want)
		}
		if _, err := os.Stat(filepath.Join(c.tmp, "ran")); err == nil {
			t.Fatalf("%s: it ran", x.name)
		}
	}
	if _, err := os.Stat(filepath.Join(a, "etc/of.step")); err == nil {
		t.Error("the image was written to")
	}
	// Outside an allocation the job around runs in it.
	out, errs, code := c.run("grun", append(strings.Fields(box(b)), "sh", "-c", "grep ID= /etc/os-release; pwd; [ -e /root ] && echo host; true")...)
	if code != 0 || out != "ID=second\n"+c.tmp+"\n" {
		t.Errorf("outside: exit %d: %s%s", code, out, errs)
	}
}
