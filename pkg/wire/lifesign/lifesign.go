package lifesign

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// unwatched is the pace of a loop that nobody watches.
	unwatched = time.Hour
	// extension is what a start asks for on top of now when it makes progress.
	extension = time.Minute
	// extendEvery bounds how often it asks.
	extendEvery = 5 * time.Second
	// mostUsec is the longest watchdog that is believed: beyond it a Duration would overflow.
	mostUsec = int64(24 * time.Hour / time.Microsecond)
)

// Signs is a daemon's line to its service manager. Methods of a nil Signs do nothing.
type Signs struct {
	socket string        // empty: nobody listens
	every  time.Duration // without a beat for so long the daemon is killed; 0: it is not watched

	mu       sync.Mutex
	loops    []*Loop
	last     time.Time // of the last beat
	extended time.Time
}

// New reads the environment, and takes the variables out of it: they are this process's and
// not its children's. A value that can't be read is an error, because a daemon that goes
// without beats would be killed again and again without a word why.
func New() (*Signs, error) {
	s, err := parse(os.Getenv, os.Getpid())
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(name) // fails for names that are none
	}
	return s, err
}

func parse(getenv func(string) string, self int) (*Signs, error) {
	s := &Signs{socket: getenv("NOTIFY_SOCKET")}
	if s.socket != "" && s.socket[0] != '/' && s.socket[0] != '@' {
		return nil, fmt.Errorf("NOTIFY_SOCKET=%s: want an absolute path, or an abstract name that begins with @", s.socket)
	}
	usec := getenv("WATCHDOG_USEC")
	if usec == "" {
		return s, nil
	}
	n, err := strconv.ParseInt(usec, 10, 64)
	if err != nil || n <= 0 || n > mostUsec {
		return nil, fmt.Errorf("WATCHDOG_USEC=%s: want microseconds, 1 to %d", usec, mostUsec)
	}
	if pid := getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(self) {
		return s, nil // somebody else is watched
	}
	s.every = time.Duration(n) * time.Microsecond
	return s, nil
}

// Ready says that the daemon answers.
func (s *Signs) Ready() { s.send("READY=1") }

// Stopping says that it ends: its loops may end, and beats are not due any more.
func (s *Signs) Stopping() { s.send("STOPPING=1") }

// Progress says that a start goes on, and asks for more time for it.
func (s *Signs) Progress() {
	if s == nil || s.socket == "" {
		return
	}
	now := time.Now()
	s.mu.Lock()
	due := now.Sub(s.extended) >= extendEvery
	if due {
		s.extended = now
	}
	s.mu.Unlock()
	if due {
		s.send(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extension.Microseconds()))
	}
}

// Loop makes known a loop that must go round from now on.
func (s *Signs) Loop() *Loop {
	if s == nil {
		return nil
	}
	l := &Loop{signs: s}
	s.mu.Lock()
	s.loops = append(s.loops, l)
	s.mu.Unlock()
	return l
}

// Loop is one loop that a daemon can't do without. Methods of a nil Loop do nothing.
type Loop struct {
	signs *Signs
	// Under signs.mu.
	round bool      // since the last beat
	until time.Time // it waits for somebody else
}

// Pace is how often at least the loop has to go round, also when there is nothing to do.
func (l *Loop) Pace() time.Duration {
	if l == nil || l.signs.every == 0 {
		return unwatched
	}
	// A beat waits for the slowest of the loops, at most two paces: half of the time is left.
	return max(l.signs.every/4, time.Millisecond)
}

// Round says that the loop went round.
func (l *Loop) Round() { l.at(time.Now(), 0) }

// Away says that the loop went round and now waits for somebody else, which it gives up
// within the time. What makes it give up must not be the loop itself.
func (l *Loop) Away(within time.Duration) { l.at(time.Now(), within) }

func (l *Loop) at(now time.Time, away time.Duration) {
	if l == nil || l.signs.every == 0 {
		return
	}
	s := l.signs
	s.mu.Lock()
	defer s.mu.Unlock()
	l.round, l.until = true, now.Add(away)
	if now.Sub(s.last) < l.Pace()/2 { // a busy loop goes round thousands of times a second
		return
	}
	for _, other := range s.loops {
		if !other.round && !now.Before(other.until) {
			return
		}
	}
	for _, other := range s.loops {
		other.round = false
	}
	s.last = now
	s.send("WATCHDOG=1")
}

// send never waits: a service manager that is stopped itself must not stop its daemons.
func (s *Signs) send(state string) {
	if s == nil || s.socket == "" {
		return
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return // short of descriptors: the next sign tries again
	}
	defer unix.Close(fd)
	// x/sys takes a leading @ for the abstract name space, as sd_notify does.
	_ = unix.Sendto(fd, []byte(state), unix.MSG_NOSIGNAL, &unix.SockaddrUnix{Name: s.socket})
}
