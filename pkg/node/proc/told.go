package proc

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// blank is the room for the digits of a pid: pid_max is at most 4194304.
const blank = "       "

// ForkExecTold is [syscall.ForkExec] of a process that finds its pid in its environment, in the
// variable name. A pid is known after the fork and an environment is made before the exec, so
// the child is stopped at its first instruction (ptrace), the digits are written over blanks
// that it was started with, and it goes on. A process between the two that sets the variable
// and executes the program was measured to cost 1.2 ms for each; this is a tenth of it.
//
// Where the child can't be traced (a tracer has this process already, seccomp, Yama), and for
// programs that would lose their set-user-id bit or capabilities under a tracer, it is plain
// ForkExec and the variable is left out. The caller must not reap the child meanwhile.
//
// born, which may be nil, is called with the pid before the program's first instruction, or, where the child is not
// traced, right after the fork.
func ForkExecTold(path string, argv []string, attr *syscall.ProcAttr, name string, born func(pid int)) (int, error) {
	plain := *attr
	plain.Env = slices.DeleteFunc(slices.Clone(attr.Env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	untraced := func() (int, error) {
		pid, err := syscall.ForkExec(path, argv, &plain)
		if err == nil && born != nil {
			born(pid)
		}
		return pid, err
	}
	// Whoever becomes a user gains no privileges by what he runs, and its path, which is the user's, is looked at by nobody else.
	if attr.Sys.Credential == nil && elevated(path) {
		return untraced()
	}
	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	told, sys := plain, *attr.Sys
	sys.Ptrace = true
	told.Sys = &sys
	entry := name + "=" + blank
	told.Env = append(slices.Clone(plain.Env), entry)
	pid, err := syscall.ForkExec(path, argv, &told)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		return untraced()
	}
	if err == nil {
		tell(pid, entry, born)
	}
	return pid, err
}

// elevated: the kernel would give the program more rights than its caller has.
func elevated(path string) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return false
	}
	if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		return true
	}
	_, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil
}

// tell writes the pid and lets the child go. It only looks (WNOWAIT): one that is killed
// meanwhile is left to whoever reaps.
func tell(pid int, entry string, born func(pid int)) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT|unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || info.Code != trapped {
			return
		}
		sig := stopSignal(&info)
		if sig == int(unix.SIGTRAP) {
			writePID(pid, entry)
			if born != nil {
				born(pid)
			}
			_ = unix.PtraceDetach(pid)
			return
		}
		// A signal of somebody else's came before that of the exec.
		if unix.PtraceCont(pid, sig) != nil {
			return
		}
	}
}

// trapped is CLD_TRAPPED: a stop of a traced child.
const trapped = 4

// stopSignal is si_status: behind three numbers and their padding, the pid and the uid. It is
// so on every 64-bit Linux.
func stopSignal(info *unix.Siginfo) int {
	return int((*[8]int32)(unsafe.Pointer(info))[6])
}

// writePID writes over the blanks of the last entry. The zero byte behind the digits ends it.
func writePID(pid int, entry string) {
	end, ok := endOfEnv(pid)
	if !ok {
		return
	}
	at := end - uintptr(len(entry)) - 1
	have := make([]byte, len(entry))
	if n, err := unix.PtracePeekData(pid, at, have); err != nil || n != len(have) || string(have) != entry {
		return
	}
	digits := append(strconv.AppendInt(nil, int64(pid), 10), 0)
	_, _ = unix.PtracePokeData(pid, at+uintptr(len(entry)-len(blank)), digits)
}

// endOfEnv is field 51 of proc_pid_stat(5).
func endOfEnv(pid int) (uintptr, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])) // from the third on
	if len(fields) < 49 {
		return 0, false
	}
	n, err := strconv.ParseUint(fields[48], 10, 64)
	return uintptr(n), err == nil && n != 0
}
