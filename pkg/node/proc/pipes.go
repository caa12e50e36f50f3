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

// anyOpen reports whether fn holds for one of the first [waiterLook] files that a process has open: its path below /proc, and
// what it leads to.
func anyOpen(pid int, fn func(path, to string) bool) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(waiterLook)
	return slices.ContainsFunc(names, func(name string) bool {
		to, err := os.Readlink(dir + name)
		return err == nil && fn(dir+name, to)
	})
}

// HasSocket reports whether a process has a socket open.
func HasSocket(pid int) bool {
	return anyOpen(pid, func(_, to string) bool { return strings.HasPrefix(to, "socket:") })
}

// Watches reports whether a process has one of these paths open, or is told by inotify of what changes in the
// directory with that number.
func Watches(pid int, paths []string, inode uint64) bool {
	watch := []byte(" ino:" + strconv.FormatUint(inode, 16) + " ")
	return anyOpen(pid, func(path, to string) bool {
		if to != "anon_inode:inotify" {
			return slices.Contains(paths, to)
		}
		b, err := os.ReadFile(strings.Replace(path, "/fd/", "/fdinfo/", 1))
		return err == nil && bytes.Contains(b, watch)
	})
}

// WritesTo reports whether a process has one of these pipes open for writing.
func WritesTo(pid int, pipes []string) bool {
	return anyOpen(pid, func(path, to string) bool {
		if !slices.Contains(pipes, to) {
			return false
		}
		st, err := os.Lstat(path)
		return err == nil && st.Mode()&0o200 != 0
	})
}
