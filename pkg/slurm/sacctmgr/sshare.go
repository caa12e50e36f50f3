package sacctmgr

import (
	"errors"
	"fmt"
	"strings"

	"gangd/pkg/slurm"
	"gangd/pkg/slurm/accttable"
	"gangd/pkg/slurm/getopt"
	"gangd/pkg/slurm/lists"
)

var sshareOptions = []option{
	on('A', "accounts", getopt.Required, lists.Exact, "these accounts"),
	on('a', "all", getopt.None, lists.Exact, "everybody"),
	on('M', "clusters", getopt.Required, lists.Partial, "gangd is the one cluster; another name is refused"),
	{getopt.Option{Long: "cluster", Arg: getopt.Required, Name: "clusters"}, lists.Own, ""},
	on('o', "format", getopt.Required, lists.Partial, "these columns; shares and usage are empty: there is no fair share"),
	on(0, "help", getopt.None, lists.Partial, "in gangd's words"),
	on('e', "helpformat", getopt.None, lists.Exact, "lists the columns"),
	on('l', "long", getopt.None, lists.Partial, "more columns, empty ones"),
	on('n', "noheader", getopt.None, lists.Exact, "no header"),
	{getopt.Option{Short: 'h', Name: "noheader"}, lists.Own, ""},
	on('p', "parsable", getopt.None, lists.Exact, "a | behind each column"),
	on('P', "parsable2", getopt.None, lists.Exact, "a | between columns"),
	on('m', "partition", getopt.None, lists.Exact, "a column more, empty: there is nothing by partition"),
	on(0, "usage", getopt.None, lists.Partial, "in gangd's words"),
	on('u', "users", getopt.Required, lists.Exact, "these users"),
	on('U', "Users", getopt.None, lists.Exact, "users without the tree of accounts above them"),
	on('v', "verbose", getopt.None, lists.Exact, "nothing more is known"),
	on('V', "version", getopt.None, lists.Partial, "names gangd too"),
}

// SshareLists is how each option of sshare is kept.
func SshareLists() lists.Command { return listOf("sshare", sshareOptions) }

var sshareColumns = []accttable.Column{
	col("Account", -20, ""), col("Cluster", 10, ""), col("EffectvUsage", 13, ""), col("FairShare", 10, ""), col("GrpTRESMins", 30, ""),
	col("GrpTRESRaw", 30, ""), col("ID", 6, ""), col("LevelFS", 10, ""), col("NormShares", 11, ""), col("NormUsage", 11, ""), col("Partition", 12, ""),
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
func Sshare(args []string, s slurm.Streams) int {
	if len(args) == 1 && args[0] == "--help=slurm" {
		SshareLists().Write(s.Out)
		return 0
	}
	c := &shares{call: call{Streams: s}, format: sshareDefault}
	g := &getopt.Grammar{}
	for i := range sshareOptions {
		g.Options = append(g.Options, sshareOptions[i].Option)
	}
	settings, _, err := g.Parse(args)
	for _, o := range settings {
		if status, done := c.set(o); done {
			return status
		}
	}
	if err != nil {
		fmt.Fprintf(s.Err, "sshare: %v\nTry \"sshare --help\" for more information\n", err)
		return 1
	}
	if err := c.write(); err != nil {
		s.Errorf("sshare", "%v", err)
		return 1
	}
	return 0
}

func (c *shares) set(o getopt.Setting) (status int, done bool) {
	switch o.Name {
	case "accounts":
		c.accounts = strings.Split(o.Value, ",")
	case "all":
		c.everybody = true
	case "clusters":
		if o.Value != slurm.Cluster {
			c.Errorf("sshare", "No cluster '%s' known by database.", o.Value)
			c.Errorf("sshare", "'%s' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.", o.Value)
			return 1, true
		}
	case "format":
		c.format = o.Value
	case "help", "usage":
		fmt.Fprint(c.Out, "sshare [OPTION...]\n  users with the accounts that their jobs named; there is no fair share\n\n")
		SshareLists().Write(c.Out)
		return 0, true
	case "helpformat":
		fmt.Fprint(c.Out, accttable.Names(sshareColumns))
		return 0, true
	case "long":
		c.format = sshareLong
	case "noheader":
		c.noHeader = true
	case "parsable":
		c.style = accttable.Parsable
	case "parsable2":
		c.style = accttable.Parsable2
	case "partition":
		c.partition = true
	case "users":
		c.users = strings.Split(o.Value, ",")
	case "Users":
		c.onlyUsers = true
	case "version":
		return c.version(), true
	}
	return 0, false
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
		line(map[string]string{"Account": "root", "Cluster": slurm.Cluster})
		indent = " "
	}
	q := &query{conditions: map[string][]string{"accounts": c.accounts}}
	for _, a := range all {
		if q.keeps("accounts", a.account) {
			line(map[string]string{"Account": indent + a.account, "User": a.user, "Cluster": slurm.Cluster})
		}
	}
	return nil
}

var sprioOptions = []option{
	on('V', "version", getopt.None, lists.Partial, "names gangd too"),
	on(0, "help", getopt.None, lists.Partial, "in gangd's words"),
	on(0, "usage", getopt.None, lists.Partial, "in gangd's words"),
	on('M', "cluster", getopt.Required, lists.Exact, noFactors),
	on('o', "format", getopt.Required, lists.Exact, noFactors),
	on('j', "jobs", getopt.Optional, lists.Exact, noFactors),
	on('l', "long", getopt.None, lists.Exact, noFactors),
	on('h', "noheader", getopt.None, lists.Exact, noFactors),
	on('n', "norm", getopt.None, lists.Exact, noFactors),
	on('p', "partition", getopt.Required, lists.Exact, noFactors),
	on('S', "sort", getopt.Required, lists.Exact, noFactors),
	on('u', "user", getopt.Optional, lists.Exact, noFactors),
	on('v', "verbose", getopt.None, lists.Exact, noFactors),
	on('w', "weights", getopt.None, lists.Exact, noFactors),
	on(0, "federation", getopt.None, lists.Exact, noFactors),
	on(0, "local", getopt.None, lists.Exact, noFactors),
	on(0, "sibling", getopt.None, lists.Exact, noFactors),
}

const noFactors = "answered as by a Slurm with priority/basic: a priority has no factors; gqueue --why JOB says what a job waits for"

// SprioLists is how each option of sprio is kept.
func SprioLists() lists.Command { return listOf("sprio", sprioOptions) }

// Sprio is sprio: a priority of gangd's is not made of factors.
func Sprio(args []string, s slurm.Streams) int {
	g := &getopt.Grammar{}
	for i := range sprioOptions {
		g.Options = append(g.Options, sprioOptions[i].Option)
	}
	if len(args) == 1 && args[0] == "--help=slurm" {
		SprioLists().Write(s.Out)
		return 0
	}
	settings, _, err := g.Parse(args)
	for _, o := range settings {
		switch o.Name {
		case "version":
			fmt.Fprintln(s.Out, slurm.Version())
			return 0
		case "help", "usage":
			fmt.Fprint(s.Out, "sprio [OPTION...]\n  "+noFactors+"\n\n")
			SprioLists().Write(s.Out)
			return 0
		}
	}
	if err != nil {
		fmt.Fprintf(s.Err, "sprio: %v\nTry \"sprio --help\" for more information\n", err)
		return 1
	}
	fmt.Fprint(s.Err, "You are not running a supported priority plugin\n(priority/basic).\nOnly 'priority/multifactor' is supported.\n")
	return 1
}
