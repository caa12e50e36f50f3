package cmdline

import (
	"errors"
	"fmt"
	"strings"
)

// Command is a command of Slurm's.
type Command[T any] struct {
	Name    string
	Options []Option[T]
	Usage   string // what --usage prints, with its line ends
	Help    string // what --help prints; empty: made from the table
	// Tell prints --help in a manner of the command's own, of its options; nil: from the table.
	Tell func(l Lists, s Streams)
	// Does is what the command does, said at the head of --help; empty: Slurm's way, a usage line.
	Does string
	Stop bool // options end at the first argument
	// Failed is the exit status of a command line that can't be read; 0 means 1.
	Failed int
	// Getenv reads the variables that stand for options; nil: none is read.
	Getenv func(string) string
	// Terse: of a line that can't be read no word about --help follows.
	Terse bool
	// More is what --help=slurm lists beside the options.
	More func() []Lists
}

// ErrDone ends a command with status 0: what was asked for was printed.
var ErrDone = errors.New("done")

// Status is an error with an exit status, whose text was printed already.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Bare is an error that is printed without the command's name before it.
type Bare string

func (b Bare) Error() string { return string(b) }

// Said is what was asked for: it is printed on standard output, and ends the command with status 0.
type Said string

func (s Said) Error() string { return string(s) }

// Fatal is an error that is printed as "NAME: fatal: text".
type Fatal string

func (f Fatal) Error() string { return string(f) }

// Lists is the table for those who compare it.
func (c *Command[T]) Lists() Lists { return ListsOf(c.Name, c.Options) }

// Grammar is how its line is read.
func (c *Command[T]) Grammar() *Grammar[T] { return &Grammar[T]{Options: c.Options, Stop: c.Stop} }

// Parse reads the arguments into t and gives those that are no options. Of an error the text
// has been printed; [Exit] makes the exit status of it.
func (c *Command[T]) Parse(t *T, args []string, s Streams) ([]string, error) {
	if len(args) == 1 && args[0] == "--help=slurm" {
		c.writeLists(s)
		return nil, ErrDone
	}
	if err := c.environment(t, s); err != nil {
		return nil, err
	}
	settings, rest, err := c.Grammar().Parse(args)
	for i := range settings {
		if err := c.take(t, &settings[i], s); err != nil {
			return nil, err
		}
	}
	if err != nil {
		fmt.Fprintf(s.Err, "%s: %s\n", c.Name, err)
		if !c.Terse {
			fmt.Fprintf(s.Err, "Try \"%s --help\" for more information\n", c.Name)
		}
		return nil, Status(max(c.Failed, 1))
	}
	return rest, nil
}

// environment takes the variables that stand for options, before those of the line, which have the last word.
func (c *Command[T]) environment(t *T, s Streams) error {
	if c.Getenv == nil {
		return nil
	}
	for i := range c.Options {
		for _, name := range c.Options[i].Env {
			value := c.Getenv(name)
			if value == "" {
				continue
			}
			one := Setting[T]{Option: &c.Options[i], Name: name, Value: value, Given: true}
			if one.Option.List == Refused {
				s.Errorf(c.Name, "%s is refused: %s", name, one.Option.Kept())
				return Status(max(c.Failed, 1))
			}
			if err := c.take(t, &one, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// NoMore refuses words behind the options.
func (c *Command[T]) NoMore(rest []string, s Streams) error {
	if len(rest) == 0 {
		return nil
	}
	s.Errorf(c.Name, "Unknown arguments:")
	for _, r := range rest {
		s.Errorf(c.Name, " %s", r)
	}
	return Status(1)
}

func (c *Command[T]) take(t *T, one *Setting[T], s Streams) error {
	o := one.Option
	switch {
	case o.List == Refused:
		s.Errorf(c.Name, "--%s is refused: %s", o.Long, o.Kept())
		return Status(max(c.Failed, 1))
	case o.Set != nil:
		return c.Print(o.Set(t, one.Value), s)
	case o.Long == "usage":
		fmt.Fprint(s.Out, c.Usage)
		return ErrDone
	case o.Long == "help":
		return c.help(one.Value, s)
	}
	return nil
}

// Print prints an error as the command's own and makes a status of it.
func (c *Command[T]) Print(err error, s Streams) error {
	var status Status
	var bare Bare
	var fatal Fatal
	var said Said
	switch {
	case err == nil, errors.As(err, &status), errors.Is(err, ErrDone):
		return err
	case errors.As(err, &said):
		fmt.Fprintln(s.Out, said)
		return ErrDone
	case errors.As(err, &bare):
		fmt.Fprintln(s.Err, bare)
	case errors.As(err, &fatal):
		fmt.Fprintf(s.Err, "%s: fatal: %s\n", c.Name, fatal)
	default:
		s.Errorf(c.Name, "%s", err)
	}
	return Status(1)
}

func (c *Command[T]) writeLists(s Streams) {
	c.Lists().Write(s.Out)
	if c.More != nil {
		for _, l := range c.More() {
			l.Write(s.Out)
		}
	}
}

// help prints what --help or --help=slurm ask for.
func (c *Command[T]) help(topic string, s Streams) error {
	switch {
	case topic == "slurm":
		c.writeLists(s)
		return ErrDone
	case topic != "":
		s.Errorf(c.Name, "unknown topic %q: write --help or --help=slurm", topic)
		return Status(max(c.Failed, 1))
	case c.Help != "":
		fmt.Fprint(s.Out, c.Help)
		return ErrDone
	case c.Tell != nil:
		c.Tell(c.Lists(), s)
		return ErrDone
	case c.Does != "":
		fmt.Fprintf(s.Out, "%s [OPTION...]\n  %s\n\n", c.Name, c.Does)
		for i := range c.Options {
			if o := &c.Options[i]; o.List != Own {
				fmt.Fprintf(s.Out, "  %-22s %s\n", o.names(), o.Kept())
			}
		}
		fmt.Fprintf(s.Out, "\n%s --help=slurm lists what is kept exactly, partly, and refused\n", c.Name)
		return ErrDone
	}
	fmt.Fprintf(s.Out, "Usage: %s [OPTIONS]\n", c.Name)
	for i := range c.Options {
		o := &c.Options[i]
		if o.List == Refused || o.Long == "help" || o.Long == "usage" {
			continue
		}
		argument := o.Argument()
		if o.Kind == Optional {
			argument = "[=VALUE]"
		}
		fmt.Fprintf(s.Out, "  %-28s  %s\n", o.names()+argument, o.Kept())
	}
	fmt.Fprintf(s.Out, "\nHelp options:\n  --help[=slurm]                  show this help message, or what became of each of Slurm's "+
		"options\n"+
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

// HelpRow is --help, and its letter, 0: none.
func HelpRow[T any](letter byte) Option[T] {
	return Option[T]{Long: "help", Short: letter, Kind: Optional, List: Partial, Note: "gangd's own words; --help=slurm prints these lists"}
}

// UsageRow is --usage.
func UsageRow[T any]() Option[T] {
	return Option[T]{Long: "usage", List: Exact, Help: "display a brief summary of the options"}
}

// ClustersRow is --clusters of a command that asks a controller: the one that there is may be named, and named, where it is not nil, says
// that it was.
func ClustersRow[T any](command string, named func(*T) *bool) Option[T] {
	return Option[T]{Long: "clusters", Short: 'M', Names: "cluster clusters", Env: []string{"SLURM_CLUSTERS"}, Kind: Required, List: Partial,
		Help: Cluster + " is the one cluster; another name is refused; GANG_DIR chooses another's controller", Set: func(t *T, v string) error {
			if named != nil {
				*named(t) = true
			}
			return NoCluster(command, v)
		}}
}

// OneCluster is the Set of --clusters of a command that has nothing to say of it.
func OneCluster[T any](command string) func(*T, string) error {
	return func(_ *T, v string) error { return NoCluster(command, v) }
}

// IsCluster says whether a name is that of the one cluster, or of all, which it is.
func IsCluster(name string) bool { return name == Cluster || name == "all" }

// NoCluster is what Slurm says of a cluster that there is not; of the one that there is, nil.
func NoCluster(command, name string) error {
	if IsCluster(name) {
		return nil
	}
	text := fmt.Sprintf("No cluster '%s' known by database.\n%s: error: '%s' can't be reached now, or it is an invalid entry for "+
		"--cluster.  Use 'sacctmgr list clusters' to see available clusters.", name, command, name)
	return errors.New(text)
}
