package cmdline

import (
	"fmt"
	"strings"
)

// Setting is one option as it was given.
type Setting[T any] struct {
	Option *Option[T]
	Name   string // the whole long name that was meant; Long where it was given by its letter
	Value  string // the option's Default where none was written
	Given  bool   // a value was written
	At     int    // index of its word
}

// Fault is what is wrong with a command line.
type Fault int

// The faults.
const (
	Unknown     Fault = iota // no option of this name
	Ambiguous                // several begin so
	NoLetter                 // no option of this letter
	Superfluous              // a value for an option that takes none
	Missing                  // no value for an option that needs one
)

// Error is a command line that can't be read.
type Error struct {
	Fault  Fault
	Word   string   // as it was written, without the dashes
	Name   string   // Unknown, Ambiguous: the name in it. Else the option's whole name
	Letter byte     // NoLetter, and Missing where the option was given by its letter
	Arg    string   // Missing: what the value is
	Fits   []string // Ambiguous: the names
	At     int      // index of the word
}

// Error is the C library's words, without the program's name.
func (e *Error) Error() string {
	switch e.Fault {
	case Unknown:
		return "unrecognized option '--" + e.Word + "'"
	case Ambiguous:
		return "option '--" + e.Word + "' is ambiguous; possibilities: '--" + strings.Join(e.Fits, "' '--") + "'"
	case NoLetter:
		return fmt.Sprintf("invalid option -- '%c'", e.Letter)
	case Superfluous:
		return "option '--" + e.Name + "' doesn't allow an argument"
	}
	if e.Letter != 0 {
		return fmt.Sprintf("option requires an argument -- '%c'", e.Letter)
	}
	return "option '--" + e.Name + "' requires an argument"
}

// Grammar is how a line is read.
type Grammar[T any] struct {
	Options []Option[T]
	// Stop ends the options at the first argument, as the C library does with '+': what
	// follows belongs to another program.
	Stop bool
	// Equals takes -N=2 as -N2.
	Equals bool
	// Cut says whether a name may be cut short; nil: each may.
	Cut func(o *Option[T], name string) bool
}

// parser is one reading.
type parser[T any] struct {
	*Grammar[T]
	args     []string
	next     int // first word not taken
	settings []Setting[T]
}

// Parse reads args. What was read before a mistake is given too: the C library hands an
// option out before it looks at the next.
func (g *Grammar[T]) Parse(args []string) (settings []Setting[T], rest []string, err error) {
	p := parser[T]{Grammar: g, args: args}
	for p.next < len(args) {
		word := args[p.next]
		p.next++
		switch {
		case word == "--":
			return p.settings, append(rest, args[p.next:]...), nil
		case strings.HasPrefix(word, "--"):
			err = p.long(word[2:])
		case len(word) > 1 && word[0] == '-':
			err = p.short(word[1:])
		case g.Stop:
			return p.settings, args[p.next-1:], nil
		default:
			rest = append(rest, word)
		}
		if err != nil {
			return p.settings, rest, err
		}
	}
	return p.settings, rest, nil
}

func (p *parser[T]) add(o *Option[T], name, value string, given bool, at int) {
	if !given {
		value = o.Default
	}
	p.settings = append(p.settings, Setting[T]{p.row(o), name, value, given, at})
}

// row is the option itself where o is another spelling.
func (g *Grammar[T]) row(o *Option[T]) *Option[T] {
	if o.As != "" {
		for i := range g.Options {
			if g.Options[i].Long == o.As {
				return &g.Options[i]
			}
		}
	}
	return o
}

// take is the next word as a value.
func (p *parser[T]) take() (string, bool) {
	if p.next == len(p.args) {
		return "", false
	}
	p.next++
	return p.args[p.next-1], true
}

func (p *parser[T]) long(word string) error {
	at := p.next - 1
	name, value, given := strings.Cut(word, "=")
	o, full, err := p.find(name, word)
	if err != nil {
		err.At = at
		return err
	}
	if given && o.Kind == None {
		return &Error{Fault: Superfluous, Word: word, Name: full, At: at}
	}
	if !given && o.Kind == Required {
		if value, given = p.take(); !given {
			return &Error{Fault: Missing, Word: word, Name: full, Arg: o.Arg, At: at}
		}
	}
	p.add(o, full, value, given, at)
	return nil
}

// find takes the whole name, or the only one that begins so. Names of one option do not
// contradict each other.
func (g *Grammar[T]) find(name, word string) (*Option[T], string, *Error) {
	var found *Option[T]
	var fits []string
	for i := range g.Options {
		o := &g.Options[i]
		for _, n := range o.Spellings() {
			switch {
			case n == name:
				return o, n, nil
			case !strings.HasPrefix(n, name) || g.Cut != nil && !g.Cut(o, n):
			case found == nil:
				found, fits = o, []string{n}
			case g.row(found) != g.row(o):
				fits = append(fits, n)
			}
		}
	}
	switch len(fits) {
	case 0:
		return nil, "", &Error{Fault: Unknown, Word: word, Name: name}
	case 1:
		return found, fits[0], nil
	}
	return nil, "", &Error{Fault: Ambiguous, Word: word, Name: name, Fits: fits}
}

func (p *parser[T]) short(letters string) error {
	at := p.next - 1
	for i := 0; i < len(letters); i++ {
		o := p.letter(letters[i])
		if o == nil {
			return &Error{Fault: NoLetter, Word: letters, Letter: letters[i], At: at}
		}
		value := letters[i+1:]
		given := value != "" && o.Kind != None
		if p.Equals && given {
			value = strings.TrimPrefix(value, "=")
		}
		if !given && o.Kind == Required {
			if value, given = p.take(); !given {
				return &Error{Fault: Missing, Word: letters, Name: o.Long, Letter: o.Short, Arg: o.Arg, At: at}
			}
		}
		p.add(o, o.Long, value, given, at)
		if o.Kind != None {
			return nil
		}
	}
	return nil
}

func (g *Grammar[T]) letter(c byte) *Option[T] {
	for i := range g.Options {
		if g.Options[i].Short == c {
			return &g.Options[i]
		}
	}
	return nil
}
