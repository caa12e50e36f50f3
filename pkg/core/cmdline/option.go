package cmdline

import (
	"cmp"
	"strings"
)

// Kind says whether an option takes a value.
type Kind int

// The kinds of options.
const (
	None     Kind = iota
	Required      // --user=x, --user x, -ux, -u x
	Optional      // --jobs=x, -jx; never the next word
)

// Option is one option of a command whose choices are kept in a T.
type Option[T any] struct {
	Long  string // the name in help and messages; empty: by its letter only
	Short byte   // 0: none
	// Names are the long names that are taken, where they are not Long alone.
	Names string
	// As is the option of which this is another spelling that stands in the lists by itself.
	As      string
	Slurm   string // Slurm's name of it where it is not Long
	Env     []string
	Kind    Kind
	Arg     string // placeholder of the value in help
	Default string // value of Optional without one
	List    List
	Group   string // heading in the help
	Help    string // one line
	Note    string // Partial: what differs. Refused: why
	Use     string // Refused: what to use instead
	Warn    bool   // Partial without effect: Note goes to stderr each time
	// Heeded are values of such an option that have one; nil: none.
	Heeded func(value string) bool
	OnLine bool // belongs on the command line only
	Repeat bool // each occurrence in the closest source counts, not only the last
	Alloc  bool // of a step that makes its own job: it is passed on to the submission
	// Set is nil where the option is refused, and where accepting it is all there is to do.
	Set func(t *T, value string) error
}

// Spellings is every long name that is taken.
func (o *Option[T]) Spellings() []string {
	switch {
	case o.Names != "":
		return strings.Fields(o.Names)
	case o.Long == "":
		return nil
	}
	return []string{o.Long}
}

// SlurmName is what Slurm calls it.
func (o *Option[T]) SlurmName() string { return cmp.Or(o.Slurm, o.Long) }

// Argument is how the value is shown behind the name.
func (o *Option[T]) Argument() string {
	switch {
	case o.Kind == Required:
		return "=" + cmp.Or(o.Arg, "VALUE")
	case o.Kind == Optional && o.Arg != "":
		return "[=" + o.Arg + "]"
	}
	return ""
}

// Kept is what the lists say of it.
func (o *Option[T]) Kept() string {
	switch {
	case o.List == Exact:
		return cmp.Or(o.Help, o.Note)
	case o.Use != "":
		return o.Note + "; " + o.Use
	}
	return cmp.Or(o.Note, o.Help)
}
