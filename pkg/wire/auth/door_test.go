package auth

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// caller is a connection that says where it comes from.
type visiting struct {
	net.Conn
	from   string
	closed bool
}

func (v *visiting) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(v.from))
}
func (v *visiting) Close() error { v.closed = true; return nil }

// TestDoor: of strangers the oldest goes, of an address that has its share its own oldest, and of those who are known
// none for a stranger.
func TestDoor(t *testing.T) {
	d := newDoor(8) // two of an address or a user
	come := func(from string) *visiting {
		v := &visiting{from: from}
		d.ConnState(v, http.StateNew)
		return v
	}
	known := func(v *visiting, uid uint32) { d.Known(context.WithValue(t.Context(), connKey{}, net.Conn(v)), uid) }
	first := come("10.0.0.1:1")
	second := come("10.0.0.1:2")
	if come("10.0.0.1:3"); !first.closed || second.closed {
		t.Errorf("beyond the share of an address: the oldest %t, the next %t", first.closed, second.closed)
	}
	known(second, 1000)
	var others []*visiting
	for _, at := range []string{"10.0.0.2:1", "10.0.0.2:2", "10.0.0.3:1", "10.0.0.3:2", "10.0.0.4:1", "10.0.0.4:2"} {
		others = append(others, come(at))
	}
	if last := come("[2001:db8::1]:1"); last.closed || second.closed || len(d.open) != 8 {
		t.Errorf("%d are there, who came last %t, who is known %t", len(d.open), last.closed, second.closed)
	}
	if come("[2001:db8::2]:1"); others[0].closed != true {
		t.Error("the oldest stranger is still there")
	}
	if a, b := come("[2001:db8::3]:1"), d.from[netip.MustParseAddr("2001:db8::")]; a.closed || b.Len() != 2 {
		t.Errorf("a network of IPv6 has %d", b.Len())
	}
	// A user's third closes his first, and nobody else's.
	third, fourth := come("10.0.0.5:1"), come("10.0.0.6:1")
	known(third, 1000)
	if known(fourth, 1000); !second.closed || third.closed || fourth.closed {
		t.Errorf("of one user: %t %t %t", second.closed, third.closed, fourth.closed)
	}
	known(fourth, 2000) // the same connection, of a page where another user has logged in since
	for c := range d.open {
		d.ConnState(c, http.StateClosed)
	}
	if len(d.open)+d.strangers.Len()+len(d.from)+len(d.users) > 0 {
		t.Errorf("left over: %d %d %d %d", len(d.open), d.strangers.Len(), len(d.from), len(d.users))
	}
	var none *Door
	none.Known(t.Context(), 1)
	d.Known(t.Context(), 1)
}

// TestDoorOfAServer: whoever waits silently, the next who comes is answered.
func TestDoorOfAServer(t *testing.T) {
	d := newDoor(16)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.Known(r.Context(), 7)
		_, _ = io.WriteString(w, "here")
	}), ConnState: d.ConnState, ConnContext: d.ConnContext}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	defer func() { _ = srv.Close(); <-served }()
	var silent []net.Conn
	for range 40 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	one := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	defer one.CloseIdleConnections()
	ask := func() {
		t.Helper()
		r, err := one.Get("http://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		if r.Body.Close(); err != nil || string(b) != "here" {
			t.Fatalf("%q, %v", b, err)
		}
	}
	ask()
	// The oldest of the silent ones have been sent away.
	_ = silent[0].SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := silent[0].Read(make([]byte, 1)); err == nil {
		t.Errorf("the first was told %d bytes", n)
	}
	for range 40 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	ask()
}
