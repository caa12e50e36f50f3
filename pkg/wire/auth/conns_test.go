package auth

import (
	"bufio"
	"container/list"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func counted(user, anonymous int) *conns {
	return &conns{user: user, anonymous: anonymous, users: map[uint32]int{}, open: map[net.Conn]*holder{}, unknown: list.New()}
}

func TestAUserHoldsHisShare(t *testing.T) {
	s := counted(2, 1)
	var held []net.Conn
	hold := func(uid uint32) bool {
		c, _ := net.Pipe()
		refuse, drop := s.hold(c, &holder{uid: uid, local: true})
		if drop != nil {
			t.Error("somebody else's connection was dropped for it")
		}
		held = append(held, c)
		return !refuse
	}
	for i, want := range []bool{true, true, false} {
		if hold(1000) != want {
			t.Errorf("connection %d: taken %t", i+1, !want)
		}
	}
	if !hold(1001) {
		t.Error("another user was refused")
	}
	for range 5 {
		if !hold(0) {
			t.Error("root was refused")
		}
	}
	s.remove(held[2]) // the refused one is counted until it is closed
	s.remove(held[0])
	s.remove(held[0])
	if !hold(1000) {
		t.Error("refused although one was closed")
	}
	for _, c := range held {
		s.remove(c)
	}
	if len(s.users)+len(s.open) > 0 {
		t.Errorf("left: %v, %v", s.users, s.open)
	}
}

// TestConnOf: a request knows its connection, so that who has a certificate is told from who has none.
func TestConnOf(t *testing.T) {
	c, other := net.Pipe()
	defer c.Close()
	defer other.Close()
	if got := connOf((&Guard{}).ConnContext(t.Context(), c)); got != c {
		t.Errorf("%v", got)
	}
	if got := connOf(t.Context()); got != nil {
		t.Errorf("without one: %v", got)
	}
}

func TestTheOldestWithoutACertificateGoesFirst(t *testing.T) {
	s := counted(1, 2)
	var c [5]net.Conn
	var drops []net.Conn
	for i := range c {
		c[i], _ = net.Pipe()
		if i == 2 {
			s.known(c[0]) // a node's, which stays whoever comes
		}
		if _, drop := s.hold(c[i], &holder{}); drop != nil {
			drops = append(drops, drop)
		}
	}
	if len(drops) != 2 || drops[0] != c[1] || drops[1] != c[2] {
		t.Errorf("dropped %d: %v", len(drops), drops)
	}
	for i := range c {
		s.remove(c[i])
	}
	if s.unknown.Len()+len(s.open) > 0 {
		t.Error("something is left")
	}
}

// serve is a server with a guard on a socket, for the person who runs the test.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	g := NewGuard(true, nil)
	srv := &http.Server{Handler: g.Handler(h), ConnContext: g.ConnContext, ConnState: g.ConnState}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return path
}

// A call that lasts longer than a body may take goes on: the deadline was the body's.
func TestABodysDeadlineEndsWithIt(t *testing.T) {
	var deadlines []bool // whether one was set, in order
	synctest.Test(t, func(t *testing.T) {
		conn := &deadlineConn{set: func(at time.Time) { deadlines = append(deadlines, !at.IsZero()) }}
		b := newBody(io.NopCloser(strings.NewReader("abc")), http.NewResponseController(conn))
		if _, err := io.ReadAll(b); err != nil {
			t.Fatal(err)
		}
		_ = b.Close()
	})
	if fmt.Sprint(deadlines) != "[true false]" {
		t.Errorf("deadlines %v", deadlines)
	}
	deadlines = nil
	conn := &deadlineConn{set: func(at time.Time) {
		deadlines = append(deadlines, !at.IsZero() && time.Until(at) <= leftPatience)
	}}
	b := newBody(io.NopCloser(strings.NewReader("abc")), http.NewResponseController(conn))
	_ = b.Close() // of what nobody read
	if fmt.Sprint(deadlines) != "[false true]" {
		t.Errorf("deadlines %v", deadlines)
	}
}

type deadlineConn struct {
	http.ResponseWriter
	set func(time.Time)
}

func (c *deadlineConn) SetReadDeadline(at time.Time) error { c.set(at); return nil }

// TestABodyThatNobodyReadsIsCut: who is refused before his body was read, and never sends it, has
// his answer and is gone.
func TestABodyThatNobodyReadsIsCut(t *testing.T) {
	path := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(30 * leftPatience))
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 1000\r\n\r\nhi"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 403 ") {
		t.Errorf("%q, %v", b, err)
	}
}

// A second call on the same connection is served: the body of the first left no deadline.
func TestCallsFollowEachOther(t *testing.T) {
	path := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for range 3 {
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\nhi"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "hi" || err != nil {
			t.Fatalf("%q, %v", b, err)
		}
	}
}
