package relay

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/dirlock"
	"gangd/pkg/wire/people"
)

const (
	// clientIdle is how long a command's connection may be without a call.
	clientIdle = time.Minute
	// headerPatience cuts who connects and says nothing.
	headerPatience = 10 * time.Second
	// stopPatience is how long calls under way may take to end; streams are cut after it.
	stopPatience = time.Second
	// recycle is how often idle connections to the controller are closed: one that is used
	// again and again would carry its old certificate past the renewal, which comes ten
	// days before the end.
	recycle = time.Hour
)

// Options are what a relay is started with.
type Options struct {
	Socket      string // where commands call
	Controllers *List  // of several one leads
	TLS         *tls.Config
	// Optional: where the socket can't be had, the host's own or another relay's perhaps, there
	// is no relay and no error.
	Optional bool
	// Private: nobody but who runs this process needs to reach the socket.
	Private bool
	// Alone: nothing else on this host is told which controllers there are. The relay asks by itself then.
	Alone bool
	Log   *slog.Logger
	Ready func() // called once it listens; may be nil

	leads *leads
}

// Run passes calls on until ctx ends.
func Run(ctx context.Context, o Options) error {
	if o.TLS == nil {
		return errors.New("relay: the controller must be reached over TLS (controller = \"host:port\"): on its own socket every call would be " +
			"root's")
	}
	o.leads = newLeads(o.Controllers)
	o.leads.alone = o.Alone
	if err := auth.OpenDir(filepath.Dir(o.Socket)); err == nil && !o.Private {
		if err := dirlock.UsersPass(filepath.Dir(o.Socket)); err != nil {
			return fmt.Errorf("relay: socket %s: %w", o.Socket, err)
		}
	}
	l, lock, err := listen(ctx, o.Socket)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil && o.Optional {
		o.Log.Warn("no relay on this host: commands, also in jobs, reach the controller only if somebody else answers there", "socket", o.Socket,
			"err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	defer lock.Close()
	up := upstream(o.TLS)
	defer up.CloseIdleConnections()
	errorLog := slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)
	srv := &http.Server{Handler: o.handler(up), ConnContext: connContext, ReadHeaderTimeout: headerPatience, IdleTimeout: clientIdle,
		ErrorLog: errorLog}
	o.Log.Info("relay is up", "socket", o.Socket, "controllers", o.Controllers.Addresses())
	if o.Ready != nil {
		o.Ready()
	}
	side, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	beside.Go(func() { closeIdle(side, up) })
	beside.Go(func() { o.leads.watch(side, up) })
	served := make(chan error, 1)
	beside.Go(func() { served <- srv.Serve(l) })
	select {
	case err := <-served:
		return fmt.Errorf("relay %s: %w", o.Socket, err)
	case <-ctx.Done():
	}
	stop, done := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer done()
	if srv.Shutdown(stop) != nil {
		_ = srv.Close()
	}
	<-served
	return nil
}

// listen takes a path that no other relay has, by the lock beside it, and at which nobody answers: the
// controller's own socket must not be taken away from it. The lock is held as long as the relay listens.
func listen(ctx context.Context, path string) (net.Listener, *os.File, error) {
	if err := auth.OpenDir(filepath.Dir(path)); err != nil {
		return nil, nil, err
	}
	lock, err := dirlock.TakeFile(path + ".relay")
	if held := new(dirlock.HeldError); errors.As(err, &held) {
		return nil, nil, fmt.Errorf("%s is in use by another gnoded, process %d", path, held.PID)
	}
	if err != nil {
		return nil, nil, err
	}
	l, err := take(ctx, path)
	if err != nil {
		_ = lock.Close()
		return nil, nil, err
	}
	return l, lock, nil
}

// take listens at a path where the kernel says that nobody does. A question that was broken off, or that a full
// queue turned away, says nothing of that.
func take(ctx context.Context, path string) (net.Listener, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		fallthrough
	case errors.Is(err, syscall.EAGAIN):
		return nil, fmt.Errorf("%s is in use: gangd itself, or another program, answers there; a host that runs gangd needs no relay", path)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return auth.ListenUnix(path)
	}
	return nil, err
}

func closeIdle(ctx context.Context, up *http.Transport) {
	t := time.NewTicker(recycle)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			up.CloseIdleConnections()
		}
	}
}

type (
	peerKey struct{}
	nameKey struct{}
)

// called is the name of who calls, as this host knows it.
func called(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}

type askerKey struct{}

// connContext keeps the uid at the other end; none when the kernel does not tell.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if u, ok := c.(*net.UnixConn); ok {
		if cred, err := auth.PeerCredentials(u); err == nil {
			return context.WithValue(context.WithValue(ctx, peerKey{}, cred.Uid), askerKey{}, auth.AskerOf(cred))
		}
	}
	return ctx
}

// handler refuses root and the unknown, and passes on everyone else.
func (o *Options) handler(up http.RoundTripper) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:       o.rewrite,
		Transport:     up,
		FlushInterval: -1, // each piece at once: somebody is watching
		ErrorLog:      slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		ErrorHandler:  o.away,

		ModifyResponse: o.leads.look,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch uid, known := r.Context().Value(peerKey{}).(uint32); {
		case !known:
			answer(w, api.Errorf(api.CodePermission, "the kernel does not say who calls"))
		case uid == 0:
			answer(w, &api.Error{Code: api.CodePermission, Message: "no relay speaks for root",
				Hint: "run this on the controller's host, or as a user"})
		default:
			name, err := people.Here.Name(r.Context(), uid)
			if err != nil {
				answer(w, &api.Error{Code: api.CodePermission, Message: err.Error(), Hint: "try again"})
				return
			}
			ctx, done := o.leads.begin(context.WithValue(r.Context(), nameKey{}, name))
			defer done()
			proxy.ServeHTTP(w, r.WithContext(ctx))
		}
	})
}

// rewrite runs after the proxy has dropped what the client wanted dropped.
func (o *Options) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host = "https", callOf(p.In.Context()).at
	p.Out.Host = ""
	// The one upgrade there is opens a node's session, which is not for users.
	p.Out.Header.Del("Upgrade")
	p.Out.Header.Del("Connection")
	uid, _ := p.In.Context().Value(peerKey{}).(uint32)
	auth.Vouch(p.Out, uid, called(p.In.Context()))
	if a, ok := p.In.Context().Value(askerKey{}).(api.Asker); ok {
		if api.EndsJobs(p.In.URL.Path) {
			a = auth.WithAncestors(a)
		}
		auth.VouchAsker(p.Out, a)
	}
}

// away answers for a controller that did not. Where there is another, what was not sent, or changes nothing, is
// refused as by one that does not lead: the caller makes it again.
func (o *Options) away(w http.ResponseWriter, r *http.Request, err error) {
	moved := errors.Is(context.Cause(r.Context()), errMoved)
	if r.Context().Err() != nil && !moved {
		return // it is the client who went away
	}
	o.Log.Warn("call not passed on", "method", r.Method, "path", r.URL.Path, "err", err)
	if moved {
		err = errMoved
	}
	again := !callOf(r.Context()).asked.Load() || api.Repeatable(r.Method, r.URL.Path)
	switch {
	case moved && !again:
		answer(w, api.Errorf(api.CodeUnavailable, "the controller at %s, which was asked, does not lead any more and gave no answer: what it "+
			"was asked for may have been done", r.URL.Host))
		return
	case again && (moved || o.leads.failed(r.URL.Host)):
		answer(w, api.Errorf(api.CodeNotLeader, "can't reach the controller at %s: %v; the next call goes to another", r.URL.Host, cause(err)))
		return
	}
	answer(w, &api.Error{Code: api.CodeUnavailable, Message: fmt.Sprintf("can't reach the controller at %s: %v", r.URL.Host, cause(err)),
		Hint: "is gangd running there? (gctl ping)"})
}

// cause leaves out what a person has read before: addresses and "dial tcp".
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func answer(w http.ResponseWriter, e *api.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Code.HTTPStatus())
	_ = json.NewEncoder(w).Encode(e) // the caller may be gone; nobody is left to tell
}
