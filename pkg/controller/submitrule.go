package controller

import (
	"context"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/controller/turns"
	"gangd/pkg/core/rule"
	"gangd/pkg/node/sitehook"
)

// manyRuled refuses a user more of them.
var manyRuled = &api.Error{Code: api.CodeTooMany, RetryAfter: 1, Reason: api.ReasonRule,
	Message: fmt.Sprintf("%d submissions of yours wait for the site's rule already, the most that may", turns.Waiting),
	Hint:    "submit many jobs as one array: the rule is asked once for all of its elements"}

// submitRule asks the site's program about submissions: a few at a time, and of one user one, so that a program that takes its time
// over somebody's job keeps nobody else waiting.
func submitRule(p sitehook.Program) func(ctx context.Context, uid uint32, question []byte) ([]byte, error) {
	wait := &turns.Turns{}
	return func(ctx context.Context, uid uint32, question []byte) ([]byte, error) {
		done, err := wait.Take(ctx, uid, manyRuled)
		if err != nil {
			return nil, err
		}
		defer done()
		return p.Ask(ctx, question, rule.MaxAnswer)
	}
}
