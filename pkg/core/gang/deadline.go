package gang

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// shortest is the least time that is worth a start before a deadline: limits are shown and
// kept in whole seconds.
const shortest = time.Second

// TimeLimit is how long the current or last epoch of a job may run: its time limit, or what
// was left of it at its start. 0: as long as it likes.
func TimeLimit(j *Job) time.Duration { return timeLimitFrom(j, begun(j)) }

func timeLimitFrom(j *Job, began time.Time) time.Duration {
	limit := baseLimit(j)
	if j.Deadline.IsZero() || began.IsZero() {
		return limit
	}
	whole := j.Deadline.Sub(began)
	left := max(whole.Truncate(time.Second), shortest)
	if takes := least(j); left < takes && takes <= whole { // a limit with a part of a second fits
		left = takes
	}
	if limit == 0 || left < limit {
		return left
	}
	return limit
}

// baseLimit is the time limit without the deadline.
func baseLimit(j *Job) time.Duration {
	limit := j.TimeLimit
	if !blocked(j) {
		limit = cmp.Or(j.CutTimeLimit, j.TimeLimit)
	}
	return withinTotal(j, limit)
}

// begun is from when the time limit of an epoch counts, zero for a gang that waits.
func begun(j *Job) time.Time {
	switch {
	case blocked(j):
		return time.Time{}
	case reserved(j):
		return j.ReservedAt
	}
	return j.Start
}

// cutByDeadline: the epoch may not run as long as its time limit says.
func cutByDeadline(j *Job) bool {
	return !j.Deadline.IsZero() && TimeLimit(j) != baseLimit(j)
}

func limitReached(j *Job) string {
	if cutByDeadline(j) {
		return fmt.Sprintf("deadline %s reached after %s", timeText(j.Deadline), when.Words(TimeLimit(j)))
	}
	return limitName(j) + " reached"
}

func limitName(j *Job) string { return "time limit of " + when.Words(TimeLimit(j)) }

// cutText says why an epoch may run for less than its time limit; empty: it may not.
func cutText(j *Job) string {
	switch {
	case cutByDeadline(j):
		return fmt.Sprintf("time limit %s, cut from %s for the deadline %s", when.Words(TimeLimit(j)), limitText(j.TimeLimit),
			timeText(j.Deadline))
	case j.CutTimeLimit > 0:
		return fmt.Sprintf("time limit %s, cut from %s to end before others' turn", when.Words(j.CutTimeLimit), limitText(j.TimeLimit))
	}
	return ""
}

// least is the shortest time limit that a job takes: without --time-min its own.
func least(j *Job) time.Duration { return withinTotal(j, leastOf(j.Spec, j.TimeLimit)) }

func leastOf(s *api.Spec, limit time.Duration) time.Duration {
	if s.TimeMin > 0 && (limit == 0 || s.TimeMin < limit) {
		limit = s.TimeMin
	}
	return max(limit, shortest)
}

// tooLate: a gang that starts now could not end by its deadline.
func tooLate(j *Job, now time.Time) bool {
	return !j.Deadline.IsZero() && now.After(j.Deadline.Add(-least(j)))
}

// LatestStart is the last moment at which a waiting job may start; zero: whenever it likes.
func LatestStart(j *Job) time.Time {
	if j.Deadline.IsZero() || !blocked(j) {
		return time.Time{}
	}
	return j.Deadline.Add(-least(j))
}

func missed(j *Job) string {
	why := "it has no time limit"
	switch {
	case j.Spec.TimeMin > 0 && (j.TimeLimit == 0 || j.Spec.TimeMin < j.TimeLimit):
		why = fmt.Sprintf("its time limit is %s and may be cut to %s", limitText(j.TimeLimit), when.Words(j.Spec.TimeMin))
	case j.TimeLimit > 0:
		why = fmt.Sprintf("its time limit is %s", when.Words(j.TimeLimit))
	}
	return fmt.Sprintf("can't end by its deadline %s any more: %s", timeText(j.Deadline), why)
}

// timeText is a moment as people and --deadline write it.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.Format(time.RFC3339)
}

// armDeadline sets when a gang that has not started is given up.
func (ln *launches) armDeadline(e *entry) {
	j, k := e.job, timer{kind: timerDeadline, job: e.job.ID}
	ln.clock.timers.cancel(k)
	if !j.Deadline.IsZero() && (blocked(j) || reserved(j)) {
		ln.clock.in(j.Deadline.Add(time.Nanosecond-least(j)).Sub(ln.clock.now.Wall), k)
	}
}

// missDeadline ends a gang that could not end by its deadline if it started now.
func (ln *launches) missDeadline(e *entry) {
	if e == nil || !blocked(e.job) && !reserved(e.job) {
		return
	}
	// A deadline is a wall time: when that clock was set back meanwhile, wait on.
	if !tooLate(e.job, ln.clock.now.Wall) {
		ln.armDeadline(e)
		return
	}
	text := missed(e.job)
	ln.jobs.edit(e).Cancelled = true
	if reserved(e.job) {
		ln.rollback(e, text, nil, func(int) bool { return false })
	}
	ln.stops.end(e, verdictOf(e.job, api.CauseDeadline, -1, text))
}

// endsInTime refuses an update after which the job could not end by its deadline.
func (cl *control) endsInTime(j *Job, ev *Update) *api.Error {
	limit, by := j.TimeLimit, j.Deadline
	if ev.TimeLimit != nil {
		limit = *ev.TimeLimit
	}
	if ev.Deadline != nil {
		by = *ev.Deadline
	}
	if by.IsZero() || ev.TimeLimit == nil && ev.Deadline == nil && ev.Begin == nil {
		return nil
	}
	begin := j.Eligible
	if ev.Begin != nil {
		begin = *ev.Begin
	}
	from, least := cl.clock.now.Wall, leastOf(j.Spec, limit)
	said := "from now on"
	if at := begun(j); !at.IsZero() {
		from, said = at, "from its start at "+timeText(at)
	} else if begin.After(from) {
		from, said = begin, "from its begin time "+timeText(begin)
	}
	if !by.After(cl.clock.now.Wall) || by.Sub(from) < least {
		return conflict("give a later deadline, or a shorter limit with --time", "job %s could not end by %s: it takes at least %s %s",
			j.Ref(), timeText(by), when.Words(least), said)
	}
	return nil
}

// armPart sets when the next part of the time limit that somebody asked about is over.
func (r *record) armPart(e *entry) {
	j := e.job
	k := timer{kind: timerNotify, job: j.ID}
	r.clock.timers.cancel(k)
	if at, _ := nextPart(j, 0); !at.IsZero() {
		r.clock.in(at.Sub(r.clock.now.Wall), k)
	}
}

// nextPart is the least part of the time limit that somebody asked about, is above least and was not told, and
// its moment; zero: there is none.
func nextPart(j *Job, least int) (at time.Time, percent int) {
	limit := TimeLimit(j)
	if limit <= 0 || !running(j) || j.Drain != nil {
		return at, 0
	}
	for _, t := range percents {
		p := t.Percent()
		if p > max(j.TimeTold, least) && slices.ContainsFunc(j.Spec.Notify, func(n api.Notify) bool { return n.Wants(t) }) {
			at, percent = j.Start.Add(limit/100*time.Duration(p)), p
		}
	}
	return at, percent
}

// tellPart tells what part of its time limit a gang has used: of several that passed while nobody
// looked the largest.
func (r *record) tellPart(e *entry) {
	if e == nil {
		return
	}
	percent := 0
	for {
		at, p := nextPart(e.job, percent)
		if at.IsZero() || at.After(r.clock.now.Wall) {
			break
		}
		percent = p
	}
	if percent > 0 {
		j := r.jobs.edit(e)
		j.TimeTold = percent
		r.emitJob(j, api.Event{Type: api.EventTimeLimitNear, Percent: percent, Text: fmt.Sprintf("%d %% of its %s is over", percent,
			limitName(j))})
	}
	r.armPart(e)
}

func limitText(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return when.Words(d)
}
