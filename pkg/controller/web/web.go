package web

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/people"
)

const (
	// bodyMax bounds what a call of the page sends: a list of jobs and a reason.
	bodyMax = 256 << 10
	// bodyPatience is how long it may take.
	bodyPatience = 10 * time.Second
	// csrfHeader carries the token of the session in calls that change something.
	csrfHeader = "Gang-CSRF"
	// proxyHeader is in which the site's proxy names its user.
	proxyHeader = "X-Remote-User"
)

// Options are what the page is served with.
type Options struct {
	Calls http.Handler // the documented calls, for requests with an identity
	// User makes the identity of a person on this host; Lookup finds one by name.
	User   func(ctx context.Context, uid, gid uint32) auth.Identity
	Lookup func(ctx context.Context, name string) (people.User, error)
	Key    []byte // signs sessions
	Guest  bool   // whoever comes may look at the queue
	URL    string // of the page, as people reach it
	Log    *slog.Logger
	Now    func() time.Time // nil: the clock
	// Ended are the sessions that somebody has logged out of.
	Ended *Ended
	// Known is told of a call whose caller has shown who he is; nil: nobody wants to know.
	Known func(ctx context.Context, uid uint32)
}

// Server serves the page.
type Server struct {
	o     Options
	host  string // of URL: the one name that is served
	name  string // of the cookie
	tls   bool
	links links
	files map[string]*file
	mux   *http.ServeMux
}

// passed are the calls of the page; what is not in here does not exist for it.
var passed = []string{
	"GET /v1/live", "GET /v1/nodes", "GET /v1/ping", "GET /v1/reservations", "GET /v1/events", "GET /v1/logs", "GET /v1/log",
	"GET /v1/jobs/{ref}", "GET /v1/jobs/{ref}/why", "GET /v1/jobs/{ref}/script", "GET /v1/verify", "GET /v1/outbox", "GET /v1/day",
	"GET /v1/limits", "GET /v1/ledger",
	"POST /v1/query", "POST /v1/history",
	"POST /v1/cancel", "POST /v1/hold", "POST /v1/release", "POST /v1/requeue", "POST /v1/tokens",
	"POST /v1/nodes/{name}/drain", "POST /v1/nodes/{name}/resume", "POST /v1/nodes/{name}/cards/{card}/drain",
	"POST /v1/nodes/{name}/cards/{card}/resume",
}

// New makes a server of the page.
func New(o Options) (*Server, error) {
	u, err := Address(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	files, err := load()
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, host: u.Hostname(), tls: u.Scheme == "https", files: files, mux: http.NewServeMux()}
	s.name = cookieName(o.Key, s.tls)
	s.mux.HandleFunc("GET /login", s.login)
	s.mux.HandleFunc("HEAD /login", func(http.ResponseWriter, *http.Request) {}) // programs that look at links do not log in
	s.mux.HandleFunc("POST /logout", s.logout)
	s.mux.HandleFunc("GET /whoami", s.whoami)
	for _, pattern := range passed {
		s.mux.HandleFunc(pattern, s.pass)
	}
	s.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		o.Calls.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Identity{Kind: auth.KindNode})))
	})
	s.mux.HandleFunc("/", s.static)
	return s, nil
}

// Address reads the page's address. The page's parts name each other from the top of their host: below a path, as a proxy
// may put it, none of them would be found.
func Address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, fmt.Errorf("web_url %q: want https://HOST or http://HOST:PORT", text)
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("web_url %q: the page can't be below a path; want %s://%s, a name or a port of its own", text, u.Scheme, u.Host)
	}
	return u, nil
}

// policy is what the page may do in a browser: nothing that is not from here, nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store") // what one may see is not for who comes to this browser next; the page's own files say otherwise
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if s.tls {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	if !s.ours(r.Host) {
		fail(w, &api.Error{Code: api.CodePermission, Message: fmt.Sprintf("this page is not %q", r.Host), Hint: "open " + s.o.URL +
			"; other names are for an administrator to add (web_url in gangd.toml)"})
		return
	}
	s.mux.ServeHTTP(w, r)
}

// ours holds for the names under which the page is served. Any other was made to point here by
// somebody else, whose own page could then read what strangers may see.
func (s *Server) ours(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || strings.EqualFold(host, s.host)
}

func fail(w http.ResponseWriter, e *api.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Code.HTTPStatus())
	_ = json.NewEncoder(w).Encode(e)
}

// session is who calls, and what his token is made of.
type session struct {
	id     auth.Identity
	secret string // names the session in its token
}

// caller finds out who calls.
func (s *Server) caller(r *http.Request) session {
	who := s.stranger()
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		who = s.proxied(r)
	} else if seat, ok := s.seated(r, s.name, ofSession); ok {
		if id := s.identity(r.Context(), &seat); id.Kind != auth.KindNone {
			who = session{id, seat.Secret}
		}
	}
	if who.id.Kind != auth.KindNone && who.id.Kind != auth.KindGuest && s.o.Known != nil {
		s.o.Known(r.Context(), who.id.UID)
	}
	return who
}

// seated is what a cookie says, unless it is over, or was logged out of.
func (s *Server) seated(r *http.Request, name, of string) (seat, bool) {
	c, err := r.Cookie(name)
	if err != nil {
		return seat{}, false
	}
	st, ok := s.open(c.Value, of)
	return st, ok && !s.o.Ended.has(&st)
}

// nobody is the uid of guests, as files of nobody have it.
const nobody = 65534

func (s *Server) stranger() session {
	if !s.o.Guest {
		return session{id: auth.Nobody}
	}
	return session{id: auth.Identity{Kind: auth.KindGuest, UID: nobody, GID: nobody, User: "guest"}}
}

// proxied is who the site's proxy says it has logged in. It makes nobody an admin, as a login host does not.
func (s *Server) proxied(r *http.Request) session {
	names := r.Header[proxyHeader]
	if len(names) != 1 || names[0] == "" {
		return s.stranger()
	}
	u, err := s.o.Lookup(r.Context(), names[0])
	if err != nil || u.UID == 0 {
		s.o.Log.Warn("page: the proxy names a user who is none here", "user", names[0], "from", r.RemoteAddr, "err", err)
		return session{id: auth.Nobody}
	}
	node := r.TLS.PeerCertificates[0].Subject.CommonName
	id := auth.Identity{Kind: auth.KindRelay, UID: u.UID, GID: u.GID, User: u.Name, Node: node, Login: true}
	// Who he is the proxy says with each call. What his calls are known by as the page's is a cookie of this browser.
	if st, ok := s.seated(r, s.name+proxySuffix, ofProxy); ok && st.UID == id.UID && st.Relay == node {
		return session{id, st.Secret}
	}
	return session{id: id}
}

// identity is of a session: by the kernel's word as it would be now, so that who is no admin any more
// is none here, or by that of a login host.
func (s *Server) identity(ctx context.Context, seat *seat) auth.Identity {
	if seat.Relay == "" {
		return s.o.User(ctx, seat.UID, seat.GID)
	}
	if seat.UID == 0 {
		return auth.Nobody
	}
	return auth.Identity{Kind: auth.KindRelay, UID: seat.UID, GID: seat.GID, User: seat.User, Node: seat.Relay, Login: true}
}

// pass gives a call on as who is logged in.
func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	who := s.caller(r)
	if who.id.Kind == auth.KindNone {
		fail(w, &api.Error{Code: api.CodePermission, Message: "not logged in", Hint: "gctl web prints a link that logs you in"})
		return
	}
	if r.Method != http.MethodGet && !s.meant(r, who) {
		fail(w, &api.Error{Code: api.CodePermission, Message: "this call does not come from the page", Hint: "load the page again"})
		return
	}
	if r.Method != http.MethodGet {
		_ = http.NewResponseController(w).SetReadDeadline(s.o.Now().Add(bodyPatience))
		r.Body = http.MaxBytesReader(w, r.Body, bodyMax)
	}
	clean := r.Clone(auth.With(r.Context(), who.id))
	clean.TLS = nil // the calls know no certificate but a node's
	for name := range clean.Header {
		if strings.HasPrefix(name, "Gang-") || name == "Cookie" {
			delete(clean.Header, name)
		}
	}
	s.o.Calls.ServeHTTP(w, clean)
}

// meant holds for a call that the page of this session made, and not another site's in the same browser.
func (s *Server) meant(r *http.Request, who session) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return false
		}
	}
	return who.secret != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(s.token(who.secret))) == 1
}

// whoami tells the page who looks at it.
func (s *Server) whoami(w http.ResponseWriter, r *http.Request) {
	who := s.caller(r)
	if who.id.Kind == auth.KindRelay && who.secret == "" && r.Method == http.MethodGet {
		st := seat{UID: who.id.UID, Relay: who.id.Node, Until: s.o.Now().Add(sessionLife).Unix(), Secret: random()}
		who.secret = st.Secret
		http.SetCookie(w, s.cookie(s.name+proxySuffix, s.seal(&st, ofProxy), int(sessionLife.Seconds())))
	}
	out := struct {
		User    string `json:"user"`
		UID     uint32 `json:"uid"`
		Admin   bool   `json:"admin"`
		Guest   bool   `json:"guest"`
		CSRF    string `json:"csrf,omitempty"`
		Version string `json:"version"`
	}{User: who.id.User, UID: who.id.UID, Admin: who.id.Admin, Guest: who.id.Kind == auth.KindGuest, Version: api.Version}
	if who.secret != "" {
		out.CSRF = s.token(who.secret)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// static gives the page and what it is made of. Every view is the same page.
func (s *Server) static(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		fail(w, api.Errorf(api.CodeNotFound, "no such call: %s %s", r.Method, r.URL.Path))
		return
	}
	name, status := strings.TrimPrefix(r.URL.Path, "/"), http.StatusOK
	if name == "" || slices.Contains(views, strings.SplitN(name, "/", 2)[0]) {
		name = "index.html"
	}
	f := s.files[name]
	if f == nil && strings.Contains(r.Header.Get("Accept"), "text/html") { // a person: the page says it, with the way on
		f, status = s.files["index.html"], http.StatusNotFound
	}
	if f == nil {
		fail(w, api.Errorf(api.CodeNotFound, "no such page: %s", r.URL.Path))
		return
	}
	f.serve(w, r, status)
}

// views are the six.
var views = []string{"now", "queue", "job", "node", "me", "admin"}

// Links makes links for callers of the documented calls: POST /v1/web.
func (s *Server) Links() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, bodyMax))
		id, _ := auth.From(r.Context())
		if id.Kind == auth.KindRelay && !id.Login {
			fail(w, &api.Error{Code: api.CodePermission, Message: id.Node + " is a compute node: it can't log anybody in",
				Hint: "run gctl web on the controller's host, or on a login host"})
			return
		}
		secret, until, err := s.links.make(&id, s.o.Now())
		if err != nil {
			fail(w, err)
			return
		}
		s.o.Log.Info("page: link made", "user", id.User, "uid", id.UID)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(api.WebReply{SchemaVersion: api.SchemaVersion, Expires: until,
			URL: strings.TrimSuffix(s.o.URL, "/") + "/login?link=" + secret})
	})
}
