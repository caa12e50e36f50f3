package gang

import "gangd/pkg/api"

func notFound(id int64) *api.Error { return api.Errorf(api.CodeNotFound, "no job %d", id) }

func ended(j *Job) *api.Error {
	return api.AlreadyEnded(j.Ref(), j.Verdict.State)
}

func conflict(hint, format string, args ...any) *api.Error {
	e := api.Errorf(api.CodeConflict, format, args...)
	e.Hint = hint
	return e
}

// by names who wanted something, for the record.
func by(what, who string) string {
	if who == "" {
		return what
	}
	return what + " by " + who
}

func notToBeRequeued(j *Job) *api.Error {
	return conflict("", "job %s was submitted not to be requeued", j.Ref()).About(api.ReasonNoRequeue, "")
}
