package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// needsPython skips where the examples in Python can't run.
func needsPython(t *testing.T) {
	tool.Need(t, "python3")
}

// The coordinator and its workers of examples/roles: requeued in the middle the coordinator
// goes on from its file, its end ends the gang, and the workers are stopped and charge nothing.
func TestExampleRoles(t *testing.T) {
	t.Parallel()
	needsPython(t)
	c := start(t, "--nodes=3")
	c.example("roles/squares.py")
	id := c.submit("-o", "sq.%t", c.script("squares.sh", `#!/bin/bash
#GANG --role=coordinator:1,ends=gang
#GANG --role=worker:3,gpus-per-rank=1,cpus=2
#GANG --ready-timeout=5m
exec python3 squares.py --upto 300 --seconds 0.02
`))
	c.until("the work has begun", func() bool { return strings.Contains(c.read("sq.0"), "begins at 0") })
	c.until("everybody is ready", func() bool { r := c.job(id).Ready; return r != nil && r.Ranks == 4 && !r.Time.IsZero() })
	time.Sleep(300 * time.Millisecond)
	c.must("gctl", "requeue", fmt.Sprint(id))
	j := c.wait(id, api.JobCompleted)
	if j.RestartCount != 1 || j.Verdict != "role coordinator is done" || *j.ExitCode != 0 || j.Budgets[api.CauseCrash].Used != 0 {
		t.Errorf("%d restarts, exit %d, %q, budgets %+v\n%s", j.RestartCount, *j.ExitCode, j.Verdict, j.Budgets, c.story(id))
	}
	out := c.read("sq.0")
	again := regexp.MustCompile(`stopped at (\d+)\n(?s:.*)restart 1 begins at (\d+)\n`).FindStringSubmatch(out)
	if again == nil || again[1] != again[2] || !strings.Contains(out, fmt.Sprintf("done: the sum of the squares is %d\n", 300*301*601/6)) {
		t.Errorf("the coordinator wrote\n%s", out)
	}
	for _, r := range j.Ranks {
		want := map[bool]string{true: "coordinator done", false: "worker cancelled"}[r.Rank == 0]
		if got := r.Role + " " + string(r.State); got != want {
			t.Errorf("rank %d is a %s, want %s", r.Rank, got, want)
		}
		if r.Rank > 0 && len(r.Cards) != 1 || r.Rank == 0 && len(r.Cards) != 0 {
			t.Errorf("rank %d had cards %v", r.Rank, r.Cards)
		}
	}
}

// Workers that lose their coordinator and fail of it make no failed job: the true result of
// the coordinator counts, whoever is heard of first.
func TestCoordinatorsEndBeatsItsWorkersFailure(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=3")
	job := c.script("race.sh", `#!/bin/bash
#GANG --role=coordinator:1,ends=gang --role=worker:2 --output=/dev/null
if [ $GANG_ROLE = coordinator ]; then
	echo $$ > pid.$GANG_JOB_ID.new && mv pid.$GANG_JOB_ID.new pid.$GANG_JOB_ID
	while [ ! -e go.$GANG_JOB_ID ]; do sleep 0.01; done
	exit 0
fi
until [ -s pid.$GANG_JOB_ID ]; do sleep 0.01; done
while kill -0 $(cat pid.$GANG_JOB_ID) 2> /dev/null; do :; done
exit 1
`)
	for range rounds(10) {
		id := c.submit(job)
		c.until("the coordinator runs", func() bool { return c.read(fmt.Sprintf("pid.%d", id)) != "" })
		c.touch(fmt.Sprintf("go.%d", id))
		if j := c.wait(id, api.JobCompleted, api.JobFailed); j.State != api.JobCompleted || j.Ranks[0].State != api.RankDone {
			t.Errorf("%s: %s\n%s", j.State, j.Verdict, c.story(id))
		}
	}
}

// Of a gang that is not ready in time the record names who was not; who is ready is shown.
func TestNotReadyInTime(t *testing.T) {
	t.Parallel()
	beatWith(t)
	c := start(t, "--nodes=2", "--set=retry_backoff=50ms")
	id := c.submit("--role=quick:2", "--role=slow:1", "--ready-timeout=3", "--no-requeue", "-o", "/dev/null", c.script("gate.sh", `#!/bin/bash
[ $GANG_ROLE = quick ] && `+strings.Replace(beatWith(t), "systemd-notify WATCHDOG=1", "systemd-notify", 1)+`
exec sleep 600
`))
	c.until("two of three are ready", func() bool {
		j := c.job(id)
		return j.Ready != nil && j.Ready.Ranks == 2 && j.Ready.Size == 3 && j.Reason == "NotReady"
	})
	if got := strings.Fields(c.must("gqueue", "-h", "-j", fmt.Sprint(id), "-O", "reason,ready,roles")); strings.Join(got, " ") != "NotReady 2/3 quick:2,slow:1" {
		t.Errorf("gqueue shows %q", got)
	}
	j := c.wait(id, api.JobFailed)
	if want := "rank 2 (slow) not ready within 3 s (2 of 3 were)"; j.Verdict != want || j.Cause != api.CauseLaunch || *j.TriggerRank != 2 || j.Budgets[api.CauseLaunch].Used != 1 {
		t.Errorf("%s %q of rank %v, launch %+v", j.Cause, j.Verdict, j.TriggerRank, j.Budgets[api.CauseLaunch])
	}
}

// The gate that was passed stays so when the controller and the node daemons are killed, and
// what was said before is not forgotten by either.
func TestReadyGateOutlivesTheDaemons(t *testing.T) {
	t.Parallel()
	beat := strings.Replace(beatWith(t), "systemd-notify WATCHDOG=1", "systemd-notify", 1)
	c := start(t, "--nodes=2")
	job := c.script("gate.sh", `#!/bin/bash
[ $GANG_RANK = 1 ] && while [ ! -e go.$GANG_JOB_ID ]; do sleep 0.05; done
`+beat+`
gbarrier --ready > met.$GANG_RANK || echo $? > met.$GANG_RANK
exec sleep 600
`)
	id := c.submit("--size=2", "--ranks-per-node=1", "--ready-timeout=20", "-o", "/dev/null", job)
	c.until("one is ready", func() bool { r := c.job(id).Ready; return r != nil && r.Ranks == 1 })
	c.kill("gangd")
	c.restart("gangd")
	c.kill("n1")
	c.restart("n1")
	c.until("one is still ready", func() bool { r := c.job(id).Ready; return r != nil && r.Ranks == 1 })
	c.touch(fmt.Sprintf("go.%d", id))
	c.until("the gate is passed", func() bool { r := c.job(id).Ready; return r != nil && r.Ranks == 2 && !r.Time.IsZero() })
	c.until("both have met", func() bool { m, _ := filepath.Glob(filepath.Join(c.tmp, "met.*")); return len(m) == 2 })
	c.kill("gangd")
	c.restart("gangd")
	c.until("it is known to be passed", func() bool { r := c.job(id).Ready; return r != nil && !r.Time.IsZero() })
	if n := len(c.eventsOf(id, api.EventReady)); n != 1 {
		t.Errorf("%d ready events\n%s", n, c.story(id))
	}
	for r := range 2 {
		if got := c.read(fmt.Sprintf("met.%d", r)); got != "" {
			t.Errorf("gbarrier of rank %d: %q", r, got)
		}
	}
}

// A lead of 40 s ends when one rank has saved and the other, which said only that it is
// stopping, has ended; in either order.
func TestLeadEndsWithSavedAndEnded(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/python3")
	c := start(t, "--nodes=2")
	for _, order := range []string{"0.1 1.5", "1.5 0.1"} {
		var saves, ends string
		fmt.Sscan(order, &saves, &ends)
		id := c.submit("--size=2", "--ranks-per-node=1", "--signal=B:USR1@40", "--no-requeue", "-o", "/dev/null", c.script("two.sh", `#!/bin/bash
say() { /usr/bin/python3 -c 'import os,socket,sys
socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM).sendto(sys.argv[1].encode(),os.environ["NOTIFY_SOCKET"])' "$1"; }
if [ $GANG_RANK = 0 ]; then
	trap 'sleep `+saves+`; say X_GANG_CHECKPOINT=done' USR1
else
	trap 'say STOPPING=1; sleep `+ends+`; exit 0' USR1
fi
touch listens.$GANG_JOB_ID.$GANG_RANK
while :; do sleep 0.05; done
`))
		c.until("both listen", func() bool {
			f, _ := filepath.Glob(filepath.Join(c.tmp, fmt.Sprintf("listens.%d.*", id)))
			return len(f) == 2
		})
		began := time.Now()
		c.must("gcancel", fmt.Sprint(id))
		c.wait(id, api.JobCancelled)
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("saved after %s s, ended after %s s: the end took %v of a lead of 40 s\n%s", saves, ends, d, c.story(id))
		}
	}
}

// A process of an old epoch that is still there can't put a checkpoint: its connection waits in
// a frozen node daemon, the gang runs elsewhere by a person's word, and what the daemon passes on
// when it thaws is refused.
func TestOldEpochCanNotPut(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--set=node_timeout=2s", "--set=grace=1s")
	id, path := socketOf(t, c)
	node := c.job(id).Ranks[0].Node
	daemon := c.pid(node)
	freeze(t, daemon)
	defer thaw(daemon)
	type answer struct {
		code int
		text string
	}
	got := make(chan answer, 1)
	go func() {
		var a answer
		for a.code = 503; a.code == 503; { // as gckpt does while the daemon has no session yet
			a.code, a.text = send(t, path, "PUT", "/v1/checkpoint", []byte("of epoch 1"))
		}
		got <- a
	}()
	c.until("the node is lost", func() bool { return c.node(node).State == api.NodeLost })
	c.must("gctl", "node", "fence", node)
	c.until("it runs elsewhere", func() bool {
		j := c.job(id)
		return j.State == api.JobRunning && j.Epoch == 2 && j.Ranks[0].Node != node
	})
	thaw(daemon)
	a := <-got
	t.Logf("answered %d %s", a.code, a.text)
	if a.code != 409 && a.code != 0 || a.code == 409 && !strings.Contains(a.text, `"code":"stale_epoch"`) {
		t.Errorf("%d %s", a.code, a.text)
	}
	c.until("the node is back", func() bool { return c.node(node).State == api.NodeUp })
	if k := c.job(id).Checkpoint; k != nil {
		t.Errorf("the checkpoint of the old epoch counts: %+v", k)
	}
	c.must("gcancel", fmt.Sprint(id))
	c.wait(id, api.JobCancelled)
}
