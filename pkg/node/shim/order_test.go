package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/api/bound"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

// socketpair is a connection, the first end of which does not block.
func socketpair(t *testing.T) (near, far int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(pair[0]); _ = unix.Close(pair[1]) })
	_ = unix.SetNonblock(pair[0], true)
	_ = unix.SetNonblock(pair[1], true)
	return pair[0], pair[1]
}

// lines is what came by now.
func lines(fd int) []string {
	buf := make([]byte, 1<<16)
	n, err := unix.Read(fd, buf)
	if err != nil || n == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(buf[:n]), "\n"), "\n")
}

func runningMember(s *Spec) *member {
	m := &member{spec: s, lastStep: -1, mach: supervise.New(supervise.Config{Ranks: []int{0}, Grace: time.Minute}, now())}
	m.mach.Step(now(), supervise.Go{})
	return m
}

func stopped(m *member, cause api.Cause) {
	m.mach.Step(now(), supervise.Order{Stop: api.Stop{Cause: cause, Grace: time.Minute}})
}

// A gnoded that has gone leaves nothing that the shim would wait to write.
func TestBrokenConnection(t *testing.T) {
	near, far := socketpair(t)
	cn := &conn{fd: near}
	c := conns{list: []*conn{cn}}
	_ = unix.Shutdown(far, unix.SHUT_RDWR)
	if cn.send([]byte("{}\n")) || !c.drained() {
		t.Errorf("%q is left to be written", cn.out)
	}
}

// What a task says is told as a task's, the first step's too, and a rank's as a rank's.
func TestNotesOfTheFirstStep(t *testing.T) {
	near, far := socketpair(t)
	m := &member{spec: &Spec{}, conns: conns{list: []*conn{{fd: near}}}}
	m.jobs.urgent = true
	m.jobs.ranks = []rankSockets{{step: -1, rank: 4, note: api.RankNote{Rank: 4, Ready: true}}, {step: 0, rank: 2, note: api.RankNote{Rank: 2, Ready: true}}}
	m.tellNotes()
	var a Answer
	if got := lines(far); len(got) != 1 || json.Unmarshal([]byte(got[0]), &a) != nil || a.Notes == nil {
		t.Fatalf("told %q", got)
	}
	if n := a.Notes; len(n.Ranks) != 1 || n.Ranks[0].Rank != 4 || len(n.Tasks) != 1 || n.Tasks[0].Step != 0 || n.Tasks[0].Rank != 2 {
		t.Errorf("%+v", n)
	}
}

// killable is a containment that can be killed, for want of memory too.
type killable struct{ short }

func (killable) Kill() error { return nil }

// Where there is no cgroup, a shim whose member was killed is not used for another.
func TestKillWithoutCgroup(t *testing.T) {
	for kind, odd := range map[string]bool{proc.Group: true, proc.Cgroup2: false} {
		m := runningMember(&Spec{Containment: kind})
		m.box = killable{}
		if m.kill(); m.odd != odd {
			t.Errorf("%v: odd %v", kind, m.odd)
		}
	}
}

// Where a mount is put: it is made where it is missing, unless it may be missing, and never behind a file.
func TestPlaceOfAMount(t *testing.T) {
	dir := t.TempDir()
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	write(t, filepath.Join(dir, "file"), "")
	for _, c := range []struct {
		m     Mount
		isDir bool
		want  string
	}{
		{Mount{Target: "/file"}, false, ""},
		{Mount{Target: "/a/b"}, true, ""},
		{Mount{Target: "/c/d"}, false, ""},
		{Mount{Target: "/e", Maybe: true}, true, ""},
		{Mount{Target: "/f", Maybe: true}, false, "no such file or directory"},
		{Mount{Target: "/file/g", Maybe: true}, true, "not a directory"},
		{Mount{Target: "/file/g"}, true, "not a directory"},
	} {
		got := ""
		if err := c.m.place(root, c.isDir); err != nil {
			got = err.Error()
		}
		st, there := os.Stat(filepath.Join(dir, c.m.Target))
		if got != c.want || (there == nil) != (c.want == "") || there == nil && st.IsDir() != c.isDir {
			t.Errorf("%+v: %q, want %q; %v", c.m, got, c.want, there)
		}
	}
}

// A step that is over is kept until the controller does not order it any more; one that it stops is told once.
func TestOrdersOfSteps(t *testing.T) {
	near, far := socketpair(t)
	m := runningMember(&Spec{Grace: 7})
	p := &stepProc{id: 3, ctl: near, tasks: 5}
	m.steps = []*stepProc{p}
	m.state.Steps = []api.StepActual{{ID: 1, Over: true}, {ID: 2, Over: true}, {ID: 3}}
	m.lastStep = 3
	m.takeSteps([]api.StepOrder{{ID: 2}, {ID: 3}})
	if got := m.state.Steps; len(got) != 2 || got[0].ID != 2 || got[1].ID != 3 || m.dirty {
		t.Errorf("kept %+v, to be told %v", got, m.dirty)
	}
	if n := m.signalStep(9, "USR1"); n != 0 {
		t.Errorf("a step that is not there has %d tasks", n)
	}
	if n := m.signalStep(3, "USR1"); n != 5 {
		t.Errorf("%d tasks, want 5", n)
	}
	m.takeSteps([]api.StepOrder{{ID: 3, Stop: true, Grace: 4}})
	m.takeSteps(nil)
	if got := strings.Join(lines(far), " "); got != `{"signal":"USR1"} {"stop":true,"grace_ns":4}` {
		t.Errorf("told %s", got)
	}
}

// The launchers hear that all is ended, with Slurm's line for their clients where it is somebody's doing.
func TestDrainIsToldToSteps(t *testing.T) {
	for _, c := range []struct {
		cause api.Cause
		words bool
		line  string
	}{{api.CausePreempted, true, "*** STEP 12.3 ON n1 CANCELLED AT T DUE TO PREEMPTION ***"}, {api.CausePreempted, false, ""}, {api.CauseCrash, true, ""}} {
		near, far := socketpair(t)
		m := runningMember(&Spec{MemberKey: api.MemberKey{Job: 12}, Node: "n1", LastWords: c.words})
		m.steps = []*stepProc{{id: 3, ctl: near}}
		stopped(m, c.cause)
		m.drainSteps()
		var o LauncherOrder
		got := lines(far)
		if len(got) != 1 || json.Unmarshal([]byte(got[0]), &o) != nil || !o.Draining {
			t.Fatalf("%+v: told %q", c, got)
		}
		line := strings.TrimPrefix(o.EndLine, "slurmstepd: error: ")
		if before, after, ok := strings.Cut(line, " AT "); ok {
			line = before + " AT T" + after[len("2006-01-02T15:04:05"):]
		}
		if line != c.line {
			t.Errorf("%+v: %q", c, o.EndLine)
		}
	}
}

// Tasks are told to end once, and read why.
func TestTasksAreToldOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	m := &member{spec: &Spec{}, box: boxOf{pids: []int{os.Getpid(), child.Process.Pid}}}
	p := &stepProc{id: 3, pid: os.Getpid()}
	m.steps = []*stepProc{p}
	m.stepSaid(p, []byte(`{"stop":true,"grace_ns":5000000000}`))
	if !p.told || p.with != unix.SIGTERM || !slices.Equal(p.heard, []int{child.Process.Pid}) || !p.announced {
		t.Fatalf("%+v", p)
	}
	if s, err := child.Process.Wait(); err != nil || s.Sys().(syscall.WaitStatus).Signal() != unix.SIGTERM {
		t.Errorf("%v %v", s, err)
	}
	_ = os.Remove(stepStatus(3))
	p.heard = nil
	m.stepSaid(p, []byte(`{"stop":true,"grace_ns":1}`))
	if _, err := os.Stat(stepStatus(3)); err == nil || p.heard != nil {
		t.Error("told again")
	}
}

// The end of a launcher is the end of its step: by its last word, or by its death where there is none.
func TestEndOfALauncher(t *testing.T) {
	died := "the launcher of the step died"
	for _, c := range []struct {
		last *api.StepActual
		ws   syscall.WaitStatus
		stop bool
		want api.StepActual
		odd  bool
	}{
		{&api.StepActual{ExitCode: 3}, 0, false, api.StepActual{ExitCode: 3, OOM: true}, false},
		{&api.StepActual{ExitCode: 3}, 0, true, api.StepActual{ExitCode: 3}, false},
		{&api.StepActual{}, 0, false, api.StepActual{OOM: true}, false}, // who returns 0 was not told, or did not mind
		{&api.StepActual{}, 0, true, api.StepActual{}, false},
		{nil, 9, true, api.StepActual{ExitCode: 137, Signal: 9, Error: died}, true},
		{nil, 0, true, api.StepActual{ExitCode: 1, Error: died}, true},
		{nil, 4 << 8, true, api.StepActual{ExitCode: 4, Error: died}, true},
	} {
		near, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0) // the step closes it
		if err != nil {
			t.Fatal(err)
		}
		m := runningMember(&Spec{})
		m.box = killable{}
		if c.stop {
			stopped(m, api.CauseCancelled)
		}
		m.state.Steps = []api.StepActual{{ID: 3, PID: 77}, {ID: 4}}
		m.steps = []*stepProc{{id: 3, ctl: near, last: c.last}}
		m.stepEnded(0, c.ws, new(syscall.Rusage))
		got := m.state.Steps[0]
		if got.Ended.IsZero() {
			t.Error("it has no end")
		}
		got.Ended = time.Time{}
		c.want.ID, c.want.PID, c.want.Over = 3, 77, true
		if !reflect.DeepEqual(got, c.want) || m.odd != c.odd || !m.dirty || !m.durable || !m.stepsOver || !slices.Equal(m.gone, []int{3}) || m.state.Steps[1].Over {
			t.Errorf("%+v: %+v, odd %v", c, got, m.odd)
		}
	}
}

// What the launcher says of ends of tasks counts as far as it can be true of ends by themselves.
func TestEndsOfTasksAreTheirOwn(t *testing.T) {
	stop := time.Now().Add(-time.Second)
	end := func(task, code int, after time.Duration) api.TaskEnd {
		return api.TaskEnd{Task: task, Time: stop.Add(after), ExitCode: code}
	}
	all := []api.TaskEnd{end(0, 3, -time.Millisecond), end(1, 0, -time.Millisecond), end(2, 143, time.Millisecond), end(3, 9, time.Hour)}
	for _, c := range []struct {
		until time.Time
		want  []int
	}{{time.Time{}, []int{0, 2}}, {stop, []int{0}}} {
		var got []int
		for _, e := range (&stepProc{until: c.until}).own(slices.Clone(all)) {
			got = append(got, e.Task)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("told to end at %v: the ends of %v count, want %v", c.until, got, c.want)
		}
	}
	loud := end(0, 3, -time.Millisecond)
	loud.Aborted = "out of luck\n\x1b[2J" + strings.Repeat("x", 10000)
	if got := (&stepProc{}).own([]api.TaskEnd{loud}); len(got) != 1 || !strings.HasPrefix(got[0].Aborted, "out of luck ") || bound.Check(&got[0]) != nil {
		t.Errorf("what an abort says: %+v, %v", got, bound.Check(&got[0]))
	}
	if many := (&stepProc{}).own(slices.Repeat(all[:1], 100)); len(many) != api.MaxTaskEnds {
		t.Errorf("%d ends of tasks are kept", len(many))
	}
}

// A warning of gnoded is in the status file, until it is taken back or a stop is announced.
func TestWarningIsWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	m := runningMember(&Spec{})
	has := func(state string) {
		t.Helper()
		b, _ := os.ReadFile(StatusFile)
		if first, _, _ := strings.Cut(string(b), "\n"); first != state {
			t.Errorf("%q, want %q", first, state)
		}
	}
	m.command(Command{Warn: &Warning{Text: "silent", Left: time.Minute}})
	has("state=warning")
	m.command(Command{Warn: &Warning{}})
	has("")
	stopped(m, api.CauseCancelled)
	m.announce()
	m.command(Command{Warn: &Warning{Text: "silent", Left: time.Minute}})
	has("state=stopping")
}

// What can't be written or removed is said in the log.
func TestWhatFailsIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		taken string // a directory where a file should be
		do    func(*member)
	}{
		"write result, will be tried again in 1 s: ": {StateFile, func(m *member) { m.file.save([]byte("{}"), true) }},
		"write state: ":    {StateFile, func(m *member) { m.file.save([]byte("{}"), false) }},
		"write status: ":   {StatusFile, func(m *member) { stopped(m, api.CauseCancelled); m.announce() }},
		"link status.3: ":  {stepStatus(3), func(m *member) { m.shareStatus(3) }},
		"write status.3: ": {stepStatus(3), func(m *member) { m.announceStep(&stepProc{id: 3}, time.Second) }},
		"remove status: ":  {StatusFile, func(m *member) { m.recant() }},
		"what step 3 had is not removed: remove status.3: ": {stepStatus(3), func(m *member) { m.gone = []int{3}; m.dropSteps() }},
	} {
		t.Chdir(t.TempDir())
		if err := os.MkdirAll(filepath.Join(c.taken, "full"), 0o700); err != nil {
			t.Fatal(err)
		}
		c.do(runningMember(&Spec{}))
		log, _ := os.ReadFile(LogFile)
		if _, said, _ := strings.Cut(string(log), " "); !strings.HasPrefix(said, name) || strings.Count(said, "\n") != 1 {
			t.Errorf("%q, want %q", log, name)
		}
	}
}

// Of the spares beyond those that are kept, those go that have waited for long.
func TestSurplusGoes(t *testing.T) {
	for _, c := range []struct {
		keep int
		ages []time.Duration
		left int
	}{
		{0, []time.Duration{surplusFor, 0}, 1},
		{0, []time.Duration{surplusFor, surplusFor}, 0},
		{1, []time.Duration{surplusFor, surplusFor}, 1},
		{1, []time.Duration{0, 0}, 2},
	} {
		p := NewPool("", "")
		p.keep = c.keep
		var children []*exec.Cmd
		for _, age := range c.ages {
			child := exec.Command("sleep", "600")
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
			p.idle = append(p.idle, &process{pool: p, pid: child.Process.Pid, since: time.Now().Add(-age)})
		}
		p.drop()
		left := p.pids()
		if len(left) != c.left {
			t.Errorf("%+v: %d are left", c, len(left))
		}
		for i, child := range children {
			kept := slices.Contains(left, child.Process.Pid)
			if kept != (i >= len(children)-c.left) {
				t.Errorf("%+v: number %d, kept %v", c, i, kept)
			}
			if kept {
				_ = unix.Kill(child.Process.Pid, unix.SIGTERM)
			}
			_ = child.Wait()
			if got, want := child.ProcessState.Sys().(syscall.WaitStatus).Signal(), map[bool]unix.Signal{true: unix.SIGTERM, false: unix.SIGKILL}[kept]; got != want {
				t.Errorf("%+v: number %d ended by %v", c, i, got)
			}
		}
		p.surplus.Stop()
	}
}

// A user's output and errors go where each of them was asked for.
func TestSwitchUserFiles(t *testing.T) {
	s := asNobody(t, 1)
	s.Ranks[0].Error = s.Ranks[0].Output + ".err"
	c := startShim(t, s, "#!/bin/sh\necho out; echo wrong >&2\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseStopped)
	errs, err := os.ReadFile(s.Ranks[0].Error)
	if got := fmt.Sprintf("%q %q %v", output(t, s, 0), errs, err); got != `"out\n" "wrong\n" <nil>` {
		t.Error(got)
	}
}

// The end of a connection to a shim that another daemon started is nobody's death: no child of ours is waited for.
func TestEndOfAnotherDaemonsShim(t *testing.T) {
	child := exec.Command("sleep", "2")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	near, far := socketpair(t)
	fd, err := unix.Dup(near) // the connection closes it
	if err != nil {
		t.Fatal(err)
	}
	c := newConn(t.TempDir(), newFile(fd), 0)
	_ = unix.Shutdown(far, unix.SHUT_RDWR)
	for range c.Answers() {
	}
	_ = child.Process.Kill()
	if _, err := child.Process.Wait(); err != nil {
		t.Errorf("our child: %v", err)
	}
}

// What a container is to show is opened before anything hides it; what is not there is the user's matter where he named it.
func TestMountsAreOpened(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		mount Mount
		want  string // empty: it is shown
		users bool
	}{
		{Mount{Source: dir, Target: "/data"}, "", false},
		{Mount{Source: dir, Target: "/data", User: true, Within: []string{dir}}, "", false},
		{Mount{Source: dir + "/no", Target: "/data"}, "container mount: " + dir + "/no: no such file or directory", false},
		{Mount{Source: dir + "/no", Target: "/data", User: true}, "container mount: " + dir + "/no: no such file or directory", true},
		{Mount{Source: dir + "/no", Target: "/data", Maybe: true}, "left out", false},
		{Mount{Source: dir, Target: "/data", User: true, Within: []string{"/no"}}, "container mount: " + dir + " is not below /no, from where this site's jobs may mount", true},
	} {
		fds, mounts, err := (&Container{Mounts: []Mount{c.mount}}).open()
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case !slices.ContainsFunc(mounts, func(m Mount) bool { return m.Target == "/data" }):
			got = "left out"
		}
		if got != c.want || (err != nil && mountsBlame(err) == api.BlameFiles) != c.users || err == nil && len(fds) != len(mounts) {
			t.Errorf("%+v: %s (user's %t), want %s", c.mount, got, err != nil && mountsBlame(err) == api.BlameFiles, c.want)
		}
	}
}

// An image that can't be made says at start where, and what did not do it.
func TestImageThatCantBeMade(t *testing.T) {
	dir := t.TempDir()
	for want, im := range map[string]Image{
		"a file without a name in /no/such: no such file or directory": {Path: "/no/such", Mkfs: "/bin/true"},
		"/bin/false: exit status 1: ":                                  {Path: dir, Mkfs: "/bin/false"},
	} {
		if err := im.Try(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// How long until the next look at limits is by what this look cost, not by what the shim has cost since its start.
func TestLooksAreAsRareAsTheyAreDear(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for clock(unix.CLOCK_THREAD_CPUTIME_ID) < lookEvery/lookShare*2 {
	}
	m := runningMember(&Spec{PidsMax: 1000})
	m.box = looked{boxOf{pids: []int{os.Getpid()}}}
	before := clock(unix.CLOCK_MONOTONIC)
	if m.lookAtLimits(); m.look.at < before+lookEvery || m.look.at > clock(unix.CLOCK_MONOTONIC)+lookEvery {
		t.Errorf("looks again after %v, want %v", m.look.at-before, lookEvery)
	}
}

// looked is a containment that holds nobody to anything.
type looked struct{ boxOf }

func (looked) Held() proc.Held { return proc.Held{} }

// A shim that can't serve says why and ends with 1.
func TestShimWithoutAMember(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(program, dir)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != 1 || !strings.HasPrefix(string(out), "gshim: "+dir+": ") {
		t.Errorf("%d, %q", got, out)
	}
}

// What a debugger says is cut where it says more than is kept, and only there.
func TestDebuggerIsCut(t *testing.T) {
	bin := t.TempDir()
	for size, cut := range map[int]bool{dumpBytes: false, dumpBytes + 1: true} {
		write(t, bin+"/gdb", "")
		if err := os.WriteFile(bin+"/gdb", fmt.Appendf(nil, "#!/bin/sh\nhead -c %d /dev/zero | tr '\\0' x\n", size), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Chmod(bin+"/gdb", 0o755)
		l := &stackLog{spec: &Spec{}, rank: &RankSpec{Env: []string{"PATH=" + bin + ":/usr/bin:/bin"}}}
		fromDebugger(l, os.Getpid())
		said := l.kept.String()
		if got := strings.Contains(said, "\n... cut\n"); got != cut || strings.Count(said, "x") < dumpBytes {
			t.Errorf("%d bytes: cut %t; %d are kept", size, got, len(said))
		}
	}
}

// closedBox lets nothing in.
type closedBox struct{ proc.Containment }

func (closedBox) Enter(*syscall.SysProcAttr) error { return errors.New("no room") }

// A step without a container of its own is started as it is; one that can't be started is over, and says why.
func TestStepThatCantBeStarted(t *testing.T) {
	t.Chdir(t.TempDir())
	m := runningMember(&Spec{})
	m.box = closedBox{}
	o := &api.StepOrder{ID: 3}
	m.startStep(o)
	if s := m.state.Steps; o.Refused != "" || len(s) != 1 || !s[0].Over || s[0].ExitCode != 1 || s[0].Error != "start the launcher of the step: no room" {
		t.Errorf("refused %q; %+v", o.Refused, s)
	}
}
