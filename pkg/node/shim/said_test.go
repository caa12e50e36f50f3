package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cpus"
	"gangd/pkg/core/supervise"
	"gangd/pkg/core/watchdog"
	"gangd/pkg/node/proc"
	"gangd/pkg/wire/jobapi"
)

// TestShareOfARank: so many datagrams and connections are taken of it in a breath, and then it rests for what is left of that.
func TestShareOfARank(t *testing.T) {
	const start = time.Hour
	r := &rankSockets{}
	for i := range perBreath {
		if r.rests(start) != 0 || !r.take(start) {
			t.Fatalf("the one after %d is not taken", i)
		}
	}
	for after, want := range map[time.Duration]time.Duration{0: breath, breath - 1: 1, breath: 0, 2 * breath: 0} {
		if got := r.rests(start + after); got != want {
			t.Errorf("%s later it rests %s, want %s", after, got, want)
		}
	}
	if r.take(start + breath - 1) {
		t.Error("more are taken before the next breath")
	}
	if !r.take(start+breath) || r.taken != 1 || r.breathAt != start+breath {
		t.Errorf("in the next breath: %+v", r)
	}
}

// TestPollOfSockets: how long a poll may sleep: what is urgent, due, lingers, falls silent or rests first.
func TestPollOfSockets(t *testing.T) {
	const now, never = time.Hour, time.Duration(math.MaxInt64)
	silent := func(left time.Duration) watchdog.Silence {
		s := watchdog.Silence{Timeout: time.Minute}
		s.Beat(now + left - time.Minute)
		return s
	}
	for what, c := range map[string]struct {
		j    jobSockets
		want time.Duration
	}{
		"nothing":           {jobSockets{ranks: []rankSockets{{}}}, never},
		"urgent":            {jobSockets{urgent: true, due: true, next: now + 5}, 0},
		"due":               {jobSockets{due: true, next: now + 5}, 5},
		"overdue":           {jobSockets{due: true, next: now - 5}, 0},
		"not due":           {jobSockets{next: now + 5}, never},
		"lingers":           {jobSockets{linger: []lingeringConn{{until: now + 7}, {until: now + 9}}}, 7},
		"lingered":          {jobSockets{linger: []lingeringConn{{until: now - 7}}}, 0},
		"due before that":   {jobSockets{due: true, next: now + 5, linger: []lingeringConn{{until: now + 7}}}, 5},
		"falls silent":      {jobSockets{ranks: []rankSockets{{silence: silent(9)}, {silence: silent(4)}}}, 4},
		"silent by now":     {jobSockets{ranks: []rankSockets{{silence: silent(-4)}}}, 0},
		"known to be":       {jobSockets{ranks: []rankSockets{{silence: silent(-4), note: api.RankNote{Silent: true}}}}, never},
		"rests":             {jobSockets{ranks: []rankSockets{{taken: perBreath, breathAt: now}}}, breath},
		"has rested":        {jobSockets{ranks: []rankSockets{{taken: perBreath, breathAt: now - breath}}}, never},
		"the first of them": {jobSockets{ranks: []rankSockets{{taken: perBreath, breathAt: now, silence: silent(3)}}}, 3},
	} {
		if got := c.j.wait(now); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
	j := jobSockets{ranks: []rankSockets{{notify: 7, http: 8}, {notify: -1, http: 9, taken: perBreath, breathAt: clock(unix.CLOCK_MONOTONIC) + time.Hour}}, linger: []lingeringConn{{fd: 5, answer: []byte("x")}, {fd: 6}}}
	var fds []int32
	for _, p := range j.watch([]unix.PollFd{{Fd: 3}}) {
		if fds = append(fds, p.Fd); p.Fd != 3 && p.Events != unix.POLLIN {
			t.Errorf("of %d %x is looked for", p.Fd, p.Events)
		}
	}
	if want := []int32{3, 7, 8, -1, -1, 5, -1}; !slices.Equal(fds, want) {
		t.Errorf("looked at are %v, want %v", fds, want)
	}
}

// TestSaidByARank: a word is noted, those that say how far the rank is are kept and told at once, a beat or a status when it is time.
func TestSaidByARank(t *testing.T) {
	for what, c := range map[string]struct {
		before      api.RankNote
		word        jobapi.Notification
		want        api.RankNote
		due, urgent bool
	}{
		"nothing":      {api.RankNote{Status: "a", Ready: true}, jobapi.Notification{}, api.RankNote{Status: "a", Ready: true}, false, false},
		"a beat":       {api.RankNote{Beats: 1}, jobapi.Notification{Beat: true}, api.RankNote{Beats: 2}, true, false},
		"back again":   {api.RankNote{Silent: true}, jobapi.Notification{Beat: true}, api.RankNote{Beats: 1}, true, true},
		"a status":     {api.RankNote{Status: "a"}, jobapi.Notification{HasStatus: true, Status: "b"}, api.RankNote{Status: "b"}, true, false},
		"none":         {api.RankNote{Status: "a"}, jobapi.Notification{HasStatus: true}, api.RankNote{}, true, false},
		"the same":     {api.RankNote{Status: "a"}, jobapi.Notification{HasStatus: true, Status: "a"}, api.RankNote{Status: "a"}, false, false},
		"ready":        {api.RankNote{}, jobapi.Notification{Ready: true}, api.RankNote{Ready: true}, true, true},
		"stopping":     {api.RankNote{}, jobapi.Notification{Stopping: true}, api.RankNote{Stopping: true}, true, true},
		"saved":        {api.RankNote{}, jobapi.Notification{Saved: true}, api.RankNote{Saved: true}, true, true},
		"so by before": {api.RankNote{Ready: true, Stopping: true, Saved: true}, jobapi.Notification{Ready: true, Stopping: true, Saved: true}, api.RankNote{Ready: true, Stopping: true, Saved: true}, false, false},
	} {
		m := &member{}
		r := &rankSockets{note: c.before, silence: watchdog.Silence{Timeout: time.Hour}}
		before := clock(unix.CLOCK_BOOTTIME)
		m.said(r, c.word)
		if r.note != c.want || m.jobs.due != c.due || m.jobs.urgent != c.urgent {
			t.Errorf("%s: %+v, due %t, urgent %t", what, r.note, m.jobs.due, m.jobs.urgent)
		}
		if _, beat := r.silence.Due(); beat != c.word.Beat || (r.beatAt >= before) != c.word.Beat {
			t.Errorf("%s: beaten %t, at %s", what, beat, r.beatAt)
		}
	}
}

// TestListen: who has beaten and falls silent is told of at once, and so is who beats again; who has ended is not waited for.
func TestListen(t *testing.T) {
	now := clock(unix.CLOCK_MONOTONIC)
	beat := func(ago time.Duration) watchdog.Silence {
		s := watchdog.Silence{Timeout: time.Minute}
		s.Beat(now - ago)
		return s
	}
	for what, c := range map[string]struct {
		r      rankSockets
		pid    int // of the rank; 0: it has ended
		silent bool
		told   bool
	}{
		"beats":         {rankSockets{silence: beat(0)}, 1, false, false},
		"is silent":     {rankSockets{silence: beat(time.Hour)}, 1, true, true},
		"is still":      {rankSockets{silence: beat(time.Hour), note: api.RankNote{Silent: true}}, 1, true, false},
		"was silent":    {rankSockets{silence: beat(0), note: api.RankNote{Silent: true}}, 1, false, true},
		"has ended":     {rankSockets{silence: beat(time.Hour)}, 0, false, false},
		"task is over":  {rankSockets{silence: beat(time.Hour), ended: true}, 1, false, false},
		"ended, silent": {rankSockets{silence: beat(time.Hour), note: api.RankNote{Silent: true}}, 0, false, true},
	} {
		m := &member{ranks: []rank{{pid: c.pid}}}
		m.jobs.ranks = []rankSockets{c.r, {step: 3, silence: beat(0)}}
		m.listen()
		if got := m.jobs.ranks[0].note.Silent; got != c.silent || m.jobs.due != c.told || m.jobs.urgent != c.told {
			t.Errorf("%s: silent %t, due %t, urgent %t", what, got, m.jobs.due, m.jobs.urgent)
		}
	}
}

// TestTellNotes: what ranks and tasks said goes to who connects and, when it is time, to all; who said nothing is not in it.
func TestTellNotes(t *testing.T) {
	near, far := socketpair(t)
	m := &member{spec: &Spec{MemberKey: api.MemberKey{Job: 7, Epoch: 2}}}
	m.conns.list = []*conn{{fd: near}}
	m.jobs.ranks = []rankSockets{{step: -1, rank: 4, note: api.RankNote{Rank: 4, Status: "x", Beats: 1}, beatAt: clock(unix.CLOCK_BOOTTIME) - time.Hour}, {step: -1, rank: 5, note: api.RankNote{Rank: 5}},
		{step: 3, rank: 0, ended: true}, {step: 3, rank: 1, note: api.RankNote{Rank: 1, Ready: true}}, {step: 3, rank: 2, note: api.RankNote{Rank: 2}}}
	told := func() *api.MemberNote {
		t.Helper()
		m.tellNotes()
		got := lines(far)
		if got == nil {
			return nil
		}
		var a Answer
		if err := json.Unmarshal([]byte(got[0]), &a); err != nil || len(got) != 1 || a.Notes == nil {
			t.Fatalf("%q, %v", got, err)
		}
		return a.Notes
	}
	if n := told(); n != nil {
		t.Errorf("nothing is due, and told is %+v", n)
	}
	m.jobs.due = true
	n := told()
	if n == nil || n.MemberKey != m.spec.MemberKey || len(n.Ranks) != 1 || len(n.Tasks) != 2 {
		t.Fatalf("told is %+v", n)
	}
	if age := n.Ranks[0].BeatAge; age < time.Hour || age > 2*time.Hour || n.Ranks[0].Rank != 4 || n.Ranks[0].Status != "x" {
		t.Errorf("of the rank %+v", n.Ranks[0])
	}
	if a, b := n.Tasks[0], n.Tasks[1]; a.Step != 3 || a.Rank != 0 || !a.Ended || b.Rank != 1 || !b.Ready || b.Ended || b.BeatAge != 0 {
		t.Errorf("of the tasks %+v", n.Tasks)
	}
	if wait := m.jobs.next - clock(unix.CLOCK_MONOTONIC); wait <= 0 || wait > noteEvery || m.jobs.due {
		t.Errorf("the next is due in %s", wait)
	}
	for what, c := range map[string]struct {
		edit func()
		told bool
	}{"due too soon": {func() { m.jobs.due = true }, false}, "at the end": {func() { m.over = true }, true}, "urgent": {func() { m.over, m.jobs.urgent = false, true }, true}, "to who connects": {func() { m.conns.fresh = true }, true}} {
		m.jobs.due, m.jobs.urgent, m.conns.fresh, m.over = what == "at the end", false, false, false
		if c.edit(); (told() != nil) != c.told {
			t.Errorf("%s: told %t", what, !c.told)
		}
	}
	m.jobs.ranks = m.jobs.ranks[1:2]
	if m.jobs.urgent = true; told() != nil {
		t.Error("who said nothing is told of")
	}
}

// TestTaskSocketsOfAStep: a step has sockets for all of its tasks or, with why, for none; they go with it.
func TestTaskSocketsOfAStep(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := &Spec{Dir: dir, Watch: api.Watch{StallTimeout: time.Minute}}
	var j jobSockets
	numbers := func(n int) (out []int) {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	if why := j.openStep(s, &api.StepOrder{ID: 1}); why != "the controller is older than this node" {
		t.Errorf("without numbers: %s", why)
	}
	j.ranks = []rankSockets{{step: -1, notify: -1, http: -1}}
	for i := range maxTaskSockets - 1 {
		j.ranks = append(j.ranks, rankSockets{step: 0, rank: i, notify: -1, http: -1})
	}
	if why := j.openStep(s, &api.StepOrder{ID: 1, Numbers: numbers(2)}); why != "on one node 1024 tasks of a job have them at a time" || len(j.ranks) != maxTaskSockets {
		t.Errorf("one too many: %s, %d", why, len(j.ranks))
	}
	if why := j.openStep(s, &api.StepOrder{ID: 1, Size: 9, Numbers: []int{4}}); why != "" {
		t.Fatalf("the last: %s", why)
	}
	r := &j.ranks[len(j.ranks)-1]
	if r.step != 1 || r.rank != 4 || r.size != 9 || r.note.Rank != 4 || r.silence.Timeout != time.Minute || r.notify < 0 || r.http < 0 {
		t.Errorf("%+v", r)
	}
	files := func() int {
		all, err := os.ReadDir(".")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if n := files(); n != 2 {
		t.Errorf("%d files for a task", n)
	}
	if j.taskEnded(1, 5); j.due {
		t.Error("the end of another task is told")
	}
	if j.taskEnded(1, 4); !r.ended || !j.due || !j.urgent {
		t.Error("the end of a task is not told at once")
	}
	j.due, j.urgent = false, false
	if j.taskEnded(1, 4); j.due {
		t.Error("it is told twice")
	}
	if j.closeStep(1); files() != 0 || len(j.ranks) != maxTaskSockets {
		t.Errorf("%d files and %d sockets after the step", files(), len(j.ranks))
	}
	long := *s
	long.Dir = "/" + strings.Repeat("x", 200)
	j.ranks = nil
	if why := j.openStep(&long, &api.StepOrder{ID: 1, Numbers: []int{0}}); why != "the path of the node's state directory is too long" {
		t.Errorf("far down: %s", why)
	}
	if err := os.MkdirAll(filepath.Join(jobapi.TaskName(jobapi.SocketPrefix, 2, 1), "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if why := j.openStep(s, &api.StepOrder{ID: 2, Numbers: []int{0, 1}}); why != "they could not be made: see shim.log of the job on the node" || len(j.ranks) != 0 {
		t.Errorf("where one can't be made: %s, %d", why, len(j.ranks))
	}
}

// TestLingering: of connections that nobody takes the oldest go first, when their time is over.
func TestLingering(t *testing.T) {
	var j jobSockets
	var far [3]int
	for i := range far {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pair[1])
		_ = unix.SetNonblock(pair[1], true)
		far[i] = pair[1]
		j.linger = append(j.linger, lingeringConn{fd: pair[0], answer: fmt.Appendf(nil, "no %d\n", i), until: time.Duration(10 + i)})
	}
	fds := []unix.PollFd{{}, {Revents: unix.POLLIN}, {}}
	j.answer(nil)
	if len(j.linger) != 3 {
		t.Error("without a poll something was answered")
	}
	j.answer(fds)
	if got := lines(far[1]); len(got) != 1 || got[0] != "no 1" || lines(far[0]) != nil {
		t.Errorf("answered is %q", got)
	}
	if len(j.linger) != 3 || j.linger[2].answer != nil || j.linger[0].until != 10 || j.linger[1].until != 12 {
		t.Fatalf("%+v", j.linger)
	}
	if left := j.linger[2].until - clock(unix.CLOCK_MONOTONIC); left <= 0 || left > lingerFor {
		t.Errorf("it lingers %s more", left)
	}
	if j.answer([]unix.PollFd{{}, {}, {Revents: unix.POLLIN}}); lines(far[1]) != nil {
		t.Error("answered twice")
	}
	m := &member{jobs: jobSockets{linger: j.linger}}
	if m.serveRanks([]unix.PollFd{{}, {Revents: unix.POLLIN}, {}}); !slices.Equal(lines(far[2]), []string{"no 2"}) {
		t.Error("a member does not answer")
	}
	if uid := sender(nil); uid != -1 {
		t.Errorf("what nobody sent is of user %d", uid)
	}
	for _, c := range []struct {
		now  time.Duration
		want int
	}{{9, 3}, {10, 2}, {11, 2}, {12, 1}} {
		if j.hangUp(c.now); len(j.linger) != c.want {
			t.Errorf("at %d %d linger, want %d", c.now, len(j.linger), c.want)
		}
	}
	j.close()
}

// TestLaunchWords: why a rank could not be started, as a shell would have it.
func TestLaunchWords(t *testing.T) {
	argv := []string{"/bin/x"}
	for _, c := range []struct {
		argv []string
		err  error
		code int
		text string
	}{
		{nil, fs.ErrNotExist, 126, "read the script: file does not exist"},
		{argv, fs.ErrNotExist, 127, "interpreter /bin/x of the script, or working directory /w, does not exist"},
		{argv, syscall.ENOTDIR, 127, "interpreter /bin/x of the script, or working directory /w, does not exist"},
		{argv, fs.ErrPermission, 126, "interpreter /bin/x of the script can not be executed: permission denied"},
		{argv, syscall.ENOEXEC, 126, "interpreter /bin/x of the script can not be executed: exec format error"},
		{argv, syscall.ENOMEM, 126, "start /bin/x: cannot allocate memory"},
	} {
		if code, text := startError(c.argv, "/w", c.err); code != c.code || text != c.text {
			t.Errorf("%v: %d, %s", c.err, code, text)
		}
	}
	for text, want := range map[string]string{"#!/bin/bash -x\n": "/bin/bash", "echo\n": "/bin/sh", "": "/bin/sh", "#! \t /usr/bin/env\tpython  \r\nx": "/usr/bin/env", "#!\n": "/bin/sh"} {
		if got := Interpreter(text); got != want {
			t.Errorf("%q is run by %s", text, got)
		}
	}
	for err, want := range map[error]int{fs.ErrNotExist: ReadNoFile, fs.ErrPermission: ReadDenied, errors.New("x"): ReadFailed} {
		if got := ReadStatus(fmt.Errorf("read: %w", err)); got != want {
			t.Errorf("%v: %d", err, got)
		}
	}
}

// TestEnvironOfARank: what the shim adds to what the maker of the spec gave, and that no rank gets another's.
func TestEnvironOfARank(t *testing.T) {
	m := &member{spec: &Spec{Dir: "/d", Marker: "GANG_MEMBER=7.2"}}
	given := append(make([]string, 0, 20), "A=1")
	now := time.Now().Unix()
	names := func(env []string) (out []string) {
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			if strings.HasSuffix(name, "_TIME") {
				var at int64
				if _, err := fmt.Sscan(value, &at); err != nil || at < now {
					t.Errorf("%s, it is %d", e, now)
				}
				value = fmt.Sprint(at >= now+3600)
			}
			out = append(out, name+"="+value)
		}
		return out
	}
	if got, want := names(m.environ(&RankSpec{Env: given})), []string{"A=1", "GANG_STATUS_FILE=/d/status", "SLURM_JOB_START_TIME=false", "GANG_MEMBER=7.2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if given[:2][1] != "" {
		t.Errorf("the spec's own became %q", given[:2])
	}
	m.port, m.spec.CheckpointDir, m.spec.TimeLimit = 9, "/c", 2*time.Hour
	got, want := names(m.environ(&RankSpec{Env: []string{"GANG_MEMBER=7.2"}})), []string{"GANG_MEMBER=7.2", "GANG_STATUS_FILE=/d/status", "GANG_CHECKPOINT_DIR=/c", "MASTER_PORT=9", "SLURM_JOB_START_TIME=false", "SLURM_JOB_END_TIME=true"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPlaceOfAMember: the place of a spec is what was set, its CPUs all of its machine, and its cards by name.
func TestPlaceOfAMember(t *testing.T) {
	s := &Spec{}
	p := proc.Place{Kind: proc.Group, Dir: "/g", Sides: map[string]string{"memory": "/m"}, Marker: "A=1"}
	s.SetPlace(p)
	if got := s.Place(); got.Kind != p.Kind || got.Dir != p.Dir || got.Marker != p.Marker || got.Sides["memory"] != "/m" {
		t.Errorf("%+v", got)
	}
	if got := s.CPUSet(); got != nil {
		t.Errorf("of no machine %v", got)
	}
	if s.Machine = (&cpus.Topology{}); len(s.CPUSet()) != len(s.Machine.All()) {
		t.Errorf("%v", s.CPUSet())
	}
	s.Cards = []Card{{UUID: "a"}, {UUID: "b"}}
	if got := s.CardUUIDs(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v", got)
	}
}

// TestSignalOrdersAreKept: the newest so many, each with how many it reached.
func TestSignalOrdersAreKept(t *testing.T) {
	var o orders
	for n := range uint64(keptOrders + 1) {
		o.add(appliedOrder{number: n + 1, processes: int(n)})
	}
	if _, there := o.find(1); there || len(o) != keptOrders {
		t.Errorf("the oldest is there, of %d", len(o))
	}
	for _, n := range []uint64{2, keptOrders + 1} {
		if got, there := o.find(n); !there || got != int(n)-1 {
			t.Errorf("order %d reached %d, %t", n, got, there)
		}
	}
}

// TestWhatAProcessSays: nothing that a process says of itself reaches a terminal as a command, and a missing word is a dash.
func TestWhatAProcessSays(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{put("a", "futex_wait x\n"): "futex_wait", put("b", ""): "-", put("wchan", "0\n"): "-", put("c", "0\n"): "0", filepath.Join(dir, "none"): "-"} {
		if got := word(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	got := fieldsOf(put("status", "Name:\tpython \nState:\tS (sleeping)\nOther: x\nno field\n"), "Name", "State")
	if len(got) != 2 || got["Name"] != "python" || got["State"] != "S (sleeping)" {
		t.Errorf("%v", got)
	}
	if got := commandLine(1 << 30); got != "(no command line)" {
		t.Error(got)
	}
	if got := commandLine(os.Getpid()); !strings.Contains(got, filepath.Base(os.Args[0])) || strings.ContainsAny(got, "\x00\n") {
		t.Error(got)
	}
	if got := threads(os.Getpid()); len(got) == 0 || len(got) > dumpThreads || !slices.Contains(got, fmt.Sprint(os.Getpid())) {
		t.Errorf("%v", got)
	}
	if got := threads(1 << 30); got != nil {
		t.Errorf("%v", got)
	}
	mine := fromKernel(&dumpTarget{pid: os.Getpid(), kernel: map[string]string{fmt.Sprint(os.Getpid()): "one\ntwo"}})
	if !strings.HasPrefix(mine, fmt.Sprintf("---- process %d: ", os.Getpid())) || !strings.Contains(mine, fmt.Sprintf("\nthread %d ", os.Getpid())) || !strings.Contains(mine, "\n    one\n    two\n") || strings.Count(mine, "    one") != 1 {
		t.Error(mine)
	}
}

// TestDebuggerOfAProcess: gdb where the rank's own path has it, as an absolute path to a program.
func TestDebuggerOfAProcess(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	gdb := filepath.Join(dir, "gdb")
	if err := os.WriteFile(gdb, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "gdb"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(other, "py-spy"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(dir))
	for path, want := range map[string]string{dir: gdb, other + ":" + dir: gdb, other: "", filepath.Base(dir): "", "": ""} {
		if got := lookPath(&RankSpec{Env: []string{"X=" + dir, "PATH=" + path}}, "gdb"); got != want {
			t.Errorf("on %s: %q", path, got)
		}
	}
	if got := lookPath(&RankSpec{Env: []string{"PATH=" + other}}, "py-spy"); got != "" {
		t.Errorf("a directory is a program: %s", got)
	}
	r := &RankSpec{Env: []string{"PATH=" + dir}}
	self := fmt.Sprint(os.Getpid())
	if got, want := debugger(r, os.Getpid()), []string{gdb, "-p", self, "-batch", "-nx", "-ex", "set pagination off", "-ex", "thread apply all bt 50"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := debugger(&RankSpec{}, os.Getpid()); got != nil {
		t.Errorf("without a path %q", got)
	}
	if got := debugger(r, 1<<30); got != nil {
		t.Errorf("of no process %q", got)
	}
}

// TestEndLines: Slurm's line about an end, with its reason where Slurm says one.
func TestEndLines(t *testing.T) {
	for cause, want := range map[api.Cause]string{api.CauseCancelled: " ***", api.CauseTimeout: " DUE TO TIME LIMIT ***", api.CausePreempted: " DUE TO PREEMPTION ***", api.CauseRequeued: " DUE TO JOB REQUEUE ***"} {
		before := time.Now()
		got := EndLine("JOB 12", "n1", cause)
		at, ok := strings.CutPrefix(got, "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT ")
		at, ended := strings.CutSuffix(at, want)
		if when, err := time.ParseInLocation("2006-01-02T15:04:05", at, time.Local); !ok || !ended || err != nil || when.Before(before.Truncate(time.Second)) {
			t.Errorf("%s: %s", cause, got)
		}
	}
}

// TestStepOfAProcess: what the tasks of a launcher start is of its step, however deep.
func TestStepOfAProcess(t *testing.T) {
	a, b := &stepProc{id: 1, pid: 10}, &stepProc{id: 2, pid: 20}
	m := &member{spec: &Spec{}, steps: []*stepProc{a, b}}
	all := map[int]proc.Stat{10: {PID: 10, PPID: 1}, 11: {PID: 11, PPID: 10}, 12: {PID: 12, PPID: 11}, 20: {PID: 20, PPID: 1}, 21: {PID: 21, PPID: 20}, 30: {PID: 30, PPID: 1}}
	for pid, want := range map[int]*stepProc{10: a, 11: a, 12: a, 20: b, 21: b, 30: nil} {
		if got := m.stepOf(all[pid], all); got != want {
			t.Errorf("process %d is of %+v", pid, got)
		}
	}
	if m.stepProc(2) != b || m.stepProc(3) != nil || !m.stepsLive() {
		t.Error("which steps there are")
	}
	if m.steps = nil; m.stepOf(all[11], all) != nil || m.stepsLive() {
		t.Error("of no steps")
	}
}

// TestWordsOfALauncherInPieces: words come whole or in pieces, what is none is left out, and the last stays the last.
func TestWordsOfALauncherInPieces(t *testing.T) {
	near, far := socketpair(t)
	m := runningMember(&Spec{})
	p := &stepProc{id: 3, ctl: near}
	m.jobs.ranks = []rankSockets{{step: 3, rank: 1, notify: -1, http: -1}}
	say := func(text string) {
		t.Helper()
		if _, err := unix.Write(far, []byte(text)); err != nil {
			t.Fatal(err)
		}
		m.hearStep(p)
	}
	say("nonsense\n{\"task_en")
	if m.jobs.due {
		t.Error("half a word is heard")
	}
	say("ded\":1}\n{\"refused\":\"no image\"}\n")
	if !m.jobs.ranks[0].ended || p.refused != "no image" || p.last != nil || len(p.in) != 0 {
		t.Errorf("%+v, %+v", m.jobs.ranks, p)
	}
	say("{\"exit_code\":4}\n{\"exit_code\":5}\n{\"refused\":\"late\"}\n")
	if p.last == nil || p.last.ExitCode != 4 || p.refused != "no image" {
		t.Errorf("%+v", p)
	}
	say(strings.Repeat("x", maxLauncherWord+1))
	if n := len(p.in); n <= maxLauncherWord-4096 || n > maxLauncherWord+4096 {
		t.Errorf("%d bytes of a word without an end are kept", n)
	}
	_ = unix.Shutdown(far, unix.SHUT_WR)
	p.in = nil
	for range 3 {
		if p.ctl >= 0 {
			m.hearStep(p)
		}
	}
	if p.ctl != -1 {
		t.Error("one that says no more is listened to")
	}
}

// TestEndOfAStep: it is a result with what was known of the step, and what it had is to go.
func TestEndOfAStep(t *testing.T) {
	m := &member{spec: &Spec{}}
	m.state.Steps = []api.StepActual{{ID: 1, PID: 7, Image: "i", Started: time.Unix(5, 0)}, {ID: 2}}
	before := time.Now()
	m.stepOver(1, api.StepActual{ID: 9, ExitCode: 3})
	s := m.state.Steps[0]
	if s.ID != 1 || s.PID != 7 || s.Image != "i" || !s.Started.Equal(time.Unix(5, 0)) || s.Ended.Before(before) || !s.Over || s.ExitCode != 3 || m.state.Steps[1].Over {
		t.Errorf("%+v", m.state.Steps)
	}
	if !m.dirty || !m.durable || !slices.Equal(m.gone, []int{1}) {
		t.Errorf("dirty %t, durable %t, to go are %v", m.dirty, m.durable, m.gone)
	}
	if n := m.signalStep(8, "USR1"); n != 0 {
		t.Errorf("a step that is none has %d tasks", n)
	}
	near, far := socketpair(t)
	p := &stepProc{id: 2, tasks: 5, ctl: near}
	m.steps = []*stepProc{p}
	if n := m.signalStep(2, "USR1"); n != 5 || !slices.Equal(lines(far), []string{`{"signal":"USR1"}`}) {
		t.Errorf("signalled are %d", n)
	}
	if m.extendStep(2, time.Second); lines(far) != nil {
		t.Error("more grace where there is none")
	}
	for range 2 {
		m.stopStep(p, time.Minute)
	}
	if got := lines(far); !slices.Equal(got, []string{`{"stop":true,"grace_ns":60000000000}`}) {
		t.Errorf("stopped by %q", got)
	}
	if m.extendStep(2, time.Second); !slices.Equal(lines(far), []string{`{"extend_ns":1000000000}`}) {
		t.Error("no more grace while it is stopped")
	}
}

// TestPatienceOfLooks: whoever has no limit that only looking holds is not looked at, nor who does not run any more.
func TestPatienceOfLooks(t *testing.T) {
	running := func(edit func(*member)) *member {
		m := runningMember(&Spec{MemoryMax: 1, PidsMax: 1})
		m.box = looked{}
		edit(m)
		return m
	}
	for what, c := range map[string]struct {
		m    *member
		want bool
	}{
		"both":      {running(func(*member) {}), true},
		"memory":    {running(func(m *member) { m.spec.PidsMax = 0 }), true},
		"processes": {running(func(m *member) { m.spec.MemoryMax = 0 }), true},
		"none":      {running(func(m *member) { m.spec.MemoryMax, m.spec.PidsMax = 0, 0 }), false},
		"nowhere":   {running(func(m *member) { m.box = nil }), false},
		"over":      {running(func(m *member) { m.over = true }), false},
		"not begun": {running(func(m *member) {
			m.mach = supervise.New(supervise.Config{Ranks: []int{0}}, now())
		}), false},
	} {
		if got := c.m.looks(); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
		l := &limitLook{at: 50}
		for now, wait := range map[time.Duration]time.Duration{40: 10, 50: 0, 60: 0} {
			if !c.want {
				wait = pollMax
			}
			if got := l.wait(c.m, now); got != wait {
				t.Errorf("%s, at %d: %s, want %s", what, now, got, wait)
			}
		}
	}
}
