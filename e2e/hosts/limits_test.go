package hosts

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// limitTasks puts everything on a host under a limit of processes and threads, as systemd
// puts a service under TasksMax.
func (l *lab) limitTasks(host string, most int) {
	l.t.Helper()
	dir := fmt.Sprintf("/sys/fs/cgroup/pids/gh%d.%s", os.Getpid(), host)
	if err := os.Mkdir(dir, 0o755); err != nil {
		tally.Skip(l.t, "no pids cgroup for a fork bomb: %v", err)
	}
	h := l.hosts[host]
	l.t.Cleanup(func() {
		h.crash()
		removeGroup(dir)
	})
	pids := []int{h.proc.Process.Pid}
	for _, p := range h.processes() {
		pids = append(pids, p.pid)
	}
	for _, pid := range pids {
		if err := os.WriteFile(dir+"/cgroup.procs", []byte(fmt.Sprint(pid)), 0o644); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/pids.max", []byte(fmt.Sprint(most)), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// A fork bomb uses up the processes of its host: the job is ended like any other, nothing of
// it is left, others notice nothing, and the host takes work again.
func TestForkBomb(t *testing.T) {
	tally.Need(t, "perl") // its fork bomb does not mind that fork fails
	l := build(t, options{nodes: 2, gangd: []string{`grace = "1s"`, `drain_slack = "5s"`}})
	l.limitTasks("n1", 400)
	node := l.program("n1", "gnoded", "--config", l.conf("n1"), "--set", "job_processes=400")
	l.kill9("n1")
	l.gnodedWith("n1", node)
	l.untilNode("n1", api.NodeUp)
	other := l.submit("--nodelist=n2", "--wrap", l.rank("done", 5))
	// One process of one thread: it needs no more than it has.
	beside := l.submit("--nodelist=n1", "--wrap", `exec perl -e 'select undef, undef, undef, 0.05 until -e "done"; exit 6'`)
	l.runs(other, 1, 1)
	l.wait(beside, api.JobRunning)
	bomb := l.submit("--nodelist=n1", "--wrap", `exec perl -e '$SIG{TERM} = "IGNORE"; while (1) { fork; select undef, undef, undef, 0.01 }'`)
	l.until("the bomb has used up the host", func() bool { return len(l.hosts["n1"].processes()) > 250 })
	time.Sleep(time.Second) // it goes on
	tally.Did("fork bomb", 1)
	l.must("gcancel", fmt.Sprint(bomb))
	l.wait(bomb, api.JobCancelled)
	if d := l.daemon("n1"); !d.running() {
		t.Errorf("gnoded ended with %d", d.code)
	}
	if n := len(bombs(l)); n > 1 { // the rank beside it
		tally.Checked(t, "processes that escaped", bombs(l)...)
	}
	l.touch("done")
	for id, code := range map[int64]int{other: 5, beside: 6} {
		if j := l.wait(id, api.JobFailed); j.ExitCode == nil || *j.ExitCode != code || j.Epoch != 1 {
			t.Errorf("job %d ended with %v in epoch %d, want %d in 1\n%s", id, j.ExitCode, j.Epoch, code, l.story(id))
		}
	}
	l.wait(l.submit("--nodelist=n1", "--wrap", "true"), api.JobCompleted)
}

func bombs(l *lab) []string {
	var out []string
	for _, s := range l.strangers() {
		if strings.Contains(s, "(perl)") {
			out = append(out, s)
		}
	}
	return out
}

// gangd and gnoded with few open files: what they can't take is refused or waits, nothing of
// what was acknowledged is lost, and they live.
func TestFewOpenFiles(t *testing.T) {
	l := build(t, options{nodes: 2})
	few := l.program("ctl", "gangd", "--config", l.conf("gangd"))
	few.Soft = 64
	l.kill9("ctl")
	l.gangdWith(few)
	node := l.program("n1", "gnoded", "--config", l.conf("n1"))
	node.Soft = 64
	l.kill9("n1")
	l.gnodedWith("n1", node)
	l.untilNode("n1", api.NodeUp)
	// Followers hold connections open, more than there are descriptors.
	held := l.submit("-H", "--wrap", "true")
	var followers []net.Conn
	for range 100 {
		c, err := net.Dial("unix", filepath.Join(l.dir, "run", "gangd.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET /v1/jobs/%d/wait HTTP/1.1\r\nHost: gangd\r\n\r\n", held); err != nil {
			t.Fatal(err)
		}
		followers = append(followers, c)
	}
	tally.Did("connections held open beyond the limit of files", len(followers))
	s := l.submitters(8, "--wrap", "exit 0")
	time.Sleep(time.Second) // some wait for a connection now
	for _, c := range followers {
		c.Close()
	}
	at := s.count()
	l.until("more jobs are accepted", func() bool { return s.count() > at+50 })
	s.end()
	l.until("all jobs have ended", func() bool { return l.must("gqueue", "-h", "-t", "R,CG,PD", "-o", "%i") == fmt.Sprintln(held) })
	for _, h := range []string{"ctl", "n1"} {
		if !l.daemon(h).running() {
			t.Errorf("the daemon of %s ended with %d", h, l.daemon(h).code)
		}
	}
}

// The controller is frozen and thawed: nodes take it for a cut, commands wait, nothing is
// lost.
func TestControllerFrozen(t *testing.T) {
	l := build(t, options{nodes: 2, gangd: []string{`heartbeat = "100ms"`, `node_timeout = "3s"`}})
	id := l.submit("--size=2", "--ranks-per-node=1", "--wrap", l.rank("done", 7))
	l.runs(id, 1, 2)
	if err := l.daemon("ctl").signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	tally.Did("gangd frozen and thawed", 1)
	l.touch("done")
	l.until("the ranks have ended", func() bool { return len(l.living()) == 0 })
	time.Sleep(time.Second) // some beats are missed
	if err := l.daemon("ctl").signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if j := l.wait(id, api.JobFailed); j.ExitCode == nil || *j.ExitCode != 7 || j.Epoch != 1 {
		t.Errorf("ended with %v in epoch %d, want 7 in 1\n%s", j.ExitCode, j.Epoch, l.story(id))
	}
}

// An old copy of the store is put back under running gangs: gangd holds, names both commit
// numbers, touches nothing; with the newest one put back it goes on as if nothing had been.
func TestOldStorePutBack(t *testing.T) {
	l := build(t, options{nodes: 2, gangd: []string{`heartbeat = "100ms"`}})
	l.submit("-H", "--wrap", "true")
	old := filepath.Join(l.dir, "old")
	l.must("gangd", "backup", old)
	id := l.submit("--size=2", "--ranks-per-node=1", "--wrap", l.rank("done", 8))
	l.runs(id, 1, 2)
	l.until("it is known to run", func() bool { return l.job(id).Ranks[1].PID != 0 })
	var before string
	l.until("a node has heard of the newest commit", func() bool {
		var p api.PingReply
		l.client().Decode(&p, "gctl", "ping", "--json")
		b, _ := os.ReadFile(filepath.Join(l.state("n1"), "lineage"))
		before, _, _ = strings.Cut(strings.TrimSpace(string(b)), " ") // the controller's run follows
		return before == fmt.Sprint(p.Lineage)
	})
	l.kill9("ctl")
	newest := filepath.Join(l.dir, "newest")
	for _, mv := range [][2]string{{l.state("ctl"), newest}, {old, l.state("ctl")}} {
		if err := os.Rename(mv[0], mv[1]); err != nil {
			t.Fatal(err)
		}
	}
	tally.Did("old copy of the store put back", 1)
	l.gangdWith(l.program("ctl", "gangd", "--config", l.conf("gangd")))
	var said string
	l.until("gangd is on hold", func() bool { said, _, _ = l.run("gctl", "ping"); return strings.Contains(said, "HOLD") })
	t.Log(strings.TrimSpace(said))
	var have, seen int
	at := max(0, strings.Index(said, "HOLD"))
	var node string
	if _, err := fmt.Sscanf(said[at:], "HOLD: the store is at commit %d, but node %s has seen commit %d", &have, &node, &seen); err != nil || have >= seen {
		t.Errorf("gctl ping: %s(%v), want both commit numbers, n1 has seen %s", said, err, before)
	}
	time.Sleep(time.Second) // ten beats in which something could be stopped
	if n := len(l.living()); n != 2 {
		t.Errorf("%d of 2 ranks live on hold", n)
	}
	l.kill9("ctl")
	if err := os.RemoveAll(l.state("ctl")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(newest, l.state("ctl")); err != nil {
		t.Fatal(err)
	}
	l.gangd()
	l.untilNode("n1", api.NodeUp)
	l.untilNode("n2", api.NodeUp)
	// Before they may end: the first to exit with a code has its sibling told to.
	w := l.witnesses(id)
	for rank := range 2 {
		if s := w[key{id, 1, rank}]; s.term != 0 {
			t.Errorf("rank %d was told to end", rank)
		}
	}
	l.touch("done")
	if j := l.wait(id, api.JobFailed); j.ExitCode == nil || *j.ExitCode != 8 || j.Epoch != 1 {
		t.Errorf("ended with %v in epoch %d, want 8 in 1\n%s", j.ExitCode, j.Epoch, l.story(id))
	}
}
