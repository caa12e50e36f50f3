package noded

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
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

// needLoop gives a directory of a disk that images can lie on.
func needLoop(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := openImages(dir, 1<<30); err != nil {
		t.Skipf("no images can be mounted here: %v", err)
	}
	return dir
}

// imagesOf are the loop devices before files of a directory, which have no names there any more.
func imagesOf(dir string) (out []string) {
	paths, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil && strings.HasPrefix(string(b), dir) {
			out = append(out, p)
		}
	}
	return out
}

// TestPrivateOnDisk: each job has an image whose blocks are reserved, of the size that it asked for, else of
// the site's; who fills his own does not notice others, and others do not notice it. Nothing of it has a name.
func TestPrivateOnDisk(t *testing.T) {
	needRoot(t)
	disk := needLoop(t)
	if err := unix.Mount("gangd-test", disk, "tmpfs", 0, "size=256M"); err != nil { // what is free of a disk that others use, too, says nothing
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	c := newController(t)
	o, base := twoDirs(t, c)
	o.Private.Path, o.Private.Size = disk, 16<<20
	o.Private.Dirs = append(o.Private.Dirs, "/dev/shm")
	c.run(o)
	work := t.TempDir()
	// It fills its own to the end, and says how much that was, in MiB; then another's is as empty as before.
	script := fmt.Sprintf(`#!/bin/bash
cd %s
ls shm
echo $GANG_JOB_ID > tmp/own
if [ $GANG_JOB_ID = 1 ]; then
	head -c 1G /dev/zero 2>&1 > shm/big | sed 's/.*: //'
	stat -c %%s shm/big | awk '{ print int($1 / 1048576) }'
fi
touch %s/ready.$GANG_JOB_ID
while [ ! -e %s/go ]; do sleep 0.02; done
if [ $GANG_JOB_ID = 2 ]; then head -c 20M /dev/zero > shm/mine && stat -c %%s shm/mine; fi
cat tmp/own
grep -c ' %s/tmp rw.*nosuid,nodev' /proc/self/mountinfo
stat -f -c %%T tmp /dev/shm
[ $(($(stat -f -c '%%b * %%S' /dev/shm) >> 20)) -eq %d ] && echo a quarter of the memory
`, base, work, work, base, proc.MemTotal()/privateShare>>20)
	for job, tmp := range map[int64]int64{1: 0, 2: 40 << 20} {
		c.desire(job, 1, 1, script, func(_ *api.Assignment, s *api.Spec) { s.WorkDir, s.Output, s.TmpPerNode = work, "%j", tmp })
	}
	free := func() int64 {
		n, _, err := room(disk)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	waitFile(t, filepath.Join(work, "ready.1"))
	waitFile(t, filepath.Join(work, "ready.2"))
	if h := c.hellos[0]; h.TmpEach != 16<<20 || h.TmpBytes <= 0 || h.TmpBytes == h.MemoryBytes {
		t.Errorf("offered: %d, of which each takes %d; the node's memory is %d", h.TmpBytes, h.TmpEach, h.MemoryBytes)
	}
	if n := imagesOf(disk); len(n) != 2 {
		t.Errorf("%d images of 2 jobs: %v", len(n), n)
	}
	if names, _ := os.ReadDir(disk); len(names) != 0 {
		t.Errorf("images have names: %v", names)
	}
	before := free()
	const kinds = "2\next2/ext3\ntmpfs\na quarter of the memory\n$"
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for job, want := range map[int64]string{1: "^No space left on device\n1[45]\n1\n" + kinds, 2: "^20971520\n2\n" + kinds} {
		k := api.MemberKey{Job: job, Epoch: 1}
		c.untilPhase(k, api.PhaseStopped)
		text, _ := os.ReadFile(filepath.Join(work, fmt.Sprint(job)))
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("job %d wrote %q, want %s", job, text, want)
		}
		c.forget(k)
	}
	c.until("the images to be gone", func() bool { return len(imagesOf(disk)) == 0 })
	c.until("their blocks to be free", func() bool { return free() > before+30<<20 })
}

// TestOfferedSpace: what members of a daemon before hold of the disk is offered with what is free, and what ended ones held is
// free by itself. In memory it is the node's, and without private directories the disk of /tmp.
func TestOfferedSpace(t *testing.T) {
	const size = 1 << 50
	d := newDaemon(Options{Memory: 12345}, &stateDir{})
	_, disk, err := room("/tmp")
	if d.offerTmp(); err != nil || d.tmp != disk || d.tmpEach != 0 {
		t.Errorf("without private directories: %d, each %d; want the disk of /tmp, %d (%v)", d.tmp, d.tmpEach, disk, err)
	}
	d.private = &shim.Private{Size: 7}
	if d.offerTmp(); d.tmp != 12345 || d.tmpEach != 0 {
		t.Errorf("in memory: %d, each %d; want the node's memory", d.tmp, d.tmpEach)
	}
	d.private = &shim.Private{Size: 7, Image: &shim.Image{Path: t.TempDir()}}
	member := func(p *shim.Private) *member {
		m := d.newMember(api.MemberKey{Job: int64(len(d.jobs) + 1)})
		m.spec = &shim.Spec{Private: p}
		return m
	}
	for i, x := range []struct {
		of   *shim.Private
		over bool
		want int64 // in sizes
	}{{nil, false, 0}, {&shim.Private{Size: size}, false, 0}, {&shim.Private{Size: size, Image: d.private.Image}, false, 1},
		{&shim.Private{Size: size, Image: d.private.Image}, true, 1}, {&shim.Private{Size: size, Image: d.private.Image}, false, 2}} {
		member(x.of).over.Store(x.over)
		if d.offerTmp(); d.tmp/size != x.want || d.tmp%size == 0 || d.tmpEach != 7 {
			t.Errorf("%d: offered %d, each takes %d; want %d members' and what is free", i, d.tmp, d.tmpEach, x.want)
		}
	}
}

// TestNothingPrivateIsLeft: jobs end, are killed with their shims, and the daemon is killed under them; no
// mount, no directory and no loop device is left, and no process holds a namespace. Whole: -private.jobs=1000.
func TestNothingPrivateIsLeft(t *testing.T) {
	needRoot(t)
	t.Run("in memory", func(t *testing.T) { nothingPrivateIsLeft(t, "") })
	t.Run("on a disk", func(t *testing.T) { nothingPrivateIsLeft(t, needLoop(t)) })
}

func nothingPrivateIsLeft(t *testing.T, disk string) {
	c := newController(t)
	o, base := twoDirs(t, c)
	o.Private.Path = disk
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
		if disk != "" {
			in = append(in, imagesOf(disk)...)
		}
		if len(in) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("processes that see private directories, and their loop devices: %v", in)
			break
		}
	}
	if disk != "" {
		if names, _ := os.ReadDir(disk); len(names) != 0 {
			t.Errorf("left in %s: %v", disk, names)
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
	disk := needLoop(t)
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
		{Private{Dirs: []string{base}, Path: base + "/none"}, "private_path: a file without a name in " + base + "/none: no such file or directory"},
		{Private{Dirs: []string{base}, Path: "/proc"}, "private_path: a file without a name in /proc: "},
		{Private{Dirs: []string{base}, Path: disk, Size: 1 << 50}, "private_size: 1024T, and the disk of private directories has "},
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

// sharedMount is a mount that the machine shares, as service managers have all of them.
func sharedMount(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("gangd-test", base, "tmpfs", 0, "size=1M"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(base, unix.MNT_DETACH) })
	if err := unix.Mount("", base, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	return base
}

// TestMountsOfTheMachine: where the machine shares its mounts, as service managers have it, it sees nothing of a
// member's, and a member sees what is mounted after its start.
func TestMountsOfTheMachine(t *testing.T) {
	needRoot(t)
	c := newController(t)
	base := sharedMount(t)
	private, late, work := filepath.Join(base, "tmp"), filepath.Join(base, "late"), t.TempDir()
	for _, d := range []string{private, late} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	o := c.options(t.TempDir())
	o.Private = Private{Dirs: []string{private}, Size: 1 << 20}
	c.run(o)
	k := c.desire(1, 1, 1, fmt.Sprintf("#!/bin/sh\ntouch %s/mine %s/up\nuntil [ -e %s/seen ]; do sleep 0.02; done\n", private, work, late),
		func(_ *api.Assignment, s *api.Spec) { s.WorkDir, s.Output = work, "out" })
	waitFile(t, filepath.Join(work, "up"))
	if m := mountsBelow(t, private); len(m) != 0 {
		t.Errorf("the machine sees %v", m)
	}
	if left, _ := os.ReadDir(private); len(left) != 0 {
		t.Errorf("the machine sees %v", left)
	}
	if err := unix.Mount("gangd-test", late, "tmpfs", 0, "size=1M"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(late, "seen"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if a := c.untilPhase(k, api.PhaseStopped); a.Ranks[0].ExitCode != 0 {
		t.Errorf("%+v", a.Ranks)
	}
}
