package engine

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
	"gangd/pkg/wire/lifesign"
)

// manager listens for an engine's signs of life.
type manager struct {
	t *testing.T
	*net.UnixConn
	loop *lifesign.Loop
}

// watched is an engine that is to be killed after 200 ms without a sign: it beats each 50 ms.
func watched(t *testing.T) *manager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "200000")
	signs, err := lifesign.New()
	if err != nil {
		t.Fatal(err)
	}
	return &manager{t, c, signs.Loop()}
}

// beats says whether one comes within so long.
func (m *manager) beats(within time.Duration) bool {
	m.t.Helper()
	if err := m.SetReadDeadline(time.Now().Add(within)); err != nil {
		m.t.Fatal(err)
	}
	buf := make([]byte, 64)
	n, err := m.Read(buf)
	if err == nil && string(buf[:n]) != "WATCHDOG=1" {
		m.t.Fatalf("%q", buf[:n])
	}
	return err == nil
}

func (m *manager) lives(about string) {
	m.t.Helper()
	for range 3 {
		if !m.beats(20 * time.Second) {
			m.t.Fatalf("%s: no sign of life", about)
		}
	}
}

// stuckStore hangs in its next commit.
type stuckStore struct {
	store.Store
	stuck     atomic.Bool
	at, again chan struct{}
}

func (s *stuckStore) Commit(ctx context.Context, ch *gang.Changes) (uint64, error) {
	if s.stuck.CompareAndSwap(true, false) {
		close(s.at)
		<-s.again
	}
	return s.Store.Commit(ctx, ch)
}

// TestSignsOfLife: an engine with nothing to do, on hold or waiting for room on the disk lives;
// one whose commit does not come back gives no sign until it does.
func TestSignsOfLife(t *testing.T) {
	m := watched(t)
	st := &stuckStore{Store: disk.Open(t), at: make(chan struct{}), again: make(chan struct{})}
	r := newRigWith(t, st, func(o *Options) { o.Sign = m.loop })
	m.lives("idle")
	st.stuck.Store(true)
	answered := make(chan struct{})
	go func() { defer close(answered); r.submit("k", spec(1)) }()
	<-st.at
	for m.beats(time.Millisecond) { // what was said before
	}
	if m.beats(500 * time.Millisecond) {
		t.Error("a sign of life from an engine that hangs in a commit")
	}
	close(st.again)
	<-answered
	m.lives("after the commit")
	r.view.setHold("HOLD: a test")
	m.lives("on hold")
}

func TestSignsOfLifeWhileTheDiskIsFull(t *testing.T) {
	m := watched(t)
	e := &Engine{inbox: make(chan request, 1)}
	e.opt.Sign = m.loop
	for range 3 {
		if !e.refuseWhileFull(t.Context()) || !m.beats(20*time.Second) {
			t.Fatal("no sign of life")
		}
	}
}
