package shim

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkpointEnv names [Spec.CheckpointDir] to the ranks.
const checkpointEnv = "GANG_CHECKPOINT_DIR"

// makeCheckpointDir makes the directory for the job's large state, as the user. A working
// directory that can't be written to is no reason to refuse a job: most never use it, and
// one that does finds out by name when it opens a file there.
func makeCheckpointDir(dir string) {
	if dir == "" {
		return
	}
	for range 4 { // another job's end may remove the directory above in between
		if unix.Mkdir(dir, 0o777) != unix.ENOENT {
			return
		}
		_ = os.MkdirAll(filepath.Dir(dir), 0o777)
	}
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
		if unix.Rmdir(dir) == nil {
			_ = unix.Rmdir(filepath.Dir(dir))
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
