package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is as whom it is found out what users can do: he has nothing of his own.
const nobody = 65534

// Passable is nil when users can pass a directory and all above it, who are in these groups or in none. It is
// tried as one of them; without root it is not known. The error names the first directory that they can't pass,
// with the command that mends it.
func Passable(dir string, groups []uint32) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if anybody(groups, func() error { return passes(dir) }) == nil {
		return nil
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	at := "/"
	for _, name := range strings.Split(path, "/") {
		at = filepath.Join(at, name)
		err := anybody(groups, func() error { return passes(at) })
		if err == nil {
			continue
		}
		if real, e := filepath.EvalSymlinks(at); e == nil && real != at {
			return Passable(real, groups) // it is closed where the link leads
		}
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("users can't pass %s%s: chmod o+x %s", at, modeOf(at), at)
		}
		return fmt.Errorf("users can't pass %s: %w", at, err)
	}
	return nil // it was opened meanwhile
}

func anybody(groups []uint32, f func() error) error {
	return AsUser(&syscall.Credential{Uid: nobody, Gid: nobody, Groups: groups}, f)
}

// passes: the last name is looked up in the directory itself.
func passes(dir string) error {
	fd, err := unix.Open(dir+"/.", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// RunsForUsers is [Passable] of a program, which they can run as well.
func RunsForUsers(path string, groups []uint32) error {
	if os.Geteuid() != 0 {
		return nil
	}
	err := anybody(groups, func() error { return unix.Faccessat2(unix.AT_FDCWD, path, unix.R_OK|unix.X_OK, unix.AT_EACCESS) })
	if err == nil || errors.Is(err, unix.ENOSYS) { // a kernel before 5.8
		return nil
	}
	if err := Passable(filepath.Dir(path), groups); err != nil {
		return err
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("users can't run %s%s: chmod o+rx %s", path, modeOf(path), path)
	}
	return fmt.Errorf("users can't run %s: %w", path, err)
}

func modeOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (mode %04o)", info.Mode().Perm())
}
