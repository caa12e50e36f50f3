package stepclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"gangd/pkg/api"
	"gangd/pkg/node/launcher"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/stepwire"
)

// The launchers of these tests are this program, as gshim would start it.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "launch" {
		os.Exit(launcher.Main())
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("os/signal.loop"), goleak.IgnoreTopFunction("os/signal.signal_recv"))
}

// nodes is a controller that starts a launcher for each node of a step at once.
type nodes struct {
	t     *testing.T
	tasks [][]int // by node
	dir   string

	mu     sync.Mutex
	procs  []*exec.Cmd
	ctl    []*os.File
	words  []string // the last word of each
	done   sync.WaitGroup
	busy   int // how often it refuses first
	mute   bool
	silent bool // the controller knows of no reason why they don't come
	ends   bool // the job is being stopped by the time the launchers come

	groups    []int        // by node, the component of the step that its tasks are of
	images    []string     // by node, the digest of what its launcher runs in; "": it runs outside, "!TEXT": it refuses
	importing atomic.Int32 // how often the step is said to be importing
	stopped   atomic.Int32 // how often the controller was asked to end it
	cause     atomic.Value // of the last time
}

func (n *nodes) BeginStep(_ context.Context, _ api.JobRef, r *api.StepRequest) (*api.StepReply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy > 0 {
		n.busy--
		return nil, api.Errorf(api.CodeBusy, "busy")
	}
	reply := &api.StepReply{JobID: 7, Epoch: 1, StepID: 3, Secret: "secret", Fail: api.FailAny, Allocation: api.Allocation{JobID: 7, Grace: 5 * time.Second}}
	for i, t := range n.tasks {
		reply.Nodes = append(reply.Nodes, api.StepNode{Name: fmt.Sprintf("n%d", i+1), Index: i, Tasks: t, CPUs: 1})
		reply.Tasks += len(t)
		if i < len(n.groups) {
			reply.Nodes[i].Group = n.groups[i]
		}
	}
	reply.Allocation.Nodes = reply.Nodes
	if !n.mute {
		for i := range n.tasks {
			n.launch(i, r)
		}
	}
	return reply, nil
}

func (n *nodes) launch(i int, r *api.StepRequest) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ctl"), os.NewFile(uintptr(pair[1]), "ctl")
	c := exec.Command("/proc/self/exe", "launch")
	c.ExtraFiles, c.Stderr = []*os.File{theirs}, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		n.t.Fatal(err)
	}
	_ = theirs.Close()
	o := api.StepOrder{ID: 3, Hosts: r.Ask.Hosts, Fingerprint: r.Ask.Fingerprint, Secret: "secret", Part: i, Tasks: len(n.tasks[i]), Container: r.Ask.Container}
	s := shim.LauncherStart{MemberKey: api.MemberKey{Job: 7, Epoch: 1}, StepOrder: o, Node: fmt.Sprintf("n%d", i+1), Marker: "GANG_MEMBER=7.1"}
	if i < len(n.images) && n.images[i] != "" {
		var refused bool
		if s.Refused, refused = strings.CutPrefix(n.images[i], "!"); !refused {
			s.Refused, s.InImage = "", &shim.InImage{Name: "/image", Digest: n.images[i], Env: []string{"PATH=/image:/bin", "KEPT=image"}, Keep: []string{"KEPT"}}
		}
	}
	start, _ := jsonLine(s)
	_, _ = ours.Write(start)
	if n.ends {
		drain, _ := jsonLine(shim.LauncherOrder{Draining: true})
		_, _ = ours.Write(drain)
	}
	n.procs, n.ctl, n.words = append(n.procs, c), append(n.ctl, ours), append(n.words, "")
	n.done.Go(func() {
		b := n.hear(ours, c.Process.Pid)
		_ = c.Wait()
		_ = ours.Close()
		n.mu.Lock()
		n.words[i] = string(b)
		n.mu.Unlock()
	})
}

// hear takes what a launcher says up to its last word, and tells its tasks to end where it
// asks for that, as the shim does.
func (n *nodes) hear(r io.Reader, launcher int) string {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var w shim.LauncherWord
		switch err := json.Unmarshal(lines.Bytes(), &w); {
		case err == nil && w.Launched:
			continue
		case err != nil || !w.Stop:
			return lines.Text()
		}
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", launcher))
		for _, thread := range threads {
			children, _ := os.ReadFile(thread)
			for _, pid := range strings.Fields(string(children)) {
				number, _ := strconv.Atoi(pid)
				_ = syscall.Kill(number, syscall.SIGTERM)
			}
		}
	}
	return ""
}

func (n *nodes) AttachStep(context.Context, api.JobRef, int) (*api.StepAttachReply, error) {
	switch {
	case n.importing.Add(-1) >= 0:
		return &api.StepAttachReply{Step: api.Step{Status: "importing its image: 1M of 3M on n2"}}, nil
	case n.silent:
		return &api.StepAttachReply{}, nil
	}
	return nil, api.Errorf(api.CodeAlreadyEnded, "step 7.3 has already ended")
}

func (n *nodes) SignalStep(_ context.Context, _ api.JobRef, _ int, r api.StepSignal) (*api.StepSignalReply, error) {
	if r.Signal == "" {
		n.stopped.Add(1)
	}
	n.cause.Store(r.Cause)
	return nil, nil
}

func (n *nodes) WaitStep(context.Context, api.JobRef, int) error { n.done.Wait(); return nil }

// result is what a person saw.
type result struct {
	out, err string
	code     int
	failed   error
}

// play runs a shell script in each task of a step.
func play(t *testing.T, n *nodes, script string, change func(*Options)) result {
	t.Helper()
	n.t = t
	if n.dir == "" {
		n.dir = t.TempDir()
	}
	var out, errs safeBuffer
	o := &Options{Name: "grun", Job: api.JobRef{ID: 7, Index: -1}, Patience: true, Say: &errs, Output: Output{Stdout: &out, Stderr: &errs, OnlyTask: -1, OnlyErr: -1},
		Body: stepwire.Body{Programs: []stepwire.Program{{Argv: []string{"/bin/sh", "-c", script}}}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: n.dir, InputTo: -1, Umask: 0o022}}
	if change != nil {
		change(o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code, err := Run(ctx, n, o)
	n.done.Wait()
	text := regexp.MustCompile(`CANCELLED AT \S+`).ReplaceAllString(errs.String(), "CANCELLED AT T")
	return result{out.String(), text, code, err}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func sorted(s string) string {
	lines := strings.SplitAfter(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func two() *nodes { return &nodes{tasks: [][]int{{0, 1}, {2}}} }

// userNamespace says why nobody may make one here.
func userNamespace() error {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}}
	return cmd.Run()
}

func TestSteps(t *testing.T) {
	cases := []struct {
		name, script string
		change       func(*Options)
		out, err     string // sorted lines
		late         string // err where ends come one by one; empty: it can't tell
		code         int
	}{
		{name: "labelled", script: `echo $SLURM_PROCID on $SLURMD_NODENAME of $SLURM_NTASKS, $SLURM_GTIDS; printf open`, change: func(o *Options) { o.Label, o.Body.Label = true, true },
			out: "0: 0 on n1 of 3, 0,1\n0: open\n1: 1 on n1 of 3, 0,1\n1: open\n2: 2 on n2 of 3, 2\n2: open\n"},
		{name: "codes", script: `exit $((SLURM_PROCID*2))`, err: "grun: error: n1: task 1: Exited with exit code 2\ngrun: error: n2: task 2: Exited with exit code 4\n", code: 4},
		{name: "one line for those that ended alike", script: `exit 3`,
			err: "grun: error: n1: tasks 0-1: Exited with exit code 3\ngrun: error: n2: task 2: Exited with exit code 3\n", code: 3,
			late: "grun: error: n1: task 0: Exited with exit code 3\ngrun: error: n1: task 1: Exited with exit code 3\ngrun: error: n2: task 2: Exited with exit code 3\n"},
		{name: "a signal", script: `kill -SEGV $$`, change: func(o *Options) { o.Quiet = 2 }, code: 139},
		{name: "one fails, all end", script: `if [ $SLURM_PROCID = 1 ]; then sleep 0.3; exit 9; fi; exec sleep 60`, change: func(o *Options) { o.KillOnBad, o.FirstCode = true, true },
			err: "*** STEP 7.3 ON n1 CANCELLED AT T ***\ngrun: ending step 7.3\ngrun: error: n1: task 0: Terminated\ngrun: error: n1: task 1: Exited with exit code 9\ngrun: error: n2: task 2: Terminated\n" +
				"grun: step 7.3 was ended by a signal\n", code: 9},
		{name: "one fails, all end, as srun", script: `if [ $SLURM_PROCID = 1 ]; then sleep 0.3; exit 9; fi; exec sleep 60`, change: func(o *Options) { o.KillOnBad, o.Name = true, "srun" },
			err: "slurmstepd: error: *** STEP 7.3 ON n1 CANCELLED AT T ***\nsrun: Force Terminated StepId=7.3\nsrun: error: n1: task 0: Terminated\n" +
				"srun: error: n1: task 1: Exited with exit code 9\nsrun: error: n2: task 2: Terminated\nsrun: launch/slurm: _step_signal: Terminating StepId=7.3\n", code: 143},
		{name: "one fails, all end, as their job", script: `if [ $SLURM_PROCID = 1 ]; then sleep 0.3; exit 9; fi; exec sleep 60`, change: func(o *Options) { o.KillAsJob, o.Quiet = true, 2 },
			err: "*** STEP 7.3 ON n1 CANCELLED AT T ***\n", code: 143},
		{name: "what a task leaves is ended", script: `(trap '' TERM HUP; sleep 60; echo never) & exit 0`},
		{name: "no such program", script: "", change: func(o *Options) { o.Body.Programs = []stepwire.Program{{Argv: []string{"nowhere"}}}; o.Quiet = 2 },
			err: "n1: error: nowhere: No such file or directory\nn1: error: nowhere: No such file or directory\nn2: error: nowhere: No such file or directory\n", code: 2},
		{name: "some run one program, some another", script: "", change: func(o *Options) {
			o.Body.Programs = []stepwire.Program{{Tasks: []int{2, 0}, Argv: []string{"echo", "%t", "is", "%o"}, Expand: true}, {Argv: []string{"echo", "rest", "%t"}, Expand: true}}
		}, out: "0 is 1\n2 is 0\nrest 1\n"},
		{name: "the output of one", script: `echo $SLURM_PROCID; echo e >&2`, change: func(o *Options) { o.OnlyTask, o.OnlyErr = 2, 5 }, out: "2\n"},
		{name: "files of the nodes", script: `echo $SLURM_PROCID; echo e >&2`, change: func(o *Options) { o.Body.Stdout, o.Body.Stderr = "sub/%2t-%N.%s", "=" }},
		{name: "files with numbers", script: `echo $SLURM_PROCID; echo e >&2; printf open`, change: func(o *Options) {
			o.Label, o.Body.Label, o.Body.Stdout, o.Body.Stderr = true, true, "sub/%n.%s", "sub/e%n"
		}},
		{name: "a directory that is not there", script: `pwd`, change: func(o *Options) { o.Body.Dir = "/nowhere"; o.OnlyTask = 0 }, out: "/tmp\n",
			err: "n1: error: the working directory /nowhere can't be entered: No such file or directory; the tasks run in /tmp\n" +
				"n2: error: the working directory /nowhere can't be entered: No such file or directory; the tasks run in /tmp\n"},
	}
	if err := userNamespace(); err == nil {
		cases = append(cases, cases[0])
		c := &cases[len(cases)-1]
		one := func(id int) string { return fmt.Sprintf("%10d %10d %10d\n", 0, id, 1) }
		c.name, c.script = "root in a user namespace", `[ $(id -u).$(id -g) = 0.0 ] && cat /proc/self/uid_map && cat /proc/self/gid_map`
		c.change, c.out = func(o *Options) { o.Body.RemapRoot = true }, sorted(strings.Repeat(one(os.Getuid())+one(os.Getgid()), 3))
	} else {
		t.Log("without user namespaces:", err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n := two()
			r := play(t, n, c.script, c.change)
			if r.failed != nil || r.code != c.code || sorted(r.out) != c.out || sorted(r.err) != c.err && (c.late == "" || sorted(r.err) != c.late) {
				t.Errorf("code %d (want %d), error %v\nout:\n%swant:\n%serr:\n%swant:\n%s", r.code, c.code, r.failed, sorted(r.out), c.out, sorted(r.err), c.err)
			}
			for file, want := range map[string]map[string]string{
				"files of the nodes": {"sub/02-n2.3": "2\ne\n"},
				"files with numbers": {"sub/0.3": "0: 0\n0: open\n1: 1\n1: open\n", "sub/e0": "0: e\n1: e\n", "sub/1.3": "2: 2\n2: open\n"},
			}[c.name] {
				b, err := os.ReadFile(filepath.Join(n.dir, file))
				if err != nil || sorted(string(b)) != sorted(want) {
					t.Errorf("%s: %q %v, want %q", file, b, err, want)
				}
			}
		})
	}
}

func TestInput(t *testing.T) {
	for name, c := range map[string]struct {
		to   int64
		want string
	}{"all": {stepwire.AllTasks, "0 4000000\n1 4000000\n2 4000000\n"}, "one": {1, "0 0\n1 4000000\n2 0\n"}} {
		t.Run(name, func(t *testing.T) {
			in, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = w.Write(bytes.Repeat([]byte("x"), 4_000_000))
				_ = w.Close()
			}()
			defer in.Close()
			r := play(t, two(), `echo $SLURM_PROCID $(wc -c)`, func(o *Options) { o.Stdin, o.Body.InputTo = in, c.to })
			if sorted(r.out) != c.want || r.code != 0 {
				t.Errorf("code %d:\n%s%s", r.code, r.out, r.err)
			}
		})
	}
}

// TestMuchOutput: every byte of every task arrives, in order. With labels, since a line without is shown before its end when that doesn't
// come for a while, as where a task gets no processor.
func TestMuchOutput(t *testing.T) {
	r := play(t, two(), `seq 1 200000`, func(o *Options) { o.Label = true })
	next := map[string]int{}
	for _, line := range strings.Split(strings.TrimSuffix(r.out, "\n"), "\n") {
		task, count, _ := strings.Cut(line, ": ")
		n, err := strconv.Atoi(count)
		if err != nil || n != next[task]+1 {
			t.Fatalf("after %d of task %s: %q", next[task], task, line)
		}
		next[task] = n
	}
	if len(next) != 3 || next["0"] != 200000 || next["1"] != 200000 || next["2"] != 200000 {
		t.Errorf("%v", next)
	}
}

// TestTheClientIsTheStep: launchers that lose their client end their tasks.
func TestTheClientIsTheStep(t *testing.T) {
	n := two()
	ctx, cancel := context.WithCancelCause(t.Context())
	var out safeBuffer
	n.t, n.dir = t, t.TempDir()
	o := &Options{Name: "grun", Job: api.JobRef{ID: 7}, Patience: true, Say: &out, Output: Output{Stdout: &out, Stderr: &out, OnlyTask: -1, OnlyErr: -1},
		Body: stepwire.Body{Programs: []stepwire.Program{{Argv: []string{"/bin/sh", "-c", "echo up; exec sleep 600"}}}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: n.dir, InputTo: -1}}
	gone := errors.New("gone")
	go func() {
		for strings.Count(out.String(), "up") < 3 {
			time.Sleep(5 * time.Millisecond)
		}
		cancel(gone)
	}()
	if _, err := Run(ctx, n, o); !errors.Is(err, gone) {
		t.Fatal(err)
	}
	n.done.Wait() // which is the end of every task
	for i, w := range n.words {
		if !strings.Contains(w, `"signal":9`) && !strings.Contains(w, `"signal":15`) {
			t.Errorf("launcher %d said %q", i, w)
		}
	}
}

// Tasks that would start when those of their job have been told to end are not started: nobody would tell
// them.
func TestNothingStartsInAStop(t *testing.T) {
	n := two()
	n.ends = true
	r := play(t, n, `echo ran`, func(o *Options) { o.Quiet = 2 })
	if r.out != "" || r.code != 128+15 {
		t.Errorf("code %d, output %q", r.code, r.out)
	}
}

// TestLauncherDies: a node's launcher that is killed is a lost node: the others end.
func TestLauncherDies(t *testing.T) {
	n := two()
	up := 0
	r := play(t, n, `echo up; exec sleep 5`, func(o *Options) { // nobody ends what the killed one leaves, as a shim would
		o.Stdout = writer(func(p []byte) (int, error) {
			if up += bytes.Count(p, []byte("up\n")); up == 3 { // one write at a time
				_ = n.procs[1].Process.Kill()
			}
			return len(p), nil
		})
	})
	if r.code == 0 || !strings.Contains(r.err, "grun: error: a node of step 7.3 was lost: ending the step\n") {
		t.Errorf("code %d\n%s", r.code, r.err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestWaitsForRoom(t *testing.T) {
	n := two()
	n.busy = 2
	r := play(t, n, "true", nil)
	if want := "grun: job 7 has no room for another step yet: waiting for one of its steps to end\ngrun: step of job 7 begins\n"; r.err != want || r.code != 0 {
		t.Errorf("code %d:\n%s", r.code, r.err)
	}
	n = two()
	n.busy = 1
	if r := play(t, n, "true", func(o *Options) { o.Patience = false }); api.CodeOf(r.failed) != api.CodeBusy {
		t.Errorf("%v", r.failed)
	}
}

func TestNobodyComes(t *testing.T) {
	r := play(t, &nodes{tasks: [][]int{{0}}, mute: true}, "true", nil)
	if r.failed == nil || r.failed.Error() != "step 7.3 did not start: step 7.3 has already ended" {
		t.Errorf("%v", r.failed)
	}
}

// TestStrangers: who has not the secret, or is not who the certificate says, is not spoken to.
func TestStrangers(t *testing.T) {
	id, err := stepwire.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	var fingerprint string
	n := two()
	asked := make(chan struct{})
	n.mute = true
	begin := controllerFunc{n, func(r *api.StepRequest) { hosts, fingerprint = r.Ask.Hosts, r.Ask.Fingerprint; close(asked) }}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Run(ctx, begin, &Options{Name: "grun", Patience: true, Say: io.Discard, Output: Output{Stdout: io.Discard, Stderr: io.Discard, OnlyTask: -1, OnlyErr: -1}})
		ended <- err
	}()
	<-asked
	if _, err := stepwire.Dial(ctx, hosts[:1], id.Fingerprint, &stepwire.Greeting{Secret: "secret"}); err == nil {
		t.Error("another certificate was taken for the client's")
	}
	for _, g := range []stepwire.Greeting{{Secret: ""}, {Secret: "secres"}, {Secret: "wrong", Attach: true}, {Secret: "secret", Part: 9}} {
		c, err := stepwire.Dial(ctx, hosts[:1], fingerprint, &g)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := c.Next(); err == nil {
			t.Errorf("%+v was told %q %s", g, f.Type, f.Data)
		}
		_ = c.Close()
	}
	cancel()
	<-ended
}

type controllerFunc struct {
	*nodes
	seen func(*api.StepRequest)
}

func (c controllerFunc) BeginStep(ctx context.Context, job api.JobRef, r *api.StepRequest) (*api.StepReply, error) {
	defer c.seen(r)
	return c.nodes.BeginStep(ctx, job, r)
}

// TestCtrlC: the first says how the tasks are, or with SendInt is passed on to them; one that follows within a
// second, or the first with QuitOnInt, is passed on and ends them.
func TestCtrlC(t *testing.T) {
	const ask, send, end = "grun: Ctrl-C once more within a second ends the step\n", "grun: sending Ctrl-C to step 7.3\n", "grun: ending the step\n" +
		"grun: waiting up to 7 s for its tasks to end\n"
	for name, c := range map[string]struct {
		change func(*Options)
		first  string // what is said to it
	}{
		"as it is": {nil, ask},
		"sent":     {func(o *Options) { o.SendInt = true }, send},
		"quit":     {func(o *Options) { o.QuitOnInt = true }, send + end},
	} {
		t.Run(name, func(t *testing.T) {
			var say *safeBuffer
			over := make(chan struct{})
			var watch sync.WaitGroup
			r := play(t, two(), `trap 'echo int' INT; trap 'exit 3' TERM; echo up; while :; do sleep 0.05; done`, func(o *Options) {
				if c.change != nil {
					c.change(o)
				}
				say = o.Say.(*safeBuffer)
				out := o.Stdout.(*safeBuffer)
				watch.Go(func() {
					for strings.Count(out.String(), "up\n") < 3 {
						time.Sleep(time.Millisecond)
					}
					for n := 1; ; n++ { // until two are within a second, however slow the machine
						_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
						for strings.Count(say.String(), c.first) < n && !strings.Contains(say.String(), end) {
							select {
							case <-over:
								return
							case <-time.After(time.Millisecond):
							}
						}
						for i := 0; i < 50; i++ { // the end is said after the rest: a third is not meant
							if strings.Contains(say.String(), end) {
								return
							}
							time.Sleep(time.Millisecond)
						}
					}
				})
			})
			close(over)
			watch.Wait()
			if !strings.HasPrefix(r.err, c.first) || !strings.Contains(r.err, send+end) || r.code != 3 {
				t.Errorf("code %d\n%s%s", r.code, r.err, r.out)
			}
			if strings.Contains(r.err, ask) != (c.first == ask) || strings.Count(r.out, "int\n") < 3 {
				t.Errorf("%s%s", r.err, r.out)
			}
		})
	}
}

// TestContainer: no task runs before every node has the step's image, and it is the same; else none runs at all, the
// controller is asked to end the step, and why is said by name. Nothing runs outside of it.
func TestContainer(t *testing.T) {
	box := func(o *Options) {
		o.Ask.Container, o.Ask.Dir = &api.Container{Image: "/image"}, o.Body.Dir
		o.Body.Env = append(o.Body.Env, "KEPT=job")
	}
	run := func(images ...string) (result, *nodes) {
		n := two()
		n.images = images
		return play(t, n, "touch ran; echo $GANG_CONTAINER_IMAGE $PATH $KEPT", box), n
	}
	r, n := run("a", "a")
	if line := "/image /image:/bin job\n"; r.out != line+line+line || r.code != 0 || r.failed != nil || n.stopped.Load() != 0 {
		t.Errorf("%+v", r)
	}
	for _, x := range []struct {
		images []string
		want   string // one of them, with commas between
	}{
		{[]string{"a", "!container image: /image: no such file"}, "n2: container image: /image: no such file"},
		{[]string{"a", "b"}, "n2: the image is b here and a on n1: its tag was moved meanwhile|n1: the image is a here and b on n2: its tag was moved meanwhile"},
		{[]string{"a", ""}, "n2: gnoded is older than containers of steps: the tasks would run outside"},
	} {
		r, n := run(x.images...)
		text := fmt.Sprint(r.failed)
		at := slices.IndexFunc(strings.Split(x.want, "|"), func(w string) bool { return text == "step 7.3 did not start: "+w })
		if _, err := os.Stat(filepath.Join(n.dir, "ran")); err == nil || at < 0 || n.stopped.Load() != 1 {
			t.Errorf("%v: %+v, ran: %v, ended %d times", x.images, r, err == nil, n.stopped.Load())
		}
	}
	// The environment of who runs in the image already is left as it is.
	n = two()
	n.images = []string{"a", "a"}
	r = play(t, n, "echo $PATH", func(o *Options) { box(o); o.Body.Env = append(o.Body.Env, "GANG_CONTAINER_IMAGE=/image") })
	if line := "/usr/bin:/bin\n"; r.out != line+line+line {
		t.Errorf("%+v", r)
	}
	// As long as an image is being imported a step is not late, and how far it is is said.
	n = two()
	n.mute = true
	n.importing.Store(2)
	r = play(t, n, "true", box)
	if !strings.Contains(r.err, "grun: importing its image: 1M of 3M on n2\n") || !strings.Contains(fmt.Sprint(r.failed), "has already ended") || n.importing.Load() != -1 {
		t.Errorf("%+v, asked %d times", r, n.importing.Load())
	}
}

// TestComponentsHaveTheirOwn: each component of a step has its own program, and its output goes where that component's does.
func TestComponentsHaveTheirOwn(t *testing.T) {
	n := &nodes{tasks: [][]int{{0, 1}, {2}, {3}}, groups: []int{0, 1, 2}}
	var out, errs [2]safeBuffer
	r := play(t, n, "echo first; echo of first >&2", func(o *Options) {
		for i, name := range []string{"second", "third"} {
			body := o.Body
			body.Programs = []stepwire.Program{{Argv: []string{"/bin/sh", "-c", "echo " + name + "; echo of " + name + " >&2"}}}
			o.More = append(o.More, Component{Body: body, Output: Output{Stdout: &out[i], Stderr: &errs[i], OnlyTask: -1, OnlyErr: -1}})
		}
	})
	if r.failed != nil || r.code != 0 || r.out != "first\nfirst\n" || r.err != "of first\nof first\n" {
		t.Errorf("the first: %+v", r)
	}
	for i, name := range []string{"second", "third"} {
		if out[i].String() != name+"\n" || errs[i].String() != "of "+name+"\n" {
			t.Errorf("the %s: %q, %q", name, out[i].String(), errs[i].String())
		}
	}
}

// TestOverItsLimit: the controller hears that a step is ended for its own time limit before its tasks are.
func TestOverItsLimit(t *testing.T) {
	n := two()
	r := play(t, n, "sleep 60", func(o *Options) { o.Ask.TimeLimit = 100 * time.Millisecond })
	if n.stopped.Load() != 1 || n.cause.Load() != api.CauseTimeout || !strings.Contains(r.err, "reached its time limit of 100 ms") || r.code != 143 {
		t.Errorf("%+v, ended %d times, cause %v", r, n.stopped.Load(), n.cause.Load())
	}
}

// TestTogether: a node that has the step's image waits until all have it.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &step{parts: make([]part, 3), images: newVotes(), offers: newVotes(), off: make(chan struct{}), changed: make(chan struct{}, 1)}
		begun := make(chan bool, len(s.parts))
		for i := range s.parts {
			if len(begun) != 0 {
				t.Fatalf("a node began when %d of %d had the image", i, len(s.parts))
			}
			go func() { begun <- s.together(t.Context(), s.images, fmt.Sprint("n", i), "a", otherImage) }()
			synctest.Wait()
		}
		for range s.parts {
			if !<-begun {
				t.Error("a node does not begin though all have the image")
			}
		}
	})
}

// TestLaunchTime: nodes have so long to come, and none of it runs while one of them imports the step's image.
func TestLaunchTime(t *testing.T) {
	n := &nodes{silent: true}
	n.importing.Store(2)
	s := &step{o: &Options{Name: "grun", Say: io.Discard}, c: n, parts: make([]part, 1), reply: &api.StepReply{JobID: 7, StepID: 3, Nodes: []api.StepNode{{Name: "n2"}}}}
	s.o.Ask.Container = &api.Container{Image: "/image"}
	late := func() time.Time { return time.Now().Add(-2 * launchFor) }
	for range 2 {
		from := late()
		if err := s.checkLaunch(t.Context(), &from); err != nil || time.Since(from) > launchFor {
			t.Fatalf("while it imports: %v, counted from %s", err, from)
		}
	}
	from := time.Now()
	if err := s.checkLaunch(t.Context(), &from); err != nil {
		t.Errorf("in time: %v", err)
	}
	from = late()
	if err := s.checkLaunch(t.Context(), &from); err == nil || !strings.HasSuffix(err.Error(), "did not start: no word from n2 within 60 s") || n.stopped.Load() != 1 {
		t.Errorf("too late: %v, ended %d times", err, n.stopped.Load())
	}
}

// TestWithoutPMIx: where no node offers PMIx a step that asks for it runs without, which is said once; where some do it doesn't run.
func TestWithoutPMIx(t *testing.T) {
	const line = "grun: --mpi=pmix: no PMIx is offered here: what calls it (programs of Open MPI) runs each task alone, as rank 0 of 1; start " +
		"that with mpirun in the allocation, which uses srun\n"
	for _, c := range []struct {
		mpi   string
		quiet int
		err   string
	}{{"", 0, ""}, {api.MPINone, 0, ""}, {api.MPIPMIx, 0, line}, {api.MPIPMIx, 1, ""}} {
		n := &nodes{tasks: [][]int{{0}, {1}}}
		r := play(t, n, `echo "x${PMIX_RANK-}"`, func(o *Options) { o.MPI, o.Quiet = c.mpi, c.quiet })
		if r.out != "x\nx\n" || r.err != c.err || r.code != 0 || r.failed != nil {
			t.Errorf("%q, quiet %d: %+v, want %q", c.mpi, c.quiet, r, c.err)
		}
	}
	s := &step{o: &Options{Quiet: 1}, parts: make([]part, 2), offers: newVotes(), off: make(chan struct{}), changed: make(chan struct{}, 1)}
	first := make(chan bool)
	go func() { first <- s.together(t.Context(), s.offers, "n1", offer(true), otherOffer) }()
	for s.mu.Lock(); len(s.offers.of) == 0; s.mu.Lock() {
		s.mu.Unlock()
		runtime.Gosched()
	}
	s.mu.Unlock()
	if s.together(t.Context(), s.offers, "n2", offer(false), otherOffer) || <-first {
		t.Error("a step begins with PMIx on one of two nodes")
	}
	if want := "n2: no PMIx is offered (libpmix.so.2 and gpmix) here, and on n1 PMIx is offered: tasks of one step can't have it on some nodes alone"; s.refused != want {
		t.Errorf("refused with %q, want %q", s.refused, want)
	}
}
