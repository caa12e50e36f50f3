package cli

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/table/column"
)

func newOutbox() *cobra.Command {
	var asJSON, retry bool
	cmd := &cobra.Command{
		Use: "outbox", Short: "list what people are to be told of jobs and were not yet", Args: noArgs,
		Example: `  gctl outbox              what waits, and what was given up; exit status 1 for the latter
  gctl outbox --retry      try once more what was given up, of everybody
  gctl outbox --json       the same list for a script`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := client.New()
			if retry {
				if err := c.RetryOutbox(cmd.Context()); err != nil {
					return err
				}
			}
			out, err := c.Outbox(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				err = WriteJSON(cmd.OutOrStdout(), out)
			} else {
				err = writeOutbox(cmd.OutOrStdout(), out)
			}
			if err == nil && len(out.GivenUp) > 0 {
				return &ExitError{Status: 1}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&retry, "retry", false, "try once more what was given up (an admin may)")
	return cmd
}

func writeOutbox(w io.Writer, out *api.OutboxReply) error {
	for i := range out.Lines {
		l := &out.Lines[i]
		what, to := count(l.Waiting, "event waits", "events wait"), cmp.Or(l.To, l.Target)
		if l.Report {
			what, to = count(l.Waiting, "report waits", "reports wait"), "node "+l.To
		}
		line := fmt.Sprintf("%s: %s for %s since %s", l.User, what, to, l.Oldest.Local().Format(time.DateTime))
		if l.Error != "" {
			line += fmt.Sprintf("; failed %s: %s", count(l.Tries, "time", "times"), l.Error)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	for i := range out.GivenUp {
		l := &out.GivenUp[i]
		if _, err := fmt.Fprintf(w, "%s: given up after a day: %s of job %s to %s: %s\n", l.User, l.Type, l.Ref,
			column.Printable(cmp.Or(l.To, l.Target)), column.Printable(l.Error)); err != nil {
			return err
		}
	}
	return nil
}
