//go:build amd64 || arm64

package inherited

// prlimit asks the kernel for a limit of this process; 0: it answered.
//
//go:noescape
func prlimit(resource uintptr, limit *[2]uint64) (errno uintptr)
