package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
)

// kill -9 of gangd at random moments while 16 clients submit: every acknowledged id is
// there once, no id is used twice, every job runs once and none is lost.
func TestControllerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=4", "--set", "retry_backoff=100ms")
	witness := filepath.Join(c.tmp, "witness")
	if err := os.Mkdir(witness, 0o755); err != nil {
		t.Fatal(err)
	}
	// One file a start, made with noclobber and the pid in its name: a second start of
	// the same rank shows as a second file.
	job := c.script("j.sh", "#!/bin/sh\n: > "+witness+"/$SLURM_JOB_ID.$GANG_RANK.$GANG_EPOCH.$$\n")

	var mu sync.Mutex
	acked := map[int64]int{}
	var stop atomic.Bool
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for !stop.Load() {
				out, errs, code := c.run("gsubmit", "--parsable", "-o", "/dev/null", "--size=1", job)
				if code != 0 {
					t.Errorf("gsubmit: exit %d: %s", code, errs)
					return
				}
				id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
				if err != nil {
					t.Errorf("gsubmit printed %q", out)
					return
				}
				mu.Lock()
				acked[id]++
				mu.Unlock()
			}
		})
	}
	for range rounds(8) {
		time.Sleep(time.Duration(50+rand.IntN(400)) * time.Millisecond)
		c.kill("gangd")
		c.restart("gangd")
	}
	stop.Store(true)
	clients.Wait()
	c.until("the queue is empty", func() bool { return c.must("gqueue", "-h") == "" })

	for id, n := range acked {
		if n != 1 {
			t.Errorf("id %d was given out %d times", id, n)
		}
	}
	starts := map[int64]int{}
	entries, err := os.ReadDir(witness)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		id, _ := strconv.ParseInt(strings.SplitN(e.Name(), ".", 2)[0], 10, 64)
		starts[id]++
	}
	for id := range acked {
		if starts[id] != 1 {
			t.Errorf("job %d started %d times\n%s", id, starts[id], c.story(id))
		}
	}
	// A submission whose answer was lost is tried again with its key, so each job that
	// ever ran has been acknowledged to somebody.
	for id := range starts {
		if acked[id] == 0 {
			t.Errorf("job %d ran but no client has its id", id)
		}
	}
	t.Logf("%d jobs acknowledged and run over %d kills", len(acked), rounds(8))
}

// kill -9 of gnoded with 20 ranks running: the same processes go on, and what ended
// meanwhile is recorded once with its exact code.
func TestNodeDaemonKilled(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1", "--cpus=32")
	job := c.script("r.sh", `#!/bin/sh
echo $$ > pid.$SLURM_JOB_ID
while [ ! -e go.$SLURM_JOB_ID ]; do sleep 0.05; done
exit $1
`)
	before := map[int64]int{}
	code := map[int64]int{}
	for i := range 20 {
		id := c.submit("-o", "/dev/null", job, strconv.Itoa(i))
		code[id] = i
	}
	for id := range code {
		c.wait(id, api.JobRunning)
		c.until("the rank's pid is known", func() bool { before[id] = c.job(id).Ranks[0].PID; return before[id] != 0 })
	}
	c.kill("n1")
	for id, n := range code {
		if n%2 == 1 { // these end while no gnoded is there to see it
			if err := os.WriteFile(filepath.Join(c.tmp, fmt.Sprintf("go.%d", id)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			c.until("rank has ended", func() bool { return !running(before[id]) })
		}
	}
	c.restart("n1")
	c.until("the node is back", func() bool { return c.nodes()[0].State == api.NodeUp })
	for id, n := range code {
		if n%2 == 1 {
			c.wait(id, api.JobFailed, api.JobCompleted)
		} else if j := c.job(id); j.State != api.JobRunning || j.Ranks[0].PID != before[id] || !running(before[id]) {
			t.Errorf("job %d is %s with pid %d, was running as %d", id, j.State, j.Ranks[0].PID, before[id])
		}
	}
	for id, n := range code {
		if n%2 == 0 {
			if err := os.WriteFile(filepath.Join(c.tmp, fmt.Sprintf("go.%d", id)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for id, n := range code {
		j := c.wait(id, api.JobFailed, api.JobCompleted)
		if j.ExitCode == nil || *j.ExitCode != n || j.Epoch != 1 {
			t.Errorf("job %d ended with %v in epoch %d, want %d in epoch 1", id, j.ExitCode, j.Epoch, n)
		}
		exits := 0
		for _, ev := range c.events(id) {
			if ev.Type == api.EventEnded {
				exits++
			}
		}
		if exits != 1 {
			t.Errorf("job %d has %d ended events", id, exits)
		}
	}
}

// One node frozen between reservation and start: no rank's command runs anywhere until
// the gang has been placed elsewhere, whole.
func TestFrozenNode(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=4", "--set", "start_timeout=5s", "--set", "heartbeat=500ms")
	witness := filepath.Join(c.tmp, "starts")
	job := c.script("f.sh", "#!/bin/sh\necho $GANG_EPOCH.$GANG_RANK.$SLURMD_NODENAME >> "+witness+"\nsleep 1\n")
	frozen := c.pid("n1")
	if err := syscall.Kill(frozen, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(frozen, syscall.SIGCONT)
	began := time.Now()
	id := c.submit("--size=3", "--ranks-per-node=1", "-o", "/dev/null", job)
	j := c.wait(id, api.JobRunning, api.JobCompleted)
	took := time.Since(began)
	for _, n := range j.Nodes {
		if n == "n1" {
			t.Errorf("the gang runs on the frozen node: %v", j.Nodes)
		}
	}
	c.wait(id, api.JobCompleted)
	seen := map[string]bool{}
	for _, l := range lines(t, witness) {
		epoch, rest, _ := strings.Cut(l, ".")
		if epoch != strconv.Itoa(j.Epoch) {
			t.Errorf("a rank ran in epoch %s, the gang started in epoch %d only: %s", epoch, j.Epoch, l)
		}
		seen[rest] = true
	}
	if len(seen) != 3 {
		t.Errorf("starts: %v, want each of 3 ranks once", seen)
	}
	t.Logf("reserved on the frozen node, running elsewhere after %s (epoch %d)", took.Round(time.Millisecond), j.Epoch)
}

// Children that do their best to escape are gone at the end of their rank and after a
// cancel: setsid, double fork, TERM ignored, environment cleared.
func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--set", "grace=200ms")
	styles := map[string]string{
		"setsid":     `setsid sleep 7777 & echo $! >> pids`,
		"doublefork": `( ( trap '' TERM HUP INT; exec sh -c 'echo $$ >> pids; exec sleep 7777' ) & ) ; sleep 0.02`,
		"nohup":      `trap '' TERM; nohup setsid sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 7777; done' >/dev/null 2>&1 & sleep 0.02`,
		"cleanenv":   `env -i PWD="$PWD" /usr/bin/setsid /bin/sh -c 'echo $$ >> '"$PWD"'/pids; trap "" TERM; while :; do /bin/sleep 7777; done' & sleep 0.02`,
	}
	for style, body := range styles {
		for _, end := range []string{"exit", "cancel"} {
			t.Run(style+"-"+end, func(t *testing.T) {
				dir := t.TempDir()
				tail := "sleep 0.05; exit 0"
				if end == "cancel" {
					tail = "sleep 600"
				}
				path := filepath.Join(dir, "e.sh")
				if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"+tail+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
				n := max(1, rounds(24)/8)
				for range n {
					out, errs, code := c.runIn(dir, "", "gsubmit", "--parsable", "-o", "/dev/null", path)
					if code != 0 {
						t.Fatalf("gsubmit: %s", errs)
					}
					id, _ := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
					if end == "cancel" {
						c.until("the child runs", func() bool { return len(lines(t, filepath.Join(dir, "pids"))) > 0 })
						c.must("gcancel", fmt.Sprint(id))
						c.wait(id, api.JobCancelled)
					} else {
						c.wait(id, api.JobCompleted)
					}
					for _, l := range lines(t, filepath.Join(dir, "pids")) {
						if pid, err := strconv.Atoi(l); err == nil && running(pid) {
							t.Errorf("process %d of job %d survived", pid, id)
						}
					}
					os.Remove(filepath.Join(dir, "pids"))
				}
			})
		}
	}
}

// TestHangup: SIGHUP, which people send to have a configuration read again and terminals when they close, ends no daemon.
func TestHangup(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1")
	pids := map[string]int{"gangd": c.pid("gangd"), "n1": c.pid("n1")}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"gangd", "n1"} {
		c.until(name+" says what it made of it", func() bool {
			b, _ := os.ReadFile(filepath.Join(c.dir, "log", name+".log"))
			return strings.Contains(string(b), "configuration read again")
		})
	}
	c.wait(c.submit("-o", "/dev/null", "--wrap", "true"), api.JobCompleted)
	for name, pid := range pids {
		if c.pid(name) != pid || !running(pid) {
			t.Errorf("%s was process %d, and is not any more", name, pid)
		}
	}
}
