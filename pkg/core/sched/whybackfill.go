package sched

import (
	"fmt"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/sched/kept"
)

// promiseText is what a gang with a backfill is told of it.
func (wy *why) promiseText(b *kept.Backfill) string {
	on := hostlist.Compress(cluster.NodesOf(b.Slots))
	at := wy.kept.Promised(b)
	if len(b.Victims) > 0 {
		ids := make([]int64, len(b.Victims))
		for i, v := range b.Victims {
			ids[i] = v.Job
		}
		return fmt.Sprintf("%s is preempted for it; starts on %s when that has stopped, at the latest at %s", jobList(wy.View.Names, ids), on,
			when.Clock(wy.Now, at))
	}
	if at.IsZero() {
		return fmt.Sprintf("%s is kept for it; when that is free is not known, for what runs there has no time limit", on)
	}
	by := "by the time limits of what runs there"
	if wy.Reservations != nil {
		by += " and the reservations"
	}
	text := fmt.Sprintf("%s is kept for it; starts there at the latest at %s, %s", on, when.Clock(wy.Now, at), by)
	if !wy.kept.Promises(b) {
		text += ", unless gangs that need less come before"
	}
	return text
}
