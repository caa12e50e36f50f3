package sim

import (
	"testing"
	"time"
)

// cost is what a path costs whatever the load of the machine: commits of the controller, each a sync, frames of sessions, orders
// to shims, words of shims, and those of them that are synced first.
type cost struct{ Commits, Frames, Orders, Words, Synced int }

func (c cost) minus(o cost) cost {
	return cost{c.Commits - o.Commits, c.Frames - o.Frames, c.Orders - o.Orders, c.Words - o.Words, c.Synced - o.Synced}
}

// costOf is the most that a scenario costs with several draws of delays: what comes at the same moment shares commits and frames.
func costOf(t *testing.T, sc Scenario) (most cost) {
	t.Helper()
	for seed := range uint64(8) {
		sc.Seed = seed + 1
		r := holds(t, &sc)
		most = cost{max(most.Commits, r.Commits), max(most.Frames, r.Frames), max(most.Orders, r.Orders), max(most.Words, r.Words), max(most.Synced, r.Synced)}
	}
	return most
}

// TestCosts counts the paths that people wait for. A commit, frame, order or word more fails here until the number is
// changed, which has to be worth it. The time of a machine is measured by bench.
func TestCosts(t *testing.T) {
	const second = time.Second
	set := Settings()
	set.Lease = 0 // renewals are of the time that a member lives, not of what happens to it
	on := func(n int, jobs ...Job) Scenario {
		return Scenario{Name: "counted", Nodes: nodes(n, 2), Jobs: jobs, Calm: 20 * second, Settings: set}
	}
	one := Job{At: second, Ranks: 2, Nodes: 1, Runs: Behaviour{For: 3 * second}}
	next := one
	next.At = 2 * second
	three := Job{At: second, Ranks: 3, Nodes: 3, Runs: one.Runs}
	batch := Job{At: second, Ranks: 2, Nodes: 1, Batch: true, Runs: Behaviour{For: 8 * second}}
	stepped := batch
	stepped.Steps = []Step{{After: 2 * second, Tasks: 1, Runs: Behaviour{For: 2 * second}}}
	long := Job{At: second, Ranks: 2, Nodes: 1, Runs: Behaviour{For: 8 * second}}
	again, cancelled := on(1, long), on(1, long)
	again.Faults = []Fault{{At: 4 * second, Do: Requeue, N: 1}}
	cancelled.Faults = []Fault{{At: 4 * second, Do: Cancel, N: 1}}

	cleaned := on(1, one)
	cleaned.Nodes = withEpilogs(cleaned.Nodes, second)

	for _, c := range []struct {
		path       string
		with, less Scenario
		want       cost
	}{
		{"a gang of one node, from submission to end", on(1, one), on(1),
			cost{Commits: 3, Frames: 5, Orders: 2, Words: 3, Synced: 1}},
		{"a gang of three nodes, from submission to end", on(3, three), on(3),
			cost{Commits: 7, Frames: 21, Orders: 6, Words: 9, Synced: 3}},
		{"one that waits for it: from submission, over the other's end, to its own", on(1, one, next), on(1, one),
			cost{Commits: 3, Frames: 3, Orders: 2, Words: 3, Synced: 1}},
		{"a step of one task", on(1, stepped), on(1, batch),
			cost{Commits: 2, Frames: 5, Orders: 2, Words: 2, Synced: 1}},
		{"a gang that is requeued once, from submission to end", again, on(1),
			cost{Commits: 7, Frames: 10, Orders: 5, Words: 8, Synced: 3}},
		{"a gang that is cancelled, from submission to end", cancelled, on(1),
			cost{Commits: 5, Frames: 7, Orders: 3, Words: 5, Synced: 2}},
		{"the same where the site has an epilog: its end is told apart from what is free then", cleaned, on(1),
			cost{Commits: 4, Frames: 6, Orders: 2, Words: 3, Synced: 1}},
	} {
		t.Run(c.path, func(t *testing.T) {
			if got := costOf(t, c.with).minus(costOf(t, c.less)); got != c.want {
				t.Errorf("costs %+v, wanted %+v", got, c.want)
			}
		})
	}
}
