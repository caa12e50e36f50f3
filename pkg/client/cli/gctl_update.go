package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/submit"
	"gangd/pkg/core/nearest"
	"gangd/pkg/core/script"
)

// changes are the options of gctl update: each reads its value as gsubmit does.
var changes = []struct {
	name, arg, help string
	set             func(r *api.UpdateRequest, v string) error
}{
	{"name", "NAME", "name of the job", func(r *api.UpdateRequest, v string) error { r.Name = &v; return nil }},
	{"time", "TIME", "time limit, of a running job counted from its start: 90 (minutes), 12:00:00, 0 for the partition's",
		func(r *api.UpdateRequest, v string) error {
			d, err := script.ParseTime(v)
			r.TimeLimit = &d
			return err
		}},
	{"priority", "N", "priority, where the site allows it", func(r *api.UpdateRequest, v string) (err error) {
		r.Priority, err = wholeNumber(v)
		return err
	}},
	{"nice", "N", "lower the priority by N", func(r *api.UpdateRequest, v string) (err error) {
		r.Nice, err = wholeNumber(v)
		return err
	}},
	{"begin", "TIME", "not before: 16:00, now+1hour, 2030-01-20T12:34:00, now", func(r *api.UpdateRequest, v string) (err error) {
		r.Begin, err = instantOr("now", v)
		return err
	}},
	{"deadline", "TIME", "end by then, or do not start: 18:00, now+6hours; none for no deadline",
		func(r *api.UpdateRequest, v string) (err error) {
			r.Deadline, err = instantOr("none", v)
			return err
		}},
	{"partition", "NAME,...", "partition, or several of which any will do", func(r *api.UpdateRequest,
		v string) error {
		r.Partition = &v
		return nil
	}},
	{"constraint", "FEATURES", "features of its nodes, as gsubmit -C; none for any; of a waiting job",
		func(r *api.UpdateRequest, v string) error {
			r.Constraint = orEmpty(v)
			return nil
		}},
	{"prefer", "FEATURES", "features that are tried first, as gsubmit --prefer; none for nothing; of a waiting job",
		func(r *api.UpdateRequest, v string) error {
			r.Prefer = orEmpty(v)
			return nil
		}},
	{"array-limit", "N", "elements of the array that may run at once, 0 for all", func(r *api.UpdateRequest, v string) error {
		n, err := wholeNumber(v)
		if err == nil && *n < 0 {
			err = fmt.Errorf("want 0 or more")
		}
		if err == nil {
			r.ArrayLimit = new(int(*n))
		}
		return err
	}},
	{"dependency", "KIND:ID,...", "what it waits for, as gsubmit -d; none for nothing", func(r *api.UpdateRequest, v string) (err error) {
		if v == "none" || v == "" {
			r.Dependency = &api.Dependency{}
			return nil
		}
		r.Dependency, err = script.ParseDependency(v)
		return err
	}},
}

// instantOr reads a time; zero where it is the word for none.
func instantOr(none, v string) (*time.Time, error) {
	if v == none {
		return &time.Time{}, nil
	}
	t, err := script.ParseBegin(v, now())
	return &t, err
}

// orEmpty takes "none" for nothing.
func orEmpty(v string) *string {
	if v == "none" {
		v = ""
	}
	return &v
}

func wholeNumber(v string) (*int64, error) {
	var n int64
	if _, err := fmt.Sscanf(v, "%d", &n); err != nil || fmt.Sprint(n) != v {
		return nil, fmt.Errorf("not a whole number")
	}
	return &n, nil
}

func newUpdate() *cobra.Command {
	req := &api.UpdateRequest{}
	var asked []string // options of gsubmit
	cmd := &cobra.Command{
		Use: "update JOB... --OPTION=VALUE...", Short: "change the name, limit, priority or place in time of jobs, and what waiting ones ask for",
		Args: someJobs,
		Example: `  gctl update 12 --time=4:00:00            a longer time limit, also while it runs
  gctl update 12 --nodes=4 --mem=64G       a job that waits asks for more
  gctl update job 12 timelimit=30          the same in scontrol's manner`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if aboutReservation(args) {
				return updateReservation(cmd, withoutWord(args))
			}
			args, err := assign(cmd, args)
			if err != nil {
				return err
			}
			if cmd.Flags().NFlag() == 0 {
				return Usagef("nothing to change was given; run %s --help", cmd.CommandPath())
			}
			refs, err := parseRefs(args)
			if err != nil {
				return err
			}
			req.Refs = refs
			c := client.New()
			if len(asked) > 0 {
				warn, err := submit.Change(cmd.Context(), c, req, asked)
				if err != nil {
					return err
				}
				for _, w := range warn {
					fmt.Fprintf(cmd.ErrOrStderr(), "gctl update: warning: %s\n", w)
				}
			}
			reply, err := c.Update(cmd.Context(), req)
			if err != nil {
				return err
			}
			return failures(cmd, reply)
		},
		ValidArgsFunction: completeJobs,
		Long: "Changes jobs that have not ended. Of a job that waits also what it asks for, by the options of gsubmit for its size, nodes, " +
			"CPUs,\n" +
			"memory, cards, account, reservation, files, directory, notices and requeue: gctl update 12 --nodes=4 --mem=64G.",
	}
	for i := range changes {
		ch := &changes[i]
		cmd.Flags().Var(&change{set: func(v string) error { return ch.set(req, v) }, arg: ch.arg}, ch.name, ch.help)
	}
	for i := range script.Options {
		o := &script.Options[i]
		if !script.Changeable(o.Long) || cmd.Flags().Lookup(o.Long) != nil {
			continue
		}
		f := &change{set: func(v string) error {
			word := "--" + o.Long
			if o.Kind == script.Value || v != "" && v != "true" {
				word += "=" + v
			}
			asked = append(asked, word)
			return nil
		}, arg: o.Arg}
		cmd.Flags().Var(f, o.Long, "of a job that waits: "+cmp.Or(o.Help, "as gsubmit takes it"))
		cmd.Flags().Lookup(o.Long).Hidden = true // they are gsubmit's, and listed there
		if o.Kind != script.Value {
			cmd.Flags().Lookup(o.Long).NoOptDefVal = "true"
		}
	}
	return cmd
}

// slurmChanges are scontrol's names of what has another one here.
var slurmChanges = map[string]string{"jobname": "name", "timelimit": "time", "starttime": "begin", "features": "constraint",
	"arraytaskthrottle": "array-limit",
	"numnodes":          "nodes", "numtasks": "ntasks", "numcpus": "ntasks", "cpuspertask": "cpus-per-task", "minmemorynode": "mem",
	"minmemorycpu": "mem-per-cpu", "mintmpdisknode": "tmp", "mincpusnode": "mincpus",
	"reqnodelist": "nodelist", "excnodelist": "exclude", "taskspernode": "ntasks-per-node", "reservationname": "reservation",
	"stdout": "output", "stderr": "error", "stdin": "input", "workdir": "chdir",
	"mailtype": "mail-type", "mailuser": "mail-user"}

// assign reads NAME=VALUE among the arguments, as scontrol update has them, jobid=12 too, and gives
// the others.
func assign(cmd *cobra.Command, args []string) (rest []string, err error) {
	for _, arg := range args {
		name, v, is := strings.Cut(arg, "=")
		switch {
		case !is && arg == "job" && len(rest) == 0: // as gctl show job has it
			continue
		case !is:
			rest = append(rest, arg)
			continue
		}
		name = strings.ToLower(strings.TrimLeft(name, "-"))
		if name == "job" || name == "jobid" {
			rest = append(rest, v)
			continue
		}
		if own, ok := slurmChanges[name]; ok {
			name = own
		}
		if cmd.Flags().Lookup(name) == nil {
			var names []string
			for i := range changes {
				names = append(names, changes[i].name)
			}
			for of := range slurmChanges {
				names = append(names, of)
			}
			slices.Sort(names)
			return nil, Usagef("%q can't be changed; %s", name, nearest.Hint(name, names, "run "+cmd.CommandPath()+" --help"))
		}
		if err := cmd.Flags().Set(name, v); err != nil {
			var bad *pflag.InvalidValueError
			if errors.As(err, &bad) {
				err = bad.Unwrap()
			}
			return nil, Usagef("invalid value %q for --%s: %w", v, name, err)
		}
	}
	if len(rest) == 0 {
		return nil, Usagef("no job was named: %s 12 --time=90", cmd.CommandPath())
	}
	return rest, nil
}

// change is a flag that writes into the request what it reads.
type change struct {
	set       func(string) error
	arg, text string
}

var _ pflag.Value = (*change)(nil)

func (c *change) String() string { return c.text }
func (c *change) Type() string   { return c.arg }
func (c *change) Set(v string) error {
	c.text = v
	return c.set(v)
}

func newRerun() *cobra.Command {
	var failed, parsable bool
	cmd := &cobra.Command{
		Use: "rerun [--failed] JOB", Short: "submit a job once more, or the failed elements of an array",
		Example: `  gctl rerun 12                  the same script, options and environment as a new job
  gctl rerun --failed 20         those elements of array 20 that have ended and did not complete
  id=$(gctl rerun --parsable 12) for a script`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usagef("want one job: %s 12, 12_3 or @ for your last job", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := api.ParseJobRef(args[0])
			if err != nil {
				return err
			}
			key, err := client.NewKey()
			if err != nil {
				return err
			}
			c := client.New()
			reply, err := c.Rerun(cmd.Context(), &api.RerunRequest{Key: key, Ref: ref, Failed: failed})
			if err != nil {
				return err
			}
			line := fmt.Sprintf("Submitted batch job %d\n", reply.JobID)
			switch {
			case parsable:
				line = fmt.Sprintln(reply.JobID)
			case reply.Count > 1:
				line = fmt.Sprintf("Submitted batch job %d (%d elements)\n", reply.JobID, reply.Count)
			}
			submit.TellID(cmd.OutOrStdout(), cmd.ErrOrStderr(), "gctl", reply.JobID, line)
			return nil
		},
		ValidArgsFunction: completeJobs,
	}
	cmd.Flags().BoolVar(&failed, "failed", false, "of an array only the elements that did not complete")
	cmd.Flags().BoolVar(&parsable, "parsable", false, "print the id alone")
	return cmd
}
