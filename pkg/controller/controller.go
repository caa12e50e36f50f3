// Package controller puts gangd together: store, engine, node sessions, HTTP, metrics; it
// starts them in the order in which they need each other and ends them in reverse.
//
// Failure rules: whatever goes wrong at start is an error that names the file or address;
// an engine that can't go on ends the process with its reason, and a restart reads what is
// on disk. TERM and INT end it in good order with status 0; ranks are not touched by that.
//
// Begin with Run. It must not know the life of a gang or how a plan is made: it starts parts and
// connects them.
package controller

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/controller/config"
	"gangd/pkg/controller/engine"
	"gangd/pkg/controller/metrics"
	"gangd/pkg/controller/notify"
	"gangd/pkg/controller/rpc"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/node/sitehook"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/dirlock"
	"gangd/pkg/wire/lifesign"
	"gangd/pkg/wire/people"
	"gangd/pkg/wire/session"
)

// After TERM calls under way may take shutdownPatience to end, and nodes sessionPatience to
// answer a goodbye; followers are cut at once. When a part has failed, as on a disk's error,
// the process has to be gone: calls are cut, and nodes get hastyPatience, a few round trips,
// which only frozen ones use up. They are told even then: a process that dies while a node's
// words lie unread in its socket has the session reset by its kernel, and from a reset a node
// learns nothing about who refuses its next connections.
const (
	shutdownPatience = 2 * time.Second
	sessionPatience  = time.Second
	hastyPatience    = 200 * time.Millisecond
)

// maxStarts bounds one plan's starts: a hundred gangs admitted in one commit keep the
// loop responsive also at 10,000 nodes, where placing one takes 3.4 ms.
const maxStarts = 100

// Options are what belongs to one start and not to the site.
type Options struct {
	Log   *slog.Logger
	Signs *lifesign.Signs // to the service manager; nil: there is none
	// AcceptStore takes a store that is older than what nodes have seen, instead of holding.
	AcceptStore bool
	// File is what the configuration was read from, and Set what was put over it: both hold for a reload too.
	File string
	Set  []string
	// Hangups has one for each SIGHUP; nil: nobody listens.
	Hangups <-chan os.Signal
}

// runName is unlike that of any other process, of this store or a copy.
func runName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// keepSecrets sees to it that what gangd holds of people's scripts and environments reaches
// nobody else's eyes: not by the modes of what it writes, not by a core file.
func keepSecrets(stateDir string) error {
	if err := dirlock.Private(stateDir); err != nil {
		return err
	}
	unix.Umask(0o077)
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}

// keepSocket keeps the path of a socket to this process until the file is closed: a second gangd, whose state directory may be
// another, would take it from the one that answers there. A relay gives way to gangd.
func keepSocket(path string) (*os.File, error) {
	if err := auth.OpenDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := dirlock.TakeFile(path + ".lock")
	if held := new(dirlock.HeldError); errors.As(err, &held) {
		return nil, fmt.Errorf("socket %s is in use by another gangd, process %d: stop that one, or give this one another socket", path, held.PID)
	}
	return lock, err
}

// Run is the controller until ctx ends.
func Run(ctx context.Context, cfg *config.Controller, opt Options) error {
	socket, err := keepSocket(cfg.Socket) // before anything is made for a start that is refused
	if err != nil {
		return err
	}
	defer socket.Close()
	for _, w := range cfg.Warnings {
		opt.Log.Warn(w)
	}
	if err := keepSecrets(cfg.StateDir); err != nil {
		return err
	}
	if cfg.Database != "" {
		return runSeveral(ctx, cfg, opt)
	}
	st, err := sqlitestore.Open(ctx, cfg.StateDir, sqlitestore.Options{Log: opt.Log, Progress: opt.Signs.Progress})
	if err != nil {
		return err
	}
	defer st.Close()
	p, err := newProcess(cfg, opt, auth.Files(filepath.Join(cfg.StateDir, pkiDir)))
	if err != nil {
		return err
	}
	eng, err := p.engine(ctx, st, nil)
	if err != nil {
		return err
	}
	// Before anything runs that a failure would have to end; who calls meanwhile waits in the queue of the socket.
	listeners, err := p.listen(p.srv.Handler())
	if err != nil {
		return err
	}
	asked := ctx // ends when somebody asks gangd to end
	group, ctx := errgroup.WithContext(ctx)
	// The engine ends last: what calls it is shut down first, so that each caller gets an
	// answer. Its context is its own for that reason.
	engCtx, endEngine := context.WithCancel(context.WithoutCancel(ctx))
	defer endEngine()
	group.Go(func() error { return eng.Run(engCtx) })
	group.Go(func() error { return p.sample(ctx, eng) })
	group.Go(func() error { return p.keepBackups(ctx, st) })
	group.Go(func() error { return p.readAgain(ctx, p.reconfigure) })
	serveAll(group, listeners)
	p.keepRunning()
	opt.Log.Info("gangd is up", "version", api.Version, "socket", cfg.Socket, "listen", cfg.Listen, "lineage", st.Lineage())
	opt.Signs.Ready()
	group.Go(func() error {
		<-ctx.Done()
		opt.Signs.Stopping()
		calls, sessions := shutdownPatience, sessionPatience
		if asked.Err() == nil {
			calls, sessions = 0, hastyPatience
		}
		p.hub.Load().Close(sessions)
		stopAll(listeners, calls)
		endEngine()
		return nil
	})
	return group.Wait()
}

// process is what one gangd is made of, besides its store.
type process struct {
	cfg    *config.Controller // of the start, for what takes a restart
	opt    Options
	log    *slog.Logger
	m      *metrics.Metrics
	parts  engine.Options
	vault  auth.Vault
	issuer *auth.Issuer // nil: no nodes over TLS
	guard  *auth.Guard
	srv    *rpc.Server
	// standby is what /metrics says until this process leads; nil: there is one controller.
	standby http.Handler
	page    *page // nil: web_listen is not set
	running atomic.Pointer[config.Controller]
	reloads sync.Mutex
	others  *front // nil: there is one controller
	// Once there is an engine:
	eng atomic.Pointer[engine.Engine]
	hub atomic.Pointer[session.Hub]
}

// operator is whom to name where one person is asked for who may do all.
func operator(cfg *config.Controller) string {
	switch {
	case len(cfg.Admins) > 0:
		return cfg.Admins[0]
	case cfg.SingleUser:
		return people.Me(context.Background())
	}
	return "root"
}

// newProcess makes what does not need the store.
func newProcess(cfg *config.Controller, opt Options, vault auth.Vault) (*process, error) {
	p := &process{cfg: cfg, opt: opt, vault: vault, log: opt.Log, m: metrics.New(api.Version)}
	p.guard = auth.NewGuard(cfg.SingleUser, func() []string { return p.running.Load().Admins })
	p.parts = engine.Options{
		Clock: engine.SystemClock(), Log: opt.Log, Record: p.m, Version: api.Version,
		NameOf: func(uid uint32) (string, bool) {
			u, known := people.Here.Known(uid)
			return u.Name, known
		},
		GroupsOf:    people.Here.GroupsAmong,
		AcceptStore: opt.AcceptStore, Run: runName(), Sign: opt.Signs.Loop(),
	}
	p.parts.Sender = &notify.Sender{Log: opt.Log, Record: p.m.Notified}
	p.srv = &rpc.Server{Log: p.log, Version: api.Version, Started: time.Now(), Metrics: p.m.Handler(), Rates: rpc.NewRates(0, 0),
		People: people.Here, Reload: p.reconfigure}
	if _, err := p.conf(cfg); err != nil { // a start is refused for what a reload is refused for
		return nil, err
	}
	p.take(cfg)
	p.guard.Vouches = func(node string, uid uint32) bool {
		eng := p.eng.Load()
		return eng != nil && eng.Vouches(node, uid)
	}
	if err := p.openIssuer(); err != nil {
		return nil, err
	}
	return p, p.openPage()
}

// openIssuer makes what nodes join by, where they may over TLS.
func (p *process) openIssuer() error {
	cfg := p.cfg
	if cfg.Listen == "" {
		p.srv.Tokens = (&auth.Issuer{}).TokenHandler() // who asks is told what to set
		return nil
	}
	var err error
	if p.issuer, err = auth.OpenIssuer(p.vault, cfg.Advertise[0], p.log); err != nil {
		return err
	}
	// The key of the CA also proves the commits that nodes were told.
	p.parts.LineageKey, err = p.issuer.CA.Secret("lineage")
	p.guard.Revoked = p.issuer.Revoked
	p.issuer.Revoked.OnRevoke(func(node string) {
		if hub := p.hub.Load(); hub != nil {
			hub.Kick(node)
		}
		p.guard.Cut(node)
	})
	p.srv.Tokens, p.srv.Revoke, p.srv.Join, p.srv.Renew =
		p.issuer.TokenHandler(), p.issuer.RevokeHandler(), p.issuer.JoinHandler(), p.issuer.RenewHandler()
	p.srv.JoinController = p.issuer.ControllerHandler()
	return err
}

// sample keeps how the cards stand, where there is a page that shows it.
func (p *process) sample(ctx context.Context, eng *engine.Engine) error {
	if p.page != nil {
		p.srv.Day.Run(ctx, eng.Standing)
	}
	return nil
}

// engine makes the engine with its sessions and its calls. o is nil where there is one controller.
func (p *process) engine(ctx context.Context, st store.Store, o session.Office) (*engine.Engine, error) {
	p.parts.Store = st
	if o != nil {
		p.parts.Leads = o.Leads
		p.parts.Sender.Leads = o.Leads
	}
	conf, err := p.conf(p.running.Load())
	if err != nil {
		return nil, err
	}
	p.parts.Conf = *conf
	eng, err := engine.New(ctx, p.parts)
	if err != nil {
		return nil, err
	}
	p.m.Attach(eng)
	hub := session.NewHub(eng, o, p.log)
	eng.SetHub(hub)
	p.srv.Engine, p.srv.Sessions = eng, hub
	p.srv.Backup = func(ctx context.Context, path string) (*api.BackupReply, error) {
		return backup(ctx, st, p.vault, path)
	}
	p.eng.Store(eng)
	p.hub.Store(hub)
	return eng, nil
}

// notifySite is where the site lets people be told of their jobs.
func notifySite(cfg *config.Controller) *notify.Site {
	s := &notify.Site{Rate: cfg.NotifyRate, Burst: cfg.NotifyBurst}
	if cfg.MailServer != "" {
		s.Mail = &notify.Mail{Server: cfg.MailServer, TLS: cfg.MailTLS, From: cfg.MailFrom, Login: cfg.MailLogin, Password: cfg.MailPassword,
			Domain: cfg.MailDomain, Domains: cfg.MailDomains}
	}
	for _, h := range cfg.Webhooks {
		s.Targets = append(s.Targets, &notify.Webhook{Name: h.Name, URL: h.URL, Format: h.Format, Secret: []byte(h.Secret), Private: h.Private})
	}
	return s
}

func serveAll(group *errgroup.Group, listeners []listener) {
	for _, l := range listeners {
		group.Go(func() error {
			if err := l.serve(); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			return nil
		})
	}
}

// stopAll gives calls under way so long.
func stopAll(listeners []listener, patience time.Duration) {
	stop, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, l := range listeners {
		l.stop(stop)
	}
}

// idleHookTime bounds one run of the idle hook: enough for a mail server that is slow.
const idleHookTime = time.Minute

// tellIdle makes a call of a program from a word about an idle gang.
func tellIdle(p sitehook.Program) func(ctx context.Context, w engine.IdleEvent) error {
	return func(ctx context.Context, w engine.IdleEvent) error {
		return p.Run(ctx, []string{"GANG_JOB_ID=" + strconv.FormatInt(w.Job, 10), "GANG_USER=" + w.User, "GANG_TEXT=" + w.Text},
			w.What, strconv.FormatInt(w.Job, 10), w.User)
	}
}

// listener is one address with the server behind it.
type listener struct {
	name  string
	serve func() error
	stop  func(context.Context)
}

// listen opens every address of the configuration, or none.
func (p *process) listen(calls http.Handler) ([]listener, error) {
	cfg := p.cfg
	var out []listener
	fail := func(err error) ([]listener, error) {
		for _, l := range out {
			l.stop(context.Background())
		}
		return nil, err
	}
	if cfg.Listen != "" {
		l, err := net.Listen("tcp", cfg.Listen)
		if err != nil {
			return fail(err)
		}
		hs := p.server(calls)
		hs.TLSConfig = auth.ServerTLS(p.issuer.CA, p.issuer.Revoked)
		out = append(out, listener{cfg.Listen, func() error { return hs.ServeTLS(l, "", "") }, stopper(hs)})
	}
	if p.page != nil {
		l, err := p.page.listener(calls)
		if err != nil {
			return fail(err)
		}
		out = append(out, l)
	}
	if cfg.MetricsListen != "" {
		l, err := net.Listen("tcp", cfg.MetricsListen)
		if err != nil {
			return fail(err)
		}
		mux := http.NewServeMux()
		mux.HandleFunc("GET /metrics", p.metrics)
		door := auth.NewDoor(metricsConns)
		ms := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, WriteTimeout: time.Minute,
			MaxHeaderBytes: 16 << 10, ConnState: door.ConnState}
		out = append(out, listener{cfg.MetricsListen, func() error { return ms.Serve(l) }, stopper(ms)})
	}
	// Last: a start that is refused for one of the others has not taken it from a relay.
	if cfg.Dir == "" && !cfg.SingleUser {
		if err := dirlock.UsersPass(filepath.Dir(cfg.Socket)); err != nil {
			return fail(fmt.Errorf("socket %s: %w", cfg.Socket, err))
		}
	}
	l, err := auth.ListenUnix(cfg.Socket)
	if err != nil {
		return fail(err)
	}
	hs := p.server(calls)
	out = append(out, listener{cfg.Socket, func() error { return hs.Serve(l) }, stopper(hs)})
	return out, nil
}

// metrics answers for a process that leads, or stands by; one that has led and does not is about to end.
func (p *process) metrics(w http.ResponseWriter, r *http.Request) {
	switch {
	case p.standby != nil && p.eng.Load() == nil:
		p.standby.ServeHTTP(w, r)
	case p.parts.Leads != nil && !p.parts.Leads():
		http.Error(w, "this controller does not lead any more", http.StatusServiceUnavailable)
	default:
		p.srv.Metrics.ServeHTTP(w, r)
	}
}

// server answers calls with the identity of their connection. There is no write time-out:
// followers and sessions last. A header that does not come is cut, a connection without calls is
// closed, and the guard sees to bodies and to who holds how many connections.
func (p *process) server(calls http.Handler) *http.Server {
	return &http.Server{
		Handler:           p.guard.Handler(calls),
		ConnContext:       p.guard.ConnContext,
		ConnState:         p.guard.ConnState,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
}

// stopper ends calls in good order, then cuts those that last.
func stopper(hs *http.Server) func(context.Context) {
	return func(ctx context.Context) {
		if hs.Shutdown(ctx) != nil {
			_ = hs.Close()
		}
	}
}
