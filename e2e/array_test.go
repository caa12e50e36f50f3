package e2e

import (
	"encoding/json"
	"os"
	"testing"

	"gangd/pkg/api"
)

// TestArrayLimit: of an array with %7 never more than seven elements have nodes at a time, by the
// controller's own record of each admission and each end, whatever looks when.
func TestArrayLimit(t *testing.T) {
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
