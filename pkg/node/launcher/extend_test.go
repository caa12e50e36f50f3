package launcher

import (
	"testing"
	"time"

	"gangd/pkg/node/shim"
)

// A task's wish moves KILL while its step is being ended, never nearer, and never beyond what the
// job allows from the stop on.
func TestExtend(t *testing.T) {
	l := &launcher{start: shim.LauncherStart{GraceMax: time.Hour}}
	l.extend(time.Minute)
	if l.killer != nil || !l.killAt.IsZero() {
		t.Fatal("a step that nobody ends is killed")
	}
	l.stopAt = time.Now()
	l.killAt = l.stopAt.Add(10 * time.Minute)
	l.killer = time.AfterFunc(10*time.Minute, func() { t.Error("killed") })
	defer l.killer.Stop()
	l.extend(time.Minute)
	if l.killAt != l.stopAt.Add(10*time.Minute) {
		t.Errorf("KILL came nearer, to %s", l.killAt.Sub(l.stopAt))
	}
	l.extend(30 * time.Minute)
	if d := l.killAt.Sub(l.stopAt); d < 30*time.Minute || d > 31*time.Minute {
		t.Errorf("KILL is %s after the stop, want 30 minutes from now", d)
	}
	l.extend(24 * time.Hour)
	if l.killAt != l.stopAt.Add(time.Hour) {
		t.Errorf("KILL is %s after the stop, the job allows an hour", l.killAt.Sub(l.stopAt))
	}
	l.killAt = time.Now() // the grace is over
	before := l.killAt
	l.extend(time.Hour)
	if l.killAt != before {
		t.Error("a grace that is over was extended")
	}
}
