package sim

import (
	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// licenceName is of which the site has Scenario.Licences.
const licenceName = "seat"

// licences: what gangs ask for whose processes can act, wherever they are, is never more than the site has. They are counted when
// a process begins, and when those of a machine go on that was suspended. A gang that waits no more for a member out of reach has
// given its licences back, though that one may live on for its lease: it is not counted.
func (t *truth) licences() {
	has := t.r.sc.Licences
	if has == 0 || t.onOld {
		return
	}
	used := 0
	for id, procs := range t.live {
		j := t.jobs[id]
		for _, p := range procs {
			given := j == nil || j.Epoch == p.key.Epoch && gang.JobState(j) != api.JobPending && j.Verdict == nil
			if given && !p.killed && !p.frozen() {
				used += p.s.spec.job.Licences
				break
			}
		}
	}
	if used > has {
		t.r.fail("I25", "gangs with processes use %d of %d licences", used, has)
	}
}
