package script

import (
	"fmt"
	"io"

	"gangd/pkg/cmdline/lists"
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
func WriteSlurm(w io.Writer) { SlurmLists().Write(w) }

// SlurmLists is how each option of sbatch is kept.
func SlurmLists() lists.Command {
	c := lists.Command{Name: "sbatch"}
	for i := range Options {
		o := &Options[i]
		if o.List == Own {
			continue
		}
		text := o.Note
		switch o.List {
		case Exact:
			text = o.Help
		case Refused:
			text += "; " + o.Use
		}
		if o.SbatchName() != o.Long {
			text += " (also --" + o.Long + ")"
		}
		c.Options = append(c.Options, lists.Option{Name: o.SbatchName(), Short: o.Short, Value: o.Kind != NoValue, List: o.List, Text: text})
	}
	return c
}
