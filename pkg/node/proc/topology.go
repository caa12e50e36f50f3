package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/core/cpus"
)

// SysFS is where the kernel shows the machine.
const SysFS = "/sys"

// Topology reads which CPUs are online, and where they are. sys is [SysFS], or a recording of it.
// What the kernel does not say of a CPU counts as a core of its own, at NUMA node 0 and in socket 0.
func Topology(sys string) (*cpus.Topology, error) {
	base := filepath.Join(sys, "devices/system")
	online, err := OnlineCPUs(sys)
	if err != nil {
		return nil, err
	}
	t := &cpus.Topology{Distance: map[[2]int]int{}}
	numa, err := readNUMA(base, t.Distance)
	if err != nil {
		return nil, err
	}
	for _, id := range online {
		c := cpus.CPU{ID: id, Core: id, NUMA: numa[id]}
		siblings, err := readList(filepath.Join(base, fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", id)))
		if err == nil && len(siblings) > 0 {
			c.Core = siblings[0]
		}
		if text, err := os.ReadFile(filepath.Join(base, fmt.Sprintf("cpu/cpu%d/topology/physical_package_id", id))); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n > 0 { // -1: the kernel does not know
				c.Socket = n
			}
		}
		t.CPUs = append(t.CPUs, c)
	}
	return t, nil
}

// OnlineCPUs are those that the kernel runs. sys is [SysFS], or a recording of it.
func OnlineCPUs(sys string) (cpus.Set, error) {
	return readList(filepath.Join(sys, "devices/system/cpu/online"))
}

// readNUMA gives the NUMA node of each CPU, and fills in their distances.
func readNUMA(base string, distance map[[2]int]int) (map[int]int, error) {
	at := map[int]int{}
	nodes, err := readList(filepath.Join(base, "node/online"))
	if errors.Is(err, os.ErrNotExist) { // a kernel without NUMA
		return at, nil
	}
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		dir := filepath.Join(base, fmt.Sprintf("node/node%d", n))
		list, err := readList(filepath.Join(dir, "cpulist"))
		if err != nil {
			return nil, err
		}
		for _, id := range list {
			at[id] = n
		}
		b, err := os.ReadFile(filepath.Join(dir, "distance"))
		if err != nil {
			continue
		}
		for i, text := range strings.Fields(string(b)) {
			if d, err := strconv.Atoi(text); err == nil && i < len(nodes) {
				distance[[2]int{n, nodes[i]}] = d
			}
		}
	}
	return at, nil
}

func readList(path string) (cpus.Set, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return cpus.Parse(string(b))
}

// MemoryNodes are the NUMA nodes that have memory. sys is [SysFS], or a recording of it.
func MemoryNodes(sys string) (cpus.Set, error) {
	return readList(filepath.Join(sys, "devices/system/node/has_memory"))
}

// Affinity is the CPUs that a thread may use; 0 is the calling one.
func Affinity(pid int) (cpus.Set, error) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &mask); err != nil {
		return nil, err
	}
	var out cpus.Set
	for id := range maxAffinity {
		if mask.IsSet(id) {
			out = append(out, id)
		}
	}
	return out, nil
}

// maxAffinity is how many CPUs the kernel's call knows here.
const maxAffinity = 1024

// SetAffinity has a thread, and all that it forks from then on, use these CPUs; 0 is the calling one.
func SetAffinity(pid int, s cpus.Set) error {
	var mask unix.CPUSet
	for _, id := range s {
		mask.Set(id)
	}
	return unix.SchedSetaffinity(pid, &mask)
}

// Bound has the calling thread, which is locked to its goroutine, use the CPUs of the set until
// restore; an empty set changes nothing.
func Bound(s cpus.Set) (restore func(), err error) {
	if len(s) == 0 {
		return func() {}, nil
	}
	old, err := Affinity(0)
	if err == nil {
		err = SetAffinity(0, s)
	}
	if err != nil {
		return func() {}, err
	}
	return func() { _ = SetAffinity(0, old) }, nil
}

// CPUsOf is the CPUs that the processes of a containment may use, all together: what a member
// whose record is lost was given.
func CPUsOf(p Place) cpus.Set {
	c, err := open(p)
	if err != nil {
		return nil
	}
	pids, _ := c.PIDs()
	var out []int
	for _, pid := range pids {
		s, _ := Affinity(pid)
		out = append(out, s...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
