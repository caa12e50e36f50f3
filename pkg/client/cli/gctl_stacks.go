package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/table/column"
)

func newStacks() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "stacks JOB", Short: "where the processes of a job are, and who is not where the others are",
		Example: `  gctl stacks 12            of a job that runs, just now
  gctl stacks 11            of one that was stopped for a hang or at its time limit: as it was then
  gctl stacks @ --json      my last job, for a script`,
		Long: `Looks at the leading process of each rank, and of each task of steps, and puts together
those that are in the same place. Nothing is stopped for it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := someJobs(cmd, args); err != nil {
				return err
			}
			if len(args) > 1 {
				return Usagef("gctl stacks takes one job, got %s", strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := oneRef(args[0])
			if err != nil {
				return err
			}
			out, err := client.New().Stacks(cmd.Context(), ref)
			if err != nil {
				return err
			}
			if asJSON {
				return WriteJSON(cmd.OutOrStdout(), out)
			}
			return writeStacks(cmd.OutOrStdout(), out)
		},
		ValidArgsFunction: completeJobs,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// writeStacks prints the sentence, then each group: who, and its stack, innermost first.
func writeStacks(w io.Writer, r *api.StacksReply) error {
	var out strings.Builder
	head := "now"
	if !r.Live {
		head = fmt.Sprintf("as epoch %d was stopped, %s", r.Epoch, r.Stacks.Time.Local().Format(time.DateTime))
	}
	fmt.Fprintf(&out, "%s: %s\n", head, r.Stacks.Text)
	odd := map[int]bool{}
	for i := range r.Stacks.Odd {
		odd[r.Stacks.Odd[i].Group] = true
	}
	for i := range r.Stacks.Groups {
		g := &r.Stacks.Groups[i]
		mark := ""
		if odd[i] {
			mark = "  <- not where the others are"
		}
		fmt.Fprintf(&out, "\n%s: %s%s\n", stackWho(g), g.Kind, mark)
		for k := range g.Threads {
			t := &g.Threads[k]
			does := t.Does
			if t.In != "" {
				does += " (" + t.In + ")"
			}
			fmt.Fprintf(&out, "    %s\n", does)
			for i := range t.Frames {
				fmt.Fprintf(&out, "      %s\n", stackCall(t, i))
			}
		}
	}
	if r.Stacks.More > 0 {
		fmt.Fprintf(&out, "\n%s more had no room here\n", count(r.Stacks.More, "process", "processes"))
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, column.Printable(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

// stackCall is a call with its line and the tags that it was given, where all of a group have the same.
func stackCall(t *api.ThreadStack, i int) string {
	text := t.Frames[i]
	if i < len(t.Lines) && t.Lines[i] > 0 {
		text += fmt.Sprintf(", line %d", t.Lines[i])
	}
	for _, v := range t.Values {
		if v.Frame == i {
			text += fmt.Sprintf(", %s %d", v.Name, v.Value)
		}
	}
	return text
}

// stackWho names those of a group by ranks, tasks and pids.
func stackWho(g *api.StackGroup) string {
	var names []string
	for _, p := range g.Processes {
		name := strconv.Itoa(p.Rank)
		if p.Rank < 0 {
			name = fmt.Sprintf("step %d task %d", p.Step, p.Task)
		}
		names = append(names, fmt.Sprintf("%s (pid %d)", name, p.PID))
	}
	text := strings.Join(names, ", ")
	if n := g.Count - len(g.Processes); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if len(g.Processes) > 0 && g.Processes[0].Rank < 0 {
		return text
	}
	if g.Count == 1 {
		return "rank " + text
	}
	return "ranks " + text
}
