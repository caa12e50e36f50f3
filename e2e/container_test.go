package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	script := "cat /etc/os-release\nsrun -N2 -n2 --ntasks-per-node=1 sh -c 'grep -c lab /etc/os-release; touch /etc/of.step && echo writable'\n[ -e /media ] || echo contained\n" +
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
		{"a refused option", "srun --container-save=x touch ran", []string{"-N2"}, "srun: --container-save: containers are not saved; make the image before, and use --container-image\n"},
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

// TestContainerByName: a container with a name is kept with what is written in it until the job ends, on each node, and the next step that names
// it joins it; steps that begin together make one; what can't be is refused by name before a task runs; nothing of it is left.
func TestContainerByName(t *testing.T) {
	t.Parallel()
	tool.Need(t, "pgrep")
	a, mounts := machineImage(t, "first")
	b, _ := machineImage(t, "second")
	c := start(t, "--nodes=2", "--set", "cpus=4", "--set", "containers=true", "--set", "private_dirs=/var/tmp")
	slurmNames(t, c)
	box := func(image string) string {
		return "srun -N1 -n1 -w n1 --container-image=" + image + " --container-mounts=" + mounts + " "
	}
	const join = "srun -N1 -n1 -w n1 "
	id := "sh -c 'grep ID= /etc/os-release; cat /etc/kept; ls /var/tmp; true'\n"
	keep := box(a) + "--container-name=k sh -c 'echo kept > /etc/kept; echo more > /new; touch /var/tmp/of.job'\n"
	// How many mount namespaces the shim of a job on n1 holds open, by the record of a rank's parent.
	held := "ls -l /proc/$PPID/fd | grep -c 'mnt:'\n"
	for _, x := range []struct {
		name, script string
		want         []string
	}{
		{"joined without an image", keep + join + "--container-name=k " + id, []string{"ID=first", "kept", "of.job"}},
		{"joined with an image", keep + box(a) + "--container-name=k " + id, []string{"ID=first", "kept", "of.job"}},
		{"another image does not count", keep + box(b) + "--container-name=k " + id, []string{"ID=first", "kept", "of.job"}},
		{"insisted on", keep + join + "--container-name=k:exec " + id, []string{"ID=first", "kept", "of.job"}},
		{"with the other flags", keep + join + "--container-name=k:no_exec cat /new\n" + join + "--container-name=k:auto cat /new\n", []string{"more", "more"}},
		{"by a variable", keep + "PYXIS_CONTAINER_NAME=k srun -N1 -n1 -w n1 cat /new\n", []string{"more"}},
		{"after a step that failed", box(a) + "--container-name=k sh -c 'echo more > /new; exit 3' 2>/dev/null\n" + join + "--container-name=k cat /new\n", []string{"more"}},
		{"while the first runs", box(a) + "--overlap --container-name=k sh -c 'echo more > /new; touch up; sleep 60' & until [ -e up ]; do sleep 0.1; done\n" +
			join + "--overlap --container-name=k:exec cat /new; scancel $SLURM_JOB_ID.0; wait\n", nil},
		{"new", keep + box(b) + "--container-name=other:create " + id, []string{"ID=second", "cat: /etc/kept: No such file or directory", "of.job"}},
		{"another job's own directory", keep + join + "--container-name=k --container-workdir=/etc cat kept\n", []string{"kept"}},
		{"together", "for i in 1 2 3; do " + box(a) + "--overlap --container-name=k sh -c 'echo '$i' > /of.'$i'; until [ -e /of.1 -a -e /of.2 -a -e /of.3 ]; do sleep 0.1; done; echo all' & done; wait\n" + held,
			[]string{"2", "all", "all", "all"}},
		{"held once", keep + held + join + "--container-name=k true\n" + held + box(b) + "--container-name=l true\n" + held, []string{"2", "2", "3"}},
		{"new where there is one", keep + box(a) + "--container-name=k:create touch ran\n",
			[]string{"srun: error: task launch for StepId=ID.1 failed: n1: container: k is there already: leave out :create, or give it another name"}},
		{"none is there", "srun -N1 -n1 -w n1 --container-name=k touch ran\n",
			[]string{"srun: error: task launch for StepId=ID.0 failed: n1: container: no step of this job has made k on this node: name an image, and leave out :exec"}},
		{"insisted on, and not there", box(a) + "--container-name=k:exec touch ran\n",
			[]string{"srun: error: task launch for StepId=ID.0 failed: n1: container: no step of this job has made k on this node: name an image, and leave out :exec"}},
		{"on one node of two", keep + "srun -N2 -n2 --container-name=k touch ran\n",
			[]string{"srun: error: task launch for StepId=ID.1 failed: n2: container: no step of this job has made k on this node: name an image, and leave out :exec"}},
		{"one whose mounts fail, and then one that does not", "srun -N1 -n1 -w n1 --container-image=" + a + " --container-mounts=/none:/x --container-name=k touch ran\n" + keep + join + "--container-name=k cat /etc/kept\n",
			[]string{"srun: error: task launch for StepId=ID.0 failed: n1: container mount: /none: no such file or directory", "kept"}},
		{"other mounts", keep + join + "--container-name=k --container-mounts=/etc:/mine ls /mine 2>&1 | grep -c 'container k is there, with the mounts of the step that made it'\n", []string{"1"}},
		{"a name that is none", join + "--container-name=../k touch ran\n", []string{
			"srun: --container-name: want a name of letters, digits and . _ -, at most 64; write --container-name=trainer"}},
		{"a flag that is none", join + "--container-name=k:new touch ran\n", []string{
			"srun: --container-name: the flag new is not known: want auto, create, exec or no_exec; write --container-name=k:exec"}},
	} {
		got := c.batch(x.script, "-N2", "--ntasks-per-node=2")
		got = regexp.MustCompile(`StepId=\d+`).ReplaceAllString(got, "StepId=ID")
		got = strings.NewReplacer("Try \"srun --help\" for more information\n", "").Replace(got)
		if x.want == nil {
			if !strings.Contains(got, "more\n") {
				t.Errorf("%s:\n%s", x.name, got)
			}
		} else if lines := strings.Split(strings.TrimSpace(got), "\n"); !slices.Equal(slices.Sorted(slices.Values(lines)), slices.Sorted(slices.Values(x.want))) {
			t.Errorf("%s:\n%s\nwant\n%s", x.name, got, strings.Join(x.want, "\n"))
		}
		if _, err := os.Stat(filepath.Join(c.tmp, "ran")); err == nil {
			t.Fatalf("%s: it ran", x.name)
		}
		_ = os.Remove(filepath.Join(c.tmp, "up"))
	}
	holds := c.submit("-N1", "-n1", "-w", "n1", c.script("holds", "#!/bin/sh\nPATH="+filepath.Join(c.tmp, "slurm")+":$PATH\n"+keep+"sleep 60\n"))
	c.until("the job's two namespaces", func() bool { return c.namespaces() == 2 })
	c.must("gcancel", "--now", fmt.Sprint(holds))
	// The job's own container may have a name as well, and steps with another one are beside it.
	got := c.batch("echo of.job > /new\n"+join+"--container-name=j cat /new\n"+box(b)+"--container-name=k "+id, append(strings.Fields("--container-image="+a+" --container-mounts="+mounts), "-N2", "--ntasks-per-node=2", "--container-name=j")...)
	if got != "ID=second\ncat: /etc/kept: No such file or directory\nof.job\n" && !strings.Contains(got, "of.job\n") {
		t.Errorf("a job's own: %q", got)
	}
	c.until("all namespaces to be let go", func() bool { return c.namespaces() == 0 })
}

// namespaces is how many mount namespaces the cluster's shims hold open.
func (c *cluster) namespaces() (n int) {
	shims, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range shims {
		if words, err := os.ReadFile(name); err != nil || !strings.Contains(string(words), "gshim") || !strings.Contains(string(words), c.dir+"/") {
			continue
		}
		fds, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "fd", "*"))
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "mnt:") {
				n++
			}
		}
	}
	return n
}
