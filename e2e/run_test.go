package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// A gang of 4 on 4 nodes runs a real program whose ranks meet at MASTER_ADDR:MASTER_PORT.
func TestGangAgreesOnASum(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=4", "--gpus=2x80G")
	sum := filepath.Join(c.tmp, "sum")
	if out, err := exec.Command("go", "build", "-o", sum, "../examples/sum").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	job := c.script("sum.sh", "#!/bin/sh\n#GANG --size=4 --ranks-per-node=1 --gpus-per-rank=1 --vram=40G\n#GANG --output=out.%t\nexec ./sum -steps 3\n")
	id := c.submit(job)
	j := c.wait(id, api.JobCompleted)
	if len(j.Nodes) != 4 {
		t.Errorf("nodes %v, want 4", j.Nodes)
	}
	for rank := range 4 {
		b, err := os.ReadFile(filepath.Join(c.tmp, "out."+strconv.Itoa(rank)))
		if err != nil || !strings.Contains(string(b), "all agree on 30") {
			t.Errorf("rank %d wrote %q (%v), want the sum 30", rank, b, err)
		}
		if r := j.Ranks[rank]; r.State != api.RankDone || r.ExitCode == nil || *r.ExitCode != 0 || len(r.Cards) != 1 {
			t.Errorf("rank %d is %+v", rank, r)
		}
	}
}

// A program nobody here wrote: torch.distributed with gloo, from the environment alone.
func TestTorchAllReduce(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/python3:torch")
	c := start(t, "--nodes=3")
	job := c.script("torch.py", `#!/usr/bin/python3
#GANG --size=3 --ranks-per-node=1 --output=torch.%t.out
import torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.arange(4, dtype=torch.float64) * (dist.get_rank() + 1)
dist.all_reduce(x)
assert x.tolist() == [0.0, 6.0, 12.0, 18.0], x.tolist()
print("rank", dist.get_rank(), "of", dist.get_world_size(), x.tolist())
`)
	id := c.submit(job)
	c.wait(id, api.JobCompleted)
	for rank := range 3 {
		b, _ := os.ReadFile(filepath.Join(c.tmp, "torch."+strconv.Itoa(rank)+".out"))
		if want := "rank " + strconv.Itoa(rank) + " of 3 [0.0, 6.0, 12.0, 18.0]"; !strings.Contains(string(b), want) {
			t.Errorf("rank %d wrote %q, want %q", rank, b, want)
		}
	}
}

// Two users' habits, as they are: the script of the command page, and a one-node sbatch
// script with a comment behind a directive and its log in a directory not yet there.
func TestHabits(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/python3")
	c := start(t, "--nodes=4", "--gpus=1x80G")
	if err := os.Symlink("/usr/bin/python3", filepath.Join(c.tmp, "python")); err != nil {
		t.Fatal(err)
	}
	c.setenv("PATH", c.tmp+":"+os.Getenv("PATH"))
	c.script("train.py", "import os, sys\nprint(os.environ['GANG_RANK'], os.environ['SLURM_NTASKS'], sys.argv[1:])\n")

	gangScript := c.script("job.sh", `#!/bin/bash
#GANG --size=4 --gpus-per-rank=1 --vram=40G
#GANG --time=12:00:00 --signal=TERM@120 --requeue --max-retries=2
#GANG --output=logs/%x-%j.%t.out
python train.py "$@"
`)
	id := c.submit(gangScript, "--lr", "0.1")
	c.wait(id, api.JobCompleted)
	for rank := range 4 {
		path := filepath.Join(c.tmp, "logs", "job.sh-"+strconv.FormatInt(id, 10)+"."+strconv.Itoa(rank)+".out")
		b, err := os.ReadFile(path)
		if want := strconv.Itoa(rank) + " 4 ['--lr', '0.1']\n"; err != nil || string(b) != want {
			t.Errorf("%s holds %q (%v), want %q", path, b, err, want)
		}
	}

	slurmScript := c.script("one.sbatch", `#!/bin/bash
#SBATCH --job-name=one
#SBATCH --nodes=1 --ntasks=1
#SBATCH --gres=gpu:1   # one card is enough
#SBATCH --time=60
#SBATCH --output=slogs/%x-%j.out
echo "$SLURM_JOB_NAME on $SLURM_NNODES node with $(echo $CUDA_VISIBLE_DEVICES | tr ',' '\n' | wc -l) card"
python train.py "$@"
`)
	id = c.submit(slurmScript, "a b", "c")
	c.wait(id, api.JobCompleted)
	b, err := os.ReadFile(filepath.Join(c.tmp, "slogs", "one-"+strconv.FormatInt(id, 10)+".out"))
	if want := "one on 1 node with 1 card\n0 1 ['a b', 'c']\n"; err != nil || string(b) != want {
		t.Errorf("the sbatch script wrote %q (%v), want %q", b, err, want)
	}
}

// The job's own exit code comes back through --wait, and a cancelled job ends CANCELLED.
func TestExitCodesAndCancel(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1")
	if _, _, code := c.run("gsubmit", "--wait", "--wrap", "exit 7"); code != 7 {
		t.Errorf("gsubmit --wait: exit %d, want 7", code)
	}
	id := c.submit("--wrap", "sleep 600")
	c.wait(id, api.JobRunning)
	c.must("gcancel", strconv.FormatInt(id, 10))
	if j := c.wait(id, api.JobCancelled); j.Cause != api.CauseCancelled {
		t.Errorf("cause %q, want cancelled", j.Cause)
	}
	if _, _, code := c.run("gcancel", "999"); code != api.ExitNotFound {
		t.Errorf("gcancel 999: exit %d, want %d", code, api.ExitNotFound)
	}
}
