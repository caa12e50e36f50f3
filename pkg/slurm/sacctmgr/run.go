package sacctmgr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/accttable"
	"gangd/pkg/slurm"
)

var command = &cmdline.Command[call]{Name: "sacctmgr", More: keywords, Tell: tell, Options: []cmdline.Option[call]{
	{Long: "associations", Short: 's', List: cmdline.Exact, Help: "users with their accounts, as withassoc",
		Set: cmdline.Flag(func(c *call) *bool { return &c.assoc })},
	{Long: "help", Short: 'h', List: cmdline.Partial, Help: "in gangd's words"},
	{Long: "immediate", Short: 'i', List: cmdline.Exact, Help: "nothing is asked: nothing is changed"},
	{Long: "json", Kind: cmdline.Optional, List: cmdline.Refused, Help: noDocument},
	{Long: "noheader", Short: 'n', List: cmdline.Exact, Help: "no header", Set: cmdline.Flag(func(c *call) *bool { return &c.noHeader })},
	{Long: "oneliner", Short: 'o', List: cmdline.Exact, Help: "every record is a line anyway"},
	{Long: "parsable", Short: 'p', List: cmdline.Exact, Help: "a | behind each column",
		Set: func(c *call, _ string) error { c.style = accttable.Parsable; return nil }},
	{Long: "parsable2", Short: 'P', List: cmdline.Exact, Help: "a | between columns",
		Set: func(c *call, _ string) error { c.style = accttable.Parsable2; return nil }},
	{Long: "quiet", Short: 'Q', List: cmdline.Exact, Help: "no errors, only the exit status",
		Set: cmdline.Flag(func(c *call) *bool { return &c.quiet })},
	{Long: "readonly", Short: 'r', List: cmdline.Exact, Help: "nothing is changed anyway"},
	{Long: "verbose", Short: 'v', List: cmdline.Exact, Help: "nothing more is known"},
	slurm.VersionRow[call](),
	{Long: "usage", As: "help", List: cmdline.Partial, Help: "in gangd's words"},
	{Long: "yaml", Kind: cmdline.Optional, List: cmdline.Refused, Help: noDocument},
}}

const noDocument = "there is no register to be written as a document; --parsable2 has the columns"

// changes are the commands that would change a register, or read one from a file.
var changes = []string{"add", "archive", "clear", "create", "delete", "dump", "load", "modify", "reconfigure", "remove", "rollup",
	"shutdown",
	"update"}

// lists is how each option of sacctmgr is kept.
func lists() cmdline.Lists { return command.Lists() }

// keywords is how each command and entity is kept.
func keywords() []cmdline.Lists {
	cmds := cmdline.Lists{Name: "sacctmgr COMMAND", Options: []cmdline.Kept{
		{Name: "list", List: cmdline.Partial, Text: "see the entities"}, {Name: "show", List: cmdline.Partial, Text: "see the entities"},
		{Name: "help", List: cmdline.Partial, Text: "in gangd's words"}, {Name: "version", List: cmdline.Partial, Text: "names gangd too"}}}
	for _, name := range changes {
		cmds.Options = append(cmds.Options, cmdline.Kept{Name: name, List: cmdline.Refused, Text: noRegister})
	}
	shows := cmdline.Lists{Name: "sacctmgr show ENTITY"}
	for i := range tables {
		o := cmdline.Kept{Name: tables[i].name, List: cmdline.Partial, Text: tables[i].note}
		if o.Text == "" {
			o.List = cmdline.Exact
		}
		shows.Options = append(shows.Options, o)
	}
	for name, use := range elsewhere {
		shows.Options = append(shows.Options, cmdline.Kept{Name: name, List: cmdline.Refused, Text: "use " + use})
	}
	return []cmdline.Lists{cmds, shows}
}

// prompts are words that make sense at a prompt, which there is none of.
var prompts = []string{"exit", "oneliner", "quiet", "quit", "readonly", "verbose"}

const noRegister = "gangd keeps no register of users and accounts: every user may submit and name any account; partitions are " +
	"configured, gangd.toml(5)"

// query is one "show".
type query struct {
	conditions map[string][]string // by the key's whole name
	withAssoc  bool
	format     string
}

// of are the values of any of several conditions.
func (q *query) of(keys ...string) []string {
	var out []string
	for _, k := range keys {
		out = append(out, q.conditions[k]...)
	}
	return out
}

func (q *query) keeps(key, v string) bool {
	return len(q.conditions[key]) == 0 || slices.Contains(q.conditions[key], v)
}

// call is one call of the command.
type call struct {
	cmdline.Streams
	noHeader bool
	quiet    bool
	assoc    bool
	style    accttable.Style
}

// Run is sacctmgr.
func Run(args []string, s cmdline.Streams) int {
	c := &call{Streams: s}
	words, err := command.Parse(c, args, s)
	if err != nil {
		return cmdline.Exit(err)
	}
	return c.do(words)
}

func (c *call) say(format string, args ...any) int {
	if !c.quiet {
		fmt.Fprintf(c.Err, format+"\n", args...)
	}
	return 1
}

func (c *call) version() int {
	return slurm.PrintVersion("sacctmgr", c.Streams)
}

func tell(l cmdline.Lists, s cmdline.Streams) {
	fmt.Fprint(s.Out, "sacctmgr [OPTION...] show ENTITY [CONDITION...] [format=COLUMN,...]\n  what gangd has of Slurm's accounting, by the "+
		"name of Slurm's sacctmgr\n\n")
	cmdline.WriteWords(s.Out, 16, "", append([]cmdline.Lists{l}, keywords()...)...)
	fmt.Fprint(s.Out, "sacctmgr --help=slurm lists what is kept exactly, partly, and refused\n")
}

func (c *call) do(words []string) int {
	if len(words) == 0 {
		return c.fail("there is no prompt: give a command, as in sacctmgr show user; sacctmgr help lists them")
	}
	switch w := words[0]; {
	case cmdline.Short(w, "show", 3), cmdline.Short(w, "list", 3):
		return c.show(words[1:])
	case cmdline.Short(w, "help", 2):
		tell(lists(), c.Streams)
		return 0
	case cmdline.Short(w, "version", 4):
		return c.version()
	case cmdline.Short(w, "associations", 3):
		return c.show(words)
	case cmdline.Short(w, "ping", 1):
		return c.fail("ping is refused: there is no daemon of accounts; scontrol ping asks the controller")
	case slices.ContainsFunc(prompts, func(p string) bool { return cmdline.Short(w, p, 4) }):
		return 0 // a word of a prompt, which is at its end
	default:
		for _, name := range changes {
			if cmdline.Short(w, name, 3) {
				return c.fail("%s is refused: %s", name, noRegister)
			}
		}
		return c.say("invalid keyword: %s", w)
	}
}

func (c *call) fail(format string, args ...any) int {
	if !c.quiet {
		c.Errorf("sacctmgr", format, args...)
	}
	return 1
}

const entityHelp = `No valid entity in list command
Input line must include "Account", "Association", "Cluster", "Configuration",
"Event", "Federation", "Problem", "QOS", "Resource", "Reservation",
"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey"`

func (c *call) show(words []string) int {
	if len(words) == 0 {
		return c.say("%s", entityHelp)
	}
	if name := alias[strings.ToLower(words[0])]; name != "" {
		words[0] = name
	}
	for i := range tables {
		if name := tables[i].name; cmdline.Short(words[0], name, 3) || cmdline.Short(words[0], name+"s", 3) {
			return c.showTable(&tables[i], words[1:])
		}
	}
	for name, use := range elsewhere {
		if cmdline.Short(words[0], name, 3) {
			return c.fail("show %s is refused: gangd keeps none of its own here; use %s", name, use)
		}
	}
	return c.say("%s", entityHelp)
}

func (c *call) showTable(t *table, words []string) int {
	q := &query{conditions: map[string][]string{}, withAssoc: c.assoc}
	for _, w := range words {
		if !q.take(t, w) {
			return c.say(" Unknown condition: %s\n Use keyword 'set' to modify value", w)
		}
	}
	format := t.format
	if q.withAssoc && t.withAssc != "" {
		format = t.withAssc
	}
	if q.format != "" {
		format = q.format
	}
	chosen, err := accttable.Parse(format, slices.Concat(t.columns, limits, fields))
	var unknown *accttable.UnknownError
	if errors.As(err, &unknown) {
		return c.say("Unknown field '%s'", unknown.Name)
	}
	rows, err := t.rows(q)
	if err != nil {
		return c.unreachable(err)
	}
	rows = slices.DeleteFunc(rows, func(row map[string]string) bool { return !q.has(row) })
	out := &accttable.Table{Columns: chosen, Style: c.style}
	if !c.noHeader {
		fmt.Fprint(c.Out, out.Header())
	}
	for _, r := range rows {
		values := make([]string, len(chosen))
		for i := range chosen {
			values[i] = r[chosen[i].Name]
		}
		fmt.Fprint(c.Out, out.Row(values))
	}
	return 0
}

func (c *call) unreachable(err error) int {
	return c.fail("%s", slurm.Words(err))
}

// alias is other words for entities.
var alias = map[string]string{"acct": "account", "lostjobs": "runawayjobs", "orphanjobs": "runawayjobs", "resv": "reservation",
	"txn": "transaction"}

// columnOf is the column that a condition is about which the rows do not know of themselves; what has none selects nothing.
var columnOf = map[string]string{"adminlevel": "Admin", "associations": "ID", "classification": "Class", "defaultaccount": "Def Acct",
	"defaultwckey": "Def WCKey", "descriptions": "Descr", "federations": "Federation", "flags": "Flags", "ids": "ID", "organizations": "Org",
	"pluginidselect": "PluginIDSelect", "rpcversions": "RPC", "types": "Type", "wckeys": "WCKeys"}

// has reports whether a row is in this cluster and has what conditions ask of its columns.
func (q *query) has(row map[string]string) bool {
	for key, column := range columnOf {
		asked := q.conditions[key]
		if len(asked) > 0 && !slices.ContainsFunc(asked, func(v string) bool { return strings.EqualFold(v, row[column]) }) {
			return false
		}
	}
	return q.keeps("clusters", cmdline.Cluster)
}

// take reads one word behind the entity; a bare one is a name.
func (q *query) take(t *table, word string) bool {
	key, v, given := strings.Cut(word, "=")
	switch {
	case !given && cmdline.Short(word, "where", 5):
	case !given && cmdline.Short(word, "withassoc", 5):
		q.withAssoc = true
	case !given && (cmdline.Short(word, "withcoordinator", 5) || cmdline.Short(word, "withdeleted", 5) || cmdline.Short(word, "wopinfo", 4) ||
		cmdline.Short(word, "wolimits", 3) || cmdline.Short(word, "woplimits", 4) || cmdline.Short(word, "tree", 4) ||
		cmdline.Short(word, "withfed", 5) || cmdline.Short(word, "withclusters", 5) || cmdline.Short(word, "withrawqoslevel", 5) ||
		cmdline.Short(word, "withsubaccounts", 5) || cmdline.Short(word, "onlydefaults", 2)):
		// Nothing of gangd's is deleted but kept, coordinated, or limited.
	case !given:
		q.conditions[t.keys[0]] = append(q.conditions[t.keys[0]], strings.Split(word, ",")...)
	case cmdline.Short(key, "format", 1):
		q.format = v
	default:
		for _, k := range t.keys {
			if cmdline.Short(key, k, 1) {
				if k == "acct" {
					k = "accounts"
				}
				q.conditions[k] = append(q.conditions[k], strings.Split(strings.Trim(v, `'"`), ",")...)
				return true
			}
		}
		return false
	}
	return true
}
