package auth

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

func TestTokenWorksOnce(t *testing.T) {
	c := start(t)
	line := c.line(t, api.TokenRequest{})
	if _, err := Join(context.Background(), line, "n1", t.TempDir()); err != nil {
		t.Fatal(err)
	}
	_, err := Join(context.Background(), line, "n2", t.TempDir())
	wantCode(t, err, api.CodePermission)
	if want := "this token is not valid (any more); ask an admin for a new line: gangd token new"; err.Error() != want {
		t.Errorf("got %q", err)
	}
}

// TestRefusalsAreWhole: what is refused says why, not where it was looked up.
func TestRefusalsAreWhole(t *testing.T) {
	c := start(t)
	if _, err := c.Tokens.use("nobody's", "n1"); err == nil || err.Error() != errToken.Error() {
		t.Errorf("%v", err)
	}
	no := api.Errorf(api.CodeConflict, "no")
	line := c.line(t, api.TokenRequest{Controller: true})
	l, err := parseLine(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Tokens.useForController(l.token, func() error { return no }); err != error(no) {
		t.Errorf("%v", err)
	}
	if err := c.Tokens.useForController(l.token, func() error { return nil }); err != nil {
		t.Errorf("the refusal used it up: %v", err)
	}
}

func TestTokenUses(t *testing.T) {
	c := start(t)
	line := c.line(t, api.TokenRequest{Uses: 2})
	for i, name := range []string{"n1", "n2", "n3"} {
		_, err := Join(context.Background(), line, name, t.TempDir())
		if (err == nil) != (i < 2) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTokenExpires(t *testing.T) {
	c := start(t)
	line := c.line(t, api.TokenRequest{TTLSeconds: 60})
	c.Tokens.now = func() time.Time { return time.Now().Add(61 * time.Second) }
	_, err := Join(context.Background(), line, "n1", t.TempDir())
	wantCode(t, err, api.CodePermission)
	// The next change drops it from the file.
	if _, err := c.Tokens.New(api.TokenRequest{}); err != nil || len(c.Tokens.state.Tokens) != 1 {
		t.Errorf("%v %+v", err, c.Tokens.state)
	}
}

// A token is listed without what it is, and withdrawn before it was used.
func TestTokensAreListedAndWithdrawn(t *testing.T) {
	c := start(t)
	line := c.line(t, api.TokenRequest{Node: "n1", TTLSeconds: 60})
	c.line(t, api.TokenRequest{Login: true, Uses: 3, TTLSeconds: 30})
	c.line(t, api.TokenRequest{TTLSeconds: 10})
	c.Tokens.now = func() time.Time { return time.Now().Add(20 * time.Second) }
	all := c.Tokens.List()
	if len(all) != 2 || !all[0].Login || all[0].Uses != 3 || all[1].Node != "n1" || strings.Contains(line, all[1].ID) {
		t.Fatalf("%+v", all)
	}
	if err := c.Tokens.Withdraw("00000000"); err == nil || err.Error() != `no token "00000000"; gangd token list has those that can be used` {
		t.Errorf("%v", err)
	}
	if err := c.Tokens.Withdraw(all[1].ID); err != nil {
		t.Fatal(err)
	}
	_, err := Join(context.Background(), line, "n1", t.TempDir())
	wantCode(t, err, api.CodePermission)
	if left := c.Tokens.List(); len(left) != 1 || left[0] != all[0] {
		t.Errorf("%+v", left)
	}
}

func TestTokenOfAnotherNode(t *testing.T) {
	c := start(t)
	line := c.line(t, api.TokenRequest{Node: "n1"})
	_, err := Join(context.Background(), line, "n2", t.TempDir())
	wantCode(t, err, api.CodePermission)
	if _, err := Join(context.Background(), line, "n1", t.TempDir()); err != nil {
		t.Errorf("the refusal used it up: %v", err)
	}
}

func TestSpareTokenCannotTakeOverAName(t *testing.T) {
	c := start(t)
	c.join(t, "n1")
	_, err := Join(context.Background(), c.line(t, api.TokenRequest{Uses: 5}), "n1", t.TempDir())
	wantCode(t, err, api.CodeConflict)
	if want := "a node n1 has joined before; to let it join again: gangd token new --node=n1"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	c.join(t, "n1") // as the sentence says
}

func TestTokensSurviveRestartHashed(t *testing.T) {
	dir := t.TempDir()
	first, err := openTokens(Files(dir))
	if err != nil {
		t.Fatal(err)
	}
	token, err := first.New(api.TokenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "tokens.json"))
	if err != nil || strings.Contains(string(data), token) {
		t.Errorf("%v: the token itself is in the file:\n%s", err, data)
	}
	if info, _ := os.Stat(filepath.Join(dir, "tokens.json")); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
	second, err := openTokens(Files(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.use(token, "n1"); err != nil {
		t.Error(err)
	}
	third, err := openTokens(Files(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := third.use(token, "n2"); err == nil {
		t.Error("used again after a restart")
	}
}

func TestTokenIsNotSpentWhereItCannotBeRecorded(t *testing.T) {
	tokens, err := openTokens(&shelf{full: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.New(api.TokenRequest{}); err == nil || len(tokens.state.Tokens) != 0 {
		t.Errorf("%v %+v", err, tokens.state)
	}
}

func TestTokenBounds(t *testing.T) {
	tokens, err := openTokens(Files(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []api.TokenRequest{{Node: "N 1"}, {Uses: -1}, {Uses: 1001}, {TTLSeconds: -1}, {TTLSeconds: 7*86400 + 1}, {TTLSeconds: 1 << 62}} {
		_, err := tokens.New(ask)
		wantCode(t, err, api.CodeInvalid)
	}
}

func TestTokenAndRevokeAreForAdmins(t *testing.T) {
	c := start(t)
	mux := http.NewServeMux()
	mux.Handle("/v1/tokens", c.TokenHandler())
	mux.Handle("/v1/revoke", c.RevokeHandler())
	mux.Handle("/v1/tokens/withdraw", c.TokenHandler())
	method := "POST"
	call := func(id Identity, path, body string) (int, string) {
		r, _ := http.NewRequestWithContext(With(context.Background(), id), method, path, strings.NewReader(body))
		w := &recorder{status: 200}
		mux.ServeHTTP(w, r)
		return w.status, w.body.String()
	}
	admin := Identity{Kind: KindUser, UID: 5, Admin: true}
	for _, who := range callers {
		status, _ := call(who.id, "/v1/tokens", "{}")
		if want := Allow(OpToken, who.id, who.id.UID); (status == 200) != want {
			t.Errorf("%s: %d", who.name, status)
		}
	}
	_, body := call(admin, "/v1/tokens", `{"node":"n7"}`)
	var reply api.TokenReply
	if err := json.Unmarshal([]byte(body), &reply); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(context.Background(), reply.Line, "n7", t.TempDir()); err != nil {
		t.Error(err)
	}
	if status, body := call(admin, "/v1/tokens/withdraw", `{"id":"x"}`); status != 404 {
		t.Error(status, body)
	}
	method = "GET"
	for _, who := range callers {
		status, body := call(who.id, "/v1/tokens", "")
		if want := Allow(OpToken, who.id, who.id.UID); (status == 200) != want || want && !strings.Contains(body, `"tokens":[`) {
			t.Errorf("%s lists: %d %s", who.name, status, body)
		}
	}
	method = "POST"
	if status, _ := call(callers[0].id, "/v1/revoke", `{"node":"n7"}`); status != 403 {
		t.Error(status)
	}
	if status, body := call(admin, "/v1/revoke", `{"node":"n7"}`); status != 200 {
		t.Error(status, body)
	}
	c.Address = ""
	if status, body := call(admin, "/v1/tokens", "{}"); status != 409 || !strings.Contains(body, "listens on no TCP address") {
		t.Error(status, body)
	}
}

type recorder struct {
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return http.Header{} }
func (r *recorder) WriteHeader(s int)           { r.status = s }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func TestGarbageLines(t *testing.T) {
	good := joinLine{"login1:7420", strings.Repeat("ab", 32), strings.Repeat("A", 43)}
	if got, err := parseLine(" " + good.String() + "\n"); err != nil || got != good {
		t.Errorf("%+v %v", got, err)
	}
	s := good.String()
	for _, bad := range []string{"", "x", "gang://", "gang://@:/", s[1:], s[:len(s)-1], s + "a", s + "?x=1", s + "#f", strings.Replace(s, "gang", "https", 1),
		strings.Replace(s, ":7420", "", 1), strings.Replace(s, "7420", "0", 1), strings.Replace(s, "7420", "70000", 1), strings.Replace(s, "login1", "", 1),
		strings.Replace(s, "A@", "@", 1), strings.Replace(s, "A@", "!@", 1), strings.Replace(s, "ab/", "/", 1) + "zz", s[:40] + " " + s[40:], s + "\n" + s, s + "\x00"} {
		_, err := parseLine(bad)
		if err == nil {
			t.Errorf("accepted %q", bad)
		} else if err.Error() != "not a join line: want gang://TOKEN@HOST:PORT/FINGERPRINT, in one piece, as gangd token new prints it" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	v6 := joinLine{net.JoinHostPort("fe80::1", "7420"), good.fingerprint, good.token}
	if got, err := parseLine(v6.String()); err != nil || got != v6 {
		t.Errorf("%+v %v", got, err)
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add("gang://" + strings.Repeat("A", 43) + "@login1:7420/" + strings.Repeat("ab", 32))
	f.Add("gang://u:p@[::1%25lo]:1/..%2f")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := parseLine(s)
		if err != nil {
			return
		}
		again, err := parseLine(l.String())
		if err != nil || again != l {
			t.Errorf("%q: %+v, again %+v %v", s, l, again, err)
		}
	})
}
