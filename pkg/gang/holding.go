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
	specs map[string]*heldSpec
}

type heldSpec struct {
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
	if bytes := specOverhead + ev.Spec.TextBytes(); w.set.UserBytes > 0 && h.specs[ev.SpecHash] == nil && h.bytes+bytes > w.set.UserBytes {
		return &api.Error{Code: api.CodeTooMany, Hint: "leave out of the environment what the jobs do not need: --export=NAME,NAME; or make them one array, which counts once",
			Message: fmt.Sprintf("scripts and environments of the jobs of %s that have not ended have %d bytes, this one has %d, and a user may have %d (user_bytes)", ev.User, h.bytes, bytes, w.set.UserBytes)}
	}
	return nil
}

// countHeld counts a job that has not ended, uncountHeld one that has.
func (w *World) countHeld(j *Job) {
	w.live++
	h := w.holdings[j.UID]
	if h == nil {
		h = &holding{specs: map[string]*heldSpec{}}
		w.holdings[j.UID] = h
	}
	h.jobs++
	s := h.specs[j.SpecHash]
	if s == nil {
		s = &heldSpec{bytes: specOverhead + j.TextBytes}
		h.specs[j.SpecHash] = s
		h.bytes += s.bytes
	}
	s.jobs++
}

func (w *World) uncountHeld(j *Job) {
	w.live--
	h := w.holdings[j.UID]
	s := h.specs[j.SpecHash]
	if s.jobs--; s.jobs == 0 {
		delete(h.specs, j.SpecHash)
		h.bytes -= s.bytes
	}
	if h.jobs--; h.jobs == 0 {
		delete(w.holdings, j.UID)
	}
}
