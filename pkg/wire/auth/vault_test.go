package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// shelf is a vault in memory that others write to as well.
type shelf struct {
	there map[string][]byte // shared
	last  map[string][]byte // as this one read or wrote it
	full  bool
}

func newShelves() (a, b *shelf) {
	there := map[string][]byte{}
	return &shelf{there: there}, &shelf{there: there}
}

func (s *shelf) String() string { return "the shelf" }

func (s *shelf) Get() (map[string][]byte, error) {
	s.last = maps.Clone(s.there)
	return maps.Clone(s.there), nil
}

func (s *shelf) Put(name string, data []byte) error {
	switch {
	case s.full:
		return errors.New("no room")
	case !bytes.Equal(s.there[name], s.last[name]):
		return ErrChanged
	}
	s.there[name], s.last[name] = data, data
	return nil
}

// Two controllers keep tokens and revocations in one place: neither undoes what the other has done.
func TestTwoKeepOneVault(t *testing.T) {
	va, vb := newShelves()
	a, err := OpenIssuer(va, "a:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenIssuer(vb, "b:1", nil)
	if err != nil || b.CA.Fingerprint() != a.CA.Fingerprint() {
		t.Fatalf("another authority: %v", err)
	}
	token, err := a.Tokens.New(api.TokenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Tokens.New(api.TokenRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Tokens.use(token, "n1"); err != nil {
		t.Errorf("the first one's token at the second: %v", err)
	}
	if _, err := a.Tokens.use(token, "n2"); err == nil {
		t.Error("a token that was used at the second was used at the first")
	}
	if err := a.Revoked.Revoke("n1"); err != nil {
		t.Fatal(err)
	}
	if err := b.Revoked.Revoke("n2"); err != nil {
		t.Fatal(err)
	}
	var cut []string
	a.Revoked.OnRevoke(func(node string) { cut = append(cut, node) })
	late, err := b.Tokens.New(api.TokenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(a.Tokens.state.Tokens, func(r tokenRow) bool { return r.Hash == hash(late) }) {
		t.Errorf("after a reload the first one has %+v", a.Tokens.state)
	}
	past := time.Now().Add(-time.Hour)
	if !b.Revoked.revoked("n1", past) || !a.Revoked.revoked("n2", past) || strings.Join(cut, " ") != "n2" {
		t.Errorf("n1 at the second: %t, n2 at the first: %t, which cut %q", b.Revoked.revoked("n1", past), a.Revoked.revoked("n2", past), cut)
	}
}

// A controller's word for its callers counts for root and admins too, makes nobody a node, and is not a node's to give.
func TestControllerSpeaksForItsCallers(t *testing.T) {
	c := start(t)
	c.guard.Admins = named("daemon")
	speak := func(conf *http.Transport, id Identity) Identity {
		got, err := ask(speaker{conf, id}, c.Address)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	other := &http.Transport{TLSClientConfig: ControllerTLS(c.CA, "b"), DisableKeepAlives: true}
	if got := speak(other, Identity{UID: 0, GID: 0, User: "root"}); got.Kind != KindUser || !got.Admin || got.Host {
		t.Errorf("root: %+v", got)
	}
	if got := speak(other, Identity{UID: 1, GID: 7, User: nameOf(t, 1)}); got.Kind != KindUser || got.GID != 7 || got.Admin != (nameOf(t, 1) == "daemon") {
		t.Errorf("uid 1: %+v", got)
	}
	if got := speak(other, Identity{UID: 0, User: "somebody"}); got.Kind != KindNone || !strings.Contains(got.Why, "somebody on b") {
		t.Errorf("another name: %+v", got)
	}
	if got, err := ask(other, c.Address); err != nil || got.Kind != KindNone {
		t.Errorf("for nobody: %+v, %v", got, err)
	}
	// A node that is called as the controller is stays a node.
	if err := c.Revoked.Revoke("b"); err != nil {
		t.Fatal(err)
	}
	if got := speak(other, Identity{UID: 0, User: "root"}); !got.Admin {
		t.Errorf("the revocation of a node of the same name: %+v", got)
	}
	node := &http.Transport{TLSClientConfig: nodeTLS(t, c.join(t, "n1")), DisableKeepAlives: true}
	if got := speak(node, Identity{UID: 0, User: "root"}); got.Kind != KindNone {
		t.Errorf("a node: %+v", got)
	}
}

type speaker struct {
	http.RoundTripper
	id Identity
}

func (s speaker) RoundTrip(r *http.Request) (*http.Response, error) {
	VouchFor(r, s.id)
	return s.RoundTripper.RoundTrip(r)
}

// A controller joins by a line that makes neither a node nor a second controller, and only where the name is free.
func TestControllerJoins(t *testing.T) {
	c := start(t)
	join := func(line, name string) ([]byte, error) {
		return JoinController(context.Background(), line, name)
	}
	_, err := join(c.line(t, api.TokenRequest{}), "b")
	wantCode(t, err, api.CodeConflict) // the only one
	c.Key = []byte("key")
	c.Admit = func(_ context.Context, name string) error {
		if name == "a" {
			return api.Errorf(api.CodeConflict, "there is an a")
		}
		return nil
	}
	_, err = join(c.line(t, api.TokenRequest{}), "b")
	wantCode(t, err, api.CodePermission)
	line := c.line(t, api.TokenRequest{Controller: true})
	_, err = Join(context.Background(), line, "n1", t.TempDir())
	wantCode(t, err, api.CodePermission)
	_, err = join(line, "a")
	wantCode(t, err, api.CodeConflict)
	if key, err := join(line, "b"); string(key) != "key" || err != nil {
		t.Errorf("%q, %v: what was refused used the token up", key, err)
	}
	_, err = join(line, "b")
	wantCode(t, err, api.CodePermission)
	if _, err := c.Tokens.New(api.TokenRequest{Controller: true, Node: "n1"}); err == nil {
		t.Error("a token of a controller and of a node")
	}
}

// Who joins or renews where another leads is sent there.
func TestJoinFollowsTheLeader(t *testing.T) {
	leads := start(t)
	by := startWith(t, func(conf *tls.Config) { *conf = *ServerTLS(leads.CA, nil) })
	by.refuse = &api.Error{Code: api.CodeNotLeader, Message: "no", Word: &api.Word{Leader: &api.Controller{Name: "a", Addresses: []string{"unix:/x", leads.Address, "unix:/y"}}}}
	token, err := leads.Tokens.New(api.TokenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Join(context.Background(), joinLine{by.Address, leads.CA.Fingerprint(), token}.String(), "n1", t.TempDir()); err != nil {
		t.Error(err)
	}
}
