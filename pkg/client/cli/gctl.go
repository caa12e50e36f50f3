package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
	"gangd/pkg/core/nearest"
)

// NewGctl is the command gctl.
func NewGctl() *cobra.Command {
	root := group("gctl", "show and change jobs and nodes", `  gctl show job @                      the story of my last job
  gctl node drain n3 --reason='fan'    no new work on n3
  gctl events --follow --json          every change, one object a line`)
	show := group("show", "show a job, a node, a partition or a reservation in full",
		`  gctl show job 12         fields, attempts and events of job 12
  gctl show node n3        everything about a node and its cards
  gctl show partition      all partitions with their limits`)
	show.AddCommand(newShowJob(), newShowNode(), newShowPartition(), newReservationShow("reservation [NAME...]"), newShowTopology())
	node := group("node", "add, drain, resume, reboot, fence or remove nodes",
		`  gctl node drain n3 --reason='fan'   running work ends by itself, nothing new starts
  gctl node resume n[3-5]             take work again
  gctl node fence n3                  my word that nothing runs on n3 any more`)
	node.AddCommand(newNodeDrain(), newNodeAction("resume", "let nodes take work again"), newNodeReboot(), newNodeRoll(), newNodeAdd(),
		newNodeRemove(), newNodeFence(),
		newNodeAction("forget", "take lost nodes out that do not come back"), newNodeFeatures())
	card := group("card", "drain or resume single cards", `  gctl card drain n3 5 --reason='fan'   card 5 of n3 gets no new work
  gctl card resume n3 5                 my word that it is good again
  ginfo --cards                         how every card is`)
	card.AddCommand(newCardDrain(), newCardResume())
	root.AddCommand(show, node, card, newPartition(), newReservation(), newCreate(), newDelete(),
		newJobAction("hold", "keep waiting jobs from starting"),
		newJobAction("release", "let held jobs start"),
		newRequeue(),
		newUpdate(), newRerun(), newEvents(), newStacks(), newOutbox(), newPing(), newReload(), newDoctor(), newBundle(), newWeb(), newVersion())
	program.Each(root, func(c *cobra.Command) {
		if !c.HasSubCommands() {
			program.Coloured(c)
			program.Timeout(c)
		}
	})
	root.AddCommand(newCompletion())
	return root
}

// group makes a command that only holds others.
func group(name, short, examples string) *cobra.Command {
	return &cobra.Command{
		Use: name + " COMMAND", Short: short, Example: examples,
		Args: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, sub := range cmd.Commands() {
				if !sub.Hidden && sub.Name() != "help" {
					names = append(names, sub.Name())
				}
			}
			list := strings.Join(names, ", ")
			if len(args) == 0 {
				return Usagef("%s needs a command: %s; run %s --help", cmd.CommandPath(), list, cmd.CommandPath())
			}
			if near := nearest.Of(args[0], names); near != "" {
				return Usagef("unknown command %q for %s: did you mean %s?", args[0], cmd.CommandPath(), near)
			}
			var below []string
			for _, sub := range cmd.Commands() {
				for _, b := range sub.Commands() {
					if b.Name() == args[0] {
						below = append(below, b.CommandPath())
					}
				}
			}
			if len(below) > 0 {
				return Usagef("unknown command %q for %s: did you mean %s?", args[0], cmd.CommandPath(), strings.Join(below, " or "))
			}
			return Usagef("unknown command %q for %s: commands are %s", args[0], cmd.CommandPath(), list)
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
}

// someJobs refuses a command line without a job.
func someJobs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("no job given: %s 12, 12_3, 12_[1-3], 10-20 or @ for your last job", cmd.CommandPath())
	}
	return nil
}

func newJobAction(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " JOB...", Short: short, Args: someJobs,
		Example: fmt.Sprintf("  gctl %[1]s 12 14-16   several jobs\n  gctl %[1]s 20_[1-3]   elements of an array\n  gctl %[1]s @          my "+
			"last job", verb),
		RunE: func(cmd *cobra.Command, args []string) error {
			return act(cmd.Context(), cmd, verb, args, false)
		},
		ValidArgsFunction: completeJobs,
	}
}

func newRequeue() *cobra.Command {
	var now bool
	cmd := newJobAction("requeue", "stop running jobs and queue them again")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return act(cmd.Context(), cmd, "requeue", args, now) }
	cmd.Flags().BoolVar(&now, "now", false, "skip the early notice of --signal")
	return cmd
}

func newPing() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ping", Short: "ask the controller how it is", Args: noArgs,
		Example: `  gctl ping                            version, uptime and nodes of the controller
  gctl ping --json                     the same for a script, and of several controllers who stands by and its lag
  until gctl ping; do sleep 1; done    wait until it serves (exit status 4 until then)`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := client.New()
			begin := time.Now()
			p, err := c.Ping(cmd.Context())
			if err != nil {
				return err
			}
			took := time.Since(begin)
			if p.Term != 0 {
				all, err := c.Controllers(cmd.Context())
				if err != nil {
					return err
				}
				p.Controllers = all.Controllers
			}
			if asJSON {
				return WriteJSON(cmd.OutOrStdout(), p)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "gangd %s at %s answered in %.2f ms: pid %d, up %s, %d of %s up, %d commits\n",
				p.Version, c.Socket(), float64(took)/float64(time.Millisecond), p.PID, ago(now().Sub(p.StartTime)),
				p.NodesUp, count(p.Nodes, "node", "nodes"), p.Lineage)
			if p.Hold != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "on hold, starts and stops nothing: %s\n", p.Hold)
			}
			// One's own, of an admin everybody's. A controller that does not say answered all the same.
			if out, err := c.Outbox(cmd.Context()); err == nil && len(out.GivenUp) > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "not told within a day, and given up: %s (gctl outbox)\n", count(len(out.GivenUp), "notice", "notices"))
			}
			return pingControllers(cmd.OutOrStdout(), p)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// pingControllers says who leads and who stands by, where there are several.
func pingControllers(w io.Writer, p *api.PingReply) error {
	for i := range p.Controllers {
		c := &p.Controllers[i]
		line := fmt.Sprintf("controller %s %s", c.Name, c.State)
		if c.State == api.ControllerLeads {
			line += fmt.Sprintf(", term %d", p.Term)
		} else if lag := ControllerLag(c); lag != "" {
			line += ", " + lag
		}
		if c.State == api.ControllerRemoved {
			continue
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// ControllerLag says in words how far behind a controller is, or why that is not known, and what it waits for.
func ControllerLag(c *api.ControllerState) string {
	switch {
	case c.State == api.ControllerJoins && c.Why != "":
		lag := *c
		lag.Why = ""
		return ControllerLag(&lag) + "; " + c.Why
	case c.State == api.ControllerSilent:
		return c.Why
	case c.State != api.ControllerStandsBy && c.State != api.ControllerJoins:
		return ""
	case c.BehindCommits == 0:
		return fmt.Sprintf("lacks no commit of %d", c.Lineage)
	}
	return fmt.Sprintf("lacks %s, had all %.1fs ago", count(int(c.BehindCommits), "commit", "commits"), c.BehindSeconds)
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the versions of this program and of the controller", Args: noArgs,
		Example: `  gctl version           this program's, and the controller's when one answers
  gctl --version         this program's alone
  gctl ping --json       the controller's, for a script`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "gctl %s\n", api.Version)
			c := client.New()
			p, err := c.Ping(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "gangd %s\n", p.Version)
			return nil
		},
	}
}

// programs makes the commands of a person, which have completions.
func programs() []*cobra.Command {
	return []*cobra.Command{NewGqueue(), NewGcancel(), NewGinfo(), NewGctl(), NewGlog(), NewGacct(), NewGreport(nil), NewGckpt(nil),
		NewGbarrier(nil), NewGtop()}
}

// others have completions and are not part of this package.
var others = []string{"gangd", "gangsim", "gattach", "gcp", "gcron", "gnoded", "grun"}

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "print the completions of all commands for a shell",
		Example: `  source <(gctl completion bash)                             for this shell
  gctl completion zsh > "${fpath[1]}/_gangd"                 for zsh
  gctl completion fish > ~/.config/fish/completions/gangd.fish   for fish`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usagef("gctl completion needs a shell: %s", strings.Join(shells, ", "))
			}
			return nil
		},
		ValidArgsFunction: completeWith(func() []string { return append([]string(nil), shells...) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			var errs []error
			all := append(programs(), newGsubmit())
			for _, name := range others { // the script asks the program, so that its name is enough
				all = append(all, &cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
			}
			for _, c := range all {
				prepare(c)
				switch args[0] {
				case "bash":
					errs = append(errs, c.GenBashCompletionV2(out, true))
				case "zsh":
					errs = append(errs, c.GenZshCompletion(out))
				case "fish":
					errs = append(errs, c.GenFishCompletion(out, true))
				default:
					return unknownName("shell", args[0], shells)
				}
			}
			return errors.Join(errs...)
		},
	}
}
