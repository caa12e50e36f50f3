package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// Each kind of dependency on a live cluster, with a controller killed while they wait.
func TestDependencies(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--set", "keep_ended=10s")
	first := c.submit("--parsable", "--hold", "--wrap", "exit 0")
	bad := c.submit("--parsable", "--hold", "--wrap", "exit 3")
	after := func(dep string, more ...string) int64 {
		return c.submit(append([]string{"--parsable", "-d", dep}, append(more, "--wrap", "date +%s%N")...)...)
	}
	ok := after(fmt.Sprintf("afterok:%d", first))
	notOK := after(fmt.Sprintf("afternotok:%d", bad))
	anyEnd := after(fmt.Sprintf("afterany:%d:%d", first, bad))
	begun := after(fmt.Sprintf("after:%d", first))
	later := after(fmt.Sprintf("after:%d+1", first))
	either := after(fmt.Sprintf("afterok:%d?afterok:%d", bad, first))
	never := after(fmt.Sprintf("afterok:%d", bad))
	kept := after(fmt.Sprintf("afterok:%d", bad), "--kill-on-invalid-dep=no")
	chain := after(fmt.Sprintf("afterok:%d", ok))
	if out := c.must("gqueue", "-h", "-j", fmt.Sprint(ok), "-o", "%t %r %E"); strings.TrimSpace(out) != fmt.Sprintf("PD Dependency afterok:%d(unfulfilled)", first) {
		t.Errorf("%q", out)
	}
	c.kill("gangd")
	c.restart("gangd")
	c.must("gctl", "release", fmt.Sprint(first), fmt.Sprint(bad))
	for _, id := range []int64{ok, notOK, anyEnd, begun, either, chain} {
		c.wait(id, api.JobCompleted)
	}
	if why := c.must("gqueue", "--why", fmt.Sprint(later)); !strings.Contains(why, "PENDING (Dependency)") || !strings.Contains(why, fmt.Sprintf("after:%d+1", first)) {
		t.Errorf("a minute after the start of the first: %s", why)
	}
	if j := c.wait(never, api.JobCancelled); j.Reason != "DependencyNeverSatisfied" || !strings.HasPrefix(j.Verdict, fmt.Sprintf("dependency can never be met: afterok:%d", bad)) {
		t.Errorf("%s: %s", j.Reason, j.Verdict)
	}
	c.until("the kept one says so", func() bool { return c.job(kept).Reason == "DependencyNeverSatisfied" })
	if _, errs, code := c.run("gsubmit", "-d", "afterok:9999", "--wrap", "true"); code != 3 || !strings.Contains(errs, "no job 9999") {
		t.Errorf("%d %s", code, errs)
	}

	// An array, the elements that correspond, and one of a name at a time.
	a := c.submit("--parsable", "--array=0-3", "--wrap", "exit $((SLURM_ARRAY_TASK_ID == 2))")
	b := c.submit("--parsable", "--array=0-3", "-d", fmt.Sprintf("aftercorr:%d", a), "--wrap", "true")
	s1 := after("singleton", "-J", "one")
	s2 := after("singleton", "-J", "one")
	c.until("three elements have completed, one is cancelled", func() bool {
		return c.must("gqueue", "-h", "-r", "-t", "all", "-j", fmt.Sprint(b), "-S", "K", "-o", "%K %T") ==
			"0 COMPLETED\n1 COMPLETED\n2 CANCELLED\n3 COMPLETED\n"
	})
	x, y := c.wait(s1, api.JobCompleted), c.wait(s2, api.JobCompleted)
	if y.StartTime.Before(x.EndTime) {
		t.Errorf("second singleton started at %s, the first ended at %s", y.StartTime, x.EndTime)
	}
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		// Longer than until waits; the story of one that has left memory is still told.
		begin := func(id int64) []api.Event { return c.eventsOf(id, api.EventStarted) }
		for deadline := time.Now().Add(2 * patience); len(begin(later)) == 0; time.Sleep(time.Second) {
			if time.Now().After(deadline) {
				t.Fatal("it waits for more than a minute")
			}
		}
		if d := begin(later)[0].Time.Sub(begin(first)[0].Time); d < time.Minute {
			t.Errorf("it started %s after the first", d)
		}
	}
}
