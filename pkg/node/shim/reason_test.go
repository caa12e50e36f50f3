package shim

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
)

var secondsLeft = regexp.MustCompile(`seconds_left=([0-9.]+)`)

// TestReasonBeforeTheSignal: what a handler reads is complete, of the signal that called it,
// also for another user than the shim's. The seconds left are what the clock says when the
// file is written, some time after the stop was asked for: at most the lead and the grace.
func TestReasonBeforeTheSignal(t *testing.T) {
	for name, spec := range map[string]func(testing.TB) *Spec{"same user": func(t testing.TB) *Spec { return testSpec(t, 1) }, "switched": func(t testing.TB) *Spec { return asNobody(t, 1) }} {
		t.Run(name, func(t *testing.T) {
			s := spec(t)
			s.Notice = &api.Notice{Signal: "USR1", Lead: time.Second, Scope: api.ScopeFull}
			s.CheckpointDir, s.Whole = filepath.Join(s.WorkDir, ".gang", "1"), true
			c := startShim(t, s, `#!/bin/bash
trap 'cat $GANG_STATUS_FILE' USR1
trap 'cat $GANG_STATUS_FILE; exit 0' TERM
[ -e $GANG_STATUS_FILE ] && echo before its time
[ -w $GANG_CHECKPOINT_DIR ] && touch up
while :; do sleep 0.01; done
`)
			_ = c.Send(Command{Go: &Go{}})
			await(t, filepath.Join(s.WorkDir, "up"))
			_ = c.Send(Command{Stop: &api.Stop{Cause: api.CausePreempted, Text: "preempted\nfor job 12", Signal: "TERM", Lead: time.Second, Grace: time.Minute}})
			until(t, c, api.PhaseStopped)
			var got []string
			for _, l := range strings.Split(output(t, s, 0), "\n") {
				if !strings.HasPrefix(l, "time=") && (l == "" || strings.Contains(l, "=")) { // bash tells of its sleep too
					got = append(got, l)
				}
			}
			text := strings.Join(got, " ")
			want := "state=notice cause=preempted text=preempted for job 12 signal=USR1 seconds_left=L epoch=1 " +
				"state=stopping cause=preempted text=preempted for job 12 signal=TERM seconds_left=G epoch=1 "
			left := secondsLeft.FindAllStringSubmatch(text, -1)
			if len(left) != 2 {
				t.Fatalf("the ranks read %q", text)
			}
			for i, among := range []struct {
				as       string
				from, to float64
			}{{"L", 0, 1}, {"G", 30, 60}} {
				if n, err := strconv.ParseFloat(left[i][1], 64); err != nil || n <= among.from || n > among.to {
					t.Errorf("%s, want more than %v and at most %v", left[i][0], among.from, among.to)
				}
				text = strings.Replace(text, left[i][0], "seconds_left="+among.as, 1)
			}
			if text != want {
				t.Errorf("the ranks read %q, want %q", text, want)
			}
		})
	}
}

func TestStatusText(t *testing.T) {
	o := supervise.Outlook{State: supervise.Stopping, Cause: api.CauseCrash, Text: "rank 1 exited with code 9", Signal: "TERM", Left: 15 * time.Second}
	got := statusText(o, 3, time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC))
	want := "state=stopping\ncause=crash\ntext=rank 1 exited with code 9\nsignal=TERM\nseconds_left=15.000\nepoch=3\ntime=2026-03-01T12:00:00.005Z\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCheckpointDirIsTidied: an empty one goes with a member that was the whole gang and
// ended well; anything else stays.
func TestCheckpointDirIsTidied(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		whole, stays bool
	}{
		{"empty", "exit 0", true, false},
		{"used", "touch $GANG_CHECKPOINT_DIR/x", true, true},
		{"failed", "exit 1", true, true},
		{"part of a gang", "exit 0", false, true},
	} {
		for name, spec := range map[string]func(testing.TB) *Spec{"same user": func(t testing.TB) *Spec { return testSpec(t, 1) }, "switched": func(t testing.TB) *Spec { return asNobody(t, 1) }} {
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				s := spec(t)
				s.CheckpointDir, s.Whole = filepath.Join(s.WorkDir, ".gang", "1"), tc.whole
				c := startShim(t, s, "#!/bin/sh\n[ -d \"$GANG_CHECKPOINT_DIR\" ] || exit 9\n"+tc.script+"\n")
				_ = c.Send(Command{Go: &Go{}})
				if st := until(t, c, api.PhaseStopped); st.Ranks[0].ExitCode == 9 {
					t.Fatal("there was no directory")
				}
				_ = c.Send(Command{Bye: true})
				for range c.Answers() { // until the shim has exited
				}
				if _, err := os.Stat(s.CheckpointDir); (err == nil) != tc.stays {
					t.Errorf("stays %v, want %v (%v)", err == nil, tc.stays, err)
				}
			})
		}
	}
}
