package relay

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// A controller that leads stands still with calls that it has got. When another leads they are cut: what changes nothing is
// refused as by one that does not lead, so that it is made again; of the rest it is said that it may have been done. The next go to
// the other.
func TestLeaderStandsStill(t *testing.T) {
	a := newSite(t, true)
	got, over := make(chan string, 9), make(chan struct{})
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Method
		<-over
	})
	defer close(over)
	a.mux.HandleFunc("/v1/ping", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(api.PingReply{Leader: "a", Term: 5})
	})
	var leads atomic.Bool
	b := beside(t, a, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !leads.Load():
			w.WriteHeader(api.CodeNotLeader.HTTPStatus())
			_ = json.NewEncoder(w).Encode(api.Error{Code: api.CodeNotLeader, Word: &api.Word{Name: "b", Term: 5,
				Leader: &api.Controller{Name: "a", Addresses: []string{"unix:/x", a.address}}}})
		case r.URL.Path == "/v1/ping":
			_ = json.NewEncoder(w).Encode(api.PingReply{Leader: "b", Term: 6})
		default:
			fmt.Fprint(w, "b's answer")
		}
	})
	a.socket += "2"
	a.relay(Options{Socket: a.socket, Controllers: listOf(b, a.address), TLS: a.conf})
	call := func(method string) (int, string) {
		req, err := http.NewRequest(method, "http://gangd/v1/jobs", strings.NewReader("{}"))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		res, err := a.client(caller()).Do(req)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text)
	}
	type answer struct {
		method, text string
		status       int
	}
	answers := make(chan answer)
	for _, method := range []string{"GET", "POST"} {
		go func() {
			for {
				status, text := call(method)
				// Before it has asked, a relay tries one that may not lead.
				if e := new(api.Error); json.Unmarshal([]byte(text), e) == nil && e.Word != nil && e.Word.Name == "b" {
					continue
				}
				answers <- answer{method, text, status}
				return
			}
		}()
	}
	for range 2 {
		select {
		case <-got:
		case <-time.After(patience):
			t.Fatal("the leader was not called")
		}
	}
	leads.Store(true)
	for range 2 {
		select {
		case by := <-answers:
			want := api.CodeUnavailable
			if by.method == "GET" {
				want = api.CodeNotLeader
			}
			if e := new(api.Error); json.Unmarshal([]byte(by.text), e) != nil || e.Code != want || by.status != want.HTTPStatus() {
				t.Errorf("%s: %d %s, want %s", by.method, by.status, by.text, want)
			}
		case <-time.After(patience):
			t.Fatal("a call waits for the leader that stands still")
		}
	}
	if status, text := call("POST"); status != http.StatusOK || text != "b's answer" {
		t.Errorf("the next call: %d %s", status, text)
	}
}

// One controller by two addresses is asked once, and no call is cut.
func TestOneControllerByTwoAddresses(t *testing.T) {
	l := newLeads(listOf("a:1", "b:1"))
	if got := l.others(time.Now()); len(got) != 2 {
		t.Errorf("nobody is asked who leads: %v", got)
	}
	l.one = true
	if got := l.others(time.Now()); got != nil {
		t.Errorf("asks %v again", got)
	}
}

// Only a newer term cuts calls, and only those that another has.
func TestCallsAreCutByANewerTerm(t *testing.T) {
	l := newLeads(listOf("a:1", "b:1"))
	ctx, done := l.begin(t.Context())
	defer done()
	l.leader(5, "b:1") // the first that is known: a:1 may be another name of it
	if ctx.Err() != nil {
		t.Fatal("cut by what was learnt first")
	}
	l.leader(4, "c:1")
	if l.now != "b:1" || ctx.Err() != nil {
		t.Errorf("an older term counts: %s, %v", l.now, ctx.Err())
	}
	next, done := l.begin(t.Context())
	defer done()
	l.leader(6, "c:1")
	third, done := l.begin(t.Context())
	defer done()
	l.leader(7, "c:1")
	if ctx.Err() == nil || next.Err() == nil || third.Err() != nil {
		t.Errorf("cut: the first %v, the second %v, and the leader's own %v", ctx.Err(), next.Err(), third.Err())
	}
	if got := l.others(time.Now()); got != nil {
		t.Errorf("asks %v for calls that have just begun", got)
	}
	if got := l.others(time.Now().Add(lookAgain)); len(got) != 2 {
		t.Errorf("asks %v", got)
	}
}

// beside serves a second controller of a site.
func beside(t *testing.T, s *site, h http.HandlerFunc) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h, TLSConfig: auth.ServerTLS(s.issuer.CA, nil), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	done := make(chan struct{})
	go func() { _ = srv.ServeTLS(l, "", ""); close(done) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return l.Addr().String()
}

// A host that names one controller learns from its answers of the others, and calls them when it starts again and the
// one that it names is gone for good.
func TestListIsLearnt(t *testing.T) {
	a := newSite(t, true)
	answers := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/ping" {
			_ = json.NewEncoder(w).Encode(api.PingReply{Leader: "b", Term: 6})
			return
		}
		fmt.Fprint(w, "b's answer")
	}
	b := beside(t, a, answers)
	a.mux.HandleFunc("/v1/ping", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(api.PingReply{Leader: "a", Term: 5})
	})
	version := func(w http.ResponseWriter) { w.Header().Set(api.ControllersHeader, "3") }
	a.mux.HandleFunc("/v1/jobs", func(w http.ResponseWriter, r *http.Request) { version(w) })
	a.mux.HandleFunc("/v1/controllers", func(w http.ResponseWriter, r *http.Request) {
		version(w)
		_ = json.NewEncoder(w).Encode(api.ControllersReply{Version: 3, Controllers: []api.ControllerState{{Name: "a", Addresses: []string{a.address}},
			{Name: "b", Addresses: []string{"unix:/x", b}}, {Name: "old", State: api.ControllerRemoved, Addresses: []string{"old:1"}}}})
	})
	path := filepath.Join(t.TempDir(), "list")
	kept := OpenList(path, []string{a.address}, slog.New(slog.DiscardHandler))
	first := a.socket + "2"
	a.relay(Options{Socket: first, Controllers: kept, TLS: a.conf})
	call := func(socket string) (status int, text string, version string) {
		a.socket = socket
		res, err := a.client(caller()).Get("http://gangd/v1/jobs")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b), res.Header.Get(api.ControllersHeader)
	}
	if status, _, version := call(first); status != http.StatusOK || version != "" {
		t.Fatalf("%d, and the caller is told of version %q", status, version)
	}
	for give := time.Now().Add(patience); kept.version() != 3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(give) {
			t.Fatal("the list was not learnt")
		}
	}
	if got := kept.Addresses(); !slices.Equal(got, []string{a.address, b}) {
		t.Errorf("it calls %v", got)
	}
	kept.take(&api.ControllersReply{Version: 2})
	if kept.version() != 3 {
		t.Error("an older list is taken")
	}
	a.stop()
	again := OpenList(path, []string{a.address}, slog.New(slog.DiscardHandler))
	second := a.socket + "3"
	a.relay(Options{Socket: second, Controllers: again, TLS: a.conf})
	for give := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		status, text, _ := call(second)
		if status == http.StatusOK && text == "b's answer" {
			break
		}
		if time.Now().After(give) {
			t.Fatalf("after it was started again: %d %s", status, text)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := OpenList(path, []string{"c:1"}, slog.New(slog.DiscardHandler)).Addresses(); !slices.Equal(got, []string{"c:1"}) {
		t.Errorf("of a list that is damaged: %v", got)
	}
}

// A login host that nobody has used yet learns by itself which controllers there are.
func TestListIsAskedFor(t *testing.T) {
	a := newSite(t, true)
	version := func(w http.ResponseWriter) { w.Header().Set(api.ControllersHeader, "3") }
	a.mux.HandleFunc("/v1/ping", func(w http.ResponseWriter, r *http.Request) {
		version(w)
		_ = json.NewEncoder(w).Encode(api.PingReply{Leader: "a", Term: 5})
	})
	a.mux.HandleFunc("/v1/controllers", func(w http.ResponseWriter, r *http.Request) {
		version(w)
		_ = json.NewEncoder(w).Encode(api.ControllersReply{Version: 3, Controllers: []api.ControllerState{{Name: "a", Addresses: []string{a.address}}, {Name: "b", Addresses: []string{"b:1"}}}})
	})
	kept := OpenList(filepath.Join(t.TempDir(), "list"), []string{a.address}, slog.New(slog.DiscardHandler))
	a.relay(Options{Socket: a.socket + "2", Controllers: kept, TLS: a.conf, Alone: true})
	for give := time.Now().Add(patience); !slices.Equal(kept.Addresses(), []string{a.address, "b:1"}); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("it knows of %v", kept.Addresses())
		}
	}
	// Where there is one controller now, there may be several later.
	l := newLeads(listOf("a:1"))
	l.alone, l.one = true, true
	now := time.Now()
	for _, x := range []struct {
		after time.Duration
		want  []string
	}{{0, []string{"a:1"}}, {lookUp - 1, nil}, {lookUp, []string{"a:1"}}, {lookUp + 1, nil}} {
		if got := l.others(now.Add(x.after)); !slices.Equal(got, x.want) {
			t.Errorf("after %s it asks %q, want %q", x.after, got, x.want)
		}
	}
}

func listOf(addresses ...string) *List { return OpenList("", addresses, slog.New(slog.DiscardHandler)) }
