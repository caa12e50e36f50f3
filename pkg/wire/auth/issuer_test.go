package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// request makes a certificate request of a key, in JSON.
func request(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`"csr":"%s"`, base64.StdEncoding.EncodeToString(der))
}

// TestWhatHandlersSay: each refusal has its status and its words, in JSON, and what is answered is JSON too.
func TestWhatHandlersSay(t *testing.T) {
	c := start(t)
	_, edward, _ := ed25519.GenerateKey(nil)
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	forged, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, edward)
	if err != nil {
		t.Fatal(err)
	}
	forged[len(forged)-1] ^= 1
	token := func(ask api.TokenRequest) string {
		s, err := c.Tokens.New(ask)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	admin, user, node := Identity{Kind: KindUser, UID: 5, Admin: true}, Identity{Kind: KindUser, UID: 5}, Identity{Kind: KindNode, Node: "n1"}
	long := `"` + strings.Repeat("x", maxBody-2)
	const badRequest, name = `{"code":"invalid","message":"invalid certificate request: `, `invalid node name \"A\": want 1 to 63 of a-z 0-9 . - that begin and end with a letter or digit`
	join, renew, tokens, revoke, controllers := c.JoinHandler(), c.RenewHandler(), c.TokenHandler(), c.RevokeHandler(), c.ControllerHandler()
	for _, x := range []struct {
		h      http.Handler
		id     Identity
		method string
		body   string
		tls    bool
		status int
		want   string // what the answer begins with
	}{
		{join, Nobody, "GET", "{}", true, 400, `{"code":"invalid","message":"want POST"}`},
		{join, Nobody, "POST", "{", true, 400, `{"code":"invalid","message":"invalid JSON: unexpected EOF"}`},
		{join, Nobody, "POST", "{}", false, 403, `{"code":"permission","message":"joining needs TLS"}`},
		{join, Nobody, "POST", `{"name":"A"}`, true, 400, `{"code":"invalid","message":"` + name},
		{join, Nobody, "POST", long + `"`, true, 400, `{"code":"invalid","message":"invalid JSON: json: cannot unmarshal string`},
		{join, Nobody, "POST", long + `x"`, true, 413, `{"code":"too_large","message":"the request is larger than 65536 bytes"}`},
		{join, Nobody, "POST", `{"name":"a"}`, true, 400, badRequest + "asn1: syntax error"},
		{join, Nobody, "POST", `{"name":"a","csr":"` + base64.StdEncoding.EncodeToString(forged) + `"}`, true, 400, badRequest + "x509: Ed25519 verification failure"},
		{join, Nobody, "POST", `{"name":"a",` + request(t, p384) + "}", true, 400, badRequest + "want an ECDSA P-256 or Ed25519 key"},
		{join, Nobody, "POST", `{"name":"a",` + request(t, p256) + "}", true, 403, `{"code":"permission","message":"this token is not valid (any more)","hint":"ask an admin for a new line: gangd token new"}`},
		{join, Nobody, "POST", `{"token":"` + token(api.TokenRequest{}) + `","name":"a",` + request(t, p256) + "}", true, 200, `{"certificate":"`},
		{join, Nobody, "POST", `{"token":"` + token(api.TokenRequest{}) + `","name":"b",` + request(t, edward) + "}", true, 200, `{"certificate":"`},
		{renew, user, "POST", "{}", true, 403, `{"code":"permission","message":"renewing needs the certificate of a node"}`},
		{renew, Nobody, "POST", "{}", true, 403, `{"code":"permission","message":"renewing needs the certificate of a node"}`},
		{renew, node, "POST", "{", true, 400, `{"code":"invalid","message":"invalid JSON`},
		{renew, node, "POST", `{"name":"n2"}`, true, 403, `{"code":"permission","message":"the certificate of n1 can't be renewed for another node"}`},
		{renew, node, "POST", `{"name":"n1"}`, true, 400, badRequest},
		{renew, node, "POST", "{" + request(t, p256) + "}", true, 200, `{"certificate":"`},
		{renew, Identity{Kind: KindLogin, Node: "l1"}, "POST", `{"name":"l1",` + request(t, p256) + "}", true, 200, `{"certificate":"`},
		{tokens, user, "POST", "{}", false, 403, `{"code":"permission","message":"only an admin may do this"}`},
		{tokens, admin, "POST", "{", false, 400, `{"code":"invalid","message":"invalid JSON`},
		{tokens, admin, "POST", `{"controller":true}`, false, 409, `{"code":"conflict","message":"this controller keeps its state in SQLite, and is the only one"`},
		{tokens, admin, "POST", `{"uses":-1}`, false, 400, `{"code":"invalid","message":"a token has 1 to 1000 uses, not -1"}`},
		{tokens, admin, "POST", "{}", false, 200, `{"schema_version":1,"line":"gang://`},
		{revoke, user, "POST", `{"node":"n1"}`, false, 403, `{"code":"permission","message":"only an admin may do this"}`},
		{revoke, admin, "POST", "{", false, 400, `{"code":"invalid","message":"invalid JSON`},
		{revoke, admin, "POST", `{"node":"A"}`, false, 400, `{"code":"invalid","message":"` + name},
		{revoke, admin, "POST", `{"node":"n9"}`, false, 200, "{}"},
		{controllers, Nobody, "POST", "{", true, 400, `{"code":"invalid","message":"invalid JSON`},
		{controllers, Nobody, "POST", `{"name":"b"}`, true, 409, `{"code":"conflict","message":"this controller keeps its state in SQLite, and is the only one"`},
	} {
		r := httptest.NewRequestWithContext(With(t.Context(), x.id), x.method, "/", strings.NewReader(x.body))
		if x.tls {
			r.TLS = &tls.ConnectionState{}
		}
		w := httptest.NewRecorder()
		x.h.ServeHTTP(w, r)
		if w.Code != x.status || !strings.HasPrefix(w.Body.String(), x.want) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %.80q by %s: %d %.200s\nwant %d %s", x.method, x.body, x.id.Kind, w.Code, w.Body, x.status, x.want)
		}
	}
	if _, ok := c.Revoked.upTo["n9"]; !ok || len(c.Revoked.upTo) != 1 {
		t.Errorf("revoked %v", c.Revoked.upTo)
	}
}

// TestTokensAsAsked: what may be asked for, to its bounds, and what is then kept.
func TestTokensAsAsked(t *testing.T) {
	tokens, err := openTokens(Files(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	tokens.now = func() time.Time { return now }
	for _, c := range []struct {
		ask  api.TokenRequest
		want tokenRow
	}{
		{api.TokenRequest{}, tokenRow{Uses: 1, Expires: now.Add(time.Hour)}},
		{api.TokenRequest{Uses: 1000, TTLSeconds: 7 * 86400}, tokenRow{Uses: 1000, Expires: now.Add(7 * 24 * time.Hour)}},
		{api.TokenRequest{Uses: 1, TTLSeconds: 1, Node: "n1", Login: true}, tokenRow{Uses: 1, Expires: now.Add(time.Second), Node: "n1", Login: true}},
		{api.TokenRequest{Controller: true, Uses: 1}, tokenRow{Uses: 1, Expires: now.Add(time.Hour), Controller: true}},
	} {
		token, err := tokens.New(c.ask)
		c.want.Hash = hash(token)
		if all := tokens.state.Tokens; err != nil || len(token) != 43 || all[len(all)-1] != c.want {
			t.Errorf("%+v: %q, %v, %+v", c.ask, token, err, all)
		}
	}
	const controllers = "a controller's token is for one controller of any name, and for neither a node nor a login host"
	for _, c := range []struct {
		ask  api.TokenRequest
		want string
	}{
		{api.TokenRequest{Controller: true, Node: "n1"}, controllers}, {api.TokenRequest{Controller: true, Login: true}, controllers}, {api.TokenRequest{Controller: true, Uses: 2}, controllers},
		{api.TokenRequest{TTLSeconds: -1}, "a token lives from 1 second to 7 days, not -1 seconds"},
		{api.TokenRequest{TTLSeconds: 604801}, "a token lives from 1 second to 7 days, not 604801 seconds"},
		{api.TokenRequest{TTLSeconds: 1 << 62}, "a token lives from 1 second to 7 days, not 4611686018427387904 seconds"},
		{api.TokenRequest{Uses: -1}, "a token has 1 to 1000 uses, not -1"}, {api.TokenRequest{Uses: 1001}, "a token has 1 to 1000 uses, not 1001"},
		{api.TokenRequest{Node: "N"}, badName("N").Error()},
	} {
		if token, err := tokens.New(c.ask); err == nil || err.Error() != c.want || token != "" {
			t.Errorf("%+v: %q, %v", c.ask, token, err)
		}
	}
	if len(tokens.state.Tokens) != 4 {
		t.Errorf("%+v", tokens.state)
	}
	// It ends with its last instant, and who has joined is kept in order.
	many, err := tokens.New(api.TokenRequest{Uses: 9, TTLSeconds: 60})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(59 * time.Second)
	for _, n := range []string{"n5", "n1", "n3"} {
		if login, err := tokens.use(many, n); login || err != nil {
			t.Errorf("%s: %v, %v", n, login, err)
		}
	}
	if !slices.Equal(tokens.state.Joined, []string{"n1", "n3", "n5"}) {
		t.Errorf("%v", tokens.state.Joined)
	}
	now = now.Add(time.Second)
	if _, err := tokens.use(many, "n4"); err != error(errToken) {
		t.Errorf("at its end: %v", err)
	}
	if err := tokens.useForController(many, func() error { return nil }); err == nil || err.Error() != "this token is not valid (any more); ask an admin for a new line: gangd controller new" {
		t.Errorf("for a controller: %v", err)
	}
}

// unreadable is a vault that can't be read, or that another has always changed.
type unreadable struct {
	shelf
	changed bool
	gets    int // that succeed
}

func (u *unreadable) Get() (map[string][]byte, error) {
	if u.gets--; u.gets < 0 {
		return nil, errors.New("no such shelf")
	}
	return u.shelf.Get()
}

func (u *unreadable) Put(name string, data []byte) error {
	if u.changed {
		return ErrChanged
	}
	return u.shelf.Put(name, data)
}

// TestVaultThatCanNotBeRead: each part says what it wanted of it, and nothing is taken for empty.
func TestVaultThatCanNotBeRead(t *testing.T) {
	full, _ := newShelves()
	i, err := OpenIssuer(full, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for gets, want := range []string{"certificate authority: no such shelf", "join tokens: no such shelf", "revoked nodes: no such shelf"} {
		if i, err := OpenIssuer(&unreadable{shelf: *full, gets: gets}, "", nil); i != nil || err == nil || err.Error() != want {
			t.Errorf("%v, %v, want %s", i, err, want)
		}
	}
	gone := &unreadable{shelf: *full, changed: true}
	i.vault, i.Tokens.vault, i.Revoked.vault = gone, gone, gone
	if err := i.Reload(); err == nil || err.Error() != "no such shelf" {
		t.Errorf("reload: %v", err)
	}
	if _, err := i.Tokens.New(api.TokenRequest{}); err == nil || err.Error() != "join tokens: join tokens: no such shelf" || len(i.Tokens.state.Tokens) > 0 {
		t.Errorf("new token: %v, %+v", err, i.Tokens.state)
	}
	if err := i.Revoked.Revoke("n1"); err == nil || err.Error() != "revoke n1: no such shelf" || len(i.Revoked.upTo) > 0 {
		t.Errorf("revoke: %v, %v", err, i.Revoked.upTo)
	}
	if err := i.Tokens.take(map[string][]byte{tokensName: []byte("[")}); err == nil || err.Error() != "join tokens: tokens.json in the shelf: unexpected end of JSON input" {
		t.Errorf("torn tokens: %v", err)
	}
	if err := i.Revoked.take(map[string][]byte{revokedName: []byte("[")}); err == nil || err.Error() != "revoked nodes: revoked.json in the shelf: unexpected end of JSON input" {
		t.Errorf("a torn list: %v", err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, tokensName), 0o700); err != nil {
		t.Fatal(err)
	}
	if all, err := Files(dir).Get(); err == nil || all != nil {
		t.Errorf("a directory in the place of a file: %v, %v", all, err)
	}
	if err := Files(filepath.Join("/dev/null", "x")).Put(CAName, nil); err == nil {
		t.Error("put below what is no directory")
	}
}

// TestRevocationsOfASecond: a certificate of the second of the revocation counts no more, one of the next does, and that is what who joins again gets.
func TestRevocationsOfASecond(t *testing.T) {
	v, _ := newShelves()
	r, err := openRevocations(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Revoke("n1"); err != nil { // nobody is to be told
		t.Fatal(err)
	}
	at := r.upTo["n1"]
	ca, err := OpenCA(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s    subject
		at   time.Time
		want bool
	}{
		{subject{"n1", nodeKind}, at.Add(-time.Hour), true}, {subject{"n1", nodeKind}, at, true}, {subject{"n1", nodeKind}, at.Add(time.Second), false},
		{subject{"n1", loginKind}, at, true}, {subject{"n1", controllerKind}, at, false}, {subject{"n2", nodeKind}, at, false},
	} {
		if got := r.cover(c.s, certificate(t, ca, c.s, c.at)); got != c.want {
			t.Errorf("%+v of %v after it: %v", c.s, c.at.Sub(at), got)
		}
	}
	for now, want := range map[time.Time]time.Time{at.Add(-time.Hour): at.Add(time.Second), at: at.Add(time.Second), at.Add(time.Second): at.Add(time.Second),
		at.Add(9*time.Second + time.Millisecond): at.Add(9 * time.Second)} {
		if got := r.issueTime("n1", now); !got.Equal(want) {
			t.Errorf("issued %v after it: %v", now.Sub(at), got.Sub(at))
		}
	}
	if got := r.issueTime("n2", at.Add(time.Millisecond)); !got.Equal(at) {
		t.Errorf("another's: %v", got)
	}
	// A clock that went back takes no revocation back.
	later := at.Add(time.Hour)
	r.upTo["n1"] = later
	if err := r.Revoke("n1"); err != nil || !r.upTo["n1"].Equal(later) {
		t.Errorf("%v, %v", r.upTo["n1"], err)
	}
	// Who reads the list hears of those alone that it has in addition.
	var cut []string
	r.OnRevoke(func(n string) { cut = append(cut, n) })
	list := fmt.Sprintf(`{"n1":%q,"n2":%q}`, later.Format(time.RFC3339), at.Format(time.RFC3339))
	for range 2 {
		if err := r.take(map[string][]byte{revokedName: []byte(list)}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(cut, []string{"n2"}) || !r.revoked("n2", at) {
		t.Errorf("cut %q", cut)
	}
	r.OnRevoke(nil)
	if err := r.take(map[string][]byte{}); err != nil || r.revoked("n1", at) {
		t.Errorf("an empty list: %v", err)
	}
}

// TestCertificates: what the authority signs for itself, for its controllers and for others.
func TestCertificates(t *testing.T) {
	v, other := newShelves()
	ca, err := OpenCA(v)
	if err != nil {
		t.Fatal(err)
	}
	near := func(at time.Time, want time.Duration) bool {
		d := time.Until(at) - want
		return d < time.Minute && d > -10*time.Minute
	}
	if c := ca.cert; !c.IsCA || !c.MaxPathLenZero || c.MaxPathLen != 0 || !c.BasicConstraintsValid || c.KeyUsage != x509.KeyUsageCertSign || c.Subject.CommonName != "gangd CA" ||
		!near(c.NotBefore, -skew) || !near(c.NotAfter, caLife) || c.SerialNumber.Sign() <= 0 {
		t.Errorf("its own: %+v", c)
	}
	server, err := ca.controllerCert(x509.ExtKeyUsageServerAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.controllerCert(x509.ExtKeyUsageClientAuth, &subject{"b", controllerKind})
	if err != nil {
		t.Fatal(err)
	}
	if c := server.Leaf; !slices.Equal(c.DNSNames, []string{controllerName}) || c.URIs != nil || c.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth || !near(c.NotAfter, nodeLife) || !near(c.NotBefore, -skew) ||
		len(server.Certificate) != 2 || string(server.Certificate[1]) != string(ca.cert.Raw) {
		t.Errorf("to serve: %+v", c)
	}
	if who, err := subjectOf(client.Leaf); err != nil || who != (subject{"b", controllerKind}) || client.Leaf.DNSNames != nil || client.Leaf.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
		t.Errorf("to call: %+v, %v", who, err)
	}
	if again, err := ca.controllerCert(x509.ExtKeyUsageServerAuth, nil); err != nil || again != server {
		t.Errorf("made anew: %v", err)
	}
	old := *server.Leaf
	old.NotBefore, old.NotAfter = time.Now().Add(-3*nodeLife/4), time.Now().Add(nodeLife/4)
	ca.own[x509.ExtKeyUsageServerAuth] = &tls.Certificate{Leaf: &old}
	if again, err := ca.controllerCert(x509.ExtKeyUsageServerAuth, nil); err != nil || again.Leaf == &old || again == server {
		t.Errorf("an old one is kept: %v", err)
	}
	born := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]bool{10 * time.Hour: false, 10*time.Hour - 1: true, 10*time.Hour + 1: false, -time.Hour: true} {
		c := &x509.Certificate{NotBefore: born, NotAfter: born.Add(30 * time.Hour)}
		if renewable(c, c.NotAfter.Add(-left)) != want {
			t.Errorf("%v before its end: %v", left, !want)
		}
	}
	a, err := ca.Secret("a")
	b, err2 := ca.Secret("b")
	again, err3 := ca.Secret("a")
	if err != nil || err2 != nil || err3 != nil || len(a) != 32 || string(a) == string(b) || string(a) != string(again) {
		t.Errorf("secrets %x, %x, %x: %v %v %v", a, b, again, err, err2, err3)
	}
	if same, err := OpenCA(other); err != nil || same.Fingerprint() != ca.Fingerprint() || len(ca.Fingerprint()) != 64 {
		t.Errorf("read again: %v", err)
	}
	v.there[CAName] = []byte("x")
	if _, err := OpenCA(v); err == nil || !strings.HasPrefix(err.Error(), "certificate authority: ca.pem in the shelf: tls: ") {
		t.Errorf("torn: %v", err)
	}
	// Whom a certificate speaks for is in one URI of ours.
	for _, s := range []subject{{"n1", "guest"}, {"N", nodeKind}, {"", nodeKind}} {
		c := certificate(t, ca, s, time.Now())
		if who, err := subjectOf(c); err == nil || err.Error() != "not the certificate of a node" || who != (subject{}) {
			t.Errorf("%+v: %+v, %v", s, who, err)
		}
	}
	good := (subject{"n1", nodeKind}).uri()
	web := *good
	web.Scheme = "https"
	two, foreign := &x509.Certificate{}, &x509.Certificate{}
	two.URIs, foreign.URIs = append(two.URIs, good, good), append(foreign.URIs, &web)
	for _, c := range []*x509.Certificate{{}, two, foreign} {
		if who, err := subjectOf(c); err == nil {
			t.Errorf("%v: %+v", c.URIs, who)
		}
	}
	// At the door a certificate of nobody's is refused, and one that was revoked by its name.
	revoked := &Revocations{upTo: map[string]time.Time{"n1": time.Now().Add(time.Hour)}}
	n1 := &x509.Certificate{URIs: append(two.URIs[:0:0], good), NotBefore: time.Now()}
	for _, c := range []struct {
		revoked *Revocations
		certs   []*x509.Certificate
		want    string
	}{
		{revoked, nil, "<nil>"}, {revoked, []*x509.Certificate{{}}, "not the certificate of a node"}, {revoked, []*x509.Certificate{n1}, "the certificate of node n1 is revoked"},
		{nil, []*x509.Certificate{n1}, "<nil>"},
	} {
		if err := ServerTLS(ca, c.revoked).VerifyConnection(tls.ConnectionState{PeerCertificates: c.certs}); fmt.Sprint(err) != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestJoinKeepsOrSays: what a node can't keep, and what it is not given, it says by name.
func TestJoinKeepsOrSays(t *testing.T) {
	c := start(t)
	ctx := context.Background()
	line := func() string { return c.line(t, api.TokenRequest{Uses: 9}) }
	taken := t.TempDir()
	for _, name := range []string{caFile, nodeFile} {
		if err := os.MkdirAll(filepath.Join(taken, name, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	half := t.TempDir()
	if err := os.MkdirAll(filepath.Join(half, nodeFile, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ line, name, dir, want string }{
		{"gang://", "n1", t.TempDir(), errLine.Error()},
		{line(), "N", t.TempDir(), badName("N").Error()},
		{line(), "n1", "/dev/null/x", "mkdir /dev/null: not a directory"},
		{line(), "n1", taken, "file exists"},
		{line(), "n2", half, "file exists"},
	} {
		if j, err := Join(ctx, x.line, x.name, x.dir); j != nil || err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s in %s: %+v, %v", x.name, x.dir, j, err)
		}
	}
	for line, want := range map[string]string{"gang://": errLine.Error(), line(): badName("N").Error()} {
		if key, err := JoinController(ctx, line, "N"); key != nil || err == nil || err.Error() != want {
			t.Errorf("%q, %v, want %s", key, err, want)
		}
	}
	// A certificate that is not for this node is not kept.
	other := start(t)
	wrong := startWith(t, func(*tls.Config) {})
	wrong.answer = func(w http.ResponseWriter) { fmt.Fprint(w, `{"certificate":"eA=="}`) }
	dir := t.TempDir()
	if _, err := Join(ctx, wrong.line(t, api.TokenRequest{}), "n1", dir); err == nil || !strings.HasPrefix(err.Error(), "the controller's certificate for this node: x509: ") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v", left)
	}
	dir = other.join(t, "n1")
	before, _ := os.ReadFile(filepath.Join(dir, nodeFile))
	other.answer = wrong.answer
	if err := renew(ctx, dir, other.Address); err == nil || !strings.HasPrefix(err.Error(), "the controller's certificate for this node: x509: ") {
		t.Errorf("%v", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, nodeFile)); err != nil || string(after) != string(before) {
		t.Errorf("the old one was replaced, %v", err)
	}
}

// TestAnswersToTheirEnd: an answer is read to its bound, and one that was cut is none.
func TestAnswersToTheirEnd(t *testing.T) {
	c := start(t)
	pin := &pinned{fingerprint: c.CA.Fingerprint()}
	const key = `{"key":"a2V5"}`
	whole := key + strings.Repeat(" ", maxBody-len(key))
	for _, x := range []struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		{func(w http.ResponseWriter) { fmt.Fprint(w, whole) }, ""},
		{func(w http.ResponseWriter) { fmt.Fprint(w, whole+"x") }, ""},
		{func(w http.ResponseWriter) { fmt.Fprint(w, whole[:len(whole)-1]+"xx") }, "controller " + c.Address + ": invalid character 'x' after top-level value"},
		{func(w http.ResponseWriter) { w.Header().Set("Content-Length", "99"); fmt.Fprint(w, key) }, "controller " + c.Address + ": unexpected EOF"},
	} {
		c.answer = x.answer
		reply, err := postOnce(t.Context(), pin.config(), c.Address, JoinPath, &joinRequest{})
		if x.want == "" && (err != nil || string(reply.Key) != "key") || x.want != "" && (err == nil || err.Error() != x.want) {
			t.Errorf("%+v, %v, want %q", reply, err, x.want)
		}
	}
	if _, err := postOnce(t.Context(), pin.config(), "a b", JoinPath, &joinRequest{}); err == nil || !strings.Contains(err.Error(), "invalid character") {
		t.Errorf("no address: %v", err)
	}
}

// TestWhoLeadsIsAskedInTurn: its addresses one after the other, to the first that answers, whatever that says.
func TestWhoLeadsIsAskedInTurn(t *testing.T) {
	leads, second := start(t), start(t)
	by := startWith(t, func(conf *tls.Config) { *conf = *ServerTLS(leads.CA, nil) })
	pin := func() *tls.Config { return (&pinned{fingerprint: leads.CA.Fingerprint()}).config() }
	notHere := func(w *api.Word) *api.Error { return &api.Error{Code: api.CodeNotLeader, Message: "not here", Word: w} }
	to := func(addresses ...string) *api.Word {
		return &api.Word{Leader: &api.Controller{Name: "a", Addresses: addresses}}
	}
	for _, c := range []struct {
		word *api.Word
		want string
	}{
		{nil, "not here"}, {&api.Word{}, "not here"}, {to(), "not here"},
		{to("unix:/x", leads.Address, "unix:/y"), "joining needs"}, // what it says itself
	} {
		by.refuse = notHere(c.word)
		leads.refuse = api.Errorf(api.CodePermission, "joining needs a token")
		if reply, err := post(t.Context(), pin(), by.Address, JoinPath, &joinRequest{}); reply != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v", c.word, reply, err)
		}
	}
	if second.asked.Load() != 0 {
		t.Error("who was not named was asked")
	}
}

// TestFilesOfANode: what is missing or no certificate is said with its path, and what was replaced is read again.
func TestFilesOfANode(t *testing.T) {
	none := t.TempDir()
	_, tlsErr := NodeTLS(none)
	name, expires, nameErr := nodeName(none)
	login, loginErr := IsLogin(none)
	if !errors.Is(tlsErr, ErrNotJoined) || !errors.Is(nameErr, ErrNotJoined) || !errors.Is(loginErr, ErrNotJoined) || name != "" || !expires.IsZero() || login {
		t.Errorf("not joined: %v, %v, %v", tlsErr, nameErr, loginErr)
	}
	c := start(t)
	dir := c.join(t, "n1")
	name, expires, err := nodeName(dir)
	if name != "n1" || err != nil || time.Until(expires) < 29*24*time.Hour {
		t.Errorf("%q, %v, %v", name, expires, err)
	}
	path := filepath.Join(dir, nodeFile)
	own := &nodeCert{path: path}
	first, err := own.get()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := own.get(); err != nil || again != first {
		t.Errorf("read again though nothing changed, %v", err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// Another file with the same time, and the same file with another.
	data, err := os.ReadFile(path)
	if err == nil {
		err = errors.Join(WriteFile(path, data), os.Chtimes(path, st.ModTime(), st.ModTime()))
	}
	second, err2 := own.get()
	if err != nil || err2 != nil || second == first {
		t.Errorf("another file is not read: %v, %v", err, err2)
	}
	if err := os.Chtimes(path, st.ModTime(), st.ModTime().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if third, err := own.get(); err != nil || third == second {
		t.Errorf("a file that was written is not read: %v", err)
	}
	for file, want := range map[string]string{caFile: ": no certificate in it", nodeFile: ": tls: "} {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte("-----BEGIN X-----\n-----END X-----\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := NodeTLS(dir); err == nil || !strings.HasPrefix(err.Error(), path+want) {
			t.Errorf("%s: %v", file, err)
		}
		if file == caFile {
			if err := renew(context.Background(), dir, c.Address); err == nil {
				t.Error("renewed without the authority's certificate")
			}
			if err := WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.CA.cert.Raw})); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := (&nodeCert{path: "/dev/null/x"}).get(); err == nil || errors.Is(err, ErrNotJoined) {
		t.Errorf("below what is no directory: %v", err)
	}
}
