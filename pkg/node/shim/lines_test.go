package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

// TestLinesOfADaemon: commands come whole or in pieces and many at once, what is none is left out, and a line without an end ends the connection.
func TestLinesOfADaemon(t *testing.T) {
	t.Chdir(t.TempDir())
	near, far := socketpair(t)
	cn := &conn{fd: near}
	read := func(text string) (stacks []string, ok bool) {
		t.Helper()
		for len(text) > 0 {
			n, err := unix.Write(far, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			text = text[n:]
		}
		commands, ok := cn.read()
		for _, c := range commands {
			stacks = append(stacks, c.Stacks)
		}
		return stacks, ok
	}
	page := strings.Repeat("x", 4096-len("{\"stacks\":\"\"}\n")) // with which a line is as long as a read
	for i, c := range []struct {
		text string
		want []string
		ok   bool
	}{
		{"", nil, true}, {"{\"stacks\":\"a\"}\n", []string{"a"}, true}, {"{\"stacks\":\"b\"}\n{\"sta", []string{"b"}, true}, {"cks\":\"c\"}\nnonsense\n{\"stacks\":\"d\"}\n", []string{"c", "d"}, true},
		{"{\"stacks\":\"" + page + "\"}\n", []string{page}, true},
	} {
		if got, ok := read(c.text); !slices.Equal(got, c.want) || ok != c.ok {
			t.Errorf("%d: %d commands %.40q, %t", i, len(got), got, ok)
		}
	}
	if log, _ := os.ReadFile(LogFile); !strings.Contains(string(log), `command "nonsense": `) {
		t.Errorf("the log has %q", log)
	}
	cn.in = make([]byte, maxLine-3)
	if _, ok := read("xyz"); !ok || len(cn.in) != maxLine {
		t.Errorf("a line as long as it may be ends the connection, at %d", len(cn.in))
	}
	if _, ok := read("x"); ok {
		t.Error("a line that is longer does not")
	}
	cn.in = nil
	if err := unix.Shutdown(far, unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	if _, ok := cn.read(); ok {
		t.Error("its end is not seen")
	}
}

// TestBacklogOfADaemon: what a daemon does not read waits up to a bound, and goes out in order when it reads.
func TestBacklogOfADaemon(t *testing.T) {
	near, far := socketpair(t)
	cn := &conn{fd: near}
	c := &conns{list: []*conn{{fd: near}, cn}}
	if !c.drained() {
		t.Error("nothing waits")
	}
	line := []byte(strings.Repeat("x", 1023) + "\n")
	sent := 0
	for len(cn.out) == 0 {
		if !cn.send(line) {
			t.Fatal("not sent")
		}
		sent++
	}
	if c.drained() {
		t.Error("what waits is not seen")
	}
	cn.out = append(cn.out, make([]byte, maxBacklog-len(cn.out)-1)...)
	if !cn.send([]byte{1}) || len(cn.out) != maxBacklog {
		t.Errorf("%d bytes wait", len(cn.out))
	}
	if cn.send([]byte{1}) {
		t.Error("more than the bound waits")
	}
	buf := make([]byte, 1<<20)
	got := 0
	for len(cn.out) > 0 {
		n, err := unix.Read(far, buf)
		if err != nil && err != unix.EAGAIN {
			t.Fatal(err)
		}
		got += max(n, 0)
		if !cn.flush() {
			t.Fatal("flush")
		}
	}
	for {
		n, err := unix.Read(far, buf)
		if err != nil {
			break
		}
		got += n
	}
	if want := sent*len(line) + maxBacklog; got > want || got < maxBacklog {
		t.Errorf("%d bytes came, %d were sent at most", got, want)
	}
	_ = unix.Shutdown(near, unix.SHUT_RDWR)
	cn.out = []byte("x")
	if cn.flush() || cn.out != nil {
		t.Error("to a broken connection something waits")
	}
}

// TestServeDaemons: a daemon that is gone is let go of, and what the others ask comes in their order.
func TestServeDaemons(t *testing.T) {
	var c conns
	var far [3]int
	for i := range far {
		near, end := socketpair(t)
		far[i] = end
		dup, err := unix.Dup(near)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.SetNonblock(dup, true)
		c.list = append(c.list, &conn{fd: dup})
	}
	for i, fd := range []int{far[0], far[2]} {
		if _, err := unix.Write(fd, fmt.Appendf(nil, "{\"stacks\":\"%d\"}\n", i)); err != nil {
			t.Fatal(err)
		}
	}
	_ = unix.Shutdown(far[1], unix.SHUT_RDWR)
	first, last := c.list[0], c.list[2]
	last.out = []byte("waits\n")
	got := c.serve([]unix.PollFd{{}, {Revents: unix.POLLIN}, {Revents: unix.POLLIN | unix.POLLHUP}, {Revents: unix.POLLIN | unix.POLLOUT}})
	if len(got) != 2 || got[0].Stacks != "0" || got[1].Stacks != "1" || !slices.Equal(c.list, []*conn{first, last}) || len(last.out) != 0 {
		t.Errorf("%+v, %d daemons", got, len(c.list))
	}
	if text := lines(far[2]); !slices.Equal(text, []string{"waits"}) {
		t.Errorf("told %q", text)
	}
	if got := c.serve([]unix.PollFd{{}, {}, {}}); got != nil || len(c.list) != 2 {
		t.Errorf("of nothing %+v", got)
	}
	if c.tell([]byte("all\n")); !slices.Equal(lines(far[0]), []string{"all"}) || !slices.Equal(lines(far[2]), []string{"all"}) {
		t.Error("not all are told")
	}
	for _, cn := range c.list {
		_ = unix.Close(cn.fd)
	}
}

// TestMountsStayWithin: what is mounted lies where the site wants it, wherever links lead.
func TestMountsStayWithin(t *testing.T) {
	root := t.TempDir()
	in, beside := filepath.Join(root, "in"), filepath.Join(root, "inside-not")
	for _, dir := range []string{filepath.Join(in, "a"), beside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(in, "link")
	if err := os.Symlink(beside, link); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		source string
		within []string
		want   string
	}{
		{beside, nil, ""}, {in, []string{in}, ""}, {filepath.Join(in, "a"), []string{in + "/"}, ""}, {beside, []string{in, beside}, ""},
		{beside, []string{in}, "container mount: " + beside + " is not below " + in + ", from where this site's jobs may mount"},
		{link, []string{in, "/x"}, "container mount: " + link + ", which is " + beside + ", is not below " + in + ", /x, from where this site's jobs may mount"},
	} {
		fd, err := unix.Open(c.source, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = (&Mount{Source: c.source, Within: c.within}).within(fd)
		_ = unix.Close(fd)
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
	for err, want := range map[error]api.Blame{
		fmt.Errorf("x: %w", ownError(errors.New("y"))): api.BlameNode, fmt.Errorf("x: %w", unix.ENOTDIR): api.BlameFiles,
		fmt.Errorf("x: %w", unix.ENAMETOOLONG): api.BlameJob, unix.EIO: api.BlameUnknown, errors.New("y"): api.BlameUnknown,
	} {
		if got := mountsBlame(err); got != want {
			t.Errorf("%v is the fault of %s, want %s", err, got, want)
		}
	}
}

// TestContainerOfAStep: what gnoded wrote for a step, and why there is none; it goes to the launcher in a file that has no name.
func TestContainerOfAStep(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &member{spec: &Spec{Dir: "/d"}}
	if _, err := m.stepContainer(3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	write(t, StepContainerFile(3), `{"image":"/i","name":"n"}`)
	if c, err := m.stepContainer(3); err != nil || c.Image != "/i" || c.Name != "n" {
		t.Errorf("%+v, %v", c, err)
	}
	write(t, StepContainerFile(4), "{")
	if _, err := m.stepContainer(4); err == nil {
		t.Error("half a container is one")
	}
	for _, text := range []string{"", strings.Repeat("x", 1<<17)} {
		fd, err := memoryFile([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "memory")
		b := make([]byte, len(text)+1)
		if n, _ := f.Read(b); n != len(text) || string(b[:n]) != text {
			t.Errorf("%d of %d bytes", n, len(text))
		}
		f.Close()
	}
}

// TestFilesOfRanks: equal paths are opened once, what is missing is made for outputs alone, and who names what can't be opened is told which.
func TestFilesOfRanks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("in"), "x")
	o := opener{known: map[string]int{}}
	first, err := o.rank(RankSpec{Rank: 1, Input: at("in"), Output: at("new/out"), Error: at("err")})
	if err != nil {
		t.Fatal(err)
	}
	second, err := o.rank(RankSpec{Rank: 2, Output: at("new/../new/out")})
	if err != nil || second.out != first.out || second.err != first.out || second.in == first.in || first.err == first.out {
		t.Errorf("%+v and %+v, %v", first, second, err)
	}
	third, err := o.rank(RankSpec{Rank: 3})
	if err != nil || third.in != second.in || third.out == first.out {
		t.Errorf("%+v, %v", third, err)
	}
	for want, r := range map[string]RankSpec{
		"input of rank 4: " + at("none") + ": no such file or directory":   {Rank: 4, Input: at("none")},
		"output of rank 5: " + dir + ": is a directory":                    {Rank: 5, Output: dir},
		"error output of rank 6: " + at("in") + "/x" + ": not a directory": {Rank: 6, Error: at("in/x")},
	} {
		if _, err := o.rank(r); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	m := &member{spec: &Spec{Ranks: make([]RankSpec, 3), OpenMode: "append"}, files: []rankFiles{first, second, third}}
	if _, err := unix.Write(first.out, []byte("abc")); err != nil {
		t.Fatal(err)
	}
	if got := m.outputStarts(); !slices.Equal(got, [][2]int64{{3, 0}, {3, 3}, {0, 0}}) {
		t.Errorf("they have %v", got)
	}
	if m.truncate(); m.outputStarts()[0][0] != 3 {
		t.Error("truncated though it is to be appended to")
	}
	m.spec.OpenMode = "truncate"
	if m.truncate(); m.outputStarts()[0][0] != 0 {
		t.Error("not truncated")
	}
	if closeFiles(m.files) != nil {
		t.Error("closed files are kept")
	}
	if _, err := unix.FcntlInt(uintptr(first.out), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("still open: %v", err)
	}
}

// TestPoolKeepsAFew: the warmest is taken first, too many are not kept, and those beyond a few go when they have waited.
func TestPoolKeepsAFew(t *testing.T) {
	p := NewPool("/none", t.TempDir())
	p.keep = 1
	defer p.Close()
	procs := make([]*process, mostSpares+1)
	for i := range procs {
		procs[i] = &process{pool: p, reaped: true}
	}
	for i, proc := range procs {
		if got := p.put(proc); got != (i < mostSpares) {
			t.Errorf("the one after %d is kept: %t", i, got)
		}
	}
	if got := p.take(); got != procs[mostSpares-1] || len(p.idle) != mostSpares-1 {
		t.Errorf("taken is another, of %d", len(p.idle))
	}
	p.remove(procs[1])
	for i := range p.idle {
		if p.idle[i] == procs[1] {
			t.Error("one that died is there")
		}
	}
	now := time.Now()
	for i, proc := range p.idle {
		proc.since = now
		if i < 2 {
			proc.since = now.Add(-surplusFor)
		}
	}
	left := slices.Clone(p.idle[2:])
	if p.drop(); !slices.Equal(p.idle, left) {
		t.Errorf("%d are left, want %d", len(p.idle), len(left))
	}
	for _, proc := range p.idle {
		proc.since = now.Add(-time.Hour)
	}
	if p.drop(); len(p.idle) != p.keep || p.idle[0] != left[len(left)-1] {
		t.Errorf("%d are left", len(p.idle))
	}
	p.Close()
	if p.put(procs[0]) {
		t.Error("a closed pool keeps one")
	}
	if _, err := p.spawn(); err == nil || err.Error() != "start shim: the pool is closed" {
		t.Errorf("%v", err)
	}
	c := &Conn{}
	if proc := (&process{ended: true}); proc.assign(c) || proc.serves() != nil {
		t.Error("one that has ended serves")
	}
	if proc := (&process{}); !proc.assign(c) || proc.serves() != c {
		t.Error("one that waits does not serve")
	}
}

// TestRankOfAProcess: by its session, by who started it; and which process is its main one.
func TestRankOfAProcess(t *testing.T) {
	m := &member{spec: &Spec{Ranks: []RankSpec{{Rank: 4}, {Rank: 7}}}, ranks: []rank{{pid: 10}, {pid: 20}}}
	all := map[int]proc.Stat{10: {PID: 10, PPID: 1, Session: 10}, 11: {PID: 11, PPID: 10, Session: 99}, 12: {PID: 12, PPID: 11, Session: 98}, 21: {PID: 21, PPID: 1, Session: 20}, 1 << 30: {PID: 1 << 30, PPID: 1, Session: 97}}
	for pid, want := range map[int]int{10: 4, 11: 4, 12: 4, 21: 7, 1 << 30: -1} {
		if got := m.rankOf(all[pid], all); got != want {
			t.Errorf("process %d is of rank %d, want %d", pid, got, want)
		}
	}
	if m.mainOf(4) != 10 || m.mainOf(7) != 20 || m.mainOf(5) != 0 {
		t.Error("which is the main process of a rank")
	}
	m.ranks[1].ended = true
	if m.mainOf(7) != 0 {
		t.Error("one that has ended is")
	}
	m.ranks = m.ranks[:1]
	if got := m.rankOf(all[1<<30], all); got != 4 {
		t.Errorf("of one rank all is, not of %d", got)
	}
	for name, want := range map[string]bool{"bash": true, "sh": true, "fish": true, "python3": false, "": false} {
		if isShell(name) != want {
			t.Errorf("%q is a shell: %t", name, !want)
		}
	}
}

// TestByeWhileItRuns: a member that runs ranks is not let go of; one that has not begun is ended, and then let go of.
func TestByeWhileItRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	runs := runningMember(&Spec{Ranks: []RankSpec{{}}})
	if runs.goodbye(); runs.bye {
		t.Error("a running member is let go of")
	}
	if log, _ := os.ReadFile(LogFile); !strings.Contains(string(log), "bye while the member is ") {
		t.Errorf("the log has %q", log)
	}
	over := &member{spec: &Spec{}, over: true, mach: supervise.New(supervise.Config{}, now())}
	near, far := socketpair(t)
	over.conns.list = []*conn{{fd: near}}
	over.command(Command{Signal: &api.SignalOrder{Number: 5}})
	if over.bye || !slices.Equal(lines(far), []string{`{"signal":5}`}) {
		t.Error("a signal to a member that is over is not answered, or ends it")
	}
	if over.command(Command{Bye: true}); !over.bye {
		t.Error("a member that is over is not let go of")
	}
	if over.command(Command{}); !over.bye {
		t.Error("it is taken back")
	}
}

// TestAStepBeginsOnce: the number of one that is over is never new, a later one is; one that is held waits for its word.
func TestAStepBeginsOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	m := runningMember(&Spec{MemberKey: api.MemberKey{Job: 7, Epoch: 2}})
	m.lastStep = 3
	over := func(id int) api.StepOrder { return api.StepOrder{ID: id, Stop: true} } // before this node had heard of it
	m.takeSteps([]api.StepOrder{over(2), over(3)})
	if len(m.state.Steps) != 0 || m.lastStep != 3 {
		t.Errorf("begun again: %+v", m.state.Steps)
	}
	held := over(5)
	held.Held = true
	m.takeSteps([]api.StepOrder{over(4), held})
	if len(m.state.Steps) != 1 || m.state.Steps[0].ID != 4 || m.lastStep != 5 || !slices.Equal(m.held, []int{5}) {
		t.Errorf("%+v, the last is %d, held are %v", m.state.Steps, m.lastStep, m.held)
	}
	if s := m.state.Steps[0]; !s.Over || s.ExitCode != 143 || s.Signal != 15 {
		t.Errorf("%+v", s)
	}
	m.takeSteps([]api.StepOrder{over(5)})
	if len(m.state.Steps) != 1 || m.state.Steps[0].ID != 5 || len(m.held) != 0 {
		t.Errorf("%+v, held are %v", m.state.Steps, m.held)
	}
	m.held = []int{6}
	if m.takeSteps(nil); len(m.held) != 0 || len(m.state.Steps) != 0 {
		t.Errorf("what nobody orders any more is kept: %v, %+v", m.held, m.state.Steps)
	}
}

// TestStopOfAllIsTheLaterNews: tasks that were told of the end of their step read of that of all, when that comes.
func TestStopOfAllIsTheLaterNews(t *testing.T) {
	t.Chdir(t.TempDir())
	m := runningMember(&Spec{})
	p := &stepProc{id: 3}
	m.steps = []*stepProc{p, {id: 4}}
	m.announceStep(p, time.Second)
	if b, err := os.ReadFile(stepStatus(3)); err != nil || !strings.Contains(string(b), "text=step 0.3 is ended\n") || !p.announced {
		t.Errorf("%q, %v", b, err)
	}
	if m.announce(); !p.announced {
		t.Error("nothing of all is announced")
	}
	stopped(m, api.CauseTimeout)
	if m.announce(); p.announced {
		t.Error("its own end is the later news")
	}
	if to, err := os.Readlink(stepStatus(3)); err != nil || to != StatusFile {
		t.Errorf("its tasks read %s, %v", to, err)
	}
	if _, err := os.Lstat(stepStatus(4)); err == nil {
		t.Error("a step that was told nothing has another file")
	}
	if log, err := os.ReadFile(LogFile); err == nil {
		t.Errorf("the log has %q", log)
	}
}

// TestNoWordOnTheLease: a command that says nothing of the lease leaves it as it is, and one renews it to its end.
func TestNoWordOnTheLease(t *testing.T) {
	m := &member{spec: &Spec{}, mach: supervise.New(supervise.Config{Ranks: []int{0}, Lease: time.Hour}, now())}
	m.mach.Step(now(), supervise.Go{})
	for _, until := range []time.Duration{0, clock(unix.CLOCK_BOOTTIME) + time.Hour} {
		if m.command(Command{LeaseUntil: until}); m.mach.Cause() != "" || m.mach.State() != supervise.Running {
			t.Errorf("until %s: %s by %s", until, m.mach.State(), m.mach.Cause())
		}
	}
}

// TestSignalOrderIsForItsMember: one for another member reaches nobody, and each is answered, and applied once.
func TestSignalOrderIsForItsMember(t *testing.T) {
	near, far := socketpair(t)
	m := &member{spec: &Spec{MemberKey: api.MemberKey{Job: 7, Epoch: 2}}}
	daemon, back := socketpair(t)
	m.conns.list = []*conn{{fd: daemon}}
	m.steps = []*stepProc{{id: 3, tasks: 4, ctl: near}}
	three := 3
	for i, c := range []struct {
		number uint64
		key    api.MemberKey
		told   int
		answer string
	}{{1, api.MemberKey{Job: 7, Epoch: 1}, 0, `{"signal":1}`}, {2, m.spec.MemberKey, 1, `{"signal":2,"processes":4}`}, {2, m.spec.MemberKey, 0, `{"signal":2,"processes":4}`}, {3, api.MemberKey{}, 1, `{"signal":3,"processes":4}`}} {
		m.signalOrder(api.SignalOrder{Number: c.number, MemberKey: c.key, Signal: "USR1", Step: &three})
		if got := lines(far); len(got) != c.told {
			t.Errorf("%d: told %q", i, got)
		}
		if got := lines(back); !slices.Equal(got, []string{c.answer}) {
			t.Errorf("%d: answered %q", i, got)
		}
	}
}

// TestWhoseFault: an error of the user's files, of a name that is too long, or of what can't be told.
func TestWhoseFault(t *testing.T) {
	for err, want := range map[error]api.Blame{syscall.ENAMETOOLONG: api.BlameJob, syscall.ENOSPC: api.BlameFiles, fs.ErrNotExist: api.BlameFiles, syscall.EIO: api.BlameUnknown} {
		if got := refusal(fmt.Errorf("x: %w", err)); got.Blame != want || got.Text != "x: "+err.Error() {
			t.Errorf("%v: %+v", err, got)
		}
	}
	if got := plain(&fs.PathError{Op: "open", Path: "/x", Err: syscall.EIO}).Error(); got != "/x: input/output error" {
		t.Error(got)
	}
	if got := plain(errLeft); got != errLeft {
		t.Error(got)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "")
	for path, want := range map[string]string{dir: "", filepath.Join(dir, "f"): "working directory: " + filepath.Join(dir, "f") + " is not a directory", filepath.Join(dir, "x"): "working directory: " + filepath.Join(dir, "x") + ": no such file or directory"} {
		got := checkWorkDir(path)
		if (got != nil) != (want != "") || got != nil && (got.Text != want || got.Blame != api.BlameFiles) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

var errLeft = errors.New("left")
