package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
)

// gcancel is one call of the command.
type gcancel struct {
	sel         selection
	signal      string
	batch       bool
	full        bool
	now         bool
	interactive bool
	verbose     bool
	quiet       bool
}

// NewGcancel is the command gcancel.
func NewGcancel() *cobra.Command {
	g := &gcancel{}
	cmd := &cobra.Command{
		Use:   "gcancel [OPTIONS] [JOB|JOB.STEP|JOB:RANKS|JOB/ROLE...]",
		Short: "cancel jobs, or send them a signal",
		Example: `  gcancel 12 14-16 20_[1-3]   these jobs and elements of an array
  gcancel 12.0                one step of a running job
  gcancel --signal=USR1 @     a signal to my last job; its state stays`,
		Long: `Options that choose narrow each other and the JOBs. A cancelled job gets its notice,
then TERM, then after its grace KILL. Nothing is printed when all went well.
A signal may be for some ranks (12:3, 12:0-3,5) or those of a role (12/worker).`,
		RunE: func(cmd *cobra.Command, args []string) error {
			jobs, steps, err := splitSteps(args)
			if err != nil {
				return err
			}
			jobs, some, err := splitRanks(jobs)
			if err != nil {
				return err
			}
			if len(some) > 0 {
				if err := g.ranks(cmd, some); err != nil || len(jobs)+len(steps) == 0 {
					return err
				}
			}
			if len(steps) > 0 {
				if err := g.steps(cmd, steps); err != nil || len(jobs) == 0 {
					return err
				}
			}
			g.sel.jobs = jobs
			return g.run(cmd)
		},
		ValidArgsFunction: completeJobs,
	}
	f := cmd.Flags()
	g.sel.addFilters(f)
	f.StringSliceVarP(&g.sel.states, "state", "t", nil, "jobs in these `STATES` (PD, running ...)")
	f.StringVarP(&g.signal, "signal", "s", "", "send this `SIGNAL` (USR1, 10) and cancel nothing")
	f.BoolVarP(&g.batch, "batch", "b", false, "the signal goes to the script's shell alone")
	f.BoolVarP(&g.full, "full", "f", false, "the signal goes to the script's shell and all below it")
	f.BoolVar(&g.now, "now", false, "no notice: TERM at once")
	f.BoolVarP(&g.interactive, "interactive", "i", false, "ask before each job")
	f.BoolVarP(&g.verbose, "verbose", "v", false, "say what was done to each job")
	f.BoolVarP(&g.quiet, "quiet", "Q", false, "no error for a job that has already ended")
	completeFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("signal", completeWith(func() []string { return cmdline.SignalNames }))
	program.Timeout(cmd)
	return cmd
}

func (g *gcancel) run(cmd *cobra.Command) error {
	req, err := g.request(cmd)
	if err != nil {
		return err
	}
	c := client.New()
	if g.interactive {
		if req.JobQuery, err = g.ask(cmd, c, req.JobQuery); err != nil || len(req.Refs) == 0 {
			return err
		}
	}
	reply, err := c.Cancel(cmd.Context(), req)
	if err != nil {
		return err
	}
	if len(reply.Results) > 0 {
		g.sel.warn(cmd, c)
	}
	if len(reply.Results) == 0 && !g.quiet {
		if err := cmp.Or(g.sel.nobody(cmd.Context(), c), g.sel.nowhere(cmd.Context(), c)); err != nil {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "gcancel: no job was chosen by that; gqueue --me lists yours")
	}
	return g.report(cmd, req, reply)
}

// request checks the options and builds what the controller is asked.
func (g *gcancel) request(cmd *cobra.Command) (*api.CancelRequest, error) {
	switch {
	case g.sel.empty():
		return nil, Usagef("no job chosen: give ids (gcancel 12 13), @ for your last job, or choose by --me, --user, --name, --state, " +
			"--partition, --account or --nodelist")
	case (g.batch || g.full) && g.signal == "":
		return nil, Usagef("--batch and --full say whom a signal reaches: add --signal=NAME")
	case g.batch && g.full:
		return nil, Usagef("--batch and --full exclude each other")
	case g.now && g.signal != "":
		return nil, Usagef("--now belongs to a cancel, not to --signal, which is always at once")
	case g.verbose && g.quiet:
		return nil, Usagef("--verbose and --quiet exclude each other")
	}
	q, err := g.sel.query(cmd)
	if err != nil {
		return nil, err
	}
	q.NoRanks = true
	req := &api.CancelRequest{JobQuery: q, Now: g.now, Scope: api.ScopeRanks}
	if g.signal != "" {
		if req.Signal, err = parseSignal(g.signal); err != nil {
			return nil, err
		}
	}
	switch {
	case g.batch:
		req.Scope = api.ScopeBatch
	case g.full:
		req.Scope = api.ScopeFull
	}
	return req, nil
}

// ask goes through the jobs one by one and gives a query for those that were agreed to.
func (g *gcancel) ask(cmd *cobra.Command, c *client.Client, q api.JobQuery) (api.JobQuery, error) {
	reply, err := c.Jobs(cmd.Context(), &q)
	if err != nil {
		return q, err
	}
	var chosen api.JobQuery
	in := bufio.NewReader(cmd.InOrStdin())
	verb := "Cancel"
	if g.signal != "" {
		verb = "Signal"
	}
	for i := range reply.Jobs {
		j := &reply.Jobs[i]
		fmt.Fprintf(cmd.ErrOrStderr(), "%s job_id=%s name=%s partition=%s [y/n]? ", verb, jobfield.IDText(j), column.Printable(j.Name),
			j.Partition)
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return chosen, Usagef("--interactive needs an answer for job %s, and the input has ended", jobfield.IDText(j))
		}
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y") {
			chosen.Refs = append(chosen.Refs, jobs.Ref(j))
		}
	}
	return chosen, nil
}

// report says what became of each job. A cancel of one that waits is silent, as scancel's is; of one that runs it says
// what its ranks are told and by when it is over; a signal says whom it reached, which nothing else would tell.
func (g *gcancel) report(cmd *cobra.Command, req *api.CancelRequest, reply *api.CancelReply) error {
	var failed []error
	var stops []string
	many := len(reply.Results) > 1
	for _, r := range reply.Results {
		switch {
		case r.Error != nil && g.quiet && r.Error.Code == api.CodeAlreadyEnded:
		case r.Error != nil:
			failed = append(failed, r.Error)
		case req.Signal != "" && !g.quiet:
			lead := ""
			if many {
				lead = r.Ref + ": "
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%ssignal %s delivered to %s on %s\n", lead, req.Signal,
				count(r.Processes, "process", "processes"), count(r.Nodes, "node", "nodes"))
		case g.verbose:
			fmt.Fprintf(cmd.ErrOrStderr(), "gcancel: cancelling job %s\n", r.Ref)
		}
		if r.Stop != nil && !g.quiet && req.Signal == "" {
			stops = append(stops, stopText(&r))
		}
	}
	for _, text := range stops[:min(len(stops), maxStops)] {
		fmt.Fprintln(cmd.ErrOrStderr(), "gcancel: "+text)
	}
	if more := len(stops) - maxStops; more > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "gcancel: and %s more are being stopped\n", count(more, "job", "jobs"))
	}
	return joinFailures(cmd, failed)
}

// maxStops is of how many jobs it is said how they end.
const maxStops = 10

// stopText says how a job that runs is brought to its end.
func stopText(r *api.CancelResult) string {
	text := fmt.Sprintf("job %s: %s now, ends by %s", r.Ref, r.Stop.Signal, when.Clock(now(), r.Stop.EndsBy))
	if r.Stop.Notice {
		return fmt.Sprintf("job %s: notice %s now, ends by %s; --now ends it at once", r.Ref, r.Stop.Signal, when.Clock(now(), r.Stop.EndsBy))
	}
	return text
}

// count writes a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// forEach does something to each of what was named; one that fails does not keep it from the others.
func forEach(cmd *cobra.Command, names []string, do func(name string) error) error {
	var failed []error
	for _, name := range names {
		if err := do(name); err != nil {
			failed = append(failed, err)
		}
	}
	return joinFailures(cmd, failed)
}

// joinFailures prints all errors but the last and gives the last as the command's own,
// with the exit status that fits all of them.
func joinFailures(cmd *cobra.Command, errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	status := exitCode(errs[0])
	for _, err := range errs {
		if exitCode(err) != status {
			status = api.ExitRefused
		}
	}
	for _, err := range errs[:len(errs)-1] {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", cmd.Root().Name(), err)
	}
	return &ExitError{Status: status, Err: errs[len(errs)-1]}
}

// act does "hold", "release" or "requeue" to the jobs named.
func act(ctx context.Context, cmd *cobra.Command, verb string, args []string, now bool) error {
	refs, err := parseRefs(args)
	if err != nil {
		return err
	}
	c := client.New()
	reply, err := c.Act(ctx, verb, &api.ActionRequest{JobQuery: api.JobQuery{Refs: refs}, Now: now})
	if err != nil {
		return err
	}
	if verb == "requeue" {
		sayIdle(cmd, reply)
	}
	return failures(cmd, reply)
}

// maxIdle is how many jobs are named of those that there was nothing to do to.
const maxIdle = 10

// sayIdle names the jobs that are not put back, since they wait or are being stopped.
func sayIdle(cmd *cobra.Command, reply *api.CancelReply) {
	refs, why := map[string][]string{}, []string{}
	for _, r := range reply.Results {
		if r.Idle != "" {
			if refs[r.Idle] == nil {
				why = append(why, r.Idle)
			}
			refs[r.Idle] = append(refs[r.Idle], r.Ref)
		}
	}
	for _, w := range why {
		of, more := refs[w], ""
		if n := len(of) - maxIdle; n > 0 {
			of, more = of[:maxIdle], fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: job %s%s: %s\n", cmd.Root().Name(), strings.Join(of, ", "), more, w)
	}
}

// failures says what was refused of what was asked for several jobs.
func failures(cmd *cobra.Command, reply *api.CancelReply) error {
	var failed []error
	for _, r := range reply.Results {
		if r.Error != nil {
			failed = append(failed, r.Error)
		}
	}
	return joinFailures(cmd, failed)
}
