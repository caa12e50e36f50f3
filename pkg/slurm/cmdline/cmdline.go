// Package cmdline is the command line of a command of Slurm's: a table of its options, from
// which it is read, refused and explained.
//
// Each row says what becomes of an option: it is kept exactly, partly (the text says what
// differs), or refused (why, and what to use). A row that is not refused does something; what
// has no row is an unrecognized option, as in Slurm. So nothing is ignored in silence.
package cmdline

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"gangd/pkg/cmdline/getopt"
	"gangd/pkg/cmdline/lists"
	"gangd/pkg/slurm"
)

// Option is one option of a command whose choices are kept in a T.
type Option[T any] struct {
	Long  string // Slurm's name in its manual
	Short byte
	Names string // the long names that the command really takes, where they are others
	Arg   getopt.Arg
	List  lists.List
	Text  string // see [lists.Option]
	// Set is nil where the option is refused, and where accepting it is all there is to do.
	Set func(t *T, value string, given bool) error
}

// Command is a command of Slurm's.
type Command[T any] struct {
	Name    string
	Options []Option[T]
	Usage   string // what --usage prints, with its line ends
	Help    string // what --help prints; empty: made from the table
	Stop    bool   // options end at the first argument
	// Failed is the exit status of a command line that can't be read; 0 means 1.
	Failed int
}

// ErrDone ends a command with status 0: what was asked for was printed.
var ErrDone = errors.New("done")

// Status is an error with an exit status, whose text was printed already.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Refused is the error of an option that is refused.
type Refused struct{ Command, Option, Text string }

func (r *Refused) Error() string { return "--" + r.Option + " is refused: " + r.Text }

// Lists is the table for those who compare it.
func (c *Command[T]) Lists() lists.Command {
	out := lists.Command{Name: c.Name}
	for _, o := range c.Options {
		out.Options = append(out.Options, lists.Option{Name: o.Long, Short: o.Short, Value: o.Arg != getopt.None, List: o.List, Text: o.Text})
	}
	return out
}

func (c *Command[T]) grammar() *getopt.Grammar {
	g := &getopt.Grammar{Stop: c.Stop}
	for i := range c.Options {
		o := &c.Options[i]
		short := o.Short
		for _, name := range strings.Fields(cmp.Or(o.Names, o.Long)) {
			g.Options = append(g.Options, getopt.Option{Long: name, Short: short, Arg: o.Arg, Name: o.Long})
			short = 0
		}
	}
	return g
}

// Parse reads the arguments into t and gives those that are no options. Of an error the text
// has been printed; [Exit] makes the exit status of it.
func (c *Command[T]) Parse(t *T, args []string, s slurm.Streams) ([]string, error) {
	settings, rest, err := c.grammar().Parse(args)
	for _, one := range settings {
		if err := c.take(t, one, s); err != nil {
			return nil, err
		}
	}
	if err != nil {
		unreadable(c.Name, err, s)
		return nil, Status(max(c.Failed, 1))
	}
	return rest, nil
}

func (c *Command[T]) take(t *T, one getopt.Setting, s slurm.Streams) error {
	switch one.Name {
	case "version":
		fmt.Fprintln(s.Out, slurm.Version())
		return ErrDone
	case "usage":
		fmt.Fprint(s.Out, c.Usage)
		return ErrDone
	case "help":
		return c.help(one.Value, s)
	}
	o := c.option(one.Name)
	if o.List == lists.Refused {
		s.Errorf(c.Name, "%s", &Refused{c.Name, o.Long, o.Text})
		return Status(max(c.Failed, 1))
	}
	if o.Set == nil {
		return nil
	}
	return c.Print(o.Set(t, one.Value, one.Given), s)
}

// Bare is an error that is printed without the command's name before it.
type Bare string

func (b Bare) Error() string { return string(b) }

// Print prints an error as the command's own and makes a status of it.
func (c *Command[T]) Print(err error, s slurm.Streams) error {
	var status Status
	if err == nil || errors.As(err, &status) || errors.Is(err, ErrDone) {
		return err
	}
	var bare Bare
	if errors.As(err, &bare) {
		fmt.Fprintln(s.Err, bare)
	} else {
		s.Errorf(c.Name, "%s", err)
	}
	return Status(1)
}

func (c *Command[T]) option(long string) *Option[T] {
	for i := range c.Options {
		if c.Options[i].Long == long {
			return &c.Options[i]
		}
	}
	panic("cmdline: no option " + long) // the grammar is made of the table
}

// help prints what --help or --help=slurm ask for.
func (c *Command[T]) help(topic string, s slurm.Streams) error {
	switch {
	case topic == "slurm":
		c.Lists().Write(s.Out)
		return ErrDone
	case topic != "":
		s.Errorf(c.Name, "unknown topic %q: write --help or --help=slurm", topic)
		return Status(max(c.Failed, 1))
	case c.Help != "":
		fmt.Fprint(s.Out, c.Help)
		return ErrDone
	}
	fmt.Fprintf(s.Out, "Usage: %s [OPTIONS]\n", c.Name)
	for i := range c.Options {
		o := &c.Options[i]
		if o.List == lists.Refused || o.Long == "help" || o.Long == "usage" {
			continue
		}
		name := "    --" + o.Long
		if o.Short != 0 {
			name = "-" + string(o.Short) + ", --" + o.Long
		}
		switch o.Arg {
		case getopt.Required:
			name += "=VALUE"
		case getopt.Optional:
			name += "[=VALUE]"
		}
		fmt.Fprintf(s.Out, "  %-28s  %s\n", name, o.Text)
	}
	fmt.Fprintf(s.Out, "\nHelp options:\n  --help[=slurm]                  show this help message, or what became of each of Slurm's options\n"+
		"  --usage                         display brief usage message\nManual: man gangd-slurm\n")
	return ErrDone
}

// Exit is the exit status of what [Command.Parse] or a command gave.
func Exit(err error) int {
	var status Status
	switch {
	case err == nil, errors.Is(err, ErrDone):
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	return 1
}

// Split cuts a list at its commas; an empty list has no members.
func Split(list string) []string {
	var out []string
	for _, w := range strings.Split(list, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// Version is --version.
func Version[T any]() Option[T] {
	return Option[T]{Long: "version", Short: 'V', List: lists.Partial, Text: "output version information and exit; it says gangd's version too"}
}

// Help is --help.
func Help[T any]() Option[T] {
	return Option[T]{Long: "help", Arg: getopt.Optional, List: lists.Partial, Text: "gangd's own words; --help=slurm prints these lists"}
}

// UsageLine is --usage.
func UsageLine[T any]() Option[T] {
	return Option[T]{Long: "usage", List: lists.Exact, Text: "display a brief summary of the options"}
}

// Clusters is --clusters of the commands that Slurm answers from its database.
func Clusters[T any]() Option[T] {
	return Option[T]{Long: "clusters", Short: 'M', Names: "cluster clusters", Arg: getopt.Required, List: lists.Refused,
		Text: "there is one cluster and no database of others; set GANG_DIR to ask another controller"}
}
