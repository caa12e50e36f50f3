package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/table/jobfield"
)

// completionPatience is how long a person who pressed the tab key waits for live names; a
// controller that takes longer gives none.
const completionPatience = 300 * time.Millisecond

// live asks the controller for names, silently: a completion that prints an error spoils
// the line being typed.
func live(get func(context.Context, *client.Client) []string) []string {
	ctx, stop := context.WithTimeout(context.Background(), completionPatience)
	defer stop()
	c := client.New()
	names := get(ctx, c)
	slices.Sort(names)
	return slices.Compact(names)
}

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeWith makes a completion of names, each at most once a line.
func completeWith(names func() []string) completion {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		left := slices.DeleteFunc(names(), func(n string) bool { return slices.Contains(args, n) })
		return left, cobra.ShellCompDirectiveNoFileComp
	}
}

var (
	completeJobs         = completeWith(func() []string { return live(liveJobs) })
	completeNodes        = completeWith(func() []string { return live(liveNodes) })
	completePartitions   = completeWith(func() []string { return live(livePartitions) })
	completeUsers        = completeWith(func() []string { return live(liveUsers) })
	completeReservations = completeWith(func() []string { return live(liveReservations) })
	completeStates       = completeWith(stateNames)
)

func liveJobs(ctx context.Context, c *client.Client) []string {
	return fromJobs(ctx, c, func(j *api.Job) string {
		return jobfield.IDText(j) + "\t" + string(j.State) + " " + printable(j.Name)
	})
}

func liveUsers(ctx context.Context, c *client.Client) []string {
	return fromJobs(ctx, c, func(j *api.Job) string { return j.User })
}

func fromJobs(ctx context.Context, c *client.Client, name func(*api.Job) string) []string {
	reply, err := c.Jobs(ctx, &api.JobQuery{NoRanks: true})
	if err != nil {
		return nil
	}
	var out []string
	for i := range reply.Jobs {
		out = append(out, name(&reply.Jobs[i]))
	}
	return out
}

func liveNodes(ctx context.Context, c *client.Client) []string {
	reply, err := c.Nodes(ctx)
	if err != nil {
		return nil
	}
	var out []string
	for i := range reply.Nodes {
		out = append(out, reply.Nodes[i].Name)
	}
	return out
}

func liveReservations(ctx context.Context, c *client.Client) []string {
	reply, err := c.Reservations(ctx)
	if err != nil {
		return nil
	}
	var out []string
	for i := range reply.Reservations {
		out = append(out, reply.Reservations[i].Name)
	}
	return out
}

func livePartitions(ctx context.Context, c *client.Client) []string {
	reply, err := c.Nodes(ctx)
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range reply.Partitions {
		out = append(out, p.Name)
	}
	return out
}

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
