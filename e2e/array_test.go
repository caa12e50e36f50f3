package e2e

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// TestArrayLimit: of an array with %7 never more than seven elements have nodes at a time, by the
// controller's own record of each admission and each end, whatever looks when.
func TestArrayLimit(t *testing.T) {
	t.Parallel()
	n, last := 60, "0-59%7"
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		n, last = 1000, "0-999%7"
	}
	c := start(t, "--nodes=4")
	id := c.submit("--array="+last, "-o", "/dev/null", "--wrap", "true")
	var events struct{ Events []api.Event }
	ended := func() (n int) {
		if err := json.Unmarshal([]byte(c.must("gctl", "events", "--json")), &events); err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Events {
			if e.Type == api.EventEnded {
				n++
			}
		}
		return n
	}
	for before := -1; ; {
		now := ended()
		if now == n {
			break
		}
		// As long as it moves on it may take its time.
		c.until("another element has ended", func() bool { now = ended(); return now > before })
		before = now
	}
	has, most, seen := map[int64]bool{}, 0, map[int64]bool{}
	for _, e := range events.Events {
		switch e.Type {
		case api.EventReserved:
			has[e.JobID], seen[e.JobID] = true, true
		case api.EventRolledBack, api.EventEnded:
			delete(has, e.JobID)
		}
		most = max(most, len(has))
	}
	if most != 7 || len(seen) != n {
		t.Errorf("array %d: at most %d of %d elements at a time, want 7; %d were admitted", id, most, n, len(seen))
	}
	t.Logf("%d elements, at most %d at a time", len(seen), most)
}

// TestArrayAgrees: who asks for an array of which some elements are held, renamed or have another limit is told
// the same by squeue, scontrol and sacct, which group as Slurm's do, by gqueue, and by --why of an element.
func TestArrayAgrees(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1")
	c.slurmNames()
	a := strconv.FormatInt(c.submit("--array=0-999%5", "--begin=now+1hour", "-t", "10", "-o", "/dev/null", "-J", "all", "--wrap", "true"), 10)
	for _, words := range []string{"hold A_7,A_8,A_500", "update jobid=A_20 name=other", "update jobid=A_30 timelimit=20", "update jobid=A_40 timelimit=5 name=x", "hold A_40"} {
		c.tool("scontrol", strings.Fields(strings.ReplaceAll(words, "A", a))...)
	}
	lines := func(text string) string {
		out := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(out)
		return strings.ReplaceAll(strings.Join(out, "\n"), a+"_", "A_")
	}
	squeue := "A_20 other 10:00\nA_30 all 20:00\nA_40 x 5:00\nA_[0-19,21-29,31-39,41-999%5] all 10:00"
	if got := lines(c.tool("squeue", "-h", "-j", a, "-o", "%i %j %l")); got != squeue {
		t.Errorf("squeue:\n%s\nwant\n%s", got, squeue)
	}
	sacct := "A_20|other|00:10:00\nA_30|all|00:20:00\nA_40|x|00:05:00\nA_500|all|00:10:00\nA_7|all|00:10:00\nA_8|all|00:10:00\nA_[0-6,9-19,21-29,31-39,41-499,501-999%5]|all|00:10:00"
	if got := lines(c.tool("sacct", "-X", "-n", "-P", "-j", a, "-o", "jobid,jobname,timelimit")); got != sacct {
		t.Errorf("sacct:\n%s\nwant\n%s", got, sacct)
	}
	var scontrol []string
	for _, l := range strings.Split(c.tool("scontrol", "-o", "show", "job", a), "\n") {
		if m := regexp.MustCompile(`ArrayTaskId=(\S+) .*JobName=(\S+) .* Reason=(\S+) .* TimeLimit=(\S+) `).FindStringSubmatch(l); m != nil {
			scontrol = append(scontrol, strings.Join(m[1:], " "))
		}
	}
	slices.Sort(scontrol)
	if want := []string{"0-6,9-19,21-29,31-39,41-499,501-999%5 all BeginTime 00:10:00", "20 other BeginTime 00:10:00",
		"30 all BeginTime 00:20:00", "40 x JobHeldAdmin 00:05:00", "500 all JobHeldAdmin 00:10:00", "7 all JobHeldAdmin 00:10:00", "8 all JobHeldAdmin 00:10:00"}; !slices.Equal(scontrol, want) {
		t.Errorf("scontrol: %q, want %q", scontrol, want)
	}
	gqueue := "A_20 other BeginTime\nA_30 all BeginTime\nA_40 x JobHeldAdmin\nA_[0-6,9-19,21-29,31-39,41-499,501-999%5] all BeginTime\nA_[7-8,500%5] all JobHeldAdmin"
	if got := lines(c.must("gqueue", "-h", "-o", "%i %j %r", a)); got != gqueue {
		t.Errorf("gqueue:\n%s\nwant\n%s", got, gqueue)
	}
	for element, reason := range map[string]string{"7": "JobHeldAdmin", "30": "BeginTime", "40": "JobHeldAdmin", "999": "BeginTime"} {
		if got := c.must("gqueue", "--why", a+"_"+element); !strings.Contains(got, reason) {
			t.Errorf("--why of %s does not say %s:\n%s", element, reason, got)
		}
	}
}
