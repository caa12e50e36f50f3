package gang

import (
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/sched"
)

// unlimited marks a budget without an end.
const unlimited = -1

// budgetOf is the cause under which a cause is counted: running out of memory is a crash.
func budgetOf(c api.Cause) api.Cause {
	if c == api.CauseOOM {
		return api.CauseCrash
	}
	return c
}

// charged: re-runs for this cause are counted. The others are nobody's failure.
func charged(c api.Cause) bool {
	switch c {
	case api.CauseCrash, api.CauseOOM, api.CauseLaunch, api.CauseNodeLost, api.CauseStalled, api.CauseGPUHang, api.CauseIdle:
		return true
	}
	return false
}

// charge counts the cause of a drain, once: siblings are never charged. An accident is charged in the step that
// decides whether the gang runs again.
func charge(j *Job, c api.Cause) {
	if !charged(c) {
		return
	}
	if j.Used == nil {
		j.Used = map[api.Cause]int{}
	}
	j.Used[budgetOf(c)]++
}

// limit is how many re-runs a job may have for a cause; -1 is no limit.
func limit(s *api.Settings, spec *api.Spec, c api.Cause) int {
	c = budgetOf(c)
	if spec.NoRequeue {
		return 0
	}
	if len(spec.RequeueCauses) > 0 && !slices.ContainsFunc(spec.RequeueCauses, func(r api.Cause) bool { return budgetOf(r) == c }) {
		return 0
	}
	switch c {
	case api.CauseCrash:
		return firstSet(0, spec.MaxRetries, spec.BackoffLimit)
	case api.CauseLaunch:
		return s.LaunchRetries
	case api.CauseNodeLost:
		return firstSet(s.NodeLostRetries, spec.BackoffLimit)
	case api.CauseStalled, api.CauseGPUHang:
		return firstSet(s.StallRetries, spec.StallRetries)
	case api.CauseIdle:
		return s.IdleRetries
	case api.CausePreempted, api.CauseRequeued:
		return unlimited
	case api.CauseTimeout:
		if len(spec.RequeueCauses) > 0 {
			return unlimited // asked for by name
		}
	}
	return 0
}

func firstSet(otherwise int, from ...*int) int {
	for _, p := range from {
		if p != nil {
			return *p
		}
	}
	return otherwise
}

// used is how much of the budget of a cause is gone. --backoff-limit given alone is one
// budget for crashes and lost nodes together.
func used(j *Job, c api.Cause) int {
	c = budgetOf(c)
	n := j.Used[c]
	if j.Spec.BackoffLimit != nil && j.Spec.MaxRetries == nil {
		switch c {
		case api.CauseCrash:
			n += j.Used[api.CauseNodeLost]
		case api.CauseNodeLost:
			n += j.Used[api.CauseCrash]
		}
	}
	return n
}

// Budgets are the budgets of a job by cause: those that count, and those switched off.
func Budgets(s *api.Settings, j *Job) map[api.Cause]api.Budget {
	out := map[api.Cause]api.Budget{}
	for _, c := range []api.Cause{api.CauseCrash, api.CauseLaunch, api.CauseNodeLost, api.CauseStalled, api.CauseGPUHang, api.CauseIdle,
		api.CausePreempted, api.CauseRequeued, api.CauseTimeout} {
		out[c] = api.Budget{Used: used(j, c), Limit: limit(s, j.Spec, c)}
	}
	return out
}

// spent: the budget does not allow the re-run that the last charge asked for.
func spent(set *api.Settings, j *Job, c api.Cause) bool {
	limit := limit(set, j.Spec, c)
	return limit == 0 || limit != unlimited && used(j, c) > limit
}

// verdict is how a job whose drain is complete ends; nil: it goes back to the queue.
func verdict(set *api.Settings, j *Job, now time.Time) *Verdict {
	d := j.Drain
	done := count(j, api.RankDone)
	killed := killedMember(j)
	byStep := endedByStep(j)
	if byStep && j.Spec.Launch == api.LaunchBatch {
		done = 0 // what its script returned is not what it is judged by
	}
	switch {
	case !byStep && killed != nil && (allDone(j) || d.Cause == api.CauseOOM && len(d.Reports) == 0):
		r := ofKills(j, killed)
		return verdictOf(j, r.Cause, r.Trigger, r.Text)
	case !byStep && (d.Cause == api.CauseCompleted || allDone(j)):
		return &Verdict{State: api.JobCompleted, Cause: api.CauseCompleted, Trigger: -1, Text: endedText(j)}
	case j.Cancelled:
		text := "cancelled"
		if d.Cause == api.CauseCancelled {
			text = d.Text
		}
		return verdictOf(j, api.CauseCancelled, d.Trigger, text)
	case done > 0:
		return verdictOf(j, d.Cause, d.Trigger, fmt.Sprintf("%s; not run again: %d of %d ranks were done", d.Text, done, len(j.Ranks)))
	case d.Cause == api.CauseTimeout && usedUp(j, now) != "":
		return verdictOf(j, d.Cause, d.Trigger, d.Text+"; "+usedUp(j, now))
	case spent(set, j, d.Cause):
		text := d.Text
		if limit := limit(set, j.Spec, d.Cause); limit > 0 {
			text = fmt.Sprintf("%s; %s for the %s time, of %d re-runs none is left", d.Text, d.Cause, sched.Ordinal(used(j, d.Cause)), limit)
		} else if d.Cause == api.CausePreempted {
			text += "; not run again, as it was submitted"
		}
		return verdictOf(j, d.Cause, d.Trigger, text)
	}
	return nil
}

func verdictOf(j *Job, c api.Cause, trigger int, text string) *Verdict {
	// A job that did not complete never shows 0, whatever its ranks returned.
	v := &Verdict{State: stateOf(c), Cause: c, Trigger: trigger, ExitCode: 1, Text: text}
	if c == api.CauseTimeout && cutByDeadline(j) {
		v.State = api.JobDeadline
	}
	if trigger >= 0 && j.Ranks[trigger].Exited && j.Ranks[trigger].ExitCode != 0 {
		v.ExitCode, v.Signal = j.Ranks[trigger].ExitCode, j.Ranks[trigger].Signal
	}
	if endedByStep(j) && c == j.StepFault.Cause {
		v.ExitCode, v.Signal = j.StepFault.ExitCode, j.StepFault.Signal
	}
	if class := c.ExitClass(); class != 0 {
		// What a rank returned says only how it took the stop.
		v.ExitCode, v.Signal = class, 0
	}
	return v
}

func stateOf(c api.Cause) api.JobState {
	switch c {
	case api.CauseOOM:
		return api.JobOutOfMemory
	case api.CauseNodeLost:
		return api.JobNodeFail
	case api.CausePreempted, api.CauseRequeued:
		return api.JobPreempted
	case api.CauseTimeout:
		return api.JobTimeout
	case api.CauseDeadline:
		return api.JobDeadline
	case api.CauseCancelled:
		return api.JobCancelled
	case api.CauseCompleted:
		return api.JobCompleted
	}
	return api.JobFailed
}

// allDone: the work is finished. In a batch launch that is the script's word alone, and with
// roles that end the gang that of any one of them.
func allDone(j *Job) bool {
	return batchDone(j) || endingRole(j) != "" || count(j, api.RankDone) == len(j.Ranks)
}

func batchDone(j *Job) bool {
	return j.Spec.Launch == api.LaunchBatch && j.Ranks[0].State == api.RankDone
}

// scriptOver: the script of a batch launch has ended, whatever it returned.
func scriptOver(j *Job) bool { return j.Spec.Launch == api.LaunchBatch && j.Ranks[0].Exited }

// endingRole names a role that ends the gang and whose ranks are all done; empty: none.
func endingRole(j *Job) string {
	first := 0
	for i := range j.Spec.Roles {
		r := &j.Spec.Roles[i]
		notDone := func(k Rank) bool { return k.State != api.RankDone }
		if r.EndsGang && !slices.ContainsFunc(j.Ranks[first:first+r.Count], notDone) {
			return r.Name
		}
		first += r.Count
	}
	return ""
}

// endedText says why a gang is complete whose ranks have not all ended by themselves.
func endedText(j *Job) string {
	role := endingRole(j)
	if role == "" || count(j, api.RankDone) == len(j.Ranks) {
		return ""
	}
	return "role " + role + " is done"
}

// AnyDone reports whether a rank of the current epoch is done.
func AnyDone(j *Job) bool { return count(j, api.RankDone) > 0 }
