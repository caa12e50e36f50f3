package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// example copies an example to where the test's jobs run.
func (c *cluster) example(path string) string {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join("../examples", path))
	if err != nil {
		c.t.Fatal(err)
	}
	return c.script(filepath.Base(path), string(b))
}

func (c *cluster) read(name string) string {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.tmp, name))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	return string(b)
}

// The training loop of examples/train: drained again and again it goes on from where it was,
// and comes to the sum that an undisturbed run has.
func TestExampleTraining(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, "--nodes=2")
	c.example("train/train.py")
	const steps = 120
	job := c.script("train.sh", fmt.Sprintf("#!/bin/bash\n#GANG --size=2 --ranks-per-node=1 --signal=USR1@10 --output=train.%%t\nexec python3 train.py --steps %d --seconds 0.02\n", steps))
	id := c.submit(job)
	n := rounds(2)
	for i := range n {
		c.until("it has begun", func() bool {
			return strings.Count(c.read("train.0"), "begins at")+strings.Count(c.read("train.1"), "begins at") == 2*(i+1)
		})
		time.Sleep(200 * time.Millisecond)
		if c.job(id).State.Ended() {
			break
		}
		c.must("gctl", "requeue", fmt.Sprint(id))
		c.until("it runs again", func() bool { j := c.job(id); return j.State.Ended() || j.Epoch == i+2 && j.State == api.JobRunning })
	}
	j := c.wait(id, api.JobCompleted)
	if n <= 2 && j.RestartCount != n {
		t.Errorf("%d restarts, want %d\n%s", j.RestartCount, n, c.story(id))
	}
	for rank := range 2 {
		out := c.read(fmt.Sprintf("train.%d", rank))
		if !strings.Contains(out, fmt.Sprintf("done: the sum is %d\n", steps*(steps+1)/2)) {
			t.Errorf("rank %d did not come to the sum:\n%s", rank, out)
		}
		if !regexp.MustCompile(`USR1 at step \d+: requeued \(requeued by \w+\), 10.000 s left\n`).MatchString(out) {
			t.Errorf("rank %d did not say why it stopped:\n%s", rank, out)
		}
		// It begins again at the step at which it stopped: nothing is done twice.
		at := regexp.MustCompile(`USR1 at step (\d+)`).FindAllStringSubmatch(out, -1)
		begins := regexp.MustCompile(`begins at step (\d+)`).FindAllStringSubmatch(out, -1)
		for i, a := range at {
			if begins[i+1][1] != a[1] {
				t.Errorf("rank %d stopped at step %s and began at %s", rank, a[1], begins[i+1][1])
			}
		}
	}
	if _, err := os.Stat(filepath.Join(c.tmp, ".gang", fmt.Sprint(id), "rank1.json")); err != nil {
		t.Errorf("the checkpoint: %v", err)
	}
}

// A step that hangs is left hard before the notice is over.
func TestExampleTrainingHangs(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, "--nodes=1")
	c.example("train/train.py")
	id := c.submit("--signal=USR1@3", "-o", "hang", "--wrap", "exec python3 train.py --seconds 3600")
	c.until("it has begun", func() bool { return strings.Contains(c.read("hang"), "begins at") })
	c.must("gcancel", fmt.Sprint(id))
	c.wait(id, api.JobCancelled)
	if out := c.read("hang"); !strings.Contains(out, "no step came to its end in time") {
		t.Errorf("output:\n%s", out)
	}
}

// The trap of examples/save runs at once, and the second run goes on from what it saved.
func TestExampleTrap(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1")
	id := c.submit("-o", "trap", c.example("save/trap.sh"), "15")
	c.until("it counts", func() bool { return strings.Contains(c.read("trap"), "begins at 0") })
	time.Sleep(300 * time.Millisecond)
	c.must("gctl", "requeue", fmt.Sprint(id))
	c.wait(id, api.JobCompleted)
	out := c.read("trap")
	m := regexp.MustCompile(`^begins at 0\nsaved (\d+): requeued by \w+\nbegins at (\d+)\ndone at 15\n$`).FindStringSubmatch(out)
	if m == nil || m[1] != m[2] {
		t.Errorf("output:\n%s", out)
	}
}

// --signal=B: reaches the shell alone, which ends its program in its own way.
func TestExampleBatchSignal(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1")
	id := c.submit("-o", "batch", "--time=1:03", c.example("save/batch-signal.sh"))
	j := c.wait(id, api.JobCompleted) // the notice comes 3 s after the start
	if out := c.read("batch"); !strings.HasPrefix(out, "finished in time: ") {
		t.Errorf("output:\n%s", out)
	}
	within(t, "start to the end, error", (j.EndTime.Sub(j.StartTime) - 3*time.Second).Abs(), 200*time.Millisecond)
}

// The checkpoint directory is there for the ranks, the same in every epoch; an empty one
// goes with a job that ends well.
func TestCheckpointDir(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1")
	id := c.submit("-o", "/dev/null", "--wrap", `[ $GANG_RESTART_COUNT = 1 ] && exec grep -q kept "$GANG_CHECKPOINT_DIR/x"
echo kept > "$GANG_CHECKPOINT_DIR/x"; touch up; sleep 600`)
	c.until("it has saved", func() bool { _, err := os.Stat(filepath.Join(c.tmp, "up")); return err == nil })
	c.must("gctl", "requeue", fmt.Sprint(id))
	c.wait(id, api.JobCompleted)
	if got := c.read(fmt.Sprintf(".gang/%d/x", id)); got != "kept\n" {
		t.Errorf("the checkpoint holds %q", got)
	}
	if err := os.RemoveAll(filepath.Join(c.tmp, ".gang")); err != nil {
		t.Fatal(err)
	}
	id = c.submit("-o", "/dev/null", "--wrap", `[ -d "$GANG_CHECKPOINT_DIR" ]`)
	c.wait(id, api.JobCompleted)
	c.until("the empty directory is gone", func() bool { _, err := os.Stat(filepath.Join(c.tmp, ".gang")); return os.IsNotExist(err) })
}

// The launchers of examples/ray and examples/torchrun, with small programs in the place of ray and torchrun: the workers come when the head
// listens, its driver's end is the job's, and each node of torchrun's knows its place.
func TestExampleLaunchers(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, "--nodes=3", "--gpus=2x80G", "--cpus=4")
	c.script("ray", "#!/bin/sh\ncase $2 in\n--head) sleep 0.3; echo head $* > ray.head ;;\n*) cat ray.head > ray.worker.$GANG_ROLE_RANK; echo $* >> ray.worker.$GANG_ROLE_RANK; exec sleep 600 ;;\nesac\n")
	c.script("torchrun", "#!/bin/sh\necho $* > torchrun.$GANG_ROLE_RANK\n")
	c.script("driver.py", "import os, time\nwhile not (os.path.exists('ray.worker.0') and os.path.exists('ray.worker.1')): time.sleep(0.05)\nprint('driven')\n")
	bins := "--export=ALL,PATH=" + c.tmp + ":" + c.bin + ":" + os.Getenv("PATH")
	for _, name := range []string{"ray/ray.sh", "torchrun/torchrun.sh"} {
		c.example(name)
	}
	ray := c.submit(bins, "--output=ray.out", "ray.sh", "driver.py")
	c.wait(ray, api.JobCompleted)
	train := c.submit(bins, "torchrun.sh", "train.py", "--steps", "3")
	c.wait(train, api.JobCompleted)
	for rank := range 2 {
		if got := c.read(fmt.Sprintf("ray.worker.%d", rank)); !strings.HasPrefix(got, "head start --head --node-ip-address=") || !strings.Contains(got, "start --address=") {
			t.Errorf("worker %d: %q", rank, got)
		}
		if got := c.read(fmt.Sprintf("torchrun.%d", rank)); !strings.HasPrefix(got, fmt.Sprintf("--nnodes=2 --node-rank=%d --nproc-per-node=2 --master-addr=", rank)) || !strings.HasSuffix(got, " train.py --steps 3\n") {
			t.Errorf("torchrun of rank %d: %q", rank, got)
		}
	}
}
