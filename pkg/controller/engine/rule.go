package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/api/bound"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/rule"
)

// ruled is resolve for what the site's rule for submissions has looked at first. It is asked once, by the goroutine of the call: a
// requeue, a further element of an array and a further run of a cron table are the same job. Where the rule gives no answer that is
// understood, nothing is taken.
func (e *Engine) ruled(ctx context.Context, r *api.SubmitRequest, who Caller) (*gang.Submit, []string, error) {
	r.Spec.Ruled = nil
	if e.conf().Rule == nil {
		return e.resolve(ctx, r, who)
	}
	switch known, err := e.submitted(ctx, ownKey(who.UID, r.Key)); {
	case err != nil:
		return nil, nil, err
	case known: // a repeat, which is answered with the job that is there
		return e.resolve(ctx, r, who)
	}
	// What is refused anyway is not asked about, and nobody is put before others because a rule is silent of it.
	if err := checkSpec(&r.Spec, r.Array); err != nil {
		return nil, nil, err
	}
	if err := mayRank(&r.Spec, who); err != nil {
		return nil, nil, err
	}
	message, err := e.askRule(ctx, r, who)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range r.Spec.Ruled {
		if c.Field == "priority" || c.Field == "nice" {
			who.Admin = true // it is the site that ranks it
		}
	}
	ev, warnings, err := e.resolve(ctx, r, who)
	if err != nil {
		if refused, ours := err.(*api.Error); ours && len(r.Spec.Ruled) > 0 {
			more := *refused
			more.Message += " (the site's rule changed " + api.RuleText(r.Spec.Ruled) + ")"
			err = &more
		}
		return nil, nil, err
	}
	if len(r.Spec.Ruled) > 0 {
		warnings = append([]string{"the site's rule changed " + api.RuleText(r.Spec.Ruled)}, warnings...)
	}
	if message != "" {
		warnings = append([]string{message}, warnings...)
	}
	return ev, warnings, nil
}

// submitted reports whether a submission with this key is in the queue: one that is repeated is not judged a second time.
func (e *Engine) submitted(ctx context.Context, key string) (known bool, err error) {
	if key == "" {
		return false, nil
	}
	err = e.inspect(ctx, func() { known = e.world.Submitted(key) })
	return known, err
}

// askRule asks the rule and makes its changes in the request.
func (e *Engine) askRule(ctx context.Context, r *api.SubmitRequest, who Caller) (message string, err error) {
	q := rule.Ask(r, e.policy().Partitions)
	r.Spec.Ruled, message, err = e.judge(ctx, q, &r.Spec, who)
	if err == nil {
		err = unusable(bound.Check(r))
	}
	return message, err
}

// judge asks the rule and makes its changes in s.
func (e *Engine) judge(ctx context.Context, q *rule.Question, s *api.Spec, who Caller) (changes []api.RuleChange, message string,
	err error) {
	q.User, q.UID, q.GID, q.Admin = who.User, who.UID, who.GID, who.Admin
	question, err := json.Marshal(q)
	if err != nil {
		return nil, "", fmt.Errorf("the question to the site's rule: %w", err)
	}
	ask := e.conf().Rule
	if ask == nil { // the site has none any more
		return nil, "", nil
	}
	text, err := ask(ctx, who.UID, question)
	switch {
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case err != nil && api.CodeOf(err) == api.CodeTooMany: // its turn did not come
		return nil, "", err
	}
	var a *rule.Answer
	if err == nil {
		a, err = rule.Parse(text)
	}
	if err == nil && a.Refuse == "" {
		changes, err = a.Apply(s)
	}
	if err != nil {
		e.log.Error("submit_rule gives no answer: what it is asked about is refused", "user", who.User, "name", s.Name, "err", err)
		return nil, "", unusable(err)
	}
	if a.Refuse != "" {
		if a.Message != "" {
			a.Refuse += " (" + a.Message + ")"
		}
		return nil, "", &api.Error{Code: api.CodePermission, Message: "the site's rule refuses this job: " + a.Refuse, Reason: api.ReasonRule}
	}
	return changes, a.Message, nil
}

// unusable refuses what the rule was asked about, because of err.
func unusable(err error) error {
	if err == nil {
		return nil
	}
	return &api.Error{Code: api.CodeConflict, Reason: api.ReasonRule,
		Message: "the site's rule for submissions gave no answer that can be used, so that the job is not taken: " + err.Error(),
		Hint:    "try again later, and tell your administrator"}
}

// ruled asks the rule whether it takes a job as its owner would have it from now on. What it would change is not changed but
// refused: who asks is told what he may ask for. Of what comes out alike, as with elements of an array, it is asked once.
func (c *change) ruled(ctx context.Context, j *gang.Job, ev *gang.Update) error {
	e := c.e
	if e.conf().Rule == nil || c.who.Admin ||
		ev.Spec == nil && ev.Name == nil && ev.Partition == nil && ev.TimeLimit == nil && ev.Begin == nil &&
			ev.Deadline == nil && ev.Constraint == nil && ev.Prefer == nil && ev.Comment == nil && ev.Nice == nil && ev.Priority == nil {
		return nil
	}
	whole, err := c.whole(ctx, j)
	if err != nil {
		return err
	}
	s := *gang.SpecOf(j)
	if ev.Spec != nil {
		s = *ev.Spec
	}
	s.Script, s.Args, s.Env = whole.Script, whole.Args, whole.Env
	s.Name, s.Partition, s.TimeLimit, s.Nice, s.Comment, s.Deadline = j.Name, j.Partition, j.TimeLimit, gang.NiceOf(j), gang.CommentOf(j),
		j.Deadline
	replace(&s.Name, ev.Name)
	replace(&s.Partition, ev.Partition)
	replace(&s.TimeLimit, ev.TimeLimit)
	replace(&s.Nice, ev.Nice)
	replace(&s.Comment, ev.Comment)
	replace(&s.Deadline, ev.Deadline)
	replace(&s.Begin, ev.Begin)
	replace(&s.Constraint, ev.Constraint)
	replace(&s.Prefer, ev.Prefer)
	if ev.Priority != nil && ev.Nice == nil {
		s.Priority = ev.Priority
	}
	q := rule.Ask(&api.SubmitRequest{Spec: s}, e.policy().Partitions)
	q.Update = true
	key, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("the question to the site's rule: %w", err)
	}
	if err, asked := c.told[string(key)]; asked {
		return err
	}
	changes, _, err := e.judge(ctx, q, &s, c.who)
	if err == nil && len(changes) > 0 {
		err = &api.Error{Code: api.CodePermission, Reason: api.ReasonRule,
			Message: "the site's rule refuses this change: it would change " + api.RuleText(changes)}
	}
	c.told[string(key)] = err
	return err
}

func replace[T any](value *T, by *T) {
	if by != nil {
		*value = *by
	}
}
