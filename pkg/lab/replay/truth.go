package replay

import (
	"time"

	"gangd/pkg/lab/trace"
)

// Truth is what nobody knows who plans for real. The reference orders marked with a * are
// given it.
type Truth struct{ s *Sim }

// Truth of a run.
func (s *Sim) Truth() Truth { return Truth{s} }

// Job is a job of the trace.
func (t Truth) Job(id int64) *trace.Job { return t.s.job(id) }

// Remaining is how much work is left of a job now.
func (t Truth) Remaining(id int64) time.Duration {
	l := &t.s.lives[id-1]
	left := t.s.job(id).Duration - l.done
	if l.began >= 0 {
		left -= max(0, t.s.now-l.began-l.overhead)
	}
	return left
}

// Attained is how long a job has worked by now.
func (t Truth) Attained(id int64) time.Duration { return t.s.job(id).Duration - t.Remaining(id) }

// Started is when the current epoch of a job began, -1 when it does not run.
func (t Truth) Started(id int64) time.Duration { return t.s.lives[id-1].began }

// Now is the instant of the run.
func (t Truth) Now() time.Duration { return t.s.now }
