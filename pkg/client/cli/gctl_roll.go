package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline/when"
)

func newNodeRoll() *cobra.Command {
	r := roll{}
	var nodes []string
	cmd := &cobra.Command{
		Use: "roll [COMMAND]", Short: "empty nodes one after the other, do something to each, take it back", Args: cobra.ArbitraryArgs,
		Example: `  gctl node roll --nodes=n[1-8] --batch=2 'ssh $GANG_NODE apt-get -y install gnoded'   two at a time
  gctl node roll --reboot                                       every node, by the program of its site
  gctl node roll --nodes=n1 --new-boot 'ssh $GANG_NODE reboot'  a command that reboots the node`,
		Long: `Each node gets no new work until nothing runs there; then COMMAND is run here by /bin/sh with the node's
name in GANG_NODE, and the node is put back into service and waited for until it is up. Where COMMAND fails, or a node is
not back in time, no other node is begun, and that one stays out of service. Nodes that are out of it already are left out.
Run again, it goes over all of them again.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.command = strings.Join(args, " ")
			switch {
			case r.reboot == (r.command != ""):
				return Usagef("give a command, or --reboot: gctl node roll --nodes=n[1-8] 'ssh $GANG_NODE ...'")
			case r.reboot && r.newBoot:
				return Usagef("--reboot and --new-boot exclude each other")
			case r.jobs != "finish" && r.jobs != "requeue":
				return Usagef("--jobs=%s: want finish or requeue", r.jobs)
			case r.batch < 1:
				return Usagef("--batch=%d: want 1 or more", r.batch)
			case r.patience <= 0:
				return Usagef("--timeout: want more than 0")
			}
			names, err := expandNodes(nodes)
			if err != nil {
				return err
			}
			r.client, r.out = client.New(), &lines{out: cmd.OutOrStdout()}
			return r.run(cmd.Context(), names)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringArrayVar(&nodes, "nodes", nil, "these `NODES`, in the order of their names (default: all)")
	f.StringVar(&r.jobs, "jobs", "finish", "`WHAT` becomes of what runs: finish, or requeue, to run elsewhere with its notice")
	f.IntVar(&r.batch, "batch", 1, "`N` nodes at a time")
	f.DurationVar(&r.patience, "back-within", 30*time.Minute, "a node has to be back `DURATION` after the command has ended")
	f.BoolVar(&r.reboot, "reboot", false, "reboot each, in place of a command")
	f.BoolVar(&r.newBoot, "new-boot", false, "the command reboots the node: it is back under another boot id alone")
	_ = cmd.RegisterFlagCompletionFunc("nodes", completeNodes)
	_ = cmd.RegisterFlagCompletionFunc("jobs", cobra.FixedCompletions([]string{"finish", "requeue"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// roll goes over nodes, so many at a time.
type roll struct {
	client          *client.Client
	out             *lines
	command, jobs   string
	batch           int
	patience        time.Duration
	reboot, newBoot bool
}

// lines are written whole by several at a time.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, format+"\n", args...)
}

func (r *roll) run(ctx context.Context, names []string) error {
	todo, err := r.chosen(ctx, names)
	if err != nil {
		return err
	}
	begun := make(chan struct{}, r.batch)
	var mu sync.Mutex
	var failed []error
	var running sync.WaitGroup
	left := len(todo)
	for _, name := range todo {
		begun <- struct{}{}
		mu.Lock()
		stop := len(failed) > 0 || ctx.Err() != nil
		mu.Unlock()
		if stop {
			break
		}
		left--
		running.Go(func() {
			defer func() { <-begun }()
			if err := r.one(ctx, name); err != nil {
				mu.Lock()
				failed = append(failed, fmt.Errorf("node %s stays out of service: %w", name, err))
				mu.Unlock()
			}
		})
	}
	running.Wait()
	if left > 0 {
		failed = append(failed, fmt.Errorf("%s not begun", count(left, "node was", "nodes were")))
	}
	return errors.Join(failed...)
}

// chosen are those of the nodes that are in service, by name.
func (r *roll) chosen(ctx context.Context, names []string) ([]string, error) {
	all, err := r.client.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var todo, known []string
	for i := range all.Nodes {
		n := &all.Nodes[i]
		known = append(known, n.Name)
		switch {
		case len(names) > 0 && !slices.Contains(names, n.Name):
		case n.State != api.NodeUp || n.Reboot != nil:
			r.out.say("%s: left out, it is %s%s", n.Name, n.State, optional(": ", nodeReason(n)))
		default:
			todo = append(todo, n.Name)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, &ExitError{Status: api.ExitNotFound, Err: fmt.Errorf("no node %q: ginfo lists them", name)}
		}
	}
	return todo, nil
}

// one empties a node, does it, and takes the node back.
func (r *roll) one(ctx context.Context, name string) error {
	began := time.Now()
	reason := "roll: " + cmp.Or(r.command, "reboot")
	if err := r.client.NodeAction(ctx, name, "drain", &api.NodeAction{Reason: reason}); err != nil {
		return err
	}
	if r.jobs == "requeue" {
		if err := r.requeue(ctx, name); err != nil {
			return err
		}
	}
	n, err := r.await(ctx, name, 0, func(n *api.Node) (bool, error) {
		if n.State == api.NodeUp || n.State == api.NodeLost {
			return false, fmt.Errorf("it is %s before it was empty", n.State)
		}
		return n.State == api.NodeDrained, nil
	})
	if err != nil {
		return err
	}
	r.out.say("%s: empty after %s", name, when.Words(time.Since(began).Round(time.Second)))
	boot := n.BootID
	if r.reboot {
		err = r.client.NodeAction(ctx, name, "reboot", &api.NodeAction{Asap: true, Reason: reason})
	} else {
		err = r.do(ctx, name)
	}
	if err != nil {
		return err
	}
	if n, err = r.await(ctx, name, r.patience, func(n *api.Node) (bool, error) {
		switch {
		case r.reboot && n.Reboot == nil && n.BootID == boot:
			return false, errors.New(n.Reason)
		case (r.reboot || r.newBoot) && n.BootID == boot:
			return false, nil
		}
		return n.State == api.NodeDrained, nil
	}); err != nil {
		return err
	}
	if n.Reason != reason {
		return fmt.Errorf("somebody else has drained it meanwhile: %s", n.Reason)
	}
	if err := r.client.NodeAction(ctx, name, "resume", &api.NodeAction{}); err != nil {
		return err
	}
	if _, err = r.await(ctx, name, r.patience, func(n *api.Node) (bool, error) {
		if n.State == api.NodeDrained || n.State == api.NodeDraining {
			return false, errors.New(n.Reason)
		}
		return n.State == api.NodeUp, nil
	}); err != nil {
		return err
	}
	r.out.say("%s: back after %s", name, when.Words(time.Since(began).Round(time.Second)))
	return nil
}

// requeue has what runs on a node run elsewhere. What can't be queued again ends there by itself.
func (r *roll) requeue(ctx context.Context, name string) error {
	there := api.JobQuery{Nodes: []string{name}, States: []api.JobState{api.JobRunning}}
	reply, err := r.client.Act(ctx, "requeue", &api.ActionRequest{JobQuery: there})
	if err != nil {
		return err
	}
	for i := range reply.Results {
		if x := &reply.Results[i]; x.Error != nil && x.Error.Code != api.CodeAlreadyEnded {
			r.out.say("%s: job %s is waited for: %s", name, x.Ref, x.Error.Message)
		}
	}
	return nil
}

// do runs the command. What it writes is passed on.
func (r *roll) do(ctx context.Context, name string) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", r.command)
	cmd.Env = append(os.Environ(), "GANG_NODE="+name)
	cmd.Stdout, cmd.Stderr = &prefixed{r.out, name}, &prefixed{r.out, name}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the command failed: %w", err)
	}
	return nil
}

// prefixed says which node a text is of.
type prefixed struct {
	out  *lines
	name string
}

// Write implements io.Writer.
func (p *prefixed) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		p.out.say("%s: %s", p.name, strings.TrimRight(line, "\n"))
	}
	return len(b), nil
}

// await looks at a node until it is as done says; 0: as long as it takes. A controller that does not answer for a while is
// waited for as well: it may be what is being upgraded.
func (r *roll) await(ctx context.Context, name string, most time.Duration, done func(*api.Node) (bool, error)) (*api.Node, error) {
	began := time.Now()
	for {
		all, err := r.client.Nodes(ctx)
		state := "not known"
		if err == nil {
			for i := range all.Nodes {
				if n := &all.Nodes[i]; n.Name == name {
					if ok, err := done(n); ok || err != nil {
						return n, err
					}
					state = string(n.State)
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case most > 0 && time.Since(began) > most:
			return nil, errors.Join(fmt.Errorf("it is %s %s later", state, when.Words(most)), err)
		case most == 0 && err != nil && time.Since(began) > r.patience:
			return nil, err
		}
		if err := pause(ctx, drainedPoll); err != nil {
			return nil, err
		}
	}
}
