package engine

import (
	"fmt"
	"slices"
	"time"

	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/gang"
)

// maxWaitLines bounds how many jobs are named that one waits for.
const maxWaitLines = 5

// waitLines says of a job that is no candidate who it waits for, how far these are, and what
// lets it go.
func (e *Engine) waitLines(j *gang.Job) []string {
	now := e.opt.Clock.Now().Wall
	switch {
	case j.Waits != "":
		return e.dependencyLines(j)
	case j.Spec.Cron != nil && j.Eligible.After(now):
		return []string{fmt.Sprintf("that is in %s; gctl requeue %d leaves that time out, gcron -e changes it", when.Words(j.Eligible.Sub(now)),
			j.ID)}
	case j.Epoch == 0 && j.Eligible.After(now):
		return []string{fmt.Sprintf("that is in %s; gctl update %d --begin=now lets it go at once", when.Words(j.Eligible.Sub(now)), j.ID)}
	case j.Array == nil || j.Array.Limit == 0:
		return nil
	}
	var lines []string
	for _, o := range e.view.snapshot(func(o *gang.Job) bool { return o.ArrayID == j.ArrayID && o.Verdict == nil && len(o.Members) > 0 }) {
		lines = append(lines, standing(o))
	}
	return append(shortened(lines), fmt.Sprintf("gctl update %d --array-limit=%d lets one more run", j.ArrayID, j.Array.Limit+1))
}

func (e *Engine) dependencyLines(j *gang.Job) []string {
	if j.Dependency == nil {
		return nil
	}
	var lines []string
	var named []int64
	for _, c := range j.Dependency.On {
		o := e.view.job(c.Job)
		if o == nil || slices.Contains(named, c.Job) {
			continue
		}
		named = append(named, c.Job)
		lines = append(lines, standing(o))
	}
	return append(shortened(lines), fmt.Sprintf("gctl update %d --dependency=none lets it go at once", j.ID))
}

func shortened(lines []string) []string {
	if more := len(lines) - maxWaitLines; more > 0 {
		return append(lines[:maxWaitLines:maxWaitLines], fmt.Sprintf("and %d more", more))
	}
	return lines
}

// standing is how far a job is, in one line.
func standing(o *gang.Job) string {
	text := fmt.Sprintf("job %s is %s", o.Ref(), gang.JobState(o))
	if o.ArrayID == o.ID && o.Array != nil {
		text = fmt.Sprintf("element %d of job %d is %s", o.ArrayIndex, o.ArrayID, gang.JobState(o))
	}
	switch limit := gang.TimeLimit(o); {
	case o.Verdict != nil || o.Start.IsZero() || len(o.Members) == 0:
	case limit > 0:
		text += "; it ends at the latest at " + o.Start.Add(limit).Format(time.RFC3339)
	default:
		text += "; it has no time limit"
	}
	return text
}
