package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

func TestDesiredAndReport(t *testing.T) {
	r := newRig(t, "n1")
	spec := map[string]*api.Spec{"a": {Name: "train", Script: []byte("#!/bin/sh\n")}}
	r.handler.set(spec, assign(1, 1, "a"))
	a := newFakeAgent("n1", "x")
	c := r.dial(a)
	if h := get(t, "hello", r.handler.hellos); h.Node != "n1" || h.Protocol != api.SessionProtocol {
		t.Fatalf("hello %+v", h)
	}
	if w := get(t, "welcome", a.welcome); w.Lineage != 7 {
		t.Fatalf("welcome %+v", w)
	}
	want := &api.Desired{Revision: 1, Full: true, Assignments: []api.Assignment{assign(1, 1, "a")}, Specs: spec}
	if d := cmp.Diff(want, get(t, "desired", a.desired)); d != "" {
		t.Fatal(d)
	}
	select {
	case <-a.lineage:
	default:
		t.Error("an order came before the commit that made it was told")
	}
	open := assign(1, 1, "a")
	open.Gate = &api.Gate{MasterPort: 20000}
	r.handler.set(spec, open)
	r.hub.Wake([]string{"n1", "unknown"})
	open.Body = nil
	want = &api.Desired{Revision: 2, Assignments: []api.Assignment{open}, Specs: map[string]*api.Spec{}}
	if d := cmp.Diff(want, get(t, "gate", a.desired)); d != "" {
		t.Fatal(d)
	}
	a.mu.Lock()
	a.report = &api.Actual{Revision: 2, Members: []api.MemberActual{{MemberKey: key(1, 1), Phase: api.PhaseRunning}}}
	a.mu.Unlock()
	c.Wake()
	if got := get(t, "report", r.handler.reports); got.Members[0].Phase != api.PhaseRunning {
		t.Fatalf("report %+v", got)
	}
	if !c.Connected() {
		t.Error("not connected")
	}
	if n := get(t, "lineage with a beat", a.lineage); n != 11 {
		t.Errorf("a beat told lineage %d, want 11", n)
	}
}

func TestHoldSendsNothing(t *testing.T) {
	r := newRig(t, "")
	r.handler.hold = true
	a := newFakeAgent("n1", "x")
	r.dial(a)
	get(t, "welcome", a.welcome)
	r.hub.Wake([]string{"n1"})
	time.Sleep(2 * beatEvery) // nothing to wait for: a frame would come with the next beat
	if len(a.desired) != 0 {
		t.Fatalf("a controller on hold sent %+v", <-a.desired)
	}
	r.handler.mu.Lock()
	r.handler.hold = false
	r.handler.mu.Unlock()
	r.hub.Wake([]string{"n1"})
	if d := get(t, "desired", a.desired); !d.Full {
		t.Errorf("the first set after a hold is not full: %+v", d)
	}
}

func TestWakesCoalesce(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "x")
	r.dial(a)
	get(t, "full set", a.desired)
	for i := range 10000 {
		b := assign(1, 1, "a")
		b.Gate = &api.Gate{MasterPort: i}
		r.handler.set(map[string]*api.Spec{"a": {}}, b)
		r.hub.Wake([]string{"n1"})
	}
	for {
		d := get(t, "change", a.desired)
		if n := len(d.Assignments); n == 1 && d.Assignments[0].Gate.MasterPort == 9999 {
			if d.Revision > 5000 {
				t.Errorf("%d frames for 10000 wake-ups", d.Revision)
			}
			return
		}
	}
}

func TestHelloRefused(t *testing.T) {
	cases := []struct {
		name, authenticated string
		hello               *api.Frame
		handler             error
		want                string
	}{
		{"another node", "n1", &api.Frame{Hello: &api.Hello{Protocol: 1, Node: "n2"}}, nil, `the certificate is node "n1"'s, the hello says "n2"`},
		{"protocol", "n1", &api.Frame{Hello: &api.Hello{Protocol: 9, Node: "n1", Version: "2.0"}}, nil,
			"gnoded 2.0 speaks session protocol 9, this controller 1: install the same version on both"},
		{"no hello", "n1", &api.Frame{Beat: 1}, nil, "the first frame of a session must be a hello"},
		{"no name", "", &api.Frame{Hello: &api.Hello{Protocol: 1}}, nil, "malformed frame: hello without a node name"},
		{"by the handler", "n1", &api.Frame{Hello: &api.Hello{Protocol: 1, Node: "n1"}}, errTest, "not today"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.authenticated)
			r.handler.refuse = c.handler
			l := rawDial(t, r)
			if err := l.write(c.hello); err != nil {
				t.Fatal(err)
			}
			if _, err := l.read(); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// rawDial opens a WebSocket that says only what the test writes.
func rawDial(t testing.TB, r *rig) *link {
	t.Helper()
	var d net.Dialer
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", r.path) }}
	ws, _, err := websocket.Dial(context.Background(), "ws://gangd"+api.SessionPath, &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	l := newLink(context.Background(), ws, nil, maxControllerFrame)
	t.Cleanup(func() { l.end(errTest); tr.CloseIdleConnections() })
	return l
}

// greetRaw opens a raw session of node n1.
func greetRaw(t testing.TB, r *rig, state string) *link {
	t.Helper()
	l := rawDial(t, r)
	if err := l.write(&api.Frame{Hello: &api.Hello{Protocol: 1, Node: "n1", StateID: state}}); err != nil {
		t.Fatal(err)
	}
	if f, err := l.read(); err != nil || f.Welcome == nil {
		t.Fatalf("welcome %+v, %v", f, err)
	}
	return l
}

func TestMalformedFrameEndsTheSession(t *testing.T) {
	for _, text := range []string{"{", `{"actual":3}`, `"x"`, `{"hello":{"protocol":1}}`, ""} {
		r := newRig(t, "n1")
		l := greetRaw(t, r, "x")
		if err := l.ws.Write(l.ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := untilEnd(l); !strings.HasPrefix(err.Error(), "malformed frame: ") {
			t.Errorf("%q: ended with %v", text, err)
		}
		if n := get(t, "gone", r.handler.gone); n != "n1" {
			t.Errorf("gone %q", n)
		}
	}
}

func TestTooLargeFrameEndsTheSession(t *testing.T) {
	r := newRig(t, "n1")
	l := greetRaw(t, r, "x")
	big := append(append([]byte(`{"beat":1,"x":"`), bytes.Repeat([]byte("x"), maxNodeFrame)...), `"}`...)
	_ = l.ws.Write(l.ctx, websocket.MessageText, big)
	_ = untilEnd(l)
	get(t, "gone", r.handler.gone)
}

func untilEnd(l *link) error {
	for {
		if _, err := l.read(); err != nil {
			return err
		}
	}
}

func TestSecondSessionReplaces(t *testing.T) {
	r := newRig(t, "")
	first := greetRaw(t, r, "x")
	_ = greetRaw(t, r, "x")
	_ = untilEnd(first)
	get(t, "hello", r.handler.hellos)
	get(t, "hello", r.handler.hellos)
	r.hub.Kick("n1")
	if n := get(t, "gone", r.handler.gone); n != "n1" {
		t.Fatal(n)
	}
	if len(r.handler.gone) != 0 {
		t.Error("the replaced session was reported gone too")
	}
}

func TestImpostorIsRefused(t *testing.T) {
	r := newRig(t, "")
	greetRaw(t, r, "x")
	l := rawDial(t, r)
	if err := l.write(&api.Frame{Hello: &api.Hello{Protocol: 1, Node: "n1", StateID: "y"}}); err != nil {
		t.Fatal(err)
	}
	want := `another gnoded is connected as node "n1" (from another state directory): give one of them another name`
	if _, err := l.read(); err == nil || err.Error() != clip(want, maxReasonBytes) {
		t.Errorf("got %v", err)
	}
	if r.hub.session("n1") == nil || len(r.handler.gone) != 0 {
		t.Error("the first session suffered")
	}
}

// TestLateHelloIsNone: what a node sent on a connection that it gave up comes after the hello of its next session, or
// after the end of that. What it has begun since is not in it.
func TestLateHelloIsNone(t *testing.T) {
	r := newRig(t, "")
	greet := func(boot string, made time.Duration) error {
		l := rawDial(t, r)
		if err := l.write(&api.Frame{Hello: &api.Hello{Protocol: 1, Node: "n1", StateID: "x", BootID: boot, Made: made}}); err != nil {
			t.Fatal(err)
		}
		f, err := l.read()
		if err == nil && f.Welcome == nil {
			t.Errorf("not welcomed: %+v", f)
		}
		return err
	}
	const want = `node "n1" has opened another session since it sent this hello`
	if err := greet("b", 7*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := greet("b", 6*time.Second); err == nil || err.Error() != want {
		t.Errorf("beside the newer session: %v", err)
	}
	if r.hub.session("n1") == nil {
		t.Error("the newer session suffered")
	}
	r.hub.Kick("n1")
	get(t, "gone", r.handler.gone)
	if err := greet("b", 6*time.Second); err == nil || err.Error() != want {
		t.Errorf("after the newer session: %v", err)
	}
	if err := greet("c", time.Second); err != nil {
		t.Errorf("after a reboot: %v", err)
	}
	if err := greet("c", 0); err != nil {
		t.Errorf("of a node that does not say: %v", err)
	}
}

// TestReplacedThenRefused: the old session is gone and the newer one was never welcomed, so
// the handler is owed the news.
func TestReplacedThenRefused(t *testing.T) {
	r := newRig(t, "")
	greetRaw(t, r, "x")
	r.handler.mu.Lock()
	r.handler.refuse = errTest
	r.handler.mu.Unlock()
	l := rawDial(t, r)
	if err := l.write(&api.Frame{Hello: &api.Hello{Protocol: 1, Node: "n1", StateID: "x"}}); err != nil {
		t.Fatal(err)
	}
	_ = untilEnd(l)
	if n := get(t, "gone", r.handler.gone); n != "n1" {
		t.Fatal(n)
	}
}

// TestCutDuringHello: the hello was taken in, so the end of the session must be told
// too, or the node would count as connected with nobody behind it.
func TestCutDuringHello(t *testing.T) {
	r := newRig(t, "n1")
	r.handler.slow = true
	l := rawDial(t, r)
	if err := l.write(&api.Frame{Hello: &api.Hello{Protocol: 1, Node: "n1", StateID: "x"}}); err != nil {
		t.Fatal(err)
	}
	get(t, "hello", r.handler.hellos)
	r.hub.Kick("n1")
	if n := get(t, "gone", r.handler.gone); n != "n1" {
		t.Fatal(n)
	}
}

func TestSilentNodeIsGone(t *testing.T) {
	r := newRig(t, "n1")
	greetRaw(t, r, "x") // says nothing more, and nobody reads: half open
	get(t, "gone", r.handler.gone)
}

func TestSilentControllerIsLeft(t *testing.T) {
	// A controller that welcomes the node and then freezes.
	path := t.TempDir() + "/s"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		ws, err := websocket.Accept(w, q, nil)
		if err != nil {
			return
		}
		k := newLink(context.Background(), ws, nil, maxNodeFrame)
		defer k.end(errTest)
		if _, err := k.read(); err == nil {
			s := api.DefaultSettings()
			s.Heartbeat = beatEvery
			_ = k.write(&api.Frame{Welcome: &api.Welcome{Settings: s}})
		}
		<-stop
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(l) }()
	a := newFakeAgent("n1", "x")
	c := dial(context.Background(), Options{Controllers: []string{"unix:" + path}, Agent: a, Log: quiet()})
	if err := get(t, "down", a.down); !errors.Is(err, errSilent) {
		t.Errorf("down with %v", err)
	}
	c.Close()
	close(stop)
	_ = srv.Close()
	<-served
}

func TestReconnectsAndCountsContact(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "x")
	c := r.dial(a)
	get(t, "welcome", a.welcome)
	first := c.LastContact()
	if first == 0 || first > BootTime() {
		t.Fatalf("contact %v at %v", first, BootTime())
	}
	waitFor(t, "an echo", func() bool { return c.LastContact() > first })
	r.hub.Kick("n1")
	if err := get(t, "down", a.down); err.Error() != "session ended by the controller" {
		t.Errorf("down with %v", err)
	}
	get(t, "welcome", a.welcome)
	// No controller at all: a missing socket counts as contact.
	r.hub.Close(time.Second)
	_ = r.server.Close()
	_ = os.Remove(r.path)
	before := BootTime()
	waitFor(t, "a refused connection to count", func() bool { return c.LastContact() > before })
	if c.Connected() {
		t.Error("connected to nobody")
	}
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

func TestSignal(t *testing.T) {
	r := newRig(t, "")
	if _, err := r.hub.Signal(context.Background(), "n1", api.SignalOrder{}); err == nil || err.Error() != "node n1 is not connected" {
		t.Fatal(err)
	}
	a := newFakeAgent("n1", "x")
	r.dial(a)
	get(t, "full set", a.desired)
	o := api.SignalOrder{MemberKey: key(4, 2), Signal: "USR1", Scope: api.ScopeRanks}
	n, err := r.hub.Signal(context.Background(), "n1", o)
	if n != 3 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	one := get(t, "order", a.signals)
	_, err = r.hub.Signal(context.Background(), "n1", api.SignalOrder{Signal: "NONE"})
	if api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("error of the node: %v", err)
	}
	if two := get(t, "order", a.signals); two.Number <= one.Number {
		t.Errorf("numbers %d, %d do not grow", one.Number, two.Number)
	}
}

// TestSlowLogReader: a log of 64 MiB and a reader that stops. The node's writer is held
// at its window and the session goes on.
func TestSlowLogReader(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "x")
	var written atomic.Int64
	piece := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	const pieces = 1024
	a.readLog = func(_ context.Context, _ api.LogRead, w io.Writer) error {
		for range pieces {
			n, err := w.Write(piece)
			written.Add(int64(n))
			if err != nil {
				return err
			}
		}
		return nil
	}
	r.dial(a)
	get(t, "full set", a.desired)
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- r.hub.ReadLog(context.Background(), "n1", api.LogRead{Path: "/x"}, pw); pw.Close() }()
	head := make([]byte, len(piece))
	if _, err := io.ReadFull(pr, head); err != nil || !bytes.Equal(head, piece) {
		t.Fatal("first bytes differ", err)
	}
	// The session is alive and the node is held.
	if n, err := r.hub.Signal(context.Background(), "n1", api.SignalOrder{Signal: "USR1"}); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if n := written.Load(); n > 4*api.StreamWindow {
		t.Errorf("the node wrote %d bytes ahead of a reader that stopped", n)
	}
	rest, err := io.Copy(io.Discard, pr)
	if err != nil || rest != int64(len(piece)*(pieces-1)) {
		t.Errorf("read %d bytes more, %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestReadersLeaveRoom: whoever follows as many logs as he can keeps nobody on that node from
// reading, and nobody from signalling.
func TestReadersLeaveRoom(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "x")
	reading := make(chan uint32, nodeReaders)
	a.readLog = func(ctx context.Context, q api.LogRead, _ io.Writer) error {
		reading <- q.UID
		if q.Follow {
			<-ctx.Done()
		}
		return nil
	}
	r.dial(a)
	get(t, "full set", a.desired)
	ctx, hangUp := context.WithCancel(context.Background())
	var followers sync.WaitGroup
	for uid, most := range map[uint32]int{7: 44, 9: 18, 10: 18} {
		for range most {
			followers.Go(func() { _ = r.hub.ReadLog(ctx, "n1", api.LogRead{UID: uid, Follow: true}, io.Discard) })
			get(t, "a follower", reading)
		}
	}
	err := r.hub.ReadLog(context.Background(), "n1", api.LogRead{UID: 7, User: "mallory"}, io.Discard)
	const want = "the node reads out 44 logs of mallory already; a user may have a quarter of the room that is left, which is 176; end some of glog -f"
	if api.CodeOf(err) != api.CodeTooMany || err.Error() != want {
		t.Errorf("one more: %v", err)
	}
	if err := r.hub.ReadLog(context.Background(), "n1", api.LogRead{UID: 8, User: "bob"}, io.Discard); err != nil {
		t.Errorf("another user: %v", err)
	}
	if n, err := r.hub.Signal(context.Background(), "n1", api.SignalOrder{MemberKey: key(4, 2), Signal: "USR1"}); n != 3 || err != nil {
		t.Errorf("a signal: %d, %v", n, err)
	}
	hangUp()
	followers.Wait()
	get(t, "bob", reading)
	waitFor(t, "room again", func() bool {
		return r.hub.ReadLog(context.Background(), "n1", api.LogRead{UID: 7, User: "mallory"}, io.Discard) == nil
	})
}

// TestShares: when some hold all that they can get the next one finds room, and what is given
// back can be had again.
func TestShares(t *testing.T) {
	s := newShares[int](nodeReaders)
	for who := range 20 {
		got := 0
		for s.take(who) {
			got++
		}
		if got == 0 {
			t.Fatalf("nothing is left for number %d", who)
		}
	}
	for who, n := range maps.Clone(s.held) {
		for range n {
			s.giveBack(who)
		}
	}
	if s.room != nodeReaders || len(s.held) != 0 {
		t.Errorf("all is given back: room %d, %v", s.room, s.held)
	}
}

func TestLogCancelAndSessionEnd(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "x")
	ended := make(chan error, 2)
	a.readLog = func(ctx context.Context, _ api.LogRead, _ io.Writer) error {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil
	}
	r.dial(a)
	get(t, "full set", a.desired)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.hub.ReadLog(ctx, "n1", api.LogRead{Follow: true}, io.Discard) }()
	time.AfterFunc(beatEvery, cancel)
	if err := get(t, "end of the read", done); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	get(t, "end at the node", ended)
	go func() { done <- r.hub.ReadLog(context.Background(), "n1", api.LogRead{Follow: true}, io.Discard) }()
	time.AfterFunc(beatEvery, func() { r.hub.Kick("n1") })
	if err := get(t, "end of the read", done); api.CodeOf(err) != api.CodeUnavailable {
		t.Error(err)
	}
	get(t, "end at the node", ended)
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte(`{"hello":{"protocol":1,"node":"n1"}}`))
	f.Add([]byte(`{"desired":{"full":true,"assignments":[{"job":1,"epoch":1,"body":{"spec_hash":"a","nodes":[{"name":"n1"}],"ranks":[{"node":0}]}}],"specs":{"a":{"name":"x"}}}}`))
	f.Add([]byte(`{"desired":{"assignments":[{"job":1,"epoch":1}],"forget":[{"job":1,"epoch":1}]},"streams":[{"id":1,"credit":-5},{"id":1,"cancel":true}]}`))
	f.Add([]byte(`{"actual":{"members":[{"job":1,"epoch":1,"phase":"ready"}]},"replies":[{"id":3,"data":"AAAA"}],"beat":1,"echo":9}`))
	f.Add([]byte(`{"welcome":{"settings":{"heartbeat":-1}}}`))
	f.Add([]byte(`{"desired":{"specs":{"a":null}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, err := decodeFrame(data)
		if err != nil {
			if !errors.Is(err, errFrame) {
				t.Fatalf("%v is not the peer's fault", err)
			}
			return
		}
		// Both halves apply whatever came through.
		c := &Client{opts: Options{Agent: newFakeAgent("n1", "x"), Log: quiet()}}
		c.out.init()
		s := &clientSession{nodeHalf: newNodeHalf(c.opts.Agent, &c.out, &c.contact), c: c}
		s.streams = newNodeStreams()
		for i := range frame.Streams {
			frame.Streams[i].Log, frame.Streams[i].Signal = nil, nil // would start goroutines
		}
		_ = s.apply(frame)
		var st streams
		st.init(&s.c.out)
		for i := range frame.Replies {
			st.reply(&frame.Replies[i])
		}
		_ = checkHello(frame.Hello, "n1")
	})
}

func BenchmarkGateToReport(b *testing.B) {
	r := newRig(b, "")
	a := newFakeAgent("n1", "x")
	c := r.dial(a)
	get(b, "full set", a.desired)
	spec := map[string]*api.Spec{"a": {Script: []byte("#!/bin/sh\nexit 0\n")}}
	for i := 0; b.Loop(); i++ {
		r.handler.set(spec, assign(int64(i+1), 1, "a"))
		r.hub.Wake([]string{"n1"})
		d := get(b, "change", a.desired)
		a.mu.Lock()
		a.report = &api.Actual{Revision: d.Revision, Members: []api.MemberActual{{MemberKey: d.Assignments[0].MemberKey, Phase: api.PhaseReady}}}
		a.mu.Unlock()
		c.Wake()
		get(b, "report", r.handler.reports)
	}
}

func BenchmarkDiff(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			specs := map[string]*api.Spec{"a": {}}
			var want []api.Assignment
			for i := range n {
				want = append(want, assign(int64(i+1), 1, "a"))
			}
			s := newSent()
			told(b, s, want, specs)
			for i := 0; b.Loop(); i++ {
				want[i%n].Gate = &api.Gate{MasterPort: i}
				told(b, s, want, specs)
			}
		})
	}
}

// TestResumeCard: a person's word reaches the node, and its answer the person.
func TestResumeCard(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "s")
	r.dial(a)
	get(t, "welcome", a.welcome)
	if err := r.hub.ResumeCard(context.Background(), "n1", "GPU-1"); err != nil {
		t.Error(err)
	}
	err := r.hub.ResumeCard(context.Background(), "n1", "GPU-bad")
	if err == nil || err.Error() != "card 3 stays out of service: fell off the bus" || api.CodeOf(err) != api.CodeConflict {
		t.Error(err)
	}
	if err := r.hub.ResumeCard(context.Background(), "n9", "GPU-1"); err == nil || err.Error() != "node n9 is not connected" {
		t.Error(err)
	}
}

// TestAppendLog: a text reaches the node, and its answer the controller.
func TestAppendLog(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "s")
	r.dial(a)
	get(t, "welcome", a.welcome)
	err := r.hub.AppendLog(context.Background(), "n1", api.LogAppend{Path: "/x", Text: "used"})
	if err == nil || err.Error() != "used behind /x" || api.CodeOf(err) != api.CodeConflict {
		t.Error(err)
	}
	if err := r.hub.AppendLog(context.Background(), "n9", api.LogAppend{}); api.CodeOf(err) != api.CodeUnavailable {
		t.Error(err)
	}
}

// TestStacks: a look reaches the node, and its answer, of several pieces, the controller, which holds it to its bounds.
func TestStacks(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "s")
	r.dial(a)
	get(t, "welcome", a.welcome)
	m, err := r.hub.Stacks(context.Background(), "n1", api.MemberKey{Job: 12, Epoch: 3})
	if err != nil || len(m.Groups) != 40 || m.Groups[39].Processes[0] != (api.StackProcess{Rank: 12, PID: 3}) {
		t.Error(m, err)
	}
	for node, k := range map[string]api.MemberKey{"n1": {Job: 12}, "n9": {Job: 12, Epoch: 3}} {
		if m, err := r.hub.Stacks(context.Background(), node, k); err == nil {
			t.Error(node, m)
		}
	}
	if _, err := r.hub.Stacks(context.Background(), "n1", api.MemberKey{Job: 13, Epoch: 3}); err == nil || !strings.Contains(err.Error(), "groups[0].threads[0].frames") {
		t.Error(err)
	}
}

// A controller that refuses the hello is tried again, and when it takes the node that beats as it is told.
func TestRefusedNodeTriesAgain(t *testing.T) {
	r := newRig(t, "n1")
	r.handler.refuse = errTest
	var said syncBuffer
	a := newFakeAgent("n1", "x")
	c := dial(t.Context(), Options{Controllers: []string{"unix:" + r.path}, Agent: a, Log: slog.New(slog.NewTextHandler(&said, nil))})
	t.Cleanup(c.Close)
	waitFor(t, "refusal", func() bool { return strings.Contains(said.String(), errTest.Error()) })
	r.handler.mu.Lock()
	r.handler.refuse = nil
	r.handler.mu.Unlock()
	get(t, "welcome", a.welcome)
	waitFor(t, "a session", func() bool { return c.now.Load() != nil })
	if got := time.Duration(c.beat.Load()); got != beatEvery {
		t.Errorf("it beats each %v, told %v", got, beatEvery)
	}
}

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
