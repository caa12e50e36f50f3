package proc

import (
	"path/filepath"
	"syscall"
	"testing"
)

// place is a containment that a thread is in or not.
type place struct {
	Containment
	inside bool
}

func (p *place) Enter(*syscall.SysProcAttr) error { p.inside = true; return nil }
func (p *place) Leave()                           { p.inside = false }

// TestEntersAllOrNone: a thread that can't enter a side does not stay in the containment, which may be frozen.
func TestEntersAllOrNone(t *testing.T) {
	p := &place{}
	s := &sided{Containment: p, sides: map[string]string{sidePIDs: filepath.Join(t.TempDir(), "gone")}}
	if err := s.Enter(&syscall.SysProcAttr{}); err == nil || p.inside {
		t.Errorf("entered: %v; error %v", p.inside, err)
	}
}
