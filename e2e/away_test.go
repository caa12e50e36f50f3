package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// The controller is down for longer than the lease, but its host answers: no rank dies of
// that, and what ended meanwhile is recorded once, with its code. The long form is ten minutes.
func TestControllerDownLongerThanTheLease(t *testing.T) {
	t.Parallel()
	chaos(t)
	// A node looks for the controller at least every 2 s: the lease has to be well above that.
	down, lease := 12*time.Second, "lease=6s"
	if rounds(1) > 1 {
		down, lease = 10*time.Minute, "lease=20s"
	}
	c := start(t, "--nodes=3", "--cpus=16", "--set", lease, "--set", "grace=1s")
	id := c.submit(c.script("b.sh", strings.Replace(beating, "sleep 0.02", "sleep 0.2", 1)))
	const n = 10
	ends := map[int64]int{}
	for code := range n {
		job := c.submit("-o", "/dev/null", "--wrap", fmt.Sprintf("while [ ! -e go.%d ]; do sleep 0.2; done; echo $GANG_EPOCH >> ended.%d; exit %d", code, code, code))
		ends[job] = code
	}
	c.epochRuns(id, 1)
	for job := range ends {
		c.wait(job, api.JobRunning)
	}
	before := c.job(id)
	c.kill("gangd")
	for i := range n {
		time.Sleep(down / (n + 1))
		c.touch("go." + strconv.Itoa(i))
		if i == n/2 {
			c.kill("n1") // a daemon that starts while there is no controller renews the leases too
			c.spawn("n1")
		}
	}
	time.Sleep(down / (n + 1))
	c.restart("gangd")
	for job, code := range ends {
		j := c.wait(job, api.JobFailed, api.JobCompleted)
		if j.ExitCode == nil || *j.ExitCode != code || j.Epoch != 1 {
			t.Errorf("job %d ended with %v in epoch %d, want %d in epoch 1", job, j.ExitCode, j.Epoch, code)
		}
		if got := len(c.eventsOf(job, api.EventEnded)); got != 1 {
			t.Errorf("job %d: %d ended events", job, got)
		}
		if got := lines(t, c.tmp+"/ended."+strconv.Itoa(code)); len(got) != 1 || got[0] != "1" {
			t.Errorf("job %d: ran to its end in epochs %q, want 1 alone", job, got)
		}
	}
	j := c.job(id)
	if j.State != api.JobRunning || j.Epoch != 1 {
		t.Errorf("the gang is %s in epoch %d, want RUNNING in 1\n%s", j.State, j.Epoch, c.story(id))
	}
	for i, r := range j.Ranks {
		if r.PID != before.Ranks[i].PID || !running(r.PID) {
			t.Errorf("rank %d is process %d, was %d", i, r.PID, before.Ranks[i].PID)
		}
	}
	if s := c.seen(id); len(s.term) != 0 {
		t.Errorf("ranks were told to end: %v", s.term)
	}
}
