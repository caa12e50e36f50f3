package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A text stands behind a file once, on lines of its own, and is never what makes the file.
func TestAppendLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	if err := AppendLog(path, []byte("used\n")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for before, want := range map[string]string{"": "used\n", "a\n": "a\nused\n", "no end": "no end\nused\n"} {
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := AppendLog(path, []byte("used\n")); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("%q became %q", before, got)
		}
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{fifo, "/dev/null"} {
		if err := AppendLog(p, []byte("used\n")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// Where there is no room for all of it, nothing of it stays.
func TestAppendLogWithoutRoom(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounts a small disk: root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skip(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	path := filepath.Join(dir, "log")
	before := strings.Repeat("x", 10_000) + "\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := AppendLog(path, []byte(strings.Repeat("used ", 4000)+"\n")); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != before {
		t.Errorf("%d bytes of %d are there", len(got), len(before))
	}
}
