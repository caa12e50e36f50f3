package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/hostlist"
	"gangd/pkg/script"
)

func newNodeDrain() *cobra.Command {
	var reason, deadline string
	cmd := &cobra.Command{
		Use: "drain NODES --reason=TEXT", Short: "give nodes no new work; what runs ends by itself, or by a deadline", Args: someNodes,
		Example: `  gctl node drain n[3-5] --reason='new driver'       one node, or several
  gctl node drain n3 --deadline=18:00 --reason='fan' what runs at 18:00 goes elsewhere
  gctl node resume n3                                and back again`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return Usagef("a drain needs a reason, others will ask: gctl node drain %s --reason='...'", strings.Join(args, " "))
			}
			req := &api.NodeAction{Reason: reason}
			if deadline != "" {
				by, err := script.ParseBegin(deadline, now())
				if err != nil {
					return Usagef("--deadline=%s: %w", deadline, err)
				}
				req.Deadline = by
			}
			return nodeAction(cmd, "drain", args, req)
		},
		ValidArgsFunction: completeNodes,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why (`TEXT`), for all who see the node in ginfo")
	cmd.Flags().StringVar(&deadline, "deadline", "", "stop what still runs there at `TIME`, to run elsewhere: 18:00, now+6hours")
	return cmd
}

func newNodeAction(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NODES", Short: short, Args: someNodes,
		Example: fmt.Sprintf("  gctl node %[1]s n3        one node\n  gctl node %[1]s n[3-5]    several\n  ginfo                     see what became of it", verb),
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
	var failed []error
	for _, name := range names {
		if err := c.NodeAction(cmd.Context(), name, verb, req); err != nil {
			failed = append(failed, err)
		}
	}
	return joinFailures(cmd, failed)
}
