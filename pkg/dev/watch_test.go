package dev

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// heard is what Watch said so far.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// watch is a cluster of one node that is watched until end is called.
func watch(t *testing.T, o Options) (l layout, out *heard, end func() error) {
	t.Helper()
	o.Dir, o.Bin, o.Nodes, o.GPUs, o.Watch = short(t), programs(t), 1, "1x1G", true
	c, l := start(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	out = &heard{}
	watched := make(chan error, 1)
	go func() { watched <- c.Watch(ctx, out) }()
	end = sync.OnceValue(func() error { cancel(); return <-watched })
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return l, out, end
}

func TestWatchEnds(t *testing.T) {
	l, out, end := watch(t, Options{})
	if err := end(); err != nil { // as on Ctrl-C
		t.Fatal(err)
	}
	if out.String() != "" || len(l.list("run", ".pid")) > 0 || len(l.list("run", ".notify")) > 0 {
		t.Errorf("left: %v %v, said %q", l.list("run", ".pid"), l.list("run", ".notify"), out)
	}
	// Stopped from another terminal: nothing is started again.
	l, out, _ = watch(t, Options{})
	if err := Stop(l.dir); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of Watch", func() bool { return len(l.list("run", ".notify")) == 0 })
	if out.String() != "" || len(l.list("run", ".pid")) > 0 {
		t.Errorf("said %q", out)
	}
}

// TestBounced: a daemon that is frozen or has died is started again, once each, and the others
// are left alone.
func TestBounced(t *testing.T) {
	l, out, _ := watch(t, Options{Set: []string{"lease=2s", "heartbeat=200ms"}})
	for _, tt := range []struct {
		name string
		sig  syscall.Signal
		said string
	}{
		{"n1", syscall.SIGSTOP, "n1 gave no sign of life for 1 s: started again\n"},
		{"gangd", syscall.SIGSTOP, "gangd gave no sign of life for 1 s: started again\n"},
		{"n1", syscall.SIGKILL, "n1 ended (signal: killed): started again\n"},
	} {
		before, said := l.pidOf(t, tt.name), out.String()
		if err := syscall.Kill(before, tt.sig); err != nil {
			t.Fatal(err)
		}
		until(t, tt.said, func() bool { return out.String() == said+tt.said })
		if after := l.pidOf(t, tt.name); after == before || !gone(before) {
			t.Errorf("%s: %d before, %d after", tt.name, before, after)
		}
	}
}

// TestLeftAlone: a daemon that can't run is not started for ever.
func TestLeftAlone(t *testing.T) {
	l, out, _ := watch(t, Options{})
	broken := filepath.Join(l.state("n1"), "broken")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(l.pidOf(t, "n1"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "it is given up", func() bool { return strings.Contains(out.String(), "left alone") })
	want := "n1 ended (signal: killed): started again\n" + strings.Repeat("n1 ended (exit status 1): started again\n", mostFailures-2) +
		"n1 ended (exit status 1), for the 5th time in a row, and is left alone; start it again: gangd dev --restart=n1 --dir=" + l.dir +
		"; the end of " + l.log("n1") + ":\n  broken\n"
	if out.String() != want {
		t.Errorf("said\n%swant\n%s", out, want)
	}
	// Somebody mended it and started it: it is watched again.
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	if err := Restart(context.Background(), l.dir, programs(t), "n1"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(l.pidOf(t, "n1"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "it is started again", func() bool { return out.String() == want+"n1 ended: started again\n" })
}

// TestSilenceFollowsTheLease: it is well below it.
func TestSilenceFollowsTheLease(t *testing.T) {
	l := layout{t.TempDir()}
	if err := os.Mkdir(filepath.Join(l.dir, "etc"), 0o700); err != nil {
		t.Fatal(err)
	}
	for lease, want := range map[string]time.Duration{"10m": 10 * time.Second, "20s": 4 * time.Second, "3s": time.Second, "off": 10 * time.Second} {
		if err := os.WriteFile(l.config(controller), []byte(toml([]string{"lease=" + lease})), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := l.silence(); got != want {
			t.Errorf("lease %s: %v, want %v", lease, got, want)
		}
	}
}
