package script

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Usage is the one line of usage.
const Usage = "gsubmit [OPTION]... SCRIPT [ARG]...  |  gsubmit [OPTION]... --wrap=COMMAND  |  gsubmit [OPTION]... < SCRIPT"

// WriteHelp writes the options that do something, by group.
func WriteHelp(w io.Writer) {
	group := ""
	for i := range Options {
		o := &Options[i]
		if o.List == Refused || o.Group == groupHints {
			continue
		}
		if o.Group != group {
			group = o.Group
			fmt.Fprintf(w, "\n%s:\n", group)
		}
		short := "    "
		if o.Short != 0 {
			short = "-" + string(rune(o.Short)) + ", "
		}
		head := short + "--" + o.Long + o.argument()
		if len(head) > 32 {
			fmt.Fprintf(w, "  %s\n  %-32s %s\n", head, "", o.Help)
		} else {
			fmt.Fprintf(w, "  %-32s %s\n", head, o.Help)
		}
	}
}

// argument is how the value is shown behind the name.
func (o *Option) argument() string {
	switch {
	case o.Kind == Value:
		return "=" + o.Arg
	case o.Kind == MayValue && o.Arg != "":
		return "[=" + o.Arg + "]"
	}
	return ""
}

// WriteSlurm writes the three lists: what became of each option of sbatch.
func WriteSlurm(w io.Writer) {
	for _, l := range []struct {
		list List
		head string
	}{
		{Exact, "exact: as sbatch does"},
		{Partial, "partial: accepted, and different as said"},
		{Refused, "refused: an error, with what to use instead"},
	} {
		fmt.Fprintf(w, "%s\n", l.head)
		for _, o := range sbatchOptions(l.list) {
			text := o.Note
			switch l.list {
			case Exact:
				text = o.Help
			case Refused:
				text += "; " + o.Use
			}
			if o.SbatchName() != o.Long {
				text += " (also --" + o.Long + ")"
			}
			fmt.Fprintf(w, "  --%-20s %s\n", o.SbatchName(), text)
		}
		fmt.Fprintln(w)
	}
}

// sbatchOptions are the options of one list by name.
func sbatchOptions(l List) []*Option {
	var out []*Option
	for i := range Options {
		if Options[i].List == l {
			out = append(out, &Options[i])
		}
	}
	slices.SortFunc(out, func(a, b *Option) int { return strings.Compare(a.SbatchName(), b.SbatchName()) })
	return out
}
