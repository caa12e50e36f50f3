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
func (fl *fleet) armClear(h *host) {
	k := timer{kind: timerClear, node: h.node.Name}
	fl.clock.timers.cancel(k)
	if h.node.DrainBy.IsZero() && len(fl.reservations.byName) == 0 {
		return
	}
	var next time.Time
	for _, p := range h.members {
		if at, _ := fl.clearAt(h, p.e.job); !at.IsZero() && p.e.job.Drain == nil && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if !next.IsZero() {
		fl.clock.in(next.Sub(fl.clock.now.Wall), k)
	}
}

// clearBy is by when a gang has to have left the node, and why; zero: it may stay.
func (fl *fleet) clearBy(h *host, j *Job) (by time.Time, text string) {
	if g, ok := h.node.Res.Grant(j.key()); ok && len(fl.reservations.byName) > 0 {
		by, text = fl.reservations.clearing(h, j, &g)
	}
	if at := h.node.DrainBy; !at.IsZero() && (by.IsZero() || at.Before(by)) {
		by, text = at, fmt.Sprintf("node %s is to be empty by %s: %s", h.node.Name, timeText(at), h.node.Admin)
		if h.node.Down {
			text = fmt.Sprintf("node %s is down: %s", h.node.Name, h.node.Admin)
		}
	}
	return by, text
}

// clearAt is when a gang on the node is told; one that is prepared then need not start.
func (fl *fleet) clearAt(h *host, j *Job) (at time.Time, text string) {
	by, text := fl.clearBy(h, j)
	if by.IsZero() {
		return by, ""
	}
	return by.Add(-lead(j, false)), text
}

// clearNode stops the gangs on a node that is to be empty whose time has come. They run
// elsewhere, and those that may not run again end: the node's fate does not wait for them.
func (fl *fleet) clearNode(h *host) {
	if h == nil {
		return
	}
	for _, k := range slices.SortedFunc(maps.Keys(h.members), api.MemberKey.Compare) {
		p, ok := h.members[k]
		if !ok || p.e.job.Drain != nil {
			continue
		}
		at, text := fl.clearAt(h, p.e.job)
		// A wall time may be farther away again than when the timer was set.
		if at.IsZero() || at.After(fl.clock.now.Wall) {
			continue
		}
		if reserved(p.e.job) {
			fl.launches.rollback(p.e, text, []string{h.node.Name}, func(int) bool { return false })
			continue
		}
		if h.node.Down {
			fl.stops.drain(p.e, api.CauseNodeLost, p.e.job.Members[p.i].Ranks[0], text)
			continue
		}
		// Late, as after a restart: the notice is what is left of it.
		left := max(0, lead(p.e.job, false)-fl.clock.now.Wall.Sub(at))
		fl.stops.drainAfter(p.e, api.CauseRequeued, -1, text, left)
	}
	fl.armClear(h)
}
