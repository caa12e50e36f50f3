package shim

import (
	"bytes"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// endOrder tells which of several ranks ended first. What wait(2) gives is in the order of the starts; an epoll lists
// what became ready in the order in which it did.
type endOrder struct {
	fd    int    // of the epoll, -1: there is no rank
	stat  int    // /proc/thread-self/schedstat, open; -1: there is none
	ready []int  // ranks that have ended, first to last, and were not asked for
	spent uint64 // for how long this thread was kept waiting for a CPU, when it last went to sleep, in nanoseconds
}

func newEndOrder() endOrder { return endOrder{fd: -1, stat: -1} }

// add begins to watch a rank by its pidfd, which is -1 where there is none.
func (o *endOrder) add(rank, pidfd int) {
	if pidfd < 0 {
		return
	}
	if o.fd < 0 {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return // SIGCHLD ends the poll all the same
		}
		o.fd = fd
		if fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			o.stat = fd
		}
	}
	_ = unix.EpollCtl(o.fd, unix.EPOLL_CTL_ADD, pidfd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(rank)})
}

// next is the rank that ended first of those that were not given yet, -1: none is known.
func (o *endOrder) next() int {
	if len(o.ready) == 0 && o.fd >= 0 {
		var events [64]unix.EpollEvent
		n, _ := unix.EpollWait(o.fd, events[:], 0)
		for i := range max(n, 0) {
			o.ready = append(o.ready, int(events[i].Fd))
		}
	}
	if len(o.ready) == 0 {
		return -1
	}
	rank := o.ready[0]
	o.ready = o.ready[1:]
	return rank
}

// sleeps is said before this thread waits, late after it: for so long it could run and was not let, so that
// something that it sees now may have happened as much earlier.
func (o *endOrder) sleeps() { o.spent = o.waited() }

func (o *endOrder) late() time.Duration {
	if now := o.waited(); now > o.spent {
		return time.Duration(now - o.spent)
	}
	return 0
}

// waited reads "on the CPU, waiting for it, slices".
func (o *endOrder) waited() uint64 {
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

func (o *endOrder) close() {
	for _, fd := range []int{o.fd, o.stat} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	*o = endOrder{fd: -1, stat: -1}
}
