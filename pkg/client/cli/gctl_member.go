package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

func newNodeAdd() *cobra.Command {
	ttl := time.Hour
	cmd := &cobra.Command{
		Use: "add NODES", Short: "print the lines by which nodes join, one each", Args: someNodes,
		Example: `  gctl node add n9 | ssh n9 gnoded join -    the line appears in no list of processes
  gctl node add --ttl=24h n[9-12]    a line for each, good for a day
  gctl node add n3                   also one that had joined before, or was removed`,
		Long: `Each line is good for one node, which has that name, once. It is a password until it is used. The node is
known from its first session on.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if ttl <= 0 {
				return Usagef("--ttl must be more than 0")
			}
			names, err := expandNodes(args)
			if err != nil {
				return err
			}
			c := client.New()
			return forEach(cmd, names, func(name string) error {
				seconds := int64((ttl + time.Second - 1) / time.Second)
				reply, err := c.NewToken(cmd.Context(), &api.TokenRequest{Node: name, Uses: 1, TTLSeconds: seconds})
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), reply.Line)
				return err
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().DurationVar(&ttl, "ttl", ttl, "how long they may be used, at most 168h (`DURATION`)")
	return cmd
}

// sessionEnds is how long a node that was cut off may take until the controller has seen its session end.
const sessionEnds = 30 * time.Second

func newNodeRemove() *cobra.Command {
	var reason, deadline string
	cmd := &cobra.Command{
		Use: "remove NODES", Short: "empty nodes, cut them off and forget them", Args: someNodes,
		Example: `  gctl node remove n3                        when what runs there has ended
  gctl node remove --deadline=18:00 n[3-5]   what runs at 18:00 goes elsewhere
  gctl node add n3                           have it join again`,
		Long: `Each node gets no new work; when nothing runs there any more its certificate counts no more, its session is cut,
and it is in no table and no metric any more. A node that is lost is removed when nothing of any job is waited for there.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := drainBy(reason, deadline)
			if err != nil {
				return err
			}
			names, err := expandNodes(args)
			if err != nil {
				return err
			}
			c := client.New()
			var gone []string // lost already: nobody can empty them
			all, err := c.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			for i := range all.Nodes {
				if n := &all.Nodes[i]; n.State == api.NodeLost {
					gone = append(gone, n.Name)
				}
			}
			return forEach(cmd, names, func(name string) error { return removeNode(cmd, c, name, req, gone) })
		},
		ValidArgsFunction: completeNodes,
	}
	cmd.Flags().StringVar(&reason, "reason", "removed", "why (`TEXT`), for all who see the node meanwhile")
	cmd.Flags().StringVar(&deadline, "deadline", "", "stop what still runs there at `TIME`, to run elsewhere: 18:00, now+6hours")
	return cmd
}

func removeNode(cmd *cobra.Command, c *client.Client, name string, req *api.NodeAction, gone []string) error {
	ctx := cmd.Context()
	lost := slices.Contains(gone, name)
	if !lost {
		if err := c.NodeAction(ctx, name, "drain", req); err != nil {
			return err
		}
		line := statusLine(cmd, false)
		err := awaitDrained(cmd, []string{name}, line)
		line.Clear()
		if err != nil {
			return err
		}
	}
	if err := c.Revoke(ctx, name); err != nil && api.CodeOf(err) != api.CodeNotFound {
		return fmt.Errorf("%s: its certificate counts on: %w", name, err)
	}
	began, said := time.Now(), false
	for {
		err := c.NodeAction(ctx, name, "forget", &api.NodeAction{})
		var e *api.Error
		if err == nil || !errors.As(err, &e) || e.Code != api.CodeConflict || lost {
			return err
		}
		if time.Since(began) > sessionEnds && !said {
			said = true
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: waits for the end of its session: stop gnoded there (%s)\n", name, strings.TrimSpace(e.Message))
		}
		if err := pause(ctx, drainedPoll); err != nil {
			return err
		}
	}
}
