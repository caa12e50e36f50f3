package noded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/wire/jobapi"
	"gangd/pkg/wire/jobapi/jobhttp"
)

// rankSockets gives the paths that ranks are told. Where the state directory is too deep
// for a socket's path they are told none.
func rankSockets(dir string) func(rank int) (notify, http string) {
	return func(rank int) (string, string) {
		return jobapi.Reachable(dir, jobapi.Name(jobapi.NotifyPrefix, rank)), jobapi.Reachable(dir, jobapi.Name(jobapi.SocketPrefix, rank))
	}
}

// serveJobs serves the connections that shims hand over, until stop.
func (d *daemon) serveJobs() (stop func(), err error) {
	fd, err := listenJobs(d.state.path)
	if err != nil {
		return nil, fmt.Errorf("socket of the job API: %w", err)
	}
	l := &handedListener{d: d, fd: fd, conns: make(chan net.Conn), closed: make(chan struct{}), open: map[speaker]int{}}
	srv := &http.Server{Handler: jobhttp.Handler(d, callerOf), ReadHeaderTimeout: 10 * time.Second,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, callerKey{}, c.(*handedConn).caller)
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	var running sync.WaitGroup
	running.Go(l.receive)
	running.Go(func() { _ = srv.Serve(l) })
	return func() {
		_ = srv.Close()
		_ = l.Close()
		running.Wait()
	}, nil
}

// listenJobs makes the socket: for this daemon's own user, which shims run as.
func listenJobs(dir string) (int, error) {
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(d)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	path := "/proc/self/fd/" + strconv.Itoa(d) + "/" + jobapi.NodeSocket
	_ = unix.Unlinkat(d, jobapi.NodeSocket, 0) // of a daemon that is gone: the directory is locked
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		err = unix.Fchmodat(d, jobapi.NodeSocket, 0o600, 0)
	}
	if err == nil {
		err = unix.Listen(fd, 1024)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

type callerKey struct{}

func callerOf(ctx context.Context) jobapi.Caller {
	c, _ := ctx.Value(callerKey{}).(jobapi.Caller)
	return c
}

// maxCallerConns bounds the connections of one rank that are open: this daemon's descriptors are
// for all jobs of the node.
const maxCallerConns = 64

// handedListener turns connections that were handed over into accepted ones.
type handedListener struct {
	d      *daemon
	fd     int
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex
	open map[speaker]int
}

// speaker is a rank, or a task of a step.
type speaker struct {
	api.MemberKey
	step, rank int // step -1: a rank
}

func speakerOf(c jobapi.Caller) speaker {
	s := speaker{MemberKey: c.MemberKey, step: -1, rank: c.Rank}
	if c.Step != nil {
		s.step = *c.Step
	}
	return s
}

type handedConn struct {
	net.Conn
	caller jobapi.Caller
	l      *handedListener
	once   sync.Once
}

// Close implements [net.Conn].
func (c *handedConn) Close() error {
	c.once.Do(func() { c.l.count(c.caller, -1) })
	return c.Conn.Close()
}

// count counts a connection of a rank that is opened or closed; false: it has too many.
func (l *handedListener) count(c jobapi.Caller, by int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := speakerOf(c)
	n := l.open[who] + by
	switch {
	case n > maxCallerConns:
		return false
	case n == 0:
		delete(l.open, who)
	default:
		l.open[who] = n
	}
	return true
}

// Accept implements [net.Listener].
func (l *handedListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *handedListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		_ = unix.Shutdown(l.fd, unix.SHUT_RDWR) // wakes receive, which closes it
	})
	return nil
}

// Addr implements [net.Listener].
func (l *handedListener) Addr() net.Addr {
	return &net.UnixAddr{Name: jobapi.NodeSocket, Net: "unixpacket"}
}

// receive takes what shims hand over until the listener is closed.
func (l *handedListener) receive() {
	defer unix.Close(l.fd)
	for {
		fd, _, err := unix.Accept4(l.fd, unix.SOCK_CLOEXEC)
		select {
		case <-l.closed:
			if err == nil {
				_ = unix.Close(fd)
			}
			return
		default:
		}
		if err != nil {
			if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ECONNABORTED) {
				time.Sleep(10 * time.Millisecond) // out of descriptors: they come back
			}
			continue
		}
		c, err := l.take(fd)
		_ = unix.Close(fd)
		if err != nil {
			l.d.log.Warn("connection of a rank not taken", "err", err)
			continue
		}
		select {
		case l.conns <- c:
		case <-l.closed:
			_ = c.Close()
			return
		}
	}
}

// take receives one connection. Whoever hands it over must be the shim of the member it
// speaks for: in single-user mode ranks are of the same user as their shims.
func (l *handedListener) take(fd int) (net.Conn, error) {
	tv := unix.NsecToTimeval(int64(time.Second))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	caller, conn, from, err := jobapi.Receive(fd)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(conn), "rank")
	defer f.Close()
	m := l.d.find(caller.MemberKey)
	if int(from.Uid) != os.Geteuid() || m == nil || m.shimPID.Load() != int64(from.Pid) {
		return nil, fmt.Errorf("process %d of user %d is not the shim of job %d epoch %d", from.Pid, from.Uid, caller.Job, caller.Epoch)
	}
	if !l.count(caller, 1) {
		return nil, fmt.Errorf("rank %d of job %d epoch %d has %d connections open", caller.Rank, caller.Job, caller.Epoch, maxCallerConns)
	}
	c, err := net.FileConn(f)
	if err != nil {
		l.count(caller, -1)
		return nil, err
	}
	return &handedConn{Conn: c, caller: caller, l: l}, nil
}

// Call implements [jobhttp.Backend].
func (d *daemon) Call(ctx context.Context, c *api.Call, body io.Reader, w io.Writer) (*api.CallResult, error) {
	return d.client.Call(ctx, c, body, w)
}

// Info implements [jobhttp.Backend].
func (d *daemon) Info(c jobapi.Caller) jobhttp.Info {
	out := jobhttp.Info{SchemaVersion: api.SchemaVersion, JobID: c.Job, Epoch: c.Epoch, Rank: c.Rank, Node: d.opts.Name}
	m := d.find(c.MemberKey)
	if m == nil {
		return out
	}
	s := m.known.Load()
	if s == nil {
		return out
	}
	out.User, out.Name, out.RestartCount, out.Step = s.User, s.JobName, s.Restarts, c.Step
	if c.Step != nil {
		out.Size = c.Size
	}
	for _, r := range s.Ranks {
		if c.Step == nil && r.Rank == c.Rank {
			out.Size, _ = strconv.Atoi(envOf(r.Env, "GANG_SIZE"))
		}
	}
	return out
}

func envOf(env []string, name string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
