package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// held is an epilog of jobs that the test names, which runs until the test lets it end.
type held struct {
	t   *testing.T
	dir string
}

func holdEpilogs(t *testing.T) held {
	h := held{t, t.TempDir()}
	text := "#!/bin/sh\ncd " + h.dir + "\n[ -e hold.$GANG_JOB_ID ] || exit 0\ntouch in.$GANG_JOB_ID.$GANG_NODE\nuntil [ -e end.$GANG_JOB_ID ]; do sleep 0.05; done\n"
	if err := os.WriteFile(h.program(), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h held) program() string { return filepath.Join(h.dir, "epilog") }

func (h held) put(format string, args ...any) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, fmt.Sprintf(format, args...)), nil, 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h held) runs(id int64, node string) bool {
	_, err := os.Stat(filepath.Join(h.dir, fmt.Sprintf("in.%d.%s", id, node)))
	return err == nil
}

// TestEndIsToldBeforeTheEpilog: while a site's epilog runs, and as long as it hangs, everybody knows how the job ended: its
// other ranks, who depends on it, who waits for it, the accounts. Its cards are not given on, whatever becomes of
// gnoded meanwhile.
func TestEndIsToldBeforeTheEpilog(t *testing.T) {
	t.Parallel()
	h := holdEpilogs(t)
	c := start(t, "--nodes=2", "--gpus=1x80G", "--set", "cpus=4", "--set", "epilog="+h.program(), "--set", "hook_timeout=10m")
	names := c.slurmNames()
	var told, after, waited, charged []string
	for n := range trial.Rounds(2) {
		rank := c.script("rank", strings.NewReplacer("DIR", h.dir, "ROUND", fmt.Sprint(n)).Replace(`#!/bin/bash
cd DIR
if [ $GANG_RANK = 0 ]; then until [ -e go.ROUND ]; do sleep 0.01; done; date +%s%N >left.ROUND; exit 3; fi
trap 'date +%s%N >told.ROUND; exit 0' TERM
echo $GANG_JOB_ID >up.ROUND
while :; do sleep 0.01; done
`))
		at := make(chan time.Time, 1)
		go func() {
			_, _, _ = c.run("gsubmit", "--wait", "--size=2", "--ranks-per-node=1", "--gpus-per-rank=1", rank)
			at <- time.Now()
		}()
		var id int64
		c.until("rank 1 to be up", func() bool {
			b, _ := os.ReadFile(filepath.Join(h.dir, fmt.Sprintf("up.%d", n)))
			id, _ = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
			return id > 0
		})
		h.put("hold.%d", id)
		next := c.submit("--size=2", "--ranks-per-node=1", "--gpus-per-rank=1", c.script("next", "#!/bin/sh\n"))
		dependant := c.submit("--dependency", fmt.Sprintf("afterany:%d", id), "--cpus-per-rank=1", c.script("after", fmt.Sprintf("#!/bin/sh\ndate +%%s%%N >%s/after.%d\n", h.dir, n)))
		h.put("go.%d", n)
		c.wait(id, api.JobFailed)
		c.wait(dependant, api.JobCompleted)
		moment := func(name string) time.Time {
			b, _ := os.ReadFile(filepath.Join(h.dir, name))
			ns, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, c.story(id))
			}
			return time.Unix(0, ns)
		}
		left := moment(fmt.Sprintf("left.%d", n))
		j := c.job(id)
		told = append(told, moment(fmt.Sprintf("told.%d", n)).Sub(left).String())
		after = append(after, moment(fmt.Sprintf("after.%d", n)).Sub(left).String())
		waited = append(waited, (<-at).Sub(left).String())
		charged = append(charged, j.EndTime.Sub(left).String())

		// Both nodes are in it, and say so: whatever happens to their daemons.
		for _, node := range j.Nodes {
			c.until("the epilog on "+node, func() bool { return h.runs(id, node) })
		}
		for range 3 {
			for _, node := range j.Nodes {
				c.kill(node)
			}
			if s := c.job(next).State; s != api.JobPending {
				t.Fatalf("round %d: the next job is %s while the epilog runs\n%s", n, s, c.story(next))
			}
			for _, node := range j.Nodes {
				c.restart(node)
			}
		}
		if got := strings.Fields(c.must(c.fromBin(names, "squeue"), "-h", "-o", "%i %t", "-j", fmt.Sprint(id))); len(got) != 2 || got[1] != "CG" {
			t.Errorf("squeue: %v", got)
		}
		if got := c.must(c.fromBin(names, "sacct"), "-nXo", "state", "-j", fmt.Sprint(id)); strings.TrimSpace(got) != "FAILED" {
			t.Errorf("sacct: %s", got)
		}
		if s := c.job(next).State; s != api.JobPending {
			t.Fatalf("round %d: the next job is %s while the epilog runs\n%s", n, s, c.story(next))
		}
		h.put("end.%d", id)
		c.wait(next, api.JobCompleted)
	}
	t.Logf("after the end of a rank: its peer told %v, who depends on it began %v, who waits heard %v, the job ended %v", told, after, waited, charged)
}
