package proc

import (
	"bytes"
	"os"
	"slices"
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

// Watches reports whether a process has one of these paths open, or is told by inotify of what changes in the
// directory with that number.
func Watches(pid int, paths []string, inode uint64) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	f, err := os.Open(dir + "fd")
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(waiterLook)
	watch := []byte(" ino:" + strconv.FormatUint(inode, 16) + " ")
	for _, name := range names {
		to, err := os.Readlink(dir + "fd/" + name)
		switch {
		case err != nil:
		case slices.Contains(paths, to):
			return true
		case to == "anon_inode:inotify":
			if b, err := os.ReadFile(dir + "fdinfo/" + name); err == nil && bytes.Contains(b, watch) {
				return true
			}
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
