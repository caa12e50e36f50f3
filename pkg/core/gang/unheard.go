package gang

import (
	"gangd/pkg/api"
)

// A lead is for who can hear of it. Where no process of a gang has a handler for the notice, and none looks for its
// reason, a cancel or a requeue would be waited for in vain: the stop comes at once. Before a preemption and a time limit such a
// gang keeps its lead, because it computes on.

// unheardText is what people read of it.
const unheardText = "nobody listens: ending now"

// deaf takes in whether anybody of a member can hear the notice.
func (st *stops) deaf(e *entry, i int, ma *api.MemberActual) bool {
	if ma.Noticed {
		if e.deaf == nil {
			e.deaf = map[int]bool{}
		}
		e.deaf[i] = ma.Deaf
		e.heard = e.heard || !ma.Deaf
	}
	return st.endUnheard(e)
}

// endUnheard ends a lead that every member has said to be of no use to it. Once somebody has heard of it, others may know
// from him.
func (st *stops) endUnheard(e *entry) bool {
	d := e.job.Drain
	if d == nil || d.Lead == 0 || e.heard || (!e.job.Cancelled && d.Cause != api.CauseRequeued) {
		return false
	}
	for i := range e.job.Members {
		if e.job.Members[i].State == MemberStopping && !e.deaf[i] {
			return false
		}
	}
	if !st.cancelLead(e) {
		return false
	}
	st.record.emitJob(e.job, api.Event{Type: api.EventUnheard, Text: unheardText})
	return true
}
