package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// keepSpares are always there: a gang on an idle node finds a shim that runs already.
	keepSpares = 2
	// mostSpares wait at a time. One costs 3 MB, 0.7 MB of them its own.
	mostSpares = 8
	// surplusFor is how long more than keepSpares may wait for the next burst.
	surplusFor = 10 * time.Second
	// refillAfter keeps the start of a spare away from the start of the member that made it
	// necessary, and lets one that comes back meanwhile save it.
	refillAfter = 100 * time.Millisecond
	// takeWait is how long a process may take to make the member's socket, which is the
	// first thing it does. One that takes longer is killed and another one started.
	takeWait = 2 * time.Second
	// leaveWait is how long one that is not needed may take to end.
	leaveWait = 2 * time.Second
)

// Pool starts shims, and keeps the processes of members that are over for the next ones.
// Its methods may be called from any goroutine.
type Pool struct {
	path, state string
	keep        int // always there

	mu      sync.Mutex
	idle    []*process // longest idle first
	refill  *time.Timer
	surplus *time.Timer
	closed  bool
	readers sync.WaitGroup
}

// NewPool makes a pool of shims of the program at path for members below the state
// directory, which names the processes to people and to those who look for them.
func NewPool(path, state string) *Pool {
	p := &Pool{path: path, state: state, keep: keepSpares}
	p.refill = time.AfterFunc(time.Hour, p.fill)
	p.refill.Stop()
	p.surplus = time.AfterFunc(time.Hour, p.drop)
	p.surplus.Stop()
	return p
}

// Warm starts the first spares in the background.
func (p *Pool) Warm() { p.refill.Reset(0) }

// Start makes the member's directory, writes spec and script, and gives it to a shim. The
// first answer is the state ready or refused. After an error the directory may be there.
func (p *Pool) Start(spec *Spec, script []byte) (*Conn, error) {
	if err := makeDir(spec, script); err != nil {
		return nil, err
	}
	line, err := json.Marshal(Command{Serve: spec.Dir})
	if err != nil {
		return nil, fmt.Errorf("command to the shim in %s: %w", spec.Dir, err)
	}
	for {
		proc := p.take()
		if proc == nil {
			if proc, err = p.spawn(); err != nil {
				return nil, err
			}
		}
		c := &Conn{Dir: spec.Dir, PID: proc.pid, file: proc.file, answers: make(chan Answer, 16), closed: make(chan struct{})}
		c.patience = time.AfterFunc(takeWait, func() { proc.killUnstarted(c) })
		if proc.assign(c) {
			// An error shows as the end of the answers to come.
			_, _ = proc.file.Write(append(line, '\n'))
			return c, nil
		}
		c.patience.Stop() // it died in the pool
	}
}

// Close ends the processes that wait. Connections must have been closed before.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, proc := range idle {
		proc.leave()
	}
	p.readers.Wait()
}

// take gives the process that waited for the shortest time, whose memory is the warmest.
func (p *Pool) take() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) <= p.keep && !p.closed {
		p.refill.Reset(refillAfter)
	}
	if len(p.idle) == 0 {
		return nil
	}
	last := len(p.idle) - 1
	proc := p.idle[last]
	p.idle = p.idle[:last]
	return proc
}

// put keeps a process that waits, false when there are enough.
func (p *Pool) put(proc *process) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= mostSpares {
		return false
	}
	proc.since = time.Now()
	p.idle = append(p.idle, proc)
	if len(p.idle) == p.keep+1 {
		p.surplus.Reset(surplusFor)
	}
	return true
}

func (p *Pool) remove(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = slices.DeleteFunc(p.idle, func(other *process) bool { return other == proc })
}

// fill starts what lacks. A program that can't be started is not tried again before the
// next member comes, which then says why.
func (p *Pool) fill() {
	for {
		p.mu.Lock()
		enough := p.closed || len(p.idle) >= p.keep
		p.mu.Unlock()
		if enough {
			return
		}
		proc, err := p.spawn()
		if err != nil {
			return
		}
		if !p.put(proc) {
			proc.kill()
		}
	}
}

// drop ends what has waited long enough.
func (p *Pool) drop() {
	var over []*process
	p.mu.Lock()
	for len(p.idle) > p.keep && time.Since(p.idle[0].since) >= surplusFor {
		over = append(over, p.idle[0])
		p.idle = p.idle[1:]
	}
	if len(p.idle) > p.keep && !p.closed {
		p.surplus.Reset(surplusFor - time.Since(p.idle[0].since))
	}
	p.mu.Unlock()
	for _, proc := range over {
		proc.kill()
	}
}

// labelRoom is what the label of a serving process may take: job.epoch.
const labelRoom = 24

func (p *Pool) spawn() (*process, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errors.New("start shim: the pool is closed")
	}
	p.readers.Add(1) // before Close waits for them
	p.mu.Unlock()
	file, pid, err := launch(p.path, "spare", p.state, strings.Repeat(" ", labelRoom))
	if err != nil {
		p.readers.Done()
		return nil, err
	}
	proc := &process{pool: p, file: file, pid: pid}
	go proc.read()
	return proc, nil
}

// process is a running `gshim spare`. Its reader is the one who waits for it.
type process struct {
	pool  *Pool
	file  *os.File
	pid   int
	since time.Time // idle; guarded by the pool

	mu     sync.Mutex
	conn   *Conn // that it serves
	ended  bool  // its stream has
	reaped bool
}

// assign makes c the one whom it serves, false when it is dead.
func (s *process) assign(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.conn = c
	return true
}

func (s *process) serves() *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// leave lets one that waits tidy up, and end. It is killed where it does not.
func (s *process) leave() {
	_ = s.file.Close()
	time.AfterFunc(leaveWait, s.kill)
}

// kill ends it at once. One that waits holds nothing that could be lost.
func (s *process) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reaped {
		_ = unix.Kill(s.pid, unix.SIGKILL)
	}
}

// killUnstarted kills a process that has not begun with its member.
func (s *process) killUnstarted(c *Conn) {
	if s.serves() == c && !Begun(c.Dir) {
		s.kill()
	}
}

// Begun tells whether a shim has touched the member.
func Begun(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, SocketFile))
	return err == nil
}

// read owns the stream, and through it the answers of the members that are served.
func (s *process) read() {
	defer s.pool.readers.Done()
	dec := json.NewDecoder(s.file)
	for {
		var a Answer
		if err := dec.Decode(&a); err != nil {
			break
		}
		c := s.serves()
		switch {
		case c == nil: // one that waits says nothing
		case a.Spare:
			s.release(c)
		default:
			if !c.heard {
				c.heard = true
				c.patience.Stop()
			}
			c.deliver(a)
		}
	}
	s.end()
}

// release gives the process back before the answers end, so that who waits for that finds
// it in the pool.
func (s *process) release(c *Conn) {
	c.detach()
	s.mu.Lock()
	s.conn = nil
	s.mu.Unlock()
	if !s.pool.put(s) {
		s.leave()
	}
	close(c.answers)
}

// end is the process's exit, or that of the caller: see [Conn.Close].
func (s *process) end() {
	s.mu.Lock()
	c := s.conn
	s.ended = true
	s.mu.Unlock()
	s.pool.remove(s)
	if c != nil {
		c.patience.Stop()
		if c.isClosed() {
			close(c.answers)
			return
		}
	}
	s.reap()
	_ = s.file.Close()
	if c != nil {
		s.pool.again(c)
	}
}

// reap waits without the lock and reaps with it: kill must be able to end the wait, and
// must not signal a pid that is somebody else's by then.
func (s *process) reap() {
	for {
		if err := unix.Waitid(unix.P_PID, s.pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = waitPID(s.pid)
	s.reaped = true
}

// again starts a shim of its own for a member whose process ended before it began with it.
func (p *Pool) again(c *Conn) {
	c.detach()
	if c.heard || Begun(c.Dir) {
		close(c.answers)
		return
	}
	file, pid, err := launch(p.path, c.Dir)
	if err != nil || !c.adopt(file, pid) {
		close(c.answers)
		return
	}
	c.read()
}
