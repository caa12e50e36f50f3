package shim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const sigIgn = 1 // SIG_IGN; SIG_DFL is 0

// ignored are the signals that must not end a shim; those are sent by people and service
// managers who mean something else.
var ignored = [...]unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP}

// inherited are those among them that the shim's starter had ignored already.
var inherited [len(ignored)]bool

// ignoreSignals sets SIG_IGN behind the back of package os/signal, whose first use costs a
// thread and 0.2 ms. Ranks do not inherit it: between fork and exec the Go runtime puts back
// the default of every signal that it had a handler for, and it has one for these, unless
// they were ignored from the start (see [defaultForFork]).
func ignoreSignals() {
	for i, sig := range ignored {
		inherited[i] = sigaction(sig, sigIgn) == sigIgn
	}
}

// defaultForFork makes the signals that the starter had ignored (nohup) default while ranks
// are forked: a script can't trap what it was born to ignore.
func defaultForFork() (restore func()) {
	set := func(handler uintptr) {
		for i, sig := range ignored {
			if inherited[i] {
				sigaction(sig, handler)
			}
		}
	}
	set(0)
	return func() { set(sigIgn) }
}

// sigaction sets a disposition and answers the one before. The kernel's struct begins with
// the handler on every architecture; the rest of it is zero here.
func sigaction(sig unix.Signal, handler uintptr) (old uintptr) {
	var now, before [8]uintptr
	now[0] = handler
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&now)), uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	return before[0]
}
