package shim

import (
	"bytes"
	"encoding/json"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxLine    = 1 << 20 // of a command
	maxBacklog = 1 << 20 // of answers to a daemon that does not read: it may connect again
)

// conn is one connection to a gnoded.
type conn struct {
	fd      int
	in, out []byte
	early   []Command // came with the order to serve
}

// conns are the shim's ears: plain system calls, since package net alone would double
// what the shim costs to start.
type conns struct {
	listener int // -1: could not be made, only the first connection is there
	list     []*conn
	fresh    bool   // somebody came since the notes were told
	state    []byte // the newest answer, for whoever comes
	visited  bool   // somebody came through the socket: the member was adopted
}

// firstConn is the connection given at start, nil when there is none.
func firstConn() *conn {
	if _, err := unix.GetsockoptInt(commandFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil
	}
	_ = unix.SetNonblock(commandFD, true)
	return &conn{fd: commandFD}
}

func newConns(first *conn) conns {
	c := conns{listener: listen()}
	if first != nil {
		c.list = append(c.list, first)
	}
	return c
}

// listen makes [SocketFile] in the working directory: relative, so that the length of the
// directory's own name is no limit.
func listen() int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: SocketFile}) // 0600 by the umask
	}
	if err == nil {
		err = unix.Listen(fd, 8)
	}
	if err != nil {
		logf("listen on %s: %v", SocketFile, err)
		return -1
	}
	return fd
}

// poll sleeps until something happens or d has passed and gives the commands that came.
func (m *member) poll(d time.Duration) []Command {
	for _, c := range m.conns.list {
		if early := c.early; len(early) > 0 {
			c.early = nil
			return early
		}
	}
	fds := make([]unix.PollFd, 0, 1+len(m.conns.list)+len(m.ranks))
	fds = append(fds, unix.PollFd{Fd: int32(m.conns.listener), Events: unix.POLLIN}) // -1 is skipped by the kernel
	for _, c := range m.conns.list {
		ev := int16(unix.POLLIN)
		if len(c.out) > 0 {
			ev |= unix.POLLOUT
		}
		fds = append(fds, unix.PollFd{Fd: int32(c.fd), Events: ev})
	}
	fds = append(fds, unix.PollFd{Fd: int32(m.order.FD), Events: unix.POLLIN})
	jobs := len(fds)
	fds = m.jobs.watch(fds)
	steps := len(fds)
	fds = m.watchSteps(fds)
	ts := unix.NsecToTimespec(int64(d))
	m.order.Sleeps()
	if n, err := unix.Ppoll(fds, &ts, nil); n <= 0 || err != nil {
		return nil // EINTR is a SIGCHLD: the caller reaps
	}
	m.serveRanks(fds[jobs:steps])
	m.hearSteps(fds[steps:])
	return m.conns.serve(fds)
}

func (c *conns) serve(fds []unix.PollFd) []Command {
	var commands []Command
	kept := c.list[:0]
	for i, cn := range c.list {
		ok := true
		if fds[1+i].Revents&unix.POLLOUT != 0 {
			ok = cn.flush()
		}
		if ok && fds[1+i].Revents&^unix.POLLOUT != 0 {
			var more []Command
			more, ok = cn.read()
			commands = append(commands, more...)
		}
		if !ok {
			_ = unix.Close(cn.fd)
			continue
		}
		kept = append(kept, cn)
	}
	c.list = kept
	if fds[0].Revents != 0 {
		c.accept()
	}
	return commands
}

// accept takes one gnoded and tells it the state. Others than the shim's own user and root
// are turned away, whatever became of the socket's mode.
func (c *conns) accept() {
	fd, _, err := unix.Accept4(c.listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return
	}
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || cred.Uid != 0 && int(cred.Uid) != unix.Geteuid() {
		_ = unix.Close(fd)
		return
	}
	c.visited = true
	cn := &conn{fd: fd}
	if cn.send(c.state) {
		c.fresh = true
		c.list = append(c.list, cn)
	} else {
		_ = unix.Close(fd)
	}
}

// tell sends one line to everybody; a broken connection is closed by the next poll.
func (c *conns) tell(line []byte) {
	for _, cn := range c.list {
		if !cn.send(line) {
			_ = unix.Shutdown(cn.fd, unix.SHUT_RDWR)
		}
	}
}

// drained reports whether everything told has been handed to the kernel.
func (c *conns) drained() bool {
	for _, cn := range c.list {
		if len(cn.out) > 0 {
			return false
		}
	}
	return true
}

func (cn *conn) send(line []byte) bool {
	if len(cn.out)+len(line) > maxBacklog {
		return false
	}
	cn.out = append(cn.out, line...)
	return cn.flush()
}

func (cn *conn) flush() bool {
	for len(cn.out) > 0 {
		n, err := unix.SendmsgN(cn.fd, cn.out, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return true
		case err != nil:
			cn.out = nil
			return false
		}
		cn.out = cn.out[n:]
	}
	return true
}

// read takes what is there and cuts it into commands. A line that is none is dropped with a
// word in the log: the shim serves older and newer daemons.
func (cn *conn) read() (commands []Command, ok bool) {
	var buf [4096]byte
	for {
		n, err := unix.Read(cn.fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			return commands, true
		}
		if n <= 0 || err != nil || len(cn.in)+n > maxLine {
			return commands, false
		}
		cn.in = append(cn.in, buf[:n]...)
		for {
			line, rest, found := bytes.Cut(cn.in, []byte("\n"))
			if !found {
				break
			}
			var c Command
			if err := json.Unmarshal(line, &c); err != nil {
				logf("command %q: %v", line, err)
			} else {
				commands = append(commands, c)
			}
			cn.in = append([]byte(nil), rest...)
		}
		if n < len(buf) {
			return commands, true
		}
	}
}
