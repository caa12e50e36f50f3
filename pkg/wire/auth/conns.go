package auth

import (
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// shareOfUser and shareOfAnonymous are the parts of the process's descriptors that one user,
	// and all who have shown no certificate together, may hold as connections.
	shareOfUser, shareOfAnonymous = 4, 8
	// BodyPatience is how long a request may take to arrive: the largest (16 MiB) over a link
	// of 2 Mbit/s. leftPatience bounds what nobody wants to read any more of it.
	BodyPatience = time.Minute
	leftPatience = time.Second
)

// conns are the open connections of a server, counted by who holds them: nobody may keep
// others from calling by holding all that the process can open.
type conns struct {
	user, anonymous int // most of each, see shareOfUser

	mu    sync.Mutex
	users map[uint32]int
	open  map[net.Conn]*holder
	// unknown are those over TLS whose certificate was not seen yet, oldest first.
	unknown *list.List
}

// holder is who holds a connection: a user on this host, or whoever is behind TLS.
type holder struct {
	uid   uint32
	local bool
	place *list.Element // in unknown, where it may be gone from; nil: local
}

// mostFiles bounds what is taken for the number of files that gangd may have open: containers are told of a billion.
const mostFiles = 1 << 20

func newConns() *conns {
	limit := unix.Rlimit{Cur: mostFiles}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return connsOf(limit.Cur)
}

// connsOf shares out so many files.
func connsOf(files uint64) *conns {
	most := int(min(files, mostFiles))
	return &conns{user: most / shareOfUser, anonymous: most / shareOfAnonymous,
		users: map[uint32]int{}, open: map[net.Conn]*holder{}, unknown: list.New()}
}

// tooMany is all that a user hears who holds too many connections already.
const tooMany = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nConnection: close\r\nRetry-After: 1\r\n\r\n" +
	`{"code":"too_many","message":"you hold as many connections to this daemon as one user may","hint":"end commands that follow or ` +
	`wait","retry_after":1}` + "\n"

// ConnState is for [http.Server.ConnState]: it counts connections and closes those beyond
// a user's share. Of those without a certificate the oldest go first.
func (g *Guard) ConnState(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		g.conns.add(c)
	case http.StateClosed, http.StateHijacked:
		g.conns.remove(c)
	}
}

func (s *conns) add(c net.Conn) {
	h := &holder{}
	if u, ok := c.(*net.UnixConn); ok {
		cred, err := PeerCredentials(u)
		if err != nil {
			return // gone again
		}
		h.uid, h.local = cred.Uid, true
	}
	refuse, drop := s.hold(c, h)
	if refuse {
		_ = c.SetWriteDeadline(time.Now().Add(leftPatience))
		_, _ = io.WriteString(c, tooMany)
		_ = c.Close()
	}
	if drop != nil {
		_ = bare(drop).Close()
	}
}

// bare is what is below TLS: closed without a last word, for which a listener would wait.
func bare(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// hold counts a connection. It may have to be refused, or another one be dropped for it.
func (s *conns) hold(c net.Conn, h *holder) (refuse bool, drop net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = h
	if h.local {
		s.users[h.uid]++
		return h.uid != 0 && s.users[h.uid] > s.user, nil
	}
	h.place = s.unknown.PushBack(c)
	if s.unknown.Len() <= s.anonymous {
		return false, nil
	}
	drop = s.unknown.Front().Value.(net.Conn)
	s.settle(s.open[drop])
	return false, drop
}

func (s *conns) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.open[c]
	if h == nil {
		return
	}
	delete(s.open, c)
	s.settle(h)
	if h.local {
		if s.users[h.uid]--; s.users[h.uid] == 0 {
			delete(s.users, h.uid)
		}
	}
}

// known takes a connection from those that may be closed for others: it showed a certificate.
func (s *conns) known(c net.Conn) {
	if s == nil {
		return // a guard that counts none
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.open[c]; h != nil {
		s.settle(h)
	}
}

func (s *conns) settle(h *holder) {
	if h.place != nil {
		s.unknown.Remove(h.place) // which is nothing the second time
	}
}

type connKey struct{}

// connOf is the connection of a request, nil in a test without one.
func connOf(ctx context.Context) net.Conn {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	return c
}

// body is a request's body that has to arrive in time. Its deadline is the connection's, and
// is taken away again at the end: reading on is how the server notices that a caller has gone.
type body struct {
	io.ReadCloser
	conn  *http.ResponseController
	ended bool
}

// newBody begins at once: what no handler reads is read by the server, which would wait for ever.
func newBody(b io.ReadCloser, conn *http.ResponseController) *body {
	_ = conn.SetReadDeadline(time.Now().Add(BodyPatience))
	return &body{ReadCloser: b, conn: conn}
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended = true
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (b *body) Close() error {
	if !b.ended {
		_ = b.conn.SetReadDeadline(time.Now().Add(leftPatience))
	}
	return b.ReadCloser.Close()
}
