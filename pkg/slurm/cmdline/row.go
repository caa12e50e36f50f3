package cmdline

import (
	"fmt"

	"gangd/pkg/cmdline/getopt"
	"gangd/pkg/cmdline/lists"
	"gangd/pkg/slurm"
)

// Row is one option of a command that takes its settings by name: how it is written, and how
// it is kept. An option with the list [lists.Own] is read, but is in no list.
type Row struct {
	getopt.Option
	List lists.List
	Text string
}

// Rows are the options of such a command.
type Rows []Row

// On is a row; a short of 0 is none.
func On(short byte, long string, arg getopt.Arg, l lists.List, text string) Row {
	return Row{getopt.Option{Long: long, Short: short, Arg: arg}, l, text}
}

// Also is another spelling of an option.
func Also(r Row, long string) Row {
	r.Name, r.Long, r.Short = r.Long, long, 0
	return r
}

// Lists is how each option of the command of this name is kept.
func (rows Rows) Lists(name string) lists.Command {
	c := lists.Command{Name: name}
	for i := range rows {
		if r := &rows[i]; r.List != lists.Own {
			c.Options = append(c.Options, lists.Option{Name: r.Long, Short: r.Short, Value: r.Arg != getopt.None, List: r.List, Text: r.Text})
		}
	}
	return c
}

// Grammar reads the options.
func (rows Rows) Grammar() *getopt.Grammar {
	g := &getopt.Grammar{}
	for i := range rows {
		g.Options = append(g.Options, rows[i].Option)
	}
	return g
}

// Refused is the error of an option that is refused, nil of another.
func (rows Rows) Refused(command, option string) error {
	for i := range rows {
		if r := &rows[i]; r.Long == option && r.List == lists.Refused {
			return &Refused{command, option, r.Text}
		}
	}
	return nil
}

// Read takes a command line and gives the words that are no options. Each setting is handed to
// take, which may end the command with a status; those before a mistake come first, as in
// Slurm. Of a mistake the text has been printed.
func (rows Rows) Read(command string, args []string, s slurm.Streams, take func(getopt.Setting) (status int, done bool)) (words []string, status int, done bool) {
	settings, words, err := rows.Grammar().Parse(args)
	for _, one := range settings {
		if status, done := take(one); done {
			return nil, status, true
		}
	}
	if err != nil {
		unreadable(command, err, s)
		return nil, 1, true
	}
	return words, 0, false
}

// unreadable says why a command line can't be read.
func unreadable(command string, err error, s slurm.Streams) {
	fmt.Fprintf(s.Err, "%s: %s\nTry \"%s --help\" for more information\n", command, err, command)
}

// NoCluster is what Slurm says, line by line, of a cluster that it does not know.
func NoCluster(name string) []string {
	return []string{
		fmt.Sprintf("No cluster '%s' known by database.", name),
		fmt.Sprintf("'%s' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.", name),
	}
}
