package grun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/node/proc"
	"gangd/pkg/slurm"
)

const examples = `  grun -n 4 --label hostname                       inside a job: four tasks of its allocation
  grun --pty bash                                  a shell on a node, in a job of its own
  grun -N 2 --gpus-per-task=1 -n 16 python train.py`

const usage = "grun [OPTION]... PROGRAM [ARG]..."

// run is one call of the command.
type run struct {
	*ask
	name     string // that it was called by
	args     []string
	more     []component // that follow the first, of a step or job with several
	given    []given     // of the first, on the command line
	late     []*lateFile // to be opened when the step has its number
	told     []string    // NAME=value, what tasks are told of a job that was made for them
	out, err io.Writer
	client   *client.Client
	ctx      context.Context
}

// New is the command grun; salloc says whether it was called to allocate only.
//
// Options are parsed here, not by pflag: what follows the program is the program's.
func New() *cobra.Command {
	name := filepath.Base(os.Args[0])
	if name != "srun" && name != "salloc" {
		name = "grun"
	}
	return &cobra.Command{
		Use:                usage,
		Short:              "run tasks in an allocation, or in one of their own",
		Example:            examples,
		DisableFlagParsing: true,
		ValidArgsFunction:  complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := &run{name: name, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), ctx: cmd.Context()}
			return withStatus(name, r.main(args))
		},
	}
}

// withStatus gives an error of srun's or salloc's own the exit status that SLURM_EXIT_ERROR asks for; that of a program stays.
func withStatus(name string, err error) error {
	const none = -1 // of no program
	status := slurm.ErrorStatus(none)
	if name == "grun" || err == nil || status == none || errors.As(err, new(*immediateError)) {
		return err
	}
	if e := new(program.ExitError); errors.As(err, &e) {
		if e.Err == nil {
			return err
		}
		err = e.Err
	}
	return &program.ExitError{Status: status, Err: err}
}

// Main runs the command under the name that it was called by.
func Main() int {
	waits := proc.MarkWaiting()
	cmd := New()
	name := filepath.Base(os.Args[0])
	if name == "srun" || name == "salloc" {
		cmd.Use = name + " [OPTION]... PROGRAM [ARG]..."
	}
	if waits != nil {
		fmt.Fprintf(os.Stderr, "%s: can't say that this only waits for tasks (%v): a signal to its job may reach them twice\n", name, waits)
	}
	return program.Run(cmd, os.Args[1:], os.Stdout, os.Stderr)
}

func (r *run) main(args []string) error {
	if err := r.read(args); err != nil {
		return err
	}
	if r.inform() {
		return nil
	}
	if err := program.Become(r.asUser, r.asGroup); err != nil {
		return r.notPermitted(err)
	}
	r.client = client.New()
	if r.timeout != nil {
		r.ctx = client.WithTimeout(r.ctx, *r.timeout)
	}
	salloc := r.name == "salloc" || r.noShell
	switch {
	case salloc:
		return r.allocate()
	case len(r.args) == 0 && r.name == "srun":
		return &program.ExitError{Status: 1, Err: errors.New("fatal: No command given to execute.")}
	case len(r.args) == 0:
		return program.Usagef("no program was given; usage: %s", usage)
	case r.job != "":
		ref, err := api.ParseJobRef(r.job)
		if err != nil {
			return err
		}
		epoch := 0
		if os.Getenv("GANG_JOB_ID") == r.job {
			epoch, _ = strconv.Atoi(os.Getenv("GANG_EPOCH"))
		}
		if err := r.group(); err != nil {
			return err
		}
		return r.step(ref, epoch)
	case r.testOnly:
		return r.test()
	}
	return r.outside()
}

// misused is a wrong command line in the words of the command that was called.
func (r *run) misused(err error) error {
	var u *program.UsageError
	switch {
	case r.name == "grun" || !errors.As(err, &u):
		return err
	case r.name == "srun":
		return &program.ExitError{Status: 255, Err: fmt.Errorf("%w\nTry \"srun --help\" for more information", u.Err)}
	}
	return &program.ExitError{Status: 1, Err: fmt.Errorf("%w\nTry \"%s --help\" for more information", u.Err, r.name)}
}

// notPermitted words why a job can't be another's as srun and salloc do.
func (r *run) notPermitted(err error) error {
	option := program.OfBecome(err, r.asUser)
	switch {
	case r.name == "grun":
		return fmt.Errorf("--%s: %w", option, err)
	case errors.Is(err, program.ErrNotRoot):
		err = fmt.Errorf("error: --%s only permitted by root user", option)
	default:
		err = fmt.Errorf("error: Invalid --%s specification", option)
	}
	status := 255
	if r.name == "salloc" {
		status = 1
	}
	return &program.ExitError{Status: status, Err: err}
}

// badValue words a value that means nothing: srun has a sentence and a status for each kind
// of option. It has none for gangd's own, and says nothing of this kind about a variable.
func (r *run) badValue(err error) error {
	var bad *badValue
	if !errors.As(err, &bad) {
		return err
	}
	usage := &program.UsageError{Err: bad}
	words := func(status int, format string, args ...any) error {
		return &program.ExitError{Status: status, Err: fmt.Errorf(format, args...)}
	}
	if bad.option == "het-group" {
		return words(1, "error: Invalid --het-group value: %s", bad.value)
	}
	if r.name == "srun" && bad.option == "mpi" {
		return words(1, "error: Invalid MPI type '%s', --mpi=list for acceptable types (%s)", bad.value, insteadOfPMI)
	}
	if r.name != "srun" || bad.where != "--"+bad.option {
		return usage
	}
	switch bad.option {
	case "clusters":
		return words(1, "error: %w", cmdline.NoCluster(r.name, bad.value))
	case "nodefile":
		return words(255, "error: Invalid --nodefile node file\n%s: gangd: %v", r.name, bad)
	case "resv-ports":
		return words(1, "error: Invalid numeric value \"%s\" for --resv-port.", bad.value) // sic
	case "ntasks", "cpus-per-task", "ntasks-per-node", "wait":
		return words(1, "error: Invalid numeric value \"%s\" for --%s.", bad.value, bad.option)
	case "time", "mem", "mem-per-cpu":
		return words(255, "error: Invalid --%s specification", bad.option)
	case "gres":
		return words(1, "error: %s\n%s: gangd: %v", slurm.BadGres, r.name, bad)
	case "nodes":
		if _, _, ranged := strings.Cut(bad.value, "-"); !ranged {
			return words(255, "error: \"%s\" is not a valid node count", bad.value)
		}
	}
	return usage
}

// forms is how the command is called, by the name that it was called by.
func (r *run) forms() string {
	switch r.name {
	case "srun":
		return "srun [OPTION]... executable [ARG]... [ : [OPTION]... executable [ARG]... ]..."
	case "salloc":
		return "salloc [OPTION]... [ : [OPTION]... ]... [command [ARG]...]"
	}
	return usage
}

// slurmsGroups are the titles by which programs look for options in the help of srun.
var slurmsGroups = map[string]string{groupStep: "Parallel run options", groupRes: "Consumable resources related options",
	groupAlloc: "Constraint options", groupInfo: "Help options"}

// grouped is the options in the groups of the help.
func (r *run) grouped() []Option {
	all := slices.Clone(options)
	for i := range all {
		if title := slurmsGroups[all[i].Group]; title != "" && r.slurms {
			all[i].Group = title
		}
	}
	return all
}

func (r *run) inform() bool {
	switch {
	case r.help && r.helpTopic == "slurm":
		Lists().Write(r.out)
	case r.help:
		fmt.Fprintf(r.out, "%s: run tasks in an allocation, or in one of their own\n\nExamples:\n%s\n\nUsage: %s\n", r.name, examples, r.forms())
		cmdline.WriteHelp(r.out, r.grouped(), func(o *Option) bool { return o.Help != "" })
		fmt.Fprint(r.out, "\nsrun's options: grun --help=slurm\nManual: man grun\n")
	case r.helpTopic == "mpi":
		fmt.Fprint(r.out, "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n")
	case r.usage:
		fmt.Fprintf(r.out, "%s: %s\n", map[bool]string{true: "Usage", false: "usage"}[r.slurms], r.forms())
	case r.version && r.name != "grun":
		slurm.PrintVersion(r.name, cmdline.Streams{Out: r.out, Err: r.err})
	case r.version:
		fmt.Fprintf(r.out, "grun %s\n", api.Version)
	default:
		return false
	}
	return true
}

// Lists says how each option of srun is kept.
func Lists() cmdline.Lists {
	l := cmdline.ListsOf("srun", options)
	for i := range options { // each spelling by itself
		for _, name := range options[i].Spellings() {
			k := slices.IndexFunc(l.Options, func(k cmdline.Kept) bool { return k.Name == options[i].Long })
			if name != options[i].Long && k >= 0 {
				also := l.Options[k]
				also.Name, also.Short = name, 0
				l.Options = append(l.Options, also)
			}
		}
	}
	return l
}

func complete(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return program.CompleteOption(options, args, word)
}

// failed makes an error of a step what srun says.
func (r *run) failed(err error) error {
	var exit *program.ExitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	var u *client.UnreachableError
	if errors.As(err, &u) {
		return err
	}
	return &program.ExitError{Status: max(program.ExitCode(err), 1), Err: fmt.Errorf("error: %w", err)}
}
