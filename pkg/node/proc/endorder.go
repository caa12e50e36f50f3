package proc

import (
	"bytes"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// EndOrder tells which of several children ended first. What wait(2) gives is in the order of the starts; an epoll lists
// what became ready in the order in which it did.
type EndOrder struct {
	FD    int    // of the epoll, which is readable when one has ended; -1: there is none
	stat  int    // /proc/thread-self/schedstat, open; -1: there is none
	ready []int  // children that have ended, first to last, and were not asked for
	spent uint64 // for how long this thread was kept waiting for a CPU, when it last went to sleep, in nanoseconds
}

// NewEndOrder is one of no children.
func NewEndOrder() EndOrder { return EndOrder{FD: -1, stat: -1} }

// Add begins to watch a child, which its caller knows by a number, by its pidfd: -1 where there is none. It is watched
// until that is closed.
func (o *EndOrder) Add(child, pidfd int) {
	if pidfd < 0 {
		return
	}
	if o.FD < 0 {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return // SIGCHLD ends the poll all the same
		}
		o.FD = fd
	}
	_ = unix.EpollCtl(o.FD, unix.EPOLL_CTL_ADD, pidfd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(child)})
}

// Next is the child that ended first of those that were not given yet, -1: none is known.
func (o *EndOrder) Next() int {
	if len(o.ready) == 0 && o.FD >= 0 {
		var events [64]unix.EpollEvent
		n, _ := unix.EpollWait(o.FD, events[:], 0)
		for i := range max(n, 0) {
			o.ready = append(o.ready, int(events[i].Fd))
		}
	}
	if len(o.ready) == 0 {
		return -1
	}
	child := o.ready[0]
	o.ready = o.ready[1:]
	return child
}

// Sleeps is said before this thread waits, Late after it: for so long it could run and was not let, so that
// something that it sees now may have happened as much earlier.
func (o *EndOrder) Sleeps() {
	if o.stat < 0 && o.FD >= 0 {
		if fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			o.stat = fd
		}
	}
	o.spent = o.waited()
}

// Late is said by the thread that says Sleeps, always the same.
func (o *EndOrder) Late() time.Duration {
	if now := o.waited(); now > o.spent {
		return time.Duration(now - o.spent)
	}
	return 0
}

// waited reads "on the CPU, waiting for it, slices".
func (o *EndOrder) waited() uint64 {
	if o.stat < 0 {
		return 0
	}
	var buf [80]byte
	n, err := unix.Pread(o.stat, buf[:], 0)
	if f := bytes.Fields(buf[:max(n, 0)]); err == nil && len(f) > 1 {
		v, _ := strconv.ParseUint(string(f[1]), 10, 64)
		return v
	}
	return 0
}

// Close lets go of what it has open, but not of the pidfds.
func (o *EndOrder) Close() {
	for _, fd := range []int{o.FD, o.stat} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	*o = EndOrder{FD: -1, stat: -1}
}
