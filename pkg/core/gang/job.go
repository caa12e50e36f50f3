package gang

import (
	"slices"
	"time"

	"gangd/pkg/api"
)

func memberKey(job int64, epoch int) api.MemberKey { return api.MemberKey{Job: job, Epoch: epoch} }

// Ref is how people call the job: 12, or 12_3 of an array.
func (j *Job) Ref() api.JobRef {
	if j.ArrayID == 0 || j.ArrayIndex < 0 {
		return api.JobRef{ID: j.ID, Index: -1}
	}
	return api.JobRef{ID: j.ArrayID, Index: j.ArrayIndex}
}

func (j *Job) key() api.MemberKey { return memberKey(j.ID, j.Epoch) }

// hasProcess: in a batch launch the ranks but the first are only room.
func hasProcess(j *Job, rank int) bool { return rank == 0 || j.Spec.Launch != api.LaunchBatch }

// over: nothing more will be heard of a rank in this state.
func over(s api.RankState) bool {
	return s == api.RankDone || s == api.RankFailed || s == api.RankPreempted || s == api.RankCancelled
}

func graceOf(set *api.Settings, j *Job) time.Duration {
	if j.Spec.Grace > 0 {
		return j.Spec.Grace
	}
	return set.Grace
}

// endsBy is when a gang admitted at the instant at has ended at the latest by a time limit
// and its deadline.
func endsBy(set *api.Settings, j *Job, limit time.Duration, at time.Time) time.Time {
	end := j.Deadline
	if by := at.Add(limit); limit > 0 && (end.IsZero() || by.Before(end)) {
		end = by
	}
	if end.IsZero() {
		return end
	}
	return end.Add(graceOf(set, j))
}

// blocked: every rank waits for admission. By all-or-nothing one rank speaks for all.
func blocked(j *Job) bool { return j.Verdict == nil && j.Ranks[0].State == api.RankBlocked }

// admitted: the gang has nodes.
func admitted(j *Job) bool { return j.Verdict == nil && !blocked(j) }

// reserved: the gang has nodes and no process yet.
func reserved(j *Job) bool { return j.Verdict == nil && j.Ranks[0].State == api.RankReserved }

// running: the gate of its epoch was opened, and it is not over.
func running(j *Job) bool {
	return j.Verdict == nil && len(j.Members) > 0 && slices.ContainsFunc(j.Members, func(m Member) bool { return working(m.State) })
}

// working: its gate was opened and it is not over.
func working(s MemberState) bool {
	return s == MemberStarting || s == MemberRunning || s == MemberStopping
}

// JobState is the state that people see, derived from the ranks.
func JobState(j *Job) api.JobState {
	switch {
	case j.Verdict != nil:
		return j.Verdict.State
	case j.Drain != nil:
		return api.JobCompleting
	case len(j.Ranks) == 0 || j.Ranks[0].State == api.RankBlocked:
		return api.JobPending
	case j.Ranks[0].State == api.RankReserved:
		return api.JobReserved
	}
	return api.JobRunning
}

// phrase says the state in the middle of a sentence.
func phrase(j *Job) string {
	switch JobState(j) {
	case api.JobPending:
		return "waiting"
	case api.JobReserved:
		return "being started"
	case api.JobRunning:
		return "running"
	case api.JobCompleting:
		return "being stopped"
	}
	return "over"
}

func count(j *Job, s api.RankState) int {
	n := 0
	for i := range j.Ranks {
		if j.Ranks[i].State == s {
			n++
		}
	}
	return n
}

// Processes is how many ranks of a gang are processes.
func Processes(j *Job) int {
	if j.Spec.Launch == api.LaunchBatch {
		return 1
	}
	return len(j.Ranks)
}

// Recurs reports whether it comes again by a cron table: when the job ends it waits for its next time.
func Recurs(j *Job) bool { return j.Spec.Cron != nil && j.Verdict == nil && !j.LastRun }

// begins: a job waits for a time that it was given, not for the end of a back-off.
func begins(j *Job) bool {
	return j.Epoch == 0 || j.Spec.Cron != nil && j.BackoffUntil.Before(j.Eligible)
}

// againstJob: a second node that says so makes it the job's fault.
func againstJob(b api.Blame) bool {
	return b != blameLate && b != api.BlameJob && b != api.BlameNode && b != api.BlameCard && b != api.BlameUnfit
}

// RefusedBy names the nodes that refused a gang, sorted.
func RefusedBy(j *Job) []string {
	var out []string
	for _, r := range j.Refusals {
		if againstJob(r.Blame) {
			out = append(out, r.Node)
		}
	}
	slices.Sort(out)
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
