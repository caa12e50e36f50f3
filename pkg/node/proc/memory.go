package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// MemoryUsed is what processes have in memory together, in bytes. Pages that several of them
// share are counted once where that decides whether they are above the limit: looking costs the
// kernel a walk through all of their pages.
func MemoryUsed(pids []int, limit int64) int64 {
	var sum int64
	for _, pid := range pids {
		n, _ := residentOf(pid)
		sum += n
	}
	if sum <= limit {
		return sum
	}
	sum = 0
	for _, pid := range pids {
		sum += shareOf(pid)
	}
	return sum
}

var pageSize = int64(os.Getpagesize())

// residentOf reads the second figure of statm; ok is false where there is none to read.
func residentOf(pid int) (n int64, ok bool) {
	var buf [128]byte
	f := bytes.Fields(buf[:readFile("/proc/"+strconv.Itoa(pid)+"/statm", buf[:])])
	if len(f) < 2 {
		return 0, false
	}
	return int64(atoi(f[1])) * pageSize, true
}

// shareOf is a process's own pages and its share of others: "Pss:  1234 kB". What can't be
// read counts in full.
func shareOf(pid int) int64 {
	b := read(pid, "smaps_rollup", shareTime)
	if b == nil {
		n, _ := residentOf(pid)
		return n
	}
	for _, line := range bytes.Split(b, []byte("\n")) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "Pss:" {
			if kb, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil {
				return kb << 10
			}
		}
	}
	return 0 // it has ended
}

// MemTotal is the machine's memory in bytes, 0 when /proc can't tell.
func MemTotal() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kb int64
	if _, err := fmt.Sscanf(string(b), "MemTotal: %d kB", &kb); err != nil {
		return 0
	}
	return kb << 10
}
