package program

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/jobfield"
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

// Jobs, Nodes, Partitions, Users and Reservations are names that the controller knows now, for completions.
func Jobs() []string         { return live(liveJobs) }
func Nodes() []string        { return live(liveNodes) }
func Partitions() []string   { return live(livePartitions) }
func Users() []string        { return live(liveUsers) }
func Reservations() []string { return live(liveReservations) }

// dependencies are the kinds of --dependency, each with every job behind it.
func dependencies() []string {
	out := []string{"singleton"}
	for _, job := range Jobs() {
		for _, kind := range []string{"after", "afterany", "afterok", "afternotok"} {
			out = append(out, kind+":"+job)
		}
	}
	return out
}

// values are what completes the values of an option, by its name, which means the same in all commands.
var values = map[string]func() []string{
	"partition": Partitions, "nodelist": Nodes, "exclude": Nodes, "reservation": Reservations, "dependency": dependencies, "jobid": Jobs,
	"signal": func() []string { return slices.Clone(cmdline.SignalNames) },
}

// CompleteOption completes options of a command whose table they are of, and their values; files where
// it has nothing.
func CompleteOption[T any](options []cmdline.Option[T], args []string, word string) ([]string, cobra.ShellCompDirective) {
	o, typed, operand := cmdline.Typed(options, args, word)
	switch {
	case operand:
		return nil, cobra.ShellCompDirectiveDefault
	case o != nil:
		names := values[o.Long]
		if names == nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		out := names()
		if i := strings.LastIndexByte(typed, ','); i >= 0 { // the shells want the whole word
			for k := range out {
				out[k] = typed[:i+1] + out[k]
			}
		}
		return slices.DeleteFunc(out, func(n string) bool { return !strings.HasPrefix(n, typed) }), cobra.ShellCompDirectiveNoFileComp
	case strings.HasPrefix(word, "--"):
		return cmdline.Complete(options, word), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return nil, cobra.ShellCompDirectiveDefault
}

func liveJobs(ctx context.Context, c *client.Client) []string {
	return fromJobs(ctx, c, func(j *api.Job) string {
		return jobfield.IDText(j) + "\t" + string(j.State) + " " + plain(j.Name)
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

// plain is a name without characters that would end the line of a completion.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}
