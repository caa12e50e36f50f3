package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// everyRole is the value of --ready without a role: no role can be called so.
const everyRole = "*"

// NewGbarrier is the command gbarrier, which runs inside a job. Without a dial it only has
// its options.
func NewGbarrier(dial DialRank) *cobra.Command {
	var limit time.Duration
	var ready string
	cmd := &cobra.Command{
		Use:   "gbarrier [OPTIONS] NAME | gbarrier --ready[=ROLE]",
		Short: "wait until every rank of the job has come to the same name, or is ready",
		Example: `  gbarrier loaded                the ranks go on together
  gbarrier --ready=coordinator   until each rank of that role has said READY=1
  gbarrier --timeout=90s loaded || exit 1   status 1: a rank ended, the job is being stopped, or time is up`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case ready != "" && len(args) > 0:
				return Usagef("gbarrier --ready takes no name; a role is written behind =: gbarrier --ready=%s", args[0])
			case ready == "" && (len(args) != 1 || args[0] == ""):
				return Usagef("gbarrier takes one name")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit <= 0 {
				return Usagef("invalid value %s for --timeout: want more than nothing, as in 90s or 10m", when.Words(limit))
			}
			c, err := dial()
			if err != nil {
				return err
			}
			if ready != "" {
				return meet(cmd.Context(), limit, notReady(ready, limit), func(ctx context.Context) error {
					_, err := c.Ready(ctx, readyRole(ready))
					return err
				})
			}
			key := rand.Text()
			late := fmt.Errorf("barrier %s: not every rank came within %s", args[0], when.Words(limit))
			return meet(cmd.Context(), limit, late, func(ctx context.Context) error {
				_, err := c.Barrier(ctx, key, args[0])
				return err
			})
		},
	}
	f := cmd.Flags()
	f.DurationVar(&limit, "timeout", 10*time.Minute, "wait so long at most: this `TIME`")
	f.StringVar(&ready, "ready", "", "wait until every rank, or every rank of this `ROLE`, has said READY=1")
	f.Lookup("ready").NoOptDefVal = everyRole
	return cmd
}

func readyRole(ready string) string {
	if ready == everyRole {
		return ""
	}
	return ready
}

func notReady(ready string, limit time.Duration) error {
	if role := readyRole(ready); role != "" {
		return fmt.Errorf("not every rank of role %s was ready within %s", role, when.Words(limit))
	}
	return fmt.Errorf("not every rank was ready within %s", when.Words(limit))
}

// meet calls f within a time, after which the error is late.
func meet(ctx context.Context, limit time.Duration, late error, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	err := insist(ctx, limit, f)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &ExitError{Status: api.ExitRefused, Err: late}
	}
	return err
}
