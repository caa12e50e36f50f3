//go:build !amd64 && !arm64

package inherited

import "syscall"

// prlimit asks for a limit of this process; 0: it was answered. That of open files is the raised one here.
func prlimit(resource uintptr, limit *[2]uint64) (errno uintptr) {
	var l syscall.Rlimit
	if syscall.Getrlimit(int(resource), &l) != nil {
		return 1
	}
	limit[0], limit[1] = uint64(l.Cur), uint64(l.Max)
	return 0
}
