package gang

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gangd/pkg/api"
)

// armClear sets when the next gang on a node that is to be empty has to be told: so much
// before, that its notice is over by then. No gang comes to such a node, so that the first
// of those that are there is known.
func (w *World) armClear(h *host) {
	k := timer{kind: timerClear, node: h.node.Name}
	w.timers.cancel(k)
	if h.node.DrainBy.IsZero() {
		return
	}
	var next time.Time
	for _, p := range h.members {
		if at := clearAt(h, p.e.job); p.e.job.Drain == nil && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if !next.IsZero() {
		w.in(next.Sub(w.now.Wall), k)
	}
}

// clearAt is when a gang on the node is told; one that is prepared then need not start.
func clearAt(h *host, j *Job) time.Time { return h.node.DrainBy.Add(-lead(j, false)) }

// clearNode stops the gangs on a node that is to be empty whose time has come. They run
// elsewhere, and those that may not run again end: the node's fate does not wait for them.
func (w *World) clearNode(h *host) {
	if h == nil || h.node.DrainBy.IsZero() {
		return
	}
	text := fmt.Sprintf("node %s is to be empty by %s: %s", h.node.Name, timeText(h.node.DrainBy), h.node.Admin)
	for _, k := range slices.SortedFunc(maps.Keys(h.members), compareKeys) {
		p, ok := h.members[k]
		// A wall time may be farther away again than when the timer was set.
		if !ok || p.e.job.Drain != nil || clearAt(h, p.e.job).After(w.now.Wall) {
			continue
		}
		if reserved(p.e.job) {
			w.rollback(p.e, text, []string{h.node.Name}, func(int) bool { return false })
			continue
		}
		// Late, as after a restart: the notice is what is left of it.
		left := min(lead(p.e.job, false), max(h.node.DrainBy.Sub(w.now.Wall), 0))
		w.drainAfter(p.e, api.CauseRequeued, -1, text, left)
	}
	w.armClear(h)
}
