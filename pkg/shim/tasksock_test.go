package shim

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/jobapi"
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
	m.dropHanded(3)
	if got := names(); got != "g3.2 n3.2" {
		t.Errorf("what was handed over is left: %s", got)
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
