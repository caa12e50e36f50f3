package session

import (
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownBeats bounds for how many heartbeats in a row a silence may be laid to this process and not to the peer: with
// [SilentBeats] they are 30, after which a node would be lost by default. A process that does not get to
// its lines for so long is no better than one that hangs.
const ownBeats = 27

// silence tells a peer that says nothing from one that this process does not get to hear. It judges by what it is
// told and has no clock.
type silence struct {
	patience time.Duration // SilentBeats heartbeats
	heard    time.Time     // the last sign of the peer
	due      time.Time     // when it is looked at
	own      int           // looks in a row that found the delay to be this process's own
}

func (s *silence) sign(now time.Time) { s.heard, s.own = now, 0 }

// look judges at a time. held says whether what the peer has said was not all read, and is asked only where it matters. It gives how long
// to wait for the next
// look; 0: the peer is silent.
//
// A dead peer is found when patience is over, as long as this process runs: nothing of it waits then, and the look comes in time.
func (s *silence) look(now time.Time, held func() bool) time.Duration {
	beat := s.patience / SilentBeats
	wait := s.heard.Add(s.patience).Sub(now)
	if wait <= 0 {
		// A look that comes late tells that this process did not run; what its peer on the same machine would
		// have said it could not say either.
		late := now.Sub(s.due) >= beat
		if s.own >= ownBeats || !late && !held() {
			return 0
		}
		s.own++
		wait = beat
	}
	s.due = now.Add(wait)
	return wait
}

// longest is after how long at most a dead peer is found, while this process runs.
func (s *silence) longest() time.Duration { return s.patience + ownBeats*s.patience/SilentBeats }

// watchdog looks by a timer whether a peer is silent.
type watchdog struct {
	held func() bool // what the peer has said was not all read
	bark func()      // the peer is silent

	mu      sync.Mutex
	silence silence
	timer   *time.Timer // nil: it was never started
	on      bool
}

// start begins to count, and ends what was counted before.
func (d *watchdog) start(patience time.Duration) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silence = silence{patience: patience, heard: now, due: now.Add(patience)}
	d.on = true
	if d.timer == nil {
		d.timer = time.AfterFunc(patience, d.look)
		return
	}
	d.timer.Reset(patience)
}

func (d *watchdog) sign() {
	now := time.Now()
	d.mu.Lock()
	d.silence.sign(now)
	d.mu.Unlock()
}

// longest is [silence.longest].
func (d *watchdog) longest() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.silence.longest()
}

func (d *watchdog) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on = false
	if d.timer != nil {
		d.timer.Stop()
	}
}

func (d *watchdog) look() {
	d.mu.Lock()
	silent := false
	if d.on {
		if wait := d.silence.look(time.Now(), d.held); wait > 0 {
			d.timer.Reset(wait)
		} else {
			d.on, silent = false, true
		}
	}
	d.mu.Unlock()
	if silent {
		d.bark()
	}
}

// hungUp says whether the peer of a connection has closed it, whatever of it is still to be read.
func hungUp(conn syscall.Conn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	const gone = unix.POLLRDHUP | unix.POLLHUP | unix.POLLERR
	found := false
	_ = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		found = err == nil && n > 0 && p[0].Revents&gone != 0
	})
	return found
}

// unread says whether bytes that have come lie in the kernel's buffer of a connection, where they wait for this process.
func unread(conn syscall.Conn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	if err := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCINQ) }); err != nil {
		return false
	}
	return err == nil && n > 0
}
