package proc

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// Usage is what processes hold and have moved; -1 is a figure that can't be read.
type Usage struct {
	MemoryBytes int64 // by their group's account, page cache included; else the sum of what is resident
	// IOBytes are those of all reads and writes, by the system calls and by the devices: a byte
	// that came from a disk counts as both. recv and send are not among the system calls; read
	// and write of a socket are.
	IOBytes int64
	// CPU is user and system time: by their group's account that of all there ever were; else of
	// those that live and those that they waited for.
	CPU  time.Duration
	Peak int64 // the most memory that their group ever held
}

// UnknownUsage is nothing that could be read.
var UnknownUsage = Usage{-1, -1, -1, -1}

// AccountOf is what the kernel counts for the groups of a containment, without a look at its
// processes: for a moment longer than there is one of them.
func AccountOf(p Place) Usage {
	u := UnknownUsage
	memory := func(dir, now, most string) {
		if n, ok := figureIn(dir + now); ok {
			u.MemoryBytes = n
		}
		if n, ok := figureIn(dir + most); ok {
			u.Peak = n
		}
	}
	dirs := dirsOf(p.Sides)
	switch p.Kind {
	case Cgroup2:
		if p.Sides[sideMemory] == "" {
			memory(p.Dir, "/memory.current", "/memory.peak")
		}
		if b, err := readAll(p.Dir + "/cpu.stat"); err == nil && bytes.HasPrefix(b, []byte("usage_usec ")) {
			u.CPU = time.Duration(eventCount(b, "usage_usec ")) * time.Microsecond
		}
	case Cgroup1:
		if dirs = append(dirs, p.Dir); p.Sides[sideMemory] == "" { // mounted with the freezer, perhaps
			memory(p.Dir, "/memory.usage_in_bytes", "/memory.max_usage_in_bytes")
		}
	}
	if dir := p.Sides[sideMemory]; dir != "" {
		memory(dir, "/memory.usage_in_bytes", "/memory.max_usage_in_bytes")
	}
	for _, dir := range dirs { // of v1: nobody asks for the controller that counts it, another may bring it along
		if u.CPU >= 0 {
			break
		}
		if n, ok := figureIn(dir + "/cpuacct.usage"); ok {
			u.CPU = time.Duration(n)
		}
	}
	return u
}

// UsageOf reads it for all processes of a containment. Root is its shim, whose descendants
// they are where there is no group; apart are children of the shim that are none of them.
func UsageOf(p Place, root int, apart func(Stat) bool) Usage {
	account := AccountOf(p)
	pids, err := inside(p.Kind, p.Dir, root, apart)
	if err != nil {
		return account
	}
	var u Usage
	for _, pid := range pids {
		if pid == root { // its thread is inside a group of v1 for as long as it starts something
			continue
		}
		u.add(pid)
	}
	u.Peak = account.Peak
	if account.MemoryBytes >= 0 {
		u.MemoryBytes = account.MemoryBytes
	}
	if account.CPU >= 0 {
		u.CPU = account.CPU
	}
	return u
}

func inside(kind, dir string, root int, apart func(Stat) bool) ([]int, error) {
	if kind != Group {
		c, err := open(Place{Kind: kind, Dir: dir})
		if err != nil {
			return nil, err
		}
		return c.PIDs()
	}
	if s, alive := ReadStat(root); root <= 0 || !alive || s.Dead() {
		return nil, os.ErrNotExist
	}
	return Descendants(root, func(s Stat) bool { return s.PPID == root && apart(s) })
}

// Descendants lists the processes below one, without those to be left out and what is below these.
func Descendants(root int, leaveOut func(Stat) bool) ([]int, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, pid := range all {
		if s, ok := ReadStat(pid); ok && !leaveOut(s) {
			children[s.PPID] = append(children[s.PPID], pid)
		}
	}
	found := children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found, nil
}

// figureIn reads a file that is a number; false: it is not there.
func figureIn(path string) (int64, bool) {
	var buf [32]byte
	n := readFile(path, buf[:])
	v, err := strconv.ParseInt(string(bytes.TrimSpace(buf[:n])), 10, 64)
	return v, err == nil
}

// add counts one process. One that has gone is nothing; one that is there and can't be read
// leaves the sum unknown.
func (u *Usage) add(pid int) {
	var buf [512]byte
	if s, ok := ReadStat(pid); ok {
		u.CPU += s.CPU
	}
	if held, ok := residentOf(pid); ok && u.MemoryBytes >= 0 {
		u.MemoryBytes += held
	} else if !ok && lives(pid) {
		u.MemoryBytes = -1
	}
	n := readFile("/proc/"+strconv.Itoa(pid)+"/io", buf[:])
	if n > 0 && u.IOBytes >= 0 {
		for _, name := range []string{"rchar: ", "wchar: ", "read_bytes: ", "write_bytes: "} {
			u.IOBytes += int64(eventCount(buf[:n], name))
		}
	} else if n == 0 && lives(pid) {
		u.IOBytes = -1
	}
}

func lives(pid int) bool {
	s, ok := ReadStat(pid)
	return ok && !s.Dead()
}
