package session

import (
	"errors"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestSettingsThatChange: a node in session is told once of settings that differ from those of the welcome, and of others not at all.
func TestSettingsThatChange(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "x")
	r.dial(a)
	w := get(t, "welcome", a.welcome)
	same := w.Settings
	r.handler.settings.Store(&same)
	r.hub.Wake([]string{"n1"})
	other := w.Settings
	other.Grace = 77 * time.Second
	get(t, "full set", a.desired)
	r.handler.set(map[string]*api.Spec{"a": {}}, assign(1, 1, "a"))
	r.hub.Wake([]string{"n1"})
	get(t, "a change of the set, by which nothing was said of settings that are the same", a.desired)
	if n := len(a.settings); n != 0 {
		t.Fatalf("told %d times of what it knows", n)
	}
	r.handler.settings.Store(&other)
	r.hub.Wake([]string{"n1"})
	if s := get(t, "settings", a.settings); s.Grace != other.Grace {
		t.Errorf("grace %v, want %v", s.Grace, other.Grace)
	}
	r.handler.set(map[string]*api.Spec{"a": {}}, assign(2, 1, "a"))
	r.hub.Wake([]string{"n1"})
	get(t, "another change of the set", a.desired)
	if n := len(a.settings); n != 0 {
		t.Errorf("told %d times more", n)
	}
}

// TestRebootIsTold: once in each session, and to nobody who does not know the word.
func TestRebootIsTold(t *testing.T) {
	r := newRig(t, "")
	order := &api.RebootOrder{Boot: "boot-1", Asked: time.Unix(1, 0)}
	r.handler.reboot.Store(order)
	for i := range 3 {
		a := newFakeAgent("n1", "x")
		a.knowsReboots = i > 0
		r.dial(a)
		get(t, "full set", a.desired)
		for n := range 2 {
			r.handler.set(map[string]*api.Spec{"a": {}}, assign(int64(2*i+n+1), 1, "a"))
			r.hub.Wake([]string{"n1"})
			get(t, "a change", a.desired)
		}
		if got := len(a.reboots); got != min(i, 1) {
			t.Errorf("session %d: told %d times", i, got)
		}
		if i > 0 {
			if o := <-a.reboots; !o.Same(order) {
				t.Errorf("%+v", o)
			}
		}
	}
}

// TestHelloIsSaidAgain: the session ends, the next one has a new hello, and nobody takes that for the end of the controller.
func TestHelloIsSaidAgain(t *testing.T) {
	r := newRig(t, "")
	a := newFakeAgent("n1", "x")
	c := r.dial(a)
	get(t, "hello", r.handler.hellos)
	get(t, "welcome", a.welcome)
	c.Again()
	if err := get(t, "the end of the session", a.down); !errors.Is(err, errAgain) || HungUp(err) {
		t.Errorf("it ended by %v", err)
	}
	get(t, "another hello", r.handler.hellos)
	get(t, "another welcome", a.welcome)
}
