package sacct

import (
	"gangd/pkg/cmdline/getopt"
	"gangd/pkg/cmdline/lists"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/cmdline"
)

const (
	oneCluster = "there is one cluster, and what is shown is always of it"
	noWCKeys   = "gangd has no workload keys: no job has one"
)

var sacctOptions = cmdline.Rows{
	cmdline.On('A', "accounts", getopt.Required, lists.Exact, "jobs of these accounts"),
	cmdline.Also(cmdline.On(0, "accounts", getopt.Required, lists.Own, ""), "account"),
	cmdline.On('L', "allclusters", getopt.None, lists.Exact, oneCluster),
	cmdline.On('X', "allocations", getopt.None, lists.Exact, "jobs without their steps"),
	cmdline.On('a', "allusers", getopt.None, lists.Exact, "jobs of everybody"),
	cmdline.On('x', "associations", getopt.Required, lists.Exact, "selects nothing: jobs have no association"),
	cmdline.On('B', "batch-script", getopt.None, lists.Partial, "of your own jobs; with -j, as there"),
	cmdline.On('b', "brief", getopt.None, lists.Exact, "-o jobid,state,exitcode"),
	cmdline.On('M', "clusters", getopt.Required, lists.Partial, "gangd is the one cluster; another name selects nothing"),
	cmdline.Also(cmdline.On(0, "clusters", getopt.Required, lists.Own, ""), "cluster"),
	cmdline.On('c', "completion", getopt.None, lists.Exact, "refused as by a Slurm without a completion log"),
	cmdline.On('C', "constraints", getopt.Required, lists.Exact, "jobs that asked for these features"),
	cmdline.On(0, "delimiter", getopt.Required, lists.Exact, "what stands between columns with -p and -P"),
	cmdline.On('D', "duplicates", getopt.None, lists.Exact, "every attempt of a job, not only the last"),
	cmdline.On('E', "endtime", getopt.Required, lists.Exact, "jobs in any state before this time"),
	cmdline.On(0, "env-vars", getopt.None, lists.Refused, "the environment of a job is not given out; gctl rerun runs it once more with it"),
	cmdline.On(0, "federation", getopt.None, lists.Exact, oneCluster),
	cmdline.On('f', "file", getopt.Required, lists.Refused, "there is no accounting file; the controller has the history"),
	cmdline.On('F', "flags", getopt.Required, lists.Refused, "how the scheduler came to start a job is not kept; gctl events JOB tells its story"),
	cmdline.On('o', "format", getopt.Required, lists.Exact, "these columns, each kept as the list of columns says"),
	cmdline.On('g', "gid", getopt.Required, lists.Exact, "jobs of these groups"),
	cmdline.Also(cmdline.On(0, "gid", getopt.Required, lists.Exact, "as --gid"), "group"),
	cmdline.On('h', "help", getopt.None, lists.Partial, "in gangd's words"),
	cmdline.On('e', "helpformat", getopt.None, lists.Exact, "lists the columns"),
	cmdline.On('j', "jobs", getopt.Required, lists.Exact, "these jobs, elements and steps: 12, 12_3, 12.0, 12.batch"),
	cmdline.On(0, "json", getopt.None, lists.Partial, "in Slurm's shape; what gangd does not know is null or 0"),
	cmdline.On(0, "local", getopt.None, lists.Exact, oneCluster),
	cmdline.On('l', "long", getopt.None, lists.Exact, "many columns"),
	cmdline.On(0, "name", getopt.Required, lists.Exact, "jobs of these names"),
	cmdline.On('I', "ncpus", getopt.Required, lists.Exact, "jobs with so many CPUs: 4 or 2-8"),
	cmdline.On(0, "noconvert", getopt.None, lists.Exact, "sizes as they are"),
	cmdline.On('N', "nodelist", getopt.Required, lists.Exact, "jobs that ran on one of these nodes"),
	cmdline.On('n', "noheader", getopt.None, lists.Exact, "no header"),
	cmdline.On('i', "nnodes", getopt.Required, lists.Exact, "jobs on so many nodes: 2 or 1-4"),
	cmdline.On('p', "parsable", getopt.None, lists.Exact, "a | behind each column"),
	cmdline.On('P', "parsable2", getopt.None, lists.Exact, "a | between columns"),
	cmdline.On('r', "partition", getopt.Required, lists.Exact, "jobs of these partitions"),
	cmdline.On('q', "qos", getopt.Required, lists.Refused, "gangd has no quality of service; -r selects partitions, -A accounts"),
	cmdline.On('R', "reason", getopt.Required, lists.Refused, "not kept: why a job once waited; 22.05's sacct does not know it either"),
	cmdline.On('S', "starttime", getopt.Required, lists.Exact, "jobs in any state after this time"),
	cmdline.On('s', "state", getopt.Required, lists.Exact, "jobs in these states in the window"),
	cmdline.On('K', "timelimit-max", getopt.Required, lists.Exact, "with -k: time limits up to this"),
	cmdline.On('k', "timelimit-min", getopt.Required, lists.Exact, "jobs with this time limit, or from this on"),
	cmdline.On('T', "truncate", getopt.None, lists.Exact, "times within the window"),
	cmdline.On('u', "uid", getopt.Required, lists.Exact, "jobs of these users"),
	cmdline.Also(cmdline.On(0, "uid", getopt.Required, lists.Exact, "as --uid"), "user"),
	cmdline.On(0, "units", getopt.Required, lists.Exact, "sizes in K, M, G, T or P"),
	cmdline.On('U', "usage", getopt.None, lists.Exact, "one line of help"),
	cmdline.On(0, "use-local-uid", getopt.None, lists.Exact, "users by their names on this host, which is what always holds"),
	cmdline.On('v', "verbose", getopt.None, lists.Exact, "says which window of time is looked at"),
	cmdline.On('V', "version", getopt.None, lists.Partial, "names gangd too"),
	cmdline.On('W', "wckeys", getopt.Required, lists.Exact, "selects nothing: "+noWCKeys),
	cmdline.On(0, "whole-hetjob", getopt.Optional, lists.Exact, "there are no heterogeneous jobs"),
	cmdline.On(0, "yaml", getopt.None, lists.Partial, "as --json"),
}

// Lists is how each option of sacct is kept.
func Lists() lists.Command { return sacctOptions.Lists("sacct") }

// read takes a command line. What was read before a mistake counts first, as in Slurm:
// -V --bogus prints the version. Words that are no options are a mistake.
func read(command string, options cmdline.Rows, args []string, s slurm.Streams, set func(name, value string, s slurm.Streams) error) error {
	settings, rest, err := options.Grammar().Parse(args)
	for _, o := range settings {
		if err := options.Refused(command, o.Name); err != nil {
			return err
		}
		if err := set(o.Name, o.Value, s); err != nil {
			return err
		}
	}
	if err != nil || len(rest) == 0 {
		return err
	}
	s.Errorf(command, "Unknown arguments:")
	for _, r := range rest {
		s.Errorf(command, " %s", r)
	}
	return done{1}
}
