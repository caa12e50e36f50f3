package sacct

import (
	"gangd/pkg/slurm/getopt"
	"gangd/pkg/slurm/lists"
)

// option is one option of sacct or sstat: how it is read, and how it is kept.
type option struct {
	getopt.Option
	list lists.List
	text string
}

func on(short byte, long string, arg getopt.Arg, l lists.List, text string) option {
	return option{getopt.Option{Long: long, Short: short, Arg: arg}, l, text}
}

// also is another spelling of an option.
func also(o option, long string) option {
	o.Name, o.Long, o.Short = o.Long, long, 0
	return o
}

const (
	oneCluster = "there is one cluster, and what is shown is always of it"
	noWCKeys   = "gangd has no workload keys: no job has one"
)

var sacctOptions = []option{
	on('A', "accounts", getopt.Required, lists.Exact, "jobs of these accounts"),
	also(on(0, "accounts", getopt.Required, lists.Own, ""), "account"),
	on('L', "allclusters", getopt.None, lists.Exact, oneCluster),
	on('X', "allocations", getopt.None, lists.Exact, "jobs without their steps"),
	on('a', "allusers", getopt.None, lists.Exact, "jobs of everybody"),
	on('x', "associations", getopt.Required, lists.Exact, "selects nothing: jobs have no association"),
	on('B', "batch-script", getopt.None, lists.Partial, "of your own jobs; with -j, as there"),
	on('b', "brief", getopt.None, lists.Exact, "-o jobid,state,exitcode"),
	on('M', "clusters", getopt.Required, lists.Partial, "gangd is the one cluster; another name selects nothing"),
	also(on(0, "clusters", getopt.Required, lists.Own, ""), "cluster"),
	on('c', "completion", getopt.None, lists.Exact, "refused as by a Slurm without a completion log"),
	on('C', "constraints", getopt.Required, lists.Exact, "jobs that asked for these features"),
	on(0, "delimiter", getopt.Required, lists.Exact, "what stands between columns with -p and -P"),
	on('D', "duplicates", getopt.None, lists.Exact, "every attempt of a job, not only the last"),
	on('E', "endtime", getopt.Required, lists.Exact, "jobs in any state before this time"),
	on(0, "env-vars", getopt.None, lists.Refused, "the environment of a job is not given out; gctl rerun runs it once more with it"),
	on(0, "federation", getopt.None, lists.Exact, oneCluster),
	on('f', "file", getopt.Required, lists.Refused, "there is no accounting file; the controller has the history"),
	on('F', "flags", getopt.Required, lists.Refused, "how the scheduler came to start a job is not kept; gctl events JOB tells its story"),
	on('o', "format", getopt.Required, lists.Exact, "these columns, each kept as the list of columns says"),
	on('g', "gid", getopt.Required, lists.Exact, "jobs of these groups"),
	also(on(0, "gid", getopt.Required, lists.Exact, "as --gid"), "group"),
	on('h', "help", getopt.None, lists.Partial, "in gangd's words"),
	on('e', "helpformat", getopt.None, lists.Exact, "lists the columns"),
	on('j', "jobs", getopt.Required, lists.Exact, "these jobs, elements and steps: 12, 12_3, 12.0, 12.batch"),
	on(0, "json", getopt.None, lists.Partial, "in Slurm's shape; what gangd does not know is null or 0"),
	on(0, "local", getopt.None, lists.Exact, oneCluster),
	on('l', "long", getopt.None, lists.Exact, "many columns"),
	on(0, "name", getopt.Required, lists.Exact, "jobs of these names"),
	on('I', "ncpus", getopt.Required, lists.Exact, "jobs with so many CPUs: 4 or 2-8"),
	on(0, "noconvert", getopt.None, lists.Exact, "sizes as they are"),
	on('N', "nodelist", getopt.Required, lists.Exact, "jobs that ran on one of these nodes"),
	on('n', "noheader", getopt.None, lists.Exact, "no header"),
	on('i', "nnodes", getopt.Required, lists.Exact, "jobs on so many nodes: 2 or 1-4"),
	on('p', "parsable", getopt.None, lists.Exact, "a | behind each column"),
	on('P', "parsable2", getopt.None, lists.Exact, "a | between columns"),
	on('r', "partition", getopt.Required, lists.Exact, "jobs of these partitions"),
	on('q', "qos", getopt.Required, lists.Refused, "gangd has no quality of service; -r selects partitions, -A accounts"),
	on('R', "reason", getopt.Required, lists.Refused, "not kept: why a job once waited; 22.05's sacct does not know it either"),
	on('S', "starttime", getopt.Required, lists.Exact, "jobs in any state after this time"),
	on('s', "state", getopt.Required, lists.Exact, "jobs in these states in the window"),
	on('K', "timelimit-max", getopt.Required, lists.Exact, "with -k: time limits up to this"),
	on('k', "timelimit-min", getopt.Required, lists.Exact, "jobs with this time limit, or from this on"),
	on('T', "truncate", getopt.None, lists.Exact, "times within the window"),
	on('u', "uid", getopt.Required, lists.Exact, "jobs of these users"),
	also(on(0, "uid", getopt.Required, lists.Exact, "as --uid"), "user"),
	on(0, "units", getopt.Required, lists.Exact, "sizes in K, M, G, T or P"),
	on('U', "usage", getopt.None, lists.Exact, "one line of help"),
	on(0, "use-local-uid", getopt.None, lists.Exact, "users by their names on this host, which is what always holds"),
	on('v', "verbose", getopt.None, lists.Exact, "says which window of time is looked at"),
	on('V', "version", getopt.None, lists.Partial, "names gangd too"),
	on('W', "wckeys", getopt.Required, lists.Exact, "selects nothing: "+noWCKeys),
	on(0, "whole-hetjob", getopt.Optional, lists.Exact, "there are no heterogeneous jobs"),
	on(0, "yaml", getopt.None, lists.Partial, "as --json"),
}

func grammar(options []option) *getopt.Grammar {
	g := &getopt.Grammar{}
	for i := range options {
		g.Options = append(g.Options, options[i].Option)
	}
	return g
}

func listOf(name string, options []option) lists.Command {
	c := lists.Command{Name: name}
	for i := range options {
		if o := &options[i]; o.list != lists.Own {
			c.Options = append(c.Options, lists.Option{Name: o.Long, Short: o.Short, List: o.list, Text: o.text})
		}
	}
	return c
}

// Lists is how each option of sacct is kept.
func Lists() lists.Command { return listOf("sacct", sacctOptions) }

// refusedWhy is the text of a refused option, empty when it is not refused.
func refusedWhy(options []option, name string) string {
	for i := range options {
		if o := &options[i]; o.Long == name && o.list == lists.Refused {
			return o.text
		}
	}
	return ""
}
