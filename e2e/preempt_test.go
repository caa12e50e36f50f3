package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestPreemptionOfACheckpointingGang: a gang of a higher priority takes the place of one
// that checkpoints. That one is told in time, hands over, waits, and goes on where it was;
// nothing is charged to it.
func TestPreemptionOfACheckpointingGang(t *testing.T) {
	c := start(t, "--nodes=2", "--gpus=2x80G", "--set", "preempt=tier")
	low := c.script("low.sh", `#!/bin/bash
n=$(base64 -d <<< "$CHECKPOINT_DATA"); n=${n:-0}
echo "epoch $GANG_EPOCH from $n" >> from.$GANG_RANK
trap stop=1 USR1
while [ $n -lt 150 ]; do
	sleep 0.02 & wait $!
	n=$((n + 1)); echo $n >> count.$GANG_RANK
	if [ -n "$stop" ]; then
		gckpt put - <<< "$n"; echo "$n" >> saved.$GANG_RANK
		exec sleep 600
	fi
done
`)
	id := c.submit("--size=4", "--gpus-per-rank=1", "--signal=B:USR1@2", low)
	c.wait(id, api.JobRunning)
	c.until("every rank works", func() bool {
		for r := range 4 {
			if len(lines(t, c.tmp+fmt.Sprintf("/count.%d", r))) < 5 {
				return false
			}
		}
		return true
	})
	high := c.submit("--priority=10", "--size=4", "--gpus-per-rank=1", "-o", "/dev/null", "--wrap", "sleep 1")
	if got := c.wait(high, api.JobRunning, api.JobCompleted); got.StartTime.Sub(got.SubmitTime) < time.Second {
		t.Errorf("started %s after its submission: the notice is two seconds", got.StartTime.Sub(got.SubmitTime))
	}
	c.wait(high, api.JobCompleted)
	job := c.wait(id, api.JobCompleted)
	if job.Epoch != 2 || job.RestartCount != 1 {
		t.Errorf("epoch %d, %d restarts", job.Epoch, job.RestartCount)
	}
	for cause, b := range job.Budgets {
		if b.Used != 0 {
			t.Errorf("%s is charged %d", cause, b.Used)
		}
	}
	story := c.story(id)
	for _, want := range []string{"preempted for job " + fmt.Sprint(high), "notice USR1, 2 s before the end: preempted", "drain completed"} {
		if !strings.Contains(story, want) {
			t.Errorf("its story lacks %q:\n%s", want, story)
		}
	}
	for r := range 4 {
		saved := lines(t, c.tmp+fmt.Sprintf("/saved.%d", r))
		if len(saved) != 1 {
			t.Fatalf("rank %d saved %q", r, saved)
		}
		from := lines(t, c.tmp+fmt.Sprintf("/from.%d", r))
		if want := fmt.Sprintf("epoch 2 from %s", saved[0]); len(from) != 2 || from[1] != want {
			t.Errorf("rank %d began %q, want the second %q", r, from, want)
		}
		for i, l := range lines(t, c.tmp+fmt.Sprintf("/count.%d", r)) {
			if l != fmt.Sprint(i+1) {
				t.Fatalf("rank %d counted %s in place of %d", r, l, i+1)
			}
		}
	}
}
