package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// framework is a training program as frameworks write them: its ranks go step by step together,
// a handler only notes that the end is near, and in the step in which any rank knows of it all
// of them save and exit with 0. It begins where it has saved.
const framework = `
import os, signal, socket, sys, time
where, rank, size, epoch = sys.argv[1], int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]), os.environ["GANG_EPOCH"]
log = open(os.path.join(where, "log.%d" % rank), "a", 1)
told = False
def hear(sig, frame):
    global told
    log.write("%s heard %d\n" % (epoch, sig))
    told = True
signal.signal(signal.SIGTERM, hear)
peers = []
if rank == 0:
    server = socket.create_server(("", int(os.environ["MASTER_PORT"])))
    peers = [server.accept()[0] for _ in range(size - 1)]
else:
    for _ in range(3000):
        try:
            peers = [socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))]
            break
        except OSError:
            time.sleep(0.02)
def anybody(mine):
    word = b"1" if mine else b"0"
    if rank == 0:
        word = max([word] + [p.recv(1) for p in peers])
        for p in peers: p.sendall(word)
    else:
        peers[0].sendall(word)
        word = peers[0].recv(1)
    return word == b"1"
path = os.path.join(where, "state.%d" % rank)
step = int(open(path).read()) if os.path.exists(path) else 0
log.write("%s from %d\n" % (epoch, step))
first = step
while not anybody(told):
    time.sleep(0.01)
    step += 1
    if step == first + 3: log.write("%s works\n" % epoch)
with open(path + ".part", "w", 1) as f:
    for digit in "%030d" % step:
        f.write(digit)
        time.sleep(0.01)
os.rename(path + ".part", path)
log.write("%s saved %d\n" % (epoch, step))
`

// frameworkRun is what one rank did in one epoch.
type frameworkRun struct {
	from, saved    int // -1: not written
	works          bool
	heard, written int // signals, saves
}

// frameworkRuns reads what the ranks have written, by rank and epoch.
func frameworkRuns(t *testing.T, dir string, size int) []map[int]frameworkRun {
	t.Helper()
	all := make([]map[int]frameworkRun, size)
	for rank := range all {
		all[rank] = map[int]frameworkRun{}
		b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("log.%d", rank)))
		for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
			var epoch, n int
			var what string
			if k, _ := fmt.Sscan(line, &epoch, &what, &n); k < 2 {
				continue
			}
			r, ok := all[rank][epoch]
			if !ok {
				r = frameworkRun{from: -1, saved: -1}
			}
			switch what {
			case "from":
				r.from = n
			case "works":
				r.works = true
			case "heard":
				r.heard++
			case "saved":
				r.saved = n
				r.written++
			}
			all[rank][epoch] = r
		}
	}
	return all
}

// TestFrameworkGoesOnWhereItWas: a framework's own script, --signal=B: with a shell that does not
// trap it and ranks under srun that do. At the limit, at a preemption and at a requeue all ranks
// save the same step, and all begin with it. Nothing is charged. The short form is the limit, once.
func TestFrameworkGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/python3")
	shapes, n := []int{2}, 1
	long := os.Getenv("GANG_E2E_CHAOS") != ""
	if long {
		shapes, n = []int{1, 2}, rounds(20)
	}
	for _, nodes := range shapes {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			c := start(t, fmt.Sprintf("--nodes=%d", nodes), "--gpus=1x80G", "--set", "cpus=4", "--set", "preempt=tier")
			names := slurmNames(t, c)
			for _, by := range []struct {
				name  string
				args  string
				again func(round int, id string)
			}{
				{"limit", "#SBATCH --time=0:07\n#SBATCH --signal=B:SIGTERM@6\n#GANG --requeue=timeout --max-time-total=1-0\n", nil},
				{"preemption", "#SBATCH --requeue\n#SBATCH --time=1:00:00\n#SBATCH --signal=B:SIGTERM@120\n", func(int, string) {
					taker := c.submit("--priority=10", fmt.Sprintf("-N%d", nodes), "--gpus-per-node=1", "-o", "/dev/null", "--wrap", "true")
					c.wait(taker, api.JobCompleted)
				}},
				{"requeue", "#SBATCH --requeue\n#SBATCH --time=1:00:00\n#SBATCH --signal=B:SIGTERM@120\n", func(round int, id string) {
					if round%2 == 0 { // with the notice, and without
						c.must("gctl", "requeue", id)
						return
					}
					rel, err := filepath.Rel(c.bin, names)
					if err != nil {
						t.Fatal(err)
					}
					c.must(filepath.Join(rel, "scontrol"), "requeue", id)
				}},
			} {
				if by.again != nil && !long {
					continue
				}
				t.Run(by.name, func(t *testing.T) {
					c := *c
					c.t = t
					c.frameworkRounds(names, by.args, nodes, n, by.again)
				})
			}
		})
	}
}

// frameworkRounds plays n rounds of one job: it works, it is ended, it goes on. Without again it
// ends by itself, at its limit.
func (c *cluster) frameworkRounds(names, directives string, nodes, n int, again func(round int, id string)) {
	c.t.Helper()
	const size = 4
	dir, err := os.MkdirTemp(c.tmp, "f")
	if err != nil {
		c.t.Fatal(err)
	}
	script := c.script(filepath.Base(dir)+".sh", fmt.Sprintf(`#!/bin/bash
#SBATCH --nodes=%d
#SBATCH --ntasks-per-node=%d
#SBATCH --gpus-per-node=1
#SBATCH --output=%s/out
%sexport PATH=%s:$PATH
srun /usr/bin/python3 %s %s
`, nodes, size/nodes, dir, directives, names, c.script("framework.py", framework), dir))
	id, err := strconv.ParseInt(strings.TrimSpace(c.must(c.fromBin(names, "sbatch"), "--parsable", script)), 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	works := func(epoch int) {
		c.until(fmt.Sprintf("all ranks work in epoch %d", epoch), func() bool {
			for _, r := range frameworkRuns(c.t, dir, size) {
				if run, ok := r[epoch]; !ok || run.from < 0 || again != nil && !run.works {
					return false
				}
			}
			return true
		})
	}
	began := time.Now()
	for round := range n {
		works(round + 1)
		if again != nil {
			again(round, strconv.FormatInt(id, 10))
		}
	}
	works(n + 1)
	job := c.job(id)
	c.must("gcancel", "--now", strconv.FormatInt(id, 10))
	c.wait(id, api.JobCancelled)
	for cause, b := range job.Budgets {
		if b.Used != 0 {
			c.t.Errorf("%s is charged %d", cause, b.Used)
		}
	}
	if job.Epoch != n+1 || job.RestartCount != n {
		c.t.Errorf("epoch %d, %d restarts, want %d and %d\n%s", job.Epoch, job.RestartCount, n+1, n, c.story(id))
	}
	all, mixed := frameworkRuns(c.t, dir, size), 0
	for epoch := 1; epoch <= n; epoch++ {
		first, same, heard := all[0][epoch], true, 0
		for rank := range all {
			this, next := all[rank][epoch], all[rank][epoch+1]
			if this.heard > 1 || this.written != 1 || this.saved < this.from || again != nil && (this.heard == 0 || this.saved == this.from) {
				c.t.Errorf("rank %d of epoch %d: %+v, want one signal and one save", rank, epoch, this)
			}
			heard += this.heard
			same = same && this.saved == first.saved && next.from == first.saved
		}
		// Who has no handler yet when the notice of a short limit comes is not told, and saves with the others.
		if heard == 0 {
			c.t.Errorf("epoch %d ended, and nobody heard of it", epoch)
		}
		if !same {
			mixed++
			c.t.Errorf("after epoch %d the ranks begin at different steps:\n%s", epoch, c.story(id))
		}
	}
	c.t.Logf("%d rounds, %d mixed restarts, %.1f s a round", n, mixed, time.Since(began).Seconds()/float64(n))
}
