package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

// splitSteps takes the names of steps (12.0) out of what a person named.
func splitSteps(args []string) (jobs []string, steps []api.StepRef, err error) {
	for _, a := range args {
		ref, isStep, err := api.ParseStepRef(a)
		switch {
		case !isStep:
			jobs = append(jobs, a)
		case err != nil:
			return nil, nil, err
		case ref.Step == api.StepExtern:
			return nil, nil, Usagef("%s is the allocation itself: gcancel %s ends it", a, ref.Job)
		default:
			steps = append(steps, ref)
		}
	}
	return jobs, steps, nil
}

// cancelSteps ends steps, or signals their tasks; the batch script is signalled, or its job
// cancelled. It gives an error for each that could not be.
func cancelSteps(ctx context.Context, c *client.Client, steps []api.StepRef, signal string,
	done func(api.StepRef, *api.StepSignalReply)) []error {
	var failed []error
	for _, ref := range steps {
		var r *api.StepSignalReply
		var err error
		if ref.Step == api.StepBatch {
			r, err = cancelBatch(ctx, c, ref.Job, signal)
		} else {
			r, err = c.SignalStep(ctx, ref.Job, ref.Number(), api.StepSignal{Signal: signal})
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done(ref, r)
	}
	return failed
}

func cancelBatch(ctx context.Context, c *client.Client, job api.JobRef, signal string) (*api.StepSignalReply, error) {
	req := &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{job}}, Signal: signal}
	if signal != "" {
		req.Scope = api.ScopeBatch
	}
	reply, err := c.Cancel(ctx, req)
	if err != nil {
		return nil, err
	}
	out := &api.StepSignalReply{SchemaVersion: api.SchemaVersion}
	for _, r := range reply.Results {
		if r.Error != nil {
			return nil, r.Error
		}
		out.Processes += r.Processes
		out.Nodes += r.Nodes
	}
	return out, nil
}

// steps ends or signals the steps among what was named; false: there is nothing else.
func (g *gcancel) steps(cmd *cobra.Command, steps []api.StepRef) error {
	if g.batch || g.full || g.interactive {
		return Usagef("--batch, --full and --interactive are for jobs; a step is named by itself: gcancel --signal=USR1 %s", steps[0])
	}
	signal := ""
	if g.signal != "" {
		var err error
		if signal, err = parseSignal(g.signal); err != nil {
			return err
		}
	}
	failed := cancelSteps(cmd.Context(), client.New(), steps, signal, func(ref api.StepRef, r *api.StepSignalReply) {
		lead := ""
		if len(steps) > 1 {
			lead = ref.String() + ": "
		}
		switch {
		case signal != "" && !g.quiet:
			fmt.Fprintf(cmd.OutOrStdout(), "%ssignal %s delivered to %s on %s\n", lead, strings.TrimPrefix(signal, "SIG"),
				count(r.Processes, "task", "tasks"), count(r.Nodes, "node", "nodes"))
		case g.verbose:
			fmt.Fprintf(cmd.ErrOrStderr(), "gcancel: ending step %s\n", ref)
		}
	})
	return joinFailures(cmd, failed)
}
