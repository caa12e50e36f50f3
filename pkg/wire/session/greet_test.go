package session

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"gangd/pkg/api"
)

// crowd takes in hellos one by one, when the test lets it.
type crowd struct {
	*fakeHandler
	in, most atomic.Int32
	entered  chan string
	pass     chan error
}

func (c *crowd) NodeHello(ctx context.Context, h *api.Hello) (*api.Welcome, error) {
	n := c.in.Add(1)
	defer c.in.Add(-1)
	for was := c.most.Load(); n > was && !c.most.CompareAndSwap(was, n); was = c.most.Load() {
	}
	c.entered <- h.Node
	select {
	case err := <-c.pass:
		return &api.Welcome{Settings: api.DefaultSettings()}, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// All nodes say hello at once. So many hellos are taken in at a time, and the others wait until one of these is
// answered, well or not.
func TestHellosTakeTurns(t *testing.T) {
	const more = 50
	r := newRig(t, "")
	c := &crowd{fakeHandler: newFakeHandler(), entered: make(chan string, mostGreeted+more), pass: make(chan error)}
	c.gone = make(chan string, mostGreeted+more)
	r.hub.handler = c
	lines := map[string]*link{}
	for i := range mostGreeted + more {
		l, name := rawDial(t, r), fmt.Sprint("n", i)
		if err := l.write(&api.Frame{Hello: &api.Hello{Protocol: 1, Node: name, StateID: name}}); err != nil {
			t.Fatal(err)
		}
		lines[name] = l
	}
	for range mostGreeted {
		get(t, "hello", c.entered)
	}
	c.pass <- errTest
	get(t, "hello in the place of one that was refused", c.entered)
	for range len(lines) - 1 {
		c.pass <- nil
	}
	refused := 0
	for name, l := range lines {
		switch f, err := l.read(); {
		case err != nil && err.Error() == errTest.Error():
			refused++
		case err != nil || f.Welcome == nil:
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	if refused != 1 {
		t.Errorf("%d were refused", refused)
	}
	if n := c.most.Load(); n != mostGreeted {
		t.Errorf("%d hellos at a time, want %d", n, mostGreeted)
	}
}

// A node that gave up while its hello waited for a turn is not taken in: what it said still lies in the kernel.
func TestAHelloOfALineThatHasEndedIsLeft(t *testing.T) {
	r := newRig(t, "")
	c := &crowd{fakeHandler: newFakeHandler(), entered: make(chan string, 2), pass: make(chan error)}
	c.gone = make(chan string, 2)
	r.hub.handler = c
	for range mostGreeted {
		r.hub.turns <- struct{}{}
	}
	for _, name := range []string{"gone", "waits"} {
		l := rawDial(t, r)
		if err := l.write(&api.Frame{Hello: &api.Hello{Protocol: 1, Node: name, StateID: name}}); err != nil {
			t.Fatal(err)
		}
		if name == "gone" {
			_ = l.ws.CloseNow()
		}
	}
	for range mostGreeted {
		<-r.hub.turns
	}
	if name := get(t, "hello", c.entered); name != "waits" {
		t.Errorf("%s was taken in", name)
	}
	c.pass <- nil
	r.hub.Close(closePatience)
	if len(c.entered) > 0 {
		t.Errorf("%s was taken in", <-c.entered)
	}
}
