package auth

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// TestSharesOfFiles: what users and callers without a name may hold follows from the files that gangd may have open.
func TestSharesOfFiles(t *testing.T) {
	for files, most := range map[uint64]int{1000: 1000, mostFiles: mostFiles, mostFiles + 1000: mostFiles, 1 << 63: mostFiles} {
		if c := connsOf(files); c.user != most/shareOfUser || c.anonymous != most/shareOfAnonymous {
			t.Errorf("of %d files: %d for a user, %d for callers without a name", files, c.user, c.anonymous)
		}
	}
	if c := newConns(); c.user <= 0 || c.anonymous <= 0 {
		t.Errorf("of this process: %d and %d", c.user, c.anonymous)
	}
}

// TestABrokenVaultIsSaid: what can't be read lets nobody begin, and what can't be written is not done.
func TestABrokenVaultIsSaid(t *testing.T) {
	for _, name := range []string{CAName, tokensName, revokedName} {
		v, _ := newShelves()
		if _, err := OpenIssuer(v, "", nil); err != nil {
			t.Fatal(err)
		}
		v.there[name] = []byte("{")
		if _, err := OpenIssuer(v, "", nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is torn: %v", name, err)
		}
	}
	full, _ := newShelves()
	full.full = true
	if _, err := OpenIssuer(full, "", nil); err == nil {
		t.Error("an authority that is not kept was given out")
	}
	var cut []string
	v, _ := newShelves()
	i, err := OpenIssuer(v, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	i.Revoked.OnRevoke(func(n string) { cut = append(cut, n) })
	v.full = true
	if err := i.Revoked.Revoke("n1"); err == nil || err.Error() != "revoke n1: no room" || len(cut) > 0 || len(i.Revoked.upTo) > 0 {
		t.Errorf("%v, cut %q, revoked %v", err, cut, i.Revoked.upTo)
	}
	if _, err := i.Tokens.New(api.TokenRequest{}); err == nil {
		t.Error("a token that is not kept was given out")
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(With(t.Context(), Identity{Kind: KindUser, Admin: true}), "POST", "/v1/revoke", strings.NewReader(`{"node":"n1"}`))
	if i.RevokeHandler().ServeHTTP(w, r); w.Code != http.StatusInternalServerError || len(cut) > 0 {
		t.Errorf("revoked on a full disk: %d %s, cut %q", w.Code, w.Body, cut)
	}
	w = httptest.NewRecorder()
	r = httptest.NewRequestWithContext(r.Context(), "POST", "/v1/revoke", strings.NewReader(`{"node":"../n1"}`))
	if i.RevokeHandler().ServeHTTP(w, r); w.Code != http.StatusBadRequest {
		t.Errorf("no name of a node: %d %s", w.Code, w.Body)
	}
	for _, all := range []map[string][]byte{{tokensName: []byte("{")}, {revokedName: []byte("{")}} {
		if i.Tokens.take(all) == nil && i.Revoked.take(all) == nil {
			t.Errorf("took %s", all)
		}
	}
}

// TestWriteFileIsWhole: the new content is there or the old one, and who asked hears which.
func TestWriteFileIsWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "two"} {
		got := ""
		err := WriteFile(path, []byte(text))
		if b, e := os.ReadFile(path); e == nil {
			got = string(b)
		}
		if st, e := os.Stat(path); err != nil || e != nil || got != text || st.Mode().Perm() != 0o600 {
			t.Errorf("%q: %v, %v", got, err, e)
		}
	}
	if err := WriteFile(filepath.Join(dir, "no", "f"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into no directory: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "d", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "d"), nil); err == nil {
		t.Error("a directory was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestWriteFileOnAFullDisk: the old content stays, and nothing beside it.
func TestWriteFileOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("mounting a small tmpfs needs root: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	path := filepath.Join(dir, "f")
	if err := WriteFile(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	err := WriteFile(path, make([]byte, 1<<16))
	left, e := os.ReadDir(dir)
	b, e2 := os.ReadFile(path)
	if !errors.Is(err, unix.ENOSPC) || e != nil || e2 != nil || len(left) != 1 || string(b) != "old" {
		t.Errorf("%v; left %v, %q", err, left, b)
	}
}

// TestStrangeAnswers: what a controller, or who is in its place, answers to a request for a certificate.
func TestStrangeAnswers(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{http.StatusBadGateway, "<html>", "controller %s answered 502 Bad Gateway"},
		{http.StatusBadGateway, "{}", "controller %s answered 502 Bad Gateway"},
		{http.StatusOK, "<html>", "controller %s: invalid character '<' looking for beginning of value"},
		{http.StatusFound, "", "controller %s answered 302 Found"},
		{http.StatusConflict, `{"code":"conflict","message":"no"}`, "no"},
	} {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		address := s.Listener.Addr().String()
		reply, err := postOnce(t.Context(), &tls.Config{InsecureSkipVerify: true}, address, JoinPath, &joinRequest{})
		if want := strings.ReplaceAll(c.want, "%s", address); reply != nil || err == nil || err.Error() != want {
			t.Errorf("%d %s: %v, %v", c.status, c.body, reply, err)
		}
		s.Close()
		if _, err := postOnce(t.Context(), &tls.Config{}, address, JoinPath, &joinRequest{}); err == nil || !strings.HasPrefix(err.Error(), "controller "+address+": ") {
			t.Errorf("nobody listens: %v", err)
		}
	}
}

// TestIssuedForAnother: a certificate that would not work later is refused while the old one is there.
func TestIssuedForAnother(t *testing.T) {
	ca, err := OpenCA(Files(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	other, err := OpenCA(Files(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	key, _, _ := newRequest()
	stranger, _, _ := newRequest()
	issue := func(by *CA, name string, key any) []byte {
		der, err := by.issue(subject{kind: nodeKind, name: name}, key, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	for what, der := range map[string][]byte{"garbage": []byte("x"), "another authority": issue(other, "n1", key.Public()), "another name": issue(ca, "n2", key.Public()),
		"another key": issue(ca, "n1", stranger.Public())} {
		if leaf, _, err := checkIssued(der, ca.cert, "n1", key); err == nil || leaf != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if leaf, who, err := checkIssued(issue(ca, "n1", key.Public()), ca.cert, "n1", key); err != nil || leaf == nil || who.name != "n1" {
		t.Errorf("its own: %+v, %v", who, err)
	}
}

// TestRenewWithoutWhatItNeeds: a node whose files are torn says so, and keeps what it has.
func TestRenewWithoutWhatItNeeds(t *testing.T) {
	c := start(t)
	dir := c.join(t, "n1")
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("torn"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := renew(context.Background(), dir, c.Address); err == nil {
			t.Errorf("renewed with a torn %s", f.Name())
		}
		if err := os.WriteFile(path, old, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := renew(context.Background(), dir, "127.0.0.1:1"); err == nil {
		t.Error("renewed by nobody")
	}
	if err := renew(context.Background(), dir, c.Address); err != nil {
		t.Error(err)
	}
}

// TestLineIsRead: the first line of what is given, whole or not, and never what can't be read.
func TestLineIsRead(t *testing.T) {
	for in, want := range map[string]string{"gang://x\nmore": "gang://x\n", "gang://x": "gang://x", "": ""} {
		if got, err := ReadLine("-", strings.NewReader(in)); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if got, err := ReadLine("-", strings.NewReader(strings.Repeat("x", maxLine+9))); err != nil || len(got) != maxLine {
		t.Errorf("of what has no end: %d bytes, %v", len(got), err)
	}
	if got, err := ReadLine("gang://y", strings.NewReader("gang://x")); err != nil || got != "gang://y" {
		t.Errorf("an argument: %q, %v", got, err)
	}
	if got, err := ReadLine("-", errReader{}); err == nil || got != "" {
		t.Errorf("a reader that fails: %q, %v", got, err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("gone") }

// TestControllerJoinNeedsAName: and TLS, before a token is looked at.
func TestControllerJoinNeedsAName(t *testing.T) {
	c := start(t)
	c.Admit = func(context.Context, string) error { return nil }
	pin := &pinned{fingerprint: c.CA.Fingerprint()}
	for name, code := range map[string]api.Code{"../x": api.CodeInvalid, "": api.CodeInvalid, "b": api.CodePermission} {
		_, err := post(t.Context(), pin.config(), c.Address, ControllerJoinPath, &joinRequest{Name: name})
		wantCode(t, err, code)
	}
	w := httptest.NewRecorder()
	c.ControllerHandler().ServeHTTP(w, httptest.NewRequest("POST", ControllerJoinPath, strings.NewReader(`{"name":"b"}`)))
	var e api.Error
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Message != "joining needs TLS" {
		t.Errorf("without TLS: %s", w.Body)
	}
}

// TestCallerNeedsAllWords: another controller's word for a caller that lacks a part is for nobody.
func TestCallerNeedsAllWords(t *testing.T) {
	g := &Guard{}
	by := subject{kind: controllerKind, name: "b"}
	name := nameOf(t, 0)
	for _, c := range [][2]string{{"0 ", "0"}, {"0", "0"}, {"x " + name, "0"}, {"0 " + name, "x"}, {"0 " + name, ""}, {"4294967296 " + name, "0"}, {"a " + name, "0"}, {"0 " + name, "a"}} {
		if id := g.caller(t.Context(), by, c[0], c[1]); id.Kind != KindNone || id.Why != "" {
			t.Errorf("%q: %+v", c, id)
		}
	}
	if id := g.caller(t.Context(), by, "0 "+name, "0"); id.Kind != KindUser || !id.Admin || id.Host {
		t.Errorf("root: %+v", id)
	}
	r := httptest.NewRequest("GET", "/", nil)
	VouchFor(r, Identity{UID: 40010, GID: 110, User: "ada"})
	if id := g.caller(t.Context(), by, r.Header.Get(userHeader), r.Header.Get(groupHeader)); id != (Identity{Kind: KindUser, UID: 40010, GID: 110, User: "40010"}) {
		t.Errorf("%v: %+v", r.Header, id)
	}
}
