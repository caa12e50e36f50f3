package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cron"
	"gangd/pkg/core/gang"
)

// zones gives time zones by name, each read once; empty: the controller's. An unknown one is nil.
func zones() func(name string) *time.Location {
	var known sync.Map
	return func(name string) *time.Location {
		if name == "" {
			return time.Local
		}
		if z, ok := known.Load(name); ok {
			return z.(*time.Location)
		}
		z, err := time.LoadLocation(name)
		if err != nil {
			return nil // and looked for again: the site may add it
		}
		known.Store(name, z)
		return z
	}
}

// PutCrontab replaces the cron table of a user.
func (e *Engine) PutCrontab(ctx context.Context, r *api.CrontabRequest, owner Caller, by string) (*api.CrontabReply, error) {
	entries, mistakes := cron.Table(r.Text)
	if mistakes != nil {
		m := mistakes[0]
		return nil, ofLine(m.First, m.Last, api.Errorf(api.CodeInvalid, "%s", m.Text))
	}
	if !slices.EqualFunc(entries, r.Jobs, func(a cron.Entry, b api.CronJob) bool { return a.First == b.First && a.Last == b.Last }) {
		return nil, api.Errorf(api.CodeInvalid, "the table has %d lines with a time, and jobs for %d, or for others", len(entries), len(r.Jobs))
	}
	ev := gang.PutCrontab{User: owner.User, Text: r.Text, By: by}
	var warnings []string
	for i := range r.Jobs {
		j, entry := &r.Jobs[i], &entries[i]
		j.Spec.Cron = &api.Cron{Schedule: entry.Expr, Zone: entry.Zone}
		submit, warn, err := e.ruled(ctx, &api.SubmitRequest{Spec: j.Spec}, owner)
		if err != nil {
			return nil, ofLine(j.First, j.Last, err)
		}
		for _, w := range warn {
			warnings = append(warnings, fmt.Sprintf("line %d: %s", j.Last, w))
		}
		ev.Lines = append(ev.Lines, gang.CronLine{First: j.First, Last: j.Last, Submit: *submit})
	}
	if _, err := e.Do(ctx, ev); err != nil {
		return nil, err
	}
	reply := e.Crontab(owner.User)
	reply.Warnings = warnings
	return reply, nil
}

// ofLine says which lines of a table an error is of.
func ofLine(first, last int, err error) error {
	var e *api.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	return out.About(api.ReasonCronLine, fmt.Sprintf("%d-%d", first, last))
}

// Crontab is the table of a user, an empty one when there is none.
func (e *Engine) Crontab(user string) *api.CrontabReply {
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	out := &api.CrontabReply{SchemaVersion: api.SchemaVersion, Crontab: api.Crontab{User: user, Lines: []api.CronLine{}}}
	t := e.view.crontabs[user]
	if t == nil {
		return out
	}
	out.Crontab = *t
	out.Lines = slices.Clone(t.Lines)
	for i := range out.Lines {
		l := &out.Lines[i]
		if j := e.view.get(l.JobID).job; j != nil {
			l.Cron = *j.Spec.Cron
			if gang.JobState(j) == api.JobPending && j.Held == "" {
				l.Next = j.Eligible
			}
		}
	}
	return out
}

// checkCron refuses of a job that comes again what holds for one run.
func checkCron(s *api.Spec, a *api.Array) error {
	if s.Cron == nil {
		return nil
	}
	bad := func(what string) error {
		return api.Errorf(api.CodeInvalid, "%s does not go with a line of a cron table, which is due again and again", what)
	}
	switch {
	case a != nil:
		return bad("an array")
	case !s.Begin.IsZero():
		return bad("--begin")
	case !s.Deadline.IsZero():
		return bad("--deadline")
	case s.Dependency != nil:
		return bad("--dependency")
	}
	return nil
}
