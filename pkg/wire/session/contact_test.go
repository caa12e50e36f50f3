package session

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// kept is what the agent was given to keep last.
func (a *fakeAgent) keeps() Kept {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept
}

func controllers(version uint64, names ...string) *api.Controllers {
	l := &api.Controllers{Version: version}
	for _, n := range names {
		l.List = append(l.List, api.Controller{Name: n, Addresses: []string{n + ":7420"}})
	}
	return l
}

func TestWordsRenewALease(t *testing.T) {
	c := &contact{site: Kept{Controllers: *controllers(3, "a", "b", "c")}}
	last := func() time.Duration { return time.Duration(c.last.Load()) }
	expect := func(what string, want time.Duration) {
		t.Helper()
		if last() != want {
			t.Errorf("%s: leases run from %s, want %s", what, last(), want)
		}
	}
	c.word("a", 10*time.Second)
	c.word("b", 11*time.Second)
	expect("one has said nothing", 0)
	c.word("", 12*time.Second)
	c.word("d", 12*time.Second)
	expect("a stranger has spoken", 0)
	c.word("c", 7*time.Second)
	expect("all have spoken", 7*time.Second)
	c.word("c", 20*time.Second)
	expect("the oldest has spoken again", 10*time.Second)
	c.word("a", 5*time.Second)
	expect("an old word came late", 10*time.Second)
	if c.listed(controllers(3, "a")) || c.listed(controllers(2, "a")) || c.listed(nil) {
		t.Error("a list that is no newer one was taken")
	}
	if !c.listed(controllers(4, "a", "b", "c", "d")) {
		t.Error("a newer list was not taken")
	}
	c.word("a", 30*time.Second)
	c.word("b", 30*time.Second)
	expect("a newcomer has said nothing since it is on the list", 12*time.Second)
}

// A frame of a leader that was replaced changes nothing and ends the session.
func TestOldTerm(t *testing.T) {
	p := newHalves(t)
	welcome := func(term uint64) *api.Frame {
		return &api.Frame{Welcome: &api.Welcome{Settings: api.DefaultSettings(), Term: term, Name: "a"}, Controllers: controllers(1, "a", "b")}
	}
	p.node.Hello()
	if err := p.node.Take(welcome(4)); err != nil {
		t.Fatal(err)
	}
	if k := p.agent.keeps(); k.Term != 4 || k.Version != 1 || !lists(k, "b") || lists(k, "c") {
		t.Errorf("kept %+v", k)
	}
	beat := p.node.Beat()
	if beat.Listed != 1 {
		t.Errorf("the beat says list %d", beat.Listed)
	}
	p.now += time.Second
	before := p.node.LastContact()
	if !p.node.Word(&api.Word{Name: "b", Leads: true, Term: 5}, p.now) {
		t.Error("a higher term is no reason to go elsewhere")
	}
	if err := p.node.Take(&api.Frame{Echo: beat.Beat}); err == nil || p.node.LastContact() != before {
		t.Errorf("an echo of an older leader counts, %v", err)
	}
	if p.node.Word(&api.Word{Name: "a", Term: 5}, p.now) {
		t.Error("the same term is a reason to go elsewhere")
	}
	p.node.Hello()
	if err := p.node.Take(welcome(4)); err == nil || p.agent.keeps().Term != 5 {
		t.Errorf("welcomed by an older leader, %v", err)
	}
}

// office is a controller that may not lead any more.
type office struct {
	leads  bool
	list   *api.Controllers
	listed uint64
}

func (o *office) Leads() bool                   { return o.leads }
func (o *office) Seat() (string, uint64)        { return "a", 9 }
func (o *office) Controllers() *api.Controllers { return o.list }
func (o *office) Listed(_ string, v uint64)     { o.listed = v }

func TestOffice(t *testing.T) {
	o := &office{leads: true, list: controllers(1, "a", "b")}
	h := NewDrivenHub(newFakeHandler(), o, &api.Hello{Node: "n1"}, time.Now)
	if f := h.Welcome(&api.Welcome{}); f[0].Controllers != o.list || f[0].Welcome.Name != "a" || f[0].Welcome.Term != 9 {
		t.Errorf("the welcome is %+v with %+v", f[0].Welcome, f[0].Controllers)
	}
	h.Take(&api.Frame{Beat: 7, Listed: 1})
	if o.listed != 1 {
		t.Errorf("listed %d", o.listed)
	}
	o.leads = false
	if f := h.Due(); f != nil {
		t.Errorf("who does not lead sends %+v", f)
	}
	o.leads, o.list = true, controllers(2, "a")
	if f := h.Due(); len(f) != 1 || f[0].Echo != 7 || f[0].Controllers != o.list {
		t.Errorf("sent %+v", f)
	}
	if f := h.Due(); f != nil {
		t.Errorf("the list is sent again: %+v", f)
	}
}

// A node that tries a controller which stands still, whose kernel takes connections, goes to who leads as soon as
// it hears of it.
func TestTrialOfFrozenControllerIsGivenUp(t *testing.T) {
	r := newRig(t, "n1")
	frozen, err := net.Listen("unix", filepath.Join(t.TempDir(), "s")) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	l := &api.Controllers{Version: 1, List: []api.Controller{{Name: "a", Addresses: []string{"unix:" + r.path}}, {Name: "b", Addresses: []string{"unix:" + frozen.Addr().String()}}}}
	leads := r.server.Handler
	r.hub.office = &office{leads: true, list: l}
	r.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == api.WordPath {
			_ = json.NewEncoder(w).Encode(&api.Word{Name: "a", Leads: true, Term: 9, Leader: &l.List[0]})
			return
		}
		leads.ServeHTTP(w, q)
	})
	a := newFakeAgent("n1", "x")
	c := NewClient(Options{Controllers: []string{l.List[0].Addresses[0], l.List[1].Addresses[0]}, Agent: a, Log: quiet(), Kept: Kept{Controllers: *l}})
	if first := c.targets()[1]; first.name != "b" {
		t.Fatalf("%s is tried first, which does not stand still", first.name)
	}
	began := time.Now()
	c.Start(t.Context())
	defer c.Close()
	get(t, "welcome", a.welcome)
	if took := time.Since(began); took >= helloTimeout {
		t.Errorf("it took %s, the whole patience with one that stands still", took)
	}
}

func lists(k Kept, name string) bool {
	return slices.ContainsFunc(k.List, func(c api.Controller) bool { return c.Name == name })
}

// answering is a client of two controllers and where the second answers, over the network.
func answering(t *testing.T, answer http.HandlerFunc) (*Client, target) {
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	at := target{"b", strings.TrimPrefix(s.URL, "http://")}
	l := controllers(1, "a", "b")
	return NewClient(Options{Controllers: []string{at.address}, Agent: newFakeAgent("n1", "x"), Log: quiet(), Kept: Kept{Controllers: *l}}), at
}

// A word is that of the controller that was asked: what another one answers at its address counts for nobody.
func TestWordOfAnother(t *testing.T) {
	w, status := api.Word{Name: "b", Term: 3}, http.StatusOK
	c, at := answering(t, func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(status)
		_ = json.NewEncoder(out).Encode(&w)
	})
	transport := c.transport(at, nil)
	defer transport.CloseIdleConnections()
	if !c.ask(t.Context(), at, transport) {
		t.Error("its own word is none")
	}
	if w.Name = "a"; c.ask(t.Context(), at, transport) {
		t.Error("another's word counts")
	}
	if w.Name, status = "b", http.StatusForbidden; c.ask(t.Context(), at, transport) {
		t.Error("a refusal counts")
	}
}

// Who refuses a session because another leads says who: that is where the node goes next.
func TestRefusalNamesTheLeader(t *testing.T) {
	leader := api.Controller{Name: "a", Addresses: []string{"h:1"}}
	c, at := answering(t, func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(http.StatusMisdirectedRequest)
		_ = json.NewEncoder(out).Encode(&api.Error{Code: api.CodeUnavailable, Message: "a leads", Word: &api.Word{Name: "b", Term: 3, Leader: &leader}})
	})
	c.at = at
	if _, _, err := c.dial(t.Context()); err == nil || err.Error() != "a leads" {
		t.Errorf("%v", err)
	}
	if hint := c.hint.Load(); hint == nil || hint.Name != "a" {
		t.Errorf("it goes to %+v next", hint)
	}
}

// A word of a higher term ends the session with who led before, not one that was opened meanwhile with who leads in it.
func TestWordEndsAnOlderSession(t *testing.T) {
	r := newRig(t, "n1")
	for term, ends := range map[uint64]bool{3: true, 4: true, 5: false} {
		c := NewClient(Options{Controllers: []string{"unix:" + r.path}, Agent: newFakeAgent("n1", "x"), Log: quiet(), Kept: Kept{Controllers: *controllers(1, "a", "b"), Term: 4}})
		s := &clientSession{c: c, link: rawDial(t, r)}
		s.term = term
		c.now.Store(s)
		c.said(&api.Word{Name: "b", Leads: true, Term: 5, Leader: &api.Controller{Name: "b"}}, time.Hour)
		if got := s.link.ctx.Err() != nil; got != ends {
			t.Errorf("a session of term %d is ended: %t", term, got)
		}
	}
}
