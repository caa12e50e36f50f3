package proc

import (
	"bytes"
	"os"
	"slices"
	"syscall"
)

// cgroup1 is a group in the freezer hierarchy of cgroup v1, or in pids without freezing.
// v1 has no clone-into: the forking thread enters, and its children are born inside.
type cgroup1 struct {
	dir  string
	home string // where the thread came from, while it is inside
	held Held
}

func makeCgroup1(dir string, lim Limits) (Containment, error) {
	if err := mkdirGroup(dir); err != nil {
		return nil, err
	}
	c := &cgroup1{dir: dir}
	if exists(dir + "/pids.max") { // without a freezer it is a group of this hierarchy
		if err := limitSide(dir, sidePIDs, lim); err != nil {
			_ = syscall.Rmdir(dir)
			return nil, err
		}
		c.held.PIDs = true
	}
	return c, nil
}

func (c *cgroup1) Enter(*syscall.SysProcAttr) error {
	homes, err := enterV1(c.dir)
	if err == nil {
		c.home = homes[0]
	}
	return err
}

func (c *cgroup1) Leave() {
	if c.home != "" {
		leaveV1(c.home)
		c.home = ""
	}
}

func (c *cgroup1) PIDs() ([]int, error) {
	pids, err := treePIDs(c.dir)
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == syscall.Getpid() }), err
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

func (c *cgroup1) Held() Held { return c.held }

func (c *cgroup1) Shortage() Shortage { return Shortage{} }

func (c *cgroup1) Forks() int {
	if !c.held.PIDs {
		return 0
	}
	return forksRefused(c.dir)
}
