// Package getopt reads command lines as getopt_long of the C library does, to its messages:
// what Slurm's commands accept, abbreviate and refuse, these do too.
//
// Options and arguments may stand in any order unless the grammar stops at the first
// argument; "--" ends the options; a long name may be cut short while it stays unambiguous;
// short options may be written in one word; the value of a short option may be glued to it.
//
// The package is pure: it sees a list of words and gives settings or an error.
package getopt

import (
	"fmt"
	"strings"
)

// Arg says whether an option takes a value.
type Arg int

// The kinds of options.
const (
	None     Arg = iota
	Required     // --user=x, --user x, -ux, -u x
	Optional     // --jobs=x, -jx; never the next word
)

// Option is one option of a grammar.
type Option struct {
	Long  string // empty: short only
	Short byte   // 0: long only
	Arg   Arg
	// Name is what the setting is called; empty: Long. Several spellings may share one.
	Name string
}

func (o *Option) name() string {
	if o.Name != "" {
		return o.Name
	}
	return o.Long
}

// Setting is one option as it was given.
type Setting struct {
	Name  string // of the option
	Value string
	Given bool // a value was written
	Short bool // by its letter
}

// Error is a command line that can't be read, in the C library's words without the
// program's name.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Grammar is the options of a command.
type Grammar struct {
	Options []Option
	// Stop ends the options at the first argument, as the C library does with '+': what
	// follows belongs to another program.
	Stop bool
}

// Parse reads args. What was read before a mistake is given too: the C library hands an
// option out before it looks at the next.
func (g *Grammar) Parse(args []string) (settings []Setting, rest []string, err error) {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--":
			return settings, append(rest, args...), nil
		case strings.HasPrefix(word, "--"):
			var s Setting
			if s, args, err = g.long(word[2:], args); err != nil {
				return settings, rest, err
			}
			settings = append(settings, s)
		case len(word) > 1 && word[0] == '-':
			if settings, args, err = g.short(settings, word[1:], args); err != nil {
				return settings, rest, err
			}
		case g.Stop:
			return settings, append(append(rest, word), args...), nil
		default:
			rest = append(rest, word)
		}
	}
	return settings, rest, nil
}

func (g *Grammar) long(word string, args []string) (Setting, []string, error) {
	name, value, given := strings.Cut(word, "=")
	o, err := g.find(name, word)
	if err != nil {
		return Setting{}, args, err
	}
	s := Setting{Name: o.name(), Value: value, Given: given}
	switch {
	case given && o.Arg == None:
		return s, args, refuse("option '--%s' doesn't allow an argument", o.Long)
	case !given && o.Arg == Required && len(args) == 0:
		return s, args, refuse("option '--%s' requires an argument", o.Long)
	case !given && o.Arg == Required:
		s.Value, s.Given, args = args[0], true, args[1:]
	}
	return s, args, nil
}

// find takes the whole name, or the only one that begins so. Names of one option and kind
// do not contradict each other.
func (g *Grammar) find(name, word string) (*Option, error) {
	var found []*Option
	for i := range g.Options {
		o := &g.Options[i]
		switch {
		case o.Long == "":
		case o.Long == name:
			return o, nil
		case strings.HasPrefix(o.Long, name):
			found = append(found, o)
		}
	}
	if len(found) == 0 {
		return nil, refuse("unrecognized option '--%s'", word)
	}
	// Other spellings of the first are not named, as the C library does not.
	names := ""
	for _, o := range found[1:] {
		if o.name() != found[0].name() || o.Arg != found[0].Arg {
			names += " '--" + o.Long + "'"
		}
	}
	if names != "" {
		return nil, refuse("option '--%s' is ambiguous; possibilities: '--%s'%s", word, found[0].Long, names)
	}
	return found[0], nil
}

func (g *Grammar) short(settings []Setting, letters string, args []string) ([]Setting, []string, error) {
	for i := 0; i < len(letters); i++ {
		o := g.letter(letters[i])
		if o == nil {
			return settings, args, refuse("invalid option -- '%c'", letters[i])
		}
		s := Setting{Name: o.name(), Short: true}
		rest := letters[i+1:]
		switch {
		case o.Arg == None:
			settings = append(settings, s)
			continue
		case rest != "":
			s.Value, s.Given = rest, true
		case o.Arg == Required && len(args) == 0:
			return settings, args, refuse("option requires an argument -- '%c'", letters[i])
		case o.Arg == Required:
			s.Value, s.Given, args = args[0], true, args[1:]
		}
		return append(settings, s), args, nil
	}
	return settings, args, nil
}

func (g *Grammar) letter(c byte) *Option {
	for i := range g.Options {
		if g.Options[i].Short == c {
			return &g.Options[i]
		}
	}
	return nil
}
