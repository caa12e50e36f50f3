package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/statusline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
)

func newNodeDrain() *cobra.Command {
	var reason, deadline string
	var wait, quiet bool
	cmd := &cobra.Command{
		Use: "drain NODES --reason=TEXT", Short: "give nodes no new work; what runs ends by itself, or by a deadline", Args: someNodes,
		Example: `  gctl node drain n[3-5] --reason='new driver'       one node, or several
  gctl node drain n3 --deadline=18:00 --reason='fan' what runs at 18:00 goes elsewhere
  gctl node drain n3 --wait --reason='fan'           come back when nothing runs there any more`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return Usagef("a drain needs a reason, others will ask: gctl node drain %s --reason='...'", strings.Join(args, " "))
			}
			req, err := drainBy(reason, deadline)
			if err != nil {
				return err
			}
			if err := nodeAction(cmd, "drain", args, req); err != nil || !wait {
				return err
			}
			line := statusLine(cmd, quiet)
			defer line.Clear()
			return awaitDrained(cmd, args, line)
		},
		ValidArgsFunction: completeNodes,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why (`TEXT`), for all who see the node in ginfo")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until nothing runs there any more")
	cmd.Flags().BoolVar(&quiet, "no-progress", false, "no status line on a terminal while --wait waits")
	cmd.Flags().StringVar(&deadline, "deadline", "", "stop what still runs there at `TIME`, to run elsewhere: 18:00, now+6hours")
	return cmd
}

// statusLine is that of a command that waits; quiet: it has none.
func statusLine(cmd *cobra.Command, quiet bool) *statusline.Line {
	if quiet {
		return nil
	}
	return statusline.Open(cmd.ErrOrStderr())
}

// drainBy asks for a drain with a deadline, none where there is no text of one.
func drainBy(reason, deadline string) (*api.NodeAction, error) {
	req := &api.NodeAction{Reason: reason}
	if deadline == "" {
		return req, nil
	}
	by, err := script.ParseBegin(deadline, now())
	if err != nil {
		return nil, Usagef("--deadline=%s: %w", deadline, err)
	}
	req.Deadline = by
	return req, nil
}

// drainedPoll is how often it is looked whether nodes are drained.
const drainedPoll = 500 * time.Millisecond

// awaitDrained waits until nothing runs on nodes. Of one that somebody puts back into service meanwhile, or that is
// lost, nobody can say so.
func awaitDrained(cmd *cobra.Command, args []string, line *statusline.Line) error {
	names, err := expandNodes(args)
	if err != nil {
		return err
	}
	c := client.New()
	for {
		all, err := c.Nodes(cmd.Context())
		if err != nil {
			return err
		}
		text, err := draining(all.Nodes, names)
		if err != nil || text == "" {
			return err
		}
		line.Set(text)
		select {
		case <-cmd.Context().Done():
			return context.Cause(cmd.Context())
		case <-time.After(drainedPoll):
		}
	}
}

// draining says what nodes that are being drained wait for; empty: they are drained.
func draining(all []api.Node, names []string) (string, error) {
	var left []string
	var jobs []int64
	by := time.Time{}
	for i := range all {
		n := &all[i]
		if !slices.Contains(names, n.Name) {
			continue
		}
		switch n.State {
		case api.NodeDrained:
		case api.NodeUp:
			return "", fmt.Errorf("node %s was put back into service", n.Name)
		case api.NodeLost, api.NodeUnknown:
			return "", fmt.Errorf("node %s is %s: what runs there is not known", n.Name, n.State)
		default:
			left = append(left, n.Name)
			for _, id := range n.Jobs {
				if !slices.Contains(jobs, id) {
					jobs = append(jobs, id)
				}
			}
			if n.DrainBy.After(by) {
				by = n.DrainBy
			}
		}
	}
	if len(left) == 0 {
		return "", nil
	}
	text := fmt.Sprintf("%s: %s", hostlist.Compress(left), count(len(jobs), "job runs", "jobs run"))
	if !by.IsZero() {
		text += ", until " + by.Local().Format(time.TimeOnly) + " at the latest"
	}
	return text, nil
}

func newNodeAction(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NODES", Short: short, Args: someNodes,
		Example: fmt.Sprintf("  gctl node %[1]s n3        one node\n  gctl node %[1]s n[3-5]    several\n  ginfo                     see what "+
			"became of it", verb),
		RunE: func(cmd *cobra.Command, args []string) error {
			return nodeAction(cmd, verb, args, &api.NodeAction{})
		},
		ValidArgsFunction: completeNodes,
	}
}

func newNodeFence() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "fence NODES", Short: "give your word that nothing runs on lost nodes any more", Args: someNodes,
		Example: `  gctl node fence n3         after n3 was switched off: its gangs may start elsewhere
  gctl node fence --yes n3   without the question
  ginfo --lost               which nodes are lost`,
		Long: `The controller starts the gangs of a lost node again only when it knows that their
ranks on it are gone. This command is your word for it. If they still run, two
copies of a gang run: switch the machine off first.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes && !confirmed(cmd, args) {
				return &ExitError{Status: api.ExitRefused, Err: fmt.Errorf("nothing was done")}
			}
			return nodeAction(cmd, "fence", args, &api.NodeAction{})
		},
		ValidArgsFunction: completeNodes,
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirmed asks a person at a terminal; a script that says fence means it.
func confirmed(cmd *cobra.Command, args []string) bool {
	if in, ok := cmd.InOrStdin().(*os.File); !ok || !screenOf(in).terminal {
		return true
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Is it certain that no process of a job runs on %s any more [y/n]? ", strings.Join(args, " "))
	line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	return strings.HasPrefix(strings.ToLower(line), "y")
}

func someNodes(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("no node given: %s n3, or n[3-5]; ginfo lists them", cmd.CommandPath())
	}
	return nil
}

// expandNodes reads node names and lists of them.
func expandNodes(args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		some, err := hostlist.Expand(arg)
		if err != nil {
			return nil, Usagef("invalid nodes %q: %w", arg, err)
		}
		names = append(names, some...)
	}
	return names, nil
}

func nodeAction(cmd *cobra.Command, verb string, args []string, req *api.NodeAction) error {
	names, err := expandNodes(args)
	if err != nil {
		return err
	}
	c := client.New()
	return forEach(cmd, names, func(name string) error { return c.NodeAction(cmd.Context(), name, verb, req) })
}
