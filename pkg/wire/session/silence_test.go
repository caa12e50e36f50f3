package session

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"pgregory.net/rapid"

	"gangd/pkg/api"
)

// process is one whose reader and timer get a processor only now and then, in steps of a tenth of a heartbeat.
type process struct {
	silence
	beat   time.Duration
	now    time.Time
	unread bool
	silent bool
}

func newProcess() *process {
	p := &process{beat: time.Second, now: time.Unix(1000, 0)}
	p.patience = SilentBeats * p.beat
	p.heard, p.due = p.now, p.now.Add(p.patience)
	return p
}

// step is a tenth of a heartbeat later. The timer goes before the reader, as it may when both are overdue.
func (p *process) step(timer, reader bool) {
	p.now = p.now.Add(p.beat / 10)
	if timer && !p.silent && !p.now.Before(p.due) {
		p.silent = p.look(p.now, func() bool { return p.unread }) == 0
	}
	if reader && p.unread {
		p.unread = false
		p.sign(p.now)
	}
}

// A peer that lives is never called silent, whatever this process does not get to; a dead one is found when its patience is over if the
// process runs, and after some more heartbeats if it hardly does.
func TestWhoIsSilent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newProcess()
		lives := rapid.IntRange(0, 1500).Draw(t, "lives")
		frozen, starved, both := 0, 0, false
		for i := range lives {
			if frozen--; frozen < -10 && starved < 0 && rapid.IntRange(0, 30).Draw(t, "freeze") == 0 {
				frozen = rapid.IntRange(1, 400).Draw(t, "frozen")
				// The peer with it, where they share a machine. What ends less than a beat after the look was due can't be told from silence.
				both = frozen > 4*10+1 && rapid.Bool().Draw(t, "both")
			}
			// A reader that waits for a processor gets one within the bound.
			if starved--; starved < -10 && frozen < 0 && rapid.IntRange(0, 30).Draw(t, "starve") == 0 {
				starved = rapid.IntRange(1, 10*(ownBeats-2)).Draw(t, "starved")
			}
			// A peer that goes on has a beat that is overdue, a moment after this process has looked.
			p.unread = p.unread || i%10 == 0 && (frozen <= 0 || !both) || both && frozen == -1
			p.step(frozen <= 0, frozen <= 0 && starved <= 0)
			if p.silent {
				t.Fatalf("a peer that lives is called silent at step %d", i)
			}
		}
		// It dies, and the process catches up.
		p.step(true, true)
		patience := p.patience + p.beat/10
		if rapid.Bool().Draw(t, "busy") { // looks are late, the reader gets nothing
			p.unread, patience = true, p.longest()+p.beat
		} else if p.now.Sub(p.heard) > p.patience-p.beat { // what was frozen to the last may have had a late look
			patience += p.beat
		}
		for died := p.now; !p.silent; p.step(true, false) {
			if p.now.Sub(died) > patience {
				t.Fatalf("a dead peer is not found after %v", p.now.Sub(died))
			}
		}
	})
}

// What lies in a socket is seen without being read.
func TestUnread(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		address := t.TempDir() + "/s"
		if network == "tcp" {
			address = "127.0.0.1:0"
		}
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		a, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if unread(a.(syscall.Conn)) {
			t.Errorf("%s: something waits before anything was sent", network)
		}
		if _, err := b.Write([]byte("xy")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, network+": bytes that wait", func() bool { return unread(a.(syscall.Conn)) })
		if _, err := a.Read(make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		if unread(a.(syscall.Conn)) {
			t.Errorf("%s: what was read waits still", network)
		}
		a.Close()
		b.Close()
		l.Close()
		if unread(a.(syscall.Conn)) {
			t.Errorf("%s: something waits on a closed connection", network)
		}
	}
}

// gated is a connection whose reader does not get to it while the gate is shut.
type gated struct {
	net.Conn
	mu sync.RWMutex // read-held by who passes
}

func (g *gated) Read(p []byte) (int, error) {
	// The kernel says that something has come, and the reader has to wait for its turn.
	raw, err := g.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	if err := raw.Read(func(fd uintptr) bool { return unread(g.Conn.(syscall.Conn)) }); err != nil {
		return 0, err
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.Conn.Read(p)
}

// A session is not ended for beats that wait in its socket for a reader without a processor; once nothing waits, silence ends it.
func TestAStarvedReaderHearsNoSilence(t *testing.T) {
	r := newRig(t, "n1")
	var g *gated
	var d net.Dialer
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "unix", r.path)
		g = &gated{Conn: conn}
		return g, err
	}}
	defer tr.CloseIdleConnections()
	ws, _, err := websocket.Dial(context.Background(), "ws://gangd"+api.SessionPath, &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	l := newLink(context.Background(), ws, g.Conn, maxControllerFrame)
	defer l.end(errTest)
	if err := l.write(&api.Frame{Hello: &api.Hello{Protocol: 1, Node: "n1", StateID: "x"}}); err != nil {
		t.Fatal(err)
	}
	if f, err := l.read(); err != nil || f.Welcome == nil {
		t.Fatalf("welcome %+v, %v", f, err)
	}
	open := sync.OnceFunc(g.mu.Unlock)
	g.mu.Lock()
	defer open()
	l.greeted(beatEvery)
	read, over := make(chan error), make(chan struct{})
	go func() {
		defer close(read)
		for {
			_, err := l.read()
			select {
			case read <- err:
			case <-over:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	time.Sleep(2 * SilentBeats * beatEvery) // twice its patience; meanwhile the controller sends beats
	select {
	case <-l.ctx.Done():
		t.Fatalf("ended while beats waited: %v", context.Cause(l.ctx))
	default:
	}
	open()
	if err := get(t, "the beat that waited", read); err != nil {
		t.Fatalf("the session broke: %v", err)
	}
	close(over)
	<-read
}

// The engine takes nothing for a long time: its inbox is full. Neither side takes that for the other's silence.
func TestAStalledEngineCutsNobody(t *testing.T) {
	reports, over := make(chan *api.Actual), make(chan struct{}) // whoever reports waits
	t.Cleanup(func() { close(over) })
	r := newRig(t, "n1")
	r.handler.reports = reports
	a := newFakeAgent("n1", "x")
	a.report = &api.Actual{}
	c := r.dial(a)
	t.Cleanup(func() { // the reader of the hub ends, whatever happened
		go func() {
			select {
			case <-reports:
			case <-over:
			}
		}()
	})
	get(t, "welcome", a.welcome)
	waitFor(t, "the session", func() bool { return c.now.Load() != nil })
	if c.now.Load().link.under == nil || r.hub.session("n1").link.under == nil {
		t.Fatal("what waits in the socket can't be seen")
	}
	c.Wake()
	time.Sleep(2 * SilentBeats * beatEvery)
	get(t, "report", r.handler.reports)
	waitFor(t, "an echo", func() bool { return c.Connected() && BootTime()-c.LastContact() < SilentBeats*beatEvery })
	select {
	case err := <-a.down:
		t.Fatalf("the session ended: %v", err)
	case <-r.handler.gone:
		t.Fatal("the node was taken for gone")
	default:
	}
}

// A reader that never comes back does not hold a dead peer's session for ever.
func TestOwnDelayIsBounded(t *testing.T) {
	barked := make(chan error)
	d := &watchdog{held: func() bool { return true }, bark: func() { barked <- errSilent }}
	d.start(SilentBeats * time.Millisecond)
	defer d.stop()
	if err := get(t, "end", barked); !errors.Is(err, errSilent) {
		t.Error(err)
	}
}
