package attack

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// hostile draws a job of somebody's who means harm: a script of a few deeds, files where none can be, and
// figures that are asked for to fail.
func (s *site) hostile(r *rand.Rand, full, sealed string) map[string]any {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	deeds := []string{
		"kill -%s $PPID", "kill -%s 0", "kill -%s -1", "kill -%s $$", "trap '' TERM INT %s", "for i in $(seq 40); do sleep 30 & done; : %s", "setsid sleep 30 & : %s",
		"head -c 20000000 /dev/zero >> " + full + "/x; : %s", "python3 -c 'x = bytearray(120 << 20)'; : %s", "ulimit -n 5; : %s", "exec 0<&- 1>&- 2>&-; : %s",
		"for p in /proc/[0-9]*; do kill -%s ${p#/proc/} 2>/dev/null; done", "rm -rf \"$GANG_CHECKPOINT_DIR\" $TMPDIR; : %s", "(trap '' HUP TERM; sleep 30) & : %s",
		"f() { for i in 1 2 3 4; do sleep 20 & done; }; f & f & f & wait -n; : %s", "cat /dev/urandom | head -c 3000000; : %s", "mkfifo $PWD/p$$; cat $PWD/p$$ & : %s",
	}
	script := "#!/bin/bash\n"
	for range 1 + r.IntN(3) {
		script += fmt.Sprintf(one(deeds...), one("KILL", "STOP", "TERM", "HUP", "SEGV", "USR1", "ABRT")) + "\n"
	}
	script += one("exit 0", "exit 1", "exit 255", "kill -9 $$", "sleep 30", "exec sleep 30") + "\n"
	change := map[string]any{"script": []byte(script), "time_limit_ns": int64(1+r.IntN(2)) * int64(time.Second), "grace_ns": int64(100 * time.Millisecond), "max_retries": r.IntN(2)}
	path := func() string {
		return one("/dev/null", s.eve.home+"/out", full+"/out", sealed+"/out", "/nonexistent/out", "/etc/passwd", s.eve.home+"/prog", s.ada.home+"/out", s.eve.home+"/fifo", "/dev/full", "/proc/self/mem", s.eve.home)
	}
	for _, field := range []string{"output", "error", "input"} {
		if r.IntN(3) == 0 {
			change[field] = path()
		}
	}
	switch r.IntN(8) {
	case 0:
		change["memory_per_rank"] = int64(32 << 20)
	case 1:
		change["work_dir"] = one("/nonexistent", full, sealed, "/root", "/proc/self", s.ada.home)
	case 2:
		change["size"] = 2 + r.IntN(6)
	case 3:
		change["env"] = []string{"LD_PRELOAD=/nonexistent.so", "BASH_ENV=/dev/zero/x", "PATH=/nonexistent:/usr/bin:/bin", "TMPDIR=" + full}
	}
	return change
}

// A hostile user's jobs, drawn from a seed (GANG_E2E_ROUNDS: how many), a few at a time beside small ones of ada's:
// no node is drained, none of ada's fails or starts late, and the nodes are as good as before.
func TestHostileUser(t *testing.T) {
	if os.Getenv("GANG_E2E_CHAOS") == "" {
		t.Skip("takes minutes: make attack runs it")
	}
	s := build(t)
	full, sealed := s.disks()
	s.eve.shell("mkfifo fifo; cp /bin/sleep prog; setsid ./prog 1000 >/dev/null 2>&1 &")
	defer s.eve.shell("kill -9 $(pgrep -x prog -u games)")
	stop, over := make(chan struct{}), make(chan struct{})
	var delays []time.Duration
	var failed []string
	go func() {
		defer close(over)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			var r api.SubmitReply
			if err := s.ada.call("POST", "/v1/jobs", map[string]any{"key": fmt.Sprintf("ada%d", i), "spec": s.ada.spec(nil)}).decode(&r); err != nil {
				failed = append(failed, fmt.Sprintf("submission %d: %v", i, err))
				continue
			}
			j, err := s.ended(r.JobID)
			if err != nil || j.State != api.JobCompleted || j.Epoch != 1 {
				failed = append(failed, fmt.Sprintf("job %d is %s in epoch %d: %s, %v", j.JobID, j.State, j.Epoch, j.Verdict, err))
				continue
			}
			delays = append(delays, j.StartTime.Sub(j.SubmitTime))
		}
	}()
	const seed, atOnce = 1, 12
	r := rand.New(rand.NewPCG(seed, 0))
	jobs, c := trial.Rounds(400), newCrowd(s)
	for range jobs {
		c.submit(s.hostile(r, full, sealed))
		if len(c.open) > 0 && r.IntN(10) == 0 {
			s.eve.call("POST", "/v1/cancel", map[string]any{"refs": []string{fmt.Sprint(c.open[r.IntN(len(c.open))])}, "now": r.IntN(2) == 0})
		}
		c.settle(atOnce)
	}
	c.settle(0)
	close(stop)
	<-over
	tally.Did("jobs of a hostile user", jobs)
	tally.Did("jobs of another user beside them", len(delays))
	slices.Sort(delays)
	var late []string
	for _, d := range delays {
		if d > time.Second {
			late = append(late, d.String())
		}
	}
	if len(delays) > 0 {
		fmt.Printf("%d jobs of eve's, %d refused, ended %v; %d jobs of ada's, started after %s (half of them), %s (the last)\n",
			jobs, c.refused, c.states, len(delays), delays[len(delays)/2], delays[len(delays)-1])
	}
	tally.Checked(t, "another user's jobs failed", failed...)
	tally.Checked(t, "another user's jobs delayed by more than a second", late...)
	if err := s.stands(); err != nil {
		tally.Checked(t, "the site after a hostile user", err.Error())
	}
	left, _ := filepath.Glob(filepath.Join(s.dir, "n[12]", "m", "*"))
	if len(left) > 1 { // ada's, which runs
		t.Logf("members' directories: %v", left)
	}
	s.works()
}
