package grun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/script"
	"gangd/pkg/slurm"
)

// broadcast is one call of sbcast.
type broadcast struct {
	name, job       string
	force, preserve bool
}

const (
	oneWay = "a file goes to every node by a step, straight from this host"
	noLibs = "libraries of a program are not sent; put what it needs where all nodes see it"
)

var sbcastCommand = &cmdline.Command[broadcast]{Name: "sbcast", Getenv: os.Getenv, Does: "puts a copy of a file on every node of a job",
	Usage: "Usage: sbcast [-fpj] SOURCE DEST\n", Options: []cmdline.Option[broadcast]{
		{Long: "compress", Env: []string{"SBCAST_COMPRESS"}, Short: 'C', Kind: cmdline.Optional, List: cmdline.Partial,
			Help: "nothing is compressed: " + oneWay,
			Set:  cmdline.Accepted[broadcast]},
		{Long: "exclude", Env: []string{"SBCAST_EXCLUDE"}, Kind: cmdline.Required, List: cmdline.Refused,
			Note: "it is of --send-libs; " + noLibs},
		{Long: "fanout", Env: []string{"SBCAST_FANOUT"}, Short: 'F', Kind: cmdline.Required, List: cmdline.Partial, Help: oneWay,
			Set: cmdline.Accepted[broadcast]},
		{Long: "treewidth", Kind: cmdline.Required, List: cmdline.Partial, Help: oneWay, Set: cmdline.Accepted[broadcast]},
		{Long: "force", Env: []string{"SBCAST_FORCE"}, Short: 'f', List: cmdline.Exact, Help: "a file that is there is replaced",
			Set: cmdline.Flag(func(b *broadcast) *bool { return &b.force })},
		{Long: "jobid", Short: 'j', Kind: cmdline.Required, List: cmdline.Exact, Help: "the job, where this does not run in one",
			Set: cmdline.Word(func(b *broadcast) *string { return &b.job })},
		{Long: "send-libs", Env: []string{"SBCAST_SEND_LIBS"}, Kind: cmdline.Optional, List: cmdline.Refused, Note: noLibs},
		{Long: "no-allocation", Short: 'Z', Kind: cmdline.Optional, List: cmdline.Refused, Note: "a file goes to the nodes of a job"},
		{Long: "nodelist", Short: 'w', Kind: cmdline.Optional, List: cmdline.Refused,
			Note: "it is of --no-allocation: a file goes to all nodes " +
				"of a job"},
		{Long: "preserve", Env: []string{"SBCAST_PRESERVE"}, Short: 'p', List: cmdline.Partial,
			Help: "mode and time of change are kept; who owns a copy is who sent it",
			Set:  cmdline.Flag(func(b *broadcast) *bool { return &b.preserve })},
		{Long: "size", Env: []string{"SBCAST_SIZE"}, Short: 's', Kind: cmdline.Required, List: cmdline.Partial, Help: oneWay,
			Set: cmdline.Accepted[broadcast]},
		{Long: "timeout", Env: []string{"SBCAST_TIMEOUT"}, Short: 't', Kind: cmdline.Required, List: cmdline.Partial,
			Help: "a node that is cut off ends the step, and so this",
			Set:  cmdline.Accepted[broadcast]},
		{Long: "verbose", Short: 'v', List: cmdline.Partial, Help: "nothing more is said", Set: cmdline.Accepted[broadcast]},
		slurm.VersionRow[broadcast](),
		cmdline.HelpRow[broadcast](0),
		cmdline.UsageRow[broadcast](),
	}}

// SbcastLists is how each option of sbcast is kept.
func SbcastLists() cmdline.Lists { return sbcastCommand.Lists() }

// Sbcast is sbcast.
func Sbcast(args []string, s cmdline.Streams) int {
	b := &broadcast{name: sbcastCommand.Name}
	rest, err := sbcastCommand.Parse(b, args, s)
	if err == nil {
		err = sbcastCommand.Print(b.send(context.Background(), rest), s)
	}
	return cmdline.Exit(err)
}

// NewCopy is the command gcp, sbcast by another name.
func NewCopy() *cobra.Command {
	b := &broadcast{name: "gcp"}
	cmd := &cobra.Command{
		Use:   "gcp [OPTIONS] SOURCE DEST",
		Short: "put a copy of a file on every node of a job",
		Example: `  gcp data.tar /tmp/data.tar             in a script: to each node of the job
  gcp -f -p run.sh /tmp/                 replace one that is there; keep mode and time
  gcp --jobid=12 model /dev/shm/model    from outside the job`,
		Long: "sbcast's other options are taken without effect, or refused: sbcast --help=slurm.",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error { return program.Ended(b.send(cmd.Context(), args)) },
	}
	program.Table(cmd, sbcastCommand.Options, b)
	cmd.Flags().Lookup("preserve").Hidden = false
	_ = cmd.RegisterFlagCompletionFunc("jobid", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return program.Jobs(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// send becomes an srun of one task a node that reads the file.
func (b *broadcast) send(ctx context.Context, files []string) error {
	if len(files) != 2 {
		return fmt.Errorf("Need two file names, have %d names", len(files)) //nolint:staticcheck // Slurm's words
	}
	step, err := b.step(ctx, client.New(), files[0], files[1])
	if err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", append([]string{"srun"}, step...), intoTheJob(os.Environ()))
}

// intoTheJob is an environment without the wish for a container of steps: a copy goes to where the job runs, and would
// be gone with a container of the step that brings it.
func intoTheJob(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		return slices.ContainsFunc(script.ContainerOptions, func(o script.ContainerOption) bool { return strings.HasPrefix(v, o.Env()+"=") })
	})
}

// put writes standard input beside the destination and gives it its name when it is whole.
const put = `if [ -d "$1" ]; then set -- "${1%/}/$2" "$2" "$3" "$4" "$5"; fi
if [ "$3" = keep ] && [ -e "$1" ]; then echo "$0: error: $1 is there on $(uname -n), -f replaces it" >&2; exit 1; fi
t="$1.sbcast.$$"; trap 'rm -f "$t"' EXIT
(umask 077; cat >"$t") && chmod "$4" "$t" && { [ -z "$5" ] || touch -d "@$5" "$t"; } && mv -f "$t" "$1"`

// step is the arguments of the srun that copies the file.
func (b *broadcast) step(ctx context.Context, c *client.Client, from, to string) ([]string, error) {
	info, err := os.Stat(from)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return nil, fmt.Errorf("Can't open `%s`: %s", from, path.Err) //nolint:staticcheck // Slurm's words
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", from)
	}
	if b.job == "" {
		b.job = os.Getenv("SLURM_JOB_ID")
	}
	if b.job == "" {
		// nolint:staticcheck // Slurm's words
		return nil, errors.New("Need a job id to run this command.  Run from within an allocation or use the --jobid option.")
	}
	ref, err := api.ParseJobRef(b.job)
	if err != nil {
		return nil, err
	}
	reply, err := c.Jobs(ctx, &api.JobQuery{Refs: []api.JobRef{ref}, NoRanks: true})
	if err != nil {
		return nil, errors.New(slurm.Words(err))
	}
	if len(reply.Jobs) != 1 || len(reply.Jobs[0].Nodes) == 0 {
		return nil, fmt.Errorf("job %s has no nodes: it does not run", b.job)
	}
	nodes := slices.Clone(reply.Jobs[0].Nodes)
	slices.Sort(nodes)
	count := strconv.Itoa(len(slices.Compact(nodes)))
	mode, at, keep := "0700", "", "keep" // Slurm's, without -p
	if b.preserve {
		mode, at = fmt.Sprintf("%04o", info.Mode().Perm()), strconv.FormatInt(info.ModTime().Unix(), 10)
	}
	if b.force {
		keep = ""
	}
	return []string{"--jobid=" + b.job, "--overlap", "-Q", "-N", count, "-n", count, "--ntasks-per-node=1", "--job-name=" + b.name,
		"--input=" + from,
		"/bin/sh", "-c", put, b.name, to, info.Name(), keep, mode, at}, nil
}
