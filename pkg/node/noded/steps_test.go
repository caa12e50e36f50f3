package noded

import (
	"testing"

	"gangd/pkg/api"
)

// TestStepsAreToldOnChange: the shim hears of steps when its member runs, when this daemon may
// act, and once for each change; after a stop it hears of none.
func TestStepsAreToldOnChange(t *testing.T) {
	var told LastSent
	open := &api.Gate{}
	yes, no := func() bool { return true }, func() bool { return false }
	told.opened = true
	one := []api.StepOrder{{ID: 0}}
	sent := func(o Orders, phase api.MemberPhase, may func() bool) (n int, again bool) {
		do := told.Next(o, phase, true, false, may)
		for _, c := range do.Send {
			if c.Steps != nil {
				n++
			}
		}
		return n, do.Again
	}
	for i, c := range []struct {
		o     Orders
		phase api.MemberPhase
		may   func() bool
		sent  int
		again bool
	}{
		{Orders{Gate: open}, api.PhaseRunning, yes, 0, false},
		{Orders{Gate: open, Steps: one}, api.PhaseReady, yes, 0, false},
		{Orders{Gate: open, Steps: one}, api.PhaseRunning, no, 0, true},
		{Orders{Gate: open, Steps: one}, api.PhaseRunning, yes, 1, false},
		{Orders{Gate: open, Steps: one}, api.PhaseRunning, yes, 0, false},
		{Orders{Gate: open, Steps: []api.StepOrder{{ID: 0, Stop: true}}}, api.PhaseRunning, yes, 1, false},
		{Orders{Gate: open}, api.PhaseRunning, yes, 1, false},
		{Orders{Gate: open, Steps: one, Stop: &api.Stop{}}, api.PhaseRunning, yes, 0, false},
	} {
		if n, again := sent(c.o, c.phase, c.may); n != c.sent || again != c.again {
			t.Errorf("%d: sent %d, again %v; want %d, %v", i, n, again, c.sent, c.again)
		}
	}
}

// TestNobodyImportsForWhoIsGone: what a step was to start from is not fetched any longer than there is its member.
func TestNobodyImportsForWhoIsGone(t *testing.T) {
	d := newDaemon(Options{}, &stateDir{})
	m := d.newMember(api.MemberKey{Job: 1, Epoch: 1})
	off := false
	m.files = map[int]*stepFile{4: {off: func() { off = true }}}
	if m.end(); !off || len(m.files) > 0 {
		t.Errorf("called off: %v, files %v", off, m.files)
	}
}
