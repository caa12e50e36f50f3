package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// --report: what a job used stands behind its output, once, of its last attempt, of each element behind its own; also
// where gangd was killed before it could be written. A file that is gone stays gone.
func TestReportBehindTheOutput(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2")
	dir := t.TempDir()
	text := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(dir, name))
		return string(b)
	}
	want := func(name, head string) {
		t.Helper()
		c.until("a report in "+name, func() bool { return strings.Contains(text(name), "gacct -e") })
		if got := text(name); !strings.HasPrefix(got, head) || strings.Count(got, "gacct -e") != 1 || !strings.Contains(got, " of CPU time") {
			t.Errorf("%s is\n%s", name, got)
		}
	}
	again := c.script("again.sh", "#!/bin/bash\n#GANG --report --max-retries=1\nprintf run$GANG_RESTART_COUNT\n[ $GANG_RESTART_COUNT = 1 ]\n")
	c.wait(c.submit("--output="+dir+"/again", again), api.JobCompleted)
	want("again", "run0run1\n--- what job 1 used, by gangd (gacct -e 1) ---\nJob 1 again.sh, attempt 2: completed, ")

	c.submit("--report", "--array=0-1", "--output="+dir+"/array-%a", "--wrap=echo $SLURM_ARRAY_TASK_ID")
	want("array-0", "0\n--- what job 2_0 used")
	want("array-1", "1\n--- what job 2_1 used")

	// Its node is away when it ends: what it used is told when the node is back, to a controller that was killed.
	id := c.submit("--report", "--nodelist=n1", "--output="+dir+"/late", "--wrap=echo late; until [ -e go ]; do sleep 0.1; done", "--chdir="+dir)
	c.wait(id, api.JobRunning)
	c.kill("gangd")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.restart("gangd")
	c.wait(id, api.JobCompleted)
	want("late", "late\n--- what job 4 used")

	gone := c.submit("--report", "--output="+dir+"/gone", "--wrap=rm "+dir+"/gone")
	c.wait(gone, api.JobCompleted)
	c.until("the end of the outbox", func() bool { return c.must("gctl", "outbox") == "" })
	if _, err := os.Stat(filepath.Join(dir, "gone")); err == nil {
		t.Error("a file that its job removed is there again")
	}
}
