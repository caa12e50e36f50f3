package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/people"
)

// me is who runs the test.
func me(t *testing.T) (uint32, string) {
	t.Helper()
	uid := uint32(os.Geteuid())
	if u, err := user.LookupId(strconv.Itoa(int(uid))); err == nil {
		return uid, u.Username
	}
	return uid, strconv.Itoa(int(uid))
}

// overSocket is the identity that a real connection to a unix socket gets.
func overSocket(t *testing.T, g *Guard) (Identity, bool) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	var id Identity
	var ok bool
	s := &http.Server{ConnContext: g.ConnContext, Handler: g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok = From(r.Context())
	}))}
	go s.Serve(l)
	defer s.Close()
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", l.Addr().String()) }}
	defer tr.CloseIdleConnections()
	req, _ := http.NewRequest("GET", "http://gangd/", nil)
	// A relay's word counts for nothing on the socket.
	Vouch(req, 4711, "mallory")
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return id, ok
}

func TestPeerOfUnixSocket(t *testing.T) {
	uid, name := me(t)
	root := uid == 0
	for _, tt := range []struct {
		about string
		guard Guard
		want  Identity
	}{
		{"single user", Guard{SingleUser: true, Owner: uid}, Identity{Kind: KindUser, UID: uid, User: name, Admin: true, Host: true}},
		{"several users", Guard{Owner: uid}, Identity{Kind: KindUser, UID: uid, User: name, Admin: root, Host: root}},
		{"admin by name", Guard{Owner: uid + 1, Admins: named(name)}, Identity{Kind: KindUser, UID: uid, User: name, Admin: true, Host: root}},
	} {
		got, ok := overSocket(t, &tt.guard)
		tt.want.GID = uint32(os.Getegid())
		tt.want.Asker = api.Asker{PID: os.Getpid(), Boot: bootID()}
		if !ok || got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.about, got, tt.want)
		}
	}
}

// TestUserOfTheCluster: whose word it was on the host is no word of the host.
func TestUserOfTheCluster(t *testing.T) {
	g := &Guard{SingleUser: true, Owner: 4242}
	for _, uid := range []uint32{0, 4242} {
		if id := g.User(t.Context(), uid, 7); id.Kind != KindUser || id.UID != uid || id.GID != 7 || !id.Admin || id.Host {
			t.Errorf("%d: %+v", uid, id)
		}
	}
}

// nameOf is what this host calls somebody.
func nameOf(t *testing.T, uid uint32) string {
	t.Helper()
	name, err := people.Here.Name(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// certificate is one that the authority has issued.
func certificate(t *testing.T, ca *CA, s subject, issued time.Time) *x509.Certificate {
	t.Helper()
	key, _, err := newRequest()
	if err != nil {
		t.Fatal(err)
	}
	der, err := ca.issue(s, key.Public(), issued)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shown is a request by who has shown a certificate that was verified.
func shown(cert *x509.Certificate) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
	return r
}

// TestCut ends the calls of one node, and only while they are under way.
func TestCut(t *testing.T) {
	ca, err := OpenCA(Files(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	g := &Guard{live: newCalls()}
	enter := func(node string) (context.Context, func()) {
		return g.live.enter(shown(certificate(t, ca, subject{node, nodeKind}, time.Now())))
	}
	one, doneOne := enter("n1")
	two, doneTwo := enter("n1")
	other, doneOther := enter("n2")
	doneTwo()
	g.Cut("n1")
	g.Cut("n3")
	if context.Cause(one) != errCut || context.Cause(two) != context.Canceled || other.Err() != nil {
		t.Errorf("%v, %v, %v", context.Cause(one), context.Cause(two), context.Cause(other))
	}
	doneOne()
	doneOther()
	if other.Err() == nil || len(g.live.cut) != 0 {
		t.Errorf("%v after its end, %d calls are kept", other.Err(), len(g.live.cut))
	}
	bare := httptest.NewRequest("GET", "/", nil)
	bare.TLS = &tls.ConnectionState{}
	if ctx, done := g.live.enter(bare); ctx != bare.Context() || done == nil {
		t.Error("who has no certificate has no calls to be cut")
	}
	(&Guard{}).Cut("n1")
}

func TestSingleUserKnowsNobodyElse(t *testing.T) {
	g := &Guard{SingleUser: true, Owner: 1000, Admins: named("4242")}
	if id := g.user(t.Context(), 4242, 4242); id.Kind != KindNone || id.UID != 0 || id.User != "" || id.Admin || id.Why == "" {
		t.Errorf("another user: %+v", id)
	}
	if id := g.user(t.Context(), 0, 0); !id.Admin || !id.Host {
		t.Errorf("root: %+v", id)
	}
	if id := g.user(t.Context(), 1000, 1000); !id.Admin || !id.Host {
		t.Errorf("owner: %+v", id)
	}
}

func TestRelayNeverRootNorAdmin(t *testing.T) {
	anyone := func(string, uint32) bool { return true }
	for _, tt := range []struct {
		claim string
		guard Guard
		ok    bool
	}{
		{"40001 ada", Guard{Vouches: anyone}, true},
		{"40001 ada", Guard{}, false},
		{"40001 ada", Guard{Vouches: func(n string, uid uint32) bool { return n == "n2" || uid != 40001 }}, false},
		{"40001 ada", Guard{Vouches: anyone, SingleUser: true}, false},
		{"40001 ada", Guard{Vouches: anyone, Admins: named("ada")}, true},   // a user like any other: see below
		{"40001 ada", Guard{Vouches: anyone, Admins: named("40001")}, true}, // a name of digits is not this uid's
		{"40001 root", Guard{Vouches: anyone}, false},
		{"0 ada", Guard{Vouches: anyone}, false},
		{"0 root", Guard{Vouches: anyone}, false},
		{"-0 ada", Guard{Vouches: anyone}, false},
		{"4294967296 ada", Guard{Vouches: anyone}, false},
		{"1 ada", Guard{Vouches: anyone}, false}, // daemon's uid under another name
		{"40001", Guard{Vouches: anyone}, false},
		{"40001 ", Guard{Vouches: anyone}, false},
		{"", Guard{Vouches: anyone}, false},
		{"x ada", Guard{Vouches: anyone}, false},
	} {
		id := tt.guard.vouched(t.Context(), subject{"n1", nodeKind}, tt.claim)
		if why := map[bool]string{true: "no relay speaks for root; use the controller's host"}[strings.HasPrefix(tt.claim, "0 ") || strings.HasSuffix(tt.claim, " root")]; !tt.ok && why != "" && id.Why != why {
			t.Errorf("%q: %s", tt.claim, id.Why)
		}
		if (id.Kind == KindRelay) != tt.ok || id.Admin || id.Host || !tt.ok && id.Kind != KindNone {
			t.Errorf("%q: %+v", tt.claim, id)
		}
		if tt.ok && (id.UID != 40001 || id.User != "ada" || id.Node != "n1") {
			t.Errorf("%q: %+v", tt.claim, id)
		}
	}
}

// TestUnverifiedCertificateIsNobody: a server set up with another ClientAuth must not turn
// an unverified certificate into a node.
func TestUnverifiedCertificateIsNobody(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
	if id := new(Guard).certified(r); id != Nobody {
		t.Errorf("%+v", id)
	}
}

// TestNobodyAsksOnce: a connection over TLS stays open for who has a certificate alone.
func TestNobodyAsksOnce(t *testing.T) {
	c := start(t)
	joined := nodeTLS(t, c.join(t, "n1"))
	nobody := joined.Clone()
	nobody.GetClientCertificate = nil
	for conf, closed := range map[*tls.Config]bool{joined: false, nobody: true} {
		tr := &http.Transport{TLSClientConfig: conf}
		res, err := (&http.Client{Transport: tr}).Get("https://" + c.Address + "/whoami")
		if err != nil || res.Close != closed {
			t.Errorf("%v, closed %v, want %v", err, res.Close, closed)
		}
		res.Body.Close()
		tr.CloseIdleConnections()
	}
}

// A connection may outlive the certificate that it was opened with.
func TestExpiredOnAnOpenConnection(t *testing.T) {
	c := start(t)
	for _, tc := range []struct {
		age  time.Duration
		want Identity
	}{{nodeLife - time.Hour, Identity{Kind: KindNode, Node: "n1"}}, {nodeLife + time.Minute, Nobody}} {
		// As it was verified when the connection was opened.
		r := shown(certificate(t, c.CA, subject{"n1", nodeKind}, time.Now().Add(-tc.age)))
		if id := new(Guard).certified(r); id != tc.want {
			t.Errorf("%v after it was issued: %+v", tc.age, id)
		}
	}
}

func named(names ...string) func() []string { return func() []string { return names } }
