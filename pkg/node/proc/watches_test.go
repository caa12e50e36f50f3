package proc

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Who has the directory or the file open watches it, and who is told by the kernel; who looks elsewhere does not.
func TestWatches(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "status")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	watches := func(want bool, what string) {
		t.Helper()
		if got := Watches(os.Getpid(), []string{dir, file}, st.Ino); got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
	told := func(path string) int {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.InotifyAddWatch(fd, path, unix.IN_CREATE); err != nil {
			t.Fatal(err)
		}
		return fd
	}
	elsewhere := told(other)
	defer unix.Close(elsewhere)
	watches(false, "another directory")
	for _, path := range []string{dir, file} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		watches(true, path+" is open")
		_ = f.Close()
	}
	watches(false, "closed")
	here := told(dir)
	watches(true, "told by the kernel")
	_ = unix.Close(here)
	watches(false, "told no more")
	if Watches(1<<30, []string{dir}, st.Ino) {
		t.Error("a process that is not there watches")
	}
}
