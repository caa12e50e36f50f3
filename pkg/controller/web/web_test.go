package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/people"
)

// site is a page before calls that say who called.
type site struct {
	*Server
	t   *testing.T
	now time.Time
}

func start(t *testing.T, guest bool) *site {
	t.Helper()
	s := &site{t: t, now: time.Unix(1e9, 0)}
	users := map[string]uint32{"ada": 1000, "bob": 3000, "root": 0}
	over, err := OpenEnded(filepath.Join(t.TempDir(), "ended"), s.now)
	if err != nil {
		t.Fatal(err)
	}
	s.Server, err = New(Options{Ended: over,
		Calls: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, _ := auth.From(r.Context())
			_ = json.NewEncoder(w).Encode(id)
		}),
		User: func(ctx context.Context, uid, gid uint32) auth.Identity {
			return auth.Identity{Kind: auth.KindUser, UID: uid, GID: gid, User: nameOf(ctx, uid), Admin: uid == 2000}
		},
		Lookup: func(_ context.Context, name string) (people.User, error) {
			uid, ok := users[name]
			if !ok {
				return people.User{}, people.ErrUnknown
			}
			return people.User{Name: name, UID: uid, GID: uid}, nil
		},
		Key: []byte("0123456789abcdef0123456789abcdef"), Guest: guest, URL: "http://page.example:7421", Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return s.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func nameOf(ctx context.Context, uid uint32) string {
	name, _ := people.Here.Name(ctx, uid)
	return name
}

// ask makes a request of a browser.
func (s *site) ask(method, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	s.t.Helper()
	var body io.Reader
	if method == "POST" {
		body = strings.NewReader("{}")
	}
	r := httptest.NewRequest(method, "http://page.example:7421"+path, body)
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// link makes one for a caller of the documented calls.
func (s *site) link(id auth.Identity) (path string, w *httptest.ResponseRecorder) {
	s.t.Helper()
	r := httptest.NewRequest("POST", "/v1/web", strings.NewReader("{}"))
	w = httptest.NewRecorder()
	s.Links().ServeHTTP(w, r.WithContext(auth.With(context.Background(), id)))
	var reply api.WebReply
	if w.Code == 200 && json.Unmarshal(w.Body.Bytes(), &reply) != nil {
		s.t.Fatal(w.Body)
	}
	return strings.TrimPrefix(reply.URL, "http://page.example:7421"), w
}

// login gives what a browser sends once it is logged in.
func (s *site) login(id auth.Identity) func(*http.Request) {
	s.t.Helper()
	path, _ := s.link(id)
	w := s.ask("GET", path)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(cookies) != 1 {
		s.t.Fatalf("%d %s", w.Code, w.Body)
	}
	return func(r *http.Request) { r.AddCookie(cookies[0]) }
}

func (s *site) csrf(who ...func(*http.Request)) (token string) {
	s.t.Helper()
	var me struct{ CSRF string }
	if w := s.ask("GET", "/whoami", who...); json.Unmarshal(w.Body.Bytes(), &me) != nil {
		s.t.Fatal(w.Body)
	}
	return me.CSRF
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

var ada = auth.Identity{Kind: auth.KindUser, UID: 1000, GID: 1000, User: "ada", Admin: true, Host: true}

func who(t *testing.T, w *httptest.ResponseRecorder) (id auth.Identity) {
	t.Helper()
	if w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &id) != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return id
}

// A link logs in once and in time, as its caller would be known now; it gives nobody the host's rights.
func TestLinks(t *testing.T) {
	s := start(t, false)
	path, _ := s.link(ada)
	w := s.ask("GET", path)
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge != int(sessionLife.Seconds()) {
		t.Errorf("%+v", c)
	}
	id := who(t, s.ask("GET", "/v1/nodes", func(r *http.Request) { r.AddCookie(c) }))
	if id.Kind != auth.KindUser || id.UID != 1000 || id.Admin || id.Host {
		t.Errorf("%+v", id)
	}
	if w := s.ask("GET", path); w.Code != 403 || len(w.Result().Cookies()) != 0 {
		t.Errorf("a second time: %d", w.Code)
	}
	late, _ := s.link(ada)
	s.now = s.now.Add(linkLife + time.Second)
	if w := s.ask("GET", late); w.Code != 403 {
		t.Errorf("too late: %d", w.Code)
	}
	for range linksEach {
		if _, w := s.link(ada); w.Code != 200 {
			t.Fatal(w.Body)
		}
	}
	if _, w := s.link(ada); w.Code != 429 {
		t.Errorf("one more: %d %s", w.Code, w.Body)
	}
	if _, w := s.link(auth.Identity{Kind: auth.KindUser, UID: 3000}); w.Code != 200 {
		t.Errorf("another's: %d %s", w.Code, w.Body)
	}
}

// A compute node's word is good for as long as its user has a job there; a session would be longer.
func TestLinksOfRelays(t *testing.T) {
	s := start(t, false)
	node := auth.Identity{Kind: auth.KindRelay, UID: 1000, User: "ada", Node: "n1"}
	if _, w := s.link(node); w.Code != 403 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	login := node
	login.Login, login.Node = true, "login1"
	id := who(t, s.ask("GET", "/v1/nodes", s.login(login)))
	if id.Kind != auth.KindRelay || id.UID != 1000 || id.User != "ada" || id.Node != "login1" || id.Admin {
		t.Errorf("%+v", id)
	}
}

// A cookie that is changed, over, or of another key is nobody's. One of the same key is good in another process.
func TestSessions(t *testing.T) {
	s := start(t, false)
	r := httptest.NewRequest("GET", "/", nil)
	s.login(ada)(r)
	good := r.Cookies()[0]
	with := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: good.Name, Value: value}) }
	}
	next := start(t, false)
	if w := next.ask("GET", "/v1/nodes", with(good.Value)); w.Code != 200 {
		t.Errorf("after a restart: %d", w.Code)
	}
	text, sign, _ := strings.Cut(good.Value, ".")
	bad := map[string]string{"none": "", "no signature": text, "another's": "x" + text + "." + sign, "cut": good.Value[:len(good.Value)-2], "zero": "." + sign}
	for name, value := range bad {
		if w := s.ask("GET", "/v1/nodes", with(value)); w.Code != 403 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	next.o.Key = []byte("another key of thirty-two bytes!")
	if w := next.ask("GET", "/v1/nodes", with(good.Value)); w.Code != 403 {
		t.Errorf("of another key: %d", w.Code)
	}
	s.now = s.now.Add(sessionLife + time.Second)
	if w := s.ask("GET", "/v1/nodes", with(good.Value)); w.Code != 403 {
		t.Errorf("over: %d", w.Code)
	}
}

// What changes something has to come from the page of this session.
func TestMutationsNeedTheToken(t *testing.T) {
	s := start(t, false)
	me := s.login(ada)
	token := header(csrfHeader, s.csrf(me))
	other := header(csrfHeader, s.csrf(s.login(auth.Identity{Kind: auth.KindUser, UID: 3000})))
	for name, c := range map[string]struct {
		change []func(*http.Request)
		code   int
	}{
		"the page":                  {[]func(*http.Request){me, token, header("Origin", "http://page.example:7421"), header("Sec-Fetch-Site", "same-origin")}, 200},
		"without a token":           {[]func(*http.Request){me}, 403},
		"another's token":           {[]func(*http.Request){me, other}, 403},
		"another site":              {[]func(*http.Request){me, token, header("Origin", "https://evil.example")}, 403},
		"another site, newly":       {[]func(*http.Request){me, token, header("Sec-Fetch-Site", "cross-site")}, 403},
		"a page of the same domain": {[]func(*http.Request){me, token, header("Sec-Fetch-Site", "same-site")}, 403},
		"without a session":         {[]func(*http.Request){token}, 403},
	} {
		for _, path := range []string{"/v1/cancel", "/v1/nodes/n1/drain"} {
			if w := s.ask("POST", path, c.change...); w.Code != c.code {
				t.Errorf("%s: %s: %d %s", name, path, w.Code, w.Body)
			}
		}
	}
	if w := s.ask("POST", "/logout", me); w.Code != 403 {
		t.Errorf("logged out by another site: %d", w.Code)
	}
	if w := s.ask("POST", "/logout", me, token); w.Code != 204 || w.Result().Cookies()[0].MaxAge != -1 {
		t.Errorf("logout: %d", w.Code)
	}
}

// Of a proxy's certificate the header names the user; of none it is nothing.
func TestProxies(t *testing.T) {
	s := start(t, false)
	cert := func(r *http.Request) {
		c := &x509.Certificate{Subject: pkix.Name{CommonName: "sso"}}
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{c}}, PeerCertificates: []*x509.Certificate{c}}
	}
	unproven := func(r *http.Request) {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: "sso"}}}}
	}
	bob := header(proxyHeader, "bob")
	id := who(t, s.ask("GET", "/v1/nodes", cert, bob))
	if id.Kind != auth.KindRelay || id.UID != 3000 || id.User != "bob" || id.Admin || id.Host {
		t.Errorf("%+v", id)
	}
	for name, change := range map[string][]func(*http.Request){
		"without a certificate": {bob}, "without one that was proven": {unproven, bob}, "without a user": {cert},
		"root": {cert, header(proxyHeader, "root")}, "an unknown user": {cert, header(proxyHeader, "eve")},
		"two users": {cert, bob, func(r *http.Request) { r.Header.Add(proxyHeader, "ada") }},
	} {
		if w := s.ask("GET", "/v1/nodes", change...); w.Code != 403 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if w := s.ask("POST", "/v1/cancel", cert, bob); w.Code != 403 {
		t.Errorf("without a token: %d", w.Code)
	}
	// The token is of a browser, which a cookie tells from others, for a day of work, and until somebody logs out there.
	browser := func() (cookie func(*http.Request), token string) {
		w := s.ask("GET", "/whoami", cert, bob)
		var me struct{ CSRF string }
		cookies := w.Result().Cookies()
		if json.Unmarshal(w.Body.Bytes(), &me) != nil || me.CSRF == "" || len(cookies) != 1 {
			t.Fatal(w.Body)
		}
		return func(r *http.Request) { r.AddCookie(cookies[0]) }, me.CSRF
	}
	mine, token := browser()
	other, another := browser()
	if token == another || s.csrf(cert, bob, mine) != token {
		t.Errorf("two browsers have the tokens %s and %s, the first then %s", token, another, s.csrf(cert, bob, mine))
	}
	cancel := func(what string, want int, change ...func(*http.Request)) {
		t.Helper()
		if w := s.ask("POST", "/v1/cancel", append(change, cert)...); w.Code != want {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	cancel("with it", 200, bob, mine, header(csrfHeader, token))
	cancel("another browser's token", 403, bob, other, header(csrfHeader, token))
	cancel("without the cookie", 403, bob, header(csrfHeader, token))
	cancel("another user in the same browser", 403, header(proxyHeader, "ada"), mine, header(csrfHeader, token))
	if w := s.ask("GET", "/v1/nodes", mine); w.Code != 403 {
		t.Errorf("the cookie without the proxy: %d %s", w.Code, w.Body)
	}
	if w := s.ask("POST", "/logout", cert, bob, mine, header(csrfHeader, token)); w.Code != 204 {
		t.Errorf("logout: %d %s", w.Code, w.Body)
	}
	cancel("after logout", 403, bob, mine, header(csrfHeader, token))
	cancel("the other after it", 200, bob, other, header(csrfHeader, another))
	s.now = s.now.Add(sessionLife)
	cancel("a day later", 403, bob, other, header(csrfHeader, another))
}

// TestLoggedOut: a session that was ended is over on the server, whoever kept its cookie, and after a restart.
func TestLoggedOut(t *testing.T) {
	s := start(t, false)
	first, second := s.login(ada), s.login(ada)
	token := s.csrf(first)
	if w := s.ask("GET", "/v1/nodes", first); w.Code != 200 {
		t.Errorf("before: %d", w.Code)
	}
	if w := s.ask("POST", "/logout", first, header(csrfHeader, token)); w.Code != 204 {
		t.Fatalf("logout: %d %s", w.Code, w.Body)
	}
	check := func(when string) {
		t.Helper()
		if w := s.ask("GET", "/v1/nodes", first); w.Code != 403 {
			t.Errorf("%s its cookie is still %d %s", when, w.Code, w.Body)
		}
		if w := s.ask("POST", "/v1/cancel", first, header(csrfHeader, token)); w.Code != 403 {
			t.Errorf("%s it may still change something: %d", when, w.Code)
		}
		if id := who(t, s.ask("GET", "/v1/nodes", second)); id.UID != ada.UID {
			t.Errorf("%s the other session is %+v", when, id)
		}
	}
	check("at once")
	again, err := OpenEnded(s.o.Ended.path, s.now)
	if err != nil {
		t.Fatal(err)
	}
	s.o.Ended = again
	check("after a restart")
	later, err := OpenEnded(s.o.Ended.path, s.now.Add(sessionLife))
	if err != nil || len(later.of) > 0 {
		t.Errorf("%d are kept when they would have been over: %v", len(later.of), err)
	}
	if _, err := os.Stat(later.path); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}
}

// TestLookingAtALink: programs that look what is behind a link do not use it up.
func TestLookingAtALink(t *testing.T) {
	s := start(t, false)
	path, _ := s.link(ada)
	if w := s.ask("HEAD", path); w.Code != 200 || len(w.Result().Cookies()) > 0 {
		t.Errorf("HEAD: %d, %v", w.Code, w.Result().Cookies())
	}
	if w := s.ask("GET", path); w.Code != http.StatusSeeOther {
		t.Errorf("then GET: %d %s", w.Code, w.Body)
	}
}

// TestNothingIsKept: what one user may see is in no cache for the next, and a page over TLS stays on it.
func TestNothingIsKept(t *testing.T) {
	s := start(t, false)
	me := s.login(ada)
	for _, pattern := range passed {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{ref}", "1", "{name}", "n1", "{card}", "0").Replace(path)
		w := s.ask(method, path, me, header(csrfHeader, s.csrf(me)))
		if got := w.Header().Get("Cache-Control"); w.Code != 200 || got != "no-store" {
			t.Errorf("%s: %d, Cache-Control %q", pattern, w.Code, got)
		}
		if got := w.Header().Get("Strict-Transport-Security"); got != "" {
			t.Errorf("%s without TLS: %q", pattern, got)
		}
	}
	for _, path := range []string{"/readyz", "/whoami", "/login?link=none", "/nothing", "/v1/nothing"} {
		if w := s.ask("GET", path); w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, Cache-Control %q", path, w.Code, w.Header().Get("Cache-Control"))
		}
	}
	s.tls = true
	if got := s.ask("GET", "/").Header().Get("Strict-Transport-Security"); !strings.HasPrefix(got, "max-age=") {
		t.Errorf("over TLS: %q", got)
	}
}

// Guests are that and no more: the table of package auth says what they may do.
func TestGuests(t *testing.T) {
	if w := start(t, false).ask("GET", "/v1/live"); w.Code != 403 {
		t.Errorf("where there are none: %d", w.Code)
	}
	s := start(t, true)
	id := who(t, s.ask("GET", "/v1/live"))
	if id.Kind != auth.KindGuest || id.UID != nobody || id.Admin {
		t.Errorf("%+v", id)
	}
	if s.csrf() != "" {
		t.Error("a guest has a token")
	}
	if w := s.ask("POST", "/v1/cancel", header(csrfHeader, s.token(""))); w.Code != 403 {
		t.Errorf("%d", w.Code)
	}
}

// Headers of the session and of relays do not reach the calls, and a call that is not of the page none.
func TestWhatIsPassedOn(t *testing.T) {
	s := start(t, false)
	var seen *http.Request
	s.o.Calls = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r })
	me := s.login(ada)
	s.ask("GET", "/v1/nodes", me, header("Gang-User", "0 root"), header("Gang-Passed-On", "x"), header("X-Other", "y"))
	if seen == nil || seen.Header.Get("Gang-User")+seen.Header.Get("Gang-Passed-On")+seen.Header.Get("Cookie") != "" || seen.Header.Get("X-Other") != "y" {
		t.Fatalf("%v", seen)
	}
	for _, call := range []string{"GET " + api.SessionPath, "GET /metrics", "POST /v1/jobs", "POST /v1/backup", "POST " + auth.JoinPath, "DELETE /v1/nodes"} {
		method, path, _ := strings.Cut(call, " ")
		seen = nil
		if w := s.ask(method, path, me, header(csrfHeader, s.csrf(me))); w.Code != 404 && w.Code != 405 || seen != nil {
			t.Errorf("%s: %d", call, w.Code)
		}
	}
}

func TestHeadersAndNames(t *testing.T) {
	s := start(t, false)
	w := s.ask("GET", "/queue")
	h := w.Result().Header
	if w.Code != 200 || !strings.HasPrefix(h.Get("Content-Type"), "text/html") || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") ||
		h.Get("X-Content-Type-Options") != "nosniff" || strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
		t.Errorf("%d %v", w.Code, h)
	}
	for host, code := range map[string]int{"page.example": 200, "PAGE.example:1": 200, "localhost:9": 200, "127.0.0.1": 200, "[::1]:7421": 200, "10.0.0.9:80": 200,
		"evil.example": 403, "page.example.evil": 403, "": 403} {
		if w := s.ask("GET", "/", func(r *http.Request) { r.Host = host }); w.Code != code {
			t.Errorf("%q: %d", host, w.Code)
		}
	}
	tag := s.ask("GET", "/app.js").Result().Header.Get("ETag")
	if w := s.ask("GET", "/app.js", header("If-None-Match", tag)); w.Code != 304 || w.Body.Len() != 0 {
		t.Errorf("%d", w.Code)
	}
	if w := s.ask("GET", "/../web.go"); w.Code == 200 {
		t.Error("a file that is none of the page's")
	}
}

// The page is what a browser loads first: no more than fits a slow line, all of it from here.
func TestThePageIsSmallAndWhole(t *testing.T) {
	total := 0
	files, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range files {
		total += len(f.zipped)
		text := string(f.plain)
		for _, bad := range []string{"innerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", " onclick="} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
		for _, at := range []string{"http://", "https://", "//cdn"} {
			if rest := strings.NewReplacer("http://www.w3.org/2000/svg", "", "https://github.com/leeoniya/uPlot", "").Replace(text); strings.Contains(rest, at) {
				t.Errorf("%s names another host", name)
			}
		}
	}
	if total > 150<<10 {
		t.Errorf("%d bytes", total)
	}
}

func TestKeyFile(t *testing.T) {
	dir := t.TempDir()
	a, err := KeyFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := KeyFile(dir)
	if err != nil || string(a) != string(b) || len(a) != 32 {
		t.Errorf("%x %x %v", a, b, err)
	}
	if info, err := os.Stat(dir + "/web.key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := os.WriteFile(dir+"/web.key", []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := KeyFile(dir); err == nil {
		t.Error("a damaged key was taken")
	}
}

// The page's parts name each other from the top of their host: an address below a path is refused, and not found out by
// people whose page stays empty.
func TestAddress(t *testing.T) {
	for _, good := range []string{"https://gangd.example", "http://gangd.example:7421", "https://gangd.example/"} {
		if _, err := Address(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "gangd.example", "ftp://gangd.example", "https://", "https://u:p@gangd.example", "https://gangd.example/page", "https://gangd.example/?x=1", "https://gangd.example/#x"} {
		if _, err := Address(bad); err == nil || !strings.Contains(err.Error(), "web_url") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A person who mistypes an address gets the page with the way on, a program an error.
func TestUnknownAddress(t *testing.T) {
	s := start(t, false)
	for accept, want := range map[string]string{"text/html,*/*": "text/html", "*/*": "application/json"} {
		r := httptest.NewRequest("GET", "http://page.example:7421/nosuch", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusNotFound || !strings.HasPrefix(w.Header().Get("Content-Type"), want) {
			t.Errorf("%s: %d %s", accept, w.Code, w.Header().Get("Content-Type"))
		}
	}
}
