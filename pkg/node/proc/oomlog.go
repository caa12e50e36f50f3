package proc

import (
	"bytes"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// OOMKill is what the kernel's log says of a process that it killed for want of memory.
type OOMKill struct {
	PID  int
	Used int64 // what the process had in memory, bytes
}

// OOMKilled finds one of these processes in the kernel's log, killed within the last while. It is
// the last resort where no cgroup counts: a log that may not be read (dmesg_restrict) says nothing.
func OOMKilled(pids []int, within time.Duration) (kill OOMKill, ok bool) {
	fd, err := openRetry("/dev/kmsg", syscall.O_RDONLY|syscall.O_NONBLOCK)
	if err != nil {
		return kill, false
	}
	defer syscall.Close(fd)
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return kill, false
	}
	since := time.Duration(now.Nano()) - within
	buf := make([]byte, 8<<10) // one record a read; the kernel's are at most 1 KiB and some
	for {
		n, err := syscall.Read(fd, buf)
		switch {
		case err == syscall.EPIPE || err == syscall.EINTR: // records were overwritten meanwhile
			continue
		case err != nil || n <= 0:
			return kill, false
		}
		if kill, at, ok := parseOOM(buf[:n]); ok && at >= since && slices.Contains(pids, kill.PID) {
			return kill, true
		}
	}
}

// parseOOM reads "6,1234,5678901,-;Out of memory: Killed process 42 (python) total-vm:1kB, anon-rss:2kB,
// file-rss:3kB, shmem-rss:4kB, ...": the third field is microseconds since boot.
func parseOOM(record []byte) (kill OOMKill, at time.Duration, ok bool) {
	head, text, ok := bytes.Cut(record, []byte(";"))
	if !ok {
		return kill, 0, false
	}
	reason, rest, ok := bytes.Cut(text, []byte("Killed process "))
	if !ok || !bytes.Contains(bytes.ToLower(reason), []byte("out of memory")) {
		return kill, 0, false
	}
	fields := bytes.Split(head, []byte(","))
	if len(fields) < 3 {
		return kill, 0, false
	}
	us, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return kill, 0, false
	}
	kill.PID, err = strconv.Atoi(string(digits(rest)))
	rest = rest[bytes.LastIndex(rest, []byte(") "))+1:] // behind the name, which is anything
	for _, what := range []string{"anon-rss:", "shmem-rss:"} {
		if _, figure, found := bytes.Cut(rest, []byte(what)); found {
			kb, _ := strconv.ParseInt(string(digits(figure)), 10, 52) // 0 when it is none
			kill.Used += kb << 10
		}
	}
	return kill, time.Duration(us) * time.Microsecond, err == nil
}

// digits is the number that a text begins with.
func digits(b []byte) []byte { return b[:len(b)-len(bytes.TrimLeft(b, "0123456789"))] }
