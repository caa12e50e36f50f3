package scancel

import (
	"os"
	"strings"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/slurm"
)

// choices is what the command line and the environment say.
type choices struct {
	account, name, partition, user, state, nodes, qos, reservation, wckey, signal string

	batch, full, interactive, quiet, ctld, me bool
	verbose                                   int
}

const usage = `Usage: scancel [-A account] [--batch] [--full] [--interactive] [-n job_name]
               [-p partition] [-Q] [-q qos] [-R reservation] [-s signal | integer]
               [-t PENDING | RUNNING | SUSPENDED] [--usage] [-u user_name]
               [--hurry] [-V] [-v] [-w hosts...] [--wckey=wckey]
               [job_id[_array_id][.step_id]]
`

// command is scancel with all its options, in Slurm's order.
var command = &cmdline.Command[choices]{Name: "scancel", Getenv: os.Getenv, Usage: usage, Options: []cmdline.Option[choices]{
	{Long: "account", Short: 'A', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of this account",
		Set: cmdline.Word(func(c *choices) *string { return &c.account })},
	{Long: "batch", Short: 'b', List: cmdline.Exact, Help: "the signal goes to the script's shell alone",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.batch })},
	{Long: "ctld", List: cmdline.Exact, Help: "the controller does it: always so",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.ctld })},
	{Long: "full", Short: 'f', List: cmdline.Exact, Help: "the signal goes to the script's shell and all below it",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.full })},
	{Long: "cron", Env: []string{"SCANCEL_CRON"}, Short: 'c', List: cmdline.Partial,
		Help: "a job of a cron table, whose line is switched off: also without it",
		Set:  cmdline.Accepted[choices]},
	cmdline.HelpRow[choices](0),
	{Long: "hurry", Env: []string{"SCANCEL_HURRY"}, Short: 'H', List: cmdline.Partial,
		Help: "there is no burst buffer to stage out: as without it",
		Set:  func(*choices, string) error { return nil }},
	{Long: "interactive", Short: 'i', List: cmdline.Exact, Help: "ask before each job",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.interactive })},
	cmdline.ClustersRow[choices]("scancel", nil),
	{Long: "me", List: cmdline.Exact, Help: "my own jobs", Set: cmdline.Flag(func(c *choices) *bool { return &c.me })},
	{Long: "name", Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of this name",
		Set: cmdline.Word(func(c *choices) *string { return &c.name })},
	{Long: "jobname", Short: 'n', Kind: cmdline.Required, List: cmdline.Exact, Help: "as --name",
		Set: cmdline.Word(func(c *choices) *string { return &c.name })},
	{Long: "nodelist", Short: 'w', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs on these nodes",
		Set: cmdline.Word(func(c *choices) *string { return &c.nodes })},
	{Long: "partition", Short: 'p', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs in this partition",
		Set: cmdline.Word(func(c *choices) *string { return &c.partition })},
	{Long: "qos", Short: 'q', Kind: cmdline.Required, List: cmdline.Partial, Help: "no job has a QOS: no job matches",
		Set: cmdline.Word(func(c *choices) *string { return &c.qos })},
	{Long: "quiet", Short: 'Q', List: cmdline.Exact, Help: "no errors about jobs",
		Set: cmdline.Flag(func(c *choices) *bool { return &c.quiet })},
	{Long: "reservation", Short: 'R', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs that use this reservation",
		Set: cmdline.Word(func(c *choices) *string { return &c.reservation })},
	{Long: "sibling", Kind: cmdline.Required, List: cmdline.Refused, Help: "there is no federation"},
	{Long: "signal", Short: 's', Kind: cmdline.Required, List: cmdline.Partial, Help: "send a signal and leave the job as it is; KILL " +
		"cancels, and TERM goes first", Set: func(c *choices, v string) error {
		name, ok := cmdline.SignalName(v)
		if !ok {
			return cmdline.Bare("Unknown job signal: " + v)
		}
		c.signal = name
		return nil
	}},
	{Long: "state", Short: 't', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs in this state: PENDING, RUNNING or SUSPENDED",
		Set: func(c *choices, v string) error {
			if _, ok := stateOf(v); !ok {
				return cmdline.Bare("Invalid job state specified: " + v + "\nValid job states are PENDING, RUNNING, and SUSPENDED")
			}
			c.state = strings.ToUpper(v)
			return nil
		}},
	cmdline.UsageRow[choices](),
	{Long: "user", Short: 'u', Kind: cmdline.Required, List: cmdline.Exact, Help: "jobs of this user, by name or number",
		Set: cmdline.Word(func(c *choices) *string { return &c.user })},
	{Long: "verbose", Short: 'v', List: cmdline.Partial, Help: "say what is done to each job; nothing is said of plugins",
		Set: func(c *choices, _ string) error { c.verbose++; return nil }},
	slurm.VersionRow[choices](),
	{Long: "wckey", Kind: cmdline.Required, List: cmdline.Partial, Help: "no job has a workload key: no job matches",
		Set: cmdline.Word(func(c *choices) *string { return &c.wckey })},
}}

// Lists is what became of each of scancel's options.
func Lists() cmdline.Lists { return command.Lists() }

// environment is scancel's variables.
func (c *choices) environment(get func(string) string) {
	for name, at := range map[string]*string{"SCANCEL_ACCOUNT": &c.account, "SCANCEL_NAME": &c.name, "SCANCEL_PARTITION": &c.partition,
		"SCANCEL_QOS": &c.qos, "SCANCEL_STATE": &c.state, "SCANCEL_USER": &c.user, "SCANCEL_WCKEY": &c.wckey} {
		if v := get(name); v != "" && *at == "" {
			*at = v
		}
	}
	for name, at := range map[string]*bool{"SCANCEL_BATCH": &c.batch, "SCANCEL_FULL": &c.full, "SCANCEL_INTERACTIVE": &c.interactive,
		"SCANCEL_CTLD": &c.ctld} {
		if truthy(get(name)) {
			*at = true
		}
	}
	if truthy(get("SCANCEL_VERBOSE")) {
		c.verbose++
	}
}

// truthy reads the values of scancel's variables: T, TRUE, Y, YES.
func truthy(v string) bool {
	switch strings.ToUpper(v) {
	case "T", "TRUE", "Y", "YES":
		return true
	}
	return false
}
