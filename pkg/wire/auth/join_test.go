package auth

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
)

// controller is one with the handlers of this package and /whoami.
type controller struct {
	*Issuer
	guard *Guard
	asked atomic.Int32 // requests that got through TLS

	refuse *api.Error                  // every call, where it is set
	answer func(w http.ResponseWriter) // to every call, where it is set
}

func start(t *testing.T) *controller {
	t.Helper()
	return startWith(t, func(c *tls.Config) {})
}

func startWith(t *testing.T, change func(*tls.Config)) *controller {
	t.Helper()
	i, err := OpenIssuer(Files(t.TempDir()), "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := &controller{Issuer: i, guard: &Guard{Revoked: i.Revoked, conns: counted(1000, 1000)}}
	mux := http.NewServeMux()
	mux.Handle(JoinPath, i.JoinHandler())
	mux.Handle(RenewPath, i.RenewHandler())
	mux.Handle(ControllerJoinPath, i.ControllerHandler())
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) {
		id, _ := From(r.Context())
		json.NewEncoder(w).Encode(id)
	})
	conf := ServerTLS(i.CA, i.Revoked)
	change(conf)
	l, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	if err != nil {
		t.Fatal(err)
	}
	i.Address = l.Addr().String()
	s := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), ConnContext: c.guard.ConnContext, ConnState: c.guard.ConnState,
		Handler: c.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.asked.Add(1)
			if c.refuse != nil {
				w.WriteHeader(c.refuse.Code.HTTPStatus())
				json.NewEncoder(w).Encode(c.refuse)
				return
			}
			if c.answer != nil {
				c.answer(w)
				return
			}
			mux.ServeHTTP(w, r)
		}))}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return c
}

func (c *controller) line(t *testing.T, ask api.TokenRequest) string {
	t.Helper()
	token, err := c.Tokens.New(ask)
	if err != nil {
		t.Fatal(err)
	}
	return joinLine{c.Address, c.CA.Fingerprint(), token}.String()
}

// join makes a node that has joined and gives its directory.
func (c *controller) join(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tls")
	j, err := Join(context.Background(), c.line(t, api.TokenRequest{Node: name}), name, dir)
	if err != nil {
		t.Fatal(err)
	}
	if j.Name != name || j.Address != c.Address || time.Until(j.Expires) < 29*24*time.Hour || time.Until(j.Expires) > 31*24*time.Hour {
		t.Errorf("%+v", j)
	}
	return dir
}

// whoami asks over a fresh connection.
func (c *controller) whoami(conf *tls.Config) (Identity, error) {
	tr := &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	return ask(tr, c.Address)
}

func ask(tr http.RoundTripper, address string) (id Identity, err error) {
	res, err := (&http.Client{Transport: tr}).Get("https://" + address + "/whoami")
	if err != nil {
		return Nobody, err
	}
	defer res.Body.Close()
	return id, json.NewDecoder(res.Body).Decode(&id)
}

func nodeTLS(t *testing.T, dir string) *tls.Config {
	t.Helper()
	conf, err := NodeTLS(dir)
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

func wantCode(t *testing.T, err error, code api.Code) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("got %v, want a refusal with %s", err, code)
	}
}

func TestJoinAndSpeak(t *testing.T) {
	c := start(t)
	dir := c.join(t, "n1")
	id, err := c.whoami(nodeTLS(t, dir))
	if err != nil || id != (Identity{Kind: KindNode, Node: "n1"}) {
		t.Errorf("%+v %v", id, err)
	}
	info, err := os.Stat(filepath.Join(dir, nodeFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	// Without a certificate the same server knows nobody.
	bare := nodeTLS(t, dir)
	bare.GetClientCertificate = nil
	if id, err := c.whoami(bare); err != nil || id.Kind != KindNone {
		t.Errorf("%+v %v", id, err)
	}
}

func TestNotJoined(t *testing.T) {
	if _, err := NodeTLS(t.TempDir()); !errors.Is(err, ErrNotJoined) {
		t.Error(err)
	}
}

func TestWrongFingerprint(t *testing.T) {
	c := start(t)
	l, err := parseLine(c.line(t, api.TokenRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	l.fingerprint = strings.Repeat("ab", 32)
	dir := t.TempDir()
	if _, err = Join(context.Background(), l.String(), "n1", dir); err == nil || !strings.Contains(err.Error(), "CA fingerprint differs") {
		t.Errorf("got %v", err)
	}
	if c.asked.Load() != 0 {
		t.Error("the token was sent to a controller that is not the line's")
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// TestManInTheMiddle shows the real CA's certificate with a leaf of another CA.
func TestManInTheMiddle(t *testing.T) {
	real := start(t)
	between := startWith(t, func(conf *tls.Config) {
		get := conf.GetCertificate
		conf.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := get(h)
			if err != nil {
				return nil, err
			}
			forged := *c
			forged.Certificate = [][]byte{c.Certificate[0], real.CA.cert.Raw}
			return &forged, nil
		}
	})
	l, _ := parseLine(real.line(t, api.TokenRequest{}))
	l.address = between.Address
	if _, err := Join(context.Background(), l.String(), "n1", t.TempDir()); err == nil || !strings.Contains(err.Error(), "signed by unknown authority") {
		t.Errorf("got %v", err)
	}
	// A node that has joined is not talked into it either.
	dir := real.join(t, "n1")
	if _, err := between.whoami(nodeTLS(t, dir)); err == nil {
		t.Error("the node spoke to another controller")
	}
	if between.asked.Load() != 0 {
		t.Error("something was sent")
	}
}

// TestNodeCannotPlayController serves with a node's certificate.
func TestNodeCannotPlayController(t *testing.T) {
	c := start(t)
	evil := filepath.Join(c.join(t, "n1"), nodeFile)
	pair, err := tls.LoadX509KeyPair(evil, evil)
	if err != nil {
		t.Fatal(err)
	}
	pair.Certificate = append(pair.Certificate, c.CA.cert.Raw)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go s.Serve(l)
	defer s.Close()
	line, _ := parseLine(c.line(t, api.TokenRequest{}))
	line.address = l.Addr().String()
	if _, err := Join(context.Background(), line.String(), "n2", t.TempDir()); err == nil {
		t.Error("joined a node's server")
	}
}

// TestControllerCannotPlayNode dials with the controller's certificate.
func TestControllerCannotPlayNode(t *testing.T) {
	c := start(t)
	conf := nodeTLS(t, c.join(t, "n1"))
	own, err := c.CA.controllerCert(x509.ExtKeyUsageServerAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	if id, err := c.whoami(conf); err == nil {
		t.Errorf("%+v", id)
	}
}

func TestRenew(t *testing.T) {
	c := start(t)
	dir := c.join(t, "n1")
	conf := nodeTLS(t, dir)
	before, _ := os.ReadFile(filepath.Join(dir, nodeFile))
	if err := renew(context.Background(), dir, c.Address); err != nil {
		t.Fatal(err)
	}
	after, _ := os.ReadFile(filepath.Join(dir, nodeFile))
	if string(before) == string(after) {
		t.Error("nothing changed")
	}
	// The configuration made before uses the new one.
	cert, err := conf.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := encodePair(cert.PrivateKey.(crypto.Signer), cert.Certificate[0])
	if string(data) != string(after) {
		t.Error("the old certificate is still used")
	}
	if id, err := c.whoami(conf); err != nil || id.Node != "n1" {
		t.Errorf("%+v %v", id, err)
	}
}

func TestRenewOnlyInTheLastThird(t *testing.T) {
	c := start(t)
	dir := c.join(t, "n1")
	log := slog.New(slog.DiscardHandler)
	renewOnce(context.Background(), dir, func() []string { return []string{c.Address} }, log)
	if n := c.asked.Load(); n != 1 {
		t.Errorf("%d requests: a fresh certificate was renewed", n)
	}
	c.reissue(t, dir, "n1", time.Now().Add(-21*24*time.Hour))
	renewOnce(context.Background(), dir, func() []string { return []string{c.Address} }, log)
	if _, expires, err := nodeName(dir); err != nil || time.Until(expires) < 29*24*time.Hour {
		t.Errorf("%v %v", expires, err)
	}
}

func TestRenewNeedsCertificateAndOwnName(t *testing.T) {
	c := start(t)
	conf := nodeTLS(t, c.join(t, "n1"))
	_, csr, err := newRequest()
	if err != nil {
		t.Fatal(err)
	}
	_, err = post(context.Background(), conf, c.Address, RenewPath, &joinRequest{Name: "n2", CSR: csr})
	wantCode(t, err, api.CodePermission)
	bare := conf.Clone()
	bare.GetClientCertificate = nil
	_, err = post(context.Background(), bare, c.Address, RenewPath, &joinRequest{CSR: csr})
	wantCode(t, err, api.CodePermission)
}

// reissue replaces the node's certificate by one issued at another time, key unchanged.
func (c *controller) reissue(t *testing.T, dir, name string, issued time.Time) {
	t.Helper()
	path := filepath.Join(dir, nodeFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := parsePair(data)
	if err != nil {
		t.Fatal(err)
	}
	der, err := c.CA.issue(subject{name, nodeKind}, key.Public(), issued)
	if err != nil {
		t.Fatal(err)
	}
	data, err = encodePair(key, der)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, data); err != nil {
		t.Fatal(err)
	}
}

func TestExpiredIsRefused(t *testing.T) {
	c := start(t)
	dir := c.join(t, "n1")
	c.reissue(t, dir, "n1", time.Now().Add(-nodeLife-time.Minute))
	if id, err := c.whoami(nodeTLS(t, dir)); err == nil {
		t.Errorf("%+v", id)
	}
}

func TestRevoked(t *testing.T) {
	c := start(t)
	dir, other := c.join(t, "n1"), c.join(t, "n2")
	var cut []string
	c.Revoked.OnRevoke(func(n string) { cut = append(cut, n) })
	live := &http.Transport{TLSClientConfig: nodeTLS(t, dir)}
	defer live.CloseIdleConnections()
	if id, err := ask(live, c.Address); err != nil || id.Node != "n1" {
		t.Fatalf("%+v %v", id, err)
	}
	if err := c.Revoked.Revoke("n1"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(cut, []string{"n1"}) {
		t.Errorf("cut %v", cut)
	}
	// The connection that is open already is nobody from now on.
	if id, err := ask(live, c.Address); err != nil || id.Kind != KindNone {
		t.Errorf("live connection: %+v %v", id, err)
	}
	if id, err := c.whoami(nodeTLS(t, dir)); err == nil {
		t.Errorf("new connection: %+v", id)
	}
	if id, err := c.whoami(nodeTLS(t, other)); err != nil || id.Node != "n2" {
		t.Errorf("another node: %+v %v", id, err)
	}
	again, err := openRevocations(c.Revoked.vault)
	if err != nil || !again.revoked("n1", time.Now().Add(-time.Hour)) {
		t.Errorf("after a restart: %v", err)
	}
	// To join again in the same second gives a certificate that counts.
	if id, err := c.whoami(nodeTLS(t, c.join(t, "n1"))); err != nil || id.Node != "n1" {
		t.Errorf("joined again: %+v %v", id, err)
	}
	if id, err := c.whoami(nodeTLS(t, dir)); err == nil {
		t.Errorf("the old one came back to life: %+v", id)
	}
}

func TestUnreadableRevocationsLetNobodyIn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "revoked.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenIssuer(Files(dir), "", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("opened")
	}
}

func TestTLS12IsRefused(t *testing.T) {
	c := start(t)
	conf := nodeTLS(t, c.join(t, "n1"))
	conf.MinVersion, conf.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, err := c.whoami(conf); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("got %v", err)
	}
}

func TestCAStaysTheSame(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenCA(Files(dir))
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenCA(Files(dir))
	if err != nil || a.Fingerprint() != b.Fingerprint() {
		t.Errorf("%v", err)
	}
	if info, _ := os.Stat(filepath.Join(dir, "ca.pem")); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCA(Files(dir)); err == nil {
		t.Error("a broken CA was replaced: every node would be locked out without a word")
	}
}

func TestHandlersRefuseGarbage(t *testing.T) {
	c := start(t)
	pin := &pinned{fingerprint: c.CA.Fingerprint()}
	token, _ := c.Tokens.New(api.TokenRequest{})
	_, csr, _ := newRequest()
	for _, bad := range []*joinRequest{
		{Token: token, Name: "../x", CSR: csr}, {Token: token, Name: "n1"}, {Token: token, Name: "n1", CSR: []byte("x")},
		{Token: token, Name: "n1", CSR: csr[:len(csr)-1]},
	} {
		_, err := post(context.Background(), pin.config(), c.Address, JoinPath, bad)
		wantCode(t, err, api.CodeInvalid)
	}
	_, err := post(context.Background(), pin.config(), c.Address, JoinPath, &joinRequest{Name: "n1", CSR: csr})
	wantCode(t, err, api.CodePermission)
	_, err = post(context.Background(), pin.config(), c.Address, JoinPath, &joinRequest{Name: strings.Repeat("x", maxBody), CSR: csr})
	wantCode(t, err, api.CodeTooLarge)
	if _, err := post(context.Background(), pin.config(), c.Address, JoinPath, &joinRequest{Token: token, Name: "n1", CSR: csr}); err != nil {
		t.Errorf("the refusals used the token up: %v", err)
	}
}

func BenchmarkAllow(b *testing.B) {
	id := callers[4].id
	for b.Loop() {
		Allow(OpCancel, id, 1000)
	}
}
