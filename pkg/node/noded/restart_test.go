package noded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// kill ends a daemon as a crash would.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// finish stops the daemon of a test that ran one as a process, after its members.
func finish(t *testing.T, c *controller, o Options, cmd *exec.Cmd) {
	t.Helper()
	c.empty(o.StateDir)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("gnoded ended with %v", err)
	}
}

// TestKilledWithTwentyRanks: kill -9 of the daemon, ranks that end meanwhile, and another
// daemon. What runs keeps its pids, what ended is told exactly and once.
func TestKilledWithTwentyRanks(t *testing.T) {
	c := newController(t)
	o := c.options(t.TempDir())
	first := c.spawn(o)
	go1 := filepath.Join(t.TempDir(), "go")
	script := fmt.Sprintf("#!/bin/bash\n[ $GANG_JOB_ID -gt 5 ] && exec sleep 1000\nwhile [ ! -e %s ]; do sleep 0.05; done\nexit $((GANG_JOB_ID * 10 + RANK))\n", go1)
	before := map[api.MemberKey][]int{}
	var keys []api.MemberKey
	for job := range int64(10) {
		keys = append(keys, c.desire(job+1, 1, 2, script))
	}
	for _, k := range keys {
		before[k] = pids(c.untilPhase(k, api.PhaseRunning))
	}
	kill(t, first)
	if err := os.WriteFile(go1, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys[:5] { // they end while no daemon runs
		dir := filepath.Join(o.StateDir, membersDir, fmt.Sprintf("%d.1", k.Job))
		waitState(t, dir, api.PhaseStopped)
	}
	second := c.spawn(o)
	defer finish(t, c, o, second)
	c.until("the second hello", func() bool { return len(c.hellos) >= 2 })
	for _, k := range keys {
		want := api.PhaseRunning
		if k.Job <= 5 {
			want = api.PhaseStopped
		}
		a := c.untilPhase(k, want)
		if !slices.Equal(pids(a), before[k]) {
			t.Errorf("job %d: pids %v, before %v", k.Job, pids(a), before[k])
		}
		for _, r := range a.Ranks {
			if k.Job <= 5 && (!r.Exited || r.ExitCode != int(k.Job)*10+r.Rank) {
				t.Errorf("job %d: %+v", k.Job, r)
			}
		}
	}
	// The new daemon still rules them.
	c.stop(keys[9], time.Second)
	c.untilPhase(keys[9], api.PhaseStopped)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys[:5] {
		if p := c.phases[k]; p[len(p)-1] != api.PhaseStopped || slices.Contains(p, api.PhaseLost) {
			t.Errorf("job %d: phases %v", k.Job, p)
		}
	}
}

func waitState(t *testing.T, dir string, want api.MemberPhase) *shim.State {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if s, err := shim.ReadState(dir); err == nil && s.Phase == want {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not %s", dir, want)
		}
	}
}

// TestShimKilled: a shim that dies takes nobody's word with it: what it held is killed and
// the member is lost, with the daemon there and without.
func TestShimKilled(t *testing.T) {
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprintf("daemon dead %v", alone), func(t *testing.T) {
			c := newController(t)
			o := c.options(t.TempDir())
			cmd := c.spawn(o)
			k := c.desire(1, 1, 2, "#!/bin/bash\nsetsid sleep 1000 &\nexec sleep 1000\n")
			a := c.untilPhase(k, api.PhaseRunning)
			s, err := shim.ReadState(filepath.Join(o.StateDir, membersDir, "1.1"))
			if err != nil {
				t.Fatal(err)
			}
			if alone {
				kill(t, cmd)
			}
			if err := syscall.Kill(s.ShimPID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if alone {
				cmd = c.spawn(o)
			}
			defer func() { finish(t, c, o, cmd) }()
			lost := c.untilPhase(k, api.PhaseLost)
			if len(lost.Ranks) != 2 {
				t.Errorf("lost without its ranks: %+v", lost)
			}
			for _, pid := range pids(a) {
				if alive(pid) {
					t.Errorf("process %d of a lost member lives", pid)
				}
			}
		})
	}
}

// alive: a zombie, which waits for a parent that may be nobody here, is not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	for i := len(b) - 1; i > 0; i-- {
		if b[i] == ')' {
			return b[i+2] != 'Z' && b[i+2] != 'X'
		}
	}
	return true
}

// TestRecordsLost: what a member's record was lost of lives, and is known: it is not reported
// gone while it does, it obeys where its shim can be reached, and it is ended where not.
func TestRecordsLost(t *testing.T) {
	spec := func(change func(b []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, shim.SpecFile)
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		lose func(t *testing.T, dir string)
		want api.MemberPhase
	}{
		"spec empty":   {spec(func([]byte) []byte { return nil }), api.PhaseRunning},
		"spec cut":     {spec(func(b []byte) []byte { return b[:len(b)/2] }), api.PhaseRunning},
		"no directory": {func(t *testing.T, dir string) { _ = os.RemoveAll(dir) }, api.PhaseLost},
		"no base": {func(t *testing.T, dir string) {
			link := filepath.Dir(dir)
			to, _ := filepath.EvalSymlinks(link)
			_ = os.RemoveAll(to)
		}, api.PhaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			c0 := newController(t)
			o := c0.options(t.TempDir())
			first := c0.spawn(o)
			up := filepath.Join(t.TempDir(), "up") // its script is read
			k := c0.desire(1, 1, 1, "#!/bin/bash\nsleep 1000 &\ntouch "+up+"\nexec sleep 1000\n")
			a := c0.untilPhase(k, api.PhaseRunning)
			waitFile(t, up)
			kill(t, first)
			c.lose(t, filepath.Join(o.StateDir, membersDir, "1.1"))
			second := c0.spawn(o)
			defer finish(t, c0, o, second)
			c0.until("the second hello", func() bool { return len(c0.hellos) >= 2 })
			c0.mu.Lock()
			m := c0.hellos[1].Members
			c0.mu.Unlock()
			if len(m) != 1 || m[0].MemberKey != k || m[0].Phase != api.PhaseRunning || m[0].Found == "" {
				t.Errorf("the hello has %+v", m)
			}
			if c.want == api.PhaseRunning {
				if !alive(a.Ranks[0].PID) {
					t.Error("it was ended")
				}
				c0.stop(k, time.Second)
				c0.untilPhase(k, api.PhaseStopped)
			} else {
				c0.untilPhase(k, api.PhaseLost)
			}
			if alive(a.Ranks[0].PID) {
				t.Errorf("process %d lives", a.Ranks[0].PID)
			}
			next := c0.desire(2, 1, 1, "#!/bin/sh\nexit 5\n")
			if a := c0.untilPhase(next, api.PhaseStopped); a.Ranks[0].ExitCode != 5 {
				t.Errorf("the next one: %+v", a)
			}
		})
	}
}

// TestBaseRemoved: the members' base goes while the daemon runs: what runs goes on, and what
// comes finds it made again.
func TestBaseRemoved(t *testing.T) {
	c := newController(t)
	o := c.options(t.TempDir())
	c.run(o)
	up := filepath.Join(t.TempDir(), "up")
	k := c.desire(1, 1, 1, "#!/bin/bash\ntouch "+up+"\nexec sleep 1000\n")
	a := c.untilPhase(k, api.PhaseRunning)
	waitFile(t, up)
	to, err := filepath.EvalSymlinks(filepath.Join(o.StateDir, membersDir))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	next := c.desire(2, 1, 1, "#!/bin/sh\nexit 5\n")
	if a := c.untilPhase(next, api.PhaseStopped); a.Ranks[0].ExitCode != 5 {
		t.Errorf("the next one: %+v", a)
	}
	if !alive(a.Ranks[0].PID) {
		t.Error("what ran was ended")
	}
	c.stop(k, time.Second)
	c.untilPhase(k, api.PhaseStopped)
}

func TestMembersOfAnotherBoot(t *testing.T) {
	c := newController(t)
	o := c.options(t.TempDir())
	for job, phase := range map[int]api.MemberPhase{1: api.PhaseRunning, 2: api.PhaseStopped, 3: ""} {
		dir := filepath.Join(o.StateDir, membersDir, fmt.Sprintf("%d.1", job))
		write(t, dir, shim.SpecFile, fmt.Sprintf(`{"job":%d,"epoch":1,"containment":"group","marker":"GANG_MEMBER=none"}`, job))
		if phase != "" {
			write(t, dir, shim.StateFile, fmt.Sprintf(`{"job":%d,"epoch":1,"phase":%q,"ranks":[{"rank":0,"pid":1,"exited":true,"exit_code":3}],"boot_id":"another"}`, job, phase))
		}
	}
	write(t, filepath.Join(o.StateDir, membersDir, "4.1"), shim.SpecFile, "{torn")
	write(t, o.StateDir, bootFile, "another")
	c.desire(2, 1, 1, "", func(a *api.Assignment, _ *api.Spec) { a.Gate = &api.Gate{} })
	c.run(o)
	c.until("a hello", func() bool { return len(c.hellos) > 0 })
	c.mu.Lock()
	m := c.hellos[0].Members
	c.mu.Unlock()
	if len(m) != 1 || m[0].Job != 2 || m[0].Phase != api.PhaseStopped || m[0].Ranks[0].ExitCode != 3 {
		t.Errorf("members %+v: want the result of job 2 alone", m)
	}
	left, err := os.ReadDir(filepath.Join(o.StateDir, membersDir))
	if err != nil || len(left) != 1 {
		t.Errorf("directories %v, %v", left, err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSecondDaemonIsRefused(t *testing.T) {
	c := newController(t)
	o := c.options(t.TempDir())
	c.run(o)
	c.until("a hello", func() bool { return len(c.hellos) > 0 })
	want := fmt.Sprintf("state_dir %s is in use by process %d: stop that gnoded, or give this one another state_dir", o.StateDir, os.Getpid())
	if err := Run(t.Context(), o); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestFrozenDaemonOpensNoGate: a daemon that was stopped while its member was ready finds
// the open gate in its socket when it goes on, and does not obey it.
func TestFrozenDaemonOpensNoGate(t *testing.T) {
	c := newController(t)
	c.autoGo = false
	o := c.options(t.TempDir())
	cmd := c.spawn(o)
	defer finish(t, c, o, cmd)
	ran := filepath.Join(t.TempDir(), "ran")
	k := c.desire(1, 1, 1, "#!/bin/sh\ntouch "+ran+"\n")
	c.untilPhase(k, api.PhaseReady)
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	// Until its last thread has stopped it may well obey.
	c.until("the daemon to be frozen", func() bool {
		st, ok := proc.ReadStat(cmd.Process.Pid)
		return ok && st.State == 'T'
	})
	c.order(k, func(a *api.Assignment) { a.Gate = &api.Gate{} })
	c.until("the session to end", func() bool { return c.cut > 0 })
	c.forget(k) // the gang went elsewhere
	_ = cmd.Process.Signal(syscall.SIGCONT)
	c.untilGone(k)
	if _, err := os.Stat(ran); err == nil {
		t.Error("it ran")
	}
}

// TestTwoArrays: members come, run and go in two overlapping waves; each is told once, and
// frames carry many.
func TestTwoArrays(t *testing.T) {
	c := newController(t)
	c.autoEnd = true
	c.run(c.options(t.TempDir()))
	const n = 40
	var keys []api.MemberKey
	for wave := range int64(2) {
		for i := range int64(n) {
			keys = append(keys, c.desire(wave*100+i+1, 1, 1, fmt.Sprintf("#!/bin/sh\nexit %d\n", i)))
		}
	}
	for i, k := range keys {
		c.untilGone(k)
		a, _ := c.last(k)
		if a.Phase != api.PhaseStopped || a.Ranks[0].ExitCode != i%n {
			t.Errorf("job %d: %+v", k.Job, a)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		if c.gone[k] != 1 {
			t.Errorf("job %d gone %d times", k.Job, c.gone[k])
		}
	}
	t.Logf("%d frames for %d members", c.frames, len(keys))
}

// TestKilledWithReusedShims: a shim that has held members before is adopted like any other,
// and ends when its member is over: the daemon that kept it is gone.
func TestKilledWithReusedShims(t *testing.T) {
	c := newController(t)
	o := c.options(t.TempDir())
	first := c.spawn(o)
	used := map[int]bool{}
	dir := func(k api.MemberKey) string {
		return filepath.Join(o.StateDir, membersDir, fmt.Sprintf("%d.%d", k.Job, k.Epoch))
	}
	for job := range int64(4) {
		k := c.desire(job+1, 1, 1, "#!/bin/sh\nexit 0\n")
		c.untilPhase(k, api.PhaseStopped)
		used[waitState(t, dir(k), api.PhaseStopped).ShimPID] = true
		c.forget(k)
		c.untilGone(k)
	}
	go1 := filepath.Join(t.TempDir(), "go")
	script := fmt.Sprintf("#!/bin/bash\nwhile [ ! -e %s ]; do sleep 0.02; done\nexit $((GANG_JOB_ID + RANK))\n", go1)
	keys := []api.MemberKey{c.desire(11, 1, 2, script), c.desire(12, 1, 2, script)}
	shims, reused := []int{}, 0
	for _, k := range keys {
		c.untilPhase(k, api.PhaseRunning)
		pid := waitState(t, dir(k), api.PhaseRunning).ShimPID
		shims = append(shims, pid)
		if used[pid] {
			reused++
		}
	}
	if reused == 0 {
		t.Errorf("none of the shims %v was used before: %v", shims, used)
	}
	kill(t, first)
	second := c.spawn(o)
	defer finish(t, c, o, second)
	c.until("the second hello", func() bool { return len(c.hellos) >= 2 })
	if err := os.WriteFile(go1, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		a := c.untilPhase(k, api.PhaseStopped)
		for _, r := range a.Ranks {
			if !r.Exited || r.ExitCode != int(k.Job)+r.Rank {
				t.Errorf("job %d: %+v", k.Job, r)
			}
		}
		c.forget(k)
		c.untilGone(k)
	}
	for _, pid := range shims {
		if alive(pid) {
			t.Errorf("shim %d is left", pid)
		}
	}
}
