package gang

import (
	"cmp"
	"slices"

	"gangd/pkg/api"
)

// A member that its gang no longer waits for may come back with a result: its node was cut
// off for longer than the node time-out, and meanwhile its ranks ended by themselves. Until the gang
// is placed again that is the truth about its last epoch, and work that was done is not done
// once more.

// lateResult takes what a left member of the newest epoch says of the end of its ranks.
func (st *stops) lateResult(ma *api.MemberActual) {
	e := st.jobs.byID[ma.Job]
	if e == nil || e.job.Verdict != nil || e.job.Epoch != ma.Epoch || ma.Phase != api.PhaseStopped {
		return
	}
	if !blocked(e.job) && e.job.Drain == nil {
		return
	}
	found := false
	for i := range ma.Ranks {
		ra := asShell(ma.Ranks[i])
		if !ownEnd(ma, ra) || ra.Rank < 0 || ra.Rank >= len(e.job.Ranks) || !hasProcess(e.job, ra.Rank) || e.job.Ranks[ra.Rank].Exited {
			continue
		}
		found = true
		st.exitedLate(e, ra)
	}
	if found && blocked(e.job) {
		st.settleLate(e)
	}
}

func (st *stops) exitedLate(e *entry, ra *api.RankActual) {
	r := st.jobs.editRank(e, ra.Rank)
	r.Exited, r.Own, r.ExitCode, r.Signal, r.End, r.VRAMPeak = true, true, ra.ExitCode, ra.Signal, ra.Ended, ra.VRAMPeak
	if r.End.IsZero() {
		r.End = st.clock.now.Wall
	}
	st.record.emitExit(e.job, ra)
}

// settleLate ends a waiting job whose last epoch turns out to have come to its end by itself.
func (st *stops) settleLate(e *entry) {
	j := e.job
	var v *Verdict
	cause := api.CauseCompleted
	if i, failed := ownFailure(j); allDone(asDone(j)) {
		v = &Verdict{State: api.JobCompleted, Cause: cause, Trigger: -1, Text: cmp.Or(endedText(asDone(j)), lateText)}
	} else if failed {
		cause = api.CauseCrash
		j = st.jobs.edit(e)
		charge(j, cause)
		if spent(st.set, j, cause) {
			v = verdictOf(j, cause, i, exitText(j, &api.RankActual{Rank: i, ExitCode: j.Ranks[i].ExitCode, Signal: j.Ranks[i].Signal})+"; "+lateText)
		}
	} else {
		return
	}
	st.books.end(e, cause, st.clock.now.Wall)
	j = e.job
	row := epochRow(j)
	row.Ended, row.Cause = st.clock.now.Wall, cause
	st.record.epochs[j.key()] = row
	if v != nil {
		st.end(e, v)
	}
}

const lateText = "the result came after its node had been given up"

// workIsDone marks the ranks of a drained gang done that have ended well, where with them the
// gang is complete.
func (st *stops) workIsDone(e *entry) {
	as := asDone(e.job)
	if !allDone(as) {
		return
	}
	for i := range as.Ranks {
		if as.Ranks[i].State != e.job.Ranks[i].State {
			st.jobs.editRank(e, i).State = as.Ranks[i].State
		}
	}
}

// asDone is a job in which the ranks count as done that ended by themselves, and well.
func asDone(j *Job) *Job {
	as := j.Copy()
	as.Ranks = slices.Clone(as.Ranks)
	for i := range as.Ranks {
		if r := &as.Ranks[i]; r.Own && r.ExitCode == 0 {
			r.State = api.RankDone
		}
	}
	return as
}

// ownFailure is the first rank of a gang on one node that failed by itself. With other nodes it
// may have failed because its peers there were stopped when this node was given up.
func ownFailure(j *Job) (rank int, failed bool) {
	rank = -1
	for i := range j.Ranks {
		r := &j.Ranks[i]
		if r.Slot.Node != j.Ranks[0].Slot.Node {
			return -1, false
		}
		if rank < 0 && r.Own && r.ExitCode != 0 {
			rank = i
		}
	}
	return rank, rank >= 0
}
