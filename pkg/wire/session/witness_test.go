package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gangd/pkg/api"
)

// Over a network a refused connection counts as contact only after the controller has ended: a
// firewall that resets, lets only one way through or refuses in its name proves nothing.
func TestWhoRefuses(t *testing.T) {
	kill := func(c *tls.Conn) { _ = c.NetConn().Close() }
	reset := func(c *tls.Conn) { _ = c.NetConn().(*net.TCPConn).SetLinger(0); kill(c) }
	for name, c := range map[string]struct {
		end    func(session, witness *tls.Conn, h *Hub)
		counts bool
	}{
		"says that it ends":       {func(_, _ *tls.Conn, h *Hub) { h.Close(time.Second) }, true},
		"is killed":               {func(s, w *tls.Conn, _ *Hub) { kill(s); kill(w) }, true},
		"is killed, words unread": {func(s, w *tls.Conn, _ *Hub) { kill(w); reset(s) }, true},
		"is reset":                {func(s, w *tls.Conn, _ *Hub) { reset(s); reset(w) }, false},
		"is reset on one line":    {func(s, _ *tls.Conn, _ *Hub) { reset(s) }, false},
		"lives and closes":        {func(_, _ *tls.Conn, h *Hub) { _ = h.session("n1").link.line.Close() }, false},
		"lives and drops":         {func(_, _ *tls.Conn, h *Hub) { h.session("n1").link.end(errSilent) }, false},
		"lives and refuses":       {func(_, _ *tls.Conn, h *Hub) { h.Kick("n1") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			hub := NewHub(newFakeHandler(), nil, quiet())
			conns := make(chan *tls.Conn, 2)
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == api.WitnessPath {
					hub.Witness(w, r, "n1")
					return
				}
				hub.Serve(w, r, "n1")
			}))
			srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
				conns <- c.(*tls.Conn)
				return ctx
			}
			srv.StartTLS()
			roots := x509.NewCertPool()
			roots.AddCert(srv.Certificate())
			a := newFakeAgent("n1", "x")
			client := dial(context.Background(), Options{Controllers: []string{srv.Listener.Addr().String()}, Agent: a, Log: quiet(),
				TLS: &tls.Config{RootCAs: roots}})
			get(t, "welcome", a.welcome)
			first, second := get(t, "session", conns), get(t, "witness", conns)
			waitFor(t, "a session", func() bool { return client.now.Load() != nil })
			<-client.now.Load().beside.open
			_ = srv.Listener.Close()
			c.end(first, second, hub)
			err := get(t, "down", a.down)
			before := BootTime()
			if HungUp(err) != c.counts {
				t.Errorf("down with %v: hung up %v", err, HungUp(err))
			}
			if c.counts {
				waitFor(t, "a refused connection to count", func() bool { return client.LastContact() > before })
			} else {
				time.Sleep(10 * minBackoff) // refused some times
				if at := client.LastContact(); at > before {
					t.Errorf("a refusal of no one counted %s after the end", at-before)
				}
			}
			client.Close()
			hub.Close(time.Second)
			srv.Close()
		})
	}
}

// What a witness sees counts where the session's own end leaves open who ended it, also when
// it comes a moment later.
func TestVerdictOfAWitness(t *testing.T) {
	reset := error(syscall.ECONNRESET)
	for name, c := range map[string]struct {
		session, witness error
		after            time.Duration // of the session's end; negative: the line never opened
		want             error
	}{
		"dead, at once":        {reset, errDied, 0, errDied},
		"dead, a moment later": {reset, errDied, 50 * time.Millisecond, errDied},
		"alive":                {reset, reset, 50 * time.Millisecond, reset},
		"silent for ever":      {reset, context.Canceled, time.Hour, reset},
		"never there":          {reset, errDied, -1, reset},
		"it said so":           {closeReason{"session ended by the controller", false}, errDied, 0, closeReason{"session ended by the controller", false}},
		"cut, and died since":  {errSilent, errDied, 0, errDied},
		"cut":                  {errSilent, errDied, time.Hour, errSilent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				w := &witness{cancel: cancel, open: make(chan struct{}), over: make(chan struct{})}
				if c.after >= 0 {
					close(w.open)
				}
				go func() {
					defer close(w.over)
					select {
					case <-time.After(max(0, c.after)):
						w.err = c.witness
					case <-ctx.Done():
						w.err = ctx.Err()
					}
				}()
				if c.after == 0 {
					<-w.over
				}
				if got := w.verdict(c.session); got != c.want {
					t.Errorf("%v, want %v", got, c.want)
				}
				w.end()
			})
		})
	}
}
