package session

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/lifesign"
)

// stuckAgent hangs in its next desired set.
type stuckAgent struct {
	*fakeAgent
	at, again chan struct{}
}

func (a *stuckAgent) Desired(d *api.Desired) {
	if len(d.Assignments) > 0 {
		close(a.at)
		<-a.again
	}
}

// TestSignsOfLife: a session that is up, one that is tried in vain and one whose controller is
// frozen are all signs of life; a node that hangs over what it was told gives none.
func TestSignsOfLife(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "200000")
	signs, err := lifesign.New()
	if err != nil {
		t.Fatal(err)
	}
	other, sign := signs.Loop(), signs.Loop()
	// beats: the other loop goes round all the time, so it is this one on which it depends.
	beats := func(tries int) bool {
		buf := make([]byte, 64)
		for range tries {
			other.Round()
			_ = manager.SetReadDeadline(time.Now().Add(other.Pace()))
			if _, err := manager.Read(buf); err == nil {
				return true
			}
		}
		return false
	}
	lives := func(about string) {
		t.Helper()
		for range 3 {
			if !beats(400) {
				t.Fatalf("%s: no sign of life", about)
			}
		}
	}
	a := &stuckAgent{fakeAgent: newFakeAgent("n1", "s"), at: make(chan struct{}), again: make(chan struct{})}
	r := newRig(t, "")
	nowhere := dial(context.Background(), Options{Controllers: []string{"unix:" + r.path + "-"}, Agent: a, Log: quiet(), Sign: sign})
	lives("no controller")
	nowhere.Close()
	c := dial(context.Background(), Options{Controllers: []string{"unix:" + r.path}, Agent: a, Log: quiet(), Sign: sign})
	defer c.Close()
	<-a.welcome
	lives("in session")
	r.handler.set(map[string]*api.Spec{"h": {}}, assign(1, 1, "h"))
	r.hub.Wake([]string{"n1"})
	<-a.at
	for range 3 { // what was said before
		beats(3)
	}
	if beats(8) {
		t.Error("a sign of life from a node that hangs")
	}
	close(a.again)
	lives("it goes on")
}
