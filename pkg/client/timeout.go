package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
)

// DefaultTimeout is how long a controller may be silent.
const DefaultTimeout = 10 * time.Second

type timeoutKey struct{}

// WithTimeout has the calls of ctx bear so much silence of the controller, 0: any.
func WithTimeout(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, timeoutKey{}, d)
}

func timeoutOf(ctx context.Context) (time.Duration, error) {
	if d, ok := ctx.Value(timeoutKey{}).(time.Duration); ok {
		return d, nil
	}
	text := os.Getenv(cmdline.TimeoutEnv)
	if text == "" {
		return DefaultTimeout, nil
	}
	d, err := cmdline.ParseTimeout(text)
	if err != nil {
		return 0, api.Errorf(api.CodeInvalid, "%s=%q: %v", cmdline.TimeoutEnv, text, err)
	}
	return d, nil
}

// silentError is a controller that took a call and said nothing for so long.
type silentError struct {
	For time.Duration
}

func (e *silentError) Error() string { return fmt.Sprintf("no answer within %s", when.Words(e.For)) }

// Silent reports that a call ended for the controller's silence: what was asked may have been
// done all the same.
func Silent(err error) bool {
	var s *silentError
	return errors.As(err, &s)
}

// lives gives for a call of ctx that may last what asks whether the controller that has it lives, by a call
// of its own: any answer will do but that of a relay that can't reach it.
func (c *Client) lives(ctx context.Context, socket string, limit time.Duration) func(time.Duration) error {
	return func(within time.Duration) error {
		res, err := exchange(ctx, socket, "GET", "/v1/ping", nil, within, nil)
		switch {
		case Silent(err):
			return &silentError{For: limit}
		case err != nil:
			return err
		}
		defer res.Close()
		if res.status/100 == 2 {
			return nil
		}
		if err := c.refusal(res, "GET", "/v1/ping"); api.CodeOf(err) == api.CodeUnavailable || ctx.Err() != nil {
			return err
		}
		return nil
	}
}
