package controller

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gangd/pkg/controller/config"
	"gangd/pkg/controller/rpc"
	"gangd/pkg/wire/auth"
)

// pipes is a listener whose connections a test makes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "test"} }

// Who says nothing, not all of a header, or nothing more, is cut in a time that is known, also without a limit of descriptors
// that is near.
func TestSilentCallersAreCut(t *testing.T) {
	for say, want := range map[string]time.Duration{
		"":                                   10 * time.Second,
		"GET /x HTTP/1.1\r\nHost: g\r\nX: ":  10 * time.Second,
		"GET /x HTTP/1.1\r\nHost: g\r\n\r\n": 2 * time.Minute,
	} {
		t.Run(fmt.Sprintf("%.20q", say), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hs := (&process{guard: &auth.Guard{}, log: slog.New(slog.DiscardHandler)}).server((&rpc.Server{}).Handler())
				hs.ConnContext, hs.ConnState = nil, nil // pipes have no user
				hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
				l := make(pipes)
				go func() { _ = hs.Serve(l) }()
				here, there := net.Pipe()
				l <- there
				go func() { _, _ = io.WriteString(here, say) }()
				began := time.Now()
				b, _ := io.ReadAll(here)
				if took := time.Since(began); took > want || strings.HasSuffix(string(b), "ok") != (want > time.Minute) {
					t.Errorf("cut after %s with %q, want %s at most", took, b, want)
				}
				close(l)
				_ = hs.Close()
			})
		})
	}
}

// TestSocketThatUsersCantReach: a directory that is there with a mode of 0700 is refused at the start, by its name; for one's own
// cluster it is right.
func TestSocketThatUsersCantReach(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, own := range []config.Controller{{}, {Dir: dir}, {SingleUser: true}} {
		own.Socket = filepath.Join(dir, "g.sock")
		p := &process{cfg: &own, guard: auth.NewGuard(true, nil), log: slog.New(slog.DiscardHandler)}
		all, err := p.listen(http.NotFoundHandler())
		for _, l := range all {
			l.stop(t.Context())
		}
		_, there := os.Lstat(own.Socket)
		switch {
		case own.Dir == "" && !own.SingleUser:
			if want := "socket " + own.Socket + ": users can't pass "; err == nil || !strings.HasPrefix(err.Error(), want) || there == nil {
				t.Errorf("%v, want %s; the socket: %v", err, want, there)
			}
		case err != nil:
			t.Errorf("%+v: %v", own, err)
		}
	}
}
