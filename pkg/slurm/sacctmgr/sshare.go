package sacctmgr

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/accttable"
	"gangd/pkg/slurm"
)

var sshareCommand = &cmdline.Command[shares]{Name: "sshare", Tell: shareHelp, Options: []cmdline.Option[shares]{
	{Long: "accounts", Short: 'A', Kind: cmdline.Required, List: cmdline.Exact, Help: "these accounts",
		Set: func(c *shares, v string) error { c.accounts = strings.Split(v, ","); return nil }},
	{Long: "all", Short: 'a', List: cmdline.Exact, Help: "everybody", Set: cmdline.Flag(func(c *shares) *bool { return &c.everybody })},
	{Long: "clusters", Short: 'M', Names: "clusters cluster", Kind: cmdline.Required, List: cmdline.Partial,
		Help: "gangd is the one cluster; another name is refused", Set: cmdline.OneCluster[shares]("sshare")},
	{Long: "format", Short: 'o', Kind: cmdline.Required, List: cmdline.Partial, Help: "these columns; shares and usage are empty: there is " +
		"no fair share", Set: cmdline.Word(func(c *shares) *string { return &c.format })},
	{Long: "help", List: cmdline.Partial, Help: "in gangd's words"},
	{Long: "helpformat", Short: 'e', List: cmdline.Exact, Help: "lists the columns", Set: func(c *shares, _ string) error {
		fmt.Fprint(c.Out, accttable.Names(sshareColumns))
		return cmdline.ErrDone
	}},
	{Long: "long", Short: 'l', List: cmdline.Partial, Help: "more columns, empty ones",
		Set: func(c *shares, _ string) error { c.format = sshareLong; return nil }},
	{Long: "noheader", Short: 'n', List: cmdline.Exact, Help: "no header", Set: cmdline.Flag(func(c *shares) *bool { return &c.noHeader })},
	{Short: 'h', As: "noheader"},
	{Long: "parsable", Short: 'p', List: cmdline.Exact, Help: "a | behind each column",
		Set: func(c *shares, _ string) error { c.style = accttable.Parsable; return nil }},
	{Long: "parsable2", Short: 'P', List: cmdline.Exact, Help: "a | between columns",
		Set: func(c *shares, _ string) error { c.style = accttable.Parsable2; return nil }},
	{Long: "partition", Short: 'm', List: cmdline.Exact, Help: "a column more, empty: there is nothing by partition",
		Set: cmdline.Flag(func(c *shares) *bool { return &c.partition })},
	{Long: "usage", As: "help", List: cmdline.Partial, Help: "in gangd's words"},
	{Long: "users", Short: 'u', Kind: cmdline.Required, List: cmdline.Exact, Help: "these users",
		Set: func(c *shares, v string) error { c.users = strings.Split(v, ","); return nil }},
	{Long: "Users", Short: 'U', List: cmdline.Exact, Help: "users without the tree of accounts above them",
		Set: cmdline.Flag(func(c *shares) *bool { return &c.onlyUsers })},
	{Long: "verbose", Short: 'v', List: cmdline.Exact, Help: "nothing more is known"},
	slurm.VersionRow[shares](),
	{Long: "json", Kind: cmdline.Optional, List: cmdline.Refused, Help: noDocument},
	{Long: "yaml", Kind: cmdline.Optional, List: cmdline.Refused, Help: noDocument},
}}

var sshareColumns = []accttable.Column{
	col("Account", -20, ""), col("Cluster", 10, ""), col("EffectvUsage", 13, ""), col("FairShare", 10, ""), col("GrpTRESMins", 30, ""),
	col("GrpTRESRaw", 30, ""), col("ID", 6, ""), col("LevelFS", 10, ""), col("NormShares", 11, ""), col("NormUsage", 11, ""),
	col("Partition", 12, ""),
	col("RawShares", 10, ""), col("RawUsage", 11, ""), col("TRESRunMins", 30, ""), col("User", 10, ""),
}

const (
	sshareDefault = "account,user,rawshares,normshares,rawusage,effectvusage,fairshare"
	sshareLong    = "account,user,rawshares,normshares,rawusage,normusage,effectvusage,fairshare,levelfs,grptresmins,tresrunmins"
)

// shares is one call of sshare.
type shares struct {
	call
	users, accounts []string
	everybody       bool
	onlyUsers       bool
	partition       bool
	format          string
}

// Sshare is sshare: users with the accounts that their jobs named, without shares.
func Sshare(args []string, s cmdline.Streams) int {
	c := &shares{call: call{Streams: s}, format: sshareDefault}
	if _, err := sshareCommand.Parse(c, args, s); err != nil {
		return cmdline.Exit(err)
	}
	if err := c.write(); err != nil {
		s.Errorf("sshare", "%v", err)
		return 1
	}
	return 0
}

func shareHelp(l cmdline.Lists, s cmdline.Streams) {
	fmt.Fprint(s.Out, "sshare [OPTION...]\n  users with the accounts that their jobs named; there is no fair share\n\n")
	l.Write(s.Out)
}

func (c *shares) write() error {
	if c.partition {
		c.format = strings.Replace(c.format, "account,user,", "account,user,partition,", 1)
	}
	chosen, err := accttable.Parse(c.format, sshareColumns)
	var unknown *accttable.UnknownError
	if errors.As(err, &unknown) {
		return fmt.Errorf("Invalid field requested: \"%s\"", unknown.Name) //nolint:staticcheck // Slurm's words
	}
	users := c.users
	if len(users) == 0 && !c.everybody {
		users = []string{myself()}
	}
	all, err := associations(users)
	if err != nil {
		return err
	}
	t := &accttable.Table{Columns: chosen, Style: c.style}
	if !c.noHeader {
		fmt.Fprint(c.Out, t.Header())
	}
	line := func(row map[string]string) {
		values := make([]string, len(chosen))
		for i := range chosen {
			values[i] = row[chosen[i].Name]
		}
		fmt.Fprint(c.Out, t.Row(values))
	}
	indent := ""
	if !c.onlyUsers {
		line(map[string]string{"Account": "root", "Cluster": cmdline.Cluster})
		indent = " "
	}
	q := &query{conditions: map[string][]string{"accounts": c.accounts}}
	for _, a := range all {
		if q.keeps("accounts", a.account) {
			line(map[string]string{"Account": indent + a.account, "User": a.user, "Cluster": cmdline.Cluster})
		}
	}
	return nil
}

var sprioCommand = &cmdline.Command[struct{}]{Name: "sprio", Tell: sprioHelp, Getenv: os.Getenv, Options: []cmdline.Option[struct{}]{
	slurm.VersionRow[struct{}](),
	{Long: "help", List: cmdline.Partial, Help: "in gangd's words"},
	{Long: "usage", As: "help", List: cmdline.Partial, Help: "in gangd's words"},
	{Long: "clusters", Env: []string{"SLURM_CLUSTERS"}, Short: 'M', Names: "clusters cluster", Kind: cmdline.Required, List: cmdline.Exact,
		Help: noFactors},
	{Long: "format", Env: []string{"SPRIO_FORMAT"}, Short: 'o', Kind: cmdline.Required, List: cmdline.Exact, Help: noFactors},
	{Long: "helpformat", List: cmdline.Exact, Help: noFactors},
	{Long: "jobs", Short: 'j', Kind: cmdline.Optional, List: cmdline.Exact, Help: noFactors},
	{Long: "long", Short: 'l', List: cmdline.Exact, Help: noFactors},
	{Long: "noheader", Short: 'h', List: cmdline.Exact, Help: noFactors},
	{Long: "norm", Short: 'n', List: cmdline.Exact, Help: noFactors},
	{Long: "partition", Short: 'p', Kind: cmdline.Required, List: cmdline.Exact, Help: noFactors},
	{Long: "sort", Short: 'S', Kind: cmdline.Required, List: cmdline.Exact, Help: noFactors},
	{Long: "user", Short: 'u', Names: "user users", Kind: cmdline.Optional, List: cmdline.Exact, Help: noFactors},
	{Long: "verbose", Short: 'v', List: cmdline.Exact, Help: noFactors},
	{Long: "weights", Short: 'w', List: cmdline.Exact, Help: noFactors},
	{Long: "federation", Env: []string{"SPRIO_FEDERATION"}, List: cmdline.Exact, Help: noFactors},
	{Long: "local", Env: []string{"SPRIO_LOCAL"}, List: cmdline.Exact, Help: noFactors},
	{Long: "sibling", Names: "sib sibling", Env: []string{"SPRIO_SIBLING"}, List: cmdline.Exact, Help: noFactors},
}}

const noFactors = "answered as by a Slurm with priority/basic: a priority has no factors; gqueue --why JOB says what a job waits for"

func sprioHelp(l cmdline.Lists, s cmdline.Streams) {
	fmt.Fprint(s.Out, "sprio [OPTION...]\n  "+noFactors+"\n\n")
	l.Write(s.Out)
}

// Sprio is sprio: a priority of gangd's is not made of factors.
func Sprio(args []string, s cmdline.Streams) int {
	if _, err := sprioCommand.Parse(&struct{}{}, args, s); err != nil {
		return cmdline.Exit(err)
	}
	fmt.Fprint(s.Err, "You are not running a supported priority plugin\n(priority/basic).\nOnly 'priority/multifactor' is supported.\n")
	return 1
}
