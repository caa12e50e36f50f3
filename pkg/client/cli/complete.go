package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"gangd/pkg/client/program"
)

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeWith makes a completion of names, each at most once a line.
func completeWith(names func() []string) completion {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		left := slices.DeleteFunc(names(), func(n string) bool { return slices.Contains(args, n) })
		return left, cobra.ShellCompDirectiveNoFileComp
	}
}

var (
	completeJobs         = completeWith(program.Jobs)
	completeNodes        = completeWith(program.Nodes)
	completePartitions   = completeWith(program.Partitions)
	completeUsers        = completeWith(program.Users)
	completeReservations = completeWith(program.Reservations)
	completeStates       = completeWith(stateNames)
)

// completeFlags completes the values of every option that names something live. It knows
// them by the option's name, which means the same in all commands.
func completeFlags(cmd *cobra.Command) {
	for name, fn := range map[string]completion{
		"jobs": completeJobs, "why": completeJobs, "user": completeUsers, "partition": completePartitions,
		"nodelist": completeNodes, "nodes": completeNodes, "states": completeStates, "reservation": completeReservations, "state": completeStates,
	} {
		if cmd.Flags().Lookup(name) != nil {
			// The only failure is a second registration, a mistake of the program that
			// the tests of every command would show.
			_ = cmd.RegisterFlagCompletionFunc(name, fn)
		}
	}
}
