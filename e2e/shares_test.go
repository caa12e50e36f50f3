package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/e2e/tally"
)

// late is how much later than on a quiet site another user's submission may be answered in these
// tests: ten times what is promised, because the crowd works on the same machine.
const late = time.Second

// crowd is a user with many connections to gangd's socket.
type crowd struct {
	socket string
	ask    chan chan net.Conn
	ctx    context.Context
	open   []net.Conn
}

// newCrowd dials as somebody else: the kernel records the thread's user who connects.
func newCrowd(t *testing.T, p *person) *crowd {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{socket: filepath.Join(p.dir, "run", "gangd.sock"), ask: make(chan chan net.Conn), ctx: ctx}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		keep := ^uintptr(0)
		_, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(p.cred.Uid), keep)
		for {
			select {
			case out := <-c.ask:
				if e != 0 {
					out <- nil
					continue
				}
				out <- dialUnix(c.socket)
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		for _, conn := range c.open {
			_ = conn.Close()
		}
	})
	return c
}

func dialUnix(path string) net.Conn {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil || unix.Connect(fd, &unix.SockaddrUnix{Name: path}) != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil
	}
	return conn
}

func (c *crowd) dial(context.Context, string, string) (net.Conn, error) {
	out := make(chan net.Conn)
	select {
	case c.ask <- out:
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
	if conn := <-out; conn != nil {
		return conn, nil
	}
	return nil, fmt.Errorf("no connection")
}

// hold keeps a connection on which something was sent, and never reads it.
func (c *crowd) hold(conn net.Conn, send string) {
	c.open = append(c.open, conn)
	_, _ = io.WriteString(conn, send)
}

// timed is how long the slowest but one in a hundred of a person's submissions takes.
func timed(p *person, n int) time.Duration {
	p.s.t.Helper()
	var took []time.Duration
	for range n {
		began := time.Now()
		p.must("gsubmit", "-H", "--wrap", "true")
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	p.s.t.Logf("%s: %d submissions: median %v, p99 %v, longest %v", p.name, n, took[n/2], took[n*99/100-1], took[n-1])
	return took[n*99/100-1]
}

// sockets counts the connections that a process has open.
func sockets(pid int) (n int) {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// TestManyConnectionsFewDescriptors: 3,000 connections of strangers and of one user who say
// nothing, stop in the middle or stay, to a gangd with 1,024 descriptors. Users are answered, the
// node stays, and all of them are gone when their time is up.
func TestManyConnectionsFewDescriptors(t *testing.T) {
	t.Parallel()
	needRoot(t)
	chaos(t)
	s := startSite(t, nil)
	s.kill("gangd", syscall.SIGTERM)
	s.spawn("gangd", "/bin/sh", nil, "-c", fmt.Sprintf("ulimit -n 1024 && exec %s/gangd --config %s/gangd.toml", s.bin, s.dir))
	s.untilUp("gangd", "gctl", "ping")
	s.node("n1", `cards = "none"`, "cpus = 1", "min_uid = 2")
	s.must("gnoded", "join", "--config="+filepath.Join(s.dir, "n1.toml"), s.line())
	s.up("n1")
	gangd := s.daemons["gangd"].Process.Pid
	bob, mallory := s.person("games"), s.person("nobody")
	const each = 200
	idle := timed(bob, each)
	before := sockets(gangd)

	c := newCrowd(t, mallory)
	const slow = "POST /v1/jobs HTTP/1.1\r\nHost: gangd\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	began := time.Now()
	var made, dialFailed int
	var strangers sync.WaitGroup
	var mu sync.Mutex
	keep := func(conn net.Conn, err error, send string) {
		mu.Lock()
		defer mu.Unlock()
		if made++; err != nil {
			dialFailed++
			return
		}
		c.hold(conn, send)
	}
	for i := range 750 {
		conn, err := net.Dial("tcp", s.address)
		keep(conn, err, "") // says nothing
		conn, err = c.dial(context.Background(), "", "")
		keep(conn, err, []string{"", slow, "GET /v1/ping HTTP/1.1\r\nHost: gangd\r\n\r\n", "GET /v1/pi"}[i%4])
	}
	for _, send := range []string{"GET /v1/ping HTTP/1.1\r\nHost: gangd\r\n\r\n", slow} {
		for range 10 {
			strangers.Go(func() {
				for range 75 {
					d := &net.Dialer{Timeout: 5 * time.Second}
					conn, err := tls.DialWithDialer(d, "tcp", s.address, &tls.Config{InsecureSkipVerify: true})
					if err != nil {
						keep(nil, err, "")
						continue
					}
					keep(conn, nil, send)
				}
			})
		}
	}
	strangers.Wait()
	t.Logf("%d connections in %v, %d of them were refused or cut at once; gangd has %d sockets open, %d before", made, time.Since(began), dialFailed, sockets(gangd), before)
	busy := timed(bob, each)
	last := time.Now()
	gone := time.Duration(0)
	for time.Since(last) < 150*time.Second { // the longest deadline is two minutes
		if sockets(gangd) <= before {
			gone = time.Since(last)
			break
		}
		time.Sleep(time.Second)
	}
	t.Logf("idle p99 %v, with the connections %v; all gone after %v (%d sockets, %d before)", idle, busy, gone.Round(time.Second), sockets(gangd), before)
	var wrong []string
	if gone == 0 {
		wrong = append(wrong, fmt.Sprintf("%d connections are still open", sockets(gangd)-before))
	}
	if busy > idle+late {
		wrong = append(wrong, fmt.Sprintf("another user's submission took %v, %v without", busy, idle))
	}
	if log, err := os.ReadFile(filepath.Join(s.dir, "n1.log")); err != nil || bytes.Count(log, []byte("session opened")) != 1 || s.nodeState("n1") != "up" {
		wrong = append(wrong, fmt.Sprintf("the node lost its session: %s%v", log, err))
	}
	tally.Checked(t, "connections that nobody uses keep nobody from calling", wrong...)
}
