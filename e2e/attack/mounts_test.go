package attack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gangd/e2e/tally"
	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// mark is part of each name that a mount or a path of eve's would have root make.
const mark = "evil-place"

// mount is one of a container.
type mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// contained is a job of eve's in a container, with these mounts after those of the machine's programs.
func (s *site) contained(image string, mounts ...mount) map[string]any {
	all := []mount{}
	for _, d := range []string{"/usr", "/bin", "/lib", "/lib64"} {
		if _, err := os.Stat(d); err == nil {
			all = append(all, mount{d, d, true})
		}
	}
	return map[string]any{"container": map[string]any{"image": image, "mounts": append(all, mounts...)}}
}

// image makes an unpacked image of eve's, with links that lead to these places inside.
func (s *site) image(name string, links map[string]string) string {
	return s.eve.mine(name, func(p string) error {
		err := os.MkdirAll(p+"/etc", 0o755)
		for _, d := range []string{"usr", "bin", "lib", "lib64", "dir"} {
			err = errors.Join(err, os.Mkdir(p+"/"+d, 0o755))
		}
		err = errors.Join(err, os.WriteFile(p+"/etc/os-release", []byte("ID=eves\n"), 0o644), os.WriteFile(p+"/file", nil, 0o644))
		for l, to := range links {
			err = errors.Join(err, os.Symlink(to, p+"/"+l))
		}
		return err
	})
}

// shown is a place of the machine as a container of eve's sees it.
type shown struct {
	name  string
	from  []mount // that show it; none: every container has it
	at    string  // inside
	where string  // on the machine
}

func (s *site) shownPlaces() []shown {
	root := []mount{{"/", "/e", false}}
	return []shown{
		{"/etc", []mount{{"/etc", "/e", false}}, "/e", "/etc"}, {"/etc, read-only", []mount{{"/etc", "/e", true}}, "/e", "/etc"}, {"/usr/bin", []mount{{"/usr", "/e", false}}, "/e/bin", "/usr/bin"},
		{"the root directory", root, "/e", "/"}, {"root's home", root, "/e/root", "/root"}, {"ada's home", root, "/e" + s.ada.home, s.ada.home}, {"/run", []mount{{"/run", "/e", false}}, "/e", "/run"},
		{"/var", root, "/e/var", "/var"}, {"/tmp", nil, "/tmp", "/tmp"}, {"/var/tmp", nil, "/var/tmp", "/var/tmp"}, {"/dev", nil, "/dev", "/dev"}, {"/dev/shm", nil, "/dev/shm", "/dev/shm"},
		{"the control groups", nil, "/sys/fs/cgroup", "/sys/fs/cgroup"}, {"a node's state", root, "/e" + s.dir + "/n1", s.dir + "/n1"}, {"gangd's state", root, "/e" + s.dir + "/gangd", s.dir + "/gangd"},
		{"a directory of root's", root, "/e" + s.dir + "/root-only", s.dir + "/root-only"},
	}
}

// mounts: where a container's mounts have root make places.
func mounts(s *site) (out []try) {
	places := s.shownPlaces()
	links, own := map[string]string{}, s.eve.mine("own", func(p string) error { return os.Mkdir(p, 0o755) })
	for i, p := range places {
		links[fmt.Sprintf("l%d", i)] = p.at
		for name, to := range map[string]string{"out": p.at, "dangling": fmt.Sprintf("%s/%s-%d", p.at, mark, i)} {
			s.eve.mine(fmt.Sprintf("own/%s%d", name, i), link(to))
		}
	}
	image := s.image("image", links)
	file := s.eve.mine("mounted-file", func(p string) error { return os.WriteFile(p, []byte("eve's\n"), 0o644) })
	dir := s.eve.mine("mounted-dir", func(p string) error { return os.Mkdir(p, 0o755) })
	for i, p := range places {
		name := fmt.Sprintf("%s-%d", mark, i)
		for k, x := range []struct {
			name   string
			mounts []mount
		}{
			{"a file", []mount{{file, p.at + "/" + name, false}}},
			{"a directory", []mount{{dir, p.at + "/" + name, false}}},
			{"directories above it", []mount{{dir, p.at + "/" + name + "/a/b", false}}},
			{"by a link of the image", []mount{{file, fmt.Sprintf("/l%d/%s", i, name), false}}},
			{"by a link in a directory of eve's", []mount{{own, "/own", false}, {file, fmt.Sprintf("/own/out%d/%s", i, name), false}}},
			{"by a link that leads nowhere", []mount{{own, "/own", false}, {file, fmt.Sprintf("/own/dangling%d", i), false}}},
			{"read-only", []mount{{dir, p.at + "/" + name, true}}},
		} {
			out = append(out, try{"places of mounts", p.name + ": " + x.name, "a mount of eve's on what is not there", "nothing is made there", k > 1 || i%4 > 0, func() error {
				id := s.eve.submit(s.contained(image, append(slices.Clone(p.from), x.mounts...)...))
				j, err := s.ended(id)
				if err != nil {
					return err
				}
				return errors.Join(s.made(filepath.Join(p.where, name)), expectFailed(j))
			}})
		}
	}
	return out
}

func expectFailed(j api.Job) error {
	if j.State != api.JobFailed {
		return fmt.Errorf("job %d is %s", j.JobID, j.State)
	}
	return nil
}

// made says that something is there, and takes it away.
func (s *site) made(path string) error {
	if _, err := os.Lstat(path); err == nil {
		_ = os.RemoveAll(path)
		return fmt.Errorf("%s was made", path)
	}
	return nil
}

// badMounts are containers of eve's that can't be made, by what is wrong with them.
func (s *site) badMounts() map[string]map[string]any {
	file := s.eve.mine("bad-file", func(p string) error { return os.WriteFile(p, nil, 0o644) })
	dir := s.eve.mine("bad-dir", func(p string) error { return os.Mkdir(p, 0o755) })
	sock := s.eve.home + "/no-socket"
	image := s.image("bad-image", map[string]string{"loop": "loop", "up": "../../../..", "gone": "/nowhere/at/all"})
	of := func(name string) string { // an image with a file where a directory belongs
		return s.eve.mine("image-"+name, func(p string) error {
			err := os.Mkdir(p, 0o755)
			for _, d := range []string{"usr", "bin", "lib", "lib64", "etc"} {
				if d != name {
					err = errors.Join(err, os.Mkdir(p+"/"+d, 0o755))
				}
			}
			return errors.Join(err, os.WriteFile(p+"/"+name, nil, 0o644))
		})
	}
	many := make([]mount, 200)
	for i := range many {
		many[i] = mount{dir, fmt.Sprintf("/many/%d", i), false}
	}
	all := map[string]map[string]any{
		"a file on a directory": s.contained(image, mount{file, "/etc", false}), "a directory on a file": s.contained(image, mount{dir, "/etc/os-release", false}),
		"below a read-only mount": s.contained(image, mount{dir, "/ro", true}, mount{file, "/ro/x", false}), "below a file": s.contained(image, mount{file, "/f", false}, mount{file, "/f/x", false}),
		"a loop of links": s.contained(image, mount{file, "/loop/x", false}), "a link that leads nowhere": s.contained(image, mount{file, "/gone", false}), "/proc/self/root": s.contained(image, mount{file, "/proc/self/root/x", false}),
		"/proc/self/fd": s.contained(image, mount{dir, "/proc/self/fd/3", false}), "on the root": s.contained(image, mount{dir, "/", false}), "over where the member is": s.contained(image, mount{dir, filepath.Dir(s.dir), false}),
		"on a control group": s.contained(image, mount{dir, "/sys/fs/cgroup/x", false}), "a target of 4,000 bytes": s.contained(image, mount{dir, strings.Repeat("/abcdefg", 500), false}),
		"a name of 300 bytes": s.contained(image, mount{dir, "/" + strings.Repeat("x", 300), false}), "200 mounts": s.contained(image, many...), "a source that is not there": s.contained(image, mount{sock, "/s", false}),
		"a source of root's": s.contained(image, mount{s.dir + "/root-only/file", "/s/x", false}), "an image that is a file": s.contained(file), "an image that is not there": s.contained(image + "-none"),
		"an image of /proc": s.contained("/proc"), "an image of /sys": s.contained("/sys"), "an image of /dev": s.contained("/dev"), "an image of /": s.contained("/"), "an empty image": s.contained(dir), "read-only all over": s.contained(image, mount{"/", "/", true}),
	}
	for _, name := range []string{"proc", "sys", "dev", "tmp", "var", "etc", "usr"} {
		all["an image whose /"+name+" is a file"] = s.contained(of(name))
	}
	return all
}

// grammar draws a container, or paths, of eve's: what is shown, links, sources, targets, what changes meanwhile.
func (s *site) grammar(r *rand.Rand, image, own, file, dir string, n int) map[string]any {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	places := s.shownPlaces()
	p := places[r.IntN(len(places))]
	name := fmt.Sprintf("%s-g%d", mark, n)
	bent := func() string { // a path that leads to p, straight or bent
		at := one(p.at, p.at, "/l"+fmt.Sprint(r.IntN(len(places))), "/own/out"+fmt.Sprint(r.IntN(len(places))), "/own/race", "/own/race", "/l0/..", "/dir/../"+p.at, "/proc/self/root"+p.at, "/proc/self/cwd", p.at+"/.")
		return at + "/" + name + one("", "", "/a", "/a/b/c", "/"+strings.Repeat("y", 1<<r.IntN(9)), strings.Repeat("/d", 1<<r.IntN(10)))
	}
	var all []mount
	if r.IntN(4) > 0 {
		all = append(all, p.from...)
	}
	all = append(all, mount{own, "/own", r.IntN(3) == 0})
	for range 1 + r.IntN(3) {
		all = append(all, mount{one(file, dir, own, own+"/race", "/etc/passwd", "/dev/null", "/proc/self/root", s.ada.home, "/root"), one(bent(), bent(), bent(), "/etc/"+name, "/"+name, "/file/"+name, "/dir"), r.IntN(3) == 0})
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	change := s.contained(one(image, image, image, image, own+"/race", own+"/race/image", dir, file), all...)
	box := change["container"].(map[string]any)
	box["read_only"], box["home"] = r.IntN(4) == 0, r.IntN(4) == 0
	outside := func() string { // the same on the machine
		return one(p.where, own+"/out-machine", own+"/race-machine", own+"/race-machine/sub") + "/" + name + one("", "/a/b")
	}
	switch r.IntN(6) {
	case 0:
		delete(change, "container")
		change["output"] = outside()
	case 1:
		delete(change, "container")
		change["error"], change["input"] = outside(), outside()
	case 2:
		delete(change, "container")
		change["work_dir"] = one(outside(), own+"/race-machine")
	case 3:
		box["work_dir"] = bent()
	case 4:
		change["script"] = []byte("#!" + one(bent(), "/e/root/x", "/own/race/sh") + "\n")
	}
	return change
}

// TestRootMakesNothing draws jobs (GANG_E2E_ROUNDS: how many; few in CI) whose paths lead all over the machine, while links in them
// are exchanged: root makes nothing anywhere, no node is drained, and none of ada's jobs fails.
func TestRootMakesNothing(t *testing.T) {
	s := build(t)
	s.guarded()
	places := s.shownPlaces()
	own := s.eve.mine("own", func(p string) error { return os.Mkdir(p, 0o755) })
	links := map[string]string{}
	for i, p := range places {
		links[fmt.Sprintf("l%d", i)] = p.at
		s.eve.mine(fmt.Sprintf("own/out%d", i), link(p.at))
	}
	s.eve.mine("own/out-machine", link("/etc"))
	image := s.image("image", links)
	s.eve.mine("image/image", link("."))
	file := s.eve.mine("mounted-file", func(p string) error { return os.WriteFile(p, []byte("eve's\n"), 0o644) })
	dir := s.eve.mine("mounted-dir", func(p string) error { return os.Mkdir(p, 0o755) })
	s.eve.mine("own/race", func(p string) error { return os.MkdirAll(p+"/sub", 0o755) })
	s.eve.mine("own/race-evil", link("/e/root"))
	s.eve.mine("own/race-machine", func(p string) error { return os.MkdirAll(p+"/sub", 0o755) })
	s.eve.mine("own/race-machine-evil", link("/root"))
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		s.eve.do(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					name := []string{"race", "race-machine"}[i%2]
					_ = unix.Renameat2(unix.AT_FDCWD, own+"/"+name, unix.AT_FDCWD, own+"/"+name+"-evil", unix.RENAME_EXCHANGE)
					_ = unix.Nanosleep(&unix.Timespec{Nsec: 100_000}, nil) // else it takes a core from what it is to meet
				}
			}
		})
	}()
	jobs, seed := 40, uint64(1)
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		jobs = trial.Rounds(10_000)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	var adas []int64
	c := newCrowd(s)
	before, seen := s.tree(), s.watched(places)
	for n := range jobs {
		c.submit(s.grammar(r, image, own, file, dir, n))
		if n%10 == 0 {
			adas = append(adas, s.ada.submit(map[string]any{}))
		}
		c.settle(8)
	}
	c.settle(0)
	close(stop)
	<-over
	var failed []string
	for _, id := range adas {
		if j, err := s.ended(id); err != nil || j.State != api.JobCompleted {
			failed = append(failed, fmt.Sprintf("job %d is %s: %s, %v", id, j.State, j.Verdict, err))
		}
	}
	tally.Did("jobs with paths of a hostile user", jobs)
	fmt.Printf("%d jobs of eve's, %d refused, ended %v; %d of ada's\n", jobs, c.refused, c.states, len(adas))
	tally.Checked(t, "files and directories made by root", s.ofRoot(mark)...)
	tally.Checked(t, "files and directories made where no user may, if only for a moment", seen()...)
	tally.Checked(t, "files and directories that are new on this machine", changes(before, s.tree())...)
	tally.Checked(t, "another user's jobs failed", failed...)
	if err := s.stands(); err != nil {
		tally.Checked(t, "the site after a hostile user's paths", err.Error())
	}
	s.works()
}

// watched follows what is made in the places of the machine that eve may not write; the function that it gives ends
// that, and lists what bore her mark.
func (s *site) watched(places []shown) func() []string {
	s.t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		s.t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	at := map[int32]string{}
	for _, p := range places {
		var st unix.Stat_t
		if unix.Stat(p.where, &st) != nil || st.Mode&0o002 != 0 || st.Uid == s.eve.uid {
			continue
		}
		if wd, err := unix.InotifyAddWatch(fd, p.where, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR); err == nil {
			at[int32(wd)] = p.where
		}
	}
	if len(at) < 5 {
		s.t.Errorf("%d places are watched", len(at))
	}
	var found []string
	over := make(chan struct{})
	go func() {
		defer close(over)
		b := make([]byte, 64<<10)
		for {
			n, err := f.Read(b)
			if err != nil {
				return
			}
			for i := 0; i+unix.SizeofInotifyEvent <= n; {
				wd, size := int32(binary.NativeEndian.Uint32(b[i:])), int(binary.NativeEndian.Uint32(b[i+12:]))
				name := strings.TrimRight(string(b[i+unix.SizeofInotifyEvent:i+unix.SizeofInotifyEvent+size]), "\x00")
				if strings.Contains(name, mark) || wd == -1 {
					found = append(found, filepath.Join(at[wd], name))
				}
				i += unix.SizeofInotifyEvent + size
			}
		}
	}()
	return func() []string {
		_ = f.Close()
		<-over
		return found
	}
}

// tree lists what root has on this machine's disks, but where others of its users work, and the site itself.
func (s *site) tree() map[string]bool {
	out := map[string]bool{}
	for _, top := range []string{"/bin", "/boot", "/etc", "/home", "/lib", "/media", "/mnt", "/opt", "/sbin", "/srv", "/usr", "/var", "/dev"} {
		_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case slices.Contains([]string{"/var/tmp", "/var/log", "/var/cache", "/var/lib", "/dev/pts", "/dev/shm", "/dev/mqueue"}, path):
				return fs.SkipDir
			}
			if e.Type() != fs.ModeDevice { // loops come and go
				out[path] = true
			}
			return nil
		})
	}
	for _, dir := range []string{"/", "/run", "/root", "/var/lib", "/dev/shm"} { // in these alone: below them others work
		all, _ := os.ReadDir(dir)
		for _, e := range all {
			out[filepath.Join(dir, e.Name())] = dir == "/" || dir == "/root"
		}
	}
	return out
}

// changes lists what is new.
func changes(before, after map[string]bool) (found []string) {
	for path, counts := range after {
		if _, was := before[path]; !was && counts {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return found
}

// ofRoot lists what bears a name on this machine and is not eve's: all of it but the kernel's own lists.
func (s *site) ofRoot(part string) (found []string) {
	_ = filepath.WalkDir("/", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if e.IsDir() && (path == "/proc" || path == "/sys/kernel" || path == "/sys/devices") {
			return fs.SkipDir
		}
		if strings.Contains(e.Name(), part) {
			if info, err := e.Info(); err == nil {
				switch st, ok := info.Sys().(*syscall.Stat_t); {
				case ok && st.Uid != s.eve.uid:
					found = append(found, fmt.Sprintf("%s (uid %d)", path, st.Uid))
				case !strings.HasPrefix(path, s.dir): // hers, where everybody may make files
					_ = os.RemoveAll(path)
				}
			}
		}
		return nil
	})
	return found
}
