package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/e2e/tally"
	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// loss is something that n1 loses while n2 has it.
type loss struct {
	name   string
	take   func(l *lab)
	back   func(l *lab)
	asks   string // of bob's jobs, as options of gsubmit
	reason string // what has to be said of n1, in part
	// drained: n1 takes itself out of service with the first refusal, at the latest, and comes back by
	// itself. Else it is in service until enough speaks against it.
	drained bool
	// known: the controller hears of it by itself, and may before a job is refused.
	known bool
	// stays: whatever speaks against it, it is not drained.
	stays  bool
	unless func(l *lab) string // why it can't be played here; nil: it can
	long   bool                // it takes longer than CI has
}

// undeclared are losses on a node that was told nothing of what it must have.
var undeclared = []loss{
	{name: "home", reason: "the home directory /home/bob is not there on this node", take: unmountHome, back: mountHome},
	{name: "user", reason: "user bob is not known on this node",
		take: func(l *lab) {
			l.edit("n1", "passwd", func(s string) string { s, _, _ = strings.Cut(s, "bob:"); return s })
		},
		back: func(l *lab) {
			l.edit("n1", "passwd", func(s string) string { return s + strings.SplitAfter(people["passwd"], "\n")[1] })
		}},
	{name: "user database", reason: "user bob is not known on this node", long: true,
		take: func(l *lab) { l.edit("n1", "passwd", func(s string) string { return strings.Repeat("\n", len(s)) }) },
		back: func(l *lab) { l.edit("n1", "passwd", func(string) string { return passwd() }) }},
	{name: "3 of 8 cards", reason: "the driver does not list it any more", known: true, stays: true, asks: "--gpus-per-node=8",
		take: func(l *lab) { l.steer("n1", threeGone) }, back: func(l *lab) { l.steer("n1", "{}") }},
	{name: "driver", reason: "its cards can't be read: driver not loaded", long: true, asks: "--gpus=1",
		take: func(l *lab) { l.steer("n1", noDriver) }, back: func(l *lab) { l.steer("n1", "{}") }},
}

// declared are losses of what its configuration says that a node must have.
var declared = []loss{
	{name: "home", reason: "nothing is mounted at /home", drained: true, long: true, take: unmountHome, back: mountHome},
	{name: "driver at its start", reason: "its cards can't be read: driver not loaded", drained: true, asks: "--gpus=1", long: true,
		take: func(l *lab) { l.steer("n1", noDriver); l.again("n1", musts...) },
		back: func(l *lab) { l.steer("n1", "{}"); l.again("n1", musts...) }},
	{name: "3 of 8 cards", reason: "5 of 8 cards", drained: true, long: true, asks: "--gpus-per-node=8",
		take: func(l *lab) { l.steer("n1", threeGone) },
		back: func(l *lab) { l.steer("n1", "{}") }},
	{name: "memory controller", reason: "the memory controller of cgroup", drained: true, asks: "--mem=100M",
		unless: func(l *lab) string {
			if !isMount(memoryV1) || l.node("n1").Limits.Memory != api.LimitEnforced {
				return "no memory controller of cgroup v1 that could be unmounted"
			}
			return ""
		},
		take: func(l *lab) { l.mounts("n1", "umount", "--lazy", memoryV1) },
		back: func(l *lab) { l.mounts("n1", "mount", "-t", "cgroup", "-o", "memory", "cgroup", memoryV1) }},
	{name: "DNS", reason: "ctl has no address here", drained: true, long: true,
		take: func(l *lab) { l.mounts("n1", "mount", "--bind", os.DevNull, "/etc/hosts") },
		back: func(l *lab) { l.mounts("n1", "umount", "/etc/hosts") }},
}

// killed: bob's directory is a file system of his own that answers nothing, and a process of his ends each check that
// waits there.
var killed = loss{name: "check, killed by its user", stays: true, reason: "check as user bob: unexpected EOF",
	unless: func(*lab) string {
		fd, err := unix.Open("/dev/fuse", unix.O_RDWR, 0)
		if err != nil {
			return "no FUSE for a file system that answers nothing: " + err.Error()
		}
		_ = unix.Close(fd)
		return ""
	},
	take: func(l *lab) {
		d, err := l.hosts["n1"].start(&start{Args: []string{l.self, "/home/bob"}, Env: []string{role + "=killer"}, Log: filepath.Join(l.dir, "log", "killer.log")})
		if err != nil {
			l.t.Fatal(err)
		}
		l.killing = d
		l.until("bob's directory answers nothing", func() bool { return strings.Contains(l.log("killer"), "ready") })
	},
	back: func(l *lab) {
		l.killing.kill(syscall.SIGKILL)
		l.mounts("n1", "umount", "--lazy", "/home/bob")
	}}

// killerMain mounts a file system that answers nothing at a directory, becomes bob, and ends each check of his jobs.
func killerMain() {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR, 0)
	exitIf(err)
	exitIf(unix.Mount("hangs", os.Args[1], "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=20002,group_id=20002,allow_other", fd)))
	exitIf(errors.Join(syscall.Setgroups(nil), syscall.Setgid(20002), syscall.Setuid(20002)))
	for fmt.Println("ready"); ; time.Sleep(time.Millisecond) {
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range lines {
			if b, _ := os.ReadFile(path); string(b) == "gshim\x00check\x00" {
				_ = syscall.Kill(atoi(filepath.Base(filepath.Dir(path))), syscall.SIGKILL)
			}
		}
	}
}

// musts is what n1 is told that it must have.
var musts = []string{"--set", "require_mounts=/home", "--set", "expect_cards=8", "--set", "require_names=ctl"}

const (
	memoryV1  = "/sys/fs/cgroup/memory"
	threeGone = `{"5": {"gone": true}, "6": {"gone": true}, "7": {"gone": true}}`
	noDriver  = `{"driver": "driver not loaded", "cards": {}}`
)

func unmountHome(l *lab) { l.mounts("n1", "umount", "--lazy", "/home") }

// mountHome shows the homes again, which the host sees below the lab's directory too.
func mountHome(l *lab) { l.mounts("n1", "mount", "--bind", filepath.Join(l.dir, "home"), "/home") }

func passwd() string {
	b, _ := os.ReadFile("/etc/passwd")
	return string(b) + people["passwd"]
}

// TestNodeLosesWhatItNeeds: a node loses what jobs need, one thing after the other, while another has it. It is named
// within two tries, every job runs on the other one at once, none fails, what runs goes on, and the node
// works when it has it again.
func TestNodeLosesWhatItNeeds(t *testing.T) {
	l := losing(t)
	resident := l.bob("--nodelist=n1 --wrap 'until [ -e done ]; do sleep 0.1; done; exit 7'")
	l.wait(resident, api.JobRunning)
	for _, c := range append(undeclared, killed) {
		l.loses(&c, "")
	}
	l.again("n1", musts...)
	for _, c := range declared {
		l.loses(&c, " that is declared")
	}
	if err := os.WriteFile(filepath.Join(l.dir, "home/bob/done"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if j := l.wait(resident, api.JobFailed); j.Epoch != 1 || j.ExitCode == nil || *j.ExitCode != 7 {
		t.Errorf("the job that ran on n1 all the time ended with %v in epoch %d: %s\n%s", j.ExitCode, j.Epoch, j.Verdict, l.story(resident))
	}
}

// A node whose daemon is started again when the controller's name has no address there says so and goes on trying: its
// jobs run on, others run elsewhere meanwhile, and it is back by itself.
func TestNodeCantFindItsController(t *testing.T) {
	long(t)
	l := losing(t)
	l.again("n1", "--set", "controller=ctl:"+port)
	resident := l.bob("--nodelist=n1 --wrap 'until [ -e done ]; do sleep 0.1; done; exit 7'")
	l.wait(resident, api.JobRunning)
	l.mounts("n1", "mount", "--bind", os.DevNull, "/etc/hosts")
	l.kill9("n1")
	l.gnodedWith("n1", l.program("n1", "gnoded", "--config", l.conf("n1"), "--set", "controller=ctl:"+port))
	tally.Did("a node lost its DNS", 1)
	for range 3 {
		if j := l.wait(l.bob("--prefer=n1 --wrap true"), api.JobCompleted); !slices.Equal(j.Nodes, []string{"n2"}) {
			t.Errorf("job %d ran on %s", j.JobID, j.Nodes)
		}
	}
	l.until("gnoded says why it has no session", func() bool { return strings.Contains(l.log("n1"), "lookup ctl") })
	if s := l.node("n1").State; s == api.NodeUp {
		t.Errorf("n1 is %s", s)
	}
	l.mounts("n1", "umount", "/etc/hosts")
	l.untilNode("n1", api.NodeUp)
	if err := os.WriteFile(filepath.Join(l.dir, "home/bob/done"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if j := l.wait(resident, api.JobFailed); j.Epoch != 1 || j.ExitCode == nil || *j.ExitCode != 7 {
		t.Errorf("the job that ran there all the time ended with %v in epoch %d: %s", j.ExitCode, j.Epoch, j.Verdict)
	}
}

// losing is a site of two nodes with cards and people.
func losing(t *testing.T) *lab {
	t.Helper()
	tally.Need(t, "setpriv")
	var l *lab
	dir := t.TempDir() // of what hosts are dressed with, before there is a lab
	l = build(t, options{nodes: 2, gangd: []string{`retry_backoff = "30s"`, `heartbeat = "200ms"`},
		node: []string{`cards = "8x80G"`, `features = ["@"]`, fmt.Sprintf("sim_gpu_file = %q", filepath.Join(dir, "@.json"))},
		dress: func(name string, s *setup) {
			s.Binds = map[string]string{}
			for file, lines := range people {
				b, err := os.ReadFile(filepath.Join("/etc", file))
				own := filepath.Join(dir, name+"."+file)
				if err := errors.Join(err, os.WriteFile(own, append(b, lines...), 0o644)); err != nil {
					t.Fatal(err)
				}
				s.Binds[filepath.Join("/etc", file)] = own
			}
			s.Binds["/usr/local/bin"] = trial.Bin(t)
		}})
	l.etc = dir
	if err := os.Chmod(l.dir, 0o755); err != nil { // people come in
		t.Fatal(err)
	}
	l.homes()
	for _, h := range []string{"ctl", "n1", "n2"} {
		l.mounts(h, "mount", "--bind", filepath.Join(l.dir, "home"), "/home")
	}
	return l
}

// mounts runs a command among the mounts of a host.
func (l *lab) mounts(host string, args ...string) {
	l.t.Helper()
	if r := l.sh(host, "root", strings.Join(args, " ")); r.code != 0 {
		l.t.Fatalf("%s: %s: %s", host, strings.Join(args, " "), r.out)
	}
}

func isMount(dir string) bool {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	return strings.Contains(string(b), " "+dir+" ")
}

// edit changes a file of a host's own /etc, in its place.
func (l *lab) edit(host, file string, change func(string) string) {
	l.t.Helper()
	path := filepath.Join(l.etc, host+"."+file)
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(change(string(b))), 0o644)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// steer says what a node's simulated cards do.
func (l *lab) steer(host, text string) {
	l.t.Helper()
	path := filepath.Join(l.etc, host+".json")
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o644), os.Rename(path+".new", path)); err != nil {
		l.t.Fatal(err)
	}
}

// again starts a node's daemon anew, with more options.
func (l *lab) again(name string, more ...string) {
	l.t.Helper()
	l.kill9(name)
	l.gnodedWith(name, l.program(name, "gnoded", append([]string{"--config", l.conf(name)}, more...)...))
	l.until(name+" is back", func() bool {
		s := l.node(name).State
		return s == api.NodeUp || s == api.NodeDrained || s == api.NodeDraining
	})
}

// bob submits a job of bob's, on the controller's host.
func (l *lab) bob(args string) int64 {
	l.t.Helper()
	r := l.sh("ctl", "bob", fmt.Sprintf("GANG_DIR=%s gsubmit --parsable -o /dev/null %s", l.dir, args))
	id, err := strconv.ParseInt(strings.TrimSpace(r.out), 10, 64)
	if err != nil {
		l.t.Fatalf("gsubmit %s: %+v", args, r)
	}
	return id
}

// loses plays a loss: bob's jobs would rather run on n1, which fits them but for what it lacks.
func (l *lab) loses(c *loss, more string) {
	l.t.Run(c.name+more, func(t *testing.T) {
		was := l.t
		l.t = t
		defer func() { l.t = was }()
		if c.long {
			long(t)
		}
		if c.unless != nil {
			if why := c.unless(l); why != "" {
				tally.Skip(t, "%s", why)
			}
		}
		l.wait(l.bob("--nodelist=n1 "+c.asks+" --wrap true"), api.JobCompleted) // it could
		c.take(l)
		tally.Did("a node lost its "+c.name, 1)
		seen := len(l.events())
		var failed, slow []string
		for try := range 3 {
			id := l.bob("--prefer=n1 " + c.asks + " --wrap true")
			if j := l.wait(id, api.JobCompleted, api.JobFailed); j.State == api.JobFailed {
				failed = append(failed, l.story(id))
			}
			if n := l.node("n1"); try == 1 && !c.drained && !strings.Contains(amiss(&n), c.reason) {
				t.Errorf("after two tries n1 is %s because %q, want %q", n.State, amiss(&n), c.reason)
			}
		}
		if c.drained {
			l.until("n1 is out of service and says why", func() bool {
				n := l.node("n1")
				return (n.State == api.NodeDrained || n.State == api.NodeDraining) && strings.Contains(n.Reason, c.reason)
			})
		}
		if n := l.node("n1"); c.stays && n.State != api.NodeUp {
			t.Errorf("n1 is %s because %q", n.State, n.Reason)
		}
		events := l.events()[seen:]
		gaps := gaps(events)
		if !c.drained && !c.known && len(gaps) == 0 {
			t.Errorf("n1 refused nothing: %+v", events)
		}
		if c.drained && len(gaps) > 2 {
			t.Errorf("n1 refused %d jobs before it was out of service", len(gaps))
		}
		for _, d := range gaps {
			if d > 10*time.Second { // a second, but this machine does other things too
				slow = append(slow, d.String())
			}
		}
		slices.Sort(gaps)
		t.Logf("%d refusals, started elsewhere after %v; n1: %s", len(gaps), gaps, amiss(new(l.node("n1"))))
		tally.Checked(t, "jobs failed that another node could run", failed...)
		tally.Checked(t, "gangs that were not run elsewhere at once", slow...)
		c.back(l)
		if c.drained {
			l.untilNode("n1", api.NodeUp)
		} else {
			l.must("gctl", "node", "resume", "n1")
		}
		l.wait(l.bob("--nodelist=n1 "+c.asks+" --wrap true"), api.JobCompleted)
	})
}

// amiss is what is said of a node and of its cards.
func amiss(n *api.Node) string {
	out := []string{n.Reason}
	for _, c := range n.Cards {
		if c.Reason != "" {
			out = append(out, fmt.Sprintf("card %d: %s", c.Index, c.Reason))
		}
	}
	return strings.Join(out, "; ")
}

// gaps are the times from each refusal to the start elsewhere.
func gaps(events []api.Event) (out []time.Duration) {
	refused := map[int64]time.Time{}
	for _, e := range events {
		switch e.Type {
		case api.EventRolledBack:
			refused[e.JobID] = e.Time
		case api.EventStarted:
			if at, ok := refused[e.JobID]; ok {
				out = append(out, e.Time.Sub(at))
				delete(refused, e.JobID)
			}
		}
	}
	return out
}
