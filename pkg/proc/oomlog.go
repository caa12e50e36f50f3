package proc

import (
	"bytes"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// OOMKilled reports whether the kernel's log says that one of these processes was killed for
// want of memory within the last while. It is the last resort where no cgroup counts: a log
// that may not be read (dmesg_restrict) says nothing.
func OOMKilled(pids []int, within time.Duration) bool {
	fd, err := openRetry("/dev/kmsg", syscall.O_RDONLY|syscall.O_NONBLOCK)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return false
	}
	since := time.Duration(now.Nano()) - within
	buf := make([]byte, 8<<10) // one record a read; the kernel's are at most 1 KiB and some
	for {
		n, err := syscall.Read(fd, buf)
		switch {
		case err == syscall.EPIPE || err == syscall.EINTR: // records were overwritten meanwhile
			continue
		case err != nil || n <= 0:
			return false
		}
		if pid, at, ok := parseOOM(buf[:n]); ok && at >= since {
			for _, p := range pids {
				if p == pid {
					return true
				}
			}
		}
	}
}

// parseOOM reads "6,1234,5678901,-;Memory cgroup out of memory: Killed process 42 (python) ...":
// the third field is microseconds since boot.
func parseOOM(record []byte) (pid int, at time.Duration, ok bool) {
	head, text, ok := bytes.Cut(record, []byte(";"))
	if !ok {
		return 0, 0, false
	}
	reason, rest, ok := bytes.Cut(text, []byte("Killed process "))
	if !ok || !bytes.Contains(bytes.ToLower(reason), []byte("out of memory")) {
		return 0, 0, false
	}
	fields := bytes.Split(head, []byte(","))
	if len(fields) < 3 {
		return 0, 0, false
	}
	us, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0, 0, false
	}
	digits := rest[:len(rest)-len(bytes.TrimLeft(rest, "0123456789"))]
	pid, err = strconv.Atoi(string(digits))
	return pid, time.Duration(us) * time.Microsecond, err == nil
}
