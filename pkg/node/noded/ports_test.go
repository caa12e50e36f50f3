package noded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// stranger tries to get the port as programs do: it gives the listener, nil: it was refused.
func stranger(t *testing.T, address string, port int, options ...int) net.Listener {
	t.Helper()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) {
			for _, o := range options {
				err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o, 1))
			}
		})
		return err
	}}
	l, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil && !errors.Is(err, unix.EADDRINUSE) {
		t.Fatal(err)
	}
	return l
}

func wantHeld(t *testing.T, port int) {
	t.Helper()
	for _, address := range []string{"", "127.0.0.1", "0.0.0.0"} {
		for _, options := range [][]int{nil, {unix.SO_REUSEPORT}} { // package net sets SO_REUSEADDR
			if l := stranger(t, address, port, options...); l != nil {
				_ = l.Close()
				t.Errorf("somebody else got port %d at %q with options %v", port, address, options)
			}
		}
	}
	// A peer that comes early is to try again, not to lose a connection.
	if c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port)); !errors.Is(err, unix.ECONNREFUSED) {
		if c != nil {
			_ = c.Close()
		}
		t.Errorf("a connection before the start: %v", err)
	}
}

// wantLetGo binds as a rank would that asks for nothing.
func wantLetGo(t *testing.T, port int) {
	t.Helper()
	fd := hold(port)
	if fd < 0 {
		t.Fatalf("port %d can't be bound by the rank", port)
	}
	_ = unix.Close(fd)
}

func TestPortIsHeldUntilTheGateOpens(t *testing.T) {
	c := newController(t)
	c.autoGo = false
	c.run(c.options(t.TempDir()))
	k := c.desire(1, 1, 1, "#!/bin/sh\nexec sleep 1000\n")
	a := c.untilPhase(k, api.PhaseReady)
	wantHeld(t, a.Port)
	c.order(k, func(x *api.Assignment) { x.Gate = &api.Gate{MasterPort: a.Port} })
	c.untilPhase(k, api.PhaseRunning)
	wantLetGo(t, a.Port)

	never := c.desire(2, 1, 1, "#!/bin/sh\n")
	b := c.untilPhase(never, api.PhaseReady)
	wantHeld(t, b.Port)
	c.stop(never, 0)
	c.untilPhase(never, api.PhaseStopped)
	wantLetGo(t, b.Port)
}

// TestPortAfterARestart: while no daemon was there to hold it, a port is anybody's.
func TestPortAfterARestart(t *testing.T) {
	c := newController(t)
	c.autoGo = false
	o := c.options(t.TempDir())
	first := c.spawn(o)
	out := t.TempDir()
	script := "#!/bin/sh\necho $MASTER_PORT >" + out + "/$GANG_JOB_ID.new && mv " + out + "/$GANG_JOB_ID.new " + out + "/$GANG_JOB_ID\n"
	var keys []api.MemberKey
	var before []int
	for job := range int64(3) {
		keys = append(keys, c.desire(job+1, 1, 1, script))
		before = append(before, c.untilPhase(keys[job], api.PhaseReady).Port)
	}
	kill(t, first)
	for _, port := range before[1:] {
		l := stranger(t, "", port)
		if l == nil {
			t.Fatalf("port %d outlives its daemon", port)
		}
		defer l.Close()
	}
	// The gate of the last one was open already: its peers know the old port.
	c.order(keys[2], func(x *api.Assignment) { x.Gate = &api.Gate{MasterPort: before[2]} })
	second := c.spawn(o)
	defer finish(t, c, o, second)
	c.until("the second hello", func() bool { return len(c.hellos) >= 2 })

	same, other := c.untilPhase(keys[0], api.PhaseReady).Port, c.untilPhase(keys[1], api.PhaseReady).Port
	if same != before[0] || other == before[1] {
		t.Errorf("ports %d and %d, before %v of which the first is free", same, other, before)
	}
	wantHeld(t, same)
	wantHeld(t, other)
	for i, port := range []int{same, other} {
		c.order(keys[i], func(x *api.Assignment) { x.Gate = &api.Gate{MasterPort: port} })
		c.untilPhase(keys[i], api.PhaseStopped)
		if b, err := os.ReadFile(filepath.Join(out, fmt.Sprint(i+1))); string(b) != fmt.Sprintln(port) {
			t.Errorf("job %d ran with port %q, %v, want %d", i+1, b, err, port)
		}
		wantLetGo(t, port)
	}
	a := c.untilPhase(keys[2], api.PhaseStopped)
	if want := fmt.Sprintf("MASTER_PORT %d was taken while gnoded was restarted", before[2]); a.Stopping != api.CauseRequeued || a.Text != want {
		t.Errorf("%+v, want %s", a, want)
	}
	if _, err := os.Stat(filepath.Join(out, "3")); !os.IsNotExist(err) {
		t.Errorf("it ran: %v", err)
	}
}
