package shim

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/proc"
	"gangd/pkg/wire/jobapi"
)

// Tasks of steps have sockets of their own, all of a step or none, as many as a node has room for;
// the end of a step takes its own alone.
func TestTaskSockets(t *testing.T) {
	t.Chdir(t.TempDir())
	s := &Spec{Dir: "/m", MemberKey: api.MemberKey{Job: 1, Epoch: 2}}
	m := &member{spec: s}
	j := &m.jobs
	j.open(s)
	defer j.close()
	names := func() string {
		all, err := os.ReadDir(".")
		if err != nil {
			t.Fatal(err)
		}
		out := make([]string, len(all))
		for i := range all {
			out[i] = all[i].Name()
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	for _, o := range []*api.StepOrder{{ID: 0, Numbers: []int{2, 5}, Size: 8}, {ID: 3, Numbers: []int{2}, Size: 1}} {
		if why := j.openStep(s, o); why != "" {
			t.Fatal(why)
		}
	}
	if got := names(); got != "g0.2 g0.5 g3.2 n0.2 n0.5 n3.2" {
		t.Errorf("sockets %s", got)
	}
	for _, name := range []string{"n0.5", "n3.2"} {
		c, err := net.Dial("unixgram", name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "WATCHDOG=1\nSTATUS=of %s", name); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	fds := j.watch(nil)
	if _, err := unix.Poll(fds, 10000); err != nil {
		t.Fatal(err)
	}
	m.serveRanks(fds)
	j.taskEnded(0, 2)
	j.taskEnded(3, 5) // no such task
	said := func() (out []string) {
		for i := range j.ranks {
			r := &j.ranks[i]
			out = append(out, fmt.Sprintf("%d.%d %d %q %v", r.step, r.rank, r.note.Beats, r.note.Status, r.ended))
		}
		return out
	}
	if got := strings.Join(said(), "; "); got != `0.2 0 "" true; 0.5 1 "of n0.5" false; 3.2 1 "of n3.2" false` {
		t.Errorf("said %s", got)
	}
	if !j.urgent {
		t.Error("the end of a task waits")
	}
	j.closeStep(0)
	if got := names(); got != "g3.2 n3.2" || len(j.ranks) != 1 {
		t.Errorf("after the end of step 0: %s, %d", got, len(j.ranks))
	}
	many := make([]int, maxTaskSockets)
	for i := range many {
		many[i] = i
	}
	long := *s
	long.Dir = "/" + strings.Repeat("x", 104)
	for _, c := range []struct {
		spec  *Spec
		order *api.StepOrder
		want  string
	}{
		{s, &api.StepOrder{ID: 4, Numbers: many}, "on one node 1024 tasks of a job have them at a time"},
		{s, &api.StepOrder{ID: 4, Tasks: 2}, "the controller is older than this node"},
		{&long, &api.StepOrder{ID: 4, Numbers: []int{0}}, "the path of the node's state directory is too long"},
	} {
		if why := j.openStep(c.spec, c.order); why != c.want {
			t.Errorf("%q, want %q", why, c.want)
		}
	}
	if got := names(); got != "g3.2 n3.2" {
		t.Errorf("a step without sockets left %s", got)
	}
	if err := os.WriteFile(jobapi.TaskName(jobapi.CheckPrefix, 3, 2), nil, 0o400); err != nil {
		t.Fatal(err)
	}
	m.shareStatus(3)
	m.stepOver(3, api.StepActual{})
	m.dropSteps()
	if got := names(); got != "" || len(j.ranks) != 0 {
		t.Errorf("of a step that is over is left: %s, %d", got, len(j.ranks))
	}
}

// A launcher is a process of the user: it may say that its tasks have ended and then how its step has,
// in pieces, and nothing else counts.
func TestWordsOfALauncher(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	m := &member{spec: &Spec{}}
	m.jobs.ranks = []rankSockets{{step: 1, rank: 0, notify: -1, http: -1}, {step: 1, rank: 1, notify: -1, http: -1}, {step: 2, rank: 0, notify: -1, http: -1}}
	p := &stepProc{id: 1, ctl: pair[0]}
	for _, piece := range []string{"{\"task_en", "ded\":1}\nrubbish\n{\"exit_code\":3", ",\"cpu_seconds\":2}\n{\"exit_code\":0}\n"} {
		if _, err := unix.Write(pair[1], []byte(piece)); err != nil {
			t.Fatal(err)
		}
		m.hearStep(p)
	}
	ended := []bool{m.jobs.ranks[0].ended, m.jobs.ranks[1].ended, m.jobs.ranks[2].ended}
	if !slices.Equal(ended, []bool{false, true, false}) || p.last == nil || p.last.ExitCode != 3 || p.last.CPUTime != 2 {
		t.Errorf("ended %v, last word %+v", ended, p.last)
	}
}

// A task asks for more time while its step alone is being ended; before, and of many wishes at
// once, the launcher hears nothing that could crowd out its orders.
func TestExtendOfATask(t *testing.T) {
	t.Chdir(t.TempDir())
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	m := &member{spec: &Spec{Dir: "/m"}, mach: supervise.New(supervise.Config{}, now())}
	m.jobs.open(m.spec)
	defer m.jobs.close()
	if why := m.jobs.openStep(m.spec, &api.StepOrder{ID: 1, Numbers: []int{0}, Size: 1}); why != "" {
		t.Fatal(why)
	}
	p := &stepProc{id: 1, ctl: pair[0]}
	m.steps = []*stepProc{p}
	c, err := net.Dial("unixgram", "n1.0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func() string {
		for _, seconds := range []int{1, 7, 3} {
			if _, err := fmt.Fprintf(c, "EXTEND_TIMEOUT_USEC=%d000000", seconds); err != nil {
				t.Fatal(err)
			}
		}
		fds := m.jobs.watch(nil)
		if _, err := unix.Poll(fds, 10000); err != nil {
			t.Fatal(err)
		}
		m.serveRanks(fds)
		var buf [4096]byte
		n, err := unix.Read(pair[1], buf[:])
		if err != nil {
			return ""
		}
		return string(buf[:n])
	}
	if got := ask(); got != "" {
		t.Errorf("a step that nobody ends was told %s", got)
	}
	for _, set := range []func(){func() { p.told = true }, func() { p.told, p.stopping = false, true }} {
		set()
		if got := ask(); got != "{\"extend_ns\":7000000000}\n" {
			t.Errorf("told %q", got)
		}
	}
}

// Of a rank that floods its socket so much is taken in so long, and the others are heard meanwhile.
func TestOneRankTakesNoMoreThanItsShare(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &member{spec: &Spec{Dir: "/m", Ranks: []RankSpec{{Rank: 0}, {Rank: 1}}}, mach: supervise.New(supervise.Config{}, now())}
	j := &m.jobs
	j.open(m.spec)
	defer j.close()
	dial := func(name string) net.Conn {
		c, err := net.Dial("unixgram", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	flood := dial("n0")
	var flooding sync.WaitGroup
	flooding.Go(func() {
		for {
			if _, err := flood.Write([]byte("WATCHDOG=1")); err != nil {
				return
			}
		}
	})
	defer flooding.Wait()
	defer flood.Close()
	other := dial("n1")
	began := clock(unix.CLOCK_MONOTONIC)
	polls, rested := 0, 0
	for sent := false; j.ranks[1].note.Beats == 0 || clock(unix.CLOCK_MONOTONIC) < began+20*breath; polls++ {
		if r := &j.ranks[0]; r.rests(clock(unix.CLOCK_MONOTONIC)) > 0 {
			rested++
			if d := j.wait(clock(unix.CLOCK_MONOTONIC)); d > breath {
				t.Fatalf("the shim would sleep for %s", d)
			}
			if !sent {
				if _, err := other.Write([]byte("WATCHDOG=1")); err != nil {
					t.Fatal(err)
				}
				sent = true
			}
		}
		fds := j.watch(nil)
		_, _ = unix.Poll(fds, 1)
		m.serveRanks(fds)
		if polls > 100000 {
			t.Fatal("the other rank was not heard")
		}
	}
	took := clock(unix.CLOCK_MONOTONIC) - began
	if most := uint64(took/breath+2) * perBreath; j.ranks[0].note.Beats > most || rested == 0 {
		t.Errorf("%d datagrams in %s, at most %d are taken; rested %d times", j.ranks[0].note.Beats, took, most, rested)
	}
}

// What the tasks of a step read of their end: that of all, unless their step alone is ended,
// and that of all again when it comes.
func TestStatusFileOfAStep(t *testing.T) {
	t.Chdir(t.TempDir())
	s := &Spec{Dir: "/m", MemberKey: api.MemberKey{Job: 12, Epoch: 2}}
	m := &member{spec: s, mach: supervise.New(supervise.Config{Ranks: []int{0}, Grace: time.Minute}, now())}
	p := &stepProc{id: 3}
	m.steps = []*stepProc{p}
	m.shareStatus(3)
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		lines := strings.Split(string(b), "\n")
		return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
			return l == "" || strings.HasPrefix(l, "time=") || strings.HasPrefix(l, "seconds_left=")
		}), " ")
	}
	want := func(when, all, step string) {
		t.Helper()
		if a, b := read(StatusFile), read(stepStatus(3)); a != all || b != step {
			t.Errorf("%s: %q and %q, want %q and %q", when, a, b, all, step)
		}
	}
	want("at first", "", "")
	m.announceStep(p, 5*time.Second)
	want("the step is ended", "", "state=stopping cause=cancelled text=step 12.3 is ended signal=TERM epoch=2")
	m.mach.Step(now(), supervise.Go{})
	m.mach.Step(now(), supervise.Order{Stop: api.Stop{Cause: api.CausePreempted, Text: "preempted", Grace: time.Minute}})
	m.announce()
	const all = "state=stopping cause=preempted text=preempted signal=TERM epoch=2"
	want("all are", all, all)
}

// A process of another user that reaches a rank's socket is told why it is not served.
func TestSocketIsTheJobsUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: becomes another user")
	}
	tool.Need(t, "/usr/bin/python3")
	s := asNobody(t, 1)
	c := startShim(t, s, "#!/bin/sh\nchmod 666 $PWD/../m/g0; exec sleep 600\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	path := filepath.Join(s.Dir, jobapi.Name(jobapi.SocketPrefix, 0))
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if st, err := os.Stat(path); err == nil && st.Mode().Perm() == 0o666 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the user did not open the socket to others")
		}
	}
	cmd := exec.Command("/usr/bin/python3", "-c", `import socket,sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b"GET /v1/job HTTP/1.1\r\n\r\n")
print(s.makefile().read(), end="")`, path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != strings.ReplaceAll(string(jobapi.Foreign), "\r\n", "\n") {
		t.Errorf("%q, %v", out, err)
	}
}

// boxOf is a containment with these processes.
type boxOf struct {
	proc.Containment
	pids []int
}

func (b boxOf) PIDs() ([]int, error) { return b.pids, nil }

// A task that was started while the others were told to end is told when the launcher has said that all are
// there; who was told hears nothing again, and before a stop nobody is told.
func TestLateTasksAreToldToEnd(t *testing.T) {
	var ranks []*exec.Cmd
	box := boxOf{}
	for range 3 {
		c := exec.Command("sleep", "600")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		ranks, box.pids = append(ranks, c), append(box.pids, c.Process.Pid)
	}
	m := &member{spec: &Spec{}, box: box}
	p := &stepProc{pid: os.Getpid()}
	m.steps = []*stepProc{p}
	ended := func(c *exec.Cmd) bool {
		s, ok := proc.ReadStat(c.Process.Pid)
		return !ok || s.Dead()
	}
	m.stepSaid(p, []byte(`{"launched":true}`))
	p.told, p.with, p.heard = true, unix.SIGTERM, box.pids[:2]
	if ended(ranks[2]) {
		t.Fatal("a task was told though nobody ends")
	}
	m.stepSaid(p, []byte(`{"launched":true}`))
	if s, err := ranks[2].Process.Wait(); err != nil || s.Sys().(syscall.WaitStatus).Signal() != unix.SIGTERM {
		t.Errorf("the late one: %v %v", s, err)
	}
	if ended(ranks[0]) || ended(ranks[1]) || p.last != nil {
		t.Error("who had been told was told again, or the word was taken for the last")
	}
}
