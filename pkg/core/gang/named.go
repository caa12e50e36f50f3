package gang

import (
	"maps"
	"slices"
)

// Named says what somebody is called from now on. Who somebody is says his number: a directory may have given him
// another name since he submitted, or have had none to give then.
type Named struct {
	UID  uint32
	User string
}

func (Named) event() {}

// named calls the jobs of a user that have not ended by his name. What runs goes on as it is: its nodes have been told
// the name of before.
func (cl *control) named(ev Named) Outcome {
	if cl.holdings.byUser[ev.UID] == nil || ev.User == "" {
		return ignored("nothing of that user has not ended")
	}
	changed := false
	for _, id := range slices.Sorted(maps.Keys(cl.jobs.byID)) {
		e := cl.jobs.byID[id]
		if j := e.job; j.UID != ev.UID || j.Verdict != nil || j.User == ev.User {
			continue
		}
		cl.jobs.edit(e).User = ev.User
		cl.specs.askAgain(e) // partitions may be open to one name and not to the other
		changed = true
		if blocked(e.job) {
			e.body = nil
			cl.queue.touch(e)
		}
	}
	if !changed {
		return ignored("it is so already")
	}
	return applied()
}
