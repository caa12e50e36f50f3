package gang

import (
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/stacks"
)

// Where the processes of a gang were when a watchdog or its time limit ended it. Each member says it before it stops them; they are
// compared when all have, at the latest when the drain is complete, and that is kept with the attempt.

// hangs: of what ends a gang this is what one of its processes may have brought about by not getting on.
func hangs(c api.Cause) bool {
	return c == api.CauseStalled || c == api.CauseGPUHang || c == api.CauseTimeout || c == api.CauseDeadline
}

// seenAt takes in where the processes of a member are.
func seenAt(e *entry, i int, ma *api.MemberActual) bool {
	if ma.Stacks == nil || e.stacks[i] != nil {
		return false
	}
	if e.stacks == nil {
		e.stacks = map[int]*api.MemberStacks{}
	}
	e.stacks[i] = ma.Stacks
	return true
}

// compare compares the members of a gang that is being stopped, once: now if all have said where they are, or at last.
func (st *stops) compare(e *entry, last bool) {
	d := e.job.Drain
	if d == nil || d.Stacks != nil || !hangs(d.Cause) || st.set.StallDump <= 0 {
		return
	}
	if d.Cause != api.CauseStalled && d.Cause != api.CauseGPUHang && len(e.stacks) == 0 {
		return // nobody was told to look
	}
	for i := range e.job.Members {
		if e.stacks[i] == nil && !last && e.job.Members[i].State != MemberStopped && e.job.Members[i].State != MemberFenced {
			return
		}
	}
	j := st.jobs.edit(e)
	found := CompareStacks(j, st.clock.now, func(i int) *api.MemberStacks { return e.stacks[i] })
	j.Drain.Stacks = &found
	st.record.emitJob(j, api.Event{Type: api.EventStacks, Cause: d.Cause, Text: found.Text})
}

// CompareStacks compares what was seen of the members of a gang; of, by a member's place, is nil where it did not say.
func CompareStacks(j *Job, now Instant, of func(member int) *api.MemberStacks) api.Stacks {
	g := stacks.Gang{Job: j.ID, Time: now.Wall}
	if len(j.Spec.Roles) > 0 {
		g.Role = j.Spec.RoleName
	}
	for i := range j.Members {
		m := &j.Members[i]
		g.Members = append(g.Members, stacks.Member{Node: m.Node, Stacks: of(i)})
		for _, r := range m.Ranks {
			if s := j.Ranks[r].State; hasProcess(j, r) && s != api.RankDone && s != api.RankFailed {
				g.Running = append(g.Running, r)
			}
		}
	}
	slices.Sort(g.Running)
	return stacks.Compare(g)
}

// withStacks adds to why an epoch ended who was not where the others were; where nobody is named it is the words of the event alone.
func withStacks(d *Drain, text string) string {
	if d.Stacks == nil || len(d.Stacks.Groups) == 0 || len(d.Stacks.Odd) == 0 && (d.Cause == api.CauseTimeout ||
		d.Cause == api.CauseDeadline) {
		return text
	}
	return text + "; " + d.Stacks.Text
}
