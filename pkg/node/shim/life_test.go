package shim

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
)

func TestLifeOfAMember(t *testing.T) {
	s := testSpec(t, 3)
	c := startShim(t, s, "#!/bin/sh\necho rank $GANG_RANK port $MASTER_PORT args \"$@\"\nexit $GANG_RANK\n")
	if err := c.Send(Command{Go: &Go{MasterPort: 29500}}); err != nil {
		t.Fatal(err)
	}
	st := until(t, c, api.PhaseStopped)
	for i, r := range st.Ranks {
		if !r.Exited || r.ExitCode != i || r.PID == 0 || r.Started.IsZero() || r.Ended.IsZero() {
			t.Errorf("rank %d: %+v", i, r)
		}
	}
	if st.Forced || st.Stopping != "" {
		t.Errorf("stopped by itself, but %+v", st)
	}
	if got := output(t, s, 1); got != "rank 1 port 29500 args\n" {
		t.Errorf("output %q", got)
	}
	onDisk, err := ReadState(s.Dir)
	if err != nil || onDisk.Phase != api.PhaseStopped || onDisk.BootID == "" {
		t.Errorf("on disk %+v, %v", onDisk, err)
	}
	for range c.Answers() { // the result is on disk: nobody has to ask for it
	}
	if err := syscall.Kill(c.PID, 0); err != syscall.ESRCH {
		t.Errorf("shim after its member: %v", err)
	}
	if s.CgroupDir != "" {
		if _, err := os.Stat(s.CgroupDir); !os.IsNotExist(err) {
			t.Errorf("cgroup is left: %v", err)
		}
	}
}

// What a rank used is what it waited for and what it left to its supervisor, each of its own, and of the member all.
func TestMemberSaysWhatItUsed(t *testing.T) {
	const burn = "sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'"
	s := testSpec(t, 2)
	c := startShim(t, s, "#!/bin/sh\nif [ $GANG_RANK = 0 ]; then "+burn+"; else (("+burn+"; touch $GANG_RANK.orphan) &); while [ ! -e 1.orphan ]; do sleep 0.01; done; fi\n")
	if err := c.Send(Command{Go: &Go{MasterPort: 29500}}); err != nil {
		t.Fatal(err)
	}
	st := until(t, c, api.PhaseStopped)
	a, b := st.Ranks[0].Used, st.Ranks[1].Used
	if a == nil || b == nil || st.Used == nil {
		t.Fatalf("%+v", st)
	}
	const loop = 10 * time.Millisecond // far less than it takes
	if a.CPU < loop || b.CPU < loop || a.MaxRSS < 1<<20 || b.MaxRSS < 1<<20 || st.Used.CPU+loop < a.CPU+b.CPU {
		t.Errorf("rank 0 %+v, rank 1 %+v, all %+v", a, b, st.Used)
	}
}

func TestNothingRunsBeforeGo(t *testing.T) {
	s := testSpec(t, 1)
	c := startShim(t, s, "#!/bin/sh\necho ran\n")
	if err := c.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: 1e9}}); err != nil {
		t.Fatal(err)
	}
	st := until(t, c, api.PhaseStopped)
	if len(st.Ranks) != 0 || st.Stopping != api.CauseCancelled || st.Forced || st.Used != nil {
		t.Errorf("state %+v", st)
	}
	if got := output(t, s, 0); got != "" {
		t.Errorf("output %q", got)
	}
}

func TestStopEndsARank(t *testing.T) {
	s := testSpec(t, 2)
	c := startShim(t, s, "#!/bin/sh\nsleep 1000\necho next line\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	_ = c.Send(Command{Stop: &api.Stop{Cause: api.CausePreempted, Signal: "TERM", Grace: 20e9}})
	st := until(t, c, api.PhaseStopped)
	if st.Forced || st.Stopping != api.CausePreempted || st.Ranks[0].Signal != 15 || st.Ranks[0].ExitCode != 143 {
		t.Errorf("state %+v", st)
	}
	if got := output(t, s, 0); strings.Contains(got, "next line") {
		t.Errorf("output %q", got)
	}
}
