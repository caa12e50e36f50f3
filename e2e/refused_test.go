package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// TestNodeRefusesItsConfiguration: what a node could not hold for each job is refused when gnoded starts, by the
// key and the place, and nothing is left of the try.
func TestNodeRefusesItsConfiguration(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("root's settings")
	}
	dir := t.TempDir()
	put := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, open, plain, strangers := put("good", 0o755), put("open", 0o757), put("plain", 0o644), put("strangers", 0o755)
	groups := put("groups", 0o775)
	for path, gid := range map[string]int{strangers: 0, groups: 4321} {
		uid := 0
		if path == strangers {
			uid = 4321
		}
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	hooks := filepath.Join(dir, "hooks.d")
	if err := os.Mkdir(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(open, filepath.Join(hooks, "10-open")); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(dir, "shared.d")
	if err := os.Mkdir(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(shared, 0o777)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(hooks, link); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ settings, want string }{
		{"prolog=" + dir + "/none", "prolog: stat " + dir + "/none: no such file or directory"},
		{"prolog=relative", "prolog"},
		{"prolog=" + open, "prolog: " + open + " may be changed by everybody (mode 0757): chmod o-w " + open},
		{"epilog=" + plain, "epilog: " + plain + " can't be executed: chmod +x " + plain},
		{"epilog=" + strangers, "epilog: " + strangers + " belongs to user id 4321, who could change it: chown root " + strangers},
		{"prolog=" + groups, "prolog: " + groups + " may be changed by group id 4321 (mode 0775): chmod g-w " + groups},
		{"prolog=" + hooks, "prolog: " + open + " may be changed by everybody"},
		{"task_prolog=" + shared, "task_prolog: " + shared + " may be changed by everybody (mode 0777): chmod o-w " + shared},
		{"task_epilog=/dev/null", "task_epilog: /dev/null is not a file"},
		{"hook_timeout=1ms", "hook_timeout"},
		{"private_dirs=" + dir + "/none", "private_dirs: lstat " + dir + "/none: no such file or directory"},
		{"private_dirs=tmp", "private_dirs"},
		{"private_dirs=" + link, "private_dirs: " + link + " is " + hooks + ": name that"},
		{"private_dirs=" + good, "private_dirs: " + good + " is not a directory"},
		{"private_dirs=/usr", "private_dirs: /usr: no program would run without what is there"},
		{"private_dirs=" + dir + "," + hooks, "private_dirs: " + dir + " and " + hooks + " lie in each other"},
		{"private_dirs=" + hooks + " private_size=900T", "private_size: 900T, and the machine has "},
		{"private_dirs=" + hooks + " private_path=" + dir + "/none", "private_path: a file without a name in " + dir + "/none: no such file or directory"},
		{"private_dirs=" + hooks + " private_path=/proc", "private_path: a file without a name in /proc: "},
		{"private_dirs=" + hooks + " private_path=" + dir + " private_size=900T", "private_size: 900T, and the disk of private directories has "},
		{"cpu_bind=sometimes", "cpu_bind"},
		{"cpu_bind=cores cpus=60000", "cpus is 60000, and the machine has "},
		{"cpu_bind=cores cpu_list=60000", "cpu_list: there is no CPU 60000 here that may be used; there are "},
		{"cpu_list=1-0", "cpu_list"},
		{"cpu_bind=none memory_near=true", "memory_near: needs CPUs that are bound, and they are not: cpu_bind is none"},
		{"cpu_bind=cores memory_near=true cgroup=none", "memory_near: needs the controller cpuset of cgroups, which can't be used here"},
	} {
		state := filepath.Join(dir, "state")
		args := []string{"--name=n1", "--set", "dir=" + state}
		for _, s := range strings.Fields(x.settings) {
			args = append(args, "--set", s)
		}
		cmd := exec.Command(filepath.Join(trial.Bin(t), "gnoded"), args...)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		if !late.Stop() || err == nil || !strings.Contains(out.String(), x.want) {
			t.Errorf("%s: %v: %s\nwant %s", x.settings, err, out.String(), x.want)
		}
		if left, _ := filepath.Glob("/sys/block/loop*/loop/backing_file"); len(left) > 0 {
			for _, p := range left {
				if b, _ := os.ReadFile(p); strings.HasPrefix(string(b), dir) {
					t.Errorf("%s: %s is left", x.settings, b)
				}
			}
		}
	}
}

// TestAsksThatNoNodeCanHold: what a job can't have is refused when it is submitted, and there is no job.
func TestAsksThatNoNodeCanHold(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1", "--set", "cpus=4")
	script := c.script("rank", "#!/bin/sh\ntrue\n")
	for _, x := range []struct{ option, want string }{
		{"--tmp=900T", "tmp"},
		{"--tmp=60T", "no node has 60T temporary space (--tmp): the most is "},
		{"--tmp=many", "--tmp"},
		{"--cpu-bind=sometimes", "--cpu-bind"},
		{"--cpu-bind=map_cpu", "--cpu-bind"},
		{"--hint=quick", "--hint"},
		{"--threads-per-core=0", "--threads-per-core"},
		{"--cpus-per-task=5", "no node has 5 CPUs for a rank: the most is 4 on n1"},
	} {
		out, errs, code := c.run("gsubmit", x.option, script)
		if code == 0 || out != "" || !strings.Contains(errs, x.want) {
			t.Errorf("%s: exit %d, %s%s; want %s", x.option, code, out, errs, x.want)
		}
	}
	if id := c.submit(script); id != 1 {
		t.Errorf("the first job has number %d: %s", id, fmt.Sprint(c.wait(id, api.JobCompleted).JobID))
	}
}
