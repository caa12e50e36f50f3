package shim

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
)

// testPool keeps only what comes back, so that a test knows which process is next.
func testPool(t testing.TB) *Pool {
	p := NewPool(program, t.TempDir())
	p.keep = 0
	t.Cleanup(p.Close)
	return p
}

func startIn(t testing.TB, p *Pool, s *Spec, script string) *Conn {
	t.Helper()
	c, err := p.Start(s, []byte(script))
	return started(t, c, err)
}

// whole is the life of a member up to the end of its shim's interest in it.
func whole(t testing.TB, p *Pool, s *Spec, script string) (pid int, st *State) {
	t.Helper()
	c := startIn(t, p, s, script)
	_ = c.Send(Command{Go: &Go{MasterPort: 1}})
	st = until(t, c, api.PhaseStopped)
	bye(c)
	return st.ShimPID, st
}

// bye waits until the shim has let go, and removes the directory as gnoded does then.
func bye(c *Conn) {
	_ = c.Send(Command{Bye: true})
	for range c.Answers() {
	}
	_ = os.RemoveAll(c.Dir)
}

func (p *Pool) pids() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []int
	for _, proc := range p.idle {
		out = append(out, proc.pid)
	}
	return out
}

func countFDs(t testing.TB, pid int) int {
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// look is what a rank can see of the process that started it.
const look = `#!/bin/sh
id; umask; pwd; env | sort
grep -E '^(Sig[PBIC]|Shd|NoNewPrivs|Uid|Gid|Groups)' /proc/self/status
ls /proc/self/fd | wc -l; ls /proc/$PPID/cwd/
tr ' ' '\n' < /proc/$PPID/task/$PPID/children | grep -vx $$ ; cat /proc/self/cgroup
exit 3
`

// plainLook drops from it what must differ between members.
func plainLook(s *Spec, text string) string {
	text = strings.NewReplacer(s.WorkDir, "WORK", s.Dir, "DIR", s.Marker, "MARKER").Replace(text)
	for _, dir := range append(slices.Collect(maps.Values(s.Sides)), s.CgroupDir) {
		if dir != "" {
			text = strings.ReplaceAll(text, filepath.Base(dir), "GROUP")
		}
	}
	text = regexp.MustCompile(`SLURM_JOB_START_TIME=\d+`).ReplaceAllString(text, "SLURM_JOB_START_TIME=NOW")
	return regexp.MustCompile(`\s+\n`).ReplaceAllString(text, "\n")
}

// TestOneAfterTheOther: the second member of a process finds it as the first one did.
func TestOneAfterTheOther(t *testing.T) {
	for kind, base := range kinds(t) {
		for _, user := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/as user %v", kind, user), func(t *testing.T) {
				p := testPool(t)
				var seen []string
				shim, fds := 0, 0
				for i := range 3 {
					s := specIn(t, base, 1)
					if user {
						s = asNobody(t, 1)
						s.SetPlace(base.Place(fmt.Sprintf("user.%d.%d", os.Getpid(), s.Job), s.Marker))
					}
					s.Umask = 0o027
					pid, st := whole(t, p, s, look)
					if st.Ranks[0].ExitCode != 3 {
						t.Errorf("member %d: %+v", i, st)
					}
					seen = append(seen, plainLook(s, output(t, s, 0)))
					if seen[i] != seen[0] {
						t.Errorf("member %d sees\n%s\nthe first saw\n%s", i, seen[i], seen[0])
					}
					if i == 0 {
						shim, fds = pid, countFDs(t, pid)
					}
					if pid != shim || countFDs(t, pid) != fds {
						t.Errorf("member %d: shim %d with %d files, the first was %d with %d", i, pid, countFDs(t, pid), shim, fds)
					}
					if s.CgroupDir != "" {
						if _, err := os.Stat(s.CgroupDir); !os.IsNotExist(err) {
							t.Errorf("cgroup is left: %v", err)
						}
					}
				}
			})
		}
	}
}

// TestRanksHaveOrdinaryTimers: those of the shim's own threads may be late, and are nobody else's.
func TestRanksHaveOrdinaryTimers(t *testing.T) {
	p := testPool(t)
	s := testSpec(t, 1)
	c := startIn(t, p, s, "#!/bin/sh\ncat /proc/self/timerslack_ns\n")
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", c.PID))
	if errors.Is(err, os.ErrPermission) {
		t.Skip("needs root to see the timers of another process: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseStopped)
	bye(c)
	mine, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, s, 0); got != string(mine) || string(own) != string(mine) {
		t.Errorf("slack of a rank %q and of the thread that serves members %q, want %q", got, own, mine)
	}
	slack := func() string {
		n, _ := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		return fmt.Sprintln(n)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore := quietMonitor()
	within := slack()
	restore()
	if after := slack(); within == after || after != string(mine) {
		t.Errorf("slack of the thread that starts a shim %q, then %q, want %q then", within, after, mine)
	}
}

// TestFreeWhenTold: a process may have the next member as soon as the end of the one before is on disk and told.
func TestFreeWhenTold(t *testing.T) {
	p := testPool(t)
	s := testSpec(t, 1)
	c := startIn(t, p, s, "#!/bin/sh\nexit 4\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseStopped)
	for range c.Answers() {
	}
	if got := p.pids(); !slices.Equal(got, []int{c.PID}) || !c.Released() {
		t.Errorf("waiting %v, want %d; released %v", got, c.PID, c.Released())
	}
	if st, err := ReadState(s.Dir); err != nil || st.Phase != api.PhaseStopped || st.Ranks[0].ExitCode != 4 {
		t.Errorf("on disk %+v, %v", st, err)
	}
}

// TestEmptyDirsAreUsedAgain: an empty directory for checkpoints becomes that of the next member, if it is just as a new one
// would be, and is gone when nobody comes.
func TestEmptyDirsAreUsedAgain(t *testing.T) {
	work, elsewhere := t.TempDir(), t.TempDir()
	inode := regexp.MustCompile(`\d+`)
	for _, tc := range []struct {
		name, first string
		next        func(*Spec)
		again       bool
	}{
		{"empty", "", nil, true},
		{"used", "touch $GANG_CHECKPOINT_DIR/x", nil, false},
		{"other mode", "chmod 700 $GANG_CHECKPOINT_DIR", nil, false},
		{"gone", "rmdir $GANG_CHECKPOINT_DIR", nil, false},
		{"failed", "trap 'exit 1' EXIT", nil, false},
		{"another umask", "", func(s *Spec) { s.Umask = 0o077 }, false},
		{"another place", "mkdir " + elsewhere + "/.gang", func(s *Spec) { s.WorkDir, s.CheckpointDir = elsewhere, filepath.Join(elsewhere, ".gang", "2") }, false},
		{"there already", "mkdir ${GANG_CHECKPOINT_DIR%1}2", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := testPool(t)
			run := func(n int, script string, change func(*Spec)) (ino string, s *Spec) {
				s = testSpec(t, 1)
				s.WorkDir, s.Whole = work, true
				s.CheckpointDir = filepath.Join(work, ".gang", strconv.Itoa(n))
				if change != nil {
					change(s)
				}
				whole(t, p, s, "#!/bin/sh\nset -e\nls -id $GANG_CHECKPOINT_DIR\nls -A $GANG_CHECKPOINT_DIR\n"+script+"\n")
				return inode.FindString(output(t, s, 0)), s
			}
			first, _ := run(1, tc.first, nil)
			second, s := run(2, "echo $(stat -c %a $GANG_CHECKPOINT_DIR)", tc.next)
			if want := fmt.Sprintf("%s %s\n%o\n", second, s.CheckpointDir, 0o777&^s.Umask); output(t, s, 0) != want {
				t.Errorf("the second saw %q, want %q", output(t, s, 0), want)
			}
			if tc.again && first != second {
				t.Errorf("directory %s, then %s", first, second)
			}
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
				left, _ := filepath.Glob(filepath.Join(s.WorkDir, ".gang", ".*"))
				if _, err := os.Stat(filepath.Join(work, ".gang")); err == nil && s.WorkDir == elsewhere {
					left = append(left, "of the place before")
				}
				if _, err := os.Stat(s.CheckpointDir); len(left) == 0 && os.IsNotExist(err) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("left: %v", left)
				}
			}
			if err := os.RemoveAll(filepath.Join(work, ".gang")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestEmptyDirsGoWithTheirProcess: one that is not kept waiting, because there are enough, leaves none behind.
func TestEmptyDirsGoWithTheirProcess(t *testing.T) {
	p, s := testPool(t), testSpec(t, 1)
	s.Whole, s.CheckpointDir = true, filepath.Join(s.WorkDir, ".gang", "1")
	whole(t, p, s, "#!/bin/sh\n")
	if _, err := os.Stat(filepath.Dir(s.CheckpointDir)); err != nil {
		t.Skip("it has waited for too long already: ", err)
	}
	p.Close()
	if _, err := os.Stat(filepath.Dir(s.CheckpointDir)); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}

// TestUsersAfterEachOther: nothing of one user's member is there for the next one's.
func TestUsersAfterEachOther(t *testing.T) {
	p := testPool(t)
	var pids [2]int
	for i, uid := range []uint32{65534, 65533} {
		s := asNobody(t, 1)
		_ = os.Chown(s.WorkDir, int(uid), int(uid))
		s.UID, s.GID, s.Groups = uid, uid, []uint32{uid, uid - 10}
		pid, _ := whole(t, p, s, "#!/bin/sh\nid -u; id -G; echo > file; exec setsid sleep 0.01\n")
		pids[i] = pid
		if got, want := output(t, s, 0), fmt.Sprintf("%d\n%d %d\n", uid, uid, uid-10); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		var f syscall.Stat_t
		if err := syscall.Stat(filepath.Join(s.WorkDir, "file"), &f); err != nil || f.Uid != uid {
			t.Errorf("owner %d, %v", f.Uid, err)
		}
	}
	if pids[0] != pids[1] {
		t.Errorf("shims %v", pids)
	}
}

// TestFiftyInOne: neither files nor children gather.
func TestFiftyInOne(t *testing.T) {
	p := testPool(t)
	shim, fds := 0, 0
	for i := range 50 {
		pid, st := whole(t, p, testSpec(t, 2), fmt.Sprintf("#!/bin/sh\n(sleep 0.001 &)\nexit %d\n", i))
		if st.Ranks[1].ExitCode != i || st.Stopping != "" {
			t.Fatalf("member %d: %+v", i, st)
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/fd", pid)); err != nil {
			shim = 0 // a leftover that died late makes the process go, and another one begin
			continue
		}
		if pid != shim {
			shim, fds = pid, countFDs(t, pid)
		}
		if n := countFDs(t, pid); n != fds {
			t.Fatalf("%d files after member %d, %d after the first", n, i, fds)
		}
	}
}

// TestBadEnds: what follows on a member that did not end well is as good as any.
func TestBadEnds(t *testing.T) {
	cancel := &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: 20 * time.Millisecond}
	for kind, base := range kinds(t) {
		for name, end := range map[string]struct {
			script string
			stop   *api.Stop
			limit  time.Duration
			check  func(*State) bool
		}{
			"left a child": {script: "setsid sleep 1000 & exit 4", check: func(s *State) bool { return s.Ranks[0].ExitCode == 4 }},
			"killed":       {script: "trap '' TERM; echo up; sleep 1000; sleep 1000", stop: cancel, check: func(s *State) bool { return s.Forced && s.Stopping == api.CauseCancelled }},
			"time limit":   {script: "sleep 1000", limit: 30 * time.Millisecond, check: func(s *State) bool { return s.Stopping == api.CauseTimeout }},
			"rank killed":  {script: "kill -9 $$", check: func(s *State) bool { return s.Ranks[0].Signal == 9 }},
			"no program":   {script: "", check: func(s *State) bool { return s.Ranks[0].ExitCode == 127 }},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				p := testPool(t)
				for range 3 {
					s := specIn(t, base, 1)
					s.TimeLimit, s.Grace = end.limit, 50*time.Millisecond
					head := "#!/bin/sh\n"
					if end.script == "" {
						head = "#!/nowhere\n"
					}
					c := startIn(t, p, s, head+end.script+"\n")
					_ = c.Send(Command{Go: &Go{}})
					if end.stop != nil {
						for output(t, s, 0) == "" {
							time.Sleep(time.Millisecond)
						}
						_ = c.Send(Command{Stop: end.stop})
					}
					if st := until(t, c, api.PhaseStopped); !end.check(st) {
						t.Errorf("%+v", st)
					}
					bye(c)
					next := specIn(t, base, 1)
					if _, st := whole(t, p, next, look); st.Ranks[0].ExitCode != 3 || st.Forced || st.Stopping != "" || st.Ranks[0].Signal != 0 {
						t.Errorf("the next one: %+v", st)
					}
				}
			})
		}
	}
}

// TestNotReused: processes that could not be proven to be as before are not used again.
func TestNotReused(t *testing.T) {
	t.Run("a child outside the containment", func(t *testing.T) {
		base := detect()
		base.Sides = nil // what has left the group is still in those, and ended there
		if base.Kind != proc.Cgroup2 || os.Getuid() != 0 {
			t.Skip("needs root and cgroup v2: the test moves a process out of its group")
		}
		p, s := testPool(t), specIn(t, base, 1)
		root := filepath.Dir(base.Dir) + "/cgroup.procs"
		pid, st := whole(t, p, s, "#!/bin/sh\nsetsid sh -c 'echo $$ > "+root+"; echo $$; exec sleep 1000' &\nwhile [ ! -s "+s.Ranks[0].Output+" ]; do sleep 0.01; done\n")
		var child int
		if _, err := fmt.Sscan(output(t, s, 0), &child); err != nil || child == 0 {
			t.Fatalf("%q, %v", output(t, s, 0), err)
		}
		defer syscall.Kill(child, syscall.SIGKILL)
		if got := p.pids(); len(got) != 0 || syscall.Kill(pid, 0) != syscall.ESRCH {
			t.Errorf("shim %d waits with a child: %v, %+v", pid, got, st)
		}
	})
	t.Run("adopted", func(t *testing.T) {
		p := testPool(t)
		c := startIn(t, p, testSpec(t, 1), "#!/bin/sh\n")
		other, err := Attach(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		_ = other.Send(Command{Go: &Go{}})
		until(t, other, api.PhaseStopped)
		_ = other.Send(Command{Bye: true})
		for range other.Answers() {
		}
		for range c.Answers() {
		}
		if syscall.Kill(c.PID, 0) != syscall.ESRCH || len(p.pids()) != 0 {
			t.Errorf("the shim is there: %v", p.pids())
		}
	})
	t.Run("visited", func(t *testing.T) {
		p := testPool(t)
		c := startIn(t, p, testSpec(t, 1), "#!/bin/sh\n")
		other, err := Attach(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		until(t, other, api.PhaseReady)
		_ = other.Close()
		_ = c.Send(Command{Go: &Go{}})
		until(t, c, api.PhaseStopped)
		bye(c)
		if len(p.pids()) != 0 {
			t.Errorf("the shim is there: %v", p.pids())
		}
	})
	t.Run("refused", func(t *testing.T) {
		p, s := testPool(t), testSpec(t, 1)
		s.WorkDir = "/nowhere"
		c, err := p.Start(s, []byte("#!/bin/sh\n"))
		if err != nil {
			t.Fatal(err)
		}
		until(t, c, api.PhaseRefused)
		for range c.Answers() {
		}
		if len(p.pids()) != 0 {
			t.Errorf("waiting %v", p.pids())
		}
	})
	t.Run("died without its directory", func(t *testing.T) { // gnoded removes that of a refused member at once
		p := testPool(t)
		c := startIn(t, p, testSpec(t, 1), "#!/bin/sh\n")
		_ = os.RemoveAll(c.Dir)
		_ = syscall.Kill(c.PID, syscall.SIGKILL)
		for range c.Answers() {
		}
		if c.child != 0 {
			t.Errorf("started anew for a member that was held: %d", c.child)
		}
	})
	t.Run("something in the log", func(t *testing.T) {
		p := testPool(t)
		c := startIn(t, p, testSpec(t, 1), "#!/bin/sh\nsleep 0.1\n")
		_ = c.Send(Command{Go: &Go{}})
		until(t, c, api.PhaseRunning)
		_ = c.Send(Command{Bye: true}) // too early
		until(t, c, api.PhaseStopped)
		bye(c)
		if len(p.pids()) != 0 {
			t.Errorf("the shim is there: %v", p.pids())
		}
	})
}

// TestEarlyOrders: what is sent before the shim has begun is not lost.
func TestEarlyOrders(t *testing.T) {
	p := testPool(t)
	for range 5 {
		c, err := p.Start(testSpec(t, 1), []byte("#!/bin/sh\n"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "KILL"}})
		if st := until(t, c, api.PhaseStopped); st.Stopping != api.CauseCancelled {
			t.Errorf("%+v", st)
		}
		_ = c.Send(Command{Bye: true})
		bye(c)
	}
}

// TestSpareEndsWithItsDaemon: nobody waits for a daemon that is gone.
func TestSpareEndsWithItsDaemon(t *testing.T) {
	file, pid, err := launch(program, "spare", "/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if ws, err := waitPID(pid); err != nil || !ws.Exited() || ws.ExitStatus() != 0 {
		t.Errorf("%v, %v", ws, err)
	}
}

// TestSpareDies: neither a dead process in the pool nor one that hangs costs a member.
func TestSpareDies(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			p := testPool(t)
			first, _ := whole(t, p, testSpec(t, 1), "#!/bin/true\n")
			_ = syscall.Kill(first, sig)
			pid, st := whole(t, p, testSpec(t, 1), "#!/bin/sh\nexit 5\n")
			if st.Ranks[0].ExitCode != 5 || pid == first {
				t.Errorf("shim %d after %d: %+v", pid, first, st)
			}
			if syscall.Kill(first, 0) != syscall.ESRCH {
				t.Errorf("shim %d is left", first)
			}
		})
	}
	t.Run("no such mode", func(t *testing.T) { // a gshim of before
		old := filepath.Join(t.TempDir(), "gshim")
		text := "#!/bin/sh\n[ \"$1\" = spare ] && exit 2\nexec " + program + " \"$@\"\n"
		if err := os.WriteFile(old, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		p := NewPool(old, t.TempDir())
		defer p.Close()
		p.Warm()
		for range 3 {
			if _, st := whole(t, p, testSpec(t, 1), "#!/bin/sh\nexit 5\n"); st.Ranks[0].ExitCode != 5 {
				t.Errorf("%+v", st)
			}
		}
	})
}

// A shim that is slow and has begun is left alone: its member's ranks would go with it.
func TestPatienceSparesWhoHasBegun(t *testing.T) {
	p := testPool(t)
	c := startIn(t, p, testSpec(t, 1), "#!/bin/sh\nexit 5\n")
	(&process{pid: c.PID, conn: c}).killUnstarted(c)
	_ = c.Send(Command{Go: &Go{}})
	if st := until(t, c, api.PhaseStopped); st.Ranks[0].ExitCode != 5 {
		t.Errorf("%+v", st)
	}
}

// TestServingShimKilled: it takes its member with it, and the next one has another shim.
func TestServingShimKilled(t *testing.T) {
	p := testPool(t)
	first, _ := whole(t, p, testSpec(t, 1), "#!/bin/true\n")
	c := startIn(t, p, testSpec(t, 1), "#!/bin/sh\nexec sleep 1000\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	_ = syscall.Kill(first, syscall.SIGKILL)
	for range c.Answers() {
	}
	if c.PID != first || c.Send(Command{Bye: true}) == nil {
		t.Errorf("shim %d, before %d: or it still listens", c.PID, first)
	}
	if pid, st := whole(t, p, testSpec(t, 1), "#!/bin/sh\nexit 6\n"); pid == first || st.Ranks[0].ExitCode != 6 {
		t.Errorf("shim %d: %+v", pid, st)
	}
}

// TestPoolSize: warmed, filled again behind a member that took one, and bounded.
func TestPoolSize(t *testing.T) {
	p := NewPool(program, t.TempDir())
	p.Warm()
	awaitIdle(t, p, keepSpares)
	var all []*Conn
	for range mostSpares + 3 {
		all = append(all, startIn(t, p, testSpec(t, 1), "#!/bin/true\n"))
	}
	awaitIdle(t, p, keepSpares)
	for _, c := range all {
		_ = c.Send(Command{Stop: &api.Stop{}})
		until(t, c, api.PhaseStopped)
		bye(c)
	}
	awaitIdle(t, p, mostSpares)
	pids := p.pids()
	p.Close()
	for _, pid := range pids {
		if syscall.Kill(pid, 0) != syscall.ESRCH {
			t.Errorf("spare %d is left", pid)
		}
	}
}

func awaitIdle(t *testing.T, p *Pool, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); len(p.pids()) != n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d idle, want %d", len(p.pids()), n)
		}
	}
}
