package sacctmgr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/cmdline/getopt"
	"gangd/pkg/cmdline/lists"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/cmdline"
	"gangd/pkg/table/accttable"
)

var options = cmdline.Rows{
	cmdline.On('s', "associations", getopt.None, lists.Exact, "users with their accounts, as withassoc"),
	cmdline.On('h', "help", getopt.None, lists.Partial, "in gangd's words"),
	cmdline.On('i', "immediate", getopt.None, lists.Exact, "nothing is asked: nothing is changed"),
	cmdline.On('n', "noheader", getopt.None, lists.Exact, "no header"),
	cmdline.On('o', "oneliner", getopt.None, lists.Exact, "every record is a line anyway"),
	cmdline.On('p', "parsable", getopt.None, lists.Exact, "a | behind each column"),
	cmdline.On('P', "parsable2", getopt.None, lists.Exact, "a | between columns"),
	cmdline.On('Q', "quiet", getopt.None, lists.Exact, "no errors, only the exit status"),
	cmdline.On('r', "readonly", getopt.None, lists.Exact, "nothing is changed anyway"),
	cmdline.On('v', "verbose", getopt.None, lists.Exact, "nothing more is known"),
	cmdline.On('V', "version", getopt.None, lists.Partial, "names gangd too"),
}

// changes are the commands that would change a register, or read one from a file.
var changes = []string{"add", "archive", "clear", "create", "delete", "dump", "load", "modify", "reconfigure", "remove", "shutdown"}

// Lists is how each option of sacctmgr is kept.
func Lists() lists.Command { return options.Lists("sacctmgr") }

// Keywords is how each command and entity is kept.
func Keywords() []lists.Command {
	cmds := lists.Command{Name: "sacctmgr COMMAND", Options: []lists.Option{
		{Name: "list", List: lists.Partial, Text: "see the entities"}, {Name: "show", List: lists.Partial, Text: "see the entities"},
		{Name: "help", List: lists.Partial, Text: "in gangd's words"}, {Name: "version", List: lists.Partial, Text: "names gangd too"}}}
	for _, name := range changes {
		cmds.Options = append(cmds.Options, lists.Option{Name: name, List: lists.Refused, Text: noRegister})
	}
	shows := lists.Command{Name: "sacctmgr show ENTITY"}
	for i := range tables {
		o := lists.Option{Name: tables[i].name, List: lists.Partial, Text: tables[i].note}
		if o.Text == "" {
			o.List = lists.Exact
		}
		shows.Options = append(shows.Options, o)
	}
	for name, use := range elsewhere {
		shows.Options = append(shows.Options, lists.Option{Name: name, List: lists.Refused, Text: "use " + use})
	}
	return []lists.Command{cmds, shows}
}

const noRegister = "gangd keeps no register of users and accounts: every user may submit and name any account; partitions are configured, gangd.toml(5)"

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
	slurm.Streams
	noHeader bool
	quiet    bool
	assoc    bool
	style    accttable.Style
}

// Run is sacctmgr.
func Run(args []string, s slurm.Streams) int {
	c := &call{Streams: s}
	if lists.Asked(args) {
		for _, l := range append([]lists.Command{Lists()}, Keywords()...) {
			l.Write(s.Out)
		}
		return 0
	}
	words, status, done := options.Read("sacctmgr", args, s, c.set)
	if done {
		return status
	}
	return c.do(words)
}

func (c *call) set(o getopt.Setting) (status int, done bool) {
	switch o.Name {
	case "associations":
		c.assoc = true
	case "quiet":
		c.quiet = true
	case "version":
		return c.version(), true
	case "help":
		return c.help(), true
	default:
		c.setStyle(o.Name)
	}
	return 0, false
}

// setStyle takes the options that say how a table is written.
func (c *call) setStyle(name string) {
	switch name {
	case "noheader":
		c.noHeader = true
	case "parsable":
		c.style = accttable.Parsable
	case "parsable2":
		c.style = accttable.Parsable2
	}
}

func (c *call) say(format string, args ...any) int {
	if !c.quiet {
		fmt.Fprintf(c.Err, format+"\n", args...)
	}
	return 1
}

func (c *call) version() int {
	fmt.Fprintln(c.Out, slurm.Version())
	return 0
}

func (c *call) help() int {
	fmt.Fprint(c.Out, "sacctmgr [OPTION...] show ENTITY [CONDITION...] [format=COLUMN,...]\n  what gangd has of Slurm's accounting, by the name of Slurm's sacctmgr\n\n")
	for _, l := range append([]lists.Command{Lists()}, Keywords()...) {
		fmt.Fprintf(c.Out, "%s:\n", l.Name)
		for _, o := range l.Options {
			word := ""
			if o.List == lists.Refused {
				word = "refused: "
			}
			fmt.Fprintf(c.Out, "  %-16s %s%s\n", o.Name, word, o.Text)
		}
		fmt.Fprintln(c.Out)
	}
	fmt.Fprint(c.Out, "sacctmgr --help=slurm lists what is kept exactly, partly, and refused\n")
	return 0
}

// short: a word cut short.
func short(word, name string, letters int) bool {
	return len(word) >= min(letters, len(name)) && len(word) <= len(name) && strings.EqualFold(word, name[:len(word)])
}

func (c *call) do(words []string) int {
	if len(words) == 0 {
		return c.fail("there is no prompt: give a command, as in sacctmgr show user; sacctmgr help lists them")
	}
	switch w := words[0]; {
	case short(w, "show", 3), short(w, "list", 3):
		return c.show(words[1:])
	case short(w, "help", 2):
		return c.help()
	case short(w, "version", 4):
		return c.version()
	default:
		for _, name := range changes {
			if short(w, name, 3) {
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
	for i := range tables {
		if name := tables[i].name; short(words[0], name, 3) || short(words[0], name+"s", 3) {
			return c.showTable(&tables[i], words[1:])
		}
	}
	for name, use := range elsewhere {
		if short(words[0], name, 3) {
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
	chosen, err := accttable.Parse(format, t.columns)
	var unknown *accttable.UnknownError
	if errors.As(err, &unknown) {
		return c.say("Unknown field '%s'", unknown.Name)
	}
	rows, err := t.rows(q)
	if err != nil {
		return c.unreachable(err)
	}
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

// take reads one word behind the entity; a bare one is a name.
func (q *query) take(t *table, word string) bool {
	key, v, given := strings.Cut(word, "=")
	switch {
	case !given && short(word, "where", 5):
	case !given && short(word, "withassoc", 5):
		q.withAssoc = true
	case !given && (short(word, "withcoordinator", 5) || short(word, "withdeleted", 5) || short(word, "wopinfo", 4) || short(word, "wolimits", 3) || short(word, "tree", 4)):
		// Nothing of gangd's is deleted but kept, coordinated, or limited.
	case !given:
		q.conditions[t.keys[0]] = append(q.conditions[t.keys[0]], strings.Split(word, ",")...)
	case short(key, "format", 1):
		q.format = v
	default:
		for _, k := range t.keys {
			if short(key, k, 1) {
				q.conditions[k] = append(q.conditions[k], strings.Split(strings.Trim(v, `'"`), ",")...)
				return true
			}
		}
		return false
	}
	return true
}
