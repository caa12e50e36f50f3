package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/statusline"
	"gangd/pkg/core/hostlist"
)

func newNodeReboot() *cobra.Command {
	var moment, then, reason string
	var cancel, wait, quiet bool
	cmd := &cobra.Command{
		Use: "reboot NODES", Short: "have nodes rebooted when nothing runs there any more", Args: someNodes,
		Example: `  gctl node reboot n3                             when it happens to be idle
  gctl node reboot --when=asap --reason=kernel n[3-5]  no new work there until then
  gctl node reboot --cancel n3                    take it back, as long as it was not told`,
		Long: `Each node runs its reboot_program (gnoded.toml) once nothing is left on it. It gets work again when it
is back under another boot id and well by its own checks, and not before. No job is stopped for it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cancel {
				for _, f := range []string{"when", "then", "reason", "wait"} {
					if cmd.Flags().Changed(f) {
						return Usagef("--cancel and --%s exclude each other", f)
					}
				}
				return nodeAction(cmd, "cancel-reboot", args, &api.NodeAction{})
			}
			req := &api.NodeAction{Reason: reason, Then: api.RebootThen(then)}
			switch moment {
			case "idle", "asap":
				req.Asap = moment == "asap"
			default:
				return Usagef("--when=%s: want idle or asap", moment)
			}
			switch req.Then {
			case api.RebootAsBefore, api.RebootResume, api.RebootDown:
			default:
				return Usagef("--then=%s: want resume or down", then)
			}
			was, err := bootsOf(cmd.Context(), args)
			if err != nil {
				return err
			}
			if err := nodeAction(cmd, "reboot", args, req); err != nil || !wait {
				return err
			}
			line := statusLine(cmd, quiet)
			defer line.Clear()
			return awaitReboot(cmd.Context(), client.New(), was, line)
		},
		ValidArgsFunction: completeNodes,
	}
	f := cmd.Flags()
	f.StringVar(&moment, "when", "idle", "`MOMENT`: idle, work may still come before; asap, no new work until then")
	f.StringVar(&then, "then", "", "`STATE` of the node when it is back: resume or down (default: as it was)")
	f.StringVar(&reason, "reason", "", "why (`TEXT`), for all who see the node in ginfo")
	f.BoolVar(&cancel, "cancel", false, "take it back")
	f.BoolVar(&wait, "wait", false, "wait until all of them are back")
	f.BoolVar(&quiet, "no-progress", false, "no status line on a terminal while --wait waits")
	_ = cmd.RegisterFlagCompletionFunc("when", cobra.FixedCompletions([]string{"idle", "asap"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("then", cobra.FixedCompletions([]string{"resume", "down"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// bootsOf are the boot ids of nodes, by name.
func bootsOf(ctx context.Context, args []string) (map[string]string, error) {
	names, err := expandNodes(args)
	if err != nil {
		return nil, err
	}
	all, err := client.New().Nodes(ctx)
	if err != nil {
		return nil, err
	}
	boots := map[string]string{}
	for i := range all.Nodes {
		if n := &all.Nodes[i]; slices.Contains(names, n.Name) {
			boots[n.Name] = n.BootID
		}
	}
	return boots, nil
}

// awaitReboot waits until nodes are under another boot than they were. Which of them can't be is the error.
func awaitReboot(ctx context.Context, c *client.Client, was map[string]string, line *statusline.Line) error {
	for {
		all, err := c.Nodes(ctx)
		if err != nil {
			return err
		}
		text, err := rebooting(all.Nodes, was)
		if err != nil || text == "" {
			return err
		}
		line.Set(text)
		if err := pause(ctx, drainedPoll); err != nil {
			return err
		}
	}
}

// rebooting says which nodes are not back; empty: all are.
func rebooting(all []api.Node, was map[string]string) (string, error) {
	var waits, away, failed []string
	for i := range all {
		n := &all[i]
		boot, asked := was[n.Name]
		switch {
		case !asked || n.BootID != boot && n.Reboot == nil && n.State != api.NodeSuspect:
		case n.State == api.NodeLost:
			failed = append(failed, fmt.Sprintf("node %s is lost", n.Name))
		case n.Reboot == nil && n.BootID == boot:
			failed = append(failed, fmt.Sprintf("node %s was not rebooted: %s", n.Name, noReason(n)))
		case n.Reboot != nil && n.Reboot.Issued.IsZero():
			waits = append(waits, n.Name)
		default:
			away = append(away, n.Name)
		}
	}
	if len(failed) > 0 {
		return "", fmt.Errorf("%s", strings.Join(failed, "; "))
	}
	var parts []string
	if len(waits) > 0 {
		parts = append(parts, hostlist.Compress(waits)+" still works")
	}
	if len(away) > 0 {
		parts = append(parts, hostlist.Compress(away)+" reboots")
	}
	return strings.Join(parts, ", "), nil
}

// noReason is what a node says of why it is as it is.
func noReason(n *api.Node) string {
	if n.Reason == "" {
		return "somebody has taken that back"
	}
	return n.Reason
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
