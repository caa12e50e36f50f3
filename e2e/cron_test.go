package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// TestCronTable: a table outlives its controller, with its jobs; one that is cancelled switches its line off.
// That jobs come again is shown in pkg/core/gang: the next minute may be one away.
func TestCronTable(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1")
	names, err := filepath.Rel(c.bin, slurmNames(t, c))
	if err != nil {
		t.Fatal(err)
	}
	slurm := func(name string) string { return filepath.Join(names, name) }
	text := "#SCRON -t 5\n0 0 1 1 * true\n0 0 29 2 * true\n"
	c.script("table", text)
	c.must("gcron", "table")
	first := c.must("gcron", "--next")
	if !strings.Contains(first, "line 2  job 1  0 0 1 1 *  next ") || !strings.Contains(first, "line 3  job 2  0 0 29 2 *  next ") {
		t.Errorf("%s", first)
	}
	if _, stderr, code := c.runIn(c.dir, "* * * * * true\n* * * * 9 false\n", slurm("scrontab"), "-"); code != 1 || !strings.Contains(stderr, `line 2: day of week "9"`) {
		t.Errorf("status %d: %s", code, stderr)
	}
	c.kill("gangd")
	c.restart("gangd")
	if got := c.must(slurm("scrontab"), "-l"); got != text {
		t.Errorf("%q, want %q", got, text)
	}
	c.must(slurm("scancel"), "--cron", "2")
	c.wait(2, api.JobCancelled)
	if got, want := c.must("gcron", "-l"), "#SCRON -t 5\n0 0 1 1 * true\n#DISABLED: 0 0 29 2 * true\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.must("gcron", "-r")
	c.wait(1, api.JobCancelled)
}
