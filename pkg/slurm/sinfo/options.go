package sinfo

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/slurm"
)

// choices is what the command line and the environment say.
type choices struct {
	partitions                                 []string
	nodes, states                              string
	format, longFormat, sort                   *string // nil: not given
	dead, responding, exact, node              bool
	reasons, long, noHeader, summarize, reserv bool
	cluster                                    bool
	all, federation, local, noConvert          bool
	iterate, verbose                           int
	document                                   slurm.Document
}

const usage = `Usage: sinfo [-abdelNRrsTv] [-i seconds] [-t states] [-p partition] [-n nodes]
             [-S fields] [-o format] [-O Format] [--federation] [--local]
`

// command is sinfo with all its options, in Slurm's order.
var command = &cmdline.Command[choices]{Name: "sinfo", Getenv: os.Getenv, Usage: usage, Options: []cmdline.Option[choices]{
	{Long: "all", Short: 'a', List: cmdline.Partial, Help: "no partition is hidden: always so",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.all })},
	{Long: "dead", Short: 'd', List: cmdline.Exact, Help: "only nodes that do not respond",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.dead })},
	{Long: "exact", Short: 'e', List: cmdline.Exact, Help: "nodes of one line have the same sizes",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.exact })},
	{Long: "federation", List: cmdline.Partial, Help: "there is no federation: the one cluster is shown, as Slurm does without one",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.federation })},
	{Long: "future", Env: []string{"SCONTROL_FUTURE"}, Short: 'F', List: cmdline.Exact, Help: "there are no FUTURE nodes",
		Set: cmdline.Accepted[choices]},
	{Long: "iterate", Short: 'i', Kind: cmdline.Required, List: cmdline.Exact, Help: "show it again every so many seconds",
		Set: func(c *choices, v string) error {
			n, err := strconv.Atoi(v)
			if c.iterate = n; err != nil || n <= 0 {
				return fmt.Errorf("Error: invalid entry for --iterate=%s", v)
			}
			return nil
		}},
	slurm.JSONRow(func(c *choices) *slurm.Document { return &c.document }),
	{Long: "local", List: cmdline.Exact, Help: "this cluster", Set: cmdline.Flag(func(c *choices) *bool { return &c.local })},
	{Long: "long", Short: 'l', List: cmdline.Exact, Help: "more columns", Set: cmdline.Flag(func(c *choices) *bool { return &c.long })},
	cmdline.ClustersRow("sinfo", func(c *choices) *bool { return &c.cluster }),
	{Long: "nodes", Short: 'n', Kind: cmdline.Required, List: cmdline.Exact, Help: "these nodes",
		Set: func(c *choices, v string) error { c.nodes = v; return nil }},
	{Long: "noconvert", List: cmdline.Exact, Help: "sizes are in megabytes always",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.noConvert })},
	{Long: "noheader", Short: 'h', List: cmdline.Exact, Help: "no headings", Set: cmdline.Flag(func(c *choices) *bool { return &c.noHeader })},
	{Long: "Node", Short: 'N', List: cmdline.Exact, Help: "a line for each node",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.node })},
	{Long: "Format", Short: 'O', Kind: cmdline.Required, List: cmdline.Partial, Help: "columns by name; what gangd has nothing of is shown " +
		"as Slurm shows it where it is not configured", Set: func(c *choices, v string) error {
		if c.format != nil {
			return fmt.Errorf("-O (--Format) is incompatible with -o (--format)")
		}
		if v == "all" { // which is by letters, as Slurm's
			v = everyLetter
			c.format = &v
			return nil
		}
		c.longFormat = &v
		return nil
	}},
	{Long: "format", Short: 'o', Kind: cmdline.Required, List: cmdline.Partial, Help: "columns by letter; what gangd has nothing of is " +
		"shown as Slurm shows it where it is not configured", Set: func(c *choices, v string) error {
		if c.longFormat != nil {
			return fmt.Errorf("-o (--format) is incompatible with -O (--Format)")
		}
		c.format = &v
		return nil
	}},
	{Long: "partition", Short: 'p', Kind: cmdline.Required, List: cmdline.Exact, Help: "these partitions",
		Set: func(c *choices, v string) error { c.partitions = cmdline.Split(v); return nil }},
	{Long: "responding", Short: 'r', List: cmdline.Exact, Help: "only nodes that respond",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.responding })},
	{Long: "list-reasons", Short: 'R', List: cmdline.Exact, Help: "why nodes are out of service, since when and by whom",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.reasons })},
	{Long: "summarize", Short: 's', List: cmdline.Exact, Help: "a line for each partition",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.summarize })},
	{Long: "sort", Short: 'S', Kind: cmdline.Required, List: cmdline.Exact, Help: "order by letters of -o",
		Set: func(c *choices, v string) error { c.sort = &v; return nil }},
	{Long: "states", Short: 't', Kind: cmdline.Required, List: cmdline.Exact, Help: "nodes in these states",
		Set: func(c *choices, v string) error {
			_, err := parseStates(v)
			c.states = v
			return err
		}},
	{Long: "reservation", Short: 'T', List: cmdline.Exact, Help: "the reservations",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.reserv })},
	{Long: "verbose", Short: 'v', List: cmdline.Partial, Help: "the format and the filters are said before the table",
		Set: func(c *choices, _ string) error { c.verbose++; return nil }},
	slurm.YAMLRow(func(c *choices) *slurm.Document { return &c.document }),
	slurm.VersionRow[choices](),
	cmdline.UsageRow[choices](),
	cmdline.HelpRow[choices](0),
	{Long: "helpformat", Names: "helpformat helpFormat", List: cmdline.Exact, Help: "lists the names for --Format",
		Set: func(*choices, string) error { return cmdline.Said(fields.Told()) }},
	{Long: "helpstate", List: cmdline.Exact, Help: "lists the states",
		Set: func(*choices, string) error { return cmdline.Said(strings.Join(knownStates, "\n")) }},
	{Long: "hide", List: cmdline.Partial, Help: "no partition is hidden: nothing is left out",
		Set: func(c *choices, _ string) error { c.all = false; return nil }},
}}

// everyLetter is the format of all fields that have a letter.
const everyLetter = "%all"

// Lists is what became of each of sinfo's options.
func Lists() cmdline.Lists { return command.Lists() }

// environment is sinfo's variables.
func (c *choices) environment(get func(string) string) {
	if v := get("SINFO_PARTITION"); v != "" && c.partitions == nil {
		c.partitions = cmdline.Split(v)
	}
	if c.format == nil && c.longFormat == nil {
		if v := get("SINFO_FORMAT"); v != "" {
			c.format = &v
		}
	}
	if v := get("SINFO_SORT"); v != "" && c.sort == nil {
		c.sort = &v
	}
	for name, at := range map[string]*bool{"SINFO_ALL": &c.all, "SINFO_FEDERATION": &c.federation, "SINFO_LOCAL": &c.local} {
		if get(name) != "" {
			*at = true
		}
	}
}

// The usual formats; # stands for the width of the longest partition's or node's name.
func (c *choices) usual(partition, node int) string {
	p, n := strconv.Itoa(max(partition, 9)), strconv.Itoa(max(node, 9))
	switch {
	case c.summarize:
		return "%" + p + "P %.5a %.10l %.16F %N"
	case c.reasons && c.long:
		return "%20E %12U %19H %6t %N"
	case c.reasons:
		return "%20E %9u %19H %N"
	case c.node && c.long:
		return "%" + n + "N %.6D %." + p + "P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
	case c.node:
		return "%" + n + "N %.6D %." + p + "P %6t"
	case c.long:
		return "%" + p + "P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
	}
	return "%" + p + "P %.5a %.10l %.6D %.6t %N"
}

// order is -S or the usual one.
func (c *choices) order() string {
	switch {
	case c.sort != nil:
		return strings.ReplaceAll(*c.sort, "#", "")
	case c.reasons:
		return "-T"
	case c.node:
		return "N"
	}
	return "-t" // within the partitions in their own order
}
