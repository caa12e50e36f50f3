package noded

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

var privateJobs = flag.Int("private.jobs", 20, "jobs of TestNothingPrivateIsLeft")

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "x", t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("no mounts may be made here: %s", out)
	}
}

// twoDirs are directories to be private, in one of which the daemon's own state lies.
func twoDirs(t *testing.T, c *controller) (Options, string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"tmp", "shm"} {
		if err := os.Mkdir(filepath.Join(base, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	o := c.options(filepath.Join(base, "tmp", "state"))
	o.Private = Private{Dirs: []string{filepath.Join(base, "tmp"), filepath.Join(base, "shm")}, Size: 8 << 20}
	return o, base
}

// mountsBelow lists what is mounted there in this process's namespace, the machine's.
func mountsBelow(t *testing.T, dir string) (out []string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, dir) {
			out = append(out, line)
		}
	}
	return out
}

// TestPrivateDirectories: ranks of a member share them, another job and the machine see nothing of it, the
// size holds, and the daemon's own files are seen.
func TestPrivateDirectories(t *testing.T) {
	needRoot(t)
	c := newController(t)
	o, base := twoDirs(t, c)
	if err := os.WriteFile(filepath.Join(base, "tmp", "machine"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.run(o)
	work := t.TempDir()
	in := func(_ *api.Assignment, s *api.Spec) { s.WorkDir, s.Output = work, "%j.%t" }
	script := fmt.Sprintf(`#!/bin/bash
cd %s
ls tmp shm | tr '\n' ' '; stat -c %%a tmp shm | tr '\n' ' '; df --output=size -B1M tmp | tail -1
head -c 4M /dev/zero > tmp/.$RANK; mv tmp/.$RANK tmp/$GANG_JOB_ID.$RANK
while [ $(ls tmp | grep -c "^$GANG_JOB_ID") -lt $GANG_SIZE ]; do sleep 0.02; done
echo seen
head -c 16M /dev/zero 2>&1 > shm/big | sed 's/.*: //'
[ -r $GANG_STATUS_FILE -o -d $(dirname $GANG_STATUS_FILE) ] && echo status
ls tmp/machine 2>/dev/null
touch %s/ready.$GANG_JOB_ID.$RANK
while [ ! -e %s/go ]; do sleep 0.02; done
`, base, work, work)
	a, b := c.desire(1, 1, 2, script, in), c.desire(2, 1, 1, script, in)
	for _, name := range []string{"ready.1.0", "ready.1.1", "ready.2.0"} {
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(work, name)); err == nil {
				break
			}
			if time.Now().After(end) {
				log, _ := os.ReadFile(filepath.Join(work, "1.0"))
				t.Fatalf("no %s; rank 0 wrote %q", name, log)
			}
		}
	}
	entries, _ := os.ReadDir(filepath.Join(base, "tmp"))
	shm, _ := os.ReadDir(filepath.Join(base, "shm"))
	if len(entries) != 2 || len(shm) != 0 {
		t.Errorf("the machine sees %v and %v", entries, shm)
	}
	if m := mountsBelow(t, base); len(m) != 0 {
		t.Errorf("mounted on the machine: %v", m)
	}
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for k, ranks := range map[api.MemberKey]int{a: 2, b: 1} {
		c.untilPhase(k, api.PhaseStopped)
		for r := range ranks {
			text, _ := os.ReadFile(filepath.Join(work, fmt.Sprintf("%d.%d", k.Job, r)))
			lines := strings.Split(string(text), "\n")
			if r == 0 && ranks == 1 && strings.Join(strings.Fields(lines[0]), " ") != "shm: tmp: state 1777 1777 8" {
				t.Errorf("job %d begins with %q", k.Job, lines[0])
			}
			if rest := strings.Join(lines[1:], " "); rest != "seen No space left on device status " {
				t.Errorf("job %d rank %d: %q", k.Job, r, rest)
			}
		}
	}
	k := c.desire(3, 1, 1, script, func(_ *api.Assignment, s *api.Spec) { s.WorkDir = filepath.Join(base, "tmp", "work") })
	want := fmt.Sprintf("working directory: %s/tmp/work: each job has a %s/tmp of its own on this node", base, base)
	if r := c.untilPhase(k, api.PhaseRefused).Refusal; r.Blame != api.BlameFiles || r.Text != want {
		t.Errorf("%+v, want %s", r, want)
	}
}

// TestNothingPrivateIsLeft: jobs end, are killed with their shims, and the daemon is killed under them; no
// mount and no directory is left, and no process holds a namespace. Whole: -private.jobs=1000.
func TestNothingPrivateIsLeft(t *testing.T) {
	needRoot(t)
	c := newController(t)
	o, base := twoDirs(t, c)
	daemon := c.spawn(o)
	work := t.TempDir()
	done := 0
	for done < *privateJobs {
		var keys []api.MemberKey
		for range min(10, *privateJobs-done) {
			done++
			keys = append(keys, c.desire(int64(done), 1, 1, fmt.Sprintf("#!/bin/bash\ncd %s; echo x > tmp/f; echo x > shm/f; setsid sleep 1000 & [ $((GANG_JOB_ID %% 10)) -ne 0 ] || exec sleep 1000\n", base),
				func(_ *api.Assignment, s *api.Spec) { s.WorkDir, s.Output = work, "/dev/null" }))
		}
		if last := keys[len(keys)-1]; last.Job%10 == 0 {
			c.untilPhase(last, api.PhaseRunning)
			state := waitState(t, filepath.Join(o.StateDir, membersDir, fmt.Sprintf("%d.1", last.Job)), api.PhaseRunning)
			if rand.IntN(2) == 0 {
				p, _ := os.FindProcess(state.ShimPID)
				_ = p.Kill()
			} else {
				c.stop(last, 0)
			}
		}
		if done%50 == 0 || done == 20 {
			kill(t, daemon)
			daemon = c.spawn(o)
		}
		for _, k := range keys {
			c.until(fmt.Sprintf("job %d to be over", k.Job), func() bool {
				p := c.latest[k].Phase
				return p == api.PhaseStopped || p == api.PhaseLost
			})
			c.forget(k)
		}
	}
	finish(t, c, o, daemon)
	if m := mountsBelow(t, base); len(m) != 0 {
		t.Errorf("mounts left: %v", m)
	}
	for _, d := range []string{"tmp", "shm"} {
		entries, _ := os.ReadDir(filepath.Join(base, d))
		if entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == "state" }); len(entries) != 0 {
			t.Errorf("left in %s: %v", d, entries)
		}
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		in := whoSees(base)
		if len(in) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("processes that see private directories: %v", in)
			break
		}
	}
}

// whoSees are the processes in whose namespaces something is mounted there.
func whoSees(dir string) (out []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), dir) {
			out = append(out, p)
		}
	}
	return out
}

// TestPrivateAtStart: what could not be held is refused by name.
func TestPrivateAtStart(t *testing.T) {
	if os.Getuid() != 0 {
		d := newDaemon(Options{Private: Private{Dirs: []string{"/tmp"}}}, &stateDir{})
		if err := d.openPrivate(); err == nil || !strings.HasPrefix(err.Error(), "private_dirs: needs root") {
			t.Error(err)
		}
		t.Skip("the rest is root's")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(base, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		p    Private
		want string
	}{
		{Private{}, ""},
		{Private{Dirs: []string{base}}, ""},
		{Private{Dirs: []string{base + "/none"}}, "private_dirs: lstat " + base + "/none: no such file or directory"},
		{Private{Dirs: []string{base + "/file"}}, "private_dirs: " + base + "/file is not a directory"},
		{Private{Dirs: []string{base + "/link"}}, "private_dirs: " + base + "/link is " + base + ": name that"},
		{Private{Dirs: []string{"/usr"}}, "private_dirs: /usr: no program would run without what is there"},
		{Private{Dirs: []string{base, filepath.Dir(base)}}, "private_dirs: " + base + " and " + filepath.Dir(base) + " lie in each other"},
		{Private{Dirs: []string{base}, Size: 1 << 50}, "private_size: 1024T, and the machine has "},
	} {
		d := newDaemon(Options{Private: x.p, Shim: program}, &stateDir{path: base + "/state"})
		got := ""
		if err := d.openPrivate(); err != nil {
			got = err.Error()
		}
		if got != x.want && !(strings.HasSuffix(x.want, " ") && strings.HasPrefix(got, x.want)) {
			t.Errorf("%+v: %q, want %q", x.p, got, x.want)
		}
	}
}
