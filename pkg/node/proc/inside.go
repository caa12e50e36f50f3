package proc

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// What can be seen of a process from its system call: the one that it is in, or that it has just returned from where it is frozen.

// inCall is the number of a process's system call and the first two arguments; -1: it is in none, or may not be read.
func inCall(pid int) (number int, args [2]int64) {
	var buf [256]byte
	f := bytes.Fields(buf[:readFile("/proc/"+strconv.Itoa(pid)+"/syscall", buf[:])])
	if len(f) < 3 {
		return -1, args
	}
	number, err := strconv.Atoi(string(f[0]))
	if err != nil {
		return -1, args
	}
	for i := range args {
		args[i], _ = strconv.ParseInt(string(f[i+1]), 0, 64)
	}
	return number, args
}

// peek reads a process's memory; nil: not all of it, or not soon.
func peek(pid int, at int64, size int) []byte {
	return soon(pid, peekTime, func() []byte {
		fd, err := openRetry("/proc/"+strconv.Itoa(pid)+"/mem", syscall.O_RDONLY)
		if err != nil {
			return nil
		}
		defer syscall.Close(fd)
		to := make([]byte, size)
		if n, err := syscall.Pread(fd, to, at); n != size || err != nil {
			return nil
		}
		return to
	})
}

// awaited are the signals that a process waits for in rt_sigtimedwait, which sigwait is made of.
func awaited(pid int) uint64 {
	if number, args := inCall(pid); number == unix.SYS_RT_SIGTIMEDWAIT {
		if set := peek(pid, args[0], 8); set != nil {
			return binary.NativeEndian.Uint64(set)
		}
	}
	return 0
}

// ProgramFailed reports whether what a shell has run last may not have ended well, where the shell has not acted on that yet. A
// program that is on its way out counts: its files are closed by then, which its peers may see before it is let to end. So does
// one that the shell has waited for just now, with nothing else left: how it ended stands where wait4 has put it.
func ProgramFailed(shell int) bool {
	var buf [4096]byte
	name := strconv.Itoa(shell)
	children := bytes.Fields(buf[:readFile("/proc/"+name+"/task/"+name+"/children", buf[:])])
	if len(children) > 0 {
		return slices.ContainsFunc(children, func(child []byte) bool {
			s, ok := ReadStat(atoi(child))
			return ok && s.Exit != 0
		})
	}
	if s, ok := ReadStat(shell); !ok || !s.Waited {
		return false
	}
	if number, args := inCall(shell); number == unix.SYS_WAIT4 && args[1] != 0 {
		if status := peek(shell, args[1], 4); status != nil {
			return binary.NativeEndian.Uint32(status) != 0
		}
	}
	return true
}
