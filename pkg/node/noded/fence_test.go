package noded

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
)

// TestFenceDue: never before the shim had its time, always before the controller gives on.
func TestFenceDue(t *testing.T) {
	s := api.DefaultSettings() // lease 10 m, slack 30 s
	at := func(after time.Duration) bool { return fenceDue(&s, time.Hour, time.Hour+after, 15*time.Second) }
	shim := s.Lease + 15*time.Second
	if at(shim) || at(shim+maxFenceMargin-1) {
		t.Error("before the shim had its time")
	}
	if !at(shim + maxFenceMargin) {
		t.Error("not when that was over")
	}
	s.DrainSlack = 2 * time.Second
	if at(shim+time.Second-1) || !at(shim+time.Second) {
		t.Error("not at half of a small slack")
	}
	if s.Lease = 0; at(1000 * time.Hour) {
		t.Error("without a lease")
	}
}

// TestAStoppedShimOutlivesNoLease: the shim of a member is stopped and the controller silent. The
// ranks are gone when their lease and its grace are over, although the shim is not there to end
// them, and are reported when it goes on.
func TestAStoppedShimOutlivesNoLease(t *testing.T) {
	c := newController(t)
	c.settings.Heartbeat, c.settings.Lease, c.settings.DrainSlack = 100*time.Millisecond, time.Second, time.Second
	o := c.options(t.TempDir())
	c.run(o)
	k := c.desire(1, 1, 1, "#!/bin/sh\nexec sleep 1000\n", func(a *api.Assignment, _ *api.Spec) { a.Body.Grace = 100 * time.Millisecond })
	rank := pids(c.untilPhase(k, api.PhaseRunning))[0]
	s, _ := proc.ReadStat(rank)
	shim := s.PPID
	if err := syscall.Kill(shim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(shim, syscall.SIGCONT) }()

	c.mu.Lock() // a controller that hangs: it answers neither beats nor a new hello
	c.hub.Wake([]string{"n1"})
	lives := func() bool { s, ok := proc.ReadStat(rank); return ok && !s.Dead() }
	began := time.Now()
	for lives() && time.Since(began) < patience {
		time.Sleep(5 * time.Millisecond)
	}
	over := time.Since(began)
	c.mu.Unlock()
	if lives() {
		t.Fatal("the rank lives on beside a shim that is stopped")
	}
	// The lease began a beat or two before the silence did.
	if least := c.settings.Lease + 100*time.Millisecond - 500*time.Millisecond; over < least {
		t.Errorf("ended after %v, before its lease and grace", over)
	}
	if s, _ := proc.ReadStat(shim); !slices.Contains([]byte{'T', 't'}, s.State) {
		t.Errorf("the shim is in state %c", s.State)
	}
	if err := syscall.Kill(shim, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.untilPhase(k, api.PhaseStopped)
}
