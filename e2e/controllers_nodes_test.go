package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
)

// A hundred nodes find a new leader.
func TestManyNodesFindTheLeader(t *testing.T) {
	t.Parallel()
	chaos(t)
	const nodes = 100
	s := startSeveral(t, severalSize{rounds: 1}, fmt.Sprint("--nodes=", nodes))
	var took []time.Duration
	for range rounds(3) {
		s.bothUp()
		from := map[string]int{}
		for _, name := range severalNames {
			from[name] = len(s.log(name))
		}
		s.signal(syscall.SIGKILL)
		var led time.Time
		var back []time.Time
		s.until("all nodes to be back", func() bool {
			for _, name := range severalNames {
				if led, back = takenOver(s.log(name)[from[name]:]); len(back) == nodes {
					return true
				}
			}
			return false
		})
		first, last := back[0].Sub(led), back[nodes-1].Sub(led)
		t.Logf("the first node was back %s after the take-over, the last %s", first, last)
		took = append(took, last)
		tally.Did("take-over with a hundred nodes", 1)
	}
	slices.Sort(took)
	t.Logf("%d rounds, %d nodes were back after p50 %s, max %s", len(took), nodes, took[len(took)/2], took[len(took)-1])
}

func (s *several) log(name string) string {
	b, err := os.ReadFile(filepath.Join(s.dir, "log", name+".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// takenOver reads from a log when a controller began to lead, and when each node first had a session with it then.
func takenOver(log string) (led time.Time, back []time.Time) {
	seen := map[string]bool{}
	for line := range strings.Lines(log) {
		stamp, text, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339, strings.TrimPrefix(stamp, "time="))
		_, node, opened := strings.Cut(text, `"session opened" node=`)
		switch {
		case err != nil:
		case strings.Contains(text, "this controller leads"):
			led, back = at, nil
			clear(seen)
		case opened && !led.IsZero() && !seen[node]:
			seen[node] = true
			back = append(back, at)
		}
	}
	return led, back
}
