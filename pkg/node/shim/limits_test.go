package shim

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

// hog takes 600 MB and keeps them: nobody reads what it writes.
const hog = "#!/bin/sh\ndd bs=600M count=1 if=/dev/zero 2>/dev/null | sleep 1000\n"

// TestMemoryLimit: in each kind a member above its memory ends of that and says both figures.
// Whether the kernel holds it to that or looking does is the machine's matter.
func TestMemoryLimit(t *testing.T) {
	for kind, base := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := specIn(t, base, 1)
			s.MemoryMax, s.PidsMax = 100<<20, 50
			script := hog
			if base.Memory {
				script = strings.Replace(hog, " | sleep 1000", " >/dev/null", 1)
			}
			c := startShim(t, s, script)
			_ = c.Send(Command{Go: &Go{}})
			st := until(t, c, api.PhaseStopped)
			r := st.Ranks[0]
			if base.Memory {
				const forced = 1 << 20 // pages that the kernel may not refuse itself count, too
				if !r.OOM || r.HostOOM || r.MemoryAsked != 100<<20 || r.MemoryUsed < 90<<20 || r.MemoryUsed > 100<<20+forced || st.Stopping != "" {
					t.Errorf("%+v, stopping %q", r, st.Stopping)
				}
				return
			}
			if st.Stopping != api.CauseOOM || !strings.HasPrefix(st.Text, "used ") || !strings.HasSuffix(st.Text, "M of 100M of memory asked") || r.Own {
				t.Errorf("stopping %q, %q, %+v", st.Stopping, st.Text, r)
			}
		})
	}
}

// TestProcessLimit: a member with too many processes is refused more of them, or ended.
func TestProcessLimit(t *testing.T) {
	for kind, base := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := specIn(t, base, 1)
			s.PidsMax = 30
			c := startShim(t, s, "#!/bin/sh\nfor i in $(seq 60); do sleep 1000 & done\nwait\n")
			_ = c.Send(Command{Go: &Go{}})
			st := until(t, c, api.PhaseStopped)
			if r := st.Ranks[0]; base.PIDs && (r.ForksRefused == 0 || r.ProcessesMax != 30 || r.ExitCode == 0 || st.Stopping != "") {
				t.Errorf("%+v, stopping %q", r, st.Stopping)
			}
			if !base.PIDs && (st.Stopping != api.CauseOOM || !strings.HasSuffix(st.Text, " processes of 30 allowed")) {
				t.Errorf("stopping %q, %q", st.Stopping, st.Text)
			}
		})
	}
}

// TestWithinLimits: nobody is ended who keeps to what he asked for, and no group is left behind
// in any hierarchy.
func TestWithinLimits(t *testing.T) {
	for kind, base := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := specIn(t, base, 1)
			s.MemoryMax, s.PidsMax, s.CPUs = 100<<20, 20, 2
			c := startShim(t, s, "#!/bin/sh\ndd bs=30M count=1 if=/dev/zero of=/dev/null 2>/dev/null\nexit 7\n")
			_ = c.Send(Command{Go: &Go{}})
			st := until(t, c, api.PhaseStopped)
			if r := st.Ranks[0]; r.ExitCode != 7 || r.OOM || r.ForksRefused != 0 || st.Stopping != "" {
				t.Errorf("%+v, stopping %q", r, st.Stopping)
			}
			for controller, dir := range s.Sides {
				if _, err := os.Stat(dir); err == nil {
					t.Errorf("its group of %s is left", controller)
				}
			}
		})
	}
}

// short is a containment that killed for want of memory, and refused forks.
type short struct{ proc.Containment }

func (short) Forks() int { return 3 }

func (short) Shortage() proc.Shortage { return proc.Shortage{Kills: 1, Own: true, Peak: 7} }

// A rank that went on without the worker it lost to the kernel, and did its work, has not failed of memory. That forks
// were refused is said of it too.
func TestShortageIsOfTheFailed(t *testing.T) {
	for code, want := range map[int]api.RankActual{0: {ForksRefused: 3, ProcessesMax: 9},
		1: {ForksRefused: 3, ProcessesMax: 9, ExitCode: 1, OOM: true, MemoryAsked: 5, MemoryUsed: 7}} {
		m := &member{spec: &Spec{MemoryMax: 5, PidsMax: 9}, box: short{}, mach: supervise.New(supervise.Config{}, now())}
		rec := api.RankActual{ExitCode: code}
		if m.shortage(&rec); !reflect.DeepEqual(rec, want) {
			t.Errorf("exit %d: %+v", code, rec)
		}
	}
}
