package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// rebooter is a lab whose nodes have a program that reboots them: it leaves a word for the test, which cuts the power of the host.
type rebooter struct {
	*lab
	dir string
}

func rebootLab(t *testing.T, nodes int) *rebooter {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"reboot": `[ ! -e $0.broken.$1 ] || { echo no power >&2; exit 7; }; : >$0.told.$1`,
		"fit":    `[ ! -e $0.not.$1 ] || { echo no scratch; exit 1; }`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l := build(t, options{nodes: nodes, gangd: []string{`heartbeat = "200ms"`, `node_timeout = "1s"`, `reboot_timeout = "2m"`},
		node: []string{fmt.Sprintf("health_program = %q", filepath.Join(dir, "fit")), `health_interval = "300ms"`,
			fmt.Sprintf("reboot_program = %q", filepath.Join(dir, "reboot"))}})
	return &rebooter{l, dir}
}

func (r *rebooter) mark(name string, there bool) {
	r.t.Helper()
	path, err := filepath.Join(r.dir, name), error(nil)
	if there {
		err = os.WriteFile(path, nil, 0o644)
	} else {
		err = os.Remove(path)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// powerCycle is what the program of a node brings about.
func (r *rebooter) powerCycle(name string) {
	r.t.Helper()
	r.until(name+" is told to reboot", func() bool {
		_, err := os.Stat(filepath.Join(r.dir, "reboot.told."+name))
		return err == nil
	})
	r.mark("reboot.told."+name, false)
	if n := r.node(name); n.State != api.NodeRebooting || len(n.Jobs) > 0 {
		r.t.Errorf("%s was told to reboot, and is %s with jobs %v", name, n.State, n.Jobs)
	}
	r.reboot(name)
	tally.Did("reboot that was asked for", 1)
}

// Four nodes with jobs are rebooted by each word while others wait for them, and the controller dies in between. No job is lost
// or run twice, and none is placed on a node between the word to it and its hello under another boot, well by its own check.
func TestHostsRebootAsAsked(t *testing.T) {
	r := rebootLab(t, 4)
	var running, waiting []int64
	for i := range 4 {
		running = append(running, r.submit(fmt.Sprintf("--nodelist=n%d", i+1), "--wrap", r.rank("done", 0)))
		r.runs(running[i], 1, 1)
	}
	for range 6 {
		waiting = append(waiting, r.submit("--exclusive", "--wrap", "sleep 0.2"))
	}
	r.mark("reboot.broken.n4", true)
	r.must("gctl", "node", "reboot", "--when=asap", "--reason=kernel", "n1")
	r.must("gctl", "node", "reboot", "--when=asap", "--then=down", "--reason=disk", "n2")
	r.must("gctl", "node", "reboot", "n3")
	r.must("gctl", "node", "reboot", "--when=asap", "n4")
	for name, want := range map[string]api.NodeState{"n1": api.NodeDraining, "n2": api.NodeDraining, "n3": api.NodeUp, "n4": api.NodeDraining} {
		if n := r.node(name); n.State != want || n.Reboot == nil || !n.Reboot.Issued.IsZero() {
			t.Errorf("%s is %s, reboot %+v", name, n.State, n.Reboot)
		}
	}
	r.kill9("ctl")
	r.gangd()
	for i := range 4 {
		r.until("the nodes are back", func() bool {
			s := r.node(fmt.Sprintf("n%d", i+1)).State
			return s == api.NodeUp || s == api.NodeDraining
		})
	}
	r.touch("done")
	for _, id := range running {
		r.wait(id, api.JobCompleted)
	}
	r.mark("fit.not.n1", true)
	for _, n := range []string{"n1", "n2", "n3"} {
		r.powerCycle(n)
	}
	r.kill9("ctl")
	r.gangd()
	time.Sleep(2 * time.Second) // which is longer than a node may be silent that does not reboot
	if lost := r.must("ginfo", "--lost", "-h"); strings.TrimSpace(lost) != "" {
		t.Errorf("lost: %s", lost)
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		r.gnoded(n)
	}
	r.until("n1 is kept out by its own check", func() bool { n := r.node("n1"); return n.State == api.NodeDrained && n.Reason == "health: no scratch" })
	r.until("n2 is down, as asked", func() bool { n := r.node("n2"); return n.State == api.NodeDrained && n.Down && n.Reason == "disk" })
	r.untilNode("n3", api.NodeUp)
	r.until("n4 says what went wrong", func() bool {
		n := r.node("n4")
		return n.State == api.NodeDrained && strings.Contains(n.Reason, "reboot failed:") && strings.Contains(n.Reason, "exit status 7: no power")
	})
	r.mark("fit.not.n1", false)
	r.untilNode("n1", api.NodeUp)
	for _, id := range append(running, waiting...) {
		if j := r.wait(id, api.JobCompleted, api.JobFailed, api.JobCancelled); j.State != api.JobCompleted || j.Epoch != 1 {
			t.Errorf("job %d is %s in epoch %d", id, j.State, j.Epoch)
		}
	}
	r.unproven()
}

// unproven compares what was placed where with when nodes were away.
func (r *rebooter) unproven() {
	r.t.Helper()
	var wrong []string
	away := map[string]bool{}
	for _, ev := range r.events() {
		switch ev.Type {
		case api.EventNodeRebooting:
			away[ev.Node] = true
		case api.EventNodeUp:
			if strings.HasPrefix(ev.Text, "rebooted") {
				delete(away, ev.Node)
			}
		case api.EventReserved:
			for _, n := range ev.Nodes {
				if away[n] {
					wrong = append(wrong, fmt.Sprintf("job %d was placed on %s, which reboots", ev.JobID, n))
				}
			}
		}
	}
	tally.Checked(r.t, "jobs placed on a node that has not proven itself", wrong...)
}
