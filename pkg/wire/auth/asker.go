package auth

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// AskerOf names a process of this machine by its credentials.
func AskerOf(cred *unix.Ucred) api.Asker {
	if cred.Pid <= 0 { // of another namespace of processes
		return api.Asker{}
	}
	return api.Asker{PID: int(cred.Pid), Boot: bootID()}
}

// mostAbove bounds what is said of the ancestors of a process, in bytes; those that are nearest count.
const mostAbove = 256

// WithAncestors adds who is above a process now.
func WithAncestors(a api.Asker) api.Asker {
	var above []string
	length := 0
	for pid := parentOf(a.PID); pid > 1; pid = parentOf(pid) {
		text := strconv.Itoa(pid)
		if length += len(text) + 1; length > mostAbove {
			break
		}
		above = append(above, text)
	}
	a.Above = strings.Join(above, " ")
	return a
}

// parentOf reads "pid (comm) S ppid ...", 0: there is no such process.
func parentOf(pid int) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if pid <= 0 || err != nil {
		return 0
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(string(f[1]))
	return n
}
