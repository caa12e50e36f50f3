package e2e

import (
	"os/user"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// TestReservation: a gang on a node that is reserved is stopped in time and goes on elsewhere, others
// wait, the reservation's own start there, and a controller that was killed knows it yet.
func TestReservation(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--gpus=1x80G")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	sleep := c.script("sleep.sh", "#!/bin/bash\nsleep 600\n")
	first := c.wait(c.submit("--gpus-per-rank=1", sleep), api.JobRunning)
	node := first.Nodes[0]
	if _, stderr, code := c.run("gctl", "create", "reservation", "talk", "starttime=now", "duration=60", "nodes="+node, "users="+me.Username); code != 1 ||
		!strings.Contains(stderr, "job 1 is on these nodes and may run without a limit") {
		t.Fatalf("status %d: %s", code, stderr)
	}
	c.must("gctl", "create", "reservation", "talk", "starttime=now+3", "duration=60", "nodes="+node, "users="+me.Username, "flags=drain")
	c.until("the gang has gone elsewhere", func() bool {
		j := c.job(first.JobID)
		return j.State == api.JobRunning && j.Nodes[0] != node
	})
	if ev := c.eventsOf(first.JobID, api.EventDrainStarted); len(ev) != 1 || ev[0].Cause != api.CauseRequeued || !strings.Contains(ev[0].Text, "for reservation talk") {
		t.Errorf("%+v", ev)
	}
	if out := c.must("ginfo", "-h", "-t", "resv"); !strings.HasPrefix(out, node+" ") || !strings.Contains(out, "reservation talk until ") {
		t.Errorf("ginfo: %s", out)
	}
	other := c.submit("--gpus-per-rank=1", sleep)
	c.until("it is told of the reservation", func() bool { return c.job(other).Reason == "ReqNodeNotAvail" })
	if why := c.must("gqueue", "--why", "2"); !strings.Contains(why, node+" is reserved until ") || !strings.Contains(why, "for reservation talk") {
		t.Errorf("why: %s", why)
	}
	own := c.wait(c.submit("--gpus-per-rank=1", "--reservation=talk", c.script("own.sh", "#!/bin/bash\ntest \"$SLURM_JOB_RESERVATION\" = talk && sleep 600\n")), api.JobRunning)
	if own.Nodes[0] != node {
		t.Errorf("it runs on %v", own.Nodes)
	}
	c.kill("gangd")
	c.restart("gangd")
	if out := c.must("gctl", "show", "reservation", "talk"); !strings.Contains(out, "State=ACTIVE") {
		t.Errorf("after a restart: %s", out)
	}
	c.must("gcancel", "3")
	c.wait(own.JobID, api.JobCancelled)
	if j := c.job(other); j.State != api.JobPending {
		t.Errorf("it is %s on a node of others", j.State)
	}
	c.must("gctl", "delete", "reservation", "talk")
	c.wait(other, api.JobRunning)
}
