package noded

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/lab/registry"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// imageDir makes an unpacked image of programs of this machine.
func imageDir(t *testing.T, programs ...string) string {
	t.Helper()
	return registry.Tree(t, "lab", programs...)
}

func contained(work string, c *api.Container) func(*api.Assignment, *api.Spec) {
	return func(_ *api.Assignment, s *api.Spec) {
		s.WorkDir, s.Container, s.Env = work, c, []string{"PATH=/bin"}
	}
}

// TestContainer: ranks see the image and what is mounted, write into a layer that nobody else sees and that
// goes with them, and find their member's files; the image stays as it was.
func TestContainer(t *testing.T) {
	needRoot(t)
	c := newController(t)
	root := imageDir(t, "bash", "cat", "ls", "touch")
	data := filepath.Join(t.TempDir(), "data")
	for _, d := range []string{data, data + "/sub"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A link of the image that leads out of it, seen from outside.
	if err := os.Symlink("/", filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	o := c.options(t.TempDir())
	o.Containers = Containers{On: true, Mounts: []string{data + ":/site:ro"}}
	c.run(o)
	work := t.TempDir()
	script := `#!/bin/bash
cat /etc/os-release
touch /new /home.txt && echo written
touch /site/x 2>/dev/null || echo site is read-only
ls /mine /out/made/by
touch /mine/sub/of.$GANG_JOB_ID
[ -e /proc/self/status ] && echo proc
[ -S "$GANG_SOCKET" ] && echo socket
[ -e /root ] || echo only the image
echo $PWD $UID
`
	box := &api.Container{Image: root, Mounts: []api.ContainerMount{{Source: data, Target: "/mine"}, {Source: data + "/sub", Target: "/out/made/by"}}}
	for job := int64(1); job <= 2; job++ {
		k := c.desire(job, 1, 1, script, contained(work, box))
		a := c.untilPhase(k, api.PhaseStopped)
		b, _ := os.ReadFile(filepath.Join(work, fmt.Sprintf("gang-%d.out", job)))
		files := ""
		if job == 2 {
			files = "of.1\n"
		}
		want := "ID=lab\nwritten\nsite is read-only\n/mine:\nsub\n\n/out/made/by:\n" + files + "proc\nsocket\nonly the image\n" + work + " 0\n"
		if string(b) != want || len(a.Ranks) != 1 || a.Ranks[0].ExitCode != 0 {
			t.Errorf("job %d: %+v\n%s\nwant\n%s", job, a.Ranks, b, want)
		}
	}
	for _, name := range []string{"new", "made", "mine", "site"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			t.Errorf("the image has %s", name)
		}
	}
	if m := mountsBelow(t, root); len(m) != 0 {
		t.Errorf("mounted on the machine: %v", m)
	}
	k := c.desire(3, 1, 1, "#!/bin/bash\ntouch /new 2>/dev/null || echo read-only\ntouch here && echo $PWD\n", contained(work,
		&api.Container{Image: root, ReadOnly: true, WorkDir: "/mine", Mounts: []api.ContainerMount{{Source: data, Target: "/mine"}}}))
	c.untilPhase(k, api.PhaseStopped)
	if b, _ := os.ReadFile(filepath.Join(work, "gang-3.out")); string(b) != "read-only\n/mine\n" {
		t.Errorf("a read-only container: %q", b)
	}
}

// TestContainerShows: the site's mounts, the working directory and the home directory are the machine's, though the
// machine's /tmp, in which this test has its own, is hidden by a mount of the site.
func TestContainerShows(t *testing.T) {
	needRoot(t)
	c := newController(t)
	root := imageDir(t, "bash", "cat", "ls")
	empty, site, work := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(site, "of"), []byte("the site\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := c.options(t.TempDir())
	o.Containers = Containers{On: true, Mounts: []string{empty + ":/tmp", site + ":/site:ro"}}
	placesBelow(t, empty, work, o.StateDir+"/m/1.1", o.StateDir+"/m/2.1", filepath.Dir(program))
	c.run(o)
	// inode tells directories apart wherever they are shown.
	inode := func(dir string) string {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	for job, x := range map[int64]struct {
		home bool
		want string
	}{1: {true, inode(home) + " " + home + "\n"}, 2: {false, "none\n"}} {
		k := c.desire(job, 1, 1, "#!/bin/bash\ncat /site/of\nls -id "+home+" 2>/dev/null || echo none\nls -id .\necho here > of.$GANG_JOB_ID\n",
			contained(work, &api.Container{Image: root, Home: x.home}))
		c.untilPhase(k, api.PhaseStopped)
		b, _ := os.ReadFile(filepath.Join(work, fmt.Sprintf("gang-%d.out", job)))
		if want := "the site\n" + x.want + inode(work) + " .\n"; string(b) != want {
			t.Errorf("job %d: %q, want %q", job, b, want)
		}
		if b, _ := os.ReadFile(filepath.Join(work, fmt.Sprintf("of.%d", job))); string(b) != "here\n" {
			t.Errorf("job %d wrote into another directory: %q", job, b)
		}
	}
}

// TestMountsOfAContainer: what is mounted in a container onto what the machine shares is not mounted on the machine, what
// the machine mounts there later is seen inside, and read-only is also what is mounted below.
func TestMountsOfAContainer(t *testing.T) {
	needRoot(t)
	c := newController(t)
	base, root, data, work := sharedMount(t), imageDir(t, "bash", "cat", "sleep", "touch"), t.TempDir(), t.TempDir()
	for _, dir := range []string{"over", "late", "below"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "of"), []byte("data\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("gangd-test", filepath.Join(base, "below"), "tmpfs", 0, "size=1M"); err != nil {
		t.Fatal(err)
	}
	o := c.options(t.TempDir())
	o.Containers = Containers{On: true}
	c.run(o)
	k := c.desire(1, 1, 1, "#!/bin/bash\ncat /shared/over/of\ntouch /shared/below/x && echo writable\ntouch /fixed/below/y 2>/dev/null || echo read-only\ntouch up\nuntil [ -e /shared/late/seen ]; do sleep 0.02; done\n",
		contained(work, &api.Container{Image: root, Mounts: []api.ContainerMount{{Source: base, Target: "/shared"}, {Source: data, Target: "/shared/over"}, {Source: base, Target: "/fixed", ReadOnly: true}}}))
	waitFile(t, filepath.Join(work, "up"))
	if m := mountsBelow(t, base+"/over"); len(m) != 0 {
		t.Errorf("the machine sees %v", m)
	}
	late := filepath.Join(base, "late")
	if err := unix.Mount("gangd-test", late, "tmpfs", 0, "size=1M"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(late, "seen"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a := c.untilPhase(k, api.PhaseStopped)
	if b, _ := os.ReadFile(filepath.Join(work, "gang-1.out")); string(b) != "data\nwritable\nread-only\n" || a.Ranks[0].ExitCode != 0 {
		t.Errorf("%q, %+v", b, a.Ranks)
	}
}

// placesBelow makes in a directory that will hide /tmp the places of what is mounted there: nothing makes them beyond a mount.
func placesBelow(t *testing.T, dir string, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Join(dir, strings.TrimPrefix(p, "/tmp/")), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestContainerMakesNothingOutside: places are made in the layer. Where an earlier mount shows the machine's files nothing is made,
// by whatever path: what is not there is the job's own failure, and what is there is mounted over.
func TestContainerMakesNothingOutside(t *testing.T) {
	needRoot(t)
	if _, err := user.Lookup("nobody"); err != nil {
		t.Skip(err)
	}
	c := newController(t)
	root, work := imageDir(t, "bash", "cat"), registry.Open(t, t.TempDir())
	machine := registry.Open(t, sharedMount(t))
	for _, dir := range []string{"sub", "closed"} {
		if err := os.Mkdir(filepath.Join(machine, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"there": "the machine's\n", "closed/there": "a secret's\n"} {
		if err := os.WriteFile(filepath.Join(machine, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(machine, 0o755), os.Chmod(filepath.Join(machine, "closed"), 0o700), os.Symlink("/e/sub", filepath.Join(root, "l")),
		os.Symlink("there", filepath.Join(machine, "link")), os.Symlink("none", filepath.Join(machine, "dangling"))); err != nil {
		t.Fatal(err)
	}
	o := c.options(registry.Open(t, t.TempDir()))
	o.Containers, o.SingleUser = Containers{On: true}, false
	c.run(o)
	data := filepath.Join(work, "data")
	if err := errors.Join(os.WriteFile(data, []byte("mine\n"), 0o644), os.Mkdir(filepath.Join(work, "dir"), 0o755), os.Chown(work, somebody, somebody)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(machine)
	const noPlace = ": no such file or directory in what is mounted above it: make it there first, or mount it elsewhere"
	for i, x := range []struct{ source, target, want string }{ // want: of the refusal; empty: it is shown
		{data, "/e/made", noPlace},
		{data, "/e/sub/made", noPlace},
		{data, "/l/made", noPlace},
		{data, "/e/dangling", noPlace},
		{data, "/mine/../e/made", noPlace},
		{work + "/dir", "/e/made/deep", noPlace},
		{work + "/dir", "/tmp/" + name + "-made", noPlace},
		{data, "/dev/shm/" + name + "-made", noPlace},
		{work + "/dir", "/sys/fs/cgroup/" + name + "-made", noPlace},
		{data, "/e/closed/made", ": permission denied"},
		{data, "/e/closed/there", ": permission denied"},
		{data, "/e/there", ""},
		{data, "/e/link", ""},
		{data, "/layer/a/b", ""},
	} {
		box := &api.Container{Image: root, Mounts: []api.ContainerMount{{Source: machine, Target: "/e"}, {Source: x.source, Target: x.target}}}
		k := c.desire(int64(i+1), 1, 1, "#!/bin/bash\ncat "+x.target+"\n", func(a *api.Assignment, s *api.Spec) {
			contained(work, box)(a, s)
			a.Body.User, a.Body.UID, a.Body.GID, s.Output = "nobody", somebody, somebody, "out"
		})
		if x.want == "" {
			c.untilPhase(k, api.PhaseStopped)
			if b, _ := os.ReadFile(filepath.Join(work, "out")); string(b) != "mine\n" {
				t.Errorf("%s shows %q", x.target, b)
			}
			_ = os.Remove(filepath.Join(work, "out"))
		} else {
			want := "container: mount " + x.source + " on " + x.target + x.want
			if r := c.untilPhase(k, api.PhaseRefused).Refusal; r.Text != want || r.Blame != api.BlameFiles {
				t.Errorf("%s: %+v, want %s", x.target, r, want)
			}
		}
		c.forget(k)
	}
	for _, made := range []string{machine + "/made", machine + "/sub/made", machine + "/none", machine + "/closed/made", machine + "-made", "/dev/shm/" + name + "-made", "/sys/fs/cgroup/" + name + "-made"} {
		if _, err := os.Lstat(made); err == nil {
			t.Errorf("%s was made", made)
			_ = os.Remove(made)
		}
	}
	if b, err := os.ReadFile(machine + "/there"); string(b) != "the machine's\n" {
		t.Errorf("the machine's file is %q (%v)", b, err)
	}
}

// TestTaskHooksInTheContainer: the site's programs around ranks run where the ranks do, and are there though the image has
// nothing of them.
func TestTaskHooksInTheContainer(t *testing.T) {
	needRoot(t)
	c := newController(t)
	root, hooks, work, empty := imageDir(t, "bash", "cat"), t.TempDir(), t.TempDir(), t.TempDir()
	put := func(name, body string) string {
		path := filepath.Join(hooks, name)
		if err := os.WriteFile(path, []byte("#!/bin/bash\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	o := c.options(t.TempDir())
	o.Containers = Containers{On: true, Mounts: []string{empty + ":/tmp"}} // where this test has its own
	o.Hooks = Hooks{TaskProlog: put("before", "echo print before in $(cat /etc/os-release)\necho export OF=prolog"), TaskEpilog: put("after", "echo after in $(cat /etc/os-release)"), Timeout: patience}
	placesBelow(t, empty, work, o.StateDir+"/m/1.1", filepath.Dir(program), hooks)
	for _, hook := range []string{"before", "after"} {
		if err := os.WriteFile(filepath.Join(empty, strings.TrimPrefix(hooks, "/tmp/"), hook), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.run(o)
	k := c.desire(1, 1, 1, "#!/bin/bash\necho rank $OF\n", contained(work, &api.Container{Image: root}))
	a := c.untilPhase(k, api.PhaseStopped)
	if b, _ := os.ReadFile(filepath.Join(work, "gang-1.out")); string(b) != "before in ID=lab\nrank prolog\nafter in ID=lab\n" || a.Ranks[0].ExitCode != 0 {
		t.Errorf("%q, %+v", b, a.Ranks)
	}
}

// TestContainerOfAStep: a step's container shows its own directory beside the job's, and begins without one that is not there.
func TestContainerOfAStep(t *testing.T) {
	d := newDaemon(Options{Shim: "/lib/gangd/gshim"}, &stateDir{})
	for dir, want := range map[string]string{"": "/w!", "/w": "/w!", "/": "/w!", "/elsewhere": "/w! /elsewhere"} {
		c := d.container(&api.Container{Image: "/images/lab"}, &shim.Spec{Dir: "/m", WorkDir: "/w"}, &image{}, dir)
		var got []string
		for _, m := range c.Mounts {
			if m.User && m.Source == m.Target && !m.ReadOnly {
				got = append(got, m.Source+map[bool]string{false: "!"}[m.Maybe])
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("a step in %q sees %q, want %q", dir, got, want)
		}
	}
}

// TestContainerRefused: what can't be run is refused before a rank runs, by name, and never runs outside.
func TestContainerRefused(t *testing.T) {
	needRoot(t)
	c := newController(t)
	root := imageDir(t, "bash")
	o := c.options(t.TempDir())
	o.Containers = Containers{On: true, Images: []string{filepath.Dir(root)}}
	c.run(o)
	work := t.TempDir()
	for i, x := range []struct {
		script string
		box    api.Container
		want   string
		blame  api.Blame
	}{
		{"#!/bin/bash\n", api.Container{Image: root + "/none"}, "container image: " + root + "/none: no such file or directory", api.BlameFiles},
		{"#!/bin/bash\n", api.Container{Image: root + "/bin/bash"}, "container image: " + root + "/bin/bash: not a directory", api.BlameFiles},
		{"#!/usr/bin/python3\n", api.Container{Image: root}, "container image: " + root + ": /usr/bin/python3, which the script needs: no such file or directory", api.BlameFiles},
		{"#!/bin/bash\n", api.Container{Image: "/etc"}, "container image: /etc is not below " + filepath.Dir(root) + ", where this site's images are", api.BlameUser},
		{"#!/bin/bash\n", api.Container{Image: root + "/../../../etc"}, "container image: " + root + "/../../../etc is not below " + filepath.Dir(root) + ", where this site's images are", api.BlameUser},
		{"#!/bin/bash\n", api.Container{Image: root, Mounts: []api.ContainerMount{{Source: "/no/such", Target: "/x"}}}, "container mount: /no/such: no such file or directory", api.BlameFiles},
	} {
		k := c.desire(int64(i+1), 1, 1, x.script, contained(work, &x.box))
		if r := c.untilPhase(k, api.PhaseRefused).Refusal; r.Text != x.want || r.Blame != x.blame {
			t.Errorf("%+v, want %s (%s)", r, x.want, x.blame)
		}
		c.forget(k)
	}
	if m := mountsBelow(t, root); len(m) != 0 {
		t.Errorf("mounted on the machine: %v", m)
	}
}

// TestRefusedLeavesNothing: of a job that a node refuses nothing has run and nothing is left: no directory, no mount, no CPU is
// taken, and where its prolog has run its epilog has too.
func TestRefusedLeavesNothing(t *testing.T) {
	needRoot(t)
	c := newController(t)
	o, base := twoDirs(t, c)
	root, hooks, work, data := imageDir(t, "bash"), t.TempDir(), t.TempDir(), t.TempDir()
	o.Hooks = hookFiles(t, hooks, "log prolog $GANG_JOB_ID", "log epilog $GANG_JOB_ID")
	o.Containers = Containers{On: true, Images: []string{filepath.Dir(root)}, Within: []string{data}}
	o.CPUSets = CPUs{Bind: true}
	c.run(o)
	const script = "#!/bin/bash\ntouch ran\n"
	in := func(box api.Container) func(*api.Assignment, *api.Spec) { return contained(work, &box) }
	mount := func(source string) func(*api.Assignment, *api.Spec) {
		return in(api.Container{Image: root, Mounts: []api.ContainerMount{{Source: source, Target: "/x"}}})
	}
	spec := func(f func(*api.Spec)) func(*api.Assignment, *api.Spec) {
		return func(_ *api.Assignment, s *api.Spec) { s.WorkDir = work; f(s) }
	}
	for i, x := range []struct {
		change func(*api.Assignment, *api.Spec)
		want   string
	}{
		{in(api.Container{Image: root + "/none"}), "container image: " + root + "/none: no such file or directory"},
		{in(api.Container{Image: root + "/bin/bash"}), "container image: " + root + "/bin/bash: not a directory"},
		{in(api.Container{Image: "/etc"}), "container image: /etc is not below "},
		{in(api.Container{Image: "docker://nvcr.io/nvidia/pytorch:24.01"}), "can't be imported on this node, which has no program for that"},
		{in(api.Container{Image: "/images/x.sqsh"}), "container image: /images/x.sqsh can't be imported on this node"},
		{in(api.Container{Image: "Debian"}), "is no name of an image"},
		{mount(data + "/none"), "container mount: " + data + "/none: no such file or directory"},
		{mount("/etc"), "container mount: /etc is not below " + data},
		{spec(func(s *api.Spec) { s.WorkDir = base + "/tmp/x" }), "working directory: " + base + "/tmp/x: each job has a " + base + "/tmp of its own"},
		{spec(func(s *api.Spec) { s.WorkDir = work + "/none" }), "working directory: " + work + "/none"},
		{spec(func(s *api.Spec) { s.CPUsPerRank = 10000 }), "10000 CPUs asked"},
	} {
		k := c.desire(int64(i+1), 1, 1, script, x.change)
		if a := c.untilPhase(k, api.PhaseRefused); !strings.Contains(a.Refusal.Text, x.want) || len(a.Ranks) != 0 {
			t.Errorf("%+v, want %s", a, x.want)
		}
		c.forget(k)
	}
	c.until("their directories to be gone", func() bool {
		left, err := os.ReadDir(filepath.Join(o.StateDir, membersDir))
		return err == nil && len(left) == 0
	})
	if m := append(mountsBelow(t, base), mountsBelow(t, root)...); len(m) != 0 {
		t.Errorf("mounted on the machine: %v", m)
	}
	if in := append(whoSees(base), whoSees(root)...); len(in) != 0 {
		t.Errorf("processes that see what was mounted for them: %v", in)
	}
	if _, err := os.Stat(filepath.Join(work, "ran")); err == nil {
		t.Error("a rank ran")
	}
	all, err := proc.Affinity(0)
	if err != nil {
		t.Fatal(err)
	}
	k := c.desire(100, 1, 1, "#!/bin/bash\nnproc\n", spec(func(s *api.Spec) { s.CPUsPerRank, s.Output = len(all), "out" }))
	c.untilPhase(k, api.PhaseStopped)
	if b, err := os.ReadFile(filepath.Join(work, "out")); strings.TrimSpace(string(b)) != fmt.Sprint(len(all)) {
		t.Errorf("the next job finds %s of %d CPUs (%v)", b, len(all), err)
	}
	log := logOf(hooks)
	for line := range strings.Lines(log) {
		if job, ok := strings.CutPrefix(line, "prolog "); ok && strings.Count(log, "epilog "+job) != 1 {
			t.Errorf("the prolog of job %s has run, and not the epilog:\n%s", job, log)
		}
	}
}

// TestContainerMountDirs: what a job mounts lies where the site lets it, also behind links; its working directory
// may be elsewhere.
func TestContainerMountDirs(t *testing.T) {
	needRoot(t)
	c := newController(t)
	root, base := imageDir(t, "bash", "ls"), t.TempDir()
	for _, d := range []string{"data", "data/sub", "database", "secret"} {
		if err := os.Mkdir(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"data/out": "../secret", "link": "data"} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	o := c.options(t.TempDir())
	o.Containers = Containers{On: true, Within: []string{base + "/link"}}
	c.run(o)
	work := t.TempDir()
	const list = ", from where this site's jobs may mount"
	for i, x := range []struct{ source, want string }{
		{"/data", ""}, {"/data/sub", ""}, {"/link/sub", ""},
		{"/secret", "/secret is not below BASE/data" + list},
		{"/database", "/database is not below BASE/data" + list},
		{"/data/../secret", "/data/../secret, which is BASE/secret, is not below BASE/data" + list},
		{"/data/out", "/data/out, which is BASE/secret, is not below BASE/data" + list},
	} {
		k := c.desire(int64(i+1), 1, 1, "#!/bin/bash\n", contained(work, &api.Container{Image: root, Mounts: []api.ContainerMount{{Source: base + x.source, Target: "/x"}}}))
		if x.want == "" {
			c.untilPhase(k, api.PhaseStopped)
		} else if r := c.untilPhase(k, api.PhaseRefused).Refusal; r.Text != "container mount: "+base+strings.ReplaceAll(x.want, "BASE", base) || r.Blame != api.BlameFiles {
			t.Errorf("%s: %+v", x.source, r)
		}
		c.forget(k)
	}
}

// TestContainersAtStart: what could not be shown later is refused by name.
func TestContainersAtStart(t *testing.T) {
	needRoot(t)
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(registry.Open(t, t.TempDir()), "cache")
	closed := filepath.Join(registry.Open(t, t.TempDir()), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	shape := func(m string) string {
		return fmt.Sprintf("container_mounts: %q: want SRC:DST or SRC:DST:ro with absolute paths", m)
	}
	for _, x := range []struct {
		c    Containers
		want string
	}{
		{Containers{Mounts: []string{"wrong"}}, ""}, // nothing runs in containers here
		{Containers{On: true, Mounts: []string{file + ":/f:ro"}, Images: []string{filepath.Dir(file)}, Within: []string{"/"}}, ""},
		{Containers{On: true, Mounts: []string{file}}, shape(file)},
		{Containers{On: true, Mounts: []string{file + ":f"}}, shape(file + ":f")},
		{Containers{On: true, Mounts: []string{"f:/f"}}, shape("f:/f")},
		{Containers{On: true, Mounts: []string{file + ":/f:rw"}}, shape(file + ":/f:rw")},
		{Containers{On: true, Mounts: []string{file + ":/f:ro:x"}}, shape(file + ":/f:ro:x")},
		{Containers{On: true, Mounts: []string{file + "x:/f"}}, "container_mounts: stat " + file + "x: no such file or directory"},
		{Containers{On: true, Images: []string{file}}, "container_images: " + file + " is no directory"},
		{Containers{On: true, Images: []string{file + "x"}}, "container_images: " + file + "x is no directory"},
		{Containers{On: true, Within: []string{file + "x"}}, "container_mount_dirs: lstat " + file + "x: no such file or directory"},
		{Containers{Import: Import{Driver: "podman"}}, "container_driver: podman imports nothing where containers is not true"},
		{Containers{On: true, Import: Import{Driver: "docker"}}, `container_driver: "docker" is not known`},
		{Containers{On: true, Import: Import{Driver: "enroot"}}, `container_driver: exec: "enroot": executable file not found in $PATH`},
		{Containers{On: true, Import: Import{Driver: "podman", Cache: file}}, "container_cache: " + file + ": users can't pass " + file + ": not a directory, or another container_cache"},
		{Containers{On: true, Import: Import{Driver: "podman", Cache: closed + "/cache"}}, "container_cache: " + closed + "/cache: users can't pass " + closed + " (mode 0700): chmod o+x " + closed + ", or another container_cache"},
		{Containers{On: true, Import: Import{Driver: "podman", Cache: cache, High: 1 << 60}}, "container_cache_high: 1048576T, and the disk of " + cache + " has *"},
		{Containers{On: true, Import: Import{Driver: "podman", Cache: cache, High: 1 << 30, Low: 2 << 30}}, "container_cache_low: 2G is above container_cache_high, 1G"},
	} {
		if x.c.Import.Driver == "podman" {
			tool.Need(t, "podman")
		}
		d := &daemon{opts: Options{Containers: x.c}, state: &stateDir{path: cache}}
		got := ""
		if err := d.openContainers(); err != nil {
			got = err.Error()
		}
		if begin, any := strings.CutSuffix(x.want, "*"); got != x.want && (!any || !strings.HasPrefix(got, begin)) {
			t.Errorf("%+v: %q, want %q", x.c, got, x.want)
		}
	}
}

// TestContainerOfAUser: the processes are the user's, and no mount leads to what he could not reach.
func TestContainerOfAUser(t *testing.T) {
	needRoot(t)
	c := newController(t)
	root := imageDir(t, "bash", "touch")
	base, err := os.MkdirTemp("", "gnc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	_ = os.Chmod(base, 0o755)
	_ = os.Chmod(filepath.Dir(program), 0o755)
	const nobody = 65534
	work, secret := filepath.Join(base, "w"), filepath.Join(base, "secret")
	for _, d := range []string{work, secret, secret + "/open"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(work, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	o := c.options(filepath.Join(base, "s"))
	o.SingleUser, o.Containers = false, Containers{On: true}
	c.run(o)
	as := func(box *api.Container) func(*api.Assignment, *api.Spec) {
		return func(a *api.Assignment, s *api.Spec) {
			contained(work, box)(a, s)
			a.Body.User, a.Body.UID, a.Body.GID = "nobody", nobody, nobody
		}
	}
	k := c.desire(1, 1, 1, "#!/bin/bash\necho $UID\ntouch made\ntouch /etc/os-release 2>/dev/null || echo not root\n", as(&api.Container{Image: root}))
	c.untilPhase(k, api.PhaseStopped)
	if b, _ := os.ReadFile(filepath.Join(work, "gang-1.out")); string(b) != "65534\nnot root\n" {
		t.Errorf("%q", b)
	}
	for i, x := range []struct {
		box  api.Container
		want string
	}{
		{api.Container{Image: secret + "/open"}, "container image: " + secret + "/open: permission denied"},
		{api.Container{Image: root, Mounts: []api.ContainerMount{{Source: secret + "/open", Target: "/x"}}}, "container mount: " + secret + "/open: permission denied"},
	} {
		k := c.desire(int64(i+2), 1, 1, "#!/bin/bash\n", as(&x.box))
		if r := c.untilPhase(k, api.PhaseRefused).Refusal; r.Text != x.want || r.Blame != api.BlameFiles {
			t.Errorf("%+v, want %s", r, x.want)
		}
		c.forget(k)
	}
}

// TestContainerElsewhere: a node that runs no containers refuses one, and does not say that it does.
func TestContainerElsewhere(t *testing.T) {
	c := newController(t)
	c.run(c.options(t.TempDir()))
	k := c.desire(1, 1, 1, "#!/bin/sh\n", contained(t.TempDir(), &api.Container{Image: "/"}))
	if r := c.untilPhase(k, api.PhaseRefused).Refusal; r.Blame != api.BlameUnfit || r.Text != "this node runs no jobs in containers" {
		t.Errorf("%+v", r)
	}
	if f := c.hellos[0].Features; len(f) != 0 {
		t.Errorf("features %v", f)
	}
}

// TestMemberInMemoryHasItsPlace: the state directory leads to members in memory by a link, and is shown in containers where it is below /tmp,
// say. Where the link leads to is a place of the container too, before the member's directory is looked up by it.
func TestMemberInMemoryHasItsPlace(t *testing.T) {
	memory, state := t.TempDir(), t.TempDir()
	link := filepath.Join(state, "m")
	if err := os.Symlink(memory, link); err != nil {
		t.Fatal(err)
	}
	d := &daemon{opts: Options{Shim: "/opt/gangd/gshim", BinDir: "/opt/gangd"}}
	for dir, want := range map[string][]string{
		filepath.Join(link, "1.1"):   {filepath.Join(memory, "1.1"), filepath.Join(link, "1.1"), "/opt/gangd"},
		filepath.Join(memory, "1.1"): {filepath.Join(memory, "1.1"), "/opt/gangd"},
	} {
		var got []string
		for _, m := range d.container(&api.Container{Image: "/image"}, &shim.Spec{Dir: dir, WorkDir: "/"}, &image{}, "").Mounts {
			if m.Source != m.Target {
				t.Errorf("%+v", m)
			}
			got = append(got, m.Target)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}
