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

// holdings are those of all users.
type holdings struct {
	set   *api.Settings
	specs *specs

	byUser map[uint32]*holding // of jobs that have not ended
	live   int                 // those jobs
}

// specOverhead is about what a specification takes beside its texts.
const specOverhead = 1 << 10

// mayHold refuses a submission with which its user, or all of them, would hold more than the site
// allows.
func (hs *holdings) mayHold(ev *Submit, count int) *api.Error {
	if most := hs.set.MaxJobs; most > 0 && hs.live+count > most {
		return &api.Error{Code: api.CodeTooMany, Hint: "submit again when some have ended",
			Message: fmt.Sprintf("the cluster has %d jobs that have not ended, %d more are asked for, and it takes %d", hs.live, count, most)}
	}
	h := hs.byUser[ev.UID]
	if h == nil {
		h = &holding{}
	}
	if most := hs.set.UserJobs; most > 0 && h.jobs+count > most {
		return &api.Error{Code: api.CodeTooMany, Hint: "submit again when some have ended",
			Message: fmt.Sprintf("%s has %d jobs that have not ended, %d more are asked for, and a user may have %d", ev.User, h.jobs, count, most)}
	}
	if bytes := specOverhead + ev.Spec.TextBytes(); hs.set.UserBytes > 0 && !hs.holds(ev) && h.bytes+bytes > hs.set.UserBytes {
		return &api.Error{Code: api.CodeTooMany, Hint: "leave out of the environment what the jobs do not need: --export=NAME,NAME; or make " +
			"them one array, which counts once",
			Message: fmt.Sprintf("scripts, environments and options of the jobs of %s that have not ended have %d bytes, this one has %d, and a "+
				"user may have %d", ev.User, h.bytes, bytes, hs.set.UserBytes)}
	}
	return nil
}

// holds: the user has a job with this specification that has not ended.
func (hs *holdings) holds(ev *Submit) bool {
	s := hs.specs.byKey[specKey{ev.UID, ev.SpecHash}]
	return s != nil && s.live > 0
}

// count counts a job that has not ended, uncount one that has.
func (hs *holdings) count(j *Job) {
	hs.live++
	h := hs.byUser[j.UID]
	if h == nil {
		h = &holding{}
		hs.byUser[j.UID] = h
	}
	h.jobs++
	s := hs.specs.byKey[j.specKey()]
	if s.live++; s.live == 1 {
		h.bytes += specOverhead + j.TextBytes
	}
}

func (hs *holdings) uncount(j *Job) {
	hs.live--
	h := hs.byUser[j.UID]
	s := hs.specs.byKey[j.specKey()]
	if s.live--; s.live == 0 {
		h.bytes -= specOverhead + j.TextBytes
	}
	if h.jobs--; h.jobs == 0 {
		delete(hs.byUser, j.UID)
	}
}
