package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/wire/auth"
)

const (
	// linkLife is how long a link may be used: it lies in a terminal's history.
	linkLife = 10 * time.Minute
	// linksEach bounds a user's links that were not used, linksAll those of everybody.
	linksEach = 16
	linksAll  = 4096
	// sessionLife is a working day, after which another link is needed.
	sessionLife = 12 * time.Hour
)

// What a signed cookie is: a session, or what a browser's calls through the site's proxy are known by. One is not
// taken for the other.
const (
	ofSession   = "session "
	ofProxy     = "proxy "
	proxySuffix = "-proxy" // of the cookie's name
)

// seat is what a session's cookie says.
type seat struct {
	UID    uint32 `json:"u"`
	GID    uint32 `json:"g"`
	User   string `json:"n,omitempty"` // of a login host's user
	Relay  string `json:"r,omitempty"` // the login host; empty: the kernel's word on the controller's host
	Until  int64  `json:"t"`           // seconds since 1970
	Secret string `json:"s"`           // names the session
}

// links are those that were made and not used.
type links struct {
	mu   sync.Mutex
	made map[[sha256.Size]byte]link // by the hash of their secret
}

type link struct {
	seat  seat
	until time.Time
}

func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

func (l *links) make(id *auth.Identity, now time.Time) (secret string, until time.Time, refused *api.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	his := 0
	for hash, k := range l.made {
		switch {
		case now.After(k.until):
			delete(l.made, hash)
		case k.seat.UID == id.UID:
			his++
		}
	}
	if his >= linksEach || len(l.made) >= linksAll {
		return "", time.Time{}, &api.Error{Code: api.CodeTooMany, RetryAfter: 60,
			Message: fmt.Sprintf("%d links of yours were not used yet, the most that may be", his),
			Hint:    fmt.Sprintf("open one of them; each ends after %s", when.Words(linkLife))}
	}
	if l.made == nil {
		l.made = map[[sha256.Size]byte]link{}
	}
	secret, until = random(), now.Add(linkLife)
	k := link{seat: seat{UID: id.UID, GID: id.GID}, until: until}
	if id.Kind == auth.KindRelay {
		k.seat.User, k.seat.Relay = id.User, id.Node
	}
	l.made[sha256.Sum256([]byte(secret))] = k
	return secret, until, nil
}

// use gives what a link is for, once.
func (l *links) use(secret string, now time.Time) (seat, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hash := sha256.Sum256([]byte(secret))
	k, ok := l.made[hash]
	delete(l.made, hash)
	return k.seat, ok && !now.After(k.until)
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	seat, ok := s.links.use(r.URL.Query().Get("link"), s.o.Now())
	if !ok {
		s.o.Log.Warn("page: link refused", "from", r.RemoteAddr)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, "This link was used already, or is older than %s.\nRun gctl web for another.\n", when.Words(linkLife))
		return
	}
	seat.Until, seat.Secret = s.o.Now().Add(sessionLife).Unix(), random()
	http.SetCookie(w, s.cookie(s.name, s.seal(&seat, ofSession), int(sessionLife.Seconds())))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if !s.meant(r, s.caller(r)) {
		fail(w, api.Errorf(api.CodePermission, "this call does not come from the page"))
		return
	}
	for name, of := range map[string]string{s.name: ofSession, s.name + proxySuffix: ofProxy} {
		st, ok := s.seated(r, name, of)
		if !ok {
			continue
		}
		if err := s.o.Ended.end(&st, s.o.Now()); err != nil {
			s.o.Log.Error("page: a session can't be ended", "err", err)
			fail(w, api.Errorf(api.CodeUnavailable, "the session could not be ended: %v", err))
			return
		}
		http.SetCookie(w, s.cookie(name, "", -1))
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) cookie(name, value string, age int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: s.tls, SameSite: http.SameSiteStrictMode}
}

// cookieName differs between clusters: a browser sends a host's cookies to all of its ports.
func cookieName(key []byte, tls bool) string {
	name := "gang-" + hex.EncodeToString(mac(key, "name")[:4])
	if tls {
		name = "__Host-" + name
	}
	return name
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// token is what calls of a session carry that change something.
func (s *Server) token(secret string) string {
	return base64.RawURLEncoding.EncodeToString(mac(s.o.Key, "csrf "+secret))
}

func (s *Server) seal(st *seat, of string) string {
	b, _ := json.Marshal(st) // numbers and strings
	text := base64.RawURLEncoding.EncodeToString(b)
	return text + "." + base64.RawURLEncoding.EncodeToString(mac(s.o.Key, of+text))
}

// open reads a session's cookie; ok is false for what was not made here, or is over.
func (s *Server) open(value, of string) (st seat, ok bool) {
	text, sign, _ := strings.Cut(value, ".")
	given, err := base64.RawURLEncoding.DecodeString(sign)
	if err != nil || !hmac.Equal(given, mac(s.o.Key, of+text)) {
		return st, false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &st) != nil {
		return st, false
	}
	return st, s.o.Now().Unix() < st.Until
}

// KeyFile reads the key of a directory, or makes it.
func KeyFile(dir string) ([]byte, error) {
	path := filepath.Join(dir, "web.key")
	b, err := os.ReadFile(path)
	if err == nil && len(b) == sha256.Size {
		return b, nil
	}
	if err == nil {
		return nil, fmt.Errorf("%s: has %d bytes, not %d; remove it, which ends all sessions of the page", path, len(b), sha256.Size)
	}
	if !os.IsNotExist(err) {
		return nil, err
	}
	b = make([]byte, sha256.Size)
	_, _ = rand.Read(b) // never fails
	made := filepath.Join(dir, "web.key."+hex.EncodeToString(b[:4]))
	if err := os.WriteFile(made, b, 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(made)
	// A link is made where nothing is: of two controllers that start together one makes the key.
	if err := os.Link(made, path); err != nil && !os.IsExist(err) {
		return nil, err
	}
	return os.ReadFile(path)
}
