// Package dirlock keeps a state directory to one process.
//
// The lock belongs to an open file: the kernel drops it with the process, however that
// ends. A process that was killed while it waited for the disk holds it until its last
// thread is gone, although ps shows it as defunct already; whoever restarts it at once must
// not be refused for that, so such a holder is waited for. A holder that lives is an error
// at once, by number.
//
// Begin with Take. It must not know what the directory holds.
package dirlock

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a dying holder is waited for: a disk that takes longer over one
// fsync has other troubles.
const patience = 10 * time.Second

// HeldError says that a live process has the directory.
type HeldError struct {
	Dir string
	PID int // 0: not known yet
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return e.Dir + " is in use by another process"
	}
	return fmt.Sprintf("%s is in use by process %d", e.Dir, e.PID)
}

// Open makes dir where it is missing, and those above it, with modes that let others pass whatever the umask says. One that
// is there is left as it is.
func Open(dir string, mode fs.FileMode) error {
	err := os.Mkdir(dir, mode)
	if errors.Is(err, fs.ErrNotExist) {
		if err = Open(filepath.Dir(dir), 0o755); err == nil {
			err = os.Mkdir(dir, mode)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return os.Chmod(dir, mode)
}

// UsersPass is nil when users can pass dir and all above it, by their modes: all users, or those of a group that is neither
// root's nor this process's own, to whom the site leaves it. The error names the uppermost directory that is closed.
func UsersPass(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	var closed error
	for at := real; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Stat(at, &st); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		ofUsers := st.Mode&0o010 != 0 && st.Gid != 0 && int(st.Gid) != os.Getegid()
		if st.Mode&0o001 == 0 && !ofUsers {
			closed = fmt.Errorf("users can't pass %s (mode %04o): chmod o+x %s, or leave it to one group: chgrp GROUP %s && chmod g+x %s", at,
				st.Mode&0o777, at, at, at)
		}
		if at == filepath.Dir(at) {
			return closed
		}
	}
}

// Private makes dir, where it is missing, for its owner alone whatever the umask says, and
// refuses one that others can enter: what lies in it (scripts, environments with keys) is
// nobody else's.
func Private(dir string) error {
	if err := Open(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s can be entered by others (mode %04o), and scripts and environments of jobs lie in it: chmod 0700 %s", dir, mode,
			dir)
	}
	return nil
}

// Take locks dir, which must exist, by the file "lock" in it. Closing the file gives the
// lock back. A [*HeldError] when a live process has it.
func Take(dir string) (*os.File, error) { return lock(filepath.Join(dir, "lock"), dir) }

// TakeFile locks something else than a directory, by a file of its own. Its directory must be one in which
// nobody else can make files.
func TakeFile(name string) (*os.File, error) { return lock(name, name) }

func lock(name, what string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := take(f, what); err != nil {
		_ = f.Close()
		return nil, err
	}
	// The number tells a dying holder from a living one, and people whom to ask.
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		if err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}

func take(f *os.File, dir string) error {
	for give := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		pid := holder(f.Name())
		if alive(pid) || time.Now().After(give) {
			return &HeldError{Dir: dir, PID: pid}
		}
	}
}

// Holder is the process that has the lock of dir, 0 when nobody has.
func Holder(dir string) (pid int, err error) {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case err == nil: // given back with the file
		return 0, nil
	case !errors.Is(err, unix.EWOULDBLOCK):
		return 0, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return holder(f.Name()), nil
}

// holder is the process that wrote its number into the lock file, 0 when none did yet.
func holder(name string) int {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// alive is false for a process that is gone or whose first thread is: what is left of it
// only has to finish dying. An unknown holder may be one that has just come.
func alive(pid int) bool {
	if pid == 0 {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	return len(f) > 0 && f[0][0] != 'Z' && f[0][0] != 'X'
}
