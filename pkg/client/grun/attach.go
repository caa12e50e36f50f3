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
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/output"
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

func newAttach() *cobra.Command {
	v := &viewer{name: "gattach"}
	if cmdline.Called(os.Args[0]) != "" {
		v.name = filepath.Base(os.Args[0])
	}
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
	f := cmd.Flags()
	f.BoolVarP(&v.label, "label", "l", false, "put the task's number before each line")
	f.BoolVar(&v.layout, "layout", false, "say where the tasks run, and end")
	f.BoolVarP(&v.quiet, "quiet", "Q", false, "errors only")
	f.BoolVar(new(bool), "pty", false, "of a step that has a terminal: it is shown as it is, with or without this")
	f.StringVar(&v.input, "input-filter", "", "pass standard input on to `TASK`, or all; without it nothing is")
	f.StringVar(&v.output, "output-filter", "all", "show standard output of `TASK`, all or none")
	f.StringVar(&v.errs, "error-filter", "all", "show standard error of `TASK`, all or none")
	program.Timeout(cmd)
	return cmd
}

// AttachMain runs the command under the name that it was called by.
func AttachMain() int {
	cmd := newAttach()
	if name := cmdline.Called(os.Args[0]); name != "" {
		cmd.Use = name + " JOB.STEP"
		for _, a := range os.Args[1:] {
			if a == "--version" || a == "-V" {
				version := func(_ []string, s cmdline.Streams) int { return slurm.PrintVersion(name, s) }
				return output.Run(name, version, nil, cmdline.Streams{Out: os.Stdout, Err: os.Stderr})
			}
		}
	}
	return program.Run(cmd, os.Args[1:], os.Stdout, os.Stderr)
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
