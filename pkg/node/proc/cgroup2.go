package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

type cgroup2 struct {
	dir  string
	fd   int // of dir, for clone into it; -1 when not open
	held Held
}

func makeCgroup2(dir string, lim Limits) (Containment, error) {
	if err := mkdirGroup(dir); err != nil {
		return nil, err
	}
	c := &cgroup2{dir: dir, fd: -1}
	err := c.limit(lim)
	if err == nil {
		err = denyDevices(dir, lim.Deny)
	}
	if err != nil {
		_ = syscall.Rmdir(dir)
		return nil, err
	}
	return c, nil
}

// limit writes the limits whose controllers are there. What has none is held by a side in a
// hierarchy of v1, or by who looks at what is used.
func (c *cgroup2) limit(lim Limits) error {
	var failed error
	write := func(name, text string) (ok bool) {
		err := writeFile(c.dir+"/"+name, text)
		if err != nil && !os.IsNotExist(err) && failed == nil {
			failed = &LimitError{err}
		}
		return err == nil
	}
	set := func(name string, v int64) bool { return write(name, strconv.FormatInt(v, 10)) }
	if len(lim.CPUSet) > 0 {
		c.held.CPUSet = write("cpuset.cpus", lim.CPUSet.String())
	}
	if len(lim.Mems) > 0 {
		write(fileMems, lim.Mems.String())
	}
	if lim.Memory > 0 {
		// Without swap: what was asked for is what is used, and a full node does not slow down first.
		c.held.Memory = set("memory.max", lim.Memory)
		set("memory.swap.max", 0)
	}
	if lim.Whole {
		set("memory.oom.group", 1)
	}
	if lim.PIDs > 0 {
		c.held.PIDs = set("pids.max", lim.PIDs)
	}
	if lim.CPUs > 0 {
		set("cpu.weight", min(int64(lim.CPUs)*weightOfCPU, weightMax))
	}
	return failed
}

// Weights of cgroup v2 go to 10,000: members with up to 1,000 CPUs are told apart.
const (
	weightOfCPU = 10
	weightMax   = 10_000
)

func (c *cgroup2) Enter(attr *syscall.SysProcAttr) error {
	if c.fd < 0 {
		fd, err := openRetry(c.dir, syscall.O_RDONLY|syscall.O_DIRECTORY)
		if err != nil {
			return fmt.Errorf("open cgroup %s: %w", c.dir, err)
		}
		c.fd = fd
	}
	attr.UseCgroupFD, attr.CgroupFD = true, c.fd
	return nil
}

func (c *cgroup2) Leave() {
	if c.fd >= 0 {
		_ = syscall.Close(c.fd)
		c.fd = -1
	}
}

func (c *cgroup2) PIDs() ([]int, error) { return treePIDs(c.dir) }

// treePIDs also looks into groups that a job has made inside its own.
func treePIDs(dir string) ([]int, error) {
	pids, err := readPIDs(dir + "/cgroup.procs")
	if err != nil {
		return nil, err
	}
	for _, sub := range subGroups(dir) {
		more, err := treePIDs(sub)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		pids = append(pids, more...)
	}
	return pids, nil
}

func subGroups(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var subs []string
	for _, e := range entries {
		if e.IsDir() {
			subs = append(subs, dir+"/"+e.Name())
		}
	}
	return subs
}

// freezeWait bounds the wait for a process in the kernel that is slow to freeze: the list
// is then as good as it was without freezing.
const freezeWait = 20 * time.Millisecond

func (c *cgroup2) Freeze() bool {
	if writeFile(c.dir+"/cgroup.freeze", "1") != nil {
		return false
	}
	for end := time.Now().Add(freezeWait); time.Now().Before(end); Pause(200 * time.Microsecond) {
		if c.event("frozen 1") {
			return true
		}
	}
	return true
}

// Pause sleeps on this thread itself: a timer of the Go runtime is waited for by another one, and those of a
// shim have slack timers.
func Pause(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil)
}

func (c *cgroup2) Thaw() { _ = writeFile(c.dir+"/cgroup.freeze", "0") }

func (c *cgroup2) event(line string) bool {
	var buf [256]byte
	n := readFile(c.dir+"/cgroup.events", buf[:])
	return bytes.Contains(buf[:n], []byte(line))
}

// Kill needs no thaw: a fatal signal ends frozen processes of v2 as well.
func (c *cgroup2) Kill() error {
	err := writeFile(c.dir+"/cgroup.kill", "1")
	if os.IsNotExist(err) && !exists(c.dir) {
		return nil
	}
	return err
}

func exists(path string) bool {
	var st syscall.Stat_t
	return syscall.Stat(path, &st) != syscall.ENOENT
}

// Remove lets the kernel judge: rmdir fails with EBUSY while a live process is inside.
func (c *cgroup2) Remove() (bool, error) {
	c.Leave()
	return removeTree(c.dir, func() bool { return c.event("populated 0") })
}

func removeTree(dir string, empty func() bool) (bool, error) {
	err := syscall.Rmdir(dir)
	if err == syscall.EBUSY && empty() {
		for _, sub := range subGroups(dir) {
			if gone, err := removeTree(sub, func() bool { return true }); !gone {
				return false, err
			}
		}
		err = syscall.Rmdir(dir)
	}
	switch err {
	case nil, syscall.ENOENT:
		return true, nil
	case syscall.EBUSY, syscall.ENOTEMPTY, syscall.EINTR:
		return false, nil
	}
	return false, fmt.Errorf("remove cgroup %s: %w", dir, err)
}

func (c *cgroup2) Held() Held { return c.held }

// Shortage: the kernel counts a kill for the machine's sake here too, but a limit that was
// reached only in the group that has it.
func (c *cgroup2) Shortage() (s Shortage) {
	b, err := readAll(c.dir + "/memory.events")
	if err != nil {
		return s
	}
	if s.Kills = eventCount(b, "oom_kill "); s.Kills > 0 {
		s.Own, s.Peak = eventCount(b, "oom ") > 0, numberIn(c.dir+"/memory.peak")
	}
	return s
}

func (c *cgroup2) Forks() int { return forksRefused(c.dir) }

// forksRefused reads pids.events, which v1 and v2 have alike.
func forksRefused(dir string) int {
	b, err := readAll(dir + "/pids.events")
	if err != nil {
		return 0
	}
	return eventCount(b, "max ")
}

// numberIn reads a file that is one number; 0: it is not there, or says "max".
func numberIn(path string) int64 {
	n, _ := figureIn(path)
	return n
}

// eventCount finds "name N" at the beginning of a line.
func eventCount(b []byte, name string) int {
	for _, line := range bytes.Split(b, []byte("\n")) {
		if v, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return atoi(v)
		}
	}
	return 0
}
