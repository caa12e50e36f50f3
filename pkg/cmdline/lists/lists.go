// Package lists says how each option of Slurm's commands is kept here: exactly, partly
// (and what differs), or refused (and what to use instead). No option is in none of the
// lists, which is what "nothing is silently ignored" means; a test holds the lists against
// the recorded options of Slurm 22.05 and against the commands' own parsers.
package lists

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// List says how an option is kept.
type List int

const (
	// Own is an option that Slurm's command does not have.
	Own List = iota
	// Exact does what Slurm's does.
	Exact
	// Partial is accepted and differs as its text says.
	Partial
	// Refused is an error that says why and what to use.
	Refused
)

// headings of the three lists, in the order in which they are shown.
var headings = []struct {
	list List
	head string
}{
	{Exact, "exact: as %s does"},
	{Partial, "partial: accepted, and different as said"},
	{Refused, "refused: an error, with what to use instead"},
}

// Option is one option of one of Slurm's commands, by Slurm's name.
type Option struct {
	Name  string // long name without dashes
	Short byte   // 0: none
	Value bool   // it takes one, or may
	List  List
	Text  string // Exact: what it does. Partial: what differs. Refused: why; what to use
}

// Command is all options of one command.
type Command struct {
	Name    string // Slurm's: squeue
	Options []Option
}

// Asked: a command line asks for the lists of its command and for nothing else.
func Asked(args []string) bool { return len(args) == 1 && args[0] == "--help=slurm" }

// Write writes the three lists, each by name: what `COMMAND --help=slurm` prints.
func (c Command) Write(w io.Writer) {
	for _, h := range headings {
		head := h.head
		if h.list == Exact {
			head = fmt.Sprintf(head, c.Name)
		}
		fmt.Fprintln(w, head)
		for _, o := range c.in(h.list) {
			fmt.Fprintf(w, "  --%-20s %s\n", o.Name, o.Text)
		}
		fmt.Fprintln(w)
	}
}

// in is the options of one list by name.
func (c Command) in(l List) []Option {
	var out []Option
	for _, o := range c.Options {
		if o.List == l {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Option) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
