package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// as does something as a user: as itself, who is not root.
func as(t *testing.T, uid int, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if errno == 0 {
			do()
			done <- nil
			return
		}
		done <- errno
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestAUserIsToldThatHeHoldsTooMany: beyond his share of connections he hears why, and others go on; one that has ended counts no more.
func TestAUserIsToldThatHeHoldsTooMany(t *testing.T) {
	g := &Guard{conns: counted(2, 1)}
	uid := os.Geteuid()
	if uid == 0 {
		uid = 4711
	}
	var who []Identity
	ended := make(chan struct{}, 9)
	s := &http.Server{ConnContext: g.ConnContext, ConnState: func(c net.Conn, state http.ConnState) {
		g.ConnState(c, state)
		if state == http.StateClosed {
			ended <- struct{}{}
		}
	}, Handler: g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		id, _ := From(r.Context())
		who = append(who, id)
	}))}
	address := fmt.Sprintf("@gangd-test-%d", os.Getpid())
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	serving := make(chan error, 1)
	go func() { serving <- s.Serve(l) }()
	defer func() { s.Close(); <-serving }()
	call := func() (net.Conn, string) {
		var c net.Conn
		as(t, uid, func() { c, err = net.Dial("unix", address) })
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: g\r\n\r\n")
		line := make([]byte, 12)
		_, _ = io.ReadFull(c, line)
		return c, string(line)
	}
	first, a := call()
	second, b := call()
	defer second.Close()
	third, refused := call()
	rest, _ := io.ReadAll(third)
	third.Close()
	<-ended
	if a != "HTTP/1.1 200" || b != a || refused != "HTTP/1.1 429" || !strings.HasSuffix(string(rest), `"you hold as many connections to this daemon as one user may","hint":"end commands that follow or wait","retry_after":1}`+"\n") {
		t.Errorf("%q, %q, %q %q", a, b, refused, rest)
	}
	first.Close()
	<-ended
	fourth, again := call()
	defer fourth.Close()
	if again != "HTTP/1.1 200" {
		t.Errorf("after one has ended: %q", again)
	}
	for _, id := range who {
		if id.Kind != KindUser || id.UID != uint32(uid) || id.Host || id.Admin {
			t.Errorf("%+v", id)
		}
	}
}

// TestANodeKeepsItsConnection: of those without a certificate the oldest is closed for a new one, without a last word; one that showed its own stays.
func TestANodeKeepsItsConnection(t *testing.T) {
	c := start(t)
	c.guard.conns.mu.Lock()
	c.guard.conns.anonymous = 1
	c.guard.conns.mu.Unlock()
	node := &http.Transport{TLSClientConfig: nodeTLS(t, c.join(t, "n1"))}
	defer node.CloseIdleConnections()
	if id, err := ask(node, c.Address); err != nil || id.Node != "n1" {
		t.Fatalf("%+v, %v", id, err)
	}
	var opened []net.Conn
	for range 3 {
		o, err := net.Dial("tcp", c.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		_ = o.SetDeadline(time.Now().Add(time.Minute))
		if err := tls.Client(o, (&pinned{fingerprint: c.CA.Fingerprint()}).config()).Handshake(); err != nil {
			t.Fatal(err)
		}
		opened = append(opened, o)
	}
	for _, o := range opened[:2] {
		if b, err := io.ReadAll(o); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q, %v", b, err)
		}
	}
	node.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialled anew") }
	if id, err := ask(node, c.Address); err != nil || id.Node != "n1" {
		t.Errorf("%+v, %v", id, err)
	}
}

// TestWhoIsGoneIsNobody: a connection that is closed already has no user and is not counted.
func TestWhoIsGoneIsNobody(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	g := NewGuard(false, nil)
	g.ConnState(c, http.StateNew)
	cred, err := PeerCredentials(c.(*net.UnixConn))
	if id, ok := From(g.ConnContext(t.Context(), c)); ok || id != Nobody || err == nil || cred != nil || len(g.conns.open) > 0 {
		t.Errorf("%+v, %v, %v, %d counted", id, cred, err, len(g.conns.open))
	}
	if id, ok := From(t.Context()); ok || id != Nobody {
		t.Errorf("of no connection: %+v", id)
	}
	for _, state := range []http.ConnState{http.StateActive, http.StateIdle} {
		g.ConnState(c, state)
	}
	pipe, other := net.Pipe()
	defer other.Close()
	for _, state := range []http.ConnState{http.StateNew, http.StateHijacked} {
		if g.ConnState(pipe, state); len(g.conns.open) != map[http.ConnState]int{http.StateNew: 1}[state] {
			t.Errorf("%v: %d are counted", state, len(g.conns.open))
		}
	}
	(*conns)(nil).known(pipe)
	g.conns.known(pipe)
}

// TestShareOfThisProcess: what it may have open says how many each may hold.
func TestShareOfThisProcess(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	now := unix.Rlimit{Cur: 800, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Skip(err)
	}
	c := newConns()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if c.user != 200 || c.anonymous != 100 {
		t.Errorf("of 800: %d and %d", c.user, c.anonymous)
	}
}

// TestOwnerOfAClusterOfMany: who runs the controller is a user like any other, where there are others.
func TestOwnerOfAClusterOfMany(t *testing.T) {
	for _, c := range []struct {
		g    Guard
		uid  uint32
		want Identity
	}{
		{Guard{Owner: 4242}, 4242, Identity{Kind: KindUser, UID: 4242, GID: 7, User: "4242"}},
		{Guard{Owner: 4242, SingleUser: true}, 4242, Identity{Kind: KindUser, UID: 4242, GID: 7, User: "4242", Admin: true, Host: true}},
		{Guard{Owner: 4242, Admins: named("4242")}, 4242, Identity{Kind: KindUser, UID: 4242, GID: 7, User: "4242", Admin: true}},
		{Guard{Owner: 4242}, 0, Identity{Kind: KindUser, GID: 7, User: nameOf(t, 0), Admin: true, Host: true}},
	} {
		if got := c.g.user(t.Context(), c.uid, 7); got != c.want {
			t.Errorf("%+v: %+v", c.g, got)
		}
	}
	if g := NewGuard(true, named("ada")); !g.SingleUser || g.Owner != uint32(os.Geteuid()) || !g.isAdmin("ada") || g.live == nil || g.conns == nil {
		t.Errorf("%+v", g)
	}
}

// TestCertificateOfNobody: one of the authority's that names no machine makes nobody somebody, and its calls are not kept.
func TestCertificateOfNobody(t *testing.T) {
	ca, err := OpenCA(Files(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	r := shown(certificate(t, ca, subject{"N", nodeKind}, time.Now()))
	g := &Guard{live: newCalls()}
	if id := g.certified(r); id != Nobody {
		t.Errorf("%+v", id)
	}
	if ctx, done := g.live.enter(r); ctx != r.Context() || len(g.live.cut) > 0 {
		t.Errorf("%d calls are kept", len(g.live.cut))
	} else {
		done()
	}
	// A node with it does not ask.
	c := start(t)
	dir := c.join(t, "n1")
	data, err := os.ReadFile(filepath.Join(dir, nodeFile))
	if err != nil {
		t.Fatal(err)
	}
	own, _, err := parsePair(data)
	if err != nil {
		t.Fatal(err)
	}
	der, err := c.CA.issue(subject{"N", nodeKind}, own.Public(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if data, err = encodePair(own, der); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, nodeFile), data); err != nil {
		t.Fatal(err)
	}
	asked := c.asked.Load()
	if err := renew(t.Context(), dir, c.Address); err == nil || err.Error() != "not the certificate of a node" || c.asked.Load() != asked {
		t.Errorf("%v", err)
	}
}

// TestSocketThatCanNotBeThere: what is in its way is named, and is left as it is.
func TestSocketThatCanNotBeThere(t *testing.T) {
	top, err := os.MkdirTemp("", "as")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	for _, d := range []string{"a.new/x", "b/x"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"/dev/null/s":                  "remove /dev/null/s.new: not a directory",
		"/dev/null/x/y/s":              "mkdir /dev/null/x/y: not a directory",
		top + "/a":                     "remove " + top + "/a.new: directory not empty",
		top + "/b":                     "rename " + top + "/b.new " + top + "/b: file exists",
		top + strings.Repeat("/c", 60): "bind: invalid argument",
	} {
		if l, err := ListenUnix(path); l != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	for _, p := range []string{"a.new/x", "b/x"} {
		if st, err := os.Stat(filepath.Join(top, p)); err != nil || !st.IsDir() {
			t.Errorf("%s: %v", p, err)
		}
	}
}
