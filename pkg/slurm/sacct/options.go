package sacct

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/accttable"
	"gangd/pkg/core/table/tres"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/document"
)

const (
	oneCluster = "there is one cluster, and what is shown is always of it"
	noWCKeys   = "gangd has no workload keys: no job has one"
)

// command is sacct. Columns are listed with the options; their table refers to it by its notes.
var command = &cmdline.Command[ask]{Name: "sacct", Terse: true, Getenv: os.Getenv, Usage: "Usage: sacct [options]\n\tUse --help for help\n",
	Does: "the history of jobs, by the name and in the columns of Slurm's sacct",
	More: func() []cmdline.Lists { return []cmdline.Lists{columns()} }, Options: []cmdline.Option[ask]{
		{Long: "accounts", Short: 'A', Names: "accounts account", Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of these accounts",
			Set: cmdline.MoreWords(func(a *ask) *[]string { return &a.accounts })},
		{Long: "allclusters", Short: 'L', List: cmdline.Exact, Help: oneCluster},
		{Long: "allocations", Short: 'X', List: cmdline.Exact, Help: "jobs without their steps",
			Set: cmdline.Flag(func(a *ask) *bool { return &a.allocations })},
		{Long: "allusers", Short: 'a', List: cmdline.Exact, Help: "jobs of everybody",
			Set: cmdline.Flag(func(a *ask) *bool { return &a.everybody })},
		{Long: "array", List: cmdline.Exact, Help: "a line for each element of an array, which is how all are shown"},
		{Long: "associations", Short: 'x', Kind: cmdline.Required, List: cmdline.Exact, Help: "selects nothing: jobs have no association",
			Set: func(a *ask, _ string) error { a.nothing = true; return nil }},
		{Long: "batch-script", Short: 'B', List: cmdline.Partial, Help: "of your own jobs; with -j, as there",
			Set: cmdline.Flag(func(a *ask) *bool { return &a.batchScript })},
		{Long: "brief", Short: 'b', List: cmdline.Exact, Help: "-o jobid,state,exitcode",
			Set: func(a *ask, _ string) error { a.format = formatBrief; return nil }},
		{Long: "clusters", Short: 'M', Names: "clusters cluster", Kind: cmdline.Required, List: cmdline.Partial,
			Help: "gangd is the one cluster; another name selects nothing", Set: func(a *ask, v string) error {
				a.nothing = !cmdline.IsCluster(v) &&
					v != "-1"
				return nil
			}},
		{Long: "completion", Short: 'c', List: cmdline.Exact, Help: "refused as by a Slurm without a completion log",
			Set: func(*ask, string) error { return cmdline.Bare("Slurm job completion is disabled") }},
		{Long: "constraints", Short: 'C', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs that asked for these features",
			Set: cmdline.MoreWords(func(a *ask) *[]string { return &a.features })},
		{Long: "delimiter", Kind: cmdline.Required, List: cmdline.Exact, Help: "what stands between columns with -p and -P",
			Set: cmdline.Word(func(a *ask) *string { return &a.delimiter })},
		{Long: "duplicates", Short: 'D', List: cmdline.Exact, Help: "every attempt of a job, not only the last",
			Set: cmdline.Flag(func(a *ask) *bool { return &a.duplicates })},
		{Long: "endtime", Short: 'E', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs in any state before this time", Set: setEnd},
		{Long: "env-vars", List: cmdline.Refused, Help: "the environment of a job is not given out; gctl rerun runs it once more with it"},
		{Long: "expand-patterns", List: cmdline.Exact, Help: "patterns of file names are shown filled in, as they always are",
			Set: cmdline.Accepted[ask]},
		{Long: "federation", Env: []string{"SACCT_FEDERATION"}, List: cmdline.Exact, Help: oneCluster},
		{Long: "fields", As: "format", Kind: cmdline.Required, List: cmdline.Exact, Help: "as --format"},
		{Long: "file", Short: 'f', Kind: cmdline.Required, List: cmdline.Refused, Help: "there is no accounting file; the controller has the " +
			"history"},
		{Long: "flags", Short: 'F', Kind: cmdline.Required, List: cmdline.Refused, Help: "how the scheduler came to start a job is not kept; " +
			"gctl events JOB tells its story"},
		{Long: "format", Short: 'o', Kind: cmdline.Required, List: cmdline.Exact, Help: "these columns, each kept as the list of columns says",
			Set: cmdline.MoreWords(func(a *ask) *[]string { return &a.columns })},
		{Long: "gid", Short: 'g', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of these groups",
			Set: cmdline.More(func(a *ask) *[]uint32 { return &a.groups }, parseGroups)},
		{Long: "group", As: "gid", Kind: cmdline.Required, List: cmdline.Exact, Help: "as --gid"},
		{Long: "help", Short: 'h', List: cmdline.Partial, Help: "in gangd's words"},
		{Long: "help-fields", As: "helpformat", List: cmdline.Exact, Help: "as --helpformat"},
		{Long: "helpformat", Short: 'e', List: cmdline.Exact, Help: "lists the columns", Set: listColumns},
		{Long: "helpreason", List: cmdline.Refused, Help: "why a job once waited is not kept; gqueue(1) has the reasons of those that wait"},
		{Long: "helpstate", List: cmdline.Exact, Help: "lists the states",
			Set: func(*ask, string) error { return cmdline.Said(jobs.StateNames(true)) }},
		{Long: "jobs", Short: 'j', Kind: cmdline.Required, List: cmdline.Exact, Help: "these jobs, elements and steps: 12, 12_3, 12.0, 12.batch",
			Set: cmdline.More(func(a *ask) *[]jobRef { return &a.jobs }, parseJobs)},
		documentRow(slurm.JSONRow(func(a *ask) *slurm.Document { return &a.document })),
		{Long: "local", Env: []string{"SACCT_LOCAL"}, List: cmdline.Exact, Help: oneCluster},
		{Long: "long", Short: 'l', List: cmdline.Exact, Help: "many columns",
			Set: func(a *ask, _ string) error { a.format = formatLong; return nil }},
		{Long: "name", Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of these names",
			Set: cmdline.MoreWords(func(a *ask) *[]string { return &a.names })},
		{Long: "ncpus", Short: 'I', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs with so many CPUs: 4 or 2-8",
			Set: func(a *ask, v string) (err error) { a.cpus, err = parseSpan(v, "cpu"); return err }},
		{Long: "noconvert", List: cmdline.Exact, Help: "sizes as they are", Set: cmdline.Flag(func(a *ask) *bool { return &a.plain })},
		{Long: "nodelist", Short: 'N', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs that ran on one of these nodes",
			Set: func(a *ask, v string) (err error) { a.nodes, err = parseNodes(v); return err }},
		{Long: "noheader", Short: 'n', List: cmdline.Exact, Help: "no header", Set: cmdline.Flag(func(a *ask) *bool { return &a.noHeader })},
		{Long: "nnodes", Short: 'i', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs on so many nodes: 2 or 1-4",
			Set: func(a *ask, v string) (err error) { a.nodeCount, err = parseSpan(v, "node"); return err }},
		{Long: "parsable", Short: 'p', List: cmdline.Exact, Help: "a | behind each column",
			Set: func(a *ask, _ string) error { a.style = accttable.Parsable; return nil }},
		{Long: "parsable2", Short: 'P', List: cmdline.Exact, Help: "a | between columns",
			Set: func(a *ask, _ string) error { a.style = accttable.Parsable2; return nil }},
		{Long: "partition", Short: 'r', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of these partitions",
			Set: cmdline.MoreWords(func(a *ask) *[]string { return &a.partitions })},
		{Long: "qos", Short: 'q', Kind: cmdline.Required, List: cmdline.Refused, Help: "gangd has no quality of service; -r selects " +
			"partitions, -A accounts"},
		{Long: "reason", Short: 'R', Kind: cmdline.Required, List: cmdline.Refused, Help: "not kept: why a job once waited; 22.05's sacct " +
			"does not know it either"},
		{Long: "starttime", Short: 'S', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs in any state after this time", Set: setStart},
		{Long: "state", Short: 's', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs in these states in the window",
			Set: cmdline.More(func(a *ask) *[]string { return &a.states }, parseStates)},
		{Long: "timelimit-max", Short: 'K', Kind: cmdline.Required, List: cmdline.Exact, Help: "with -k: time limits up to this",
			Set: func(a *ask, v string) (err error) { a.limit.max, err = parseMinutes(v); return err }},
		{Long: "timelimit-min", Short: 'k', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs with this time limit, or from this on",
			Set: func(a *ask, v string) (err error) { a.limit.min, err = parseMinutes(v); return err }},
		{Long: "truncate", Short: 'T', List: cmdline.Exact, Help: "times within the window",
			Set: cmdline.Flag(func(a *ask) *bool { return &a.truncated })},
		{Long: "uid", Short: 'u', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of these users", Set: setUser},
		{Long: "user", As: "uid", Kind: cmdline.Required, List: cmdline.Exact, Help: "as --uid"},
		{Long: "units", Kind: cmdline.Required, List: cmdline.Exact, Help: "sizes in K, M, G, T or P", Set: setUnits},
		{Long: "usage", Short: 'U', List: cmdline.Exact, Help: "one line of help"},
		{Long: "use-local-uid", List: cmdline.Exact, Help: "users by their names on this host, which is what always holds"},
		{Long: "verbose", Short: 'v', List: cmdline.Exact, Help: "says which window of time is looked at",
			Set: cmdline.Flag(func(a *ask) *bool { return &a.verbose })},
		slurm.VersionRow[ask](),
		{Long: "wckeys", Short: 'W', Kind: cmdline.Required, List: cmdline.Exact, Help: "selects nothing: " + noWCKeys,
			Set: func(a *ask, _ string) error { a.nothing = true; return nil }},
		{Long: "whole-hetjob", Kind: cmdline.Optional, List: cmdline.Exact, Help: "no: of a heterogeneous job the component named alone, else " +
			"its first; yes: all",
			Set: func(a *ask, v string) error { a.wholeHet = v; return nil }},
		documentRow(slurm.YAMLRow(func(a *ask) *slurm.Document { return &a.document })),
	}}

func listColumns(a *ask, _ string) error {
	old, err := oldSlurm()
	if err != nil {
		return err
	}
	fmt.Fprint(a.Out, accttable.Names(fieldColumns(old)))
	return cmdline.ErrDone
}

// Lists is how each option of sacct is kept.
func Lists() cmdline.Lists { return command.Lists() }

// oldSlurm reports whether 22.05 is spoken.
func oldSlurm() (bool, error) {
	spoken, err := slurm.Spoken(context.Background(), client.New())
	return err == nil && spoken.Parsers[0] < document.V40, err
}

// documentRow: in a document each run of a job stands by itself.
func documentRow(o cmdline.Option[ask]) cmdline.Option[ask] {
	set := o.Set
	o.Set = func(a *ask, v string) error {
		a.duplicates = true
		return set(a, v)
	}
	return o
}

func setStart(a *ask, v string) (err error) {
	a.from, err = parseTime(v)
	a.fromSet = v != ""
	return err
}

func setEnd(a *ask, v string) (err error) {
	a.to, err = parseTime(v)
	a.toSet = v != ""
	return err
}

func setUser(a *ask, v string) error {
	if v == "-1" {
		a.everybody = true
		return nil
	}
	users, err := parseUsers(v)
	a.users = append(a.users, users...)
	return err
}

func setUnits(a *ask, v string) error {
	if len(v) != 1 || !strings.Contains(tres.Units, v) {
		a.Errorf("sacct", "Invalid unit type '%s'. Possible options are '%s'", v, tres.Units)
		return cmdline.Fatal("Invalid unit type")
	}
	a.units = v[0]
	return nil
}
