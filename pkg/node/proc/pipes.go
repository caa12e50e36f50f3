package proc

import (
	"os"
	"strconv"
	"strings"
)

// StdinPipe names the pipe that a process has as its standard input; empty: it has none.
func StdinPipe(pid int) string {
	to, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/0")
	if err != nil || !strings.HasPrefix(to, "pipe:") {
		return ""
	}
	return to
}

// HasSocket reports whether a process has a socket open.
func HasSocket(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(waiterLook)
	for _, name := range names {
		if to, err := os.Readlink(dir + name); err == nil && strings.HasPrefix(to, "socket:") {
			return true
		}
	}
	return false
}

// WritesTo reports whether a process has one of these pipes open for writing.
func WritesTo(pid int, pipes []string) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(waiterLook)
	for _, name := range names {
		to, err := os.Readlink(dir + name)
		if err != nil || !strings.HasPrefix(to, "pipe:") {
			continue
		}
		for _, p := range pipes {
			if st, err := os.Lstat(dir + name); p == to && err == nil && st.Mode()&0o200 != 0 {
				return true
			}
		}
	}
	return false
}
