// Package limits reads the soft resource limits of this process, and gives such to another one. A limit above what the other
// host allows is cut to that: nothing fails for a limit.
//
// Begin with Own. It must not know which limits travel.
package limits

import (
	"runtime"

	"golang.org/x/sys/unix"

	"gangd/pkg/api/rlimit"
	"gangd/pkg/wire/limits/inherited"
)

// Own is the soft limits that this process was started with.
func Own() rlimit.Soft {
	out := rlimit.Soft{}
	for _, l := range inherited.Limits() {
		switch {
		case !l.Known:
		case l.Soft > 1<<63-1:
			out[l.Name] = rlimit.Unlimited
		default:
			out[l.Name] = int64(l.Soft)
		}
	}
	return out
}

func unsigned(n int64) uint64 {
	if n < 0 {
		return unix.RLIM_INFINITY
	}
	return uint64(n)
}

// Set gives another process these limits, each at most its own hard one; that of processes also at most the soft
// one that it has, which is its job's.
func Set(s rlimit.Soft, pid int) {
	for _, r := range inherited.Limits() {
		n, ok := s[r.Name]
		var l unix.Rlimit
		if !ok || unix.Prlimit(pid, r.Number, nil, &l) != nil {
			continue
		}
		most := l.Max
		if r.Number == unix.RLIMIT_NPROC {
			most = l.Cur
		}
		l.Cur = min(unsigned(n), most)
		_ = unix.Prlimit(pid, r.Number, &l, nil)
	}
}

// Around runs f, which starts a process, with the limit of stack that the process is to have: the kernel lays memory out by it
// when a program begins, which [Set] comes too late for. This process does not feel it.
func Around(s rlimit.Soft, f func()) {
	n, ok := s["STACK"]
	var l unix.Rlimit
	if !ok || unix.Getrlimit(unix.RLIMIT_STACK, &l) != nil {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	wanted := l
	wanted.Cur = min(unsigned(n), l.Max)
	if unix.Setrlimit(unix.RLIMIT_STACK, &wanted) == nil {
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_STACK, &l) }()
	}
	f()
}
