package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/hostlist"
)

func newShowTopology() *cobra.Command {
	return &cobra.Command{
		Use: "topology [SWITCH|NODE...]", Short: "the switches of the network, as the site's file of them names them",
		Example: `  gctl show topology          every switch, the lowest first
  gctl show topology leaf1    one of them
  gctl show topology n3       those above a node`,
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := client.New().Nodes(cmd.Context())
			if err != nil {
				return err
			}
			if len(reply.Switches) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "No switches are known: the site names none")
			}
			var names []string
			for i := range reply.Switches {
				names = append(names, reply.Switches[i].Name)
			}
			for _, arg := range args {
				if !slices.ContainsFunc(reply.Switches, func(s api.Switch) bool { return ofSwitch(&s, arg) }) {
					return noSuch("switch", arg, names)
				}
			}
			for i := range reply.Switches {
				if s := &reply.Switches[i]; len(args) == 0 || slices.ContainsFunc(args, func(a string) bool { return ofSwitch(s, a) }) {
					writeFields(screenOf(cmd.OutOrStdout()), []string{switchFields(s)})
				}
			}
			return nil
		},
		ValidArgsFunction: completeNodes,
	}
}

func ofSwitch(s *api.Switch, name string) bool {
	return s.Name == name || slices.Contains(s.Nodes, name)
}

// switchFields is a line of scontrol show topology.
func switchFields(s *api.Switch) string {
	line := fmt.Sprintf("SwitchName=%s Level=%d Nodes=%s", s.Name, s.Level, hostlist.Compress(s.Nodes))
	if len(s.Switches) > 0 {
		line += " Switches=" + hostlist.Compress(s.Switches)
	}
	return line
}
