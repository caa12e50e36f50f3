package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestPrologOfABadNode: a gang whose prolog fails on one of its nodes runs on others at once, nobody is
// charged, and the node says what the prolog said.
func TestPrologOfABadNode(t *testing.T) {
	t.Parallel()
	prolog := filepath.Join(t.TempDir(), "prolog")
	if err := os.WriteFile(prolog, []byte("#!/bin/sh\n[ $GANG_NODE != n1 ] || { echo looking; echo no IB link; exit 1; }\necho checked $GANG_NODE\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, "--nodes=4", "--set", "cpus=4", "--set", "prolog="+prolog)
	rank := c.script("rank", "#!/bin/sh\nexec sleep 1000\n")
	for n := range 20 {
		began := time.Now()
		id := c.submit("--size=2", "--ranks-per-node=1", rank)
		j := c.wait(id, api.JobRunning)
		t.Logf("job %d runs after %v", id, time.Since(began).Round(time.Millisecond))
		for _, node := range j.Nodes {
			if node == "n1" {
				t.Fatalf("job %d runs on n1:\n%s", id, c.story(id))
			}
		}
		if n == 0 {
			if story := c.story(id); !strings.Contains(story, "n1: prolog: "+prolog+": exit status 1: no IB link") {
				t.Errorf("the first job was not tried on n1, or its events don't say why:\n%s", story)
			}
		}
		if j.RestartCount != 0 {
			t.Errorf("job %d was charged: %d restarts", id, j.RestartCount)
		}
		c.must("gcancel", fmt.Sprint(id))
		c.wait(id, api.JobCancelled)
		if n == 0 {
			said := ""
			c.until("the hooks of both nodes are told", func() bool { // which a cancel does not wait for
				said = c.must("gacct", "--hooks", fmt.Sprint(id))
				return strings.Count(said, "    checked ") == 2
			})
			for _, node := range j.Nodes {
				if want := "attempt 1  " + node + "  prolog  "; !strings.Contains(said, want) || !strings.Contains(said, "    checked "+node+"\n") {
					t.Errorf("gacct --hooks has no %q with what it wrote:\n%s", want, said)
				}
			}
			if want := "not started: n1: prolog: " + prolog + ": exit status 1: no IB link"; !strings.Contains(said, want) {
				t.Errorf("gacct --hooks has no %q:\n%s", want, said)
			}
			if shown := c.must("gctl", "show", "job", fmt.Sprint(id)); !strings.Contains(shown, "\nHooks\nattempt 1  ") {
				t.Errorf("gctl show job has no hooks:\n%s", shown)
			}
		}
	}
	// The jobs of one user take no node out: it says what failed on it, for whoever looks.
	if n1 := c.node("n1"); n1.State != api.NodeUp || n1.Strikes == 0 || !strings.Contains(n1.Reason, "no IB link") {
		t.Errorf("%+v", n1)
	}
}

// TestTaskHooksOfSteps: each task of a step has the site's programs around it and srun's within; the batch
// script has the site's.
func TestTaskHooksOfSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, body string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := start(t, "--nodes=1", "--set", "cpus=4", "--set", "task_prolog="+put("before", `echo "export A=$SLURM_STEP_ID.$SLURM_PROCID"`),
		"--set", "task_epilog="+put("after", `echo "$SLURM_STEP_ID.$SLURM_PROCID is over"`))
	slurmNames(t, c)
	user, fails := put("user", `echo "export B=$A"`), put("fails", "echo print no scratch; exit 9")
	got := c.batch("echo \"script ${A#.}\"\nsrun -n2 --task-prolog="+user+` --task-epilog=`+put("end", "echo user $B")+" sh -c 'echo task $A $B'\n"+
		"srun -n1 --task-prolog="+fails+" sh -c 'echo ran'\necho status $?\n", "--size=2")
	for _, want := range []string{"task 0.0 0.0\n", "task 0.1 0.1\n", "0.0 is over\n", "0.1 is over\n", "user\n", "no scratch\n", "status 9\n", fails + ": exit status 9\n", "1.0 is over\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "ran\n") {
		t.Errorf("a task ran after a prolog that failed:\n%s", got)
	}
}

// TestWhyOfAProlog: who waits is told the prolog's last line as the reason of the last try, and gacct has each try. The tries of one
// job take no node out of service.
func TestWhyOfAProlog(t *testing.T) {
	t.Parallel()
	prolog := filepath.Join(t.TempDir(), "prolog")
	if err := os.WriteFile(prolog, []byte("#!/bin/sh\necho looking; echo no IB link; exit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, "--nodes=1", "--set", "cpus=4", "--set", "prolog="+prolog)
	id := fmt.Sprint(c.submit(c.script("rank", "#!/bin/sh\n")))
	why := func(text string) func() bool {
		return func() bool { return strings.Contains(c.must("gqueue", "--why", id), text) }
	}
	text := "prolog: " + prolog + ": exit status 1: no IB link\n"
	c.until("the reason of the last try", why("last try: n1: "+text))
	c.until("three tries", func() bool { return strings.Count(c.must("gacct", "--hooks", id), "not started: n1: "+text) >= 3 })
	if why("out of service")() {
		t.Errorf("one job's tries took the node out: %s", c.must("gqueue", "--why", id))
	}
}
