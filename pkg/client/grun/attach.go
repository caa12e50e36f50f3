package grun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/stepwire"
)

// viewer is one call of gattach.
type viewer struct {
	name                string
	label, layout       bool
	quiet               bool
	input, output, errs string
	out, err            io.Writer
	worst               int
}

var attachCommand = &cmdline.Command[viewer]{Name: "sattach", Does: "shows what the tasks of a running step write",
	Usage: "Usage: sattach [options] <jobid.stepid>\n", Options: []cmdline.Option[viewer]{
		{Long: "input-filter", Kind: cmdline.Optional, Arg: "TASK", Default: allTasks, List: cmdline.Partial,
			Help: "pass standard input on to TASK, or all", Note: "without it nothing is passed on; Slurm passes it to all",
			Set: cmdline.Word(func(v *viewer) *string { return &v.input })},
		{Long: "output-filter", Kind: cmdline.Optional, Arg: "TASK", Default: allTasks, List: cmdline.Exact,
			Help: "show standard output of TASK, all or none", Set: cmdline.Word(func(v *viewer) *string { return &v.output })},
		{Long: "error-filter", Kind: cmdline.Optional, Arg: "TASK", Default: allTasks, List: cmdline.Exact,
			Help: "show standard error of TASK, all or none", Set: cmdline.Word(func(v *viewer) *string { return &v.errs })},
		{Long: "debugger-test", List: cmdline.Refused, Note: "no debugger is served"},
		{Long: "label", Short: 'l', List: cmdline.Exact, Help: "put the task's number before each line",
			Set: cmdline.Flag(func(v *viewer) *bool { return &v.label })},
		{Long: "layout", List: cmdline.Exact, Help: "say where the tasks run, and end",
			Set: cmdline.Flag(func(v *viewer) *bool { return &v.layout })},
		{Long: "pty", List: cmdline.Exact, Help: "of a step that has a terminal: it is shown as it is, with or without this",
			Set: cmdline.Accepted[viewer]},
		{Long: "quiet", Short: 'Q', List: cmdline.Exact, Help: "errors only", Set: cmdline.Flag(func(v *viewer) *bool { return &v.quiet })},
		{Long: "verbose", Short: 'v', List: cmdline.Partial, Help: "nothing more is said", Set: cmdline.Accepted[viewer]},
		slurm.VersionRow[viewer](),
		cmdline.HelpRow[viewer]('h'),
		{Long: "usage", Short: 'u', List: cmdline.Exact, Help: "display a brief summary of the options"},
	}}

// AttachLists is how each option of sattach is kept.
func AttachLists() cmdline.Lists { return attachCommand.Lists() }

// allTasks is the filter of one that is not named.
const allTasks = "all"

// Sattach is sattach.
func Sattach(args []string, s cmdline.Streams) int {
	v := &viewer{name: attachCommand.Name, output: allTasks, errs: allTasks, out: s.Out, err: s.Err}
	rest, err := attachCommand.Parse(v, args, s)
	switch {
	case cmdline.Exit(err) != 0:
		return program.ExitCode(withStatus(v.name, &program.ExitError{Status: cmdline.Exit(err), Err: err}))
	case err != nil: // what was asked for is said
		return 0
	case len(rest) != 1:
		err = fmt.Errorf("want one step, as in 12.0; there are %d words", len(rest))
	default:
		err = v.run(context.Background(), rest[0])
	}
	err = withStatus(v.name, err)
	if exit := new(program.ExitError); err != nil && !(errors.As(err, &exit) && exit.Err == nil) {
		s.Errorf(v.name, "%v", err)
	}
	return program.ExitCode(err)
}

// NewAttach is the command gattach, sattach by another name.
func NewAttach() *cobra.Command {
	v := &viewer{name: "gattach", output: allTasks, errs: allTasks}
	cmd := &cobra.Command{
		Use:   "gattach JOB[.STEP]",
		Short: "show what a running step or job writes",
		Long: "Connects to the grun of a running step and shows from now on what its tasks write, until they end. Signals\n" +
			"(Ctrl-C) are passed on to the tasks; Ctrl-\\ leaves the step alone. Of a job (12, 12.batch) it shows what its script\n" +
			"writes, or the ranks of a gang, and ends with its status; Ctrl-C leaves the job alone.",
		Example: `  gattach 12                    what the script of the job writes, from its beginning
  gattach 12.0                  the output of all tasks of a step, from now on
  gattach -l --output-filter=3 12.0   that of task 3, with its number before each line
  gattach --layout 12.0         where the tasks run`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return program.Jobs(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			v.out, v.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return v.run(cmd.Context(), args[0])
		},
	}
	program.Table(cmd, attachCommand.Options, v)
	cmd.Flags().Lookup("input-filter").Hidden = false
	program.Timeout(cmd)
	return cmd
}

func filter(v string) (task int, none bool, err error) {
	switch v {
	case "", "all":
		return -1, false, nil
	case "none":
		return -1, true, nil
	}
	task, err = strconv.Atoi(v)
	if err != nil || task < 0 {
		err = program.Usagef("filter %q: want a task's number, all or none", v)
	}
	return task, false, err
}

func (v *viewer) run(ctx context.Context, arg string) error {
	ref, ok, err := api.ParseStepRef(arg)
	if err != nil {
		return err
	}
	if !ok {
		if ref.Job, err = api.ParseJobRef(arg); err != nil {
			return err
		}
		return v.job(ctx, ref.Job)
	}
	switch ref.Step {
	case api.StepBatch:
		return v.job(ctx, ref.Job)
	case api.StepExtern:
		return program.Usagef("%s is the allocation, which writes nothing; %s.batch is its script", arg, ref.Job)
	}
	r, err := client.New().AttachStep(ctx, ref.Job, ref.Number())
	if err != nil {
		return err
	}
	conn, err := stepwire.Dial(ctx, r.Hosts, r.Fingerprint, &stepwire.Greeting{Secret: r.Secret, Attach: true, Input: v.input != ""})
	if err != nil {
		return err
	}
	defer conn.Close()
	return v.watch(conn)
}

func (v *viewer) watch(conn *stepwire.Conn) error {
	onlyOut, noOut, err := filter(v.output)
	if err != nil {
		return err
	}
	onlyErr, noErr, err := filter(v.errs)
	if err != nil {
		return err
	}
	f, err := conn.Next()
	if err != nil {
		return fmt.Errorf("the client of the step said nothing: %w", err)
	}
	var body stepwire.Body
	if err := json.Unmarshal(f.Data, &body); err != nil {
		return err
	}
	if v.layout {
		v.showLayout(&body.Reply)
		return nil
	}
	if !v.quiet && body.Stdout != "" {
		fmt.Fprintf(v.err, "%s: standard output goes to files on the nodes: %s\n", v.name, body.Stdout)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		for range signals {
			_ = conn.Send(stepwire.Signal, stepwire.AllTasks, []byte("INT"))
		}
	}()
	if err := v.feed(conn); err != nil {
		return err
	}
	for {
		f, err := conn.Next()
		switch {
		case errors.Is(err, io.EOF), err == nil && f.Type == stepwire.Done:
			if v.worst != 0 {
				return &program.ExitError{Status: v.worst}
			}
			return nil
		case err != nil:
			return fmt.Errorf("the step's client is gone: %w", err)
		case f.Type == stepwire.Output && !noOut && (onlyOut < 0 || uint32(onlyOut) == f.Task):
			err = v.write(v.out, &f, body.Reply.Tasks)
		case f.Type == stepwire.Errors && !noErr && (onlyErr < 0 || uint32(onlyErr) == f.Task):
			err = v.write(v.err, &f, body.Reply.Tasks)
		case f.Type == stepwire.Exit:
			var e stepwire.Ended
			if json.Unmarshal(f.Data, &e) == nil {
				v.worst = max(v.worst, e.Code)
			}
		}
		if err != nil {
			return err
		}
	}
}

// feed passes standard input on, when a filter says to whom.
func (v *viewer) feed(conn *stepwire.Conn) error {
	if v.input == "" {
		return nil
	}
	task, none, err := filter(v.input)
	if none || err != nil {
		return err
	}
	to := uint32(stepwire.AllTasks)
	if task >= 0 {
		to = uint32(task)
	}
	go func() {
		buf := make([]byte, stepwire.MaxData/2)
		for {
			n, err := os.Stdin.Read(buf)
			if n > 0 && conn.Send(stepwire.Input, to, buf[:n]) != nil || err != nil {
				return
			}
		}
	}()
	return nil
}

func (v *viewer) write(w io.Writer, f *stepwire.Frame, tasks int) error {
	data := f.Data
	if v.label {
		data = stepwire.Label(f.Task, tasks, data)
	}
	_, err := w.Write(data)
	return err
}

// showLayout says where the tasks run, in sattach's words.
func (v *viewer) showLayout(r *api.StepReply) {
	fmt.Fprintf(v.out, "Job step layout:\n\t%d tasks, %d nodes (%s)\n\n", r.Tasks, len(r.Nodes), nodeNames(r))
	for i := range r.Nodes {
		n := &r.Nodes[i]
		var ids bytes.Buffer
		for k, t := range n.Tasks {
			if k > 0 {
				ids.WriteString(", ")
			}
			fmt.Fprint(&ids, t)
		}
		fmt.Fprintf(v.out, "\tNode %d (%s), %d task(s): %s\n", i, n.Name, len(n.Tasks), ids.String())
	}
}
