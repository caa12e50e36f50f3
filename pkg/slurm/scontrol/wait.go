package scontrol

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"gangd/pkg/api"
)

// stateNow is a job's state, and the last event of it that was there before.
func (c *call) stateNow(ref api.JobRef) (after int64, state api.JobState, err error) {
	events, err := c.client.Events(c.ctx, ref, 0, 0)
	if err != nil {
		return 0, "", err
	}
	if n := len(events.Events); n > 0 {
		after = events.Events[n-1].Seq
	}
	d, err := c.client.Job(c.ctx, ref)
	if err != nil {
		return 0, "", err
	}
	return after, d.Job.State, nil
}

// errHappened ends a stream of events at its first one.
var errHappened = errors.New("it happened")

// nextEvent returns when something has happened to a job; it is pushed, not asked for.
func (c *call) nextEvent(ref api.JobRef, after int64) error {
	err := c.client.ResumeEvents(c.ctx, ref, after, func() {}, func(api.Event) error { return errHappened })
	if errors.Is(err, errHappened) {
		return nil
	}
	return err
}

// reasonOf is what the C library says of a failed system call.
func reasonOf(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	var n syscall.Errno
	if !errors.As(err, &n) {
		return err.Error()
	}
	s := n.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}
