package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// follower is a command in the background.
type follower struct {
	cmd       *exec.Cmd
	out, errs bytes.Buffer
	ended     chan error
}

func (c *cluster) follow(name string, args ...string) *follower {
	c.t.Helper()
	f := &follower{cmd: exec.Command(filepath.Join(c.bin, name), args...), ended: make(chan error, 1)}
	f.cmd.Dir = c.tmp
	f.cmd.Env = append(os.Environ(), "GANG_DIR="+c.dir)
	f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.errs
	if err := f.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() { f.ended <- f.cmd.Wait() }()
	c.t.Cleanup(func() { _ = f.cmd.Process.Kill() })
	return f
}

// said waits for the end of a follower and gives what it wrote.
func (c *cluster) said(f *follower) string {
	c.t.Helper()
	select {
	case err := <-f.ended:
		if err != nil {
			c.t.Errorf("%s: %v\n%s", strings.Join(f.cmd.Args, " "), err, f.errs.String())
		}
	case <-time.After(patience):
		c.t.Errorf("%s does not end\n%s", strings.Join(f.cmd.Args, " "), f.errs.String())
		_ = f.cmd.Process.Kill()
		<-f.ended
	}
	return f.out.String()
}

// Output is followed through kills of the controller and of the node's daemon, and across
// requeues that append to one file from different nodes: not a byte is lost, none comes twice.
// Each attempt's own part can be had afterwards.
func TestFollowThroughKills(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=3", "--set", "grace=1s")
	job := c.script("f.sh", `#!/bin/bash
for i in $(seq 100); do echo "attempt $GANG_EPOCH line $i"; sleep 0.02; done
`)
	events := c.follow("gctl", "events", "--follow", "--since=0", "--json") // else it begins when it is connected
	submitted := c.follow("gsubmit", "--parsable", "-f", "-o", "out", job)
	out := filepath.Join(c.tmp, "out")
	c.until("it writes", func() bool { return len(lines(t, out)) > 0 })
	const id = 1
	whole := c.follow("glog", "-f", fmt.Sprint(id))
	n := rounds(3)
	for epoch := 1; epoch <= n; epoch++ {
		c.until("it runs", func() bool {
			j := c.job(id)
			return j.State == api.JobRunning && j.Epoch == epoch && j.Ranks[0].PID != 0
		})
		node := c.job(id).Ranks[0].Node
		time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
		c.kill("gangd")
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		c.restart("gangd")
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		c.kill(node)
		c.restart(node)
		if epoch < n {
			if epoch == 1 { // elsewhere, with the same file
				c.must("gctl", "node", "drain", node, "--reason=test")
			}
			c.must("gctl", "requeue", fmt.Sprint(id))
		}
	}
	tail := c.follow("glog", "-f", "--tail=100", fmt.Sprint(id))
	time.Sleep(300 * time.Millisecond)
	c.kill("gangd")
	c.restart("gangd")
	c.wait(id, api.JobCompleted)
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want := string(b)
	if got := c.said(whole); got != want {
		t.Errorf("glog -f wrote %d bytes, the file has %d: %s", len(got), len(want), firstDifference(got, want))
	}
	if got := strings.TrimPrefix(c.said(submitted), "1\n"); got != want {
		t.Errorf("gsubmit -f wrote %d bytes, the file has %d: %s", len(got), len(want), firstDifference(got, want))
	}
	if got := c.said(tail); !strings.HasSuffix(want, got) || len(got) < 100 {
		t.Errorf("glog -f --tail=100 wrote %d bytes that are not the end of the file: %.300q", len(got), got)
	}
	c.until("the nodes are back", func() bool {
		return !slices.ContainsFunc(c.nodes(), func(n api.Node) bool { return n.State != api.NodeUp && n.State != api.NodeDrained })
	})
	parts := ""
	for attempt := 1; attempt <= n; attempt++ {
		part := c.must("glog", "--attempt="+fmt.Sprint(attempt), fmt.Sprint(id))
		for _, l := range strings.Split(strings.TrimSpace(part), "\n") {
			if !strings.HasPrefix(l, fmt.Sprintf("attempt %d line", attempt)) {
				t.Errorf("attempt %d has the line %q", attempt, l)
			}
		}
		parts += part
	}
	if parts != want {
		t.Errorf("the attempts have %d bytes, the file %d: %s", len(parts), len(want), firstDifference(parts, want))
	}
	// Every event of the job came to who followed all of them, once and in order.
	all := c.events(id)
	c.until("the last event has come", func() bool {
		return strings.Contains(events.out.String(), fmt.Sprintf(`"seq":%d,`, all[len(all)-1].Seq))
	})
	at := 0
	for _, ev := range all {
		text := fmt.Sprintf(`"seq":%d,`, ev.Seq)
		i := strings.Index(events.out.String()[at:], text)
		if i < 0 || strings.Count(events.out.String(), text) != 1 {
			t.Errorf("event %d came %d times, or out of order", ev.Seq, strings.Count(events.out.String(), text))
			continue
		}
		at += i
	}
	t.Logf("%d bytes in %d attempts; gsubmit said: %s", len(want), n, strings.TrimSpace(submitted.errs.String()))
}

func firstDifference(got, want string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("from byte %d on %.60q, want %.60q", i, got[i:], want[i:])
		}
	}
	return "one is the beginning of the other"
}

// What a job writes is shown while it runs, to standard output and error, and the end is the job's; a job that has ended is
// refused by name.
func TestAttachToAJob(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2")
	go1 := filepath.Join(c.tmp, "go")
	job := c.script("a.sh", "#!/bin/bash\n#SBATCH -n1 -o a.out -e a.err\necho begun\necho trouble >&2\nuntil [ -e "+go1+" ]; do sleep 0.05; done\necho over\nexit 5\n")
	id := strings.TrimSpace(c.must("gsubmit", "--parsable", job))
	f := c.follow("gattach", id+".batch")
	c.until("it shows what the script has written", func() bool { return strings.Contains(f.out.String(), "begun") })
	if err := os.WriteFile(go1, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.ended:
	case <-time.After(patience):
		t.Fatalf("it does not end: %s", f.errs.String())
	}
	if code := f.cmd.ProcessState.ExitCode(); code != 5 || f.out.String() != "begun\nover\n" || !strings.Contains(f.errs.String(), "trouble\n") {
		t.Errorf("exit %d, output %q, errors %q", code, f.out.String(), f.errs.String())
	}
	if _, errs, code := c.run("gattach", id); code != 1 || !strings.Contains(errs, "job "+id+" has ended") {
		t.Errorf("of a job that has ended: exit %d, %q", code, errs)
	}
	id = strings.TrimSpace(c.must("gsubmit", "--parsable", "--size=2", "--output=r.%t", "--wrap", "echo rank $GANG_RANK; sleep 1"))
	f = c.follow("gattach", "-l", id)
	if got := strings.Fields(strings.ReplaceAll(c.said(f), "\n", " ")); len(got) != 6 || !slices.Contains(got, "0:") || !slices.Contains(got, "1:") {
		t.Errorf("output of two ranks: %q", got)
	}
}
