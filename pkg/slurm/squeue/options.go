package squeue

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
)

// choices is what the command line and the environment say.
type choices struct {
	accounts, jobs, names, partitions, qos, states, steps, users []string

	nodes, licenses, reservation             string
	format, longFormat, sort                 *string // nil: not given
	all, array, unique, long                 bool
	me, notMe, noConvert, noHeader, priority bool
	start, stepFlag, jobFlag, federation     bool
	local, sibling, cluster, onlyState       bool
	iterate, verbose                         int
	document                                 slurm.Document
}

const usage = `Usage: squeue [-A account] [--clusters names] [-i seconds] [--job jobid]
              [-n name] [-o format] [-p partitions] [--qos qos]
              [--reservation reservation] [--sort fields] [--start]
              [--step step_id] [-t states] [-u user_name] [--usage]
              [-L licenses] [-w nodes] [--federation] [--local] [--sibling]
	      [-ahjlrsv]
`

// command is squeue with all its options, in Slurm's order, which decides what an
// abbreviation that fits several is told.
var command = &cmdline.Command[choices]{Name: "squeue", Getenv: os.Getenv, Usage: usage, Options: []cmdline.Option[choices]{
	{Long: "account", Short: 'A', Names: "accounts", Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of these accounts",
		Set: cmdline.Words(func(c *choices) *[]string { return &c.accounts })},
	{Long: "all", Short: 'a', List: cmdline.Partial, Help: "no partition is hidden: always so",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.all })},
	{Long: "array", Short: 'r', List: cmdline.Exact, Help: "one line for each element of an array",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.array })},
	{Long: "array-unique", List: cmdline.Exact, Help: "one line for the waiting elements of an array, which is what is shown without it",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.unique })},
	{Long: "Format", Short: 'O', Kind: cmdline.Required, List: cmdline.Partial, Help: "columns by name; what gangd has nothing of is shown " +
		"as Slurm shows it where it is not used", Set: func(c *choices, v string) error {
		if c.format != nil {
			return fmt.Errorf("-O (--Format) is incompatible with -o (--format)")
		}
		c.longFormat = &v
		return nil
	}},
	{Long: "format", Short: 'o', Kind: cmdline.Required, List: cmdline.Partial, Help: "columns by letter; what gangd has nothing of is " +
		"shown as Slurm shows it where it is not used", Set: func(c *choices, v string) error {
		if c.longFormat != nil {
			return fmt.Errorf("-o (--format) is incompatible with -O (--Format)")
		}
		c.format = &v
		return nil
	}},
	{Long: "federation", List: cmdline.Partial, Help: "there is no federation: the one cluster is shown, as Slurm does without one",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.federation })},
	{Long: "expand-patterns", List: cmdline.Exact, Help: "patterns of file names are shown filled in, as they always are",
		Set: func(*choices, string) error { return nil }},
	cmdline.HelpRow[choices](0),
	{Long: "helpformat", Names: "helpformat helpFormat", List: cmdline.Exact, Help: "lists the names for --Format",
		Set: func(*choices, string) error { return cmdline.Said(jobfield.Squeue.Told()) }},
	{Long: "helpstate", List: cmdline.Exact, Help: "lists the states",
		Set: func(*choices, string) error { return cmdline.Said(jobs.StateNames(false)) }},
	{Long: "hide", List: cmdline.Partial, Help: "no partition is hidden: nothing is left out",
		Set: func(c *choices, _ string) error { c.all = false; return nil }},
	{Long: "iterate", Short: 'i', Kind: cmdline.Required, List: cmdline.Exact, Help: "show it again every so many seconds",
		Set: func(c *choices, v string) error {
			if c.iterate = leadingNumber(v); c.iterate <= 0 {
				return fmt.Errorf("--iterate=%s\n", v)
			}
			return nil
		}},
	{Long: "jobs", Short: 'j', Kind: cmdline.Optional, List: cmdline.Exact, Help: "these jobs, elements (12_3) and parts (12_[1-3]) of arrays",
		Set: func(c *choices, v string) error {
			c.jobFlag, c.jobs = true, cmdline.SplitIDs(v)
			return nil
		}},
	slurm.JSONRow(func(c *choices) *slurm.Document { return &c.document }),
	{Long: "licenses", Short: 'L', Kind: cmdline.Required, List: cmdline.Partial, Help: "jobs that ask for one of these",
		Set: cmdline.Word(func(c *choices) *string { return &c.licenses })},
	{Long: "local", List: cmdline.Exact, Help: "jobs of this cluster", Set: cmdline.Flag(func(c *choices) *bool { return &c.local })},
	{Long: "long", Short: 'l', List: cmdline.Exact, Help: "more columns", Set: cmdline.Flag(func(c *choices) *bool { return &c.long })},
	cmdline.ClustersRow("squeue", func(c *choices) *bool { return &c.cluster }),
	{Long: "me", List: cmdline.Exact, Help: "my own jobs", Set: cmdline.Flag(func(c *choices) *bool { return &c.me })},
	{Long: "name", Short: 'n', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of these names",
		Set: cmdline.Words(func(c *choices) *[]string { return &c.names })},
	{Long: "noconvert", List: cmdline.Exact, Help: "sizes in megabytes", Set: cmdline.Flag(func(c *choices) *bool { return &c.noConvert })},
	{Long: "nodelist", Short: 'w', Names: "node nodes nodelist", Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs on these nodes",
		Set: cmdline.Word(func(c *choices) *string { return &c.nodes })},
	{Long: "notme", List: cmdline.Exact, Help: "jobs of others", Set: cmdline.Flag(func(c *choices) *bool { return &c.notMe })},
	{Long: "noheader", Short: 'h', List: cmdline.Exact, Help: "no headings", Set: cmdline.Flag(func(c *choices) *bool { return &c.noHeader })},
	{Long: "only-job-state", List: cmdline.Partial, Help: "ids and states, where no format says otherwise; as quick as without it, and " +
		"from the same view", Set: cmdline.Flag(func(c *choices) *bool { return &c.onlyState })},
	{Long: "partition", Short: 'p', Names: "partitions", Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs in these partitions",
		Set: cmdline.Words(func(c *choices) *[]string { return &c.partitions })},
	{Long: "priority", Short: 'P', List: cmdline.Exact, Help: "a waiting job has a line for each partition that it may run in",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.priority })},
	{Long: "qos", Short: 'q', Kind: cmdline.Required, List: cmdline.Partial, Help: "no job has a QOS: nothing is shown",
		Set: cmdline.Words(func(c *choices) *[]string { return &c.qos })},
	{Long: "reservation", Short: 'R', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs that use this reservation",
		Set: cmdline.Word(func(c *choices) *string { return &c.reservation })},
	{Long: "sibling", Names: "sib sibling", List: cmdline.Partial, Help: "there is no federation: the one cluster is shown, as Slurm does " +
		"without one", Set: cmdline.Flag(func(c *choices) *bool { return &c.sibling })},
	{Long: "sort", Short: 'S', Kind: cmdline.Required, List: cmdline.Exact, Help: "order by letters of -o, as in P,t,-p",
		Set: func(c *choices, v string) error { c.sort = &v; return nil }},
	{Long: "start", List: cmdline.Partial, Help: "waiting jobs with their expected start; SCHEDNODES is (null)",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.start })},
	{Long: "steps", Short: 's', Kind: cmdline.Optional, List: cmdline.Partial, Help: "steps of running jobs: of one that runs its script " +
		"in every rank, batch stands for all of them", Set: func(c *choices, v string) error {
		c.stepFlag, c.steps = true, cmdline.Split(v)
		return nil
	}},
	{Long: "states", Short: 't', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs in these states, all: in any",
		Set: cmdline.Words(func(c *choices) *[]string { return &c.states })},
	{Long: "user", Short: 'u', Names: "users", Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of these users, by name or number",
		Set: cmdline.Words(func(c *choices) *[]string { return &c.users })},
	{Long: "verbose", Short: 'v', List: cmdline.Partial, Help: "the choices are listed before the table; nothing is said of plugins",
		Set: func(c *choices, _ string) error { c.verbose++; return nil }},
	slurm.VersionRow[choices](),
	cmdline.UsageRow[choices](),
	slurm.YAMLRow(func(c *choices) *slurm.Document { return &c.document }),
}}

// Lists is what became of each of squeue's options.
func Lists() cmdline.Lists { return command.Lists() }

// leadingNumber is the number at the head of s, as atoi of the C library reads it.
func leadingNumber(s string) int {
	s = strings.TrimSpace(s)
	n := len(s) - len(strings.TrimLeft(s, "0123456789"))
	v, _ := strconv.Atoi(s[:n])
	return v
}

// environment is squeue's variables, each with the choice it stands for where no option was
// given.
func (c *choices) environment(get func(string) string) {
	jobs.Environment(map[string]*[]string{"SQUEUE_ACCOUNT": &c.accounts, "SQUEUE_NAMES": &c.names, "SQUEUE_PARTITION": &c.partitions,
		"SQUEUE_QOS": &c.qos, "SQUEUE_STATES": &c.states, "SQUEUE_USERS": &c.users})
	for name, at := range map[string]*bool{"SQUEUE_ALL": &c.all, "SQUEUE_ARRAY": &c.array, "SQUEUE_ARRAY_UNIQUE": &c.unique,
		"SQUEUE_FEDERATION": &c.federation, "SQUEUE_LOCAL": &c.local, "SQUEUE_PRIORITY": &c.priority, "SQUEUE_SIBLING": &c.sibling} {
		if get(name) != "" {
			*at = true
		}
	}
	if v := get("SQUEUE_LICENSES"); v != "" && c.licenses == "" {
		c.licenses = v
	}
	if v := get("SQUEUE_SORT"); v != "" && c.sort == nil {
		c.sort = &v
	}
	if c.format == nil && c.longFormat == nil {
		if v := get("SQUEUE_FORMAT"); v != "" {
			c.format = &v
		} else if v := get("SQUEUE_FORMAT2"); v != "" {
			c.longFormat = &v
		}
	}
}
