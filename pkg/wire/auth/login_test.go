package auth

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"gangd/pkg/api"
)

// heldBy is who the controller takes the holder of dir for.
func (c *controller) heldBy(t *testing.T, dir string, claim func(*http.Request)) Identity {
	t.Helper()
	conf, err := NodeTLS(dir)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}
	req, _ := http.NewRequest(http.MethodGet, "https://"+c.Address+"/whoami", nil)
	if claim != nil {
		claim(req)
	}
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var id Identity
	if err := json.NewDecoder(res.Body).Decode(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestLoginHost: the role comes from the token, is kept through renewal, vouches for
// users without being asked about, and opens no node's session.
func TestLoginHost(t *testing.T) {
	c := start(t)
	dir := filepath.Join(t.TempDir(), "tls")
	j, err := Join(context.Background(), c.line(t, api.TokenRequest{Login: true}), "login1", dir)
	if err != nil || !j.Login {
		t.Fatalf("%+v, %v", j, err)
	}
	for _, when := range []string{"joined", "renewed"} {
		if login, err := IsLogin(dir); err != nil || !login {
			t.Errorf("%s: login %v, %v", when, login, err)
		}
		self := c.heldBy(t, dir, nil)
		if want := (Identity{Kind: KindLogin, Node: "login1"}); self != want {
			t.Errorf("%s: %+v", when, self)
		}
		if name, ok := SessionNode(self); ok {
			t.Errorf("%s: may open the session of %q", when, name)
		}
		user := c.heldBy(t, dir, func(r *http.Request) { Vouch(r, 40001, "ada") })
		if want := (Identity{Kind: KindRelay, Node: "login1", UID: 40001, User: "ada", Login: true}); user != want {
			t.Errorf("%s: %+v", when, user)
		}
		if root := c.heldBy(t, dir, func(r *http.Request) { Vouch(r, 0, "root") }); root.Kind != KindNone || root.Why != "no relay speaks for root; use the controller's host" {
			t.Errorf("%s: %+v", when, root)
		}
		if err := renew(context.Background(), dir, c.Address); err != nil {
			t.Fatal(err)
		}
	}
	node := c.join(t, "n1")
	if login, err := IsLogin(node); err != nil || login {
		t.Errorf("a node: login %v, %v", login, err)
	}
	// One space of names: a node can't become what a login host is called.
	_, err = Join(context.Background(), c.line(t, api.TokenRequest{}), "login1", filepath.Join(t.TempDir(), "tls"))
	if api.CodeOf(err) != api.CodeConflict {
		t.Errorf("a name twice: %v", err)
	}
}
