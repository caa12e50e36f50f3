package sched

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/cluster"
)

// Job 1 waits for all four cards of n1, which are free in 60 minutes; job 2 wants one of
// those that are free now.
func TestALimitIsCutToEndBeforeAClaim(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		limit, least, ending int // minutes; ending: its deadline, 0: none
		want                 string
	}{
		{"too long", 90, 0, 0, "[]"},
		{"cut", 90, 30, 0, "[2 for 1h0m0s]"},
		{"without a limit", 0, 30, 0, "[2 for 1h0m0s]"},
		{"can't be cut so far", 90, 61, 0, "[]"},
		{"short enough", 50, 30, 0, "[2 for 0s]"},
		{"its deadline ends it", 0, 0, 55, "[2 for 0s]"},
		{"its deadline does not", 0, 0, 65, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := run(testNode("n1", 32, 4, 80), 9, 60, 0, 1)
			c := lasting(2, 1, tt.limit)
			c.TimeMin = time.Duration(tt.least) * time.Minute
			if tt.ending > 0 {
				c.Deadline = epoch0.Add(time.Duration(tt.ending) * time.Minute)
			}
			p := &Policy{Order: OrderFIFO, Claims: 1}
			q := NewQueue(p, NewLedger(0))
			q.Insert(lasting(1, 4, 10))
			q.Insert(c)
			plan := Make(epoch0, &View{Nodes: []*cluster.Node{n}, Queue: q}, p)
			got := []string{}
			for _, s := range plan.Starts {
				got = append(got, fmt.Sprintf("%d for %s", s.Job, s.Limit))
			}
			if fmt.Sprint(got) != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}
