package engine

import (
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// checkDeadline refuses a job that could not end in time if it started at once, and what
// does not go together. limit is its time limit, the partition's filled in.
func (e *Engine) checkDeadline(s *api.Spec, limit time.Duration) error {
	least := limit
	if s.TimeMin > 0 {
		least = s.TimeMin
	}
	switch {
	case limit > 0 && s.TimeMin > limit:
		return api.Errorf(api.CodeInvalid, "the least time limit, %s, is above the time limit, %s", when.Words(s.TimeMin),
			when.Words(limit)).About(api.ReasonTimeMin, "")
	case s.Deadline.IsZero():
		return nil
	}
	now := e.opt.Clock.Now().Wall
	from, said := now, "now"
	if s.Begin.After(now) {
		from, said = s.Begin, "its begin time, "+when.Clock(now, s.Begin)
	}
	left := s.Deadline.Sub(from)
	if left >= max(least, time.Second) {
		return nil
	}
	err := api.Errorf(api.CodeInvalid, "no end before the deadline %s is possible: that is %s after %s, and the time limit is %s",
		when.Clock(now, s.Deadline), when.Words(left.Round(time.Second)), said, limitText(limit)).About(api.ReasonTimeLimit, "")
	if s.TimeMin > 0 && left > 0 {
		err.Reason = api.ReasonTimeMin
	}
	if left <= 0 && s.Begin.After(now) {
		err.Reason = api.ReasonBegin
	}
	switch {
	case left < time.Second:
		err.Message = fmt.Sprintf("the deadline %s is not after %s", when.Clock(now, s.Deadline), said)
		err.Hint = "give a later --deadline"
	case s.TimeMin == 0:
		err.Hint = "ask for less with --time, or let the limit be cut with --time-min"
	default:
		err.Message += fmt.Sprintf(", to be cut to %s at most", when.Words(s.TimeMin))
		err.Hint = "ask for less with --time-min, or give a later --deadline"
	}
	return err
}
