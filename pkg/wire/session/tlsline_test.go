package session

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"
)

// A connection that a living process closes in the middle of a write is reset: TLS can't say
// its end then, and a plain end would be taken for the process's own.
func TestALivingProcessResets(t *testing.T) {
	for _, ending := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(nil)
		srv.StartTLS()
		config := srv.TLS.Clone()
		srv.Close()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		accepted := make(chan *tlsLine, 1)
		go func() {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l := &tlsLine{Conn: tls.Server(c, config)}
			l.ending.Store(ending)
			accepted <- l
		}()
		raw, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
		l := get(t, "connection", accepted)
		go func() { _ = c.Handshake() }()
		if err := l.Handshake(); err != nil {
			t.Fatal(err)
		}
		wrote := make(chan error, 1)
		go func() {
			_, err := l.Write(make([]byte, 64<<20)) // far more than the line holds
			wrote <- err
		}()
		time.Sleep(50 * time.Millisecond)
		_ = l.Close()
		if err := get(t, "end of the write", wrote); err == nil {
			t.Fatal("the write was not under way")
		}
		_, err = io.Copy(io.Discard, raw)
		if reset := errors.Is(err, syscall.ECONNRESET); reset == ending {
			t.Errorf("ending %v: the other side reads %v", ending, err)
		}
		_, _ = c.Close(), ln.Close()
	}
}
