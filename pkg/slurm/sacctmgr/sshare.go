package sacctmgr

import (
	"errors"
	"fmt"
	"strings"

	"gangd/pkg/cmdline/getopt"
	"gangd/pkg/cmdline/lists"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/cmdline"
	"gangd/pkg/table/accttable"
)

var sshareOptions = cmdline.Rows{
	cmdline.On('A', "accounts", getopt.Required, lists.Exact, "these accounts"),
	cmdline.On('a', "all", getopt.None, lists.Exact, "everybody"),
	cmdline.On('M', "clusters", getopt.Required, lists.Partial, "gangd is the one cluster; another name is refused"),
	cmdline.Also(cmdline.On(0, "clusters", getopt.Required, lists.Own, ""), "cluster"),
	cmdline.On('o', "format", getopt.Required, lists.Partial, "these columns; shares and usage are empty: there is no fair share"),
	cmdline.On(0, "help", getopt.None, lists.Partial, "in gangd's words"),
	cmdline.On('e', "helpformat", getopt.None, lists.Exact, "lists the columns"),
	cmdline.On('l', "long", getopt.None, lists.Partial, "more columns, empty ones"),
	cmdline.On('n', "noheader", getopt.None, lists.Exact, "no header"),
	{Option: getopt.Option{Short: 'h', Name: "noheader"}, List: lists.Own},
	cmdline.On('p', "parsable", getopt.None, lists.Exact, "a | behind each column"),
	cmdline.On('P', "parsable2", getopt.None, lists.Exact, "a | between columns"),
	cmdline.On('m', "partition", getopt.None, lists.Exact, "a column more, empty: there is nothing by partition"),
	cmdline.On(0, "usage", getopt.None, lists.Partial, "in gangd's words"),
	cmdline.On('u', "users", getopt.Required, lists.Exact, "these users"),
	cmdline.On('U', "Users", getopt.None, lists.Exact, "users without the tree of accounts above them"),
	cmdline.On('v', "verbose", getopt.None, lists.Exact, "nothing more is known"),
	cmdline.On('V', "version", getopt.None, lists.Partial, "names gangd too"),
}

// SshareLists is how each option of sshare is kept.
func SshareLists() lists.Command { return sshareOptions.Lists("sshare") }

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
	if lists.Asked(args) {
		SshareLists().Write(s.Out)
		return 0
	}
	c := &shares{call: call{Streams: s}, format: sshareDefault}
	if _, status, done := sshareOptions.Read("sshare", args, s, c.set); done {
		return status
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
			for _, line := range cmdline.NoCluster(o.Value) {
				c.Errorf("sshare", "%s", line)
			}
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
	case "partition":
		c.partition = true
	case "users":
		c.users = strings.Split(o.Value, ",")
	case "Users":
		c.onlyUsers = true
	case "version":
		return c.version(), true
	default:
		c.setStyle(o.Name)
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

var sprioOptions = cmdline.Rows{
	cmdline.On('V', "version", getopt.None, lists.Partial, "names gangd too"),
	cmdline.On(0, "help", getopt.None, lists.Partial, "in gangd's words"),
	cmdline.On(0, "usage", getopt.None, lists.Partial, "in gangd's words"),
	cmdline.On('M', "cluster", getopt.Required, lists.Exact, noFactors),
	cmdline.On('o', "format", getopt.Required, lists.Exact, noFactors),
	cmdline.On('j', "jobs", getopt.Optional, lists.Exact, noFactors),
	cmdline.On('l', "long", getopt.None, lists.Exact, noFactors),
	cmdline.On('h', "noheader", getopt.None, lists.Exact, noFactors),
	cmdline.On('n', "norm", getopt.None, lists.Exact, noFactors),
	cmdline.On('p', "partition", getopt.Required, lists.Exact, noFactors),
	cmdline.On('S', "sort", getopt.Required, lists.Exact, noFactors),
	cmdline.On('u', "user", getopt.Optional, lists.Exact, noFactors),
	cmdline.On('v', "verbose", getopt.None, lists.Exact, noFactors),
	cmdline.On('w', "weights", getopt.None, lists.Exact, noFactors),
	cmdline.On(0, "federation", getopt.None, lists.Exact, noFactors),
	cmdline.On(0, "local", getopt.None, lists.Exact, noFactors),
	cmdline.On(0, "sibling", getopt.None, lists.Exact, noFactors),
}

const noFactors = "answered as by a Slurm with priority/basic: a priority has no factors; gqueue --why JOB says what a job waits for"

// SprioLists is how each option of sprio is kept.
func SprioLists() lists.Command { return sprioOptions.Lists("sprio") }

// Sprio is sprio: a priority of gangd's is not made of factors.
func Sprio(args []string, s slurm.Streams) int {
	if lists.Asked(args) {
		SprioLists().Write(s.Out)
		return 0
	}
	_, status, done := sprioOptions.Read("sprio", args, s, func(o getopt.Setting) (status int, done bool) {
		switch o.Name {
		case "version":
			fmt.Fprintln(s.Out, slurm.Version())
			return 0, true
		case "help", "usage":
			fmt.Fprint(s.Out, "sprio [OPTION...]\n  "+noFactors+"\n\n")
			SprioLists().Write(s.Out)
			return 0, true
		}
		return 0, false
	})
	if done {
		return status
	}
	fmt.Fprint(s.Err, "You are not running a supported priority plugin\n(priority/basic).\nOnly 'priority/multifactor' is supported.\n")
	return 1
}
