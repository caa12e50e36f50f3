package gang

import (
	"fmt"

	"gangd/pkg/api"
)

// holding is what the jobs of one user that have not ended take of the controller's memory
// and disk. A specification that several of them have, as the elements of an array do, is
// kept once and counts once. Its texts are on the disk alone.
type holding struct {
	jobs  int
	bytes int64
}

// specOverhead is about what a specification takes beside its texts.
const specOverhead = 1 << 10

// mayHold refuses a submission with which its user, or all of them, would hold more than the site
// allows.
func (w *World) mayHold(ev *Submit, count int) *api.Error {
	if most := w.set.MaxJobs; most > 0 && w.live+count > most {
		return &api.Error{Code: api.CodeTooMany, Hint: "submit again when some have ended",
			Message: fmt.Sprintf("the cluster has %d jobs that have not ended, %d more are asked for, and it takes %d (max_jobs)", w.live, count, most)}
	}
	h := w.holdings[ev.UID]
	if h == nil {
		h = &holding{}
	}
	if most := w.set.UserJobs; most > 0 && h.jobs+count > most {
		return &api.Error{Code: api.CodeTooMany, Hint: "submit again when some have ended",
			Message: fmt.Sprintf("%s has %d jobs that have not ended, %d more are asked for, and a user may have %d (user_jobs)", ev.User, h.jobs, count, most)}
	}
	if bytes := specOverhead + ev.Spec.TextBytes(); w.set.UserBytes > 0 && !w.holds(ev) && h.bytes+bytes > w.set.UserBytes {
		return &api.Error{Code: api.CodeTooMany, Hint: "leave out of the environment what the jobs do not need: --export=NAME,NAME; or make them one array, which counts once",
			Message: fmt.Sprintf("scripts, environments and options of the jobs of %s that have not ended have %d bytes, this one has %d, and a user may have %d (user_bytes)", ev.User, h.bytes, bytes, w.set.UserBytes)}
	}
	return nil
}

// holds: the user has a job with this specification that has not ended.
func (w *World) holds(ev *Submit) bool {
	s := w.specs[specKey{ev.UID, ev.SpecHash}]
	return s != nil && s.live > 0
}

// countHeld counts a job that has not ended, uncountHeld one that has.
func (w *World) countHeld(j *Job) {
	w.live++
	h := w.holdings[j.UID]
	if h == nil {
		h = &holding{}
		w.holdings[j.UID] = h
	}
	h.jobs++
	s := w.specs[j.specKey()]
	if s.live++; s.live == 1 {
		h.bytes += specOverhead + j.TextBytes
	}
}

func (w *World) uncountHeld(j *Job) {
	w.live--
	h := w.holdings[j.UID]
	s := w.specs[j.specKey()]
	if s.live--; s.live == 0 {
		h.bytes -= specOverhead + j.TextBytes
	}
	if h.jobs--; h.jobs == 0 {
		delete(w.holdings, j.UID)
	}
}
