package gang

import (
	"maps"
	"slices"
	"time"

	"gangd/pkg/api"
)

// A machine that is shut down sends one signal to all that runs there. Its gnoded may live for a moment after a rank of it, and
// tell how that ended: by a signal that nobody of ours has sent, as if somebody had killed the rank alone. Which of the two
// it was shows in what becomes of the node.

// goesDown is for how long after such an end a node may still be in contact that is being shut down.
const goesDown = 500 * time.Millisecond

// unsure says that the verdict of a drain that is complete has to wait for what becomes of the node of a rank that may
// have begun it, and sees to it that it is looked at again.
func (st *stops) unsure(e *entry) bool {
	r, ok := st.struckDown(e.job)
	if !ok {
		delete(st.held, e.job.ID)
		return false
	}
	n, left := st.nodes.byName[e.job.Ranks[r].Slot.Node].node, time.Duration(0)
	if e.job.Ranks[r].Signal == sigTerm {
		left = e.endAt + goesDown - st.clock.now.Mono
	}
	if !n.LostSince.IsZero() || n.Connected && left <= 0 {
		delete(st.held, e.job.ID)
		return false
	}
	if d := st.jobs.edit(e).Drain; d.Over.IsZero() {
		d.Over = st.clock.now.Wall
	}
	if n.Connected {
		st.clock.in(left, timer{kind: timerUnsure, job: e.job.ID, epoch: e.job.Epoch})
	}
	st.held[e.job.ID] = e
	return true
}

// look settles a verdict whose time to wait is over.
func (st *stops) look(e *entry) {
	if e != nil {
		st.maybeComplete(e)
	}
}

// struckDown is the rank whose end by a signal from outside was the first, or may have been.
func (st *stops) struckDown(j *Job) (rank int, ok bool) {
	first, tied := st.strongest(j)
	if first.Evidence != EvidenceEnd {
		return 0, false
	}
	for _, r := range append([]int{first.Trigger}, tied...) {
		if sig := j.Ranks[r].Signal; sig == sigTerm || sig == sigKill {
			return r, true
		}
	}
	return 0, false
}

// fateOf settles the verdicts that wait for what becomes of a node: it is back, or it is gone for the reason given.
func (st *stops) fateOf(h *host, gone string) {
	for _, id := range slices.Sorted(maps.Keys(st.held)) {
		e := st.held[id]
		r, ok := st.struckDown(e.job)
		if !ok || e.job.Ranks[r].Slot.Node != h.node.Name {
			continue
		}
		if gone != "" {
			st.accident(e, Report{Evidence: EvidenceLost, Cause: api.CauseNodeLost, Trigger: r, Text: gone})
		}
		st.maybeComplete(e)
	}
}
