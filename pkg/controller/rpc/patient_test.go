package rpc

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"gangd/pkg/wire/auth"
)

// oneConn is a listener with one connection.
type oneConn chan net.Conn

func (l oneConn) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l oneConn) Close() error   { return nil }
func (l oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "one", Net: "unix"} }

// calling serves a handler behind the guard to the other end of a connection.
func calling(t *testing.T, h handler) net.Conn {
	t.Helper()
	s := &Server{}
	here, there := net.Pipe()
	l := make(oneConn, 1)
	l <- there
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(auth.With(r.Context(), auth.Identity{Kind: auth.KindUser, UID: 1, User: "ada"}))
		s.guard(auth.OpEvents, h).ServeHTTP(w, r)
	})}
	go func() { _ = hs.Serve(l) }()
	t.Cleanup(func() { here.Close(); close(l); _ = hs.Close() })
	return here
}

// TestWhoDoesNotReadIsCut: whatever a call answers, and however long it goes on, no more than a piece of it waits for its
// reader, and for no longer than that may take. So it is for who follows and for who asks once.
func TestWhoDoesNotReadIsCut(t *testing.T) {
	for name, h := range map[string]func(w http.ResponseWriter) error{
		"one that follows": func(w http.ResponseWriter) error {
			out := beginEvents(w)
			for {
				if _, err := io.WriteString(w, "data: something\n\n"); err != nil {
					return err
				}
				if err := out.Flush(); err != nil {
					return err
				}
			}
		},
		"a log that is followed": func(w http.ResponseWriter) error {
			p := &positioned{out: &flusher{w: w, out: http.NewResponseController(w)}}
			for {
				if _, err := p.Write(make([]byte, 100)); err != nil {
					return err
				}
			}
		},
		"an answer": func(w http.ResponseWriter) error {
			_, err := w.Write(make([]byte, 3*writePiece))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan error, 1)
				c := calling(t, func(w http.ResponseWriter, _ *http.Request, _ auth.Identity) error {
					err := h(w)
					over <- err
					return err
				})
				began := time.Now()
				if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: g\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				if err := <-over; err == nil {
					t.Error("it was all taken")
				}
				if d := time.Since(began); d > 2*writePatience {
					t.Errorf("cut after %s", d)
				}
			})
		})
	}
}

// TestPatience: who reads slowly, and a call that says nothing for long, are not cut, nor is the next call on the
// connection.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := calling(t, func(w http.ResponseWriter, _ *http.Request, _ auth.Identity) error {
			time.Sleep(time.Hour)
			_, err := w.Write(make([]byte, 3*writePiece))
			return err
		})
		in := bufio.NewReaderSize(c, 16)
		for range 2 {
			time.Sleep(time.Hour)
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: g\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			r, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			n, b := 0, make([]byte, 32<<10)
			for err == nil {
				var k int
				k, err = r.Body.Read(b)
				n += k
				time.Sleep(writePatience / 100)
			}
			if n != 3*writePiece || !errors.Is(err, io.EOF) {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
	})
}
