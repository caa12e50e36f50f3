package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"gangd/pkg/core/cpus"
)

// The controllers of cgroup v1 that limit members.
const (
	sideMemory = "memory"
	sidePIDs   = "pids"
	sideCPUSet = "cpuset"
)

// sided is a containment whose limits are held by groups of cgroup v1 beside it: a machine
// may have its controllers there and hold processes best in v2, or in the freezer's hierarchy.
// What is forked is born in all of them.
type sided struct {
	Containment
	sides map[string]string
	homes []string // where the thread came from, while it is inside
}

// makeSides makes them all or none. primary is there already: a controller may be mounted with
// the freezer.
func makeSides(sides map[string]string, primary string, lim Limits) (map[string]string, error) {
	var made []string
	undo := func(err error) (map[string]string, error) {
		for _, dir := range made {
			_ = syscall.Rmdir(dir)
		}
		return nil, err
	}
	for _, dir := range dirsOf(sides) {
		if dir == primary {
			continue
		}
		if err := mkdirGroup(dir); err != nil {
			return undo(err)
		}
		made = append(made, dir)
	}
	for controller, dir := range sides {
		if err := limitSide(dir, controller, lim); err != nil {
			return undo(err)
		}
	}
	return sides, nil
}

// dirsOf lists each directory once: controllers may be mounted together.
func dirsOf(sides map[string]string) []string {
	var dirs []string
	for _, dir := range sides {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func limitSide(dir, controller string, lim Limits) error {
	set := func(name string, v int64) error {
		if v <= 0 {
			return nil
		}
		if err := writeFile(dir+"/"+name, strconv.FormatInt(v, 10)); err != nil {
			return &LimitError{err}
		}
		return nil
	}
	switch controller {
	case sidePIDs:
		return set("pids.max", lim.PIDs)
	case sideCPUSet:
		return limitCPUs(dir, lim.CPUSet, lim.Mems)
	}
	if err := set("memory.limit_in_bytes", lim.Memory); err != nil {
		return err
	}
	// With swap together no more than without; not there where the kernel does not count swap.
	if err := set("memory.memsw.limit_in_bytes", lim.Memory); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// The files of a v1 group of cpuset: both have to be there before a process may enter.
const (
	fileCPUs = "cpuset.cpus"
	fileMems = "cpuset.mems"
)

// limitCPUs fills in a group of cpuset; an empty set is all that the group above has.
func limitCPUs(dir string, s, mems cpus.Set) error {
	above := filepath.Dir(dir)
	if err := fillCPUs(above); err != nil { // a fresh one has none to give on
		return &LimitError{err}
	}
	if err := fillCPUs(dir); err != nil {
		return &LimitError{err}
	}
	for name, set := range map[string]cpus.Set{fileCPUs: s, fileMems: mems} {
		if len(set) == 0 {
			continue
		}
		if err := writeFile(dir+"/"+name, set.String()); err != nil {
			return &LimitError{err}
		}
	}
	return nil
}

// fillCPUs gives a group that has no CPUs, or no memory, what the one above has.
func fillCPUs(dir string) error {
	for _, name := range []string{fileCPUs, fileMems} {
		b, err := readAll(dir + "/" + name)
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(b)) != "" {
			continue
		}
		if b, err = readAll(filepath.Dir(dir) + "/" + name); err != nil {
			return err
		}
		if err := writeFile(dir+"/"+name, strings.TrimSpace(string(b))); err != nil {
			return err
		}
	}
	return nil
}

// Enter enters all or none: a thread that stays in the freezer's group would freeze itself with it.
func (s *sided) Enter(attr *syscall.SysProcAttr) (err error) {
	if err = s.Containment.Enter(attr); err != nil {
		return err
	}
	if s.homes, err = enterV1(dirsOf(s.sides)...); err != nil {
		s.Containment.Leave()
	}
	return err
}

func (s *sided) Leave() {
	leaveV1(s.homes...)
	s.homes = nil
	s.Containment.Leave()
}

// Kill also ends what has left the containment, as only root can, but is in a side.
func (s *sided) Kill() error {
	if err := s.Containment.Kill(); err != nil {
		return err
	}
	for _, pid := range s.aside() {
		if err := signal(pid, syscall.SIGKILL); err != nil {
			return err
		}
	}
	return nil
}

// aside are the processes in the sides, but for this one.
func (s *sided) aside() (pids []int) {
	for _, dir := range dirsOf(s.sides) {
		in, _ := treePIDs(dir)
		pids = append(pids, in...)
	}
	slices.Sort(pids)
	return slices.DeleteFunc(slices.Compact(pids), func(pid int) bool { return pid == syscall.Getpid() })
}

// PIDs are those of the containment, and when it is empty those that keep a side from going.
func (s *sided) PIDs() ([]int, error) {
	pids, err := s.Containment.PIDs()
	if len(pids) == 0 && (err == nil || os.IsNotExist(err)) {
		return s.aside(), nil
	}
	return pids, err
}

func (s *sided) Remove() (bool, error) {
	s.Leave()
	gone, err := s.Containment.Remove()
	for _, dir := range dirsOf(s.sides) {
		if !gone || err != nil {
			break
		}
		gone, err = removeTree(dir, func() bool { return len(s.aside()) == 0 })
	}
	return gone, err
}

func (s *sided) Held() Held {
	h := s.Containment.Held()
	return Held{Memory: h.Memory || s.sides[sideMemory] != "", PIDs: h.PIDs || s.sides[sidePIDs] != "", CPUSet: h.CPUSet ||
		s.sides[sideCPUSet] != ""}
}

func (s *sided) Forks() int {
	if dir := s.sides[sidePIDs]; dir != "" {
		return forksRefused(dir)
	}
	return s.Containment.Forks()
}

// Shortage: v1 does not tell kills for the group's own limit from others, only that the limit
// was reached at some time.
func (s *sided) Shortage() (out Shortage) {
	dir := s.sides[sideMemory]
	if dir == "" {
		return s.Containment.Shortage()
	}
	b, _ := readAll(dir + "/memory.oom_control")
	if out.Kills = eventCount(b, "oom_kill "); out.Kills > 0 {
		out.Peak = numberIn(dir + "/memory.max_usage_in_bytes")
		out.Own = out.Peak >= numberIn(dir+"/memory.limit_in_bytes")
	}
	return out
}

// enterV1 moves this thread into groups of v1 and gives where it came from, in the same order.
func enterV1(dirs ...string) (homes []string, err error) {
	self, err := readAll("/proc/thread-self/cgroup")
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		home, err := homeOf(string(self), dir)
		if err != nil {
			leaveV1(homes...)
			return nil, err
		}
		if err := moveV1(dir); err != nil {
			leaveV1(homes...)
			return nil, err
		}
		homes = append(homes, home)
	}
	return homes, nil
}

// knownHomes are those that were found, by the thread's groups and the directory that a group is made in: the
// list of mounts costs more than a fork, and is the same for all members that a process serves.
var knownHomes sync.Map // of homeKey: string

type homeKey struct{ self, above string }

// homeOf is homeV1 for a thread that is in the groups of self.
func homeOf(self, dir string) (string, error) {
	key := homeKey{self, filepath.Dir(dir)}
	if home, ok := knownHomes.Load(key); ok {
		return home.(string), nil
	}
	ms, err := mounts()
	if err != nil {
		return "", err
	}
	home := homeV1(ms, self, dir)
	knownHomes.Store(key, home)
	return home, nil
}

// homeV1 is where a thread is in the hierarchy that dir belongs to.
func homeV1(ms []mount, self, dir string) string {
	for _, m := range ms {
		if m.fs != "cgroup" || !strings.HasPrefix(dir, m.point+"/") {
			continue
		}
		for _, controller := range m.options {
			if own := ownGroup(self, controller); own != "" {
				return m.path(own)
			}
		}
	}
	return filepath.Dir(dir)
}

func leaveV1(homes ...string) {
	for _, home := range homes {
		_ = moveV1(home)
	}
}

// moveV1 moves this thread into a group of v1.
func moveV1(dir string) error { return moveV1By(writeFile, dir) }

// moveV1By writes "0", which is the thread that writes: for that one, and for no number, the kernel (since 5.5) takes
// no lock that all forks of the machine share, whose writer waits 5 to 15 ms for a grace period. Where a group refuses
// "0", the number moves it as well.
func moveV1By(write func(path, value string) error, dir string) error {
	err := write(dir+"/tasks", "0")
	if err != nil && !os.IsNotExist(err) && write(dir+"/tasks", strconv.Itoa(syscall.Gettid())) == nil {
		return nil
	}
	return err
}

// sidesUsable finds, for each controller that is wanted, where groups of v1 can be made.
func sidesUsable(ms []mount, self string, want ...string) map[string]string {
	out := map[string]string{}
	for _, controller := range want {
		for _, m := range ms {
			if m.fs != "cgroup" || m.readOnly || !m.has(controller) {
				continue
			}
			for _, dir := range placesV1(m, self, controller) {
				if sideUsable(dir, controller) {
					out[controller] = dir
					break
				}
			}
		}
	}
	return out
}

// placesV1 are the directories for members' groups in a hierarchy of v1, best first.
func placesV1(m mount, self, controller string) []string {
	var dirs []string
	if own := ownGroup(self, controller); own != "" && own != "/" {
		dirs = append(dirs, filepath.Join(m.path(own), groupsName))
	}
	return append(dirs, filepath.Join(m.point, groupsName))
}

// sideUsable does with a probe group what will be done with a member's.
func sideUsable(dir, controller string) bool {
	runtime.LockOSThread() // which is moved in and out
	defer runtime.UnlockOSThread()
	made := syscall.Mkdir(dir, 0o755) == nil
	if !made && !exists(dir) {
		return false
	}
	// Old kernels count a group that a job makes in its own only with this.
	_ = writeFile(dir+"/memory.use_hierarchy", "1")
	probe := filepath.Join(dir, fmt.Sprintf("probe.%d", os.Getpid()))
	_ = syscall.Rmdir(probe)
	err := syscall.Mkdir(probe, 0o755)
	if err == nil {
		err = limitSide(probe, controller, Limits{Memory: 1 << 30, PIDs: 1 << 10})
		if err == nil {
			var homes []string
			homes, err = enterV1(probe)
			leaveV1(homes...)
		}
		_ = syscall.Rmdir(probe)
	}
	if err != nil && made {
		_ = syscall.Rmdir(dir)
	}
	return err == nil
}
