package hosts

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// short makes losses of seconds instead of minutes.
var shortTimes = []string{`heartbeat = "200ms"`, `node_timeout = "1s"`, `lease = "3s"`, `grace = "500ms"`, `drain_slack = "500ms"`, "node_lost_retries = 1000"}

const shortLease, shortGrace = 3 * time.Second, 500 * time.Millisecond

// Packets to or from a node are really dropped, or answered in the controller's name by
// somebody else: its ranks end by themselves when the lease
// does, and only then is the gang placed again. The ranks are the witnesses.
func TestCutUntilTheLeaseEnds(t *testing.T) {
	long(t)
	for _, c := range []cut{cutBoth, cutOut, cutIn, cutCable, cutReject, cutReset} {
		t.Run(strings.ReplaceAll(string(c), " ", "-"), func(t *testing.T) {
			if !c.usable() {
				needFirewall(t)
			}
			l := build(t, options{nodes: 4, gangd: shortTimes})
			id := l.submit("--size=2", "--ranks-per-node=1", "--wrap", l.rank("done", 0))
			l.runs(id, 1, 2)
			node := l.job(id).Ranks[1].Node
			at := boottime()
			l.cut(node, c)
			l.runs(id, 2, 2)
			again := l.job(id)
			w := l.witnesses(id)
			lost, sibling := w[key{id, 1, 1}], w[key{id, 1, 0}]
			if sibling.term == 0 || lost.term == 0 {
				t.Fatalf("not told to end: rank 0 at %s, rank 1 at %s", sibling.term, lost.term)
			}
			// A beat is sent each 200 ms, and the lease counts from the last that was answered.
			if after := lost.term - at; after < shortLease-time.Second || after > shortLease+10*time.Second {
				t.Errorf("the cut rank was told to end %s after the cut, the lease is %s", after, shortLease)
			}
			var first time.Duration
			for rank := range 2 {
				if s := w[key{id, 2, rank}]; first == 0 || s.start < first {
					first = s.start
				}
			}
			t.Logf("cut %s: sibling told after %s, cut rank after %s, last sign of life %s, placed again %s",
				c, (sibling.term - at).Round(time.Millisecond), (lost.term - at).Round(time.Millisecond), (lost.last - at).Round(time.Millisecond), (first - at).Round(time.Millisecond))
			var early []string
			if first <= lost.last {
				early = append(early, fmt.Sprintf("epoch 2 began %s before the last sign of life of epoch 1", lost.last-first))
			}
			tally.Checked(t, "gangs placed again before the lease's end", early...)
			tally.Checked(t, "epochs that overlap", overlaps(w)...)
			for _, n := range again.Nodes {
				if n == node {
					t.Errorf("placed again on the lost node %s", n)
				}
			}
			l.heal(node)
			l.untilNode(node, api.NodeUp)
			l.touch("done")
			l.wait(id, api.JobCompleted)
		})
	}
}

// Cuts that end in time, of every kind and flapping: no rank dies of them, and exits that
// happen behind a cut are recorded once, with their codes.
func TestCutsThatEndInTime(t *testing.T) {
	l := build(t, options{nodes: 2, gangd: []string{`heartbeat = "100ms"`, `node_timeout = "20s"`}})
	stays := l.submit("--size=2", "--ranks-per-node=1", "--wrap", l.rank("done", 0))
	l.runs(stays, 1, 2)
	node := l.job(stays).Ranks[1].Node
	kinds := []cut{cutBoth, cutReset, cutCable, cutOut, cutIn, cutReject}
	if !isLong() {
		kinds = kinds[:3]
	}
	for i, c := range kinds {
		if !c.usable() {
			t.Logf("skipped: a cut %s, which needs iptables", c)
			continue
		}
		file := fmt.Sprintf("go%d", i)
		id := l.submit("--nodelist="+node, "--wrap", l.rank(file, 10+i))
		epoch := l.placed(id, 1)
		l.cut(node, c)
		l.until("the node is suspect", func() bool { return l.node(node).State != api.NodeUp })
		l.touch(file)
		l.until("the rank has ended", func() bool { return len(l.living()) == 2 })
		for range 3 { // flapping
			l.heal(node)
			time.Sleep(50 * time.Millisecond)
			l.cut(node, c)
			time.Sleep(50 * time.Millisecond)
		}
		l.heal(node)
		j := l.wait(id, api.JobFailed)
		if j.ExitCode == nil || *j.ExitCode != 10+i || j.Epoch != epoch {
			t.Errorf("cut %s: ended with %v in epoch %d, want %d in %d\n%s", c, j.ExitCode, j.Epoch, 10+i, epoch, l.story(id))
		}
	}
	l.untilNode(node, api.NodeUp)
	if j := l.job(stays); j.State != api.JobRunning || j.Epoch != 1 {
		t.Errorf("the gang is %s in epoch %d", j.State, j.Epoch)
	}
	l.touch("done")
	l.wait(stays, api.JobCompleted)
	w := l.witnesses(0)
	tally.Checked(t, "epochs that overlap", overlaps(w)...)
	for k, s := range w {
		if s.term != 0 {
			t.Errorf("job %d rank %d was told to end", k.job, k.rank)
		}
	}
}

// No controller runs for longer than the lease, and its host says so: no rank dies of that,
// also where a node's daemon was killed and started meanwhile.
func TestControllerDownOverTheNetwork(t *testing.T) {
	long(t)
	for _, how := range []string{"killed", "stopped", "its disk failed"} {
		// Nodes ask at least each second or so: the lease has to be well above that.
		l := build(t, options{nodes: 2, gangd: []string{`lease = "4s"`, `heartbeat = "200ms"`, `node_timeout = "2s"`, `grace = "500ms"`, `drain_slack = "500ms"`}})
		id := l.submit("--size=2", "--ranks-per-node=1", "--wrap", l.rank("done", 6))
		l.runs(id, 1, 2)
		switch how {
		case "killed":
			l.kill9("ctl")
			tally.Did("kill -9 of gangd", 1)
		case "stopped":
			if code := l.daemon("ctl").kill(syscall.SIGTERM); code != 0 {
				t.Errorf("gangd ended with %d after TERM", code)
			}
		default:
			stop := l.inject(l.daemon("ctl"), "error=EIO")
			tally.Did("fsync of gangd failing with EIO", 1)
			go l.run("gsubmit", "-H", "--wrap", "true") // tries until gangd is back
			l.until("gangd has ended", func() bool { return !l.daemon("ctl").running() })
			stop()
		}
		if how != "killed" {
			// Its kernel's word is not enough: it resets a session in which a node's words lie unread.
			l.until("the nodes have heard that gangd ends", func() bool {
				return strings.Contains(l.log("n1"), "controller is stopping") && strings.Contains(l.log("n2"), "controller is stopping")
			})
		}
		time.Sleep(2 * time.Second)
		l.kill9("n2")
		tally.Did("kill -9 of gnoded", 1)
		l.gnoded("n2")
		time.Sleep(8 * time.Second)
		l.gangd()
		l.touch("done")
		j := l.wait(id, api.JobFailed)
		if j.ExitCode == nil || *j.ExitCode != 6 || j.Epoch != 1 {
			t.Errorf("%s: ended with %v in epoch %d, want 6 in 1\n%s", how, j.ExitCode, j.Epoch, l.story(id))
		}
	}
}
