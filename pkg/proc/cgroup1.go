package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// cgroup1 is a group in the freezer hierarchy of cgroup v1, or in pids without freezing.
// v1 has no clone-into: the forking thread enters, and its children are born inside.
type cgroup1 struct {
	dir  string
	home string // where the thread came from, while it is inside
}

func makeCgroup1(dir string, lim Limits) (Containment, error) {
	if err := mkdirGroup(dir); err != nil {
		return nil, err
	}
	if lim.PIDs > 0 {
		err := writeFile(dir+"/pids.max", strconv.FormatInt(lim.PIDs, 10))
		if err != nil && !os.IsNotExist(err) {
			_ = syscall.Rmdir(dir)
			return nil, &LimitError{err}
		}
	}
	return &cgroup1{dir: dir}, nil
}

func (c *cgroup1) Enter(*syscall.SysProcAttr) error {
	home, err := homeCgroup1(c.dir)
	if err != nil {
		return err
	}
	if err := writeFile(c.dir+"/tasks", strconv.Itoa(syscall.Gettid())); err != nil {
		return err
	}
	c.home = home
	return nil
}

// homeCgroup1 is where this thread is now in the hierarchy that dir belongs to.
func homeCgroup1(dir string) (string, error) {
	mounts, err := mounts()
	if err != nil {
		return "", err
	}
	b, err := readAll("/proc/thread-self/cgroup")
	if err != nil {
		return "", err
	}
	for _, m := range mounts {
		if m.fs != "cgroup" || !strings.HasPrefix(dir, m.point+"/") {
			continue
		}
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.SplitN(line, ":", 3)
			if len(f) == 3 && f[1] != "" && m.has(strings.Split(f[1], ",")[0]) {
				return m.path(f[2]), nil
			}
		}
	}
	return filepath.Dir(dir), nil
}

func (c *cgroup1) Leave() {
	if c.home != "" {
		_ = writeFile(c.home+"/tasks", strconv.Itoa(syscall.Gettid()))
		c.home = ""
	}
}

func (c *cgroup1) PIDs() ([]int, error) {
	pids, err := treePIDs(c.dir)
	self := syscall.Getpid()
	out := pids[:0]
	for _, pid := range pids {
		if pid != self {
			out = append(out, pid)
		}
	}
	return out, err
}

func (c *cgroup1) Freeze() bool {
	if writeFile(c.dir+"/freezer.state", "FROZEN") != nil {
		return false
	}
	var buf [32]byte
	for range 50 { // FREEZING becomes FROZEN as it is read, once all have stopped
		n := readFile(c.dir+"/freezer.state", buf[:])
		if bytes.HasPrefix(buf[:n], []byte("FROZEN")) {
			break
		}
	}
	return true
}

func (c *cgroup1) Thaw() { _ = writeFile(c.dir+"/freezer.state", "THAWED") }

// Kill freezes first, so that a fork bomb can't run away from the list; frozen processes of
// v1 take their KILL when thawed.
func (c *cgroup1) Kill() error {
	if !exists(c.dir) {
		return nil
	}
	c.Freeze()
	defer c.Thaw()
	pids, err := c.PIDs()
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, pid := range pids {
		if err := signal(pid, syscall.SIGKILL); err != nil {
			return err
		}
	}
	return nil
}

func (c *cgroup1) Remove() (bool, error) {
	c.Leave()
	return removeTree(c.dir, func() bool {
		pids, err := c.PIDs()
		return err == nil && len(pids) == 0
	})
}

func (c *cgroup1) OOMKills() int { return 0 }
