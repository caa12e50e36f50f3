package session

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
)

// halves are both halves of a session without a line between them.
type halves struct {
	t       *testing.T
	now     time.Duration // boot clock of the node
	ahead   time.Duration // what its wall clock shows more
	handler *fakeHandler
	agent   *fakeAgent
	hub     *DrivenHub
	node    *DrivenNode
}

func newHalves(t *testing.T) *halves {
	p := &halves{t: t, now: time.Hour, handler: newFakeHandler(), agent: newFakeAgent("n1", "x")}
	p.node = NewDrivenNode(p.agent, func() time.Duration { return p.now }, func() time.Time { return time.Unix(1000, 0).Add(p.now + p.ahead) }, Kept{})
	p.open()
	return p
}

// open greets, with the set that is desired then.
func (p *halves) open() {
	p.t.Helper()
	hello := p.node.Hello()
	if hello.Hello.Node != "n1" || hello.Hello.Protocol != api.SessionProtocol {
		p.t.Fatalf("hello %+v", hello.Hello)
	}
	p.hub = NewDrivenHub(p.handler, nil, hello.Hello, func() time.Time { return time.Unix(1000, 0).Add(p.now) })
	s := api.DefaultSettings()
	p.toNode(p.hub.Welcome(&api.Welcome{Settings: s}))
}

func (p *halves) toNode(frames []*api.Frame) {
	p.t.Helper()
	for _, f := range frames {
		g, err := Copy(f)
		if err != nil {
			p.t.Fatal(err)
		}
		if err := p.node.Take(g); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *halves) toHub(f *api.Frame) {
	p.t.Helper()
	g, err := Copy(f)
	if err != nil {
		p.t.Fatal(err)
	}
	p.hub.Take(g)
}

// A wake-up brings what changed, once and at once; without one nothing is asked for.
func TestAWakeUpIsServedOnce(t *testing.T) {
	p := newHalves(t)
	if d := get(t, "first set", p.agent.desired); !d.Full || len(d.Assignments) != 0 {
		t.Fatalf("%+v", d)
	}
	asked := p.handler.asked
	p.toNode(p.hub.Beat())
	if p.handler.asked != asked {
		t.Error("a beat asked for the desired set")
	}
	p.handler.set(map[string]*api.Spec{"h": {Name: "job"}}, assign(1, 1, "h"))
	if frames := p.hub.Due(); frames != nil {
		t.Errorf("not woken, and it sends %+v", frames)
	}
	p.hub.Wake()
	frames := p.hub.Due()
	if len(frames) != 1 || frames[0].Lineage != 11 || frames[0].LineageProof != "eleven" {
		t.Fatalf("%+v", frames)
	}
	p.toNode(frames)
	if d := get(t, "change", p.agent.desired); d.Full || len(d.Assignments) != 1 {
		t.Errorf("%+v", d)
	}
	p.hub.Wake() // for a change that went out already
	if frames := p.hub.Due(); frames != nil {
		t.Errorf("sent again: %+v", frames)
	}
}

// Each side answers the other's beats with its next, and the node reckons its contact from when it sent
// the beat that was answered.
func TestEchoes(t *testing.T) {
	p := newHalves(t)
	if got := p.node.LastContact(); got != time.Hour {
		t.Errorf("contact at %v after the welcome, want the time of the hello", got)
	}
	if f := p.node.Due(); f != nil {
		t.Errorf("nothing is due, and the node sends %+v", f)
	}
	p.now += time.Second
	beat := p.node.Beat()
	p.now += 5 * time.Second
	p.toHub(beat)
	frames := p.hub.Due()
	if len(frames) != 1 || frames[0].Echo != beat.Beat {
		t.Fatalf("answer to beat %d: %+v", beat.Beat, frames)
	}
	p.toNode(frames)
	if got := p.node.LastContact(); got != time.Hour+time.Second {
		t.Errorf("contact at %v, want when the beat was sent", got)
	}
	if frames := p.hub.Due(); frames != nil {
		t.Errorf("echoed twice: %+v", frames)
	}
	if frames[0].Beat == 0 || frames[0].Lineage != 11 {
		t.Errorf("the answer brings no beat: %+v", frames[0])
	}
	if frames := p.hub.Beat(); frames != nil {
		t.Errorf("a beat went with the answer, and another one follows: %+v", frames[0])
	}
	frames = p.hub.Beat()
	if len(frames) != 1 || frames[0].Beat == 0 {
		t.Fatalf("no beat though the node has sent none: %+v", frames)
	}
	p.toNode(frames)
	if f := p.node.Due(); f != nil {
		t.Errorf("a beat alone makes the node send %+v", f)
	}
	if f := p.node.Beat(); f.Echo != frames[0].Beat {
		t.Errorf("answer to beat %d: %+v", frames[0].Beat, f)
	}
	if f := p.node.Beat(); f.Echo != 0 {
		t.Errorf("echoed twice: %+v", f)
	}
}

// Reports go out with a wake-up or a beat, and reach the handler.
func TestReports(t *testing.T) {
	p := newHalves(t)
	p.agent.mu.Lock()
	p.agent.report = &api.Actual{Members: []api.MemberActual{{MemberKey: key(1, 1)}}}
	p.agent.samples = []api.CardSample{{UUID: "GPU-1"}}
	p.agent.load = &api.NodeLoad{Hundredths: 125, FreeBytes: 1 << 30}
	p.agent.notes = []api.MemberNote{{MemberKey: key(1, 1)}}
	p.agent.mu.Unlock()
	if f := p.node.Due(); f != nil {
		t.Fatalf("before the wake-up: %+v", f)
	}
	p.node.Wake()
	p.toHub(p.node.Due())
	if a := get(t, "report", p.handler.reports); len(a.Members) != 1 {
		t.Errorf("report %+v", a)
	}
	if l := get(t, "load", p.handler.loads); l.Hundredths != 125 || l.FreeBytes != 1<<30 {
		t.Errorf("load %+v", l)
	}
	if s := get(t, "samples", p.handler.samples); len(s) != 1 {
		t.Errorf("samples %+v", s)
	}
	if n := get(t, "notes", p.handler.notes); len(n) != 1 {
		t.Errorf("notes %+v", n)
	}
}

// A refused connection counts as contact when the controller itself ended the last session.
func TestRefusedConnections(t *testing.T) {
	p := newHalves(t)
	for _, hungUp := range []bool{false, true} {
		p.node.Down(hungUp)
		if err := get(t, "down", p.agent.down); HungUp(err) != hungUp {
			t.Errorf("down with %v, hung up %v", err, hungUp)
		}
		p.now += time.Minute
		p.node.Refused("", p.now)
		if counts := p.node.LastContact() == p.now; counts != hungUp {
			t.Errorf("hung up %v, and a refused connection counts: %v", hungUp, counts)
		}
	}
	p.node.Refused("", p.now-time.Second)
	if got := p.node.LastContact(); got != p.now {
		t.Errorf("contact went back to %v", got)
	}
}

// Tries come at doubling waits, with a jitter of half of each, and at once after a session
// that was steady.
func TestTries(t *testing.T) {
	p := newHalves(t)
	least := func(time.Duration) time.Duration { return 0 }
	most := func(n time.Duration) time.Duration { return n - 1 }
	first := p.node.NextTry(0, least)
	if second := p.node.NextTry(0, most); second != 4*first {
		t.Errorf("the first wait is at least %v, the second at most %v", first, second)
	}
	var waits []time.Duration
	for range 20 {
		waits = append(waits, p.node.NextTry(0, most))
	}
	if !slices.IsSorted(waits) || waits[19] != maxBackoff {
		t.Errorf("waits %v, want at most %v", waits, maxBackoff)
	}
	if d := p.node.NextTry(steadySession-1, most); d != maxBackoff {
		t.Errorf("%v after a short session", d)
	}
	if d := p.node.NextTry(steadySession, most); d != 0 {
		t.Errorf("%v after a steady one", d)
	}
	if d := p.node.NextTry(0, least); d != first {
		t.Errorf("then %v, want %v", d, first)
	}
}
