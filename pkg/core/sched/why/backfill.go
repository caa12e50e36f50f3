package why

import (
	"fmt"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/sched/kept"
)

// PromiseText is what a gang with a backfill is told of it.
func (wy *Why) PromiseText(b *kept.Backfill) string {
	nodes := cluster.NodesOf(b.Slots)
	on, are := hostlist.Compress(nodes), isOrAre(len(nodes))
	at := wy.kept.Promised(b)
	if len(b.Victims) > 0 {
		ids := make([]int64, len(b.Victims))
		for i, v := range b.Victims {
			ids[i] = v.Job
		}
		return fmt.Sprintf("%s %s preempted for it; starts on %s when that has stopped, at the latest at %s", wy.View.Names.List(ids),
			isOrAre(len(ids)), on, when.Clock(wy.Now, at))
	}
	if at.IsZero() {
		return fmt.Sprintf("%s %s kept for it; when that is free is not known, for what runs there has no time limit", on, are)
	}
	by := "by the time limits of what runs there"
	if wy.Reservations != nil {
		by += " and the reservations"
	}
	text := fmt.Sprintf("%s %s kept for it; starts there at the latest at %s, %s", on, are, when.Clock(wy.Now, at), by)
	if !wy.kept.Promises(b) {
		text += ", unless gangs that need less come before"
	}
	return text
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
