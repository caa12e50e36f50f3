package cmdline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// List says how an option of Slurm's is kept here. No option is in none of the lists, which is
// what "nothing is silently ignored" means; a test holds them against the recorded options of
// Slurm 22.05 and against what the commands read.
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

// Kept is how one option of one of Slurm's commands is kept, by Slurm's name.
type Kept struct {
	Name  string // long name without dashes
	Short byte   // 0: none
	Value bool   // it takes one, or may
	List  List
	Text  string // Exact: what it does. Partial: what differs. Refused: why; what to use
}

// Lists is all options of one command.
type Lists struct {
	Name    string // Slurm's: squeue
	Options []Kept
}

// ListsOf is how each option of a table is kept.
func ListsOf[T any](name string, options []Option[T]) Lists {
	l := Lists{Name: name}
	for i := range options {
		o := &options[i]
		if o.List == Own {
			continue
		}
		text := o.Kept()
		if o.SlurmName() != o.Long {
			text += " (also --" + o.Long + ")"
		}
		l.Options = append(l.Options, Kept{Name: o.SlurmName(), Short: o.Short, Value: o.Kind != None, List: o.List, Text: text})
	}
	return l
}

// Write writes the three lists, each by name: what `COMMAND --help=slurm` prints.
func (c Lists) Write(w io.Writer) {
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

// WriteWords writes everything of some lists, one under the other: what --help prints of a
// command whose words are listed with its options.
func WriteWords(w io.Writer, width int, dashes string, all ...Lists) {
	for _, l := range all {
		fmt.Fprintf(w, "%s:\n", l.Name)
		for _, o := range l.Options {
			refused := ""
			if o.List == Refused {
				refused = "refused: "
			}
			fmt.Fprintf(w, "  %-*s %s%s\n", width, dashes+o.Name, refused, o.Text)
		}
		fmt.Fprintln(w)
		dashes = "" // of words
	}
}

// in is the options of one list by name.
func (c Lists) in(l List) []Kept {
	var out []Kept
	for _, o := range c.Options {
		if o.List == l {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Kept) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// The columns of a page of help: a terminal's, and where an option's text begins.
const (
	helpWidth  = 80
	helpIndent = 35
)

// WriteHelp writes the options that show: the first ones by name under a heading of their own, for
// whoever reads one screen, then the rest, each group once and in the order in which it comes up.
func WriteHelp[T any](w io.Writer, options []Option[T], shows func(*Option[T]) bool, first ...string) {
	if len(first) > 0 {
		fmt.Fprint(w, "\nUsed most:\n")
	}
	for _, name := range first {
		for i := range options {
			if options[i].Long == name {
				options[i].writeHelp(w)
			}
		}
	}
	var groups []string
	members := map[string][]*Option[T]{}
	for i := range options {
		o := &options[i]
		if !shows(o) || slices.Contains(first, o.Long) {
			continue
		}
		if members[o.Group] == nil {
			groups = append(groups, o.Group)
		}
		members[o.Group] = append(members[o.Group], o)
	}
	for _, group := range groups {
		fmt.Fprintf(w, "\n%s:\n", group)
		for _, o := range members[group] {
			o.writeHelp(w)
		}
	}
}

// writeHelp writes the option and its text, broken between words.
func (o *Option[T]) writeHelp(w io.Writer) {
	line := "  " + o.names() + o.Argument()
	if len(line) >= helpIndent {
		fmt.Fprintln(w, line)
		line = ""
	}
	line += strings.Repeat(" ", helpIndent-len(line))
	blank := ""
	for _, word := range strings.Fields(o.Help) {
		if blank != "" && len(line)+len(word) >= helpWidth {
			fmt.Fprintln(w, line)
			line, blank = strings.Repeat(" ", helpIndent), ""
		}
		line += blank + word
		blank = " "
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// names is the option in help: its letter, or blanks for one, and its name where it has one.
func (o *Option[T]) names() string {
	switch {
	case o.Short == 0:
		return "    --" + o.Long
	case o.Long == "":
		return "-" + string(rune(o.Short))
	}
	return "-" + string(rune(o.Short)) + ", --" + o.Long
}

// Complete is the long options that begin with what was typed, with their help behind a tab as
// the completions of the shells want them.
func Complete[T any](options []Option[T], typed string) []string {
	var out []string
	for i := range options {
		o := &options[i]
		if o.List == Refused || o.Help == "" || !strings.HasPrefix("--"+o.Long, typed) {
			continue
		}
		name := "--" + o.Long
		if o.Kind == Required {
			name += "="
		}
		out = append(out, name+"\t"+o.Help)
	}
	return out
}

// Typed says what a shell completes: the value of an option, with as much of it as is there; an operand,
// or what stands behind the first one, which is no option of ours; or else the name of an option.
func Typed[T any](options []Option[T], args []string, word string) (o *Option[T], value string, operand bool) {
	for _, arg := range args {
		switch {
		case o != nil:
			o = nil // its value
		case arg == "--" || arg == "-" || !strings.HasPrefix(arg, "-"):
			return nil, "", true
		default:
			var given bool
			if o, _, given = valued(options, arg); given {
				o = nil
			}
		}
	}
	if o != nil {
		return o, word, false
	}
	if o, value, given := valued(options, word); given {
		return o, value, false
	}
	return nil, "", false
}

// valued is the option of a word that takes a value, and the value where the word has it.
func valued[T any](options []Option[T], word string) (o *Option[T], value string, given bool) {
	if name, ok := strings.CutPrefix(word, "--"); ok {
		name, value, given = strings.Cut(name, "=")
		for i := range options {
			if options[i].Kind == Required && slices.Contains(options[i].Spellings(), name) {
				return &options[i], value, given
			}
		}
		return nil, "", false
	}
	for k := 1; k < len(word); k++ { // -nv: letters without a value may stand before one with
		for i := range options {
			if options[i].Short == word[k] && options[i].Kind == Required {
				return &options[i], word[k+1:], k+1 < len(word)
			}
		}
	}
	return nil, "", false
}
