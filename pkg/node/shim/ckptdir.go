package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// checkpointEnv names [Spec.CheckpointDir] to the ranks.
const checkpointEnv = "GANG_CHECKPOINT_DIR"

// makeCheckpointDir makes the directory for the job's large state, as the user. A working
// directory that can't be written to is no reason to refuse a job: most never use it, and
// one that does finds out by name when it opens a file there.
func makeCheckpointDir(dir string) {
	for range 4 { // another job's end may remove the directory above in between
		if unix.Mkdir(dir, 0o777) != unix.ENOENT {
			return
		}
		_ = os.MkdirAll(filepath.Dir(dir), 0o777)
	}
}

// emptyFor is how long an empty directory waits for the next member.
const emptyFor = 250 * time.Millisecond

// emptyDir is the directory of a member that ended well and left nothing in it. Under another name it waits a moment
// for the next member of this process that wants one in the same place: a file system makes and removes a
// directory at up to a hundred times the price of a new name. Nothing of a member is in it: its processes are proven gone, and
// what is not just as a new one would be is not used.
type emptyDir struct {
	path string // empty: there is none
}

// keep takes a directory that nobody needs any more, false: it is not empty, or can't be kept.
func (e *emptyDir) keep(dir string, s *Spec) bool {
	if e == nil || e.path != "" || !asNew(dir, s.Umask) {
		return false
	}
	path := filepath.Join(filepath.Dir(dir), fmt.Sprintf(".%s.%d", s.Node, os.Getpid()))
	if unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE) != nil {
		return false
	}
	e.path = path
	return true
}

// give makes it the directory of a member, false: that one has to be made.
func (e *emptyDir) give(dir string, s *Spec) bool {
	if e == nil || e.path == "" {
		return false
	}
	if filepath.Dir(dir) != filepath.Dir(e.path) || !asNew(e.path, s.Umask) ||
		unix.Renameat2(unix.AT_FDCWD, e.path, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE) != nil {
		e.drop()
		return false
	}
	e.path = ""
	return true
}

// drop removes it.
func (e *emptyDir) drop() {
	if e.path != "" {
		removeEmpty(e.path)
		e.path = ""
	}
}

// removeEmpty removes a directory and the one above, as far as they are empty.
func removeEmpty(dir string) {
	if unix.Rmdir(dir) == nil {
		_ = unix.Rmdir(filepath.Dir(dir))
	}
}

// asNew: this user would make the directory as it is.
func asNew(dir string, umask int) bool {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&0o7777 != uint32(0o777&^umask) || int(st.Uid) != unix.Geteuid() || int(st.Gid) != unix.Getegid() {
		return false
	}
	if n, err := unix.Flistxattr(fd, nil); n > 0 || err != nil && err != unix.ENOTSUP {
		return false
	}
	names, ok := entries(fd)
	return ok && names == 0
}

// dropCheckpointDir removes the directory, and the one above, when both are empty and no
// other part of the gang can want it any more: this member is the whole gang, and all of
// its ranks ended well. What a failed or split gang leaves, empty or not, is the user's.
func (m *member) dropCheckpointDir() {
	dir := m.spec.CheckpointDir
	if dir == "" || !m.spec.Whole || len(m.ranks) == 0 || m.mach.Cause() != "" {
		return
	}
	for i := range m.state.Ranks {
		if m.state.Ranks[i].ExitCode != 0 {
			return
		}
	}
	if !m.spec.SwitchUser {
		if !m.empty.keep(dir, m.spec) {
			removeEmpty(dir)
		}
		return
	}
	// Root touches no path of a user.
	sys := &syscall.SysProcAttr{Setsid: true}
	m.credential(sys)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	fd := null.Fd()
	pid, err := syscall.ForkExec("/bin/rmdir", []string{"rmdir", "--", dir, filepath.Dir(dir)},
		&syscall.ProcAttr{Dir: "/", Files: []uintptr{fd, fd, fd}, Sys: sys})
	if err == nil {
		_, _ = waitPID(pid)
	}
}
